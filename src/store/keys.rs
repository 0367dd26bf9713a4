//! API keys.

use jiff::Timestamp;

use crate::auth::KeyRecord;
use crate::ids::{Digest, KeyId, Tenant};
use crate::store::cursor::{List, Moment};
use crate::store::{Error, acts};

acts! {
    trait Keys {
        async fn add_key(&self, key: KeyRecord) -> Result<(), Error>;
        /// Adds the very first key; `false`, and no change, if there ever was one, revoked ones included (T-16).
        async fn bootstrap_key(&self, key: KeyRecord) -> Result<bool, Error>;
        /// The key with this hash, valid or not: [`Caller::check`](crate::auth::Caller::check) decides that.
        async fn key(&self, hash: &Digest) -> Result<KeyRecord, Error>;
        /// A key of the tenant by its id, valid or not.
        async fn key_by_id(&self, tenant: &Tenant, id: KeyId) -> Result<KeyRecord, Error>;
        /// Revokes a key permanently. A key that is revoked already keeps its first time.
        async fn revoke_key(&self, tenant: &Tenant, id: KeyId, at: Timestamp) -> Result<KeyRecord, Error>;
        /// Revokes `old` and adds `new`, both or neither. A revoked key is [`Error::NotFound`] here.
        async fn replace_key(&self, tenant: &Tenant, old: KeyId, new: KeyRecord, at: Timestamp) -> Result<(), Error>;
    }
    lists {
        /// A tenant's keys, the newest first.
        async fn keys(&self, tenant: &Tenant) -> KeyRecord
            = List::Keys(tenant), after Moment<KeyId>: |key| Moment::new(key.created_at, key.id);
    }
}
