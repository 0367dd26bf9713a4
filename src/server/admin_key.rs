//! The administrator key of an installation, created once by the first process and stored in the data folder (T-16).

use crate::auth::ApiKey;
use crate::config::DataFolder;
use crate::engine::Engine;
use crate::error;
use crate::server::Error;

/// State of the administrator key.
#[derive(Debug)]
pub enum AdminKey {
    /// Created by this process.
    Created(ApiKey),
    /// Valid, from the data folder.
    Existing(ApiKey),
    /// Keys exist, but the data folder holds no valid one: it was revoked, rotated or removed.
    Unknown,
}

/// Finds or creates the administrator key. It is written to its file before the store, so a crash in between loses nothing.
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
    if engine.keys().adopt_first(&key).await? {
        return Ok(AdminKey::Created(key));
    }
    if !was_there {
        folder.remove_admin_key()?;
    }
    Ok(AdminKey::Unknown)
}

/// Creates a new administrator key if the one in the data folder is lost or revoked. The owner of the folder also
/// owns the store, so this needs no key.
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
    Ok(engine.keys().adopt_recovered(&key).await?)
}

async fn valid_key(engine: &Engine, folder: &DataFolder) -> Result<Option<ApiKey>, Error> {
    let Some(key) = folder.admin_key()? else {
        return Ok(None);
    };
    match engine.keys().authenticate(key.reveal()).await {
        Ok(_) => Ok(Some(key)),
        Err(error) if error.code() == error::Code::Unauthenticated => Ok(None),
        Err(error) => Err(error.into()),
    }
}
