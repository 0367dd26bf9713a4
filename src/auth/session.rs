//! Sessions of the dashboard: a cookie and a page token, neither enough alone, stored as SHA-256 only (W-05, W-09).

use std::fmt;
use std::str::FromStr;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jiff::{SignedDuration, Timestamp};

use super::{Caller, KeyRecord};
use crate::ids::{Digest, KeyId, SessionId, Tenant};
use crate::limits;

/// 256 random bits: the value of a cookie, a page token, or the token of a sign-in link. Never stored, never in `Debug`.
#[derive(Clone, PartialEq, Eq)]
pub struct SessionToken(String);

/// 32 bytes in unpadded base64url.
const TOKEN_CHARS: usize = 43;

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a token of this server")]
pub struct InvalidToken;

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the session has ended; sign in again")]
pub struct InvalidSession;

impl SessionToken {
    #[must_use]
    pub fn from_random(random: [u8; 32]) -> Self {
        Self(URL_SAFE_NO_PAD.encode(random))
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
}

impl FromStr for SessionToken {
    type Err = InvalidToken;

    /// Checks the form, so that most wrong tokens cost no look-up.
    fn from_str(text: &str) -> Result<Self, InvalidToken> {
        let is_letter = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_');
        if text.len() == TOKEN_CHARS && text.bytes().all(is_letter) {
            Ok(Self(text.to_owned()))
        } else {
            Err(InvalidToken)
        }
    }
}

impl fmt::Debug for SessionToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SessionToken(…)")
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct SessionRecord {
    pub id: SessionId,
    pub tenant: Tenant,
    /// The key that opened it. The session has the scopes of the key and ends with it.
    pub key: KeyId,
    pub cookie_hash: Digest,
    pub page_hash: Digest,
    pub created_at: Timestamp,
    /// Time of the last request, exact to [`limits::SESSION_USE_RECORDED_EVERY`].
    pub used_at: Timestamp,
    pub expires_at: Timestamp,
}

/// A session with its key.
#[derive(Clone, Debug, PartialEq)]
pub struct KeyedSession {
    pub session: SessionRecord,
    pub key: KeyRecord,
}

/// The token of a sign-in link, which can be used once.
#[derive(Clone, Debug, PartialEq)]
pub struct SignInLink {
    pub hash: Digest,
    pub tenant: Tenant,
    pub key: KeyId,
    pub expires_at: Timestamp,
}

/// What a request needs to present.
#[derive(Clone, Debug)]
pub struct PresentedSession {
    pub cookie: SessionToken,
    pub page: SessionToken,
}

impl SessionRecord {
    /// The latest end of a session that `key` opens at `now`.
    #[must_use]
    pub fn expiry(key: &KeyRecord, now: Timestamp) -> Timestamp {
        let end = later(now, limits::SESSION_LIFE);
        key.expires_at.map_or(end, |expiry| expiry.min(end))
    }

    /// Sessions that were used last at this time or before have ended at `now`.
    #[must_use]
    pub fn idle_since(now: Timestamp) -> Timestamp {
        let idle = SignedDuration::try_from(limits::SESSION_IDLE_MAX).expect("a constant of hours");
        now.saturating_sub(idle).unwrap_or(Timestamp::MIN)
    }

    /// Whether it has neither expired nor been idle for too long at `now`. Its key may have ended.
    #[must_use]
    pub fn is_live(&self, now: Timestamp) -> bool {
        now < self.expires_at && self.used_at > Self::idle_since(now)
    }

