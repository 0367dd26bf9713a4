//! The audit trail: who changed what, and from where.

use std::str::FromStr;

use jiff::Timestamp;

use super::{Caller, RequestSource};
use crate::ids::{AuditId, KeyId, SessionId, Tenant};

macro_rules! actions {
    ($($(#[$doc:meta])* $action:ident: $name:literal,)*) => {
        /// What was done.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum AuditAction {
            $($(#[$doc])* $action,)*
        }

        impl AuditAction {
            pub const ALL: &[Self] = &[$(Self::$action,)*];

            /// The name in the API and the store.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$action => $name,)*
                }
            }
        }
    };
}

actions! {
    KeyCreated: "key.created",
    KeyRevoked: "key.revoked",
    KeyRotated: "key.rotated",
    SecretSet: "secret.set",
    SecretDeleted: "secret.deleted",
    SkillPublished: "skill.published",
    SkillDeleted: "skill.deleted",
    SkillRequirementsSet: "skill.requirements_set",
    SessionOpened: "session.opened",
    SessionEnded: "session.ended",
    SignInLinkCreated: "session.link_created",
    WebhookSecretRotated: "webhook.secret_rotated",
    WebhookRedelivered: "webhook.redelivered",
    /// Attacks on the server's own sandboxes.
    ProveStarted: "prove.started",
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not an action of the audit trail")]
pub struct UnknownAction;

impl FromStr for AuditAction {
    type Err = UnknownAction;

    fn from_str(text: &str) -> Result<Self, UnknownAction> {
        let mut all = Self::ALL.iter().copied();
        all.find(|action| action.as_str() == text).ok_or(UnknownAction)
    }
}

/// One row of the audit trail.
#[derive(Clone, Debug, PartialEq)]
pub struct AuditEntry {
    pub id: AuditId,
    /// Tenant of the key that did it.
    pub tenant: Tenant,
    pub at: Timestamp,
    pub key: KeyId,
    /// The name of the key at that time.
    pub key_name: String,
    pub session: Option<SessionId>,
    pub action: AuditAction,
    /// What it was done to: an id, a name, or a name with its version.
    pub target: Option<String>,
    pub source: RequestSource,
}

impl AuditEntry {
    #[must_use]
    pub fn new(caller: &Caller, action: AuditAction, target: Option<String>, at: Timestamp) -> Self {
        Self {
            id: AuditId::generate(),
            tenant: caller.tenant().clone(),
            at,
            key: caller.key(),
            key_name: caller.key_name().to_owned(),
            session: caller.session(),
            action,
            target,
            source: caller.source().clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_actions_read_back() {
        for action in AuditAction::ALL {
            assert_eq!(action.as_str().parse(), Ok(*action));
        }
        assert_eq!("key.forged".parse::<AuditAction>(), Err(UnknownAction));
    }
}
