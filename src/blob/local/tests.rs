//! The promises of every place, run on the local folder, and those of this place alone.

use std::fs::{self, File, Permissions};
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::blob::{Blob, Error, contract};

use contract::{Place, archive, artifacts, contract_tests, is_absent, source};

/// A root in a folder of its own.
struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn root(&self) -> PathBuf {
        self.0.path().join("blobs")
    }

    /// Everything below the root, as paths, in order.
    fn tree(&self) -> Vec<String> {
        let mut paths = Vec::new();
        let mut folders = vec![self.root()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                paths.push(
                    path.strip_prefix(self.root())
                        .unwrap()
                        .to_str()
                        .unwrap()
                        .to_owned(),
                );
                if path.is_dir() && !path.is_symlink() {
                    folders.push(path);
                }
            }
        }
        paths.sort();
        paths
    }
}

impl Place for Folder {
    fn open(&self) -> Blob {
        Blob::open_local(&self.root()).unwrap()
    }
}

contract_tests!(Folder::new());

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[tokio::test]
async fn only_the_owner_can_read_objects() {
    let folder = Folder::new();
    folder
        .open()
        .put(&archive("acme", "csv", "1.0.0"), source(b"x"))
        .await
        .unwrap();
    assert_eq!(
        folder.tree(),
        [
            ".tmp",
            "acme",
            "acme/csv",
            "acme/csv/1.0.0",
            "acme/csv/1.0.0/skill.zip"
        ]
    );
    for path in folder.tree() {
        let path = folder.root().join(path);
        assert_eq!(mode(&path), if path.is_dir() { 0o700 } else { 0o600 }, "{path:?}");
    }
    assert_eq!(mode(&folder.root()), 0o700);
}

/// P15, Z-28.
#[tokio::test]
async fn deleted_and_failed_objects_leave_no_file() {
    let folder = Folder::new();
    let blob = folder.open();
    let key = archive("acme", "csv", "1.0.0");
    blob.put(&key, source(b"x")).await.unwrap();
    blob.delete(&key).await.unwrap();
    blob.ping().await.unwrap();
    blob.put(&artifacts(), File::open("/").unwrap())
        .await
        .unwrap_err();
    drop(blob.stage(source(b"x")).await.unwrap());
    assert_eq!(folder.tree(), [".tmp"]);
}

/// C-07.
#[test]
fn rejects_folder_writable_by_others() {
    let folder = Folder::new();
    drop(folder.open());
    for shared in [folder.root(), folder.root().join(".tmp")] {
        for bits in [0o770, 0o707] {
            fs::set_permissions(&shared, Permissions::from_mode(bits)).unwrap();
            let refused = Blob::open_local(&folder.root()).unwrap_err();
            let cause = std::error::Error::source(&refused).unwrap().to_string();
            assert!(cause.contains("chmod") && cause.contains("blobs"), "{cause}");
            assert!(!refused.to_string().contains("blobs"), "{refused}");
        }
        fs::set_permissions(&shared, Permissions::from_mode(0o700)).unwrap();
    }
    drop(folder.open());
}

/// C-07.
#[test]
fn rejects_folder_of_another_user() {
    let folder = Folder::new();
    drop(folder.open());
    if std::os::unix::fs::chown(folder.root(), Some(12345), None).is_err() {
        println!("skipped: giving a folder away needs root");
        return;
    }
    let refused = Blob::open_local(&folder.root()).unwrap_err();
    let cause = std::error::Error::source(&refused).unwrap().to_string();
    assert!(cause.contains("another user"), "{cause}");
}

/// C-07, T-11: a link planted in the tree is never followed, on any step of the way.
#[tokio::test]
async fn does_not_follow_links() {
    for step in ["acme", "acme/csv", "acme/csv/1.0.0"] {
        let folder = Folder::new();
        let outside = folder.0.path().join("outside");
        fs::create_dir_all(outside.join("csv/1.0.0")).unwrap();
        for way in ["skill.zip", "1.0.0/skill.zip", "csv/1.0.0/skill.zip"] {
            fs::create_dir_all(outside.join(way).parent().unwrap()).unwrap();
            fs::write(outside.join(way), b"foreign").unwrap();
        }
        let blob = folder.open();
        let planted = folder.root().join(step);
        fs::create_dir_all(planted.parent().unwrap()).unwrap();
        symlink(&outside, planted).unwrap();
        let key = archive("acme", "csv", "1.0.0");
        assert!(matches!(blob.open(&key).await, Err(Error::Backend(_))), "{step}");
        assert!(
            matches!(blob.put(&key, source(b"x")).await, Err(Error::Backend(_))),
            "{step}"
        );
        assert!(
            matches!(blob.delete(&key).await, Err(Error::Backend(_))),
            "{step}"
        );
        for way in ["skill.zip", "1.0.0/skill.zip", "csv/1.0.0/skill.zip"] {
            assert_eq!(fs::read(outside.join(way)).unwrap(), b"foreign");
        }
    }
}

