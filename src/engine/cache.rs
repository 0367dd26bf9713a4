//! Cache of unpacked skills and packages on this host: one folder per digest, complete or absent.

use std::collections::HashSet;
use std::fs::{self, DirEntry, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use tokio::sync::{Semaphore, SemaphorePermit};

use crate::bundle::{self, Listing};
use crate::engine::linked_files::LinkedFiles;
use crate::ids::Digest;
use crate::limits;

/// Prefix of folders that are being filled or removed.
const STAGING: &str = "unpacking-";

/// A cache of unpacked archives. The modification time of an entry's folder is its last use by any process.
#[derive(Debug)]
pub(super) struct SkillCache {
    root: PathBuf,
    contents: Contents,
    /// Entries that this process has unpacked or verified: after a power failure files may be incomplete.
    verified: Mutex<HashSet<Digest>>,
    permits: Semaphore,
}

#[derive(Debug)]
enum Contents {
    /// Zip archives. An entry of an earlier process is verified by its digest.
    Skills,
    /// Tar archives from an installer, at most this large. Not verified again, since reading thousands of files takes
    /// longer than most programs: they are synced to disk before the rename, and volume containers verify them
    /// anyway.
    Packages { bytes_max: u64, files: LinkedFiles },
}

/// An unpacked archive in a folder of its own, removed when dropped.
#[derive(Debug)]
pub(super) struct Unpacked {
    folder: tempfile::TempDir,
    pub(super) listing: Listing,
}

impl Unpacked {
    pub(super) fn folder(&self) -> &Path {
        self.folder.path()
    }
}

impl SkillCache {
    pub(super) fn new(root: PathBuf) -> Self {
        Self::of(root, Contents::Skills)
    }

    /// The package sets of one tenant.
    pub(super) fn of_packages(root: &Path, bytes_max: u64) -> Self {
        let files = LinkedFiles::new(root.join("files"));
        Self::of(root.join("sets"), Contents::Packages { bytes_max, files })
    }

    fn of(root: PathBuf, contents: Contents) -> Self {
        Self {
            root,
            contents,
            verified: Mutex::default(),
            permits: Semaphore::new(limits::UNPACKING_MAX),
        }
    }

    /// A permit to unpack one archive.
    pub(super) async fn unpack_permit(&self) -> SemaphorePermit<'_> {
        self.permits
            .acquire()
            .await
            .expect("this semaphore is never closed")
    }

    /// Checks and unpacks an archive. Blocking.
    pub(super) fn unpack(&self, archive: &File) -> Result<Unpacked, bundle::Error> {
        let folder = self.staging().map_err(bundle::Error::from)?;
        let listing = match &self.contents {
            Contents::Skills => bundle::unpack(archive, folder.path())?,
            Contents::Packages { bytes_max, .. } => {
                bundle::unpack_packages(archive, folder.path(), *bytes_max)?
            }
        };
        Ok(Unpacked { folder, listing })
    }

    fn staging(&self) -> io::Result<tempfile::TempDir> {
        place::make_private(&self.root)?;
        let folder = tempfile::Builder::new().prefix(STAGING).tempdir_in(&self.root)?;
        place::show(folder.path())?;
        Ok(folder)
    }

    /// Moves an unpacked archive to its digest. An existing entry wins. Blocking.
    pub(super) fn keep(&self, unpacked: Unpacked) -> io::Result<PathBuf> {
        let digest = unpacked.listing.digest();
        let path = self.path(&digest);
        if let Contents::Packages { files, .. } = &self.contents {
            files.reuse(unpacked.folder(), &unpacked.listing)?;
            place::sync_all(unpacked.folder())?;
        }
        if let Err(error) = fs::rename(unpacked.folder(), &path) {
            return self.find(&digest).ok_or(error);
        }
        if let Contents::Packages { files, .. } = &self.contents {
            files.add(&path, &unpacked.listing)?;
        }
        // The folder was renamed; nothing is left to remove.
        drop(unpacked.folder.keep());
        self.verified().insert(digest);
        Ok(path)
    }

    /// Whether this process has verified the entry, so that finding it does not block.
    pub(super) fn is_verified(&self, digest: &Digest) -> bool {
        self.verified().contains(digest)
    }

    /// The folder of a complete entry. Blocking.
    pub(super) fn find(&self, digest: &Digest) -> Option<PathBuf> {
        let path = self.path(digest);
        let folder = place::open(&path).ok()?;
        folder.set_modified(SystemTime::now()).ok()?;
        if !matches!(self.contents, Contents::Skills) || self.verified().contains(digest) {
            return Some(path);
        }
        if bundle::list(&path).is_ok_and(|listing| listing.digest() == *digest) {
            self.verified().insert(*digest);
            return Some(path);
        }
        tracing::warn!(digest = %digest, "Unpacked files of {digest} are damaged; unpacking them again");
        self.evict(digest).ok()?;
        None
    }

    fn path(&self, digest: &Digest) -> PathBuf {
        self.root.join(digest.hex())
    }

    fn verified(&self) -> MutexGuard<'_, HashSet<Digest>> {
        self.verified.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Entries that were not used recently. Blocking.
    pub(super) fn idle(&self) -> io::Result<Vec<Digest>> {
        let idle = self
            .entries()?
            .into_iter()
            .filter(|entry| is_idle(entry, limits::SKILL_USED_MAX));
        Ok(idle.filter_map(|entry| digest_of(&entry)).collect())
    }

    /// Blocking.
    pub(super) fn evict(&self, digest: &Digest) -> io::Result<()> {
        self.verified().remove(digest);
        // Rename first, so that no process finds an incomplete folder under its digest.
        let doomed = self.staging()?;
        ignore_missing(fs::rename(self.path(digest), doomed.path().join("skill")))
    }

    /// Removes long unused entries and incomplete folders of killed processes. Blocking.
    pub(super) fn sweep(&self) -> io::Result<()> {
        for entry in self.entries()? {
            if let Some(digest) = digest_of(&entry) {
                if is_idle(&entry, limits::SKILL_IDLE_MAX) {
                    self.evict(&digest)?;
                }
            } else if is_idle(&entry, limits::SKILL_USED_MAX) {
                ignore_missing(fs::remove_dir_all(entry.path()))?;
            }
        }
        match &self.contents {
            Contents::Packages { files, .. } => files.sweep(),
            Contents::Skills => Ok(()),
        }
    }

    fn entries(&self) -> io::Result<Vec<DirEntry>> {
        match fs::read_dir(&self.root) {
            Ok(entries) => entries.collect(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
            Err(error) => Err(error),
        }
    }
}

pub(super) fn open_folder(folder: &Path) -> io::Result<File> {
    place::open(folder)
}

fn digest_of(entry: &DirEntry) -> Option<Digest> {
    format!("sha256:{}", entry.file_name().to_str()?).parse().ok()
}

fn is_idle(entry: &DirEntry, beyond: Duration) -> bool {
    let used = entry.metadata().and_then(|metadata| metadata.modified());
    used.is_ok_and(|at| at.elapsed().is_ok_and(|idle| idle > beyond))
}

/// Another process may have removed it first.
pub(super) fn ignore_missing(removed: io::Result<()>) -> io::Result<()> {
    match removed {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        Ok(()) | Err(_) => Ok(()),
    }
}

/// Folders on Unix.
#[cfg(unix)]
mod place {
    use std::fs::{self, DirBuilder, File, Permissions};
    use std::io;
    use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
    use std::path::Path;

    pub(super) fn make_private(folder: &Path) -> io::Result<()> {
        DirBuilder::new().mode(0o700).recursive(true).create(folder)
    }

    /// Readable for sandboxes that mount it; its parent folder stays private.
    pub(super) fn show(folder: &Path) -> io::Result<()> {
        fs::set_permissions(folder, Permissions::from_mode(0o755))
    }

    pub(super) fn open(folder: &Path) -> io::Result<File> {
        File::open(folder)
    }

    /// Syncs the folder's file system.
    #[cfg(target_os = "linux")]
    pub(super) fn sync_all(folder: &Path) -> io::Result<()> {
        rustix::fs::syncfs(File::open(folder)?).map_err(Into::into)
    }

    /// Not needed: without the native backend, volume containers verify what they receive.
    #[cfg(not(target_os = "linux"))]
    pub(super) fn sync_all(_folder: &Path) -> io::Result<()> {
        Ok(())
    }
}

/// Folders on Windows: they inherit the ACL of the data folder and are never mounted.
#[cfg(windows)]
mod place {
    use std::fs::{self, File, OpenOptions};
    use std::io;
    use std::os::windows::fs::OpenOptionsExt as _;
    use std::path::Path;

    /// Not needed: volume containers verify what they receive.
    pub(super) fn sync_all(_folder: &Path) -> io::Result<()> {
        Ok(())
    }

    const FILE_WRITE_ATTRIBUTES: u32 = 0x100;
    /// Required to open a folder.
    const FILE_FLAG_BACKUP_SEMANTICS: u32 = 0x0200_0000;

    pub(super) fn make_private(folder: &Path) -> io::Result<()> {
        fs::create_dir_all(folder)
    }

    pub(super) fn show(_folder: &Path) -> io::Result<()> {
        Ok(())
    }

    pub(super) fn open(folder: &Path) -> io::Result<File> {
        OpenOptions::new()
            .access_mode(FILE_WRITE_ATTRIBUTES)
            .custom_flags(FILE_FLAG_BACKUP_SEMANTICS)
            .open(folder)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn archive() -> File {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("scripts")).unwrap();
        fs::write(
            folder.path().join("SKILL.md"),
            "---\nname: a\ndescription: x\n---\n",
        )
        .unwrap();
        fs::write(folder.path().join("scripts/main.py"), "print(1)").unwrap();
        let mut archive = tempfile::tempfile().unwrap();
        bundle::pack(folder.path(), &mut archive).unwrap();
        archive
    }

    /// A cache in which one skill is kept, and the skill's digest.
    fn filled(root: &Path) -> (SkillCache, Digest) {
        let cache = SkillCache::new(root.join("cache"));
        let unpacked = cache.unpack(&archive()).unwrap();
        let digest = unpacked.listing.digest();
        cache.keep(unpacked).unwrap();
        (cache, digest)
    }

    fn used_long_ago(path: &Path, idle: Duration) {
        let folder = File::open(path).unwrap();
        folder.set_modified(SystemTime::now() - idle).unwrap();
    }

    fn names(cache: &SkillCache) -> Vec<String> {
        let entries = cache.entries().unwrap().into_iter();
        entries
            .map(|entry| entry.file_name().into_string().unwrap())
            .collect()
    }

    #[test]
    fn stores_equal_content_once() {
        let root = tempfile::tempdir().unwrap();
        let (cache, digest) = filled(root.path());
        let again = cache.unpack(&archive()).unwrap();
        assert_eq!(cache.keep(again).unwrap(), cache.find(&digest).unwrap());
        assert_eq!(names(&cache), [digest.hex()]);
    }

    /// F-20: content that a power failure truncated or another program changed is not executed.
    #[test]
    fn damaged_content_is_replaced() {
        let root = tempfile::tempdir().unwrap();
        let (cache, digest) = filled(root.path());
        let program = cache.path(&digest).join("scripts/main.py");
        fs::remove_file(&program).unwrap();
        fs::write(&program, "").unwrap();
        let later = SkillCache::new(root.path().join("cache"));
        assert_eq!(later.find(&digest), None);
        assert_eq!(names(&later), [""; 0]);
        let path = later.keep(later.unpack(&archive()).unwrap()).unwrap();
        assert_eq!(fs::read(path.join("scripts/main.py")).unwrap(), b"print(1)");
        assert_eq!(
            SkillCache::new(root.path().join("cache")).find(&digest),
            Some(path)
        );
    }

    /// Z-28, F-01: half a folder has no digest's name, and goes.
    #[test]
    fn removes_partial_content_of_killed_processes() {
        let root = tempfile::tempdir().unwrap();
        let (cache, digest) = filled(root.path());
        let killed = cache.unpack(&archive()).unwrap().folder.keep();
        let at_work = cache.unpack(&archive()).unwrap();
        used_long_ago(&killed, limits::SKILL_USED_MAX * 2);
        cache.sweep().unwrap();
        assert!(!killed.exists() && at_work.folder().exists() && cache.find(&digest).is_some());
    }

    #[test]
    fn reports_only_unused_content_as_idle() {
        let root = tempfile::tempdir().unwrap();
        let (cache, digest) = filled(root.path());
        assert_eq!(cache.idle().unwrap(), []);
        used_long_ago(&cache.path(&digest), limits::SKILL_USED_MAX * 2);
        assert_eq!(cache.idle().unwrap(), [digest]);
        let other_process = SkillCache::new(root.path().join("cache"));
        other_process.find(&digest).unwrap();
        assert_eq!(cache.idle().unwrap(), []);
    }

    #[test]
    fn evicts_beyond_the_size_limit() {
        let root = tempfile::tempdir().unwrap();
        let (cache, digest) = filled(root.path());
        used_long_ago(&cache.path(&digest), limits::SKILL_USED_MAX * 2);
        cache.sweep().unwrap();
        assert!(cache.find(&digest).is_some());
        used_long_ago(&cache.path(&digest), limits::SKILL_IDLE_MAX * 2);
        cache.sweep().unwrap();
        assert_eq!((cache.find(&digest), names(&cache)), (None, vec![]));
        cache.evict(&digest).unwrap();
    }

    #[test]
    fn rejected_archive_leaves_no_files() {
        let root = tempfile::tempdir().unwrap();
        let cache = SkillCache::new(root.path().join("cache"));
        let cut = archive();
        cut.set_len(cut.metadata().unwrap().len() - 1).unwrap();
        assert!(cache.unpack(&cut).is_err());
        drop(cache.unpack(&archive()).unwrap());
        assert_eq!(names(&cache), [""; 0]);
    }
}
