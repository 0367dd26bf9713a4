//! Scripts of skills in the shapes in which they are published, each run by its documented command line.

use skillbox::engine::RunSpec;
use skillbox::execution::{Outcome, Workdir};
use skillbox::sandbox::InputFile;

use crate::folders::{
    Piece::{self, Executable, Link, Plain},
    folder_of, packed,
};
use crate::outcomes::{stdout, succeeded};
use crate::world::World;

const SKILL_MD: Piece<'_> = Plain(
    "SKILL.md",
    "---\nname: shapes\ndescription: Has every shape.\n---\n",
);

/// A script with its arguments, as one would type it.
async fn run(world: &World, pieces: &[Piece<'_>], command: &[&str]) -> Outcome {
    let folder = folder_of(pieces);
    let file = |path: &str, text: &'static str| InputFile {
        path: path.to_owned(),
        content: text.as_bytes().into(),
    };
    let ask = RunSpec {
        script: Some(command[0].to_owned()),
        args: command[1..].iter().map(|arg| (*arg).to_owned()).collect(),
        files: vec![file("in.csv", "n\n1\n2\n")],
        workdir: Some(Workdir::Skill),
        ..RunSpec::default()
    };
    let ran = world.run_archive(packed(&folder).unwrap(), ask).await;
    succeeded(ran.unwrap_or_else(|refused| panic!("{command:?}: {refused}")))
}

