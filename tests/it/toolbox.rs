//! Skills as they are published for other products: many scripts, each called by its path.

use std::collections::BTreeMap;

use skillbox::engine::RunSpec;
use skillbox::error::Error;
use skillbox::execution::{Execution, Outcome, Workdir};
use skillbox::sandbox::InputFile;

use crate::outcomes::{stdout, succeeded};
use crate::world::{World, zip_of};

const SKILL_MD: &str = "---\nname: table-tools\ndescription: Works on tables.\nlicense: MIT\n---\n# Tables\n";
const COUNT: &str = "#!/usr/bin/env python3
\"\"\"Counts the rows of a table.

Usage: count.py TABLE [-o FILE]
\"\"\"
import argparse, sys
from office.table import rows

parser = argparse.ArgumentParser()
parser.add_argument('table')
parser.add_argument('-o', dest='out')
args = parser.parse_args()
count = f'{len(rows(args.table))} rows\\n'
if args.out:
    open(args.out, 'w').write(open('templates/head.txt').read() + count)
else:
    print(count, end='')
";
const FILES: [(&str, &str); 7] = [
    ("SKILL.md", SKILL_MD),
    ("scripts/count.py", COUNT),
    ("scripts/office/__init__.py", ""),
    (
        "scripts/office/table.py",
        "def rows(path):\n    return open(path).read().splitlines()[1:]\n",
    ),
    (
        "scripts/upper",
        "#!/bin/bash\n# Writes its standard input in capitals.\ntr a-z A-Z\n",
    ),
    (
        "scripts/edit.mjs",
        "import fs from 'fs';\nfs.appendFileSync(process.argv[2], 'x\\n');\nfs.mkdirSync('.cache');\nfs.writeFileSync('.cache/own', '');\nfs.mkdirSync('new/deep', {recursive: true});\nfs.writeFileSync('new/deep/ü.txt', 'new');\n",
    ),
    ("templates/head.txt", "Report: "),
];

fn ask(script: &str, args: &[&str]) -> RunSpec {
    let file = |path: &str, text: &'static str| InputFile {
        path: path.to_owned(),
        content: text.as_bytes().into(),
    };
    RunSpec {
        script: Some(script.to_owned()),
        args: args.iter().map(|arg| (*arg).to_owned()).collect(),
        files: vec![file("a.csv", "n\n1\n2\n"), file("data/b.csv", "n\n")],
        workdir: Some(Workdir::Skill),
        ..RunSpec::default()
    }
}

async fn call(world: &World, ask: RunSpec) -> Result<Execution, Error> {
    world.run_archive(zip_of(&FILES), ask).await
}

async fn ended(world: &World, ask: RunSpec) -> Outcome {
    succeeded(call(world, ask).await.unwrap())
}

fn paths(outcome: &Outcome) -> Vec<&str> {
    outcome.files.iter().map(|file| file.path.as_str()).collect()
}

#[tokio::test]
async fn runs_script_with_documented_command_line() {
    let Some(world) = World::on(super::BACKEND).await else {
        return;
    };
    let printed = ended(&world, ask("scripts/count.py", &["a.csv"])).await;
    assert_eq!((stdout(&printed).as_str(), paths(&printed)), ("2 rows\n", vec![]));
    // Imports of its neighbours, files of the skill by their path there, a result beside the input.
    let written = ended(&world, ask("./scripts/count.py", &["a.csv", "-o", "report.txt"])).await;
    assert_eq!(paths(&written), ["report.txt"]);
    assert_eq!((written.skipped, written.skipped_total), (vec![], 0));
}

/// The sentence about it is not lost in what comes after, such as links that need room, too.
#[tokio::test]
async fn reports_file_that_fills_workspace_to_caller() {
    let Some(world) = World::on(super::BACKEND).await else {
        return;
    };
    let small = SKILL_MD.replace("license: MIT", "resources: { disk: 1MiB }");
    // Longer than a link that needs no room.
    let long = format!("resources/{}.txt", "x".repeat(200));
    let mut files = FILES.to_vec();
    files[0].1 = &small;
    files.push((&long, "text"));
    let mut ask = ask("scripts/count.py", &["a.csv"]);
    ask.files.push(InputFile {
        path: "large".to_owned(),
        content: vec![b'x'; 4 << 20].into(),
    });
    let execution = world.run_archive(zip_of(&files), ask).await.unwrap();
    let error = execution.outcome.unwrap().error.unwrap();
    assert_eq!(error.code, "start_failed", "{error:?}");
    assert!(error.message.contains("`large`"), "{error:?}");
}

