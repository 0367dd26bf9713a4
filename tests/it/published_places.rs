//! Where scripts of published skills stand and work, and what becomes of the files that they leave there.

use skillbox::engine::RunSpec;
use skillbox::execution::{Outcome, Workdir};
use skillbox::sandbox::InputFile;

use crate::folders::{
    Piece::{self, Executable, Plain},
    folder_of, packed,
};
use crate::outcomes::{stdout, succeeded};
use crate::world::{Backend, World};

const SKILL_MD: Piece<'_> = Plain(
    "SKILL.md",
    "---\nname: where.it-stands\ndescription: Asks where it stands.\n---\n",
);

/// A script with its arguments, beside `in.csv` and a `data/own.txt` of the request.
async fn run(world: &World, pieces: &[Piece<'_>], command: &[&str]) -> Outcome {
    let file = |path: &str, text: &'static str| InputFile {
        path: path.to_owned(),
        content: text.as_bytes().into(),
    };
    let ask = RunSpec {
        script: Some(command[0].to_owned()),
        args: command[1..].iter().map(|arg| (*arg).to_owned()).collect(),
        files: vec![file("in.csv", "n\n1\n2\n"), file("data/own.txt", "request")],
        workdir: Some(Workdir::Skill),
        ..RunSpec::default()
    };
    let ran = world
        .run_archive(packed(&folder_of(&[&[SKILL_MD], pieces].concat())).unwrap(), ask)
        .await;
    succeeded(ran.unwrap_or_else(|refused| panic!("{command:?}: {refused}")))
}

/// Its files by path and size.
fn files(outcome: &Outcome) -> Vec<(&str, u64)> {
    assert_eq!(outcome.skipped_total, 0, "{:?}", outcome.skipped);
    let mut files: Vec<_> = outcome
        .files
        .iter()
        .map(|file| (file.path.as_str(), file.size))
        .collect();
    files.sort_unstable();
    files
}

/// `parents[2]` of a script at the root and `parents[3]` of one in a folder are asked for in many published skills.
#[tokio::test]
async fn script_path_has_expected_depth() {
    let Some(world) = World::on(super::BACKEND).await else {
        return;
    };
    let asks = "import pathlib, sys
here = pathlib.Path(__file__).resolve()
names = [parent.name for parent in here.parents]
print(names, sys.path[0], pathlib.Path.cwd(), (here.parents[len(here.parts) - 6] / 'SKILL.md').exists())
print(open('data/own.txt').read(), open('data/other.txt').read(), sys.argv[1:])
";
    let relative = format!("from . import other\n{asks}");
    let pieces = [
        Plain("run.py", asks),
        Executable("scripts/run.py", asks),
        Plain("scripts/module.py", &relative),
        Plain("scripts/other.py", ""),
        Plain("data/own.txt", "skill"),
        Plain("data/other.txt", "skill"),
    ];
    let root = "/sandbox/skills/public/where.it-stands";
    let below = "'where.it-stands', 'public', 'skills', 'sandbox', ''";
    for (script, names, first) in [
        ("run.py", format!("[{below}]"), root.to_owned()),
        (
            "scripts/run.py",
            format!("['scripts', {below}]"),
            format!("{root}/scripts"),
        ),
        (
            "scripts/module.py",
            format!("['scripts', {below}]"),
            root.to_owned(),
        ),
    ] {
        let said = stdout(&run(&world, &pieces, &[script, "a b", "-m"]).await);
        let expected = format!("{names} {first} /workspace True\nrequest skill ['a b', '-m']\n");
        assert_eq!(said, expected, "{script}");
    }
}

/// Objects of a class that is loaded twice are not of one class.
#[tokio::test]
async fn loads_module_from_one_place() {
    let Some(world) = World::on(super::BACKEND).await else {
        return;
    };
    let script = "import os, sys
import tables, scripts.tables, lib.more
print(tables.__file__, scripts.tables.__file__, lib.more.__file__)
print([path for path in sys.path if path.startswith('/workspace') or path == ''])
";
    let pieces = [
        Plain("scripts/run.py", script),
        Plain("scripts/tables.py", ""),
        Plain("lib/more.py", ""),
    ];
    let root = "/sandbox/skills/public/where.it-stands";
    let said = stdout(&run(&world, &pieces, &["scripts/run.py"]).await);
    let tables = format!("{root}/scripts/tables.py");
    assert_eq!(said, format!("{tables} {tables} {root}/lib/more.py\n[]\n"));
}

