//! Sessions of the dashboard, and the links that open them.

use jiff::Timestamp;

use crate::auth::{KeyRecord, KeyedSession, SessionRecord, SignInLink};
use crate::ids::{Digest, SessionId, Tenant};
use crate::store::cursor::{List, Moment};
use crate::store::{Error, acts};

/// Most sessions of a key and of a tenant.
#[derive(Clone, Copy, Debug)]
pub struct SessionQuota {
    pub per_key: u32,
    pub per_tenant: u32,
}

/// Which sessions have ended: those of invalid keys, those that expire at `now` or before, and those that were used last at
/// `idle_since` or before.
#[derive(Clone, Copy, Debug)]
pub struct SessionEnd {
    pub now: Timestamp,
    pub idle_since: Timestamp,
}

acts! {
    trait Sessions {
        /// Adds a session. Beyond `quota` the least recently used sessions of its key and of its tenant are deleted.
        async fn add_session(&self, session: SessionRecord, quota: SessionQuota) -> Result<(), Error>;
        /// The session with this cookie and its key, ended or not: [`Caller::in_session`](crate::auth::Caller::in_session) decides that.
        async fn session_by_cookie(&self, hash: &Digest) -> Result<KeyedSession, Error>;
        /// A session of the tenant by its id, ended or not.
        async fn session(&self, tenant: &Tenant, id: SessionId) -> Result<KeyedSession, Error>;
        /// Records the use of a session. Has no effect if the session was deleted or used later.
        async fn use_session(&self, tenant: &Tenant, id: SessionId, at: Timestamp) -> Result<(), Error>;
        async fn delete_session(&self, tenant: &Tenant, id: SessionId) -> Result<(), Error>;
        /// Adds a link. Beyond `max` the oldest links of its key are deleted.
        async fn add_sign_in_link(&self, link: SignInLink, max: u32) -> Result<(), Error>;
        /// Deletes the link with this hash and returns its key, valid or not: once, and not when it has expired.
        async fn take_sign_in_link(&self, hash: &Digest, now: Timestamp) -> Result<KeyRecord, Error>;
        /// Deletes ended sessions and expired links, at most `rows` of each.
        async fn delete_ended_sessions(&self, end: SessionEnd, rows: u32) -> Result<(), Error>;
    }
    lists {
        /// A tenant's sessions that have not ended, the newest first.
        async fn sessions(&self, tenant: &Tenant, end: SessionEnd) -> KeyedSession
            = List::Sessions(tenant), after Moment<SessionId>: |found| Moment::new(found.session.created_at, found.session.id);
    }
}