#[tokio::test]
async fn returns_new_and_changed_files() {
    let Some(world) = World::on(super::BACKEND).await else {
        return;
    };
    let outcome = ended(&world, ask("scripts/edit.mjs", &["a.csv"])).await;
    let sizes: BTreeMap<_, _> = outcome
        .files
        .iter()
        .map(|file| (file.path.as_str(), file.size))
        .collect();
    assert_eq!(sizes, BTreeMap::from([("a.csv", 8), ("new/deep/ü.txt", 3)]));
}

const WALK: &str = "import os, pathlib
skill = pathlib.Path(__file__).resolve().parents[1]
assert (skill / 'assets/other.json').is_file() and (skill / 'SKILL.md').is_file()
found = [os.path.relpath(os.path.join(top, name)) for top, _, names in os.walk('.') for name in names]
print(' '.join(sorted(found)))
if os.path.exists('assets/sample.json'): print(open('assets/sample.json').read())
";

/// What the walking script prints, and what its working directory started with.
async fn walk(world: &World, sent: &[&str], args: &[&str], workdir: Option<Workdir>) -> (String, Workdir) {
    let files = [
        ("SKILL.md", SKILL_MD),
        ("scripts/walk.py", WALK),
        ("assets/sample.json", "skill's"),
        ("assets/other.json", "{}"),
        ("x/y.txt", ""),
    ];
    let sent = sent.iter().map(|path| InputFile {
        path: (*path).to_owned(),
        content: "request's".into(),
    });
    let ask = RunSpec {
        files: sent.collect(),
        workdir,
        ..ask("scripts/walk.py", args)
    };
    let execution = world.run_archive(zip_of(&files), ask).await.unwrap();
    let workdir = execution.new.workdir.unwrap();
    let outcome = succeeded(execution);
    assert_eq!(paths(&outcome), [""; 0]);
    (stdout(&outcome), workdir)
}

/// A script that walks its working directory finds what the caller sent, not the skill around it.
#[tokio::test]
async fn script_finds_files_of_request_and_named_files_of_skill() {
    let Some(world) = World::on(super::BACKEND).await else {
        return;
    };
    let named = "a.csv assets/sample.json\nskill's\n";
    let folder = "a.csv assets/other.json assets/sample.json\nskill's\n";
    for (sent, args, found) in [
        ("a.csv", &[][..], "a.csv\n"),
        ("a.csv", &["a.csv", "--in=assets/sample.json", "."], "a.csv\n"),
        ("a.csv", &["assets/sample.json"], named),
        ("a.csv", &["./assets/", "../x", "/etc"], folder),
        (
            "assets/sample.json",
            &["assets/sample.json"],
            "assets/sample.json\nrequest's\n",
        ),
        ("x", &["x/y.txt"], "x\n"),
    ] {
        let walked = walk(&world, &[sent], args, None).await;
        assert_eq!(walked, (found.to_owned(), Workdir::Request), "{sent} {args:?}");
    }
}

#[tokio::test]
async fn workdir_selects_files_in_working_directory() {
    let Some(world) = World::on(super::BACKEND).await else {
        return;
    };
    let whole = "assets/other.json assets/sample.json scripts/walk.py x/y.txt\nskill's\n";
    let (request, skill) = (Workdir::Request, Workdir::Skill);
    for (sent, asked, found, workdir) in [
        (&[][..], None, format!("SKILL.md {whole}"), skill),
        (&["a.csv"], Some(skill), format!("SKILL.md a.csv {whole}"), skill),
        (&["a.csv"], Some(request), "a.csv\n".to_owned(), request),
        (&[], Some(request), "\n".to_owned(), request),
    ] {
        let walked = walk(&world, sent, &[], asked).await;
        assert_eq!(walked, (found, workdir), "{sent:?} {asked:?}");
    }
}

