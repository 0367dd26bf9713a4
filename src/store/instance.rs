//! The processes that use one database: which are alive, and which died and left executions and sandboxes.
//!
//! Each process holds a lock on a file of its own, in a folder beside the database file, for life. The kernel releases the
//! lock however the process ends, so a lock that can be taken belongs to a dead process.

use std::fs::{self, File, OpenOptions};
use std::io;
#[cfg(unix)]
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use crate::ids::InstanceId;
use crate::limits;

/// This process among those that use a database, registered until it is dropped.
#[derive(Debug)]
pub struct Instance {
    id: InstanceId,
    /// Where processes register, then where older versions of this program did.
    folders: Vec<PathBuf>,
    /// Held for life.
    _lock: File,
}

/// A process that cannot register must not run: other processes would take it for dead.
#[derive(Debug, thiserror::Error)]
#[error("this process cannot register in `{}`, beside the database: {reason}", folder.display())]
pub struct CannotRegister {
    folder: PathBuf,
    reason: String,
}

impl Instance {
    /// Registers this process in the folder `instances` beside the database file, which is made if it is missing.
    pub fn register_beside(database: &Path) -> Result<Self, CannotRegister> {
        // Beside the file that a symbolic link leads to, where SQLite's log lies, too.
        let database = fs::canonicalize(database).unwrap_or_else(|_| database.to_owned());
        let folder = database.with_file_name("instances");
        let registered = open_private(&folder, &database)
            .and_then(|()| lock_own_file(&folder, &database).map_err(|error| unwritable(&error)));
        match registered {
            Ok((id, lock)) => Ok(Self {
                id,
                folders: vec![folder],
                _lock: lock,
            }),
            Err(reason) => Err(CannotRegister { folder, reason }),
        }
    }

    /// Recognizes the locks of older versions of this program, which registered in their data folder.
    #[must_use]
    pub fn recognizing_locks_in(mut self, data_folder: &Path) -> Self {
        let folder = fs::canonicalize(data_folder.join("instances"));
        self.folders
            .extend(folder.ok().filter(|folder| *folder != self.folders[0]));
        self
    }

    #[must_use]
    pub fn id(&self) -> InstanceId {
        self.id
    }

    /// The processes that registered and are dead.
    pub fn dead(&self) -> io::Result<Vec<InstanceId>> {
        let mut dead = Vec::new();
        for folder in &self.folders {
            for entry in fs::read_dir(folder)? {
                let name = entry?.file_name();
                let Some((id, ending)) = name.to_str().and_then(|name| name.split_once('.')) else {
                    continue;
                };
                match (id.parse(), ending) {
                    (Ok(id), LOCKED) if !self.is_alive(id) => dead.push(id),
                    (Ok(id), REGISTERING) => remove_if_old(&path(folder, id, REGISTERING))?,
                    _ => {}
                }
            }
        }
        Ok(dead)
    }

    /// Whether other processes are registered, dead ones that are not forgotten yet included.
    #[must_use]
    pub fn has_others(&self) -> bool {
        let own = path(&self.folders[0], self.id, LOCKED);
        let is_other = |path: PathBuf| path.extension().is_some_and(|ending| ending == LOCKED) && path != own;
        let entries = self.folders.iter().filter_map(|folder| fs::read_dir(folder).ok());
        entries.flatten().flatten().any(|entry| is_other(entry.path()))
    }

    /// Whether this process is alive. One that never registered counts as dead. One whose lock cannot be examined, because
    /// file descriptors have run out for example, counts as alive: its executions would be taken from it.
    #[must_use]
    pub fn is_alive(&self, id: InstanceId) -> bool {
        let is_locked = |folder: &PathBuf| match File::open(path(folder, id, LOCKED)) {
            Ok(file) => file.try_lock().is_err(),
            Err(error) => error.kind() != io::ErrorKind::NotFound,
        };
        id == self.id || self.folders.iter().any(is_locked)
    }

    /// Forgets a dead process once nothing of it is left.
    pub fn forget(&self, id: InstanceId) -> io::Result<()> {
        for folder in &self.folders {
            remove(&path(folder, id, LOCKED))?;
        }
        Ok(())
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        // If this fails, the next process finds the file unlocked and forgets it.
        let _ = fs::remove_file(path(&self.folders[0], self.id, LOCKED));
    }
}

/// How the names of the files end that are locked for life.
const LOCKED: &str = "lock";
/// How they end until they are locked.
const REGISTERING: &str = "making";

fn path(folder: &Path, id: InstanceId, ending: &str) -> PathBuf {
    folder.join(format!("{id}.{ending}"))
}

