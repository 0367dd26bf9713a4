//! One running process: what it leaves behind is recognised by a lock that nobody holds any more.
//!
//! A server and command lines may share one data folder. Each holds a lock on a file of its own for life; the kernel
//! lets go of it however the process ends, so a lock that can be taken belongs to the dead.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use crate::ids::InstanceId;

/// This process, until it is dropped.
#[derive(Debug)]
pub struct Instance {
    id: InstanceId,
    folder: PathBuf,
    /// Held for life.
    _lock: File,
}

impl Instance {
    /// Registers this process in `folder`, which must exist and be private.
    pub fn register(folder: &Path) -> io::Result<Self> {
        let id = InstanceId::generate();
        // Locked under another name first: a file that is seen by its real name is locked already.
        let making = folder.join(format!("{id}.making"));
        let lock = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&making)?;
        lock.try_lock().map_err(io::Error::from)?;
        fs::rename(&making, path(folder, id))?;
        Ok(Self {
            id,
            folder: folder.to_owned(),
            _lock: lock,
        })
    }

    /// Its id.
    #[must_use]
    pub fn id(&self) -> InstanceId {
        self.id
    }

    /// Processes that have registered and are dead.
    pub(super) fn dead(&self) -> io::Result<Vec<InstanceId>> {
        let mut dead = Vec::new();
        for entry in fs::read_dir(&self.folder)? {
            let name = entry?.file_name();
            let id = name
                .to_str()
                .and_then(|name| name.strip_suffix(".lock"))
                .and_then(|id| id.parse().ok());
            if let Some(id) = id.filter(|id| *id != self.id)
                && !self.is_alive(id)
            {
                dead.push(id);
            }
        }
        Ok(dead)
    }

    /// Whether the process of this id, which used this folder, still lives. One that never registered here counts as dead.
    pub(super) fn is_alive(&self, id: InstanceId) -> bool {
        if id == self.id {
            return true;
        }
        match File::open(path(&self.folder, id)) {
            Ok(file) => matches!(file.try_lock(), Err(TryLockError::WouldBlock)),
            Err(_) => false,
        }
    }

    /// Forgets a dead process once nothing of it is left.
    pub(super) fn forget(&self, id: InstanceId) -> io::Result<()> {
        fs::remove_file(path(&self.folder, id))
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        // A file that stays behind is found unlocked and forgotten by the next process.
        let _ = fs::remove_file(path(&self.folder, self.id));
    }
}

fn path(folder: &Path, id: InstanceId) -> PathBuf {
    folder.join(format!("{id}.lock"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dropped_instance_leaves_nothing_and_a_live_one_is_not_dead() {
        let folder = tempfile::tempdir().unwrap();
        let first = Instance::register(folder.path()).unwrap();
        let second = Instance::register(folder.path()).unwrap();
        assert!(second.is_alive(first.id()));
        assert_eq!(second.dead().unwrap(), []);
        drop(first);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn an_unlocked_file_is_a_dead_process() {
        let folder = tempfile::tempdir().unwrap();
        let here = Instance::register(folder.path()).unwrap();
        let gone = InstanceId::generate();
        fs::write(path(folder.path(), gone), "").unwrap();
        assert_eq!(here.dead().unwrap(), [gone]);
        here.forget(gone).unwrap();
        assert_eq!(here.dead().unwrap(), []);
    }
}
