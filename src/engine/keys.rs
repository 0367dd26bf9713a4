//! API keys: made, listed, revoked, rotated. A secret is told once.

use crate::auth::{ApiKey, Caller, KeyRecord, Scope, Scopes};
use crate::engine::{Engine, PageRequest, clock, require, rows};
use crate::error::{Code, Error};
use crate::ids::{KeyId, Tenant};
use crate::limits;
use crate::store::Page;

/// A key as asked for.
#[derive(Debug)]
pub struct NewKey {
    /// What its owner calls it.
    pub name: String,
    /// What it may do.
    pub scopes: Scopes,
    /// Whose it is; the caller's if `None`. Only an administrator of the default tenant may name another.
    pub tenant: Option<Tenant>,
    /// When it stops working.
    pub expires_at: Option<jiff::Timestamp>,
}

impl Engine {
    /// Makes a key.
    pub async fn create_key(&self, caller: &Caller, new: NewKey) -> Result<(KeyRecord, ApiKey), Error> {
        require(caller, &[Scope::Admin])?;
        let tenant = new.tenant.clone().unwrap_or_else(|| caller.tenant().clone());
        if tenant != *caller.tenant() && *caller.tenant() != Tenant::default_tenant() {
            return Err(Error::new(
                Code::Forbidden,
                "tenant: only an administrator of tenant `default` may make keys for another",
            ));
        }
        check_name(&new.name)?;
        if new.scopes.is_empty() {
            return Err(Error::invalid(
                "scopes: name at least one of `run`, `skills`, `admin`",
            ));
        }
        let now = clock::now();
        if new.expires_at.is_some_and(|at| at <= now) {
            return Err(Error::invalid("expires_at: must lie in the future"));
        }
        let (record, key) = mint(tenant, new, now)?;
        self.0.store.add_key(record.clone()).await?;
        tracing::info!(key.id = %record.id, tenant = %record.tenant, "Created key {}", record.id);
        Ok((record, key))
    }

    /// The caller's tenant's keys, the newest first, revoked ones included.
    pub async fn keys(&self, caller: &Caller, page: PageRequest) -> Result<Page<KeyRecord>, Error> {
        require(caller, &[Scope::Admin])?;
        let rows = rows(&page);
        Ok(self.0.store.keys(caller.tenant(), page.after, rows).await?)
    }

    /// Ends a key's life, at once and for good.
    pub async fn revoke_key(&self, caller: &Caller, id: KeyId) -> Result<KeyRecord, Error> {
        require(caller, &[Scope::Admin])?;
        let record = self.0.store.revoke_key(caller.tenant(), id, clock::now()).await?;
        tracing::info!(key.id = %id, "Revoked key {id}");
        Ok(record)
    }

    /// Replaces a key by a new one with the same name, scopes and expiry; the old one ends at once. One that has ended
    /// already is refused: its successor would be born expired, or bring back what was revoked.
    pub async fn rotate_key(&self, caller: &Caller, id: KeyId) -> Result<(KeyRecord, ApiKey), Error> {
        require(caller, &[Scope::Admin])?;
        let old = self.find_key(caller, id).await?;
        let now = clock::now();
        Caller::check(&old, now).map_err(|_| {
            let message = format!("key `{id}` is revoked or has expired; create a new one");
            Error::new(Code::Conflict, message)
        })?;
        let new = NewKey {
            name: old.name,
            scopes: old.scopes,
            tenant: None,
            expires_at: old.expires_at,
        };
        let (record, key) = mint(caller.tenant().clone(), new, now)?;
        self.0
            .store
            .replace_key(caller.tenant(), id, record.clone(), now)
            .await?;
        tracing::info!(key.id = %id, new_key.id = %record.id, "Rotated key {id}");
        Ok((record, key))
    }

    async fn find_key(&self, caller: &Caller, id: KeyId) -> Result<KeyRecord, Error> {
        let mut page = PageRequest {
            after: None,
            rows: limits::PAGE_ROWS_MAX,
        };
        loop {
            let found = self.keys(caller, page).await?;
            if let Some(key) = found.items.into_iter().find(|key| key.id == id) {
                return Ok(key);
            }
            let Some(next) = found.next else {
                return Err(Error::not_found(format!("key `{id}`")));
            };
            page = PageRequest {
                after: Some(next),
                rows: limits::PAGE_ROWS_MAX,
            };
        }
    }

    /// Makes the very first key, an administrator's; `None` if there ever was one (T-16).
    pub async fn bootstrap_key(&self) -> Result<Option<ApiKey>, Error> {
        let key = random_key()?;
        Ok(self.adopt_first_key(&key).await?.then_some(key))
    }

    /// As [`bootstrap_key`](Self::bootstrap_key) with a key that was written down before, so that no crash can lose it;
    /// `false` if there ever was a key.
    pub async fn adopt_first_key(&self, key: &ApiKey) -> Result<bool, Error> {
        Ok(self
            .0
            .store
            .bootstrap_key(administrator("first key", key))
            .await?)
    }

    /// Takes an administrator's key from whoever owns the data folder and has lost every other: nobody calls this over a network.
    pub async fn adopt_recovered_key(&self, key: &ApiKey) -> Result<(), Error> {
        let record = administrator("recovered key", key);
        tracing::warn!(key.id = %record.id, "Recovered the administrator's key as {}", record.id);
        Ok(self.0.store.add_key(record).await?)
    }
}

/// An administrator's key of the tenant `default`, without end.
fn administrator(name: &str, key: &ApiKey) -> KeyRecord {
    let new = NewKey {
        name: name.to_owned(),
        scopes: Scopes::new([Scope::Admin]),
        tenant: None,
        expires_at: None,
    };
    record(Tenant::default_tenant(), new, key, clock::now())
}

fn check_name(name: &str) -> Result<(), Error> {
    let length = name.chars().count();
    if length == 0 || length > limits::KEY_NAME_CHARS_MAX || name.chars().any(char::is_control) {
        let message = format!(
            "name: 1 to {} characters, none of them a control character",
            limits::KEY_NAME_CHARS_MAX
        );
        return Err(Error::invalid(message));
    }
    Ok(())
}

fn mint(tenant: Tenant, new: NewKey, now: jiff::Timestamp) -> Result<(KeyRecord, ApiKey), Error> {
    let key = random_key()?;
    Ok((record(tenant, new, &key, now), key))
}

fn random_key() -> Result<ApiKey, Error> {
    let mut random = [0; 32];
    getrandom::fill(&mut random).map_err(|error| Error::internal(error.to_string()))?;
    Ok(ApiKey::from_random(random))
}

fn record(tenant: Tenant, new: NewKey, key: &ApiKey, now: jiff::Timestamp) -> KeyRecord {
    KeyRecord {
        id: KeyId::generate(),
        tenant,
        name: new.name,
        hint: key.hint().to_owned(),
        hash: key.hash(),
        scopes: new.scopes,
        created_at: now,
        expires_at: new.expires_at.map(clock::kept),
        revoked_at: None,
    }
}
