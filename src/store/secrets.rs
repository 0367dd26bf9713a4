//! Secrets, sealed: the store cannot open them.

use jiff::Timestamp;

use crate::ids::Tenant;
use crate::skill::SecretName;
use crate::store::cursor::List;
use crate::store::{Error, acts};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewSecret {
    pub tenant: Tenant,
    pub name: SecretName,
    /// The value, sealed for exactly this tenant and name.
    pub sealed: Vec<u8>,
    pub at: Timestamp,
}

/// A secret without its value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SecretRecord {
    pub tenant: Tenant,
    pub name: SecretName,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

/// Whether something existed before it was saved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Saved {
    New,
    Existing,
}

acts! {
    trait Secrets {
        async fn secret_count(&self, tenant: &Tenant) -> Result<u64, Error>;
        /// Sets a secret, in place of the one with this name. [`Error::Quota`] if it would be one more than `max`.
        async fn put_secret(&self, new: NewSecret, max: u32) -> Result<Saved, Error>;
        async fn sealed_secret(&self, tenant: &Tenant, name: &SecretName) -> Result<Vec<u8>, Error>;
        async fn delete_secret(&self, tenant: &Tenant, name: &SecretName) -> Result<(), Error>;
    }
    lists {
        /// A tenant's secrets by name.
        async fn secrets(&self, tenant: &Tenant) -> SecretRecord
            = List::Secrets(tenant), after SecretName: |secret| secret.name.clone();
    }
}
