//! Links that carry their own permission: an HMAC over everything that they allow (T-13).

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::{Hmac, KeyInit as _, Mac as _};
use jiff::Timestamp;
use sha2::Sha256;

use crate::ids::Tenant;
use crate::limits;

/// The content of a link. Every field is signed; the server adds those that a URL lacks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    /// `GET`, also for `HEAD`.
    pub method: &'static str,
    /// The path, as it was percent-encoded.
    pub path: String,
    pub tenant: Tenant,
    /// The first second in which the link is invalid; fractions are ignored.
    pub expires_at: Timestamp,
    /// `Content-Type` of the response.
    pub content_type: String,
    /// `Content-Disposition` of the response.
    pub content_disposition: String,
}

/// Signs links and verifies them. Holds the keyed state of the hash, not the secret.
#[derive(Clone)]
pub struct LinkSigner {
    current: Hmac<Sha256>,
    previous: Option<Hmac<Sha256>>,
}

/// The secret is too short or too uniform to sign with (T-14).
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "the secret that signs links must have at least {bytes} random bytes; `openssl rand -hex 32` generates one",
    bytes = limits::LINK_SECRET_BYTES_MIN
)]
pub struct WeakSecret;

/// Why a link is rejected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// Not signed by this server for exactly this link.
    #[error("the link's signature is not valid")]
    Signature,
    #[error("the link has expired; ask for a new one")]
    Expired,
}

impl LinkSigner {
    /// A signer with one secret.
    pub fn new(secret: &[u8]) -> Result<Self, WeakSecret> {
        Ok(Self {
            current: keyed(secret)?,
            previous: None,
        })
    }

    /// A signer that accepts the links of `previous` too: after a rotation they stay valid until they expire.
    pub fn with_previous(secret: &[u8], previous: &[u8]) -> Result<Self, WeakSecret> {
        Ok(Self {
            current: keyed(secret)?,
            previous: Some(keyed(previous)?),
        })
    }

    /// The signature of `link`: 43 characters of unpadded base64url.
    #[must_use]
    pub fn sign(&self, link: &Link) -> String {
        URL_SAFE_NO_PAD.encode(over(&self.current, link).finalize().into_bytes())
    }

    /// Whether `signature` is of this server for exactly this link, and the link has not expired at `now`.
    pub fn verify(&self, link: &Link, signature: &str, now: Timestamp) -> Result<(), Refused> {
        let signature = URL_SAFE_NO_PAD
            .decode(signature)
            .map_err(|_| Refused::Signature)?;
        let is_ours = std::iter::once(&self.current)
            .chain(&self.previous)
            .any(|key| over(key, link).verify_slice(&signature).is_ok());
        if !is_ours {
            return Err(Refused::Signature);
        }
        if now.as_second() >= link.expires_at.as_second() {
            return Err(Refused::Expired);
        }
        Ok(())
    }
}

impl fmt::Debug for LinkSigner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("LinkSigner(…)")
    }
}

fn keyed(secret: &[u8]) -> Result<Hmac<Sha256>, WeakSecret> {
    let distinct: std::collections::BTreeSet<&u8> = secret.iter().collect();
    if secret.len() < limits::LINK_SECRET_BYTES_MIN || distinct.len() < limits::LINK_SECRET_DISTINCT_MIN {
        return Err(WeakSecret);
    }
    Hmac::new_from_slice(secret).map_err(|_| WeakSecret)
}