    /// Whether the use at `now` must be recorded, which not every request does.
    #[must_use]
    pub fn records_use(&self, now: Timestamp) -> bool {
        later(self.used_at, limits::SESSION_USE_RECORDED_EVERY) <= now
    }
}

fn later(time: Timestamp, by: std::time::Duration) -> Timestamp {
    time.saturating_add(by).unwrap_or(Timestamp::MAX)
}

impl Caller {
    /// The holder of a session. Fails if the page token is another one's, or the session or its key has ended at `now`.
    pub fn in_session(
        found: &KeyedSession,
        presented: &PresentedSession,
        now: Timestamp,
    ) -> Result<Self, InvalidSession> {
        let KeyedSession { session, key } = found;
        let is_own = session.cookie_hash == presented.cookie.hash()
            && session.page_hash == presented.page.hash()
            && session.key == key.id;
        if !is_own || !session.is_live(now) {
            return Err(InvalidSession);
        }
        let caller = Self::check(key, now).map_err(|_| InvalidSession)?;
        Ok(caller.with_session(session.id))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::auth::{Scope, Scopes};

    fn token(byte: u8) -> SessionToken {
        SessionToken::from_random([byte; 32])
    }

    fn hours(hours: i64) -> Timestamp {
        Timestamp::UNIX_EPOCH + SignedDuration::from_hours(hours)
    }

    fn found() -> KeyedSession {
        let key = KeyRecord {
            id: KeyId::generate(),
            tenant: Tenant::default_tenant(),
            name: "ci".to_owned(),
            hint: "skb_abcd".to_owned(),
            hash: Digest::of(b"x"),
            scopes: Scopes::new([Scope::Run]),
            created_at: hours(0),
            expires_at: None,
            revoked_at: None,
        };
        KeyedSession {
            session: SessionRecord {
                id: SessionId::generate(),
                tenant: key.tenant.clone(),
                key: key.id,
                cookie_hash: token(1).hash(),
                page_hash: token(2).hash(),
                created_at: hours(0),
                used_at: hours(0),
                expires_at: SessionRecord::expiry(&key, hours(0)),
            },
            key,
        }
    }

    fn is_accepted(found: &KeyedSession, now: Timestamp) -> bool {
        let presented = PresentedSession {
            cookie: token(1),
            page: token(2),
        };
        Caller::in_session(found, &presented, now).is_ok()
    }

    /// W-05: each half belongs to its session.
    #[test]
    fn accepts_only_cookie_and_page_token_of_one_session() {
        let found = found();
        for (cookie, page, expected) in [
            (1, 2, true),
            (1, 1, false),
            (2, 2, false),
            (2, 1, false),
            (1, 3, false),
        ] {
            let presented = PresentedSession {
                cookie: token(cookie),
                page: token(page),
            };
            let caller = Caller::in_session(&found, &presented, hours(1));
            assert_eq!(caller.is_ok(), expected, "{cookie} {page}");
        }
        let other_key = KeyedSession {
            key: KeyRecord {
                id: KeyId::generate(),
                ..found.key.clone()
            },
            ..found
        };
        assert!(!is_accepted(&other_key, hours(1)));
    }

    /// W-09.
    #[test]
    fn session_ends_after_twelve_idle_hours_and_after_seven_days() {
        let mut found = found();
        assert!(is_accepted(&found, hours(11)));
        assert!(!is_accepted(&found, hours(12)));
        found.session.used_at = hours(7 * 24 - 1);
        assert!(is_accepted(&found, hours(7 * 24) - SignedDuration::from_nanos(1)));
        assert!(!is_accepted(&found, hours(7 * 24)));
    }

    /// T-07, W-09.
    #[test]
    fn session_ends_with_its_key() {
        let mut found = found();
        found.key.expires_at = Some(hours(2));
        assert!(is_accepted(&found, hours(1)) && !is_accepted(&found, hours(2)));
        assert_eq!(SessionRecord::expiry(&found.key, hours(1)), hours(2));
        found.key.expires_at = None;
        found.key.revoked_at = Some(hours(1));
        assert!(!is_accepted(&found, hours(1)));
    }

    #[test]
    fn records_use_only_now_and_then() {
        let session = found().session;
        let soon = session.used_at + SignedDuration::from_secs(1);
        assert!(!session.records_use(soon) && session.records_use(hours(1)));
    }

    #[test]
    fn checks_form_of_tokens_and_hides_them() {
        let token = token(7);
        assert_eq!(token.reveal().parse(), Ok(token.clone()));
        assert!(!format!("{token:?}").contains(&token.reveal()[..8]));
        for wrong in [
            "",
            "x",
            &format!("{}=", token.reveal()),
            &"ü".repeat(43),
            &"a b".repeat(15)[..43],
        ] {
            assert_eq!(wrong.parse::<SessionToken>(), Err(InvalidToken), "{wrong:?}");
        }
    }
}
