//! Unpacked skills on this host, one folder per content, made whole or not at all.

use std::collections::HashMap;
use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use crate::bundle::{self, Listing};
use crate::ids::Digest;

/// A folder of unpacked skills.
#[derive(Debug)]
pub(super) struct SkillCache {
    root: PathBuf,
    used: Mutex<HashMap<Digest, Instant>>,
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

/// No execution lasts as long: a folder that was used within this time may still be read.
const USED_RECENTLY: Duration = Duration::from_secs(3600);

impl SkillCache {
    pub(super) fn new(root: PathBuf) -> Self {
        Self {
            root,
            used: Mutex::default(),
        }
    }

    /// Checks and unpacks an archive. Blocks.
    pub(super) fn unpack(&self, archive: &File) -> Result<Unpacked, bundle::Error> {
        let folder = self.staging().map_err(bundle::Error::from)?;
        let listing = bundle::unpack(archive, folder.path())?;
        Ok(Unpacked { folder, listing })
    }

    fn staging(&self) -> io::Result<tempfile::TempDir> {
        DirBuilder::new().mode(0o700).recursive(true).create(&self.root)?;
        tempfile::Builder::new()
            .prefix("unpacking-")
            .tempdir_in(&self.root)
    }

    /// Keeps an unpacked archive under its digest; the content that is there already wins.
    pub(super) fn keep(&self, unpacked: Unpacked) -> io::Result<PathBuf> {
        let digest = unpacked.listing.digest();
        let path = self.path(&digest);
        match fs::rename(unpacked.folder.path(), &path) {
            // The name has moved away; there is nothing left to remove.
            Ok(()) => drop(unpacked.folder.keep()),
            Err(_) if path.is_dir() => {}
            Err(error) => return Err(error),
        }
        self.touch(digest);
        Ok(path)
    }

    /// The folder of this content, if it is here.
    pub(super) fn find(&self, digest: &Digest) -> Option<PathBuf> {
        let path = self.path(digest);
        path.is_dir().then(|| {
            self.touch(*digest);
            path
        })
    }

    fn path(&self, digest: &Digest) -> PathBuf {
        self.root.join(digest.hex())
    }

    fn touch(&self, digest: Digest) {
        self.used
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(digest, Instant::now());
    }

    /// The contents that nobody here has used of late.
    pub(super) fn idle(&self) -> io::Result<Vec<Digest>> {
        let used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        let mut idle = Vec::new();
        for entry in entries(&self.root)? {
            let digest = entry
                .file_name()
                .to_str()
                .and_then(|name| format!("sha256:{name}").parse().ok());
            if let Some(digest) = digest
                && used.get(&digest).is_none_or(|at| at.elapsed() > USED_RECENTLY)
                && is_old(&entry)
            {
                idle.push(digest);
            }
        }
        Ok(idle)
    }

    /// Removes a content.
    pub(super) fn evict(&self, digest: &Digest) -> io::Result<()> {
        self.used
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .remove(digest);
        // Renamed first: nobody finds half a folder under its digest.
        let doomed = self.staging()?;
        fs::rename(self.path(digest), doomed.path().join("skill"))
    }

    /// Removes what a killed process left half unpacked.
    pub(super) fn sweep(&self) -> io::Result<()> {
        for entry in entries(&self.root)? {
            if entry.file_name().to_string_lossy().starts_with("unpacking-") && is_old(&entry) {
                fs::remove_dir_all(entry.path())?;
            }
        }
        Ok(())
    }
}

fn entries(root: &Path) -> io::Result<Vec<fs::DirEntry>> {
    match fs::read_dir(root) {
        Ok(entries) => entries.collect(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(error),
    }
}

fn is_old(entry: &fs::DirEntry) -> bool {
    let modified = entry.metadata().and_then(|metadata| metadata.modified());
    // Content has a fixed time long ago; a folder that is being filled has a fresh one.
    modified.is_ok_and(|at| {
        SystemTime::now()
            .duration_since(at)
            .is_ok_and(|age| age > USED_RECENTLY)
    })
}
