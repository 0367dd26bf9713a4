//! Checked identifiers.

use std::fmt;
use std::str::FromStr;

use uuid::Uuid;

/// The violated rule.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct InvalidId(&'static str);

macro_rules! uuid_id {
    ($(#[$doc:meta])* $name:ident, $rule:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        pub struct $name(Uuid);

        impl $name {
            /// A new id of version 7, so that ids sort by age. After the time follow a counter with a random start
            /// and 32 random bits. Ids are not secret.
            #[must_use]
            pub fn generate() -> Self {
                Self(Uuid::now_v7())
            }
        }

        impl FromStr for $name {
            type Err = InvalidId;

            /// Only the canonical lower-case form with hyphens, so that an id has one spelling.
            fn from_str(text: &str) -> Result<Self, InvalidId> {
                let uuid = Uuid::try_parse(text).map_err(|_| InvalidId($rule))?;
                if uuid.hyphenated().to_string() == text { Ok(Self(uuid)) } else { Err(InvalidId($rule)) }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.hyphenated().fmt(f)
            }
        }

        serde_as_text!($name);
    };
}

macro_rules! serde_as_text {
    ($name:ident) => {
        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = <std::borrow::Cow<'de, str>>::deserialize(deserializer)?;
                text.parse().map_err(serde::de::Error::custom)
            }
        }
    };
}
pub(crate) use serde_as_text;

uuid_id!(ExecutionId, "execution id must be a lower-case hyphenated UUID");
uuid_id!(
    /// Public id of an API key.
    KeyId,
    "key id must be a lower-case hyphenated UUID"
);
uuid_id!(
    /// Public id of a session of the dashboard.
    SessionId,
    "session id must be a lower-case hyphenated UUID"
);
uuid_id!(
    /// An entry of the audit trail.
    AuditId,
    "audit id must be a lower-case hyphenated UUID"
);
uuid_id!(
    /// A running Skillbox process. Its sandboxes carry the id, so that processes on one engine ignore each other's.
    InstanceId,
    "instance id must be a lower-case hyphenated UUID"
);
uuid_id!(
    /// A webhook; the same for all attempts.
    DeliveryId,
    "delivery id must be a lower-case hyphenated UUID"
);
uuid_id!(
    /// The bytes of a blob in the file store. Content that is deleted and stored again gets a new object, so that a
    /// late removal cannot affect it.
    BlobObject,
    "blob object must be a lower-case hyphenated UUID"
);

impl BlobObject {
    /// Time of its creation; `None` if the id has none.
    #[must_use]
    pub fn named_at(&self) -> Option<jiff::Timestamp> {
        let (seconds, nanoseconds) = self.0.get_timestamp()?.to_unix();
        jiff::Timestamp::new(i64::try_from(seconds).ok()?, i32::try_from(nanoseconds).ok()?).ok()
    }
}

/// A tenant: `[a-z0-9][a-z0-9-]{0,31}`, safe in paths and object keys.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Tenant(String);

impl Tenant {
    /// The default tenant.
    #[must_use]
    pub fn default_tenant() -> Self {
        Self("default".to_owned())
    }

    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for Tenant {
    type Err = InvalidId;

    fn from_str(text: &str) -> Result<Self, InvalidId> {
        if is_label(text, 32) {
            Ok(Self(text.to_owned()))
        } else {
            Err(InvalidId(
                "tenant must be 1 to 32 of a-z, 0-9 and '-', not starting with '-'",
            ))
        }
    }
}

impl fmt::Display for Tenant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
serde_as_text!(Tenant);

/// Whether `text` is 1 to `max` of `a-z`, `0-9`, `-` and does not start with `-`.
#[must_use]
pub fn is_label(text: &str, max: usize) -> bool {
    let legal = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
    matches!(text.as_bytes(), [first, ..] if *first != b'-') && text.len() <= max && text.bytes().all(legal)
}

/// Identifies repeated requests of a client: 1 to 255 visible ASCII characters.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct IdempotencyKey(String);

impl IdempotencyKey {
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for IdempotencyKey {
    type Err = InvalidId;

    fn from_str(text: &str) -> Result<Self, InvalidId> {
        if (1..=255).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic()) {
            Ok(Self(text.to_owned()))
        } else {
            Err(InvalidId(
                "must be 1 to 255 visible ASCII characters without spaces, such as a UUID",
            ))
        }
    }
}

/// A SHA-256 digest: `sha256:<64 lower-case hex digits>`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Digest([u8; 32]);

impl Digest {
    #[must_use]
    pub fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    #[must_use]
    pub fn of(bytes: &[u8]) -> Self {
        use sha2::Digest as _;
        Self(sha2::Sha256::digest(bytes).into())
    }

    #[must_use]
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// The 64 hex digits, for paths, object keys and container names.
    #[must_use]
    pub fn hex(&self) -> String {
        let mut text = String::with_capacity(64);
        for byte in self.0 {
            for nibble in [byte >> 4, byte & 15] {
                text.push(char::from_digit(u32::from(nibble), 16).expect("a nibble is below 16"));
            }
        }
        text
    }
}

impl FromStr for Digest {
    type Err = InvalidId;

    fn from_str(text: &str) -> Result<Self, InvalidId> {
        const RULE: InvalidId = InvalidId("digest must be `sha256:` and 64 lower-case hex digits");
        let hex = text.strip_prefix("sha256:").ok_or(RULE)?;
        if hex.len() != 64 || !hex.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f')) {
            return Err(RULE);
        }
        let mut bytes = [0; 32];
        for (byte, pair) in bytes.iter_mut().zip(hex.as_bytes().chunks(2)) {
            let pair = std::str::from_utf8(pair).map_err(|_| RULE)?;
            *byte = u8::from_str_radix(pair, 16).map_err(|_| RULE)?;
        }
        Ok(Self(bytes))
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "sha256:{}", self.hex())
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
serde_as_text!(Digest);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accepts_one_spelling_of_an_id() {
        let id = ExecutionId::generate();
        assert_eq!(id.to_string().parse(), Ok(id));
        for wrong in [
            id.to_string().to_uppercase(),
            id.to_string().replace('-', ""),
            "..".to_owned(),
        ] {
            assert!(wrong.parse::<ExecutionId>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn digest_survives_display_and_parse() {
        let digest = Digest::of(b"abc");
        assert!(digest.to_string().starts_with("sha256:ba7816bf"));
        assert_eq!(digest.to_string().parse(), Ok(digest));
        assert!("sha256:AB".parse::<Digest>().is_err());
    }

    #[test]
    fn rejects_tenants_with_separators() {
        for wrong in ["", "-a", "a/b", "A", "a.b", "ä", &"a".repeat(33)] {
            assert!(wrong.parse::<Tenant>().is_err(), "{wrong}");
        }
        assert!("acme-2".parse::<Tenant>().is_ok());
    }
}
