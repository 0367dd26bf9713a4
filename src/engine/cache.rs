//! Unpacked skills on this host, one folder per content, made whole or not at all.

use std::collections::HashSet;
use std::fs::{self, DirEntry, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use tokio::sync::{Semaphore, SemaphorePermit};

use crate::bundle::{self, Listing};
use crate::ids::Digest;
use crate::limits;

/// How the names of folders begin that are being filled or removed.
const STAGING: &str = "unpacking-";

/// A folder of unpacked skills, or of installed packages. A content's folder tells by its own time when any process last used it.
#[derive(Debug)]
pub(super) struct SkillCache {
    root: PathBuf,
    contents: Contents,
    /// Contents that this process has unpacked, or compared with their digest: a power cut may leave half a file.
    whole: Mutex<HashSet<Digest>>,
    turns: Semaphore,
}

/// What is unpacked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Contents {
    /// Zips. Found again, they are compared with their digest.
    Skills,
    /// Tars of what an installer left. Reading thousands of files again would take longer than most programs: they are on the
    /// disk before they get their name, and an engine's keepers compare them anyway. A set has no more than these bytes.
    Packages { bytes_max: u64 },
}

/// An archive unpacked into a folder of its own, which goes when this is dropped.
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

    pub(super) fn of_packages(root: PathBuf, bytes_max: u64) -> Self {
        Self::of(root, Contents::Packages { bytes_max })
    }

    fn of(root: PathBuf, contents: Contents) -> Self {
        Self {
            root,
            contents,
            whole: Mutex::default(),
            turns: Semaphore::new(limits::UNPACKING_MAX),
        }
    }

    /// The right to unpack one archive, until dropped.
    pub(super) async fn turn(&self) -> SemaphorePermit<'_> {
        self.turns
            .acquire()
            .await
            .expect("this semaphore is never closed")
    }

    /// Checks and unpacks an archive. Blocks.
    pub(super) fn unpack(&self, archive: &File) -> Result<Unpacked, bundle::Error> {
        let folder = self.staging().map_err(bundle::Error::from)?;
        let listing = match self.contents {
            Contents::Skills => bundle::unpack(archive, folder.path())?,
            Contents::Packages { bytes_max } => bundle::unpack_packages(archive, folder.path(), bytes_max)?,
        };
        Ok(Unpacked { folder, listing })
    }

    fn staging(&self) -> io::Result<tempfile::TempDir> {
        place::make_private(&self.root)?;
        let folder = tempfile::Builder::new().prefix(STAGING).tempdir_in(&self.root)?;
        place::show(folder.path())?;
        Ok(folder)
    }

    /// Keeps an unpacked archive under its digest; the content that is there already wins. Blocks.
    pub(super) fn keep(&self, unpacked: Unpacked) -> io::Result<PathBuf> {
        let digest = unpacked.listing.digest();
        let path = self.path(&digest);
        if self.contents != Contents::Skills {
            place::write_down(unpacked.folder.path())?;
        }
        if let Err(error) = fs::rename(unpacked.folder.path(), &path) {
            return self.find(&digest).ok_or(error);
        }
        // The name has moved away; there is nothing left to remove.
        drop(unpacked.folder.keep());
        self.whole().insert(digest);
        Ok(path)
    }

    /// Whether this content was found whole before: finding it again does not block.
    pub(super) fn knows(&self, digest: &Digest) -> bool {
        self.whole().contains(digest)
    }

    /// The folder of this content, if it is here and whole. Blocks.
    pub(super) fn find(&self, digest: &Digest) -> Option<PathBuf> {
        let path = self.path(digest);
        let folder = place::open(&path).ok()?;
        folder.set_modified(SystemTime::now()).ok()?;
        if self.contents != Contents::Skills || self.whole().contains(digest) {
            return Some(path);
        }
        if bundle::list(&path).is_ok_and(|listing| listing.digest() == *digest) {
            self.whole().insert(*digest);
            return Some(path);
        }
        tracing::warn!(digest = %digest, "Unpacked files of {digest} are damaged; unpacking them again");
        self.evict(digest).ok()?;
        None
    }

    fn path(&self, digest: &Digest) -> PathBuf {
        self.root.join(digest.hex())
    }

    fn whole(&self) -> MutexGuard<'_, HashSet<Digest>> {
        self.whole.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The contents that nobody has used of late. Blocks.
    pub(super) fn idle(&self) -> io::Result<Vec<Digest>> {
        let idle = self
            .entries()?
            .into_iter()
            .filter(|entry| is_idle(entry, limits::SKILL_USED_MAX));
        Ok(idle.filter_map(|entry| digest_of(&entry)).collect())
    }

    /// Removes a content. Blocks.
    pub(super) fn evict(&self, digest: &Digest) -> io::Result<()> {
        self.whole().remove(digest);
        // Renamed first: nobody finds half a folder under its digest.
        let doomed = self.staging()?;
        unless_gone(fs::rename(self.path(digest), doomed.path().join("skill")))
    }

    /// Removes what nobody has used for long, and what a killed process left half unpacked. Blocks.
    pub(super) fn sweep(&self) -> io::Result<()> {
        for entry in self.entries()? {
            if let Some(digest) = digest_of(&entry) {
                if is_idle(&entry, limits::SKILL_IDLE_MAX) {
                    self.evict(&digest)?;
                }
            } else if is_idle(&entry, limits::SKILL_USED_MAX) {
                unless_gone(fs::remove_dir_all(entry.path()))?;
            }
        }
        Ok(())
    }

    fn entries(&self) -> io::Result<Vec<DirEntry>> {
        match fs::read_dir(&self.root) {
            Ok(entries) => entries.collect(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
            Err(error) => Err(error),
        }
    }
}

