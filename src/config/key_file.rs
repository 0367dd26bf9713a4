//! Key files: private, and created once even if several processes start at the same time.

use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::path::Path;

use zeroize::Zeroizing;

use super::error::Error;
use super::privacy;
use crate::auth::ApiKey;
use crate::limits;
use crate::secret::{InvalidMasterKey, MasterKey};

/// The secret in `path`; generated if it does not exist.
pub(super) fn signing_key(path: &Path) -> Result<Vec<u8>, Error> {
    let secret = match read(path)? {
        Some(secret) => secret,
        None => write_once(path, &random()?)?,
    };
    if secret.len() < limits::LINK_SECRET_BYTES_MIN {
        let problem = format!(
            "contains fewer than {} bytes; delete it to generate a new secret, which invalidates existing links",
            limits::LINK_SECRET_BYTES_MIN
        );
        return Err(Error::new(path.display(), problem));
    }
    Ok(secret)
}

/// The master key in `path`; generated if it does not exist.
pub(super) fn master_key(path: &Path) -> Result<MasterKey, Error> {
    let bytes = match read(path)? {
        Some(bytes) => bytes,
        None => write_once(
            path,
            format!("{}\n", *MasterKey::from_random(random()?).reveal()).as_bytes(),
        )?,
    };
    let bytes = Zeroizing::new(bytes);
    let text = std::str::from_utf8(&bytes).unwrap_or_default();
    text.parse().map_err(|error: InvalidMasterKey| {
        let problem =
            format!("{error}; restore the previous key, or delete the file and set all secrets again");
        Error::new(path.display(), problem)
    })
}

/// The API key in `path`, if the file exists.
pub(super) fn read_api_key(path: &Path) -> Result<Option<ApiKey>, Error> {
    read(path)?.map(|bytes| api_key(path, &bytes)).transpose()
}

/// The API key in `path`; generated if it does not exist.
pub(super) fn api_key_or_fresh(path: &Path) -> Result<ApiKey, Error> {
    if let Some(key) = read_api_key(path)? {
        return Ok(key);
    }
    let fresh = ApiKey::from_random(random()?);
    let written = write_once(path, format!("{}\n", fresh.reveal()).as_bytes())?;
    api_key(path, &written)
}

/// Opens `path` for writing, for this user only.
pub(super) fn create_private(path: &Path) -> io::Result<File> {
    privacy::private_file().create(true).truncate(false).open(path)
}

fn api_key(path: &Path, bytes: &[u8]) -> Result<ApiKey, Error> {
    let text = std::str::from_utf8(bytes).unwrap_or_default().trim();
    text.parse().map_err(|_| {
        Error::new(
            path.display(),
            "contains no API key; write one to it, or delete it",
        )
    })
}

fn random() -> Result<[u8; 32], Error> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes).map_err(|error| {
        Error::new(
            "random source",
            format!("the operating system returns no random bytes ({error})"),
        )
    })?;
    Ok(bytes)
}

fn read(path: &Path) -> Result<Option<Vec<u8>>, Error> {
    let failed = |error: io::Error| Error::new(path.display(), format!("cannot be read ({error})"));
    let file = match privacy::open_to_check(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(failed(error)),
    };
    privacy::check_file(path, &file)
        .map_err(failed)?
        .map_err(|problem| Error::new(path.display(), problem))?;
    let mut bytes = Vec::new();
    file.take(limits::KEY_FILE_BYTES_MAX)
        .read_to_end(&mut bytes)
        .map_err(failed)?;
    Ok(Some(bytes))
}

/// Writes a file atomically and never replaces it. Returns its content, which may be another process's.
fn write_once(path: &Path, content: &[u8]) -> Result<Vec<u8>, Error> {
    let failed = |error: io::Error| Error::new(path.display(), format!("cannot be written ({error})"));
    let folder = path.parent().unwrap_or(Path::new("/"));
    let mut temporary = tempfile::NamedTempFile::new_in(folder).map_err(failed)?;
    temporary
        .write_all(content)
        .and_then(|()| temporary.as_file().sync_all())
        .map_err(failed)?;
    match temporary.persist_noclobber(path) {
        Ok(_) => {
            privacy::sync_folder(folder).map_err(failed)?;
            Ok(content.to_vec())
        }
        Err(error) if error.error.kind() == io::ErrorKind::AlreadyExists => {
            read(path)?.ok_or_else(|| Error::new(path.display(), "was deleted while it was read; try again"))
        }
        Err(error) => Err(failed(error.error)),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    /// A start hung on it.
    #[test]
    fn rejects_fifo_without_waiting() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("admin.key");
        let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
        rustix::fs::mknodat(rustix::fs::CWD, &path, rustix::fs::FileType::Fifo, mode, 0).unwrap();
        let refused = read_api_key(&path).unwrap_err().to_string();
        assert!(refused.contains("not a regular file"), "{refused}");
    }

    /// T-14.
    #[test]
    fn rejects_short_signing_secret() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("signing.key");
        create_private(&path).unwrap().write_all(b"short").unwrap();
        assert!(signing_key(&path).is_err());
        create_private(&path).unwrap().set_len(0).unwrap();
        assert!(signing_key(&path).is_err());
    }

    #[test]
    fn rejects_readable_key_file_with_remedy() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("admin.key");
        api_key_or_fresh(&path).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        assert!(read_api_key(&path).unwrap_err().to_string().contains("chmod 600"));
        let path = folder.path().join("master.key");
        master_key(&path).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        assert!(master_key(&path).unwrap_err().to_string().contains("chmod 600"));
    }

    #[test]
    fn rejects_invalid_key_file_without_replacing_or_showing_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("master.key");
        create_private(&path).unwrap().write_all(b"not-a-key").unwrap();
        let refused = master_key(&path).unwrap_err().to_string();
        assert!(
            refused.contains("master.key") && !refused.contains("not-a-key"),
            "{refused}"
        );
        assert_eq!(fs::read(&path).unwrap(), b"not-a-key");
    }

    /// T-16: all of several concurrent starts use the same key.
    #[test]
    fn concurrent_starts_create_one_key() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("admin.key");
        let keys: Vec<_> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..8)
                .map(|_| scope.spawn(|| api_key_or_fresh(&path).unwrap()))
                .collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert!(keys.iter().all(|key| *key == keys[0]));
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }
}
