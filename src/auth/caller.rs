//! Who calls: a checked key, the session that stands for it, and where the request came from.

use std::net::IpAddr;

use super::{InvalidKey, KeyRecord, Scope, Scopes};
use crate::ids::{KeyId, SessionId, Tenant};

/// Proof that a key was checked.
#[derive(Clone, Debug, PartialEq)]
pub struct Caller {
    tenant: Tenant,
    key: KeyId,
    key_name: String,
    scopes: Scopes,
    session: Option<SessionId>,
    source: RequestSource,
}

/// Where a request came from, for the audit trail. Empty for a command with its own engine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RequestSource {
    /// The client, or the proxy in front of the server.
    pub address: Option<IpAddr>,
    pub request_id: Option<String>,
}

impl Caller {
    /// Fails if the key is revoked or expired at `now`.
    pub fn check(record: &KeyRecord, now: jiff::Timestamp) -> Result<Self, InvalidKey> {
        let expired = record.expires_at.is_some_and(|at| at <= now);
        if record.revoked_at.is_some() || expired {
            return Err(InvalidKey);
        }
        Ok(Self {
            tenant: record.tenant.clone(),
            key: record.id,
            key_name: record.name.clone(),
            scopes: record.scopes.clone(),
            session: None,
            source: RequestSource::default(),
        })
    }

    pub(super) fn with_session(self, session: SessionId) -> Self {
        Self {
            session: Some(session),
            ..self
        }
    }

    #[must_use]
    pub fn from_source(self, source: RequestSource) -> Self {
        Self { source, ..self }
    }

    #[must_use]
    pub fn tenant(&self) -> &Tenant {
        &self.tenant
    }

    #[must_use]
    pub fn key(&self) -> KeyId {
        self.key
    }

    #[must_use]
    pub fn key_name(&self) -> &str {
        &self.key_name
    }

    #[must_use]
    pub fn scopes(&self) -> &Scopes {
        &self.scopes
    }

    /// The session of a browser; `None` for a request with a key.
    #[must_use]
    pub fn session(&self) -> Option<SessionId> {
        self.session
    }

    #[must_use]
    pub fn source(&self) -> &RequestSource {
        &self.source
    }

    #[must_use]
    pub fn may(&self, scope: Scope) -> bool {
        self.scopes.allow(scope)
    }
}