#[tokio::test]
async fn returns_files_written_beside_script_and_in_workspace() {
    let Some(world) = World::on(super::BACKEND).await else {
        return;
    };
    let script = "import pathlib
root = pathlib.Path(__file__).resolve().parent.parent
(root / 'data/state.json').write_text('changed')
(root / 'data/own.txt').write_text('also changed')
(root / 'new').mkdir()
(root / 'new/a.txt').write_text('12')
pathlib.Path('b.txt').write_text('123')
";
    let pieces = [
        Executable("scripts/run.py", script),
        Plain("data/state.json", "{}"),
        Plain("data/same.json", "{}"),
    ];
    let outcome = run(&world, &pieces, &["scripts/run.py"]).await;
    let expected = [
        ("b.txt", 3),
        ("data/own.txt", 12),
        ("data/state.json", 7),
        ("new/a.txt", 2),
    ];
    assert_eq!(files(&outcome), expected);
    // Where both have one, that of the working directory counts.
    let both =
        "open('a.txt', 'w').write('1')\nopen(__file__.rsplit('/', 1)[0] + '/a.txt', 'w').write('123')\n";
    let outcome = run(&world, &[Plain("run.py", both)], &["run.py"]).await;
    assert_eq!((outcome.files.len(), outcome.files[0].size), (1, 1));
    assert_eq!(outcome.skipped[0].path, "a.txt");
}

/// What no longer fits beside the results of a small sandbox is a link.
#[tokio::test]
async fn script_copy_leaves_space_in_workspace() {
    let Some(world) = World::on(super::BACKEND).await else {
        return;
    };
    let script = "import os, pathlib
root = pathlib.Path(__file__).resolve().parent
copies = [path.is_symlink() for path in (root / 'assets').iterdir()]
print(len(copies), 0 < sum(copies) < len(copies), all(path.stat().st_size == 200 << 10 for path in (root / 'assets').iterdir()))
pathlib.Path(os.environ['SANDBOX_FILES_DIR'], 'new.bin').write_bytes(b'x' * (1 << 20))
";
    let skill_md = "---\nname: small\ndescription: Has little memory.\nresources: { memory: 64Mi }\n---\n";
    let (part, paths) = (
        "x".repeat(200 << 10),
        (0..70).map(|n| format!("assets/{n}.txt")).collect::<Vec<_>>(),
    );
    let assets = paths.iter().map(|path| Plain(path, &part));
    let pieces: Vec<_> = [Plain("SKILL.md", skill_md), Plain("run.py", script)]
        .into_iter()
        .chain(assets)
        .collect();
    let ask = RunSpec {
        script: Some("run.py".to_owned()),
        ..RunSpec::default()
    };
    let ran = world.run_archive(packed(&folder_of(&pieces)).unwrap(), ask).await;
    let outcome = succeeded(ran.unwrap());
    assert_eq!(stdout(&outcome), "70 True True\n");
    assert_eq!(files(&outcome), [("new.bin", 1 << 20)]);
}

/// Large files are links, and a copy takes the permissions along.
#[tokio::test]
async fn copy_of_large_file_is_writable() {
    let Some(world) = World::on(super::BACKEND).await else {
        return;
    };
    let script = "import shutil
for name in ('a', 'b'):
    shutil.copy(f'assets/{name}.bin', f'{name}.bin')
    with open(f'{name}.bin', 'r+b') as file:
        file.write(b'changed')
try:
    open('/skills/where.it-stands/assets/a.bin', 'r+b')
except OSError:
    print('refused')
";
    let large = "x".repeat(300 << 10);
    let pieces = [
        Plain("run.py", script),
        Plain("assets/a.bin", &large),
        Executable("assets/b.bin", &large),
    ];
    let outcome = run(&world, &pieces, &["run.py"]).await;
    assert_eq!(stdout(&outcome), "refused\n");
    assert_eq!(files(&outcome), [("a.bin", 300 << 10), ("b.bin", 300 << 10)]);
}

/// `cp -r` and `mv` take a link along as it is.
#[tokio::test]
async fn returns_moved_or_copied_large_file_as_file() {
    let Some(world) = World::on(super::BACKEND).await else {
        return;
    };
    let script = "import os, shutil, subprocess
subprocess.run(['cp', '-r', 'assets', 'project'], check=True)
shutil.move('assets/a.bin', 'moved.bin')
shutil.move('assets/b.bin', os.environ['SANDBOX_FILES_DIR'])
";
    let large = "x".repeat(300 << 10);
    let pieces = [
        Plain("run.py", script),
        Plain("assets/a.bin", &large),
        Plain("assets/b.bin", &large),
    ];
    let outcome = run(&world, &pieces, &["run.py"]).await;
    let paths = ["b.bin", "moved.bin", "project/a.bin", "project/b.bin"];
    assert_eq!(files(&outcome), paths.map(|path| (path, 300 << 10)));
}

