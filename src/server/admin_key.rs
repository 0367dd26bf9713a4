//! The administrator's key of an installation: minted once, whoever starts first, and kept in the data folder (T-16).

use crate::auth::ApiKey;
use crate::config::DataFolder;
use crate::engine::Engine;
use crate::error;
use crate::server::Error;

/// What is known of the administrator's key.
#[derive(Debug)]
pub enum AdminKey {
    /// This process made it.
    Created(ApiKey),
    /// It was there, and it is good.
    Existing(ApiKey),
    /// There are keys, but none in the data folder that is good: it was revoked, rotated or taken away.
    Unknown,
}

/// Finds or makes the administrator's key.
///
/// It is written to its file before the store knows it, so a crash in between loses nothing: the next start goes on.
///
/// # Errors
///
/// The file or the store cannot be used.
pub async fn find_or_create_admin_key(engine: &Engine, folder: &DataFolder) -> Result<AdminKey, Error> {
    if let Some(key) = valid_key(engine, folder).await? {
        return Ok(AdminKey::Existing(key));
    }
    let _one = folder.lock_first_key()?;
    if let Some(key) = valid_key(engine, folder).await? {
        return Ok(AdminKey::Existing(key));
    }
    let was_there = folder.admin_key()?.is_some();
    let key = folder.admin_key_or_fresh()?;
    if engine.adopt_first_key(&key).await? {
        return Ok(AdminKey::Created(key));
    }
    if !was_there {
        folder.remove_admin_key()?;
    }
    Ok(AdminKey::Unknown)
}

/// Makes a fresh administrator's key where the one in the data folder is lost or ended. Whoever owns the folder may: the store is theirs.
///
/// # Errors
///
/// The folder holds a good key, or the file or the store cannot be used.
pub async fn recover_key(engine: &Engine, folder: &DataFolder) -> Result<(), Error> {
    let _one = folder.lock_first_key()?;
    if valid_key(engine, folder).await?.is_some() {
        let file = folder.admin_key_path();
        let message = format!(
            "`{}` holds a valid key; use it, or remove the file first",
            file.display()
        );
        return Err(error::Error::new(error::Code::Conflict, message).into());
    }
    if folder.admin_key()?.is_some() {
        folder.remove_admin_key()?;
    }
    let key = folder.admin_key_or_fresh()?;
    Ok(engine.adopt_recovered_key(&key).await?)
}

async fn valid_key(engine: &Engine, folder: &DataFolder) -> Result<Option<ApiKey>, Error> {
    let Some(key) = folder.admin_key()? else {
        return Ok(None);
    };
    match engine.authenticate(key.reveal()).await {
        Ok(_) => Ok(Some(key)),
        Err(error) if error.code() == error::Code::Unauthenticated => Ok(None),
        Err(error) => Err(error.into()),
    }
}