/// C-07: in an object's place, a link is replaced or removed itself, and what is no file is not read.
#[tokio::test]
async fn reads_only_regular_files_as_objects() {
    let folder = Folder::new();
    let blob = folder.open();
    let key = archive("acme", "csv", "1.0.0");
    let place = folder.root().join(key.to_string());
    fs::create_dir_all(place.parent().unwrap()).unwrap();
    let outside = folder.0.path().join("outside");
    fs::write(&outside, b"foreign").unwrap();
    symlink(&outside, &place).unwrap();
    assert!(matches!(blob.open(&key).await, Err(Error::Backend(_))));
    blob.put(&key, source(b"mine")).await.unwrap();
    assert_eq!(fs::read(&outside).unwrap(), b"foreign");
    assert_eq!(fs::read(&place).unwrap(), b"mine");

    fs::remove_file(&place).unwrap();
    let made = Command::new("mkfifo").arg(&place).status().unwrap();
    assert!(made.success());
    assert!(matches!(blob.open(&key).await, Err(Error::Backend(_))));
    blob.delete(&key).await.unwrap();
    assert!(is_absent(&blob, &key).await);
}

/// F-01, P15: at the next start, unless a process is writing at that moment.
#[test]
fn start_removes_temporary_files_of_dead_processes() {
    let folder = Folder::new();
    drop(folder.open());
    let temporaries = folder.root().join(".tmp");
    File::create(temporaries.join("half")).unwrap();
    let writer = File::open(&temporaries).unwrap();
    writer.lock_shared().unwrap();
    drop(folder.open());
    assert_eq!(folder.tree(), [".tmp", ".tmp/half"]);
    drop(writer);
    drop(folder.open());
    assert_eq!(folder.tree(), [".tmp"]);
}

/// F-11, Z-28: half an object is never left on a full disk, and room brings everything back.
#[tokio::test]
async fn full_disk_is_reported_until_space_is_freed() {
    let name = "blob::local::tests::full_disk_is_reported_until_space_is_freed";
    let Some(disk) = small_disk(name) else { return };
    let blob = Blob::open_local(&disk.join("blobs")).unwrap();
    let (kept, big) = (artifacts(), artifacts());
    blob.put(&kept, source(b"kept")).await.unwrap();
    for key in [&big, &kept] {
        let refused = blob.put(key, source(&vec![1; 2 << 20])).await;
        assert!(matches!(refused, Err(Error::Full)), "{refused:?}");
    }
    assert!(is_absent(&blob, &big).await);
    assert_eq!(
        fs::read(disk.join("blobs").join(kept.to_string())).unwrap(),
        b"kept"
    );
    assert_eq!(fs::read_dir(disk.join("blobs/.tmp")).unwrap().count(), 0);
    fs::write(disk.join("filler"), vec![1; 1 << 20]).unwrap_err();
    assert!(matches!(blob.ping().await, Err(Error::Full)));
    fs::remove_file(disk.join("filler")).unwrap();
    blob.ping().await.unwrap();
    blob.put(&big, source(&vec![1; 1 << 19])).await.unwrap();
}

/// A disk of 1 MiB, in a second run of this test alone; `None` in the first run, once the second has passed.
fn small_disk(test: &str) -> Option<PathBuf> {
    const VARIABLE: &str = "SKILLBOX_TEST_SMALL_DISK";
    if let Some(disk) = std::env::var_os(VARIABLE) {
        return Some(disk.into());
    }
    let unshare = |script: &str| {
        let mut command = Command::new("unshare");
        command.args(["--user", "--map-root-user", "--mount", "sh", "-ec", script]);
        command
    };
    let folder = tempfile::tempdir().unwrap();
    let possible = unshare("mount -t tmpfs none \"$0\"").arg(folder.path()).output();
    if !possible.is_ok_and(|output| output.status.success()) {
        let required = std::env::var("SKILLBOX_TEST_REQUIRE").unwrap_or_default();
        assert!(!required.contains("linux"), "no mount in a user namespace");
        println!("skipped: needs a mount in a user namespace");
        return None;
    }
    let output = unshare("mount -t tmpfs -o size=1m none \"$0\"; exec \"$@\"")
        .arg(folder.path())
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", test])
        .env(VARIABLE, folder.path())
        .output()
        .unwrap();
    let report = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && report.contains("1 passed"), "{report}");
    None
}
