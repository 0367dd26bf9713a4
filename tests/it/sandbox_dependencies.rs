//! Packages that a program is given: it imports and executes them, and cannot change them.

use std::os::unix::fs::PermissionsExt as _;

use serde_json::json;

use crate::packages::{Bare, dependencies};

/// P2. Both of them at once, so that neither is mistaken for the other.
#[tokio::test]
async fn packages_can_be_imported_and_executed_and_not_changed() {
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
