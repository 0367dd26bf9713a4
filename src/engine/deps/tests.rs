//! Package lists are read once, sets are unpacked under a limit and fetched once; over a scripted sandbox.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::*;
use crate::bundle::artifacts::ArtifactTar;
use crate::engine::Engine;
use crate::engine::{RunSpec, code};
use crate::ids::Tenant;
use crate::limits;
use crate::sandbox::{Sandbox, SkillFiles};
use crate::skill::Requirements;

async fn engine(folder: &Path) -> Engine {
    let sandbox = Sandbox::scripted(|_, _| unreachable!("what is kept is not installed"));
    crate::engine::tests::engine(folder, sandbox).await
}

fn plan(engine: &Engine) -> PlannedRun {
    let spec = RunSpec::default();
    let tenant = Tenant::default_tenant();
    code::plan(&tenant, String::new(), &spec, &engine.settings).unwrap()
}

fn six() -> (PackageSetKey, RequestedPackages) {
    let mut all = Requirements::default();
    all.add_all(&["six".to_owned()], |_| "here".to_owned()).unwrap();
    let wanted = RequestedPackages::Python(all);
    let name = PackageSetKey {
        tenant: Tenant::default_tenant(),
        key: wanted.key("scripted"),
    };
    (name, wanted)
}

fn tar(folder: &Path) -> File {
    let mut tar = ArtifactTar::create_in(folder);
    tar.start("six.py", 1).unwrap();
    tar.write(b"\n").unwrap();
    tar.end().unwrap();
    tar.finish().unwrap().0
}

/// The number of sets that are unpacked at the same time is limited.
#[tokio::test]
async fn limits_concurrent_unpacking() {
    let folder = tempfile::tempdir().unwrap();
    let engine = engine(folder.path()).await;
    let mut permits = Vec::new();
    for _ in 0..limits::UNPACKING_MAX {
        permits.push(engine.packages.unpack_permit().await);
    }
    let (name, wanted) = six();
    let keeping = engine.packages().store_set(&name, &wanted, tar(folder.path()));
    tokio::pin!(keeping);
    let waited = tokio::time::timeout(Duration::from_millis(300), &mut keeping).await;
    assert!(waited.is_err(), "it was unpacked without a turn");
    permits.pop();
    assert_eq!(keeping.await.unwrap().0.files, 1);
}

#[tokio::test]
async fn concurrent_misses_fetch_a_set_once() {
    let folder = tempfile::tempdir().unwrap();
    let engine = engine(folder.path()).await;
    let (name, wanted) = six();
    let (_, here) = engine
        .packages()
        .store_set(&name, &wanted, tar(folder.path()))
        .await
        .unwrap();
    std::fs::remove_dir_all(&here).unwrap();
    let mut permits = Vec::new();
    for _ in 0..limits::UNPACKING_MAX {
        permits.push(engine.packages.unpack_permit().await);
    }
    let plan = plan(&engine);
    let choice = engine.runs().prepare(&plan.job, None).await.unwrap();
    let gone = CancellationToken::new();
    let waiting = InstallWaiter {
        progress: None,
        gone: &gone,
    };
    let installation = Installation {
        plan: &plan,
        choice: &choice,
        waiting,
    };
    let both = async {
        let one = || engine.packages().ensure_installed(installation, &wanted, &name);
        tokio::join!(one(), one())
    };
    tokio::pin!(both);
    let waited = tokio::time::timeout(Duration::from_millis(300), &mut both).await;
    assert!(waited.is_err());
    // Theirs, ours and that of the map: both stand before the same door.
    assert_eq!(Arc::strong_count(&engine.builds.lock(&name)), 4);
    drop(permits);
    let (one, other) = both.await;
    let folders: Vec<_> = [one, other].map(|found| found.unwrap().unwrap().folder).into();
    assert_eq!(folders, [here.clone(), here]);
}

/// A skill's files never change; those of another skill are others.
#[tokio::test]
async fn caches_the_packages_of_a_skill() {
    let folder = tempfile::tempdir().unwrap();
    let engine = engine(folder.path()).await;
    let list = folder.path().join("requirements.txt");
    std::fs::write(&list, "six\n").unwrap();
    let mounting = |content: &[u8]| {
        let mut plan = plan(&engine);
        plan.job.sandbox.mounted.push(SkillFiles {
            name: "tools".parse().unwrap(),
            digest: Digest::of(content),
            folder: folder.path().to_owned(),
        });
        plan
    };
    let names = async |plan: &PlannedRun, requirements: &[String]| {
        let found = requested::wanted(plan, requirements, &engine.builds.known_requests).await;
        let found = found.unwrap().into_iter();
        found
            .flat_map(|(_, wanted)| wanted.unwrap().names())
            .collect::<Vec<_>>()
    };
    let one = mounting(b"one");
    assert_eq!(names(&one, &[]).await, ["six"]);
    std::fs::remove_file(&list).unwrap();
    assert_eq!(names(&one, &[]).await, ["six"]);
    assert_eq!(names(&mounting(b"other"), &[]).await, [""; 0]);
    assert_eq!(names(&one, &["rich".to_owned()]).await, ["rich"]);
    let mut with_header = mounting(b"one");
    with_header.job.program.code = Some("# /// script\n# dependencies = ['idna']\n# ///\n".to_owned());
    assert_eq!(names(&with_header, &[]).await, ["idna"]);
}
