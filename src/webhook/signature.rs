//! Signatures by the Standard Webhooks scheme: HMAC-SHA256 over id, time and body.

use std::fmt;
use std::str::FromStr;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;
use zeroize::Zeroizing;

/// The signing secret of a tenant.
#[derive(Clone, PartialEq, Eq)]
pub struct SigningSecret(Zeroizing<Vec<u8>>);

/// Never contains the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("is not `whsec_` and 24 to 64 bytes in base64")]
pub struct InvalidSigningSecret;

/// A message to sign.
#[derive(Clone, Copy, Debug)]
pub struct Message<'a> {
    /// `webhook-id`: the same for all attempts.
    pub id: &'a str,
    /// `webhook-timestamp`: of this attempt, in seconds since 1970.
    pub seconds: i64,
    pub body: &'a [u8],
}

const PREFIX: &str = "whsec_";
const FRESH_BYTES: usize = 32;

impl SigningSecret {
    /// Fails if the operating system returns no random bytes.
    pub fn generate() -> Result<Self, getrandom::Error> {
        let mut bytes = Zeroizing::new(vec![0; FRESH_BYTES]);
        getrandom::fill(&mut bytes)?;
        Ok(Self(bytes))
    }

    /// As receivers are configured with it.
    #[must_use]
    pub fn reveal(&self) -> Zeroizing<String> {
        Zeroizing::new(format!("{PREFIX}{}", STANDARD.encode(self.0.as_slice())))
    }

    fn sign(&self, message: Message<'_>) -> String {
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.0).expect("a key of any length will do");
        mac.update(format!("{}.{}.", message.id, message.seconds).as_bytes());
        mac.update(message.body);
        format!("v1,{}", STANDARD.encode(mac.finalize().into_bytes()))
    }
}

/// `webhook-signature`: one signature per secret.
#[must_use]
pub fn signatures(secrets: &[SigningSecret], message: Message<'_>) -> String {
    let signed: Vec<_> = secrets.iter().map(|secret| secret.sign(message)).collect();
    signed.join(" ")
}

impl FromStr for SigningSecret {
    type Err = InvalidSigningSecret;

    fn from_str(text: &str) -> Result<Self, InvalidSigningSecret> {
        let encoded = text.strip_prefix(PREFIX).ok_or(InvalidSigningSecret)?;
        let bytes = Zeroizing::new(STANDARD.decode(encoded).map_err(|_| InvalidSigningSecret)?);
        if (24..=64).contains(&bytes.len()) {
            Ok(Self(bytes))
        } else {
            Err(InvalidSigningSecret)
        }
    }
}

impl fmt::Debug for SigningSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SigningSecret(***)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example that the scheme's own libraries are tested with.
    #[test]
    fn signature_matches_the_published_example() {
        let secret: SigningSecret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw".parse().unwrap();
        let message = Message {
            id: "msg_p5jXN8AQM9LWM0D4loKWxJek",
            seconds: 1_614_265_330,
            body: br#"{"test": 2432232314}"#,
        };
        let expected = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=";
        assert_eq!(signatures(std::slice::from_ref(&secret), message), expected);
        let two = signatures(&[secret.clone(), SigningSecret::generate().unwrap()], message);
        assert!(two.starts_with(&format!("{expected} v1,")), "{two}");
    }

    #[test]
    fn secret_reads_back_and_is_hidden_in_debug_output() {
        let secret = SigningSecret::generate().unwrap();
        assert_eq!(secret.reveal().parse(), Ok(secret.clone()));
        assert_ne!(secret, SigningSecret::generate().unwrap());
        assert_eq!(format!("{secret:?}"), "SigningSecret(***)");
        for wrong in [
            "",
            "whsec_",
            "whsec_AAAA",
            "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
            "whsec_%%%",
        ] {
            assert!(wrong.parse::<SigningSecret>().is_err(), "{wrong}");
        }
    }
}
