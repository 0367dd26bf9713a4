//! Programs that packages bring: found by name, and never waiting for a network.

use skillbox::engine::RunSpec;
use skillbox::execution::Outcome;

use crate::index::OwnIndex;
use crate::outcomes::{stdout, succeeded};
use crate::world::{self, World, missing, zip_of};

const SKILL_MD: (&str, &str) = ("SKILL.md", "---\nname: needs\ndescription: Needs programs\n---\n");

async fn run(world: &World, files: &[(&str, &str)], script: &str) -> Option<Outcome> {
    let ask = RunSpec {
        script: Some(script.to_owned()),
        ..RunSpec::default()
    };
    let archive = zip_of(&[&[SKILL_MD], files].concat());
    match world.run_archive(archive, ask).await {
        Err(error) if error.to_string().contains("cannot be reached") => {
            missing("packages", &error.to_string());
            None
        }
        ended => Some(succeeded(ended.unwrap())),
    }
}

#[tokio::test]
async fn finds_console_script_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let index = OwnIndex::open(folder.path());
    let Some(world) = World::with_packages(super::BACKEND, |data| index.settings(data)).await else {
        return;
    };
    if super::BACKEND == world::Backend::Docker && !index.offer_pip() {
        missing("packages", "there is no pip to be had for images without one");
        return;
    }
    let entry_points = "[console_scripts]\ncount-it = alpha:main\npython3 = alpha:main\n";
    index.wheel(
        "alpha",
        &[
            (
                "alpha.py",
                "import sys\ndef main():\n    print('counted', *sys.argv[1:])\n",
            ),
            ("alpha-1.0.dist-info/entry_points.txt", entry_points),
        ],
    );
    // No program of the system is replaced.
    let script = "import shutil, subprocess\nsubprocess.run(['count-it', 'a b'], check=True)\n\
                  subprocess.run(['python3', '-c', 'print(1)'], check=True)\n";
    let files = [("scripts/run.py", script), ("requirements.txt", "alpha\n")];
    let outcome = run(&world, &files, "scripts/run.py").await.unwrap();
    assert_eq!(stdout(&outcome), "counted a b\n1\n");
}

#[tokio::test]
async fn finds_npm_programs_and_npm_fails_fast_without_network() {
    let Some(world) = World::with_packages(super::BACKEND, world::packages).await else {
        return;
    };
    let script = "const { execFileSync, spawnSync } = require('child_process');
const run = (...words) => execFileSync(words[0], words.slice(1), { encoding: 'utf8' }).trim();
const has = spawnSync('npx', ['--version']).status === 0;
const begun = Date.now();
const refused = has ? spawnSync('npx', ['--yes', 'no-such-package-here'], { timeout: 60000 }).status : 1;
console.log(run('semver', '1.2.3'), has ? run('npx', 'semver', '2.0.0') : '2.0.0', refused !== 0 && refused !== null, Date.now() - begun < 60000);
";
    let files = [
        ("scripts/run.js", script),
        ("package.json", r#"{"dependencies": {"semver": "7.6.3"}}"#),
    ];
    let Some(outcome) = run(&world, &files, "scripts/run.js").await else {
        return;
    };
    assert_eq!(stdout(&outcome), "1.2.3 2.0.0 true true\n");
}
