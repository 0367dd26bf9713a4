//! API keys: 256 random bits behind a checkable prefix, stored as SHA-256 only (T-08).

use std::fmt;
use std::str::FromStr;

use base64::Engine as _;
use serde::{Deserialize, Serialize};

use crate::ids::{Digest, KeyId, Tenant};

/// What a key may be used for. `admin` includes the others.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize, utoipa::ToSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum Scope {
    /// Run skills and code, read executions.
    Run,
    /// Publish, read and delete skills.
    Skills,
    /// Manage keys, and everything else.
    Admin,
}

impl Scope {
    pub const ALL: [Self; 3] = [Self::Run, Self::Skills, Self::Admin];

    /// The name in the API and the store.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Run => "run",
            Self::Skills => "skills",
            Self::Admin => "admin",
        }
    }
}

impl FromStr for Scope {
    type Err = InvalidKey;

    fn from_str(text: &str) -> Result<Self, InvalidKey> {
        Self::ALL
            .into_iter()
            .find(|scope| scope.as_str() == text)
            .ok_or(InvalidKey)
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Scopes(Vec<Scope>);

impl Scopes {
    /// Sorts the scopes and removes duplicates.
    pub fn new(scopes: impl IntoIterator<Item = Scope>) -> Self {
        Self(
            scopes
                .into_iter()
                .collect::<std::collections::BTreeSet<_>>()
                .into_iter()
                .collect(),
        )
    }

    #[must_use]
    pub fn allow(&self, scope: Scope) -> bool {
        self.0.iter().any(|held| *held == scope || *held == Scope::Admin)
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn iter(&self) -> impl Iterator<Item = Scope> + '_ {
        self.0.iter().copied()
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not an API key of this server; keys look like `skb_…`")]
pub struct InvalidKey;

/// A presented or fresh key: the secret itself. Never stored, never in `Debug`.
#[derive(Clone, PartialEq, Eq)]
pub struct ApiKey(String);

const PREFIX: &str = "skb_";
/// 32 random bytes and 3 check bytes in unpadded base64url.
const BODY_CHARS: usize = 47;

impl ApiKey {
    #[must_use]
    pub fn from_random(random: [u8; 32]) -> Self {
        let mut bytes = [0; 35];
        bytes[..32].copy_from_slice(&random);
        bytes[32..].copy_from_slice(&Digest::of(&random).as_bytes()[..3]);
        Self(format!(
            "{PREFIX}{}",
            base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(bytes)
        ))
    }

    #[must_use]
    pub fn reveal(&self) -> &str {
        &self.0
    }

    /// The stored form.
    #[must_use]
    pub fn hash(&self) -> Digest {
        Digest::of(self.0.as_bytes())
    }

    /// The first 8 characters: enough to recognise a key in a list, useless to guess it.
    #[must_use]
    pub fn hint(&self) -> &str {
        &self.0[..8]
    }
}

impl FromStr for ApiKey {
    type Err = InvalidKey;

    /// Checks form and checksum, so that a typo or a foreign secret costs no look-up.
    fn from_str(text: &str) -> Result<Self, InvalidKey> {
        let body = text.strip_prefix(PREFIX).ok_or(InvalidKey)?;
        if body.len() != BODY_CHARS {
            return Err(InvalidKey);
        }
        let bytes = base64::engine::general_purpose::URL_SAFE_NO_PAD
            .decode(body)
            .map_err(|_| InvalidKey)?;
        let (random, check) = bytes.split_at_checked(32).ok_or(InvalidKey)?;
        if check == &Digest::of(random).as_bytes()[..3] {
            Ok(Self(text.to_owned()))
        } else {
            Err(InvalidKey)
        }
    }
}

impl fmt::Debug for ApiKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ApiKey({}…)", self.hint())
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct KeyRecord {
    pub id: KeyId,
    pub tenant: Tenant,
    pub name: String,
    pub hint: String,
    /// SHA-256 of the secret.
    pub hash: Digest,
    pub scopes: Scopes,
    pub created_at: jiff::Timestamp,
    pub expires_at: Option<jiff::Timestamp>,
    pub revoked_at: Option<jiff::Timestamp>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::auth::Caller;

    fn record(revoked: bool, expires_at: Option<jiff::Timestamp>) -> KeyRecord {
        let now = jiff::Timestamp::UNIX_EPOCH;
        KeyRecord {
            id: KeyId::generate(),
            tenant: Tenant::default_tenant(),
            name: "ci".to_owned(),
            hint: "skb_abcd".to_owned(),
            hash: Digest::of(b"x"),
            scopes: Scopes::new([Scope::Run]),
            created_at: now,
            expires_at,
            revoked_at: revoked.then_some(now),
        }
    }

    #[test]
    fn parses_keys_and_detects_typos() {
        let key = ApiKey::from_random([7; 32]);
        assert_eq!(key.reveal().parse::<ApiKey>().unwrap(), key);
        let typo = key.reveal().replacen("BwcH", "BwcI", 1);
        assert_eq!(typo.parse::<ApiKey>(), Err(InvalidKey));
        for wrong in ["", "null", "skb_", "Bearer x", &format!("{} ", key.reveal())] {
            assert_eq!(wrong.parse::<ApiKey>(), Err(InvalidKey), "{wrong:?}");
        }
    }

    #[test]
    fn debug_output_contains_no_key() {
        let key = ApiKey::from_random([7; 32]);
        assert!(!format!("{key:?}").contains(key.reveal()));
    }

    #[test]
    fn rejects_revoked_and_expired_keys() {
        let now = jiff::Timestamp::UNIX_EPOCH;
        assert!(Caller::check(&record(false, None), now).is_ok());
        assert!(Caller::check(&record(true, None), now).is_err());
        assert!(Caller::check(&record(false, Some(now)), now).is_err());
    }

    #[test]
    fn admin_includes_the_other_scopes() {
        assert!(Scopes::new([Scope::Admin]).allow(Scope::Run));
        assert!(!Scopes::new([Scope::Run]).allow(Scope::Skills));
    }
}
