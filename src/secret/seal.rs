//! Seals secrets with XChaCha20-Poly1305 under the master key, bound to their tenant and name.

use std::fmt;
use std::str::FromStr;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use chacha20poly1305::aead::{Aead as _, KeyInit as _, Payload};
use chacha20poly1305::{XChaCha20Poly1305, XNonce};
use sha2::Digest as _;
use zeroize::Zeroizing;

use crate::ids::Tenant;
use crate::limits;
use crate::secret::SecretValue;

/// The master key of an installation.
#[derive(Clone)]
pub struct MasterKey(Zeroizing<[u8; KEY_BYTES]>);

/// Tenant and name of a secret. A sealed value opens only with the same owner, so that rows cannot be swapped.
#[derive(Clone, Copy, Debug)]
pub struct Owner<'a> {
    pub tenant: &'a Tenant,
    pub name: &'a str,
}

/// Never contains the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum InvalidMasterKey {
    #[error("must be 32 random bytes in base64 or as 64 hex digits; `openssl rand -base64 32` generates one")]
    Malformed,
    /// Not random.
    #[error("is not random; `openssl rand -base64 32` generates random bytes")]
    Weak,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Unsealable {
    /// Sealed with another key.
    #[error(
        "was sealed with another master key; start with that key (`SKILLBOX_MASTER_KEY` or master.key), or set the secret again"
    )]
    OtherKey,
    /// Changed, or sealed for another name or tenant.
    #[error("is damaged or was moved in the database; set it again")]
    Damaged,
}

const KEY_BYTES: usize = 32;
const NONCE_BYTES: usize = 24;
const MARK_BYTES: usize = 8;
/// First byte of the format.
const FORMAT: u8 = 1;
const HEAD_BYTES: usize = 1 + MARK_BYTES + NONCE_BYTES;

impl MasterKey {
    #[must_use]
    pub fn from_random(bytes: [u8; KEY_BYTES]) -> Self {
        Self(Zeroizing::new(bytes))
    }

    /// The key as [`FromStr`] reads it, for the key file.
    #[must_use]
    pub fn reveal(&self) -> Zeroizing<String> {
        Zeroizing::new(STANDARD.encode(self.0.as_slice()))
    }

    /// Seals `value` for `owner` with a new nonce. Fails if the operating system returns no random bytes.
    pub fn seal(&self, owner: Owner<'_>, value: &SecretValue) -> Result<Vec<u8>, getrandom::Error> {
        let mut nonce = [0; NONCE_BYTES];
        getrandom::fill(&mut nonce)?;
        let mut sealed = vec![FORMAT];
        sealed.extend_from_slice(&self.mark());
        sealed.extend_from_slice(&nonce);
        let payload = Payload {
            msg: value.reveal().as_bytes(),
            aad: &owner.associated(),
        };
        let text = self.cipher().encrypt(&XNonce::from(nonce), payload);
        sealed.extend(text.expect("a value is far shorter than the cipher's bound"));
        Ok(sealed)
    }

    /// Opens a sealed value of the same owner; never returns a wrong value.
    pub fn open(&self, owner: Owner<'_>, sealed: &[u8]) -> Result<SecretValue, Unsealable> {
        let (head, text) = sealed.split_at_checked(HEAD_BYTES).ok_or(Unsealable::Damaged)?;
        let (format, head) = head.split_at(1);
        let (mark, nonce) = head.split_at(MARK_BYTES);
        if format != [FORMAT] {
            return Err(Unsealable::Damaged);
        }
        if mark != self.mark() {
            return Err(Unsealable::OtherKey);
        }
        let nonce: [u8; NONCE_BYTES] = nonce.try_into().map_err(|_| Unsealable::Damaged)?;
        let payload = Payload {
            msg: text,
            aad: &owner.associated(),
        };
        let opened = self.cipher().decrypt(&XNonce::from(nonce), payload);
        let text = String::from_utf8(opened.map_err(|_| Unsealable::Damaged)?);
        let text = text.map_err(|_| Unsealable::Damaged)?;
        SecretValue::new(text).map_err(|_| Unsealable::Damaged)
    }

    fn cipher(&self) -> XChaCha20Poly1305 {
        XChaCha20Poly1305::new(&(*self.0).into())
    }

    /// Identifies the key without revealing it.
    fn mark(&self) -> [u8; MARK_BYTES] {
        let mut hash = sha2::Sha256::new();
        hash.update(b"skillbox master key\0");
        hash.update(self.0.as_slice());
        let mut mark = [0; MARK_BYTES];
        mark.copy_from_slice(&hash.finalize()[..MARK_BYTES]);
        mark
    }
}

