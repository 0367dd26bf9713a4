//! A request cannot make a program that is given secrets execute anything but its skill.

use skillbox::engine::RunSpec;
use skillbox::error::{Code, Error};
use skillbox::execution::{Execution, Status};
use skillbox::sandbox::InputFile;
use skillbox::secret::SecretValue;

use crate::outcomes::{stderr, stdout};
use crate::world::{World, zip_of};

const WITH: &str =
    "---\nname: trusted\ndescription: Holds a token.\npermissions: {secrets: [API_TOKEN]}\n---\n";
const WITHOUT: &str = "---\nname: trusted\ndescription: Holds nothing.\n---\n";
/// Says where its neighbours and its data come from, and whether anything of a request was executed.
const SCRIPT: &str = "import os, sys
from scripts.near import NEAR
import near
hooked = [name for name in ('sitecustomize', 'usercustomize') if hasattr(sys.modules.get(name), 'HOOKED')]
print(NEAR, near.NEAR, open('data.csv').read(), '/sandbox/skills/public/trusted' in sys.path, hooked)
";
/// What replaces it says.
const EVIL: &str = "import os; print('evil', os.environ.get('API_TOKEN'))";
const HOOK: &str = "HOOKED = True\n";

async fn call(world: &World, skill_md: &str, files: &[(&str, &str)]) -> Result<Execution, Error> {
    ask(
        world,
        skill_md,
        RunSpec {
            files: [("data.csv", "1")]
                .iter()
                .chain(files)
                .map(|(path, text)| file(path, text))
                .collect(),
            ..RunSpec::default()
        },
    )
    .await
}

async fn ask(world: &World, skill_md: &str, ask: RunSpec) -> Result<Execution, Error> {
    let archive = zip_of(&[
        ("SKILL.md", skill_md),
        ("scripts/x.py", SCRIPT),
        ("scripts/near.py", "NEAR = 'near'\n"),
    ]);
    let script = Some("scripts/x.py".to_owned());
    world.run_archive(archive, RunSpec { script, ..ask }).await
}

fn file(path: &str, text: &str) -> InputFile {
    InputFile {
        path: path.to_owned(),
        content: text.to_owned().into(),
    }
}

async fn world() -> Option<World> {
    let world = World::on(super::BACKEND).await?;
    let token = SecretValue::new("a-token-of-the-operator".to_owned()).unwrap();
    let name = "API_TOKEN".parse().unwrap();
    world.secrets().set(world.tenant(), &name, &token).await.unwrap();
    Some(world)
}

/// Where each Python searches the modules of the user whose home is `/workspace`.
fn user_sites() -> Vec<String> {
    (8..20)
        .map(|minor| format!(".local/lib/python3.{minor}/site-packages/usercustomize.py"))
        .collect()
}

#[tokio::test]
async fn request_to_program_with_secrets_contains_only_data() {
    let Some(world) = world().await else {
        return;
    };
    for (path, part) in [
        ("scripts/x.py", "may be executed"),
        ("sitecustomize.py", "may be executed"),
        ("near.py", "may be executed"),
        (user_sites()[0].as_str(), "may be executed"),
        ("scripts/near", "may be executed"),
        ("node_modules/x/index.json", "may be executed"),
        ("SKILL.md", "replace a file of the skill"),
        ("scripts/x.py/data.csv", "replace a file of the skill"),
    ] {
        let refused = call(&world, WITH, &[(path, EVIL)]).await.unwrap_err();
        let text = refused.to_string();
        assert_eq!(refused.code(), Code::Invalid, "{path}");
        assert!(text.contains(path) && text.contains(part), "{path}: {text}");
    }
    let packages = RunSpec {
        requirements: vec!["six".to_owned()],
        ..RunSpec::default()
    };
    let refused = ask(&world, WITH, packages).await.unwrap_err();
    assert_eq!(refused.code(), Code::Invalid);
    assert!(refused.to_string().starts_with("requirements: "), "{refused}");
    assert!(world.has_recorded_nothing().await);

    let outcome = call(&world, WITH, &[("more/b.csv", "2")])
        .await
        .unwrap()
        .outcome
        .unwrap();
    assert_eq!(stdout(&outcome), "near near 1 False []\n", "{}", stderr(&outcome));
}

/// S-37: and where there are no secrets, all is as it was, but that nothing runs before the program's first line by its home.
#[tokio::test]
async fn without_secrets_request_files_override_and_home_hooks_do_not_run() {
    let Some(world) = world().await else {
        return;
    };
    let sites = user_sites();
    let hooks: Vec<_> = sites.iter().map(|path| (path.as_str(), HOOK)).collect();
    let outcome = call(&world, WITHOUT, &hooks).await.unwrap().outcome.unwrap();
    assert_eq!(stdout(&outcome), "near near 1 True []\n", "{}", stderr(&outcome));
    let outcome = call(&world, WITHOUT, &[("scripts/x.py", EVIL)])
        .await
        .unwrap()
        .outcome
        .unwrap();
    assert_eq!(
        (outcome.status, stdout(&outcome).as_str()),
        (Status::Success, "evil None\n")
    );
}
