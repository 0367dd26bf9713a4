//! Secrets: set, listed by name and deleted. Nothing returns a value.

use serde::{Deserialize, Serialize};

use super::{ADMIN, List, audit, require};
use crate::auth::{AuditAction, Caller};
use crate::engine::{Engine, PageRequest};
use crate::error::Error;
use crate::secret::SecretValue;
use crate::skill::SecretName;
use crate::store::{Saved, SecretRecord};

/// A secret, without its value.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
#[schema(as = Secret)]
pub struct SecretInfo {
    /// Name of the secret, and of the variable in programs.
    #[schema(value_type = String, format = "secret-name", example = "API_TOKEN")]
    pub name: SecretName,
    /// Time of the first set.
    #[schema(value_type = String, format = DateTime)]
    pub created_at: jiff::Timestamp,
    /// Time of the last set.
    #[schema(value_type = String, format = DateTime)]
    pub updated_at: jiff::Timestamp,
}

/// Sets or replaces a secret.
pub async fn set(
    engine: &Engine,
    caller: &Caller,
    name: &SecretName,
    value: &SecretValue,
) -> Result<Saved, Error> {
    require(caller, ADMIN)?;
    let (tenant, name, value) = (caller.tenant().clone(), name.clone(), value.clone());
    let set = audit::recorded(engine, caller, AuditAction::SecretSet, |engine| async move {
        let saved = engine.secrets().set(&tenant, &name, &value).await?;
        Ok((saved, name.to_string()))
    });
    set.await
}

/// Sorted by name.
pub async fn list(engine: &Engine, caller: &Caller, page: PageRequest) -> Result<List<SecretInfo>, Error> {
    require(caller, ADMIN)?;
    Ok(List::of(&engine.secrets().list(caller.tenant(), page).await?))
}

/// Programs that have the secret keep it until they end.
pub async fn delete(engine: &Engine, caller: &Caller, name: &SecretName) -> Result<(), Error> {
    require(caller, ADMIN)?;
    let (tenant, name) = (caller.tenant().clone(), name.clone());
    let deleted = audit::recorded(engine, caller, AuditAction::SecretDeleted, |engine| async move {
        engine.secrets().delete(&tenant, &name).await?;
        Ok(((), name.to_string()))
    });
    deleted.await
}

impl From<&SecretRecord> for SecretInfo {
    fn from(record: &SecretRecord) -> Self {
        Self {
            name: record.name.clone(),
            created_at: record.created_at,
            updated_at: record.updated_at,
        }
    }
}
