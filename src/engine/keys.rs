//! API keys: created, listed, revoked, rotated. A secret is returned once.

use crate::auth::{ApiKey, Caller, KeyRecord, Scope, Scopes};
use crate::engine::{Keys, PageRequest, clock, rows};
use crate::error::{Code, Error};
use crate::ids::{KeyId, Tenant};
use crate::limits;
use crate::store::{self, Page};

/// A key to create.
#[derive(Debug)]
pub struct NewKey {
    pub name: String,
    pub scopes: Scopes,
    pub expires_at: Option<jiff::Timestamp>,
}

impl Keys<'_> {
    /// The caller behind a presented API key.
    pub async fn authenticate(self, presented: &str) -> Result<Caller, Error> {
        let record = self.find_presented(presented).await?;
        Caller::check(&record, clock::now()).map_err(|_| rejected_key())
    }

    /// The record of a presented API key, valid or not.
    pub(super) async fn find_presented(self, presented: &str) -> Result<KeyRecord, Error> {
        let key: ApiKey = presented.parse().map_err(|_| rejected_key())?;
        match self.engine.store.key(&key.hash()).await {
            Ok(record) => Ok(record),
            Err(store::Error::NotFound(_)) => Err(rejected_key()),
            Err(error) => Err(error.into()),
        }
    }

    pub async fn create(self, tenant: Tenant, new: NewKey) -> Result<(KeyRecord, ApiKey), Error> {
        check_name(&new.name)?;
        if new.scopes.is_empty() {
            return Err(Error::invalid(
                "scopes: name at least one of `run`, `skills`, `admin`",
            ));
        }
        let now = clock::now();
        if new.expires_at.is_some_and(|at| at <= now) {
            return Err(Error::invalid("expires_at: must be in the future"));
        }
        let (record, key) = generate(tenant, new, now)?;
        self.engine.store.add_key(record.clone()).await?;
        tracing::info!(key.id = %record.id, tenant = %record.tenant, "Created key {}", record.id);
        Ok((record, key))
    }

    /// The tenant's keys, newest first, revoked ones included.
    pub async fn list(self, tenant: &Tenant, page: PageRequest) -> Result<Page<KeyRecord>, Error> {
        let rows = rows(&page);
        Ok(self.engine.store.keys(tenant, page.after, rows).await?)
    }

    /// Permanent, with immediate effect.
    pub async fn revoke(self, tenant: &Tenant, id: KeyId) -> Result<KeyRecord, Error> {
        let record = self.engine.store.revoke_key(tenant, id, clock::now()).await?;
        self.engine.recheck_readers();
        tracing::info!(key.id = %id, "Revoked key {id}");
        Ok(record)
    }

    /// Replaces a key by a new one with the same name, scopes and expiry. A revoked or expired key is rejected: its
    /// replacement would be expired, too, or bring back what was revoked.
    pub async fn rotate(self, tenant: &Tenant, id: KeyId) -> Result<(KeyRecord, ApiKey), Error> {
        let old = self.find(tenant, id).await?;
        let now = clock::now();
        Caller::check(&old, now).map_err(|_| {
            let message = format!("key `{id}` is revoked or has expired; create a new one");
            Error::new(Code::Conflict, message)
        })?;
        let new = NewKey {
            name: old.name,
            scopes: old.scopes,
            expires_at: old.expires_at,
        };
        let (record, key) = generate(tenant.clone(), new, now)?;
        self.engine
            .store
            .replace_key(tenant, id, record.clone(), now)
            .await?;
        self.engine.recheck_readers();
        tracing::info!(key.id = %id, new_key.id = %record.id, "Rotated key {id}");
        Ok((record, key))
    }

    async fn find(self, tenant: &Tenant, id: KeyId) -> Result<KeyRecord, Error> {
        let mut page = PageRequest {
            after: None,
            rows: limits::PAGE_ROWS_MAX,
        };
        loop {
            let found = self.list(tenant, page).await?;
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

    /// Stores the first key, an administrator's; `false` if a key exists or existed (T-16).
    pub async fn adopt_first(self, key: &ApiKey) -> Result<bool, Error> {
        let record = administrator("first key", key);
        Ok(self.engine.store.bootstrap_key(record).await?)
    }

    /// Stores another administrator's key, for the owner of the data folder who has lost the first. No API leads here.
    pub async fn adopt_recovered(self, key: &ApiKey) -> Result<(), Error> {
        let record = administrator("recovered key", key);
        tracing::warn!(key.id = %record.id, "Recovered the administrator's key as {}", record.id);
        Ok(self.engine.store.add_key(record).await?)
    }
}

pub(super) fn rejected_key() -> Error {
    Error::new(
        Code::Unauthenticated,
        "the API key is not valid; send `Authorization: Bearer skb_…`",
    )
}

/// An administrator's key of the tenant `default` that never expires.
fn administrator(name: &str, key: &ApiKey) -> KeyRecord {
    let new = NewKey {
        name: name.to_owned(),
        scopes: Scopes::new([Scope::Admin]),
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

fn generate(tenant: Tenant, new: NewKey, now: jiff::Timestamp) -> Result<(KeyRecord, ApiKey), Error> {
    let mut random = [0; 32];
    getrandom::fill(&mut random).map_err(|error| Error::internal(error.to_string()))?;
    let key = ApiKey::from_random(random);
    Ok((record(tenant, new, &key, now), key))
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