fn digest_of(entry: &DirEntry) -> Option<Digest> {
    format!("sha256:{}", entry.file_name().to_str()?).parse().ok()
}

fn is_idle(entry: &DirEntry, beyond: Duration) -> bool {
    let used = entry.metadata().and_then(|metadata| metadata.modified());
    used.is_ok_and(|at| at.elapsed().is_ok_and(|idle| idle > beyond))
}

/// Another process that shares the cache may have been faster.
fn unless_gone(removed: io::Result<()>) -> io::Result<()> {
    match removed {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        Ok(()) | Err(_) => Ok(()),
    }
}

/// Folders of the cache as Unix has them.
#[cfg(unix)]
mod place {
    use std::fs::{self, DirBuilder, File, Permissions};
    use std::io;
    use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
    use std::path::Path;

    pub(super) fn make_private(folder: &Path) -> io::Result<()> {
        DirBuilder::new().mode(0o700).recursive(true).create(folder)
    }

    /// Others may read it where it is mounted, in a sandbox; the way to it here stays closed.
    pub(super) fn show(folder: &Path) -> io::Result<()> {
        fs::set_permissions(folder, Permissions::from_mode(0o755))
    }

    pub(super) fn open(folder: &Path) -> io::Result<File> {
        File::open(folder)
    }

    /// Returns when a power cut would leave all of it.
    #[cfg(target_os = "linux")]
    pub(super) fn write_down(folder: &Path) -> io::Result<()> {
        rustix::fs::syncfs(File::open(folder)?).map_err(Into::into)
    }

    /// Nothing: what no native sandbox mounts goes through a keeper, which compares it.
    #[cfg(not(target_os = "linux"))]
    pub(super) fn write_down(_folder: &Path) -> io::Result<()> {
        Ok(())
    }
}

/// … and as Windows has them, without permission bits: they inherit the ACL of the data folder, and are never mounted.
#[cfg(windows)]
mod place {
    use std::fs::{self, File, OpenOptions};
    use std::io;
    use std::os::windows::fs::OpenOptionsExt as _;
    use std::path::Path;

    /// Nothing: an engine's keepers compare what they are given.
    pub(super) fn write_down(_folder: &Path) -> io::Result<()> {
        Ok(())
    }

    const FILE_WRITE_ATTRIBUTES: u32 = 0x100;
    /// Without it no folder is opened at all.
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
    fn the_same_content_is_kept_once() {
        let root = tempfile::tempdir().unwrap();
        let (cache, digest) = filled(root.path());
        let again = cache.unpack(&archive()).unwrap();
        assert_eq!(cache.keep(again).unwrap(), cache.find(&digest).unwrap());
        assert_eq!(names(&cache), [digest.hex()]);
    }

    /// F-20: what a power cut left of a file, or somebody wrote into one, is not run.
    #[test]
    fn damaged_content_is_not_found_and_can_be_kept_anew() {
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
    fn what_a_killed_process_left_half_unpacked_is_swept() {
        let root = tempfile::tempdir().unwrap();
        let (cache, digest) = filled(root.path());
        let killed = cache.unpack(&archive()).unwrap().folder.keep();
        let at_work = cache.unpack(&archive()).unwrap();
        used_long_ago(&killed, limits::SKILL_USED_MAX * 2);
        cache.sweep().unwrap();
        assert!(!killed.exists() && at_work.folder().exists() && cache.find(&digest).is_some());
    }

    #[test]
    fn only_what_nobody_uses_is_idle() {
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
    fn the_cache_does_not_grow_for_ever() {
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
    fn an_archive_that_is_refused_leaves_nothing() {
        let root = tempfile::tempdir().unwrap();
        let cache = SkillCache::new(root.path().join("cache"));
        let cut = archive();
        cut.set_len(cut.metadata().unwrap().len() - 1).unwrap();
        assert!(cache.unpack(&cut).is_err());
        drop(cache.unpack(&archive()).unwrap());
        assert_eq!(names(&cache), [""; 0]);
    }
}
