//! The value of a secret: fits into an environment variable, and is never logged.

use std::fmt;

use zeroize::Zeroizing;

use crate::limits;

/// 1 to [`limits::SECRET_BYTES_MAX`] bytes of text without NUL.
#[derive(Clone, PartialEq, Eq)]
pub struct SecretValue(Zeroizing<String>);

/// The messages never contain the value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum InvalidValue {
    #[error("is empty; delete the secret instead")]
    Empty,
    #[error("has more than {max} bytes; store large data in a blob or in the skill", max = limits::SECRET_BYTES_MAX)]
    TooLong,
    #[error("contains a NUL character, which no environment variable can; encode it, for example in base64")]
    Nul,
}

impl SecretValue {
    pub fn new(text: impl Into<Zeroizing<String>>) -> Result<Self, InvalidValue> {
        let text = text.into();
        match text.len() {
            0 => Err(InvalidValue::Empty),
            bytes if bytes > limits::SECRET_BYTES_MAX => Err(InvalidValue::TooLong),
            _ if text.contains('\0') => Err(InvalidValue::Nul),
            _ => Ok(Self(text)),
        }
    }

    /// Only for the program that declares the secret.
    #[must_use]
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for SecretValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SecretValue(***)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    ///
    #[test]
    fn accepts_values_that_fit_into_a_variable() {
        let long = "x".repeat(limits::SECRET_BYTES_MAX);
        for text in ["x", "a\nb=c \"'$(id)` %s", " ", "ü\u{202e}", &long] {
            let value = SecretValue::new(text.to_owned()).unwrap();
            assert_eq!(value.reveal(), text);
            assert!(!format!("{value:?}").contains(text), "{value:?}");
        }
        let refused = |text: &str| SecretValue::new(text.to_owned()).unwrap_err();
        assert_eq!(refused(""), InvalidValue::Empty);
        assert_eq!(refused("a\0b"), InvalidValue::Nul);
        assert_eq!(refused(&format!("{long}x")), InvalidValue::TooLong);
    }
}
