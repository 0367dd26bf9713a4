//! Packages that are added to a published skill, beside its files.

use skillbox::engine::{DependencySettings, PushSource, RunSpec};
use skillbox::error::Code;
use skillbox::execution::Execution;
use skillbox::skill::{Language, Selector, SkillName};
use skillbox::store::SkillRecord;

use super::deps::{asking, python, world_with, world_with_index};
use crate::index::OwnIndex;
use crate::outcomes::{output, stdout, succeeded};
use crate::world::{World, zip_of};

async fn world() -> Option<(World, OwnIndex)> {
    let (world, index) = world_with_index().await?;
    index.wheel("alpha", &[("alpha.py", "x = 1\n")]);
    index.wheel("gamma", &[("gamma.py", "x = 3\n")]);
    Some((world, index))
}

fn needs() -> SkillName {
    "needs".parse().unwrap()
}

/// Publishes with these packages, or with those of the last version.
async fn push(world: &World, files: &[(&str, &str)], requirements: Option<&[&str]>) -> SkillRecord {
    let source = PushSource {
        tenant: world.tenant().clone(),
        folder: None,
        key: None,
        requirements: requirements.map(|all| all.iter().map(ToString::to_string).collect()),
    };
    let program = python("import alpha\nseen = alpha.x\n", files);
    world.skills().publish_from(source, program).await.unwrap().0
}

async fn run(world: &World, spec: RunSpec) -> Execution {
    world.run_latest("needs", spec).await.unwrap()
}

#[tokio::test]
async fn packages_beside_the_files_are_installed_and_carried_to_the_next_push() {
    let Some((world, _index)) = world().await else {
        return;
    };
    let first = push(&world, &[], None).await;
    let failed = run(&world, RunSpec::default()).await.outcome.unwrap();
    let message = failed.error.unwrap().message;
    assert!(
        message.contains("`skillbox skill requirements needs add alpha`"),
        "{message}"
    );

    let set = async |packages: &[&str]| {
        let packages: Vec<_> = packages.iter().map(ToString::to_string).collect();
        world
            .skills()
            .set_requirements(world.tenant(), &needs(), &Selector::Latest, &packages)
            .await
    };
    let changed = set(&["alpha", " alpha "]).await.unwrap();
    assert_eq!(
        (changed.digest, changed.requirements),
        (first.digest, vec!["alpha".to_owned()])
    );
    let ran = run(&world, asking(&["gamma"])).await;
    assert_eq!(
        ran.new.requirements,
        Some(vec!["alpha".to_owned(), "gamma".to_owned()])
    );
    assert_eq!(output(&succeeded(ran)), 1);

    let next = push(&world, &[("more.txt", "")], None).await;
    assert_eq!(next.requirements, ["alpha"]);
    assert_eq!(output(&succeeded(run(&world, RunSpec::default()).await)), 1);
    let replaced = push(&world, &[("more.txt", "")], Some(&["alpha", "gamma"])).await;
    assert_eq!(
        replaced.requirements,
        ["alpha", "gamma"],
        "the same content again"
    );
    let sets = world
        .engine
        .packages()
        .prefetch(world.tenant(), needs(), Selector::Latest, None);
    assert_eq!(sets.await.unwrap()[0].wanted, ["alpha", "gamma"]);

    for (wrong, place) in [
        ("-e .", "requirements[0]"),
        ("https://evil.example/x.whl", "requirements[0]"),
    ] {
        let error = set(&[wrong]).await.unwrap_err();
        assert!(
            error.code() == Code::Invalid && error.to_string().contains(place),
            "{error}"
        );
    }
    let stranger = "stranger".parse().unwrap();
    let error = world
        .skills()
        .set_requirements(&stranger, &needs(), &Selector::Latest, &[])
        .await
        .unwrap_err();
    assert_eq!(error.code(), Code::NotFound);
}

#[tokio::test]
async fn added_packages_serve_programs_that_mount_the_skill() {
    let Some((world, _index)) = world().await else {
        return;
    };
    push(&world, &[], Some(&["alpha"])).await;
    let code = RunSpec {
        language: Some(Language::Python),
        code: Some("import alpha\nprint(alpha.x)\n".to_owned()),
        mount_skills: vec!["needs".parse().unwrap()],
        ..RunSpec::default()
    };
    assert_eq!(stdout(&succeeded(world.run_request(code).await.unwrap())), "1\n");
}

/// A caller who may only run a skill cannot change what its secrets are given to; its owner can.
#[tokio::test]
async fn skill_with_secrets_gets_packages_of_its_owner_only() {
    let Some((world, _index)) = world().await else {
        return;
    };
    let skill_md = "---\nname: needs\ndescription: Needs packages\npermissions: { secrets: [TOKEN] }\n---\n";
    let program = "import alpha\nprint(alpha.x)\n";
    let files = [("SKILL.md", skill_md), ("scripts/main.py", program)];
    world
        .skills()
        .publish(world.tenant(), zip_of(&files), None)
        .await
        .unwrap();
    let error = world.run_latest("needs", asking(&["alpha"])).await.unwrap_err();
    assert!(
        error.to_string().starts_with("requirements: not allowed"),
        "{error}"
    );
    world
        .skills()
        .set_requirements(world.tenant(), &needs(), &Selector::Latest, &["alpha".to_owned()])
        .await
        .unwrap();
    let value = skillbox::secret::SecretValue::new("hidden".to_owned()).unwrap();
    let secrets = world.engine.secrets();
    secrets
        .set(world.tenant(), &"TOKEN".parse().unwrap(), &value)
        .await
        .unwrap();
    assert_eq!(stdout(&succeeded(run(&world, RunSpec::default()).await)), "1\n");
}

#[tokio::test]
async fn server_may_install_packages_of_published_skills_only() {
    let forbid = |_: &OwnIndex, settings| DependencySettings {
        requests: false,
        ..settings
    };
    let Some((world, index)) = world_with(forbid).await else {
        return;
    };
    index.wheel("alpha", &[("alpha.py", "x = 1\n")]);
    push(&world, &[], Some(&["alpha"])).await;
    assert_eq!(output(&succeeded(run(&world, RunSpec::default()).await)), 1);
    let header = "# /// script\n# dependencies = ['alpha']\n# ///\nimport alpha\n";
    let code = RunSpec {
        language: Some(Language::Python),
        code: Some(header.to_owned()),
        ..RunSpec::default()
    };
    let archive = python("seen = 1", &[("requirements.txt", "alpha\n")]);
    let errors = [
        world.run_latest("needs", asking(&["alpha"])).await,
        world.run_request(code).await,
        world.run_archive(archive, RunSpec::default()).await,
    ];
    for error in errors {
        let error = error.unwrap_err();
        assert_eq!(error.code(), Code::Forbidden, "{error}");
        assert!(error.to_string().contains("deps.requests"), "{error}");
    }
}
