//! What is kept of an installation, for whom and how long: nothing hostile, nothing half, no more than may be.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use skillbox::auth::{Caller, Scope, Scopes};
use skillbox::egress::{NamedBy, Upstream};
use skillbox::engine::{DependencySettings, Index, NewKey, PageRequest, RunSpec};
use skillbox::error::Code;
use skillbox::execution::Status;
use skillbox::store::PackageSet;

use super::deps::{ended, node, python, run, run_in, world_with, world_with_index};
use crate::index::{ELSEWHERE, OwnIndex};
use crate::outcomes::output;
use crate::world::{Backend, World, missing, zip_of};

const ALPHA: &str = "import alpha\nseen = alpha.x";
const WHEEL: &str = "alpha-1.0-py3-none-any.whl";

async fn world_with_npm() -> Option<(World, OwnIndex)> {
    let (world, index) = world_with_index().await?;
    if super::BACKEND == Backend::Docker && !index.offer_npm() {
        missing("packages", "there is no npm to be had for images without one");
        return None;
    }
    Some((world, index))
}

fn asks_for(program: &str, package: &str) -> std::fs::File {
    python(program, &[("requirements.txt", package)])
}

async fn sets(world: &World, caller: &Caller) -> Vec<PackageSet> {
    let page = PageRequest {
        after: None,
        rows: 10,
    };
    world.packages().list(caller.tenant(), page).await.unwrap().items
}