/// Each field goes in with its length before it, so that no two links are the same text.
fn over(key: &Hmac<Sha256>, link: &Link) -> Hmac<Sha256> {
    let expires_at = link.expires_at.as_second().to_string();
    let fields = [
        "skillbox link 1",
        link.method,
        &link.path,
        link.tenant.as_str(),
        &expires_at,
        &link.content_type,
        &link.content_disposition,
    ];
    let mut mac = key.clone();
    for field in fields {
        mac.update(&(field.len() as u64).to_be_bytes());
        mac.update(field.as_bytes());
    }
    mac
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECRET: &[u8] = b"0123456789abcdef0123456789abcdef";
    const OTHER: &[u8] = b"fedcba9876543210fedcba9876543210";

    fn second(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn link() -> Link {
        Link {
            method: "GET",
            path: "/v1/executions/1/files/a.txt".to_owned(),
            tenant: Tenant::default_tenant(),
            expires_at: second(1000),
            content_type: "text/plain".to_owned(),
            content_disposition: "attachment; filename=\"a.txt\"".to_owned(),
        }
    }

    fn signer() -> LinkSigner {
        LinkSigner::new(SECRET).unwrap()
    }

    /// T-13.
    #[test]
    fn accepts_link_until_expiry() {
        let signature = signer().sign(&link());
        let at = |seconds| signer().verify(&link(), &signature, second(seconds));
        assert_eq!(at(999), Ok(()));
        assert_eq!(at(1000), Err(Refused::Expired));
        assert_eq!(at(1001), Err(Refused::Expired));
    }

    /// T-13: each field in turn, and text moved from one field to the next.
    #[test]
    fn rejects_signature_of_another_link() {
        let signature = signer().sign(&link());
        let changed: [fn(&mut Link); 9] = [
            |link| link.method = "PUT",
            |link| link.path.push('x'),
            |link| link.path = link.path.replace("1", "2"),
            |link| link.tenant = "default2".parse().unwrap(),
            |link| link.expires_at = second(1001),
            |link| link.expires_at = second(999),
            |link| link.content_type = "text/html".to_owned(),
            |link| link.content_disposition = "inline".to_owned(),
            |link| {
                link.content_disposition = format!("n{}", link.content_disposition);
                link.content_type = "text/plai".to_owned();
            },
        ];
        for (n, change) in changed.into_iter().enumerate() {
            let mut other = link();
            change(&mut other);
            assert_ne!(other, link(), "change {n}");
            let verdict = signer().verify(&other, &signature, second(0));
            assert_eq!(verdict, Err(Refused::Signature), "change {n}");
        }
    }

    /// T-13.
    #[test]
    fn rejects_changed_or_missing_signature() {
        let signature = signer().sign(&link());
        let refused = |text: &str| {
            assert_eq!(
                signer().verify(&link(), text, second(0)),
                Err(Refused::Signature),
                "{text}"
            )
        };
        for bit in 0..signature.len() * 8 {
            let mut bytes = signature.clone().into_bytes();
            bytes[bit / 8] ^= 1 << (bit % 8);
            if let Ok(text) = String::from_utf8(bytes) {
                refused(&text);
            }
        }
        refused("");
        refused(&signature[..42]);
        refused(&format!("{signature}="));
        refused(&format!("{signature}AA"));
        refused(&LinkSigner::new(OTHER).unwrap().sign(&link()));
    }

    /// T-13: a keyed hash, not a hash.
    #[test]
    fn signs_lengths_and_fields_with_hmac() {
        let tiny = Link {
            method: "GET",
            path: "/".to_owned(),
            tenant: Tenant::default_tenant(),
            expires_at: second(7),
            content_type: String::new(),
            content_disposition: String::new(),
        };
        let mut message = Vec::new();
        for field in ["skillbox link 1", "GET", "/", "default", "7", "", ""] {
            message.extend([0, 0, 0, 0, 0, 0, 0, u8::try_from(field.len()).unwrap()]);
            message.extend(field.as_bytes());
        }
        let expected = Hmac::<Sha256>::new_from_slice(SECRET)
            .unwrap()
            .chain_update(message);
        let signature = URL_SAFE_NO_PAD.decode(signer().sign(&tiny)).unwrap();
        assert_eq!(expected.finalize().into_bytes()[..], signature[..]);
    }

    /// T-14.
    #[test]
    fn rejects_weak_secret() {
        let weak: [&[u8]; 5] = [
            b"",
            b"secret",
            &SECRET[..31],
            &[0; 64],
            b"changemechangemechangemechangeme",
        ];
        for secret in weak {
            assert_eq!(LinkSigner::new(secret).err(), Some(WeakSecret), "{secret:?}");
            assert!(LinkSigner::with_previous(SECRET, secret).is_err());
        }
    }

    /// T-14.
    #[test]
    fn rotation_accepts_old_links_and_signs_with_new_secret() {
        let rotated = LinkSigner::with_previous(OTHER, SECRET).unwrap();
        assert_eq!(
            rotated.verify(&link(), &signer().sign(&link()), second(0)),
            Ok(())
        );
        let signature = rotated.sign(&link());
        assert_eq!(rotated.verify(&link(), &signature, second(0)), Ok(()));
        assert_eq!(signature, LinkSigner::new(OTHER).unwrap().sign(&link()));
        let stranger = LinkSigner::new(b"another secret of 32 bytes or so").unwrap();
        let foreign = stranger.sign(&link());
        assert_eq!(
            rotated.verify(&link(), &foreign, second(0)),
            Err(Refused::Signature)
        );
    }

    #[test]
    fn debug_output_contains_no_key() {
        assert_eq!(format!("{:?}", signer()), "LinkSigner(…)");
    }
}
