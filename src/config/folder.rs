//! The data folder: private to one user, with all stored data.

use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::error::Error;
use super::key_file;
use super::privacy;
use crate::auth::ApiKey;
use crate::limits;
use crate::secret::MasterKey;

#[derive(Clone, Debug)]
pub struct DataFolder {
    path: PathBuf,
}

/// Held while the first key is created.
#[derive(Debug)]
pub struct FirstKeyLock(#[expect(dead_code, reason = "the lock is held by the open file")] fs::File);

const SETTING: &str = "data_dir";
const ADMIN_KEY: &str = "admin.key";

/// The default data folder.
pub(super) fn default_path() -> Result<PathBuf, Error> {
    privacy::default_path()
        .ok_or_else(|| Error::new(SETTING, "this user has no home folder; set SKILLBOX_DATA_DIR"))
}

/// The administrator key in `folder`, which may not exist or belong to another user.
pub(super) fn kept_admin_key(folder: &Path) -> Result<Option<ApiKey>, Error> {
    let path = folder.join(ADMIN_KEY);
    let unreadable =
        fs::File::open(&path).is_err_and(|error| error.kind() == std::io::ErrorKind::PermissionDenied);
    if unreadable {
        Ok(None)
    } else {
        key_file::read_api_key(&path)
    }
}

impl DataFolder {
    /// Creates missing folders and rejects a folder that other users can write to (F-24, C-07).
    pub(super) fn open(path: &Path) -> Result<Self, Error> {
        make_private(path)?;
        for inside in ["cache", "packages", "tmp"] {
            make_private(&path.join(inside))?;
        }
        Ok(Self {
            path: path.to_owned(),
        })
    }

    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Warnings for the operator: the folder is private, but others may decide what its path leads to.
    #[must_use]
    pub fn doubts(&self) -> Vec<String> {
        privacy::doubts(&self.path)
    }

    #[must_use]
    pub fn admin_key_path(&self) -> PathBuf {
        self.path.join(ADMIN_KEY)
    }

    /// `None` if the file does not exist. Fails if it is not private or contains no key.
    pub fn admin_key(&self) -> Result<Option<ApiKey>, Error> {
        key_file::read_api_key(&self.admin_key_path())
    }

    /// The administrator key; generated and written if it does not exist. The caller must add it to the store.
    pub fn admin_key_or_fresh(&self) -> Result<ApiKey, Error> {
        key_file::api_key_or_fresh(&self.admin_key_path())
    }

    /// Removes a generated key that the store did not adopt.
    pub fn remove_admin_key(&self) -> Result<(), Error> {
        let path = self.admin_key_path();
        fs::remove_file(&path)
            .map_err(|error| Error::new(path.display(), format!("cannot be removed ({error})")))
    }

    /// The secret that signs links, created by the first process (T-14).
    pub fn signing_key(&self) -> Result<Vec<u8>, Error> {
        key_file::signing_key(&self.path.join("signing.key"))
    }

    /// The master key, created by the first process.
    pub fn master_key(&self) -> Result<MasterKey, Error> {
        key_file::master_key(&self.path.join("master.key"))
    }

    /// Locks the creation of the first key; waits for other processes (T-16).
    pub fn lock_first_key(&self) -> Result<FirstKeyLock, Error> {
        let path = self.path.join("admin.key.lock");
        let failed =
            |error: std::io::Error| Error::new(path.display(), format!("cannot be locked ({error})"));
        let file = key_file::create_private(&path).map_err(failed)?;
        lock_within(&file, limits::FIRST_KEY_LOCK_MAX).map_err(failed)?;
        Ok(FirstKeyLock(file))
    }
}

/// Waits for a process that creates a key, but not for one that stands still.
fn lock_within(file: &File, wait_max: Duration) -> io::Result<()> {
    let give_up = Instant::now() + wait_max;
    loop {
        match file.try_lock() {
            Err(TryLockError::WouldBlock) if Instant::now() < give_up => {
                std::thread::sleep(limits::LOCK_RETRY_AFTER);
            }
            Err(TryLockError::WouldBlock) => {
                let message = format!(
                    "another process has held its lock for {wait_max:?}; end that process, then start again"
                );
                return Err(io::Error::new(io::ErrorKind::WouldBlock, message));
            }
            locked => return Ok(locked?),
        }
    }
}

/// Creates a folder for this user only, or checks the existing one.
fn make_private(path: &Path) -> Result<(), Error> {
    if let Some(parent) = path.parent() {
        // Folders above it may be public.
        fs::create_dir_all(parent).map_err(|error| {
            Error::new(
                SETTING,
                format!(
                    "`{}` cannot be made ({error}); set SKILLBOX_DATA_DIR",
                    parent.display()
                ),
            )
        })?;
    }
    match privacy::make_folder(path) {
        Ok(()) => {}
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
        Err(error) => {
            return Err(Error::new(
                SETTING,
                format!(
                    "`{}` cannot be made ({error}); set SKILLBOX_DATA_DIR",
                    path.display()
                ),
            ));
        }
    }
    privacy::check_folder(path)
        .map_err(|problem| Error::new(SETTING, format!("`{}` {problem}", path.display())))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};

    use super::*;

    fn folder() -> (tempfile::TempDir, PathBuf) {
        let above = tempfile::tempdir().unwrap();
        let path = above.path().join("data");
        (above, path)
    }

    /// T-16: a process that stands still while it creates the key blocks no other permanently.
    #[test]
    fn wait_for_the_lock_of_the_first_key_is_limited() {
        let (_above, path) = folder();
        let data = DataFolder::open(&path).unwrap();
        let held = data.lock_first_key().unwrap();
        let second = File::open(path.join("admin.key.lock")).unwrap();
        let refused = lock_within(&second, Duration::from_millis(50)).unwrap_err();
        assert!(refused.to_string().contains("another process"), "{refused}");
        drop(held);
        lock_within(&second, Duration::from_millis(50)).unwrap();
    }

    #[test]
    fn creates_private_folders() {
        let (_above, path) = folder();
        DataFolder::open(&path).unwrap();
        for part in ["", "cache", "tmp"] {
            assert_eq!(
                fs::metadata(path.join(part)).unwrap().mode() & 0o777,
                0o700,
                "{part}"
            );
        }
        DataFolder::open(&path).unwrap();
    }

    /// F-24, C-07.
    #[test]
    fn rejects_folder_that_others_can_write() {
        let (_above, path) = folder();
        for mode in [0o777, 0o770, 0o1777] {
            fs::create_dir_all(&path).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            let refused = DataFolder::open(&path).unwrap_err().to_string();
            assert!(
                refused.starts_with("data_dir: ") && refused.contains("chmod 700"),
                "{refused}"
            );
        }
    }

    /// F-24.
    #[test]
    fn rejects_file_as_folder() {
        let (_above, path) = folder();
        fs::write(&path, "").unwrap();
        assert!(
            DataFolder::open(&path)
                .unwrap_err()
                .to_string()
                .contains("not a folder")
        );
        assert!(DataFolder::open(&path.join("below")).is_err());
    }

    /// F-24.
    #[test]
    fn rejects_data_folder_of_another_user() {
        let (_above, mut path) = folder();
        if rustix::process::geteuid().is_root() {
            fs::create_dir(&path).unwrap();
            std::os::unix::fs::chown(&path, Some(65534), None).unwrap();
        } else {
            path = PathBuf::from("/");
        }
        let refused = DataFolder::open(&path).unwrap_err().to_string();
        assert!(
            refused.starts_with("data_dir: ") && refused.contains("belongs to user"),
            "{refused}"
        );
    }

    /// F-24.
    #[test]
    fn rejects_read_only_location() {
        let refused = DataFolder::open(Path::new("/proc/skillbox"))
            .unwrap_err()
            .to_string();
        assert!(
            refused.starts_with("data_dir: `/proc/skillbox` cannot be made"),
            "{refused}"
        );
    }

    #[test]
    fn creates_keys_once() {
        let (_above, path) = folder();
        let folder = DataFolder::open(&path).unwrap();
        assert_eq!(folder.admin_key().unwrap(), None);
        let key = folder.admin_key_or_fresh().unwrap();
        assert_eq!(folder.admin_key_or_fresh().unwrap(), key);
        assert_eq!(folder.signing_key().unwrap(), folder.signing_key().unwrap());
        let [one, two] = [0; 2].map(|_| folder.master_key().unwrap().reveal());
        assert_eq!(one, two);
        for name in ["admin.key", "signing.key", "master.key"] {
            assert_eq!(
                fs::metadata(path.join(name)).unwrap().mode() & 0o777,
                0o600,
                "{name}"
            );
        }
    }

    #[test]
    fn link_and_open_parent_are_doubtful() {
        let top = tempfile::tempdir().unwrap();
        let doubts = |path: &Path| DataFolder::open(path).unwrap().doubts();
        let own = top.path().join("own");
        assert!(doubts(&own).is_empty());
        let link = top.path().join("link");
        std::os::unix::fs::symlink(&own, &link).unwrap();
        assert!(doubts(&link)[0].contains("is a link"));
        let open = top.path().join("open");
        fs::create_dir(&open).unwrap();
        fs::set_permissions(&open, fs::Permissions::from_mode(0o777)).unwrap();
        assert!(doubts(&open.join("data"))[0].contains("everybody can write"));
        fs::set_permissions(&open, fs::Permissions::from_mode(0o1777)).unwrap();
        assert!(doubts(&open.join("data")).is_empty());
    }
}