/// Z-27: a link is what it says, as text, or nothing at all.
#[tokio::test]
async fn links_in_packages_do_not_leave_package_folder() {
    let Some((world, index)) = world_with_npm().await else {
        return;
    };
    let links = [("linked/passwd", "/etc/passwd"), ("linked/up", "../../../..")];
    index.wheel_with_links("linked", &[("linked/__init__.py", "")], &links);
    let program = "import linked\nseen = [p for p in ('passwd', 'up') if os.path.islink('/sandbox/deps/linked/' + p) or os.path.isdir('/sandbox/deps/linked/' + p) or (os.path.exists('/sandbox/deps/linked/' + p) and 'root:' in open('/sandbox/deps/linked/' + p).read())]";
    let outcome = ended(&world, asks_for(program, "linked"), RunSpec::default())
        .await
        .unwrap();
    assert_eq!(output(&outcome), serde_json::json!([]));

    let links = [("passwd", "/etc/passwd"), ("up", "../../../..")];
    index.node_package_with_links("linked", "1.0.0", &[("index.js", "")], &links);
    let program = "import 'linked';\nconst seen = ['passwd', 'up'].filter((name) => fs.existsSync('/node_modules/linked/' + name));";
    let archive = node(program, r#"{"dependencies": {"linked": "1"}}"#);
    let outcome = ended(&world, archive, RunSpec::default()).await.unwrap();
    assert_eq!(output(&outcome), serde_json::json!([]));
}

/// Z-27.
#[tokio::test]
async fn does_not_run_npm_scripts() {
    let Some((world, index)) = world_with_npm().await else {
        return;
    };
    let about = r#"{"name": "hooked", "version": "1.0.0", "main": "index.js", "scripts": {"preinstall": "touch ran", "install": "touch ran", "postinstall": "touch ran; exit 1"}}"#;
    index.node_package("hooked", "1.0.0", &[("package.json", about), ("index.js", "")]);
    let program = "import 'hooked';\nconst seen = fs.readdirSync('/node_modules/hooked').sort();";
    let archive = node(program, r#"{"dependencies": {"hooked": "1"}}"#);
    let outcome = ended(&world, archive, RunSpec::default()).await.unwrap();
    assert_eq!(output(&outcome), serde_json::json!(["index.js", "package.json"]));
}

#[tokio::test]
async fn lock_file_sets_installed_versions_and_hashes() {
    let Some((world, index)) = world_with_npm().await else {
        return;
    };
    let version = |number: &str| {
        let text = format!("module.exports = '{number}';");
        index.node_package("beta", number, &[("index.js", &text)])
    };
    let (url, integrity) = version("1.0.0");
    version("1.5.0");
    let locked = |integrity: &str| {
        let package = serde_json::json!({"version": "1.0.0", "resolved": url, "integrity": integrity});
        let wanted = serde_json::json!({"beta": "^1.0.0"});
        let about =
            serde_json::json!({"name": "needs", "version": "1.0.0", "dependencies": wanted}).to_string();
        let lock = serde_json::json!({"name": "needs", "version": "1.0.0", "lockfileVersion": 3, "requires": true,
            "packages": {"": {"name": "needs", "version": "1.0.0", "dependencies": wanted}, "node_modules/beta": package}});
        zip_of(&[
            (
                "SKILL.md",
                "---\nname: needs\ndescription: Needs packages.\nentrypoint: scripts/main.mjs\n---\n",
            ),
            (
                "scripts/main.mjs",
                "import fs from 'fs';\nimport beta from 'beta';\nfs.writeFileSync(process.env.SANDBOX_OUTPUT, JSON.stringify(beta));\n",
            ),
            ("package.json", &about),
            ("package-lock.json", &lock.to_string()),
        ])
    };
    let outcome = ended(&world, locked(&integrity), RunSpec::default())
        .await
        .unwrap();
    assert_eq!(output(&outcome), "1.0.0");
    let other = format!("sha512-{}==", "A".repeat(86));
    let error = run(&world, locked(&other), RunSpec::default()).await.unwrap_err();
    let text = error.to_string();
    assert!(
        error.code() == Code::DependenciesFailed && text.contains("EINTEGRITY"),
        "{text}"
    );
}

/// Z-27: an npm that is not the registry's is not run. This machine has its own.
#[tokio::test]
async fn rejects_installer_with_wrong_hash() {
    if super::BACKEND == Backend::Native {
        return;
    }
    let Some((world, index)) = world_with_index().await else {
        return;
    };
    index.node_package("beta", "1.0.0", &[("index.js", "")]);
    if !index.offer_damaged_npm() {
        missing("packages", "there is no npm to be had for images without one");
        return;
    }
    let archive = node("const seen = 1;", r#"{"dependencies": {"beta": "1"}}"#);
    let error = run(&world, archive, RunSpec::default()).await.unwrap_err();
    assert!(
        error.code() == Code::DependenciesFailed && error.to_string().contains("npm was damaged"),
        "{error}"
    );
}

/// F-25.
#[tokio::test]
async fn cancelled_installation_leaves_nothing() {
    let Some((world, index)) = world_with_index().await else {
        return;
    };
    index.wheel("alpha", &[("alpha.py", "x = 1\n")]);
    index.hold("/simple/alpha/");
    let (engine, admin) = (world.engine.clone(), world.admin.clone());
    let left =
        tokio::spawn(
            async move { run_in(&engine, &admin, asks_for(ALPHA, "alpha"), RunSpec::default()).await },
        );
    let is_asked = || index.asked().iter().any(|path| path == "/simple/alpha/");
    let started = std::time::Instant::now();
    while !is_asked() {
        assert!(started.elapsed().as_secs() < 60, "nobody asks the index");
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    left.abort();
    assert!(left.await.unwrap_err().is_cancelled());
    // It waits for the installation that is being cancelled.
    index.hold("/nothing/");
    let outcome = ended(&world, asks_for(ALPHA, "alpha"), RunSpec::default())
        .await
        .unwrap();
    assert_eq!(output(&outcome), 1);
    assert_eq!(
        (index.fetched(WHEEL), sets(&world, &world.admin).await.len()),
        (1, 1)
    );
    let kept = std::fs::read_dir(world.folder.path().join("packages")).unwrap();
    let kept: Vec<_> = kept
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| !name.starts_with('.'))
        .collect();
    assert_eq!(kept.len(), 1, "{kept:?}");
}

#[tokio::test]
async fn evicts_least_recently_used_packages_above_cache_limit() {
    let small = |_: &OwnIndex, settings| DependencySettings {
        cache_bytes: 300_000,
        ..settings
    };
    let Some((world, index)) = world_with(small).await else {
        return;
    };
    let large = format!("x = 1\ny = '{}'\n", "y".repeat(100_000));
    for name in ["alpha", "beta"] {
        index.wheel(name, &[(&format!("{name}.py"), &large)]);
        let program = format!("import {name}\nseen = {name}.x");
        ended(&world, asks_for(&program, name), RunSpec::default())
            .await
            .unwrap();
    }
    assert_eq!(sets(&world, &world.admin).await.len(), 2);
    world.maintenance().run().await;
    let left = sets(&world, &world.admin).await;
    assert_eq!(
        (left.len(), left[0].wanted.as_slice()),
        (1, &["beta".to_owned()][..])
    );
    ended(&world, asks_for(ALPHA, "alpha"), RunSpec::default())
        .await
        .unwrap();
    assert_eq!(index.fetched(WHEEL), 2);
}

#[tokio::test]
async fn rejects_packages_above_limit_and_names_fix() {
    let small = |_: &OwnIndex, settings| DependencySettings {
        set_bytes: 64 << 20,
        ..settings
    };
    let Some((world, index)) = world_with(small).await else {
        return;
    };
    // Fits while it is installed, and then does not; fits nowhere; is small, and takes pip far more to read.
    let lines = |mebibytes: usize| "\n".repeat(mebibytes << 20);
    let (some, much, read) = (lines(70), lines(110), lines(72));
    index.wheel("some", &[("some.py", &some)]);
    index.wheel("much", &[("much.py", &much)]);
    index.wheel("read", &[("read-1.0.dist-info/entry_points.txt", &read)]);
    for (package, part) in [
        ("some", "the limit is 64 MiB (deps.set_size)"),
        ("much", "the limit is 64 MiB (deps.set_size)"),
        ("read", "was out of memory"),
    ] {
        let error = run(&world, asks_for("seen = 1", package), RunSpec::default())
            .await
            .unwrap_err();
        let text = error.to_string();
        assert_eq!(error.code(), Code::DependenciesFailed, "{package}: {text}");
        assert!(
            text.contains(part) && text.contains("raise deps.set_size"),
            "{package}: {text}"
        );
    }
    assert!(sets(&world, &world.admin).await.is_empty());
}

/// T-02: packages of one tenant reveal nothing to another, not even by time, and another cannot delete them.
#[tokio::test]
async fn does_not_share_packages_between_tenants() {
    let Some((world, index)) = world_with_index().await else {
        return;
    };
    index.wheel("alpha", &[("alpha.py", "x = 1\n")]);
    let new = NewKey {
        name: "other".to_owned(),
        scopes: Scopes::new([Scope::Run, Scope::Skills]),
        expires_at: None,
    };
    let (_, key) = world.keys().create("other".parse().unwrap(), new).await.unwrap();
    let other = world.keys().authenticate(key.reveal()).await.unwrap();
    ended(&world, asks_for(ALPHA, "alpha"), RunSpec::default())
        .await
        .unwrap();
    assert!(sets(&world, &other).await.is_empty());
    let ran = run_in(
        &world.engine,
        &other,
        asks_for(ALPHA, "alpha"),
        RunSpec::default(),
    )
    .await;
    assert_eq!(ran.unwrap().status, Status::Success);
    assert_eq!(index.fetched(WHEEL), 2);
    let (mine, theirs) = (sets(&world, &world.admin).await, sets(&world, &other).await);
    assert_eq!((mine.len(), theirs.len()), (1, 1));
    world
        .packages()
        .delete(other.tenant(), &theirs[0].key)
        .await
        .unwrap();
    assert!(sets(&world, &other).await.is_empty());
    assert_eq!(sets(&world, &world.admin).await.len(), 1);
    ended(&world, asks_for(ALPHA, "alpha"), RunSpec::default())
        .await
        .unwrap();
    assert_eq!(index.fetched(WHEEL), 2);
}

/// A proxy for `CONNECT` on loopback that leads every name to this port and records its requests.
fn connect_proxy(to: u16) -> (u16, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let heads = Arc::new(Mutex::new(Vec::new()));
    let told = heads.clone();
    std::thread::spawn(move || {
        for near in listener.incoming() {
            let (mut near, heads) = (near.unwrap(), told.clone());
            std::thread::spawn(move || {
                let (mut head, mut byte) = (Vec::new(), [0]);
                while !head.ends_with(b"\r\n\r\n") && near.read(&mut byte).unwrap() == 1 {
                    head.push(byte[0]);
                }
                heads.lock().unwrap().push(String::from_utf8(head).unwrap());
                let far = TcpStream::connect(("127.0.0.1", to)).unwrap();
                near.write_all(b"HTTP/1.1 200 OK\r\n\r\n").unwrap();
                let (mut from_near, mut to_far) = (near.try_clone().unwrap(), far.try_clone().unwrap());
                let up = std::thread::spawn(move || {
                    let _ = std::io::copy(&mut from_near, &mut to_far);
                    let _ = to_far.shutdown(Shutdown::Write);
                });
                let _ = std::io::copy(&mut &far, &mut near);
                let _ = near.shutdown(Shutdown::Write);
                up.join().unwrap();
            });
        }
    });
    (port, heads)
}

#[tokio::test]
async fn downloads_packages_through_proxy_of_server() {
    let mut heads = Arc::default();
    let through = |index: &OwnIndex, settings| {
        let (port, told) = connect_proxy(index.port());
        heads = told;
        let url = format!("https://{ELSEWHERE}:{}/simple", index.port());
        DependencySettings {
            python_index: Index::parse(&url, NamedBy::Operator).unwrap(),
            upstream: Upstream::parse(&format!("http://user:pass@127.0.0.1:{port}"), ""),
            ..settings
        }
    };
    let Some((world, index)) = world_with(through).await else {
        return;
    };
    index.wheel("alpha", &[("alpha.py", "x = 1\n")]);
    let outcome = ended(&world, asks_for(ALPHA, "alpha"), RunSpec::default())
        .await
        .unwrap();
    assert_eq!(output(&outcome), 1);
    let heads = heads.lock().unwrap();
    assert!(!heads.is_empty());
    for head in heads.iter() {
        assert!(
            head.starts_with(&format!("CONNECT {ELSEWHERE}:{} HTTP/1.1\r\n", index.port())),
            "{head}"
        );
        assert!(
            head.to_ascii_lowercase().contains("proxy-authorization: basic "),
            "{head}"
        );
    }
}
