//! API keys: created, listed, revoked and replaced.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::{ADMIN, List, audit, require, time};
use crate::auth::{ApiKey, AuditAction, Caller, KeyRecord, Scope, Scopes};
use crate::engine::{Engine, NewKey, PageRequest};
use crate::error::{Code, Error};
use crate::ids::{KeyId, Tenant};

/// An API key, without the secret.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
#[schema(as = Key)]
pub struct KeyInfo {
    /// Public id.
    #[schema(value_type = String, format = Uuid)]
    pub key_id: KeyId,
    /// Name chosen by its owner.
    #[schema(example = "ci")]
    pub name: String,
    /// First characters of the secret.
    #[schema(example = "skb_a1B2")]
    pub hint: String,
    pub scopes: Vec<Scope>,
    /// Tenant of the key.
    #[schema(value_type = String, format = "tenant", example = "default")]
    pub tenant: Tenant,
    /// Creation time.
    #[schema(value_type = String, format = DateTime)]
    pub created_at: jiff::Timestamp,
    /// Expiry.
    #[schema(value_type = Option<String>, format = DateTime, required)]
    pub expires_at: Option<jiff::Timestamp>,
    /// Time of revocation.
    #[schema(value_type = Option<String>, format = DateTime, required)]
    pub revoked_at: Option<jiff::Timestamp>,
}

/// A new API key. Its secret is never shown again.
#[derive(Clone, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct FreshKey {
    #[serde(flatten)]
    pub key: KeyInfo,
    /// The secret. Send it as `Authorization: Bearer …`.
    #[schema(example = "skb_…")]
    pub api_key: String,
}

impl fmt::Debug for FreshKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("FreshKey").field(&self.key).finish()
    }
}

/// A key to create.
#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"name": "ci", "scopes": ["run"]}))]
pub struct CreateKey {
    /// Any name without control characters.
    #[schema(min_length = 1, max_length = 100, pattern = r"^[^\x00-\x1f\x7f-\x9f]*$")]
    pub name: String,
    /// Scopes of the key.
    #[schema(min_items = 1)]
    pub scopes: Vec<Scope>,
    /// Tenant of the key. Default: yours. Only an administrator of tenant `default` may name another.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = "tenant")]
    pub tenant: Option<Tenant>,
    /// Expiry, in the future. Default: never.
    #[serde(default, deserialize_with = "time", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub expires_at: Option<jiff::Timestamp>,
}

pub async fn create(engine: &Engine, caller: &Caller, new: CreateKey) -> Result<FreshKey, Error> {
    require(caller, ADMIN)?;
    let tenant = new.tenant.unwrap_or_else(|| caller.tenant().clone());
    if tenant != *caller.tenant() && *caller.tenant() != Tenant::default_tenant() {
        return Err(Error::new(
            Code::Forbidden,
            "tenant: only an administrator of tenant `default` may create keys for another tenant",
        ));
    }
    let new = NewKey {
        name: new.name,
        scopes: Scopes::new(new.scopes),
        expires_at: new.expires_at,
    };
    let made = audit::recorded(engine, caller, AuditAction::KeyCreated, |engine| async move {
        let made = engine.keys().create(tenant, new).await?;
        let id = made.0.id.to_string();
        Ok((made, id))
    });
    let (record, key) = made.await?;
    Ok(FreshKey::new(&record, &key))
}

/// Newest first, revoked ones included.
pub async fn list(engine: &Engine, caller: &Caller, page: PageRequest) -> Result<List<KeyInfo>, Error> {
    require(caller, ADMIN)?;
    Ok(List::of(&engine.keys().list(caller.tenant(), page).await?))
}

pub async fn revoke(engine: &Engine, caller: &Caller, id: KeyId) -> Result<KeyInfo, Error> {
    require(caller, ADMIN)?;
    let tenant = caller.tenant().clone();
    let revoked = audit::recorded(engine, caller, AuditAction::KeyRevoked, |engine| async move {
        let record = engine.keys().revoke(&tenant, id).await?;
        Ok((record, id.to_string()))
    });
    Ok(KeyInfo::from(&revoked.await?))
}

/// Replaces a key by a new one with the same name, scopes and expiry.
pub async fn rotate(engine: &Engine, caller: &Caller, id: KeyId) -> Result<FreshKey, Error> {
    require(caller, ADMIN)?;
    let tenant = caller.tenant().clone();
    let rotated = audit::recorded(engine, caller, AuditAction::KeyRotated, |engine| async move {
        let made = engine.keys().rotate(&tenant, id).await?;
        Ok((made, id.to_string()))
    });
    let (record, key) = rotated.await?;
    Ok(FreshKey::new(&record, &key))
}

impl FreshKey {
    fn new(record: &KeyRecord, key: &ApiKey) -> Self {
        Self {
            key: record.into(),
            api_key: key.reveal().to_owned(),
        }
    }
}

impl From<&KeyRecord> for KeyInfo {
    fn from(record: &KeyRecord) -> Self {
        Self {
            key_id: record.id,
            name: record.name.clone(),
            hint: record.hint.clone(),
            scopes: record.scopes.iter().collect(),
            tenant: record.tenant.clone(),
            created_at: record.created_at,
            expires_at: record.expires_at,
            revoked_at: record.revoked_at,
        }
    }
}