impl Owner<'_> {
    /// Neither part can contain NUL, so the text is unambiguous.
    fn associated(&self) -> Vec<u8> {
        format!("skillbox secret\0{}\0{}", self.tenant, self.name).into_bytes()
    }
}

impl FromStr for MasterKey {
    type Err = InvalidMasterKey;

    fn from_str(text: &str) -> Result<Self, InvalidMasterKey> {
        let text = text.trim();
        let bytes = match text.len() {
            64 => from_hex(text),
            _ => STANDARD.decode(text).ok(),
        };
        let bytes = Zeroizing::new(bytes.ok_or(InvalidMasterKey::Malformed)?);
        let key: [u8; KEY_BYTES] = bytes
            .as_slice()
            .try_into()
            .map_err(|_| InvalidMasterKey::Malformed)?;
        let distinct: std::collections::HashSet<u8> = key.iter().copied().collect();
        if distinct.len() < limits::LINK_SECRET_DISTINCT_MIN {
            return Err(InvalidMasterKey::Weak);
        }
        Ok(Self::from_random(key))
    }
}

fn from_hex(text: &str) -> Option<Vec<u8>> {
    let pairs = text.as_bytes().chunks(2);
    pairs
        .map(|pair| {
            let pair = std::str::from_utf8(pair).ok()?;
            let is_hex = pair.bytes().all(|byte| byte.is_ascii_hexdigit());
            is_hex.then(|| u8::from_str_radix(pair, 16).ok()).flatten()
        })
        .collect()
}

impl fmt::Debug for MasterKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("MasterKey(***)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(first: u8) -> MasterKey {
        MasterKey::from_random(std::array::from_fn(|index| {
            first.wrapping_add(u8::try_from(index).unwrap())
        }))
    }

    fn value() -> SecretValue {
        SecretValue::new("hunter2\n".to_owned()).unwrap()
    }

    #[test]
    fn sealed_value_opens_for_its_owner_only() {
        let (acme, other): (Tenant, Tenant) = ("acme".parse().unwrap(), "acm".parse().unwrap());
        let owner = |tenant, name| Owner { tenant, name };
        let sealed = key(1).seal(owner(&acme, "TOKEN"), &value()).unwrap();
        assert_eq!(key(1).open(owner(&acme, "TOKEN"), &sealed), Ok(value()));
        for elsewhere in [
            owner(&other, "TOKEN"),
            owner(&acme, "TOKEN2"),
            owner(&other, "eTOKEN"),
        ] {
            assert_eq!(key(1).open(elsewhere, &sealed), Err(Unsealable::Damaged));
        }
    }

    #[test]
    fn detects_another_key_and_any_change() {
        let tenant = Tenant::default_tenant();
        let owner = Owner {
            tenant: &tenant,
            name: "TOKEN",
        };
        let sealed = key(1).seal(owner, &value()).unwrap();
        assert_eq!(key(2).open(owner, &sealed), Err(Unsealable::OtherKey));
        for place in 0..sealed.len() {
            let mut changed = sealed.clone();
            changed[place] ^= 1;
            assert!(key(1).open(owner, &changed).is_err(), "byte {place}");
            assert!(key(1).open(owner, &sealed[..place]).is_err(), "cut at {place}");
        }
    }

    #[test]
    fn sealing_is_random_and_hides_the_value() {
        let tenant = Tenant::default_tenant();
        let owner = Owner {
            tenant: &tenant,
            name: "TOKEN",
        };
        let [one, two] = [0; 2].map(|_| key(1).seal(owner, &value()).unwrap());
        assert_ne!(one[1 + MARK_BYTES..], two[1 + MARK_BYTES..]);
        assert!(!one.windows(7).any(|window| window == b"hunter2"));
        let key = key(1);
        assert_eq!(format!("{key:?}"), "MasterKey(***)");
    }

    #[test]
    fn reads_random_keys_from_hex_or_base64() {
        let written = key(7).reveal();
        let read: MasterKey = written.parse().unwrap();
        assert_eq!(read.reveal(), written);
        let hex: String = (7..39_u8).map(|byte| format!("{byte:02X}")).collect();
        assert_eq!(hex.parse::<MasterKey>().unwrap().reveal(), written);
        for wrong in ["", "short", &"x".repeat(64), &"+f".repeat(32), &hex[2..]] {
            let refused = wrong.parse::<MasterKey>().unwrap_err();
            assert_eq!(refused, InvalidMasterKey::Malformed, "{wrong}");
        }
        assert_eq!(
            "00".repeat(32).parse::<MasterKey>().unwrap_err(),
            InvalidMasterKey::Weak
        );
    }
}