/// Makes the folder of lock files if it is missing, and rejects one that other users can change.
fn open_private(folder: &Path, database: &Path) -> Result<(), String> {
    let mut builder = fs::DirBuilder::new();
    // On Windows the folder and its files inherit the ACL of the folder they lie in.
    #[cfg(unix)]
    builder.mode(0o700);
    match builder.create(folder) {
        Ok(()) => give_to_owner(|| File::open(folder), database),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        Err(error) => return Err(unwritable(&error)),
    }
    let metadata = fs::metadata(folder).map_err(|error| unwritable(&error))?;
    if !metadata.is_dir() {
        return Err("it is not a folder; remove it, or set SKILLBOX_DB_DSN to a file elsewhere".to_owned());
    }
    #[cfg(unix)]
    {
        let (owner, user) = (metadata.uid(), rustix::process::geteuid().as_raw());
        if owner != user && fs::metadata(database).map_or(true, |database| owner != database.uid()) {
            return Err(format!(
                "it belongs to user {owner}, not to {user}; run `chown {user}` on it, or set SKILLBOX_DB_DSN to a file in another folder"
            ));
        }
        if metadata.mode() & 0o022 != 0 {
            return Err("it can be written by others; run `chmod 700` on it".to_owned());
        }
    }
    Ok(())
}

fn unwritable(error: &io::Error) -> String {
    format!(
        "{error}; run as the user that owns the database and may write to its folder, or set SKILLBOX_DB_DSN to a file elsewhere"
    )
}

fn lock_own_file(folder: &Path, database: &Path) -> io::Result<(InstanceId, File)> {
    let id = InstanceId::generate();
    // Renamed once it is locked: other processes never find it unlocked.
    let registering = path(folder, id, REGISTERING);
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    options.mode(0o600);
    let lock = options.open(&registering)?;
    give_to_owner(|| lock.try_clone(), database);
    lock.try_lock().map_err(io::Error::from)?;
    fs::rename(&registering, path(folder, id, LOCKED))?;
    Ok((id, lock))
}

/// As SQLite does with its log: what root makes must not lock out the owner of the database. Failing is without effect here:
/// the owner's own processes report a folder that they cannot use.
#[cfg(unix)]
fn give_to_owner(made: impl FnOnce() -> io::Result<File>, database: &Path) {
    if rustix::process::geteuid().is_root()
        && let Ok(owner) = fs::metadata(database)
        && owner.uid() != 0
    {
        let _ = made().and_then(|made| std::os::unix::fs::fchown(made, Some(owner.uid()), Some(owner.gid())));
    }
}

#[cfg(not(unix))]
fn give_to_owner(_made: impl FnOnce() -> io::Result<File>, _database: &Path) {}

/// Removes the file of a process that died while it registered.
fn remove_if_old(path: &Path) -> io::Result<()> {
    let modified = fs::metadata(path).and_then(|metadata| metadata.modified());
    match modified.map(|modified| modified.elapsed()) {
        Ok(Ok(age)) if age > limits::REGISTERING_MAX => remove(path),
        Ok(_) => Ok(()),
        // It has registered meanwhile.
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    }
}