/// O-01. Of links only those are followed that lead to a file of a skill by its plain path.
#[tokio::test]
async fn follows_no_other_links() {
    let Some(world) = World::on(super::BACKEND).await else {
        return;
    };
    let script = "import os
skill = '/skills/where.it-stands'
for index, target in enumerate(['/etc/passwd', '/skills/../etc/passwd', f'{skill}/../../etc/passwd', f'{skill}/assets',
                                f'{skill}//run.py', f'{skill}/./run.py', '/proc/1/environ', '/skills', f'{skill}/none', 'in.csv']):
    os.symlink(target, f'link{index}')
os.symlink(f'{skill}/assets', 'folder')
os.symlink('/workspace/folder/a.txt', 'through')
";
    let pieces = [Plain("run.py", script), Plain("assets/a.txt", "")];
    let outcome = run(&world, &pieces, &["run.py"]).await;
    assert_eq!((outcome.files.len(), outcome.skipped_total), (0, 12));
}

/// Packages lie at the skill's root, in `src`, and are the skill itself.
#[tokio::test]
async fn runs_package_from_any_folder_of_skill() {
    let Some(world) = World::on(super::BACKEND).await else {
        return;
    };
    let pieces = [
        Plain("__init__.py", "HERE = 'skill'\n"),
        Plain(
            "main.py",
            "import sys\nfrom .rows import rows\nfrom . import HERE\nprint(rows('in.csv'), __name__, HERE, sys.argv[1:])\n",
        ),
        Plain("rows.py", ROWS),
        Plain(
            "scripts/up.py",
            "from ..rows import rows\nprint(rows('in.csv'))\n",
        ),
        Plain("tool/__init__.py", ""),
        Plain(
            "tool/__main__.py",
            "import sys\nfrom tool.more import rows\nprint(rows('in.csv'), __name__, __package__, sys.argv[1:])\n",
        ),
        Plain("tool/more.py", ROWS),
        Plain("src/counter/__init__.py", ""),
        Plain(
            "src/counter/cli.py",
            "from counter.more import rows\nprint(rows('in.csv'))\n",
        ),
        Plain(
            "src/counter/relative.py",
            "from counter import more\nfrom .more import rows\nprint(rows('in.csv'), more.rows is rows)\n",
        ),
        Plain("src/counter/more.py", ROWS),
        Plain(
            "scripts/uses.py",
            "from counter.more import rows\nprint(rows('in.csv'))\n",
        ),
    ];
    for (script, expected) in [
        ("main.py", "2 __main__ skill ['a', 'b']\n"),
        ("scripts/up.py", "2\n"),
        ("tool", "2 __main__ tool ['a', 'b']\n"),
        ("./tool/__main__.py", "2 __main__ tool ['a', 'b']\n"),
        ("src/counter/cli.py", "2\n"),
        ("src/counter/relative.py", "2 True\n"),
        ("scripts/uses.py", "2\n"),
    ] {
        assert_eq!(
            stdout(&run(&world, &pieces, &[script, "a", "b"]).await),
            expected,
            "{script}"
        );
    }
    // Without an `__init__.py` the folder is a package all the same.
    assert_eq!(
        stdout(
            &run(
                &world,
                &[
                    Plain("main.py", "from .rows import rows\nprint(rows('in.csv'))\n"),
                    Plain("rows.py", ROWS)
                ],
                &["main.py"]
            )
            .await
        ),
        "2\n"
    );
}

const ROWS: &str = "def rows(path):\n    return len(open(path).read().splitlines()) - 1\n";

/// Where an answer is in the response.
#[tokio::test]
async fn failure_names_stream_with_output() {
    let Some(world) = World::on(super::BACKEND).await else {
        return;
    };
    for (script, part) in [
        ("echo why; exit 3\n", "see its stdout"),
        ("echo why >&2; exit 3\n", "see its stderr"),
        ("exit 3\n", "stdout and stderr are empty"),
    ] {
        let ask = RunSpec {
            script: Some("run.sh".to_owned()),
            ..RunSpec::default()
        };
        let archive = packed(&folder_of(&[SKILL_MD, Plain("run.sh", script)])).unwrap();
        let failure = world
            .run_archive(archive, ask)
            .await
            .unwrap()
            .outcome
            .unwrap()
            .error
            .unwrap();
        assert_eq!(failure.message, format!("the program exited with code 3; {part}"));
    }
}

/// A renderer without its configuration complains on standard error at each start.
#[tokio::test]
async fn uses_font_configuration_of_system() {
    let Some(world) = World::on(super::BACKEND).await else {
        return;
    };
    let script = "test -e /etc/fonts/fonts.conf && cat /etc/fonts/conf.d/*.conf | head -c 5; exit 0\n";
    let said = stdout(&run(&world, &[Plain("run.sh", script)], &["run.sh"]).await);
    let expected =
        super::BACKEND == Backend::Native && std::path::Path::new("/etc/fonts/fonts.conf").exists();
    assert_eq!(said, if expected { "<?xml" } else { "" });
}
