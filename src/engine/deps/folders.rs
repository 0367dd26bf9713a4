//! Unpacked package sets on this host, apart for each tenant.

use std::fs;
use std::io;
use std::path::PathBuf;

use tokio::sync::{Semaphore, SemaphorePermit};

use crate::engine::cache::SkillCache;
use crate::engine::deps::DependencySettings;
use crate::ids::Tenant;
use crate::limits;

/// A folder for each tenant.
#[derive(Debug)]
pub(in crate::engine) struct PackageFolders {
    root: PathBuf,
    set_bytes: u64,
    permits: Semaphore,
}

impl PackageFolders {
    pub(in crate::engine) fn new(settings: &DependencySettings) -> Self {
        Self {
            root: settings.folder.join("tenants"),
            set_bytes: settings.set_bytes,
            permits: Semaphore::new(limits::UNPACKING_MAX),
        }
    }

    /// A permit to unpack one set.
    pub(super) async fn unpack_permit(&self) -> SemaphorePermit<'_> {
        self.permits
            .acquire()
            .await
            .expect("this semaphore is never closed")
    }

    pub(super) fn of(&self, tenant: &Tenant) -> SkillCache {
        SkillCache::of_packages(&self.root.join(tenant.as_str()), self.set_bytes)
    }

    /// Tenants with packages on this host. Blocking.
    pub(super) fn tenants(&self) -> io::Result<Vec<Tenant>> {
        let entries = match fs::read_dir(&self.root) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries?,
        };
        let name = |entry: io::Result<fs::DirEntry>| {
            entry.map(|entry| entry.file_name().to_str().and_then(|name| name.parse().ok()))
        };
        entries.filter_map(|entry| name(entry).transpose()).collect()
    }
}

#[cfg(unix)]
#[cfg(test)]
mod tests {
    use std::fs::{File, OpenOptions, Permissions};
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
    use std::time::SystemTime;

    use super::*;
    use crate::bundle::artifacts::ArtifactTar;
    use crate::engine::Engine;
    use crate::ids::Digest;
    use crate::sandbox::Sandbox;

    struct Folders {
        folder: tempfile::TempDir,
        engine: Engine,
    }

    /// A set on this host.
    struct Set {
        digest: Digest,
        folder: PathBuf,
    }

    impl Folders {
        async fn open() -> Self {
            let folder = tempfile::tempdir().unwrap();
            let sandbox = Sandbox::scripted(|_, _| unreachable!("nothing runs"));
            let engine = crate::engine::tests::engine(folder.path(), sandbox).await;
            Self { folder, engine }
        }

        fn of(&self, tenant: &str) -> SkillCache {
            self.engine.packages.of(&tenant.parse().unwrap())
        }

        /// Each file has its path and content.
        fn add(&self, tenant: &str, files: &[[&str; 2]]) -> Set {
            let mut tar = ArtifactTar::create_in(self.folder.path());
            for [path, content] in files {
                tar.start(path, content.len() as u64).unwrap();
                tar.write(content.as_bytes()).unwrap();
                tar.end().unwrap();
            }
            let folders = self.of(tenant);
            let unpacked = folders.unpack(&tar.finish().unwrap().0).unwrap();
            let digest = unpacked.listing.digest();
            let folder = folders.keep(unpacked).unwrap();
            Set { digest, folder }
        }

        /// Known files of the tenant, after a sweep.
        fn known(&self, tenant: &str) -> usize {
            let root = self.engine.packages.root.join(tenant).join("files");
            File::open(&root)
                .unwrap()
                .set_modified(SystemTime::UNIX_EPOCH)
                .unwrap();
            self.of(tenant).sweep().unwrap();
            let parts = fs::read_dir(root).unwrap();
            parts
                .map(|part| fs::read_dir(part.unwrap().path()).unwrap().count())
                .sum()
        }
    }

    fn inode(set: &Set, path: &str) -> u64 {
        fs::metadata(set.folder.join(path)).unwrap().ino()
    }

    /// Z-27.
    #[tokio::test]
    async fn sets_of_one_tenant_share_files_of_equal_content() {
        let folders = Folders::open().await;
        let library = ["lib/core.py", "x = 1"];
        let one = folders.add("a", &[library, ["one.py", "1"], ["lib/empty.py", ""]]);
        let two = folders.add("a", &[library, ["two.py", "2"], ["lib/copy.py", "x = 1"]]);
        let other = folders.add("b", &[library]);
        assert_eq!(inode(&one, "lib/core.py"), inode(&two, "lib/core.py"));
        assert_eq!(inode(&one, "lib/core.py"), inode(&two, "lib/copy.py"));
        assert_ne!(inode(&one, "lib/core.py"), inode(&other, "lib/core.py"));
        // A program sees no difference.
        let seen = |path: PathBuf| {
            let seen = fs::metadata(path).unwrap();
            (seen.mode(), seen.mtime(), seen.uid())
        };
        for path in ["lib", "lib/core.py"] {
            assert_eq!(
                seen(two.folder.join(path)),
                seen(other.folder.join(path)),
                "{path}"
            );
        }
    }

    #[tokio::test]
    async fn removes_known_files_with_their_last_set() {
        let folders = Folders::open().await;
        let library = ["lib.py", "x = 1"];
        let one = folders.add("a", &[library, ["one.py", "1"]]);
        let two = folders.add("a", &[library, ["two.py", "2"]]);
        assert_eq!(folders.known("a"), 3);
        folders.of("a").evict(&one.digest).unwrap();
        assert_eq!(folders.known("a"), 2);
        assert_eq!(fs::read(two.folder.join("lib.py")).unwrap(), b"x = 1");
        folders.of("a").evict(&two.digest).unwrap();
        assert_eq!(folders.known("a"), 0);
        assert_eq!(folders.engine.packages.tenants().unwrap(), ["a".parse().unwrap()]);
    }

    /// F-20: a power failure may truncate what was not on disk.
    #[tokio::test]
    async fn truncated_file_is_not_used_again() {
        let folders = Folders::open().await;
        let library = ["lib.py", "x = 1"];
        let one = folders.add("a", &[library, ["one.py", "1"]]);
        let path = one.folder.join("lib.py");
        fs::set_permissions(&path, Permissions::from_mode(0o755)).unwrap();
        OpenOptions::new()
            .write(true)
            .open(&path)
            .unwrap()
            .set_len(1)
            .unwrap();
        let two = folders.add("a", &[library, ["two.py", "2"]]);
        let three = folders.add("a", &[library, ["three.py", "3"]]);
        for set in [&two, &three] {
            assert_eq!(fs::read(set.folder.join("lib.py")).unwrap(), b"x = 1");
        }
        assert_eq!(inode(&two, "lib.py"), inode(&three, "lib.py"));
    }

    /// A set whose files cannot be linked is complete nevertheless.
    #[tokio::test]
    async fn set_with_file_of_the_name_of_a_link_is_complete() {
        let folders = Folders::open().await;
        let library = ["lib.py", "x = 1"];
        folders.add("a", &[library, ["one.py", "1"]]);
        let two = folders.add("a", &[library, ["~skillbox-link", "2"]]);
        assert_eq!(fs::read(two.folder.join("lib.py")).unwrap(), b"x = 1");
        assert_eq!(fs::read(two.folder.join("~skillbox-link")).unwrap(), b"2");
    }
}
