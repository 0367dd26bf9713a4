//! Packages that programs ask for: installed once in a sandbox of their own, then mounted.

use skillbox::auth::Caller;
use skillbox::engine::{DependencySettings, Engine, RunRequest, RunSpec};
use skillbox::error::{Code, Error};
use skillbox::execution::{Execution, Outcome, Status};

use crate::index::OwnIndex;
use crate::outcomes::{output, succeeded};
use crate::world::{self, World, missing, unpublished, zip_of};

/// A skill whose program is in Python, with further files.
pub(super) fn python(program: &str, files: &[(&str, &str)]) -> std::fs::File {
    let skill_md = "---\nname: needs\ndescription: Needs packages\n---\n";
    let program =
        format!("import json, os\n{program}\njson.dump(seen, open(os.environ['SANDBOX_OUTPUT'], 'w'))\n");
    zip_of(&[&[("SKILL.md", skill_md), ("scripts/main.py", &program)], files].concat())
}

/// A skill whose program is an ES module, with a `package.json`.
pub(super) fn node(program: &str, package_json: &str) -> std::fs::File {
    let skill_md = "---\nname: needs\ndescription: Needs packages\nentrypoint: scripts/main.mjs\n---\n";
    let program = format!(
        "import fs from 'fs';\n{program}\nfs.writeFileSync(process.env.SANDBOX_OUTPUT, JSON.stringify(seen));\n"
    );
    zip_of(&[
        ("SKILL.md", skill_md),
        ("scripts/main.mjs", &program),
        ("package.json", package_json),
    ])
}

pub(super) async fn run(world: &World, archive: std::fs::File, ask: RunSpec) -> Result<Execution, Error> {
    world.run_archive(archive, ask).await
}

pub(super) async fn run_in(
    engine: &Engine,
    caller: &Caller,
    archive: std::fs::File,
    ask: RunSpec,
) -> Result<Execution, Error> {
    let archive = unpublished(archive);
    let request = RunRequest {
        archive,
        ..RunRequest::from(ask)
    };
    engine.runs().run(caller.tenant(), request).await
}

/// Runs what needs the Internet; `None` (and a word about it) where this machine has no package index.
pub(super) async fn ended(world: &World, archive: std::fs::File, ask: RunSpec) -> Option<Outcome> {
    let ended = run(world, archive, ask).await;
    if let Err(error) = &ended
        && error.to_string().contains("cannot be reached")
    {
        missing("packages", &error.to_string());
        return None;
    }
    Some(succeeded(ended.unwrap()))
}

/// A world whose packages come from this machine's index.
async fn world() -> Option<World> {
    World::with_packages(super::BACKEND, world::packages).await
}

/// A world whose packages come from an index of the test's own.
pub(super) async fn world_with_index() -> Option<(World, OwnIndex)> {
    world_with(|_, settings| settings).await
}

/// The same, with other settings.
pub(super) async fn world_with(
    change: impl FnOnce(&OwnIndex, DependencySettings) -> DependencySettings,
) -> Option<(World, OwnIndex)> {
    let folder = tempfile::tempdir().unwrap();
    let index = OwnIndex::open(folder.path());
    let settings = |data: &std::path::Path| change(&index, index.settings(data));
    let world = World::with_packages(super::BACKEND, settings).await?;
    if super::BACKEND == world::Backend::Docker && !index.offer_pip() {
        missing("packages", "there is no pip to be had for images without one");
        return None;
    }
    // The authority is read at each installation.
    drop(folder.keep());
    Some((world, index))
}

pub(super) fn asking(requirements: &[&str]) -> RunSpec {
    RunSpec {
        requirements: requirements.iter().map(|name| (*name).to_owned()).collect(),
        ..RunSpec::default()
    }
}

#[tokio::test]
async fn installs_and_imports_requirements_of_skill() {
    let Some(world) = world().await else { return };
    let program =
        "import six, rich, idna\nseen = [six.__file__, six.__cached__, idna.__version__, six.__version__]\n";
    let list = [
        ("requirements.txt", "# helpers\nrich\n-r more/base.txt\n"),
        ("more/base.txt", "six\n-c ../limits.txt\n--pre\n"),
        ("limits.txt", "six==1.16.0\nabsent-and-not-asked-for==1\n"),
    ];
    // Both the skill and the request ask for packages.
    let Some(outcome) = ended(&world, python(program, &list), asking(&["idna==3.10"])).await else {
        return;
    };
    let seen = output(&outcome);
    assert_eq!(
        (&seen[0], &seen[2], &seen[3]),
        (&"/sandbox/deps/six.py".into(), &"3.10".into(), &"1.16.0".into())
    );
    let cached = seen[1].as_str().unwrap();
    assert!(
        cached.starts_with("/sandbox/deps/__pycache__/six.cpython-"),
        "{cached}"
    );
}

#[tokio::test]
async fn es_module_and_script_import_packages_of_package_json() {
    let Some(world) = world().await else { return };
    let program = "import ms from 'ms';\nimport {createRequire} from 'module';\nconst seen = [ms('2 days'), createRequire('/')('ms/package.json').version, import.meta.resolve ? import.meta.resolve('ms') : ''];";
    let package_json = r#"{"type": "module", "scripts": {"postinstall": "touch /sandbox/out/files/evil"}, "dependencies": {"ms": "2.1.3"}}"#;
    let Some(outcome) = ended(&world, node(program, package_json), RunSpec::default()).await else {
        return;
    };
    let seen = output(&outcome);
    assert_eq!((&seen[0], &seen[1]), (&172_800_000.into(), &"2.1.3".into()));
}

