//! One running process: what it leaves behind is recognised by a lock that nobody holds any more.
//!
//! A server and command lines may share one data folder. Each holds a lock on a file of its own for life; the kernel
//! lets go of it however the process ends, so a lock that can be taken belongs to the dead.

use std::fs::{self, File, OpenOptions};
use std::io;
#[cfg(unix)]
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use crate::ids::InstanceId;
use crate::limits;

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
        let making = path(folder, id, MAKING);
        let mut options = OpenOptions::new();
        options.write(true).create_new(true);
        // On Windows the file inherits the ACL of the folder.
        #[cfg(unix)]
        options.mode(0o600);
        let lock = options.open(&making)?;
        lock.try_lock().map_err(io::Error::from)?;
        fs::rename(&making, path(folder, id, LOCK))?;
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
            let Some((id, ending)) = name.to_str().and_then(|name| name.split_once('.')) else {
                continue;
            };
            match (id.parse(), ending) {
                (Ok(id), LOCK) if !self.is_alive(id) => dead.push(id),
                (Ok(id), MAKING) => self.clear(id)?,
                _ => {}
            }
        }
        Ok(dead)
    }

    /// Whether the process of this id, which used this folder, still lives. One that never registered here counts as dead;
    /// one that cannot be looked at, for want of descriptors say, does not: its executions would be taken from it.
    pub(super) fn is_alive(&self, id: InstanceId) -> bool {
        if id == self.id {
            return true;
        }
        match File::open(path(&self.folder, id, LOCK)) {
            Ok(file) => file.try_lock().is_err(),
            Err(error) => error.kind() != io::ErrorKind::NotFound,
        }
    }

    /// Removes the file of a process that died while it registered.
    fn clear(&self, id: InstanceId) -> io::Result<()> {
        let path = path(&self.folder, id, MAKING);
        let born = fs::metadata(&path).and_then(|metadata| metadata.modified());
        match born.map(|born| born.elapsed()) {
            Ok(Ok(age)) if age > limits::REGISTERING_MAX => fs::remove_file(path),
            Ok(_) => Ok(()),
            // It has registered meanwhile.
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Forgets a dead process once nothing of it is left.
    pub(super) fn forget(&self, id: InstanceId) -> io::Result<()> {
        match fs::remove_file(path(&self.folder, id, LOCK)) {
            // Another process was faster.
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            Ok(()) | Err(_) => Ok(()),
        }
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        // A file that stays behind is found unlocked and forgotten by the next process.
        let _ = fs::remove_file(path(&self.folder, self.id, LOCK));
    }
}

/// How the names of files end that are locked for life.
const LOCK: &str = "lock";
/// … and of those that are about to be.
const MAKING: &str = "making";

fn path(folder: &Path, id: InstanceId, ending: &str) -> PathBuf {
    folder.join(format!("{id}.{ending}"))
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
        fs::write(path(folder.path(), gone, LOCK), "").unwrap();
        assert_eq!(here.dead().unwrap(), [gone]);
        here.forget(gone).unwrap();
        here.forget(gone).unwrap();
        assert_eq!(here.dead().unwrap(), []);
    }

    #[test]
    fn a_process_that_cannot_be_looked_at_is_not_dead() {
        let folder = tempfile::tempdir().unwrap();
        let here = Instance::register(folder.path()).unwrap();
        let odd = InstanceId::generate();
        // Opening a link that leads to itself fails, whoever we are.
        std::os::unix::fs::symlink(path(folder.path(), odd, LOCK), path(folder.path(), odd, LOCK)).unwrap();
        assert!(here.is_alive(odd));
        assert_eq!(here.dead().unwrap(), []);
    }

    #[test]
    fn a_process_that_died_while_it_registered_leaves_nothing_for_long() {
        let folder = tempfile::tempdir().unwrap();
        let here = Instance::register(folder.path()).unwrap();
        let [old, fresh] = [(); 2].map(|()| path(folder.path(), InstanceId::generate(), MAKING));
        fs::write(&fresh, "").unwrap();
        let long_ago = std::time::SystemTime::now() - limits::REGISTERING_MAX * 2;
        File::create(&old).unwrap().set_modified(long_ago).unwrap();
        assert_eq!(here.dead().unwrap(), []);
        assert!(fresh.exists() && !old.exists());
    }
}