#[tokio::test]
async fn creates_empty_folders_for_results() {
    let Some(world) = World::on(super::BACKEND).await else {
        return;
    };
    let program = "import os, sys
assert os.listdir(sys.argv[1]) == [] and os.path.isfile('SKILL.md')
open(sys.argv[1] + '/result.txt', 'w').write('x')
";
    let files = [("SKILL.md", SKILL_MD), ("scripts/save.py", program)];
    let folder = |path: &str, content: &'static str| InputFile {
        path: path.to_owned(),
        content: content.into(),
    };
    let spec = |sent: Vec<InputFile>| RunSpec {
        files: sent,
        workdir: None,
        ..ask("scripts/save.py", &["out/deep"])
    };
    let sent = vec![folder("out/deep/", ""), folder("empty/", "")];
    let execution = world.run_archive(zip_of(&files), spec(sent)).await.unwrap();
    assert_eq!(
        execution.new.workdir,
        Some(Workdir::Skill),
        "folders are nothing to work on"
    );
    assert_eq!(paths(&succeeded(execution)), ["out/deep/result.txt"]);
    for (sent, part) in [
        (vec![folder("out/", "x")], "is a folder"),
        (vec![folder("out/", ""), folder("out", "x")], "given twice"),
        (vec![folder("../", "")], "not a valid relative path"),
        (vec![folder("/", "")], "not a valid relative path"),
        (vec![folder("a//", "")], "not a valid relative path"),
        (
            vec![folder("a/b/", ""), folder("a", "x")],
            "cannot be a file and the folder",
        ),
    ] {
        let error = world
            .run_archive(zip_of(&files), spec(sent))
            .await
            .unwrap_err()
            .to_string();
        assert!(error.starts_with("files: ") && error.contains(part), "{error}");
    }
}

#[tokio::test]
async fn only_scripts_work_among_the_files_of_their_skill() {
    let Some(world) = World::on(super::BACKEND).await else {
        return;
    };
    let skill_md = SKILL_MD.replace("license: MIT", "entrypoint: scripts/walk.py");
    let files = [("SKILL.md", skill_md.as_str()), ("scripts/walk.py", "print()")];
    let program = RunSpec {
        workdir: Some(Workdir::Skill),
        ..RunSpec::default()
    };
    let error = world
        .run_archive(zip_of(&files), program.clone())
        .await
        .unwrap_err();
    assert!(
        error
            .to_string()
            .starts_with("workdir: `skill` is for a `script`"),
        "{error}"
    );
    let code = RunSpec {
        code: Some("1".to_owned()),
        ..program
    };
    let error = world.run_request(code).await.unwrap_err();
    assert!(error.to_string().starts_with("workdir: "), "{error}");
}

#[tokio::test]
async fn script_reads_only_sent_standard_input() {
    let Some(world) = World::on(super::BACKEND).await else {
        return;
    };
    let sent = RunSpec {
        stdin: Some("abc".into()),
        ..ask("scripts/upper", &[])
    };
    assert_eq!(stdout(&ended(&world, sent).await), "ABC");
    assert_eq!(stdout(&ended(&world, ask("scripts/upper", &[])).await), "");
}

#[tokio::test]
async fn rejects_invalid_script_path_before_start() {
    let Some(world) = World::on(super::BACKEND).await else {
        return;
    };
    for (script, part) in [
        ("scripts/none.py", "is not a file of the skill"),
        ("../x.py", "relative path"),
        ("/usr/bin/env", "relative path"),
        ("templates/head.txt", "neither its extension"),
        ("scripts", "is not a file"),
    ] {
        let error = call(&world, ask(script, &[])).await.unwrap_err().to_string();
        assert!(
            error.starts_with("script: ") && error.contains(part),
            "{script}: {error}"
        );
    }
    // What may be meant is named first.
    let error = call(&world, ask("office/Edit.js", &[]))
        .await
        .unwrap_err()
        .to_string();
    assert!(
        error
            .ends_with("; it has scripts/edit.mjs, scripts/count.py, scripts/office/table.py, scripts/upper"),
        "{error}"
    );
    // Without a word it is told what there is.
    let nothing = RunSpec {
        script: None,
        ..ask("", &[])
    };
    let error = call(&world, nothing).await.unwrap_err().to_string();
    assert!(error.contains("scripts/count.py, scripts/edit.mjs"), "{error}");
}