/// What it prints, and the files it returns.
async fn told(world: &World, pieces: &[Piece<'_>], command: &[&str]) -> (String, Vec<String>) {
    let outcome = run(world, pieces, command).await;
    let mut files: Vec<_> = outcome.files.iter().map(|file| file.path.clone()).collect();
    files.sort();
    (stdout(&outcome), files)
}

fn printed(text: &str) -> (String, Vec<String>) {
    (text.to_owned(), Vec::new())
}

const TABLES: &str = "def rows(path):\n    return len(open(path).read().splitlines()) - 1\n";

/// `python -m scripts.count in.csv`, `python scripts/count.py in.csv`: one is written where the other works, too.
#[tokio::test]
async fn script_imports_sibling_modules() {
    let Some(world) = World::on(super::BACKEND).await else {
        return;
    };
    let count = "import sys\nprint(rows(sys.argv[1]), __name__)\n";
    for import in [
        "from tables import rows",
        "from scripts.tables import rows",
        "from .tables import rows",
        "from lib.more import rows",
        "try:\n    from .tables import rows\nexcept ImportError:\n    from tables import rows",
    ] {
        let script = format!("{import}\n{count}");
        let pieces = [
            SKILL_MD,
            Plain("scripts/count.py", &script),
            Plain("scripts/tables.py", TABLES),
            Plain("lib/more.py", TABLES),
        ];
        let said = told(&world, &pieces, &["scripts/count.py", "in.csv"]).await;
        assert_eq!(said, printed("2 __main__\n"), "{import}");
    }
    let package = [
        SKILL_MD,
        Plain(
            "counter/__main__.py",
            "from .tables import rows\nprint(rows('in.csv'))\n",
        ),
        Plain("counter/__init__.py", ""),
        Plain("counter/tables.py", TABLES),
    ];
    assert_eq!(
        told(&world, &package, &["counter/__main__.py"]).await,
        printed("2\n")
    );
}

/// The instructions say `python -m`, so what it imports late is found in its package.
#[tokio::test]
async fn runs_documented_module_as_module() {
    let Some(world) = World::on(super::BACKEND).await else {
        return;
    };
    let pieces = [
        Plain(
            "SKILL.md",
            "---\nname: m\ndescription: Counts.\n---\nRun `python -m scripts.count FILE`.\n",
        ),
        Executable(
            "scripts/count.py",
            "#!/usr/bin/env python3\nimport sys\ndef main():\n    from . import tables\n    print(tables.rows(sys.argv[1]))\nmain()\n",
        ),
        Plain("scripts/tables.py", TABLES),
    ];
    assert_eq!(
        told(&world, &pieces, &["scripts/count.py", "in.csv"]).await,
        printed("2\n")
    );
}

/// Executable or not, the script that is called is where its skill is and can write there.
#[tokio::test]
async fn script_reads_and_writes_in_its_own_folder() {
    let Some(world) = World::on(super::BACKEND).await else {
        return;
    };
    let script = "#!/usr/bin/env python3
import json, pathlib
root = pathlib.Path(__file__).resolve().parent.parent
state = json.loads((root / 'data' / 'state.json').read_text())
state['runs'] += 1
(root / 'data' / 'state.json').write_text(json.dumps(state))
(root / 'output').mkdir(exist_ok=True)
(root / 'output' / 'Bericht 世界.md').write_text(pathlib.Path('assets/head.md').read_text())
print(len((root / 'assets' / 'large file.bin').read_bytes()))
";
    let large = "x".repeat(5 << 20);
    // A disk without permissions marks everything as executable.
    let pieces = [
        SKILL_MD,
        Executable("scripts/Bericht erstellen.py", script),
        Executable("data/state.json", "{\"runs\": 0}"),
        Plain("assets/head.md", "# Bericht\n"),
        Executable("assets/large file.bin", &large),
    ];
    let files = ["data/state.json", "output/Bericht 世界.md"]
        .map(str::to_owned)
        .to_vec();
    let said = told(&world, &pieces, &["scripts/Bericht erstellen.py"]).await;
    assert_eq!(said, ("5242880\n".to_owned(), files));
}

#[tokio::test]
async fn script_calls_other_scripts() {
    let Some(world) = World::on(super::BACKEND).await else {
        return;
    };
    let shell = "#!/usr/bin/env bash
set -euo pipefail
SCRIPT_DIR=\"$(cd \"$(dirname \"${BASH_SOURCE[0]}\")\" && pwd)\"
source \"$SCRIPT_DIR/lib/words.sh\"
\"$SCRIPT_DIR/helper.sh\" one
./scripts/helper.sh two
bash scripts/helper.sh three
python3 \"$SCRIPT_DIR/child.py\" \"$1\"
scripts/child.py \"$1\"
python scripts/child.py \"$1\"
";
    let python = "import subprocess, sys, pathlib
here = pathlib.Path(__file__).parent
print(subprocess.run([sys.executable, str(here / 'child.py'), 'in.csv'], capture_output=True, text=True, check=True).stdout, end='')
print(subprocess.run(['bash', 'scripts/helper.sh', 'four'], capture_output=True, text=True, check=True).stdout, end='')
print(subprocess.run([str(here / 'helper.sh'), 'five'], capture_output=True, text=True, check=True).stdout, end='')
";
    let pieces = [
        SKILL_MD,
        Plain("scripts/all.sh", shell),
        Plain("scripts/all.py", python),
        Plain("scripts/lib/words.sh", "word() { echo \"word $1\"; }\n"),
        Executable("scripts/helper.sh", "#!/bin/sh\necho \"helped $1\"\n"),
        Executable(
            "scripts/child.py",
            "#!/usr/bin/env python3\nimport sys\nfrom tables import rows\nprint(rows(sys.argv[1]))\n",
        ),
        Plain("scripts/tables.py", TABLES),
    ];
    let said = told(&world, &pieces, &["scripts/all.sh", "in.csv"]).await;
    assert_eq!(said, printed("helped one\nhelped two\nhelped three\n2\n2\n2\n"));
    let said = told(&world, &pieces, &["scripts/all.py"]).await;
    assert_eq!(said, printed("2\nhelped four\nhelped five\n"));
}

#[tokio::test]
async fn node_script_finds_files_and_modules() {
    let Some(world) = World::on(super::BACKEND).await else {
        return;
    };
    let common = "#!/usr/bin/env node
const fs = require('fs'), path = require('path'), { execFileSync } = require('child_process');
const rows = require('./lib/rows'), dep = require('dep');
const head = fs.readFileSync(path.join(__dirname, '..', 'assets', 'head.md'), 'utf8').trim();
const child = execFileSync(process.execPath, [path.join(__dirname, 'child.mjs')], { encoding: 'utf8' });
fs.writeFileSync(path.join(__dirname, 'out.json'), '{}');
console.log(head, rows(process.argv[2]), dep, child.trim());
";
    let pieces = [
        SKILL_MD,
        Executable("scripts/render", common),
        Plain(
            "scripts/lib/rows.js",
            "module.exports = (p) => require('fs').readFileSync(p, 'utf8').trim().split('\\n').length - 1;\n",
        ),
        Plain(
            "scripts/child.mjs",
            "import { name } from './lib/name.mjs';\nconsole.log(name);\n",
        ),
        Plain(
            "scripts/lib/name.mjs",
            "export const name = new URL('.', import.meta.url).pathname.split('/').at(-2);\n",
        ),
        Plain("assets/head.md", "# Head\n"),
        Plain("node_modules/dep/index.js", "module.exports = 'dep';\n"),
        Plain("node_modules/dep/cli.js", "#!/usr/bin/env node\n"),
        Link("node_modules/.bin/dep", "../dep/cli.js"),
    ];
    let said = told(&world, &pieces, &["scripts/render", "in.csv"]).await;
    assert_eq!(
        said,
        (
            "# Head 2 dep lib\n".to_owned(),
            vec!["scripts/out.json".to_owned()]
        )
    );
}

/// Files that a script makes for its caller are returned, hidden or not; caches of programs are not.
#[tokio::test]
async fn returns_hidden_files_of_new_project() {
    let Some(world) = World::on(super::BACKEND).await else {
        return;
    };
    let script = "mkdir -p .github/workflows .cache/x app/.vscode\necho a > .github/workflows/ci.yml\necho b > .gitignore\n\
                  echo c > app/.vscode/settings.json\necho d > .cache/x/y\n";
    let (_, files) = told(
        &world,
        &[SKILL_MD, Plain("scripts/init.sh", script)],
        &["scripts/init.sh"],
    )
    .await;
    assert_eq!(
        files,
        [
            ".github/workflows/ci.yml",
            ".gitignore",
            "app/.vscode/settings.json"
        ]
    );
}

#[tokio::test]
async fn help_shows_script_name_and_decoded_text() {
    let Some(world) = World::on(super::BACKEND).await else {
        return;
    };
    let script = "\u{feff}# -*- coding: utf-8 -*-\r\nimport argparse\r\nparser = argparse.ArgumentParser()\r\n\
                  parser.add_argument('table', help='größe')\r\nparser.parse_args()\r\n";
    let pieces = [SKILL_MD, Plain("tools/deep/count.py", script)];
    let (said, _) = told(&world, &pieces, &["./tools/deep/count.py", "--help"]).await;
    assert!(
        said.starts_with("usage: count.py [-h] table") && said.contains("größe"),
        "{said}"
    );
}

/// What lies about in a working copy is no hindrance, and links inside are what they lead to.
#[tokio::test]
async fn runs_working_copy_unchanged() {
    let Some(world) = World::on(super::BACKEND).await else {
        return;
    };
    let pieces = [
        Plain(
            "skill.md",
            "---\nname: working-copy\ndescription: Lies about.\n---\n",
        ),
        Plain(".git/HEAD", "ref: refs/heads/main\n"),
        Link(".git/link", "/etc/passwd"),
        Plain("env/pyvenv.cfg", "home = /usr/bin\n"),
        Link("env/bin/python", "/usr/bin/python3"),
        Plain("AGENTS.md", "# Agents\n"),
        Link("CLAUDE.md", "AGENTS.md"),
        Plain("shared/words.txt", "words\n"),
        Link("scripts/shared", "../shared"),
        Link("scripts/up", ".."),
        Link("gone.md", "../gone.md"),
        Plain("sub/SKILL.md", "---\nname: sub\ndescription: x\n---\n"),
        Plain(
            "scripts/list.py",
            "import os\nprint(sorted(p for p in os.listdir('.')))\nprint(open('scripts/shared/words.txt').read(), end='')\n",
        ),
    ];
    let said = told(&world, &pieces, &["scripts/list.py"]).await;
    let names = "['AGENTS.md', 'CLAUDE.md', 'in.csv', 'scripts', 'shared', 'skill.md', 'sub']";
    assert_eq!(said, printed(&format!("{names}\nwords\n")));
}
