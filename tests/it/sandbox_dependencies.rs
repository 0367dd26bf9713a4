//! PackageKind that a program is given: it imports and executes them, and cannot change them.

use std::os::unix::fs::PermissionsExt as _;

use serde_json::json;

use skillbox::sandbox::{Dependencies, PackageKind};

use crate::packages::{Bare, dependencies, job};

/// P2. Both of them at once, so that neither is mistaken for the other.
#[tokio::test]
async fn packages_are_importable_executable_and_read_only() {
    let Some(bare) = Bare::on(super::BACKEND).await else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let inside = |path: &str| folder.path().join(path);
    std::fs::create_dir(inside("given")).unwrap();
    std::fs::write(inside("given/__init__.py"), "answer = 42\n").unwrap();
    std::fs::write(inside("given/tool"), "#!/bin/sh\necho worked\n").unwrap();
    for (path, mode) in [("", 0o755), ("given", 0o755), ("given/tool", 0o755)] {
        std::fs::set_permissions(inside(path), std::fs::Permissions::from_mode(mode)).unwrap();
    }
    let seen = bare
        .python(
            include_str!("probes/dependencies.py"),
            Some(dependencies(folder.path())),
        )
        .await;
    let expected = json!({
        "answer": 42,
        "tool": "worked\n",
        "create": "EROFS",
        "unlink": "EROFS",
        "chmod": "EROFS",
        "replace": "EBUSY",
        "remount": "EPERM",
        "lacks": [],
    });
    assert_eq!(seen, expected);
    let absent = bare
        .python(
            "import json, os; json.dump(os.path.exists('/sandbox/deps'), open(os.environ['SANDBOX_OUTPUT'], 'w'))",
            None,
        )
        .await;
    assert_eq!(absent, false);
    bare.close().await;
}

/// The same bytes are found at either place, in either order of use.
#[tokio::test]
async fn same_files_serve_as_packages_of_python_and_node() {
    let Some(bare) = Bare::on(super::BACKEND).await else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("data.json"), "1").unwrap();
    std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    let python = dependencies(folder.path());
    let node = Dependencies {
        packages: PackageKind::Node,
        ..python.clone()
    };
    let listed = "import os, sys; print(*[os.path.exists(f'{place}/data.json') for place in ('/sandbox/deps', '/node_modules')])";
    for (deps, seen) in [
        (vec![python.clone()], "True False"),
        (vec![node.clone()], "False True"),
        (vec![python, node], "True True"),
    ] {
        let mut job = job(listed, None);
        job.sandbox.deps = deps;
        let report = bare.run(&job).await;
        let printed = String::from_utf8_lossy(&report.logs.stdout).into_owned();
        assert_eq!(
            printed.trim_end(),
            seen,
            "{:?} {}",
            report.end,
            String::from_utf8_lossy(&report.logs.stderr)
        );
    }
    bare.close().await;
}