/// Removes a file, or finds that another process did.
fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        Ok(()) | Err(_) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt as _, chown, symlink};

    use super::*;

    fn fresh() -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let database = folder.path().join("skillbox.db");
        File::create(&database).unwrap();
        (folder, database)
    }

    fn register(database: &Path) -> Instance {
        Instance::register_beside(database).unwrap()
    }

    fn rejection(database: &Path) -> String {
        let rejected = Instance::register_beside(database).unwrap_err().to_string();
        let folder = database.with_file_name("instances");
        assert!(rejected.contains(folder.to_str().unwrap()), "{rejected}");
        rejected
    }

    #[test]
    fn dropped_instance_is_removed_and_live_one_is_not_dead() {
        let (folder, database) = fresh();
        let (first, second) = (register(&database), register(&database));
        assert!(second.is_alive(first.id()));
        assert!(second.has_others());
        assert_eq!(second.dead().unwrap(), []);
        drop(first);
        assert!(!second.has_others());
        assert_eq!(fs::read_dir(folder.path().join("instances")).unwrap().count(), 1);
    }

    #[test]
    fn an_unlocked_file_is_a_dead_process() {
        let (_folder, database) = fresh();
        let own = register(&database);
        let dead = InstanceId::generate();
        fs::write(path(&own.folders[0], dead, LOCKED), "").unwrap();
        assert_eq!(own.dead().unwrap(), [dead]);
        own.forget(dead).unwrap();
        own.forget(dead).unwrap();
        assert_eq!(own.dead().unwrap(), []);
    }

    #[test]
    fn a_process_whose_lock_cannot_be_examined_is_not_dead() {
        let (_folder, database) = fresh();
        let own = register(&database);
        let odd = InstanceId::generate();
        // Opening a link that leads to itself fails, also for root.
        symlink(
            path(&own.folders[0], odd, LOCKED),
            path(&own.folders[0], odd, LOCKED),
        )
        .unwrap();
        assert!(own.is_alive(odd));
        assert_eq!(own.dead().unwrap(), []);
    }

    #[test]
    fn removes_files_of_a_process_that_died_while_registering() {
        let (_folder, database) = fresh();
        let own = register(&database);
        let [old, fresh] = [(); 2].map(|()| path(&own.folders[0], InstanceId::generate(), REGISTERING));
        fs::write(&fresh, "").unwrap();
        let long_ago = std::time::SystemTime::now() - limits::REGISTERING_MAX * 2;
        File::create(&old).unwrap().set_modified(long_ago).unwrap();
        assert_eq!(own.dead().unwrap(), []);
        assert!(fresh.exists() && !old.exists());
    }

    /// Older versions register in their data folder, wherever the database lies.
    #[test]
    fn an_old_lock_in_the_data_folder_counts_as_alive_until_it_is_released() {
        let ((_folder, database), data) = (fresh(), tempfile::tempdir().unwrap());
        let instances = data.path().join("instances");
        fs::create_dir(&instances).unwrap();
        let old = InstanceId::generate();
        let lock = File::create(path(&instances, old, LOCKED)).unwrap();
        lock.lock().unwrap();
        let own = register(&database).recognizing_locks_in(data.path());
        assert!(own.is_alive(old));
        assert_eq!(own.dead().unwrap(), []);
        drop(lock);
        assert!(!own.is_alive(old));
        assert_eq!(own.dead().unwrap(), [old]);
        own.forget(old).unwrap();
        assert_eq!(fs::read_dir(&instances).unwrap().count(), 0);
    }

    #[test]
    fn the_default_data_folder_is_searched_once() {
        let (folder, database) = fresh();
        let own = register(&database).recognizing_locks_in(folder.path());
        assert_eq!(own.folders.len(), 1);
        let nowhere = register(&database).recognizing_locks_in(Path::new("/nonexistent"));
        assert_eq!(nowhere.folders.len(), 1);
    }

    #[test]
    fn processes_register_beside_the_file_that_a_link_leads_to() {
        let ((_folder, database), links) = (fresh(), tempfile::tempdir().unwrap());
        let link = links.path().join("link.db");
        symlink(&database, &link).unwrap();
        let (own, other) = (register(&link), register(&database));
        assert!(own.is_alive(other.id()) && other.is_alive(own.id()));
        assert!(!links.path().join("instances").exists());
    }

    /// F-24, C-07.
    #[test]
    fn the_folder_is_private_and_one_that_others_can_write_is_rejected() {
        let (folder, database) = fresh();
        let instances = folder.path().join("instances");
        let own = register(&database);
        assert_eq!(fs::metadata(&instances).unwrap().mode() & 0o777, 0o700);
        let lock = path(&instances, own.id(), LOCKED);
        assert_eq!(fs::metadata(lock).unwrap().mode() & 0o777, 0o600);
        for mode in [0o777, 0o770, 0o1777] {
            fs::set_permissions(&instances, fs::Permissions::from_mode(mode)).unwrap();
            assert!(rejection(&database).contains("chmod 700"));
        }
        drop(own);
        fs::remove_dir(&instances).unwrap();
        fs::write(&instances, "").unwrap();
        assert!(rejection(&database).contains("not a folder"));
    }

    #[test]
    fn names_folder_that_cannot_be_created_with_remedy() {
        let rejected = rejection(Path::new("/proc/skillbox.db"));
        assert!(rejected.contains("SKILLBOX_DB_DSN"), "{rejected}");
    }

    /// F-24: root's processes do not lock out the owner of the database, and no stranger's folder is used.
    #[test]
    fn root_leaves_the_folder_and_its_lock_to_the_owner_of_the_database() {
        if !rustix::process::geteuid().is_root() {
            return;
        }
        let (folder, database) = fresh();
        chown(&database, Some(65534), Some(65534)).unwrap();
        let own = register(&database);
        let instances = folder.path().join("instances");
        for made in [&instances, &path(&instances, own.id(), LOCKED)] {
            assert_eq!(fs::metadata(made).unwrap().uid(), 65534);
        }
        drop(own);
        chown(&instances, Some(65533), None).unwrap();
        assert!(rejection(&database).contains("belongs to user 65533"));
    }
}
