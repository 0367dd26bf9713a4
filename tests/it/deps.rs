//! Packages that programs ask for: installed once in a sandbox of their own, then mounted.

use skillbox::engine::{Ask, RunRequest, What};
use skillbox::error::Error;
use skillbox::execution::{Execution, Outcome, Status};

use crate::world::{World, missing, output, stderr, zip_of};

/// A program's skill with further files.
fn archive(program: &str, files: &[(&str, &str)]) -> std::fs::File {
    let skill_md = "---\nname: needs\ndescription: Needs packages\n---\n";
    let mut all = vec![("SKILL.md", skill_md), ("scripts/main.py", program)];
    if let Some(at) = files.iter().position(|(path, _)| *path == "scripts/main.mjs") {
        all = vec![(
            "SKILL.md",
            "---\nname: needs\ndescription: Needs packages\nentrypoint: scripts/main.mjs\n---\n",
        )];
        all.push(files[at]);
    }
    all.extend(files.iter().filter(|(path, _)| *path != "scripts/main.mjs"));
    zip_of(&all)
}

async fn run(world: &World, archive: std::fs::File, ask: Ask) -> Result<Execution, Error> {
    let what = What::Archive {
        archive,
        fallback_name: None,
    };
    let request = RunRequest {
        what,
        ask,
        progress: None,
    };
    world.engine.run(&world.admin, request).await
}

/// Runs what needs the Internet; `None` (and a word about it) where this machine has no package index.
async fn ended(world: &World, archive: std::fs::File, ask: Ask) -> Option<Outcome> {
    let ended = run(world, archive, ask).await;
    if let Err(error) = &ended
        && error.to_string().contains("cannot be reached")
    {
        missing("packages", &error.to_string());
        return None;
    }
    let outcome = ended.unwrap().outcome.unwrap();
    assert_eq!(
        outcome.status,
        Status::Success,
        "{:?} {}",
        outcome.error,
        stderr(&outcome)
    );
    Some(outcome)
}

const WRITES: &str = "import json, os\njson.dump(seen, open(os.environ['SANDBOX_OUTPUT'], 'w'))\n";

#[tokio::test]
async fn a_skills_list_is_installed_and_imported() {
    let Some(world) = World::on(super::BACKEND).await else {
        return;
    };
    let program = format!("import six\nseen = {{'at': six.__file__, 'cached': six.__cached__}}\n{WRITES}");
    let list = [("requirements.txt", "# helpers\nsix==1.17.0\n")];
    let Some(outcome) = ended(&world, archive(&program, &list), Ask::default()).await else {
        return;
    };
    let seen = output(&outcome);
    println!("{seen}");
    assert_eq!(seen["at"], "/sandbox/deps/six.py");
}