/// Z-27: a second run needs no index, nor does another server that shares what is kept.
#[tokio::test]
async fn uses_installed_packages_without_index() {
    let Some((world, index)) = world_with_index().await else {
        return;
    };
    index.wheel("alpha", &[("alpha.py", "x = 1\n")]);
    let program = || python("import alpha\nseen = alpha.x", &[("requirements.txt", "alpha\n")]);
    assert_eq!(
        output(&ended(&world, program(), RunSpec::default()).await.unwrap()),
        1
    );
    let settings = |data: &std::path::Path| index.settings(data);
    let other_server = {
        let (data, elsewhere) = (world.folder.path(), world.folder.path().join("elsewhere"));
        let instance = world::instance_in(data);
        let sandbox = world::sandbox_on(super::BACKEND, &instance).await.unwrap();
        world::engine_with_packages(settings(&elsewhere), data, instance, sandbox).await
    };
    drop(index);
    assert_eq!(
        output(&ended(&world, program(), RunSpec::default()).await.unwrap()),
        1
    );
    let outcome = run_in(&other_server, &world.admin, program(), RunSpec::default()).await;
    assert_eq!(output(&outcome.unwrap().outcome.unwrap()), 1);

    // Packages that are not installed cannot be installed, which is reported before a record exists.
    let error = run(&world, program(), asking(&["beta"])).await.unwrap_err();
    let text = error.to_string();
    assert_eq!(error.code(), Code::DependenciesFailed);
    assert!(
        text.contains("cannot be reached") && text.contains("skillbox deps prefetch"),
        "{text}"
    );
    let page = skillbox::engine::PageRequest {
        after: None,
        rows: 10,
    };
    let recorded = world
        .executions()
        .list(world.tenant(), Default::default(), page)
        .await;
    assert_eq!(recorded.unwrap().items.len(), 3);
}

#[tokio::test]
async fn concurrent_runs_install_packages_once() {
    let Some((world, index)) = world_with_index().await else {
        return;
    };
    index.wheel("alpha", &[("alpha.py", "x = 1\n")]);
    let program = || python("import alpha\nseen = alpha.x", &[("requirements.txt", "alpha\n")]);
    let runs = (0..4).map(|_| run(&world, program(), RunSpec::default()));
    for ended in futures::future::join_all(runs).await {
        assert_eq!(ended.unwrap().status, Status::Success);
    }
    assert_eq!(index.fetched("alpha-1.0-py3-none-any.whl"), 1);
    // The same in other words is the same.
    let other = python(
        "import alpha\nseen = alpha.x",
        &[("scripts/requirements.txt", "Alpha # x\n")],
    );
    assert_eq!(
        run(&world, other, RunSpec::default()).await.unwrap().status,
        Status::Success
    );
    assert_eq!(index.fetched("alpha-1.0-py3-none-any.whl"), 1);
}

/// Z-27: hostile packages, and lists that lead elsewhere.
#[tokio::test]
async fn installs_only_wheels_of_index_inside_package_folder() {
    let Some((world, index)) = world_with_index().await else {
        return;
    };
    index.wheel("climbs", &[("../../../evil.py", "x"), ("climbs.py", "")]);
    index.offer("source", "source-1.0.tar.gz", b"whatever".to_vec());
    index.wheel("moved", &[("moved.py", "")]);
    index.redirect(
        "/files/moved-1.0-py3-none-any.whl",
        "https://localhost:1/moved-1.0-py3-none-any.whl",
    );
    for (asked, part) in [
        ("climbs", "trying to install outside"),
        ("source", "no package `source` with wheels in the index"),
        ("moved", "is not a host of the configured package indexes"),
        ("absent", "No matching distribution"),
    ] {
        let program = python("seen = 1", &[("requirements.txt", asked)]);
        let error = run(&world, program, RunSpec::default()).await.unwrap_err();
        let text = error.to_string();
        assert_eq!(error.code(), Code::DependenciesFailed, "{asked}: {text}");
        assert!(text.contains(part), "{asked}: {text}");
        assert!(!text.contains(world.folder.path().to_str().unwrap()), "{text}");
    }
    assert_eq!(index.fetched("source-1.0.tar.gz"), 0);
    for asked in [
        "--index-url https://evil.example",
        "-e git+ssh://evil.example/x",
        "file:///etc/passwd",
        "six ;--global-option=build",
    ] {
        let before = index.asked().len();
        let program = python("seen = 1", &[("requirements.txt", asked)]);
        let error = run(&world, program, RunSpec::default())
            .await
            .unwrap_err()
            .to_string();
        assert!(error.contains("requirements.txt:1: "), "{error}");
        assert_eq!(index.asked().len(), before);
    }
}

/// Nobody listens where a builder finds its way out, and no job but a builder has one.
#[tokio::test]
async fn program_without_packages_has_no_network() {
    let Some((world, index)) = world_with_index().await else {
        return;
    };
    index.wheel("alpha", &[("alpha.py", "x = 1\n")]);
    let program = "import socket\nseen = []\nfor port in (3128,):\n    with socket.socket() as s:\n        s.settimeout(2)\n        seen.append(s.connect_ex(('127.0.0.1', port)))\nimport errno\nseen.append(errno.ECONNREFUSED)";
    let list = [("requirements.txt", "alpha\n")];
    let seen = output(
        &ended(&world, python(program, &list), RunSpec::default())
            .await
            .unwrap(),
    );
    assert_eq!(seen[0], seen[1]);
}
