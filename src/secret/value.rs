//! The value of a secret: what a variable can hold, and what no log shows.

use std::fmt;

use zeroize::Zeroizing;

use crate::limits;

/// A value that a program can be given as a variable: 1 to [`limits::SECRET_BYTES_MAX`] bytes of text without NUL.
#[derive(Clone, PartialEq, Eq)]
pub struct SecretValue(Zeroizing<String>);

/// Why a text is no value; it is never repeated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum InvalidValue {
    /// There is nothing to keep.
    #[error("is empty; delete the secret instead")]
    Empty,
    /// Too long.
    #[error("has more than {max} bytes; keep large things in a blob or in the skill", max = limits::SECRET_BYTES_MAX)]
    TooLong,
    /// No variable can hold it.
    #[error("holds a NUL character, which no variable can; encode it, for example in base64")]
    Nul,
}

impl SecretValue {
    /// Checks `text`.
    pub fn new(text: impl Into<Zeroizing<String>>) -> Result<Self, InvalidValue> {
        let text = text.into();
        match text.len() {
            0 => Err(InvalidValue::Empty),
            bytes if bytes > limits::SECRET_BYTES_MAX => Err(InvalidValue::TooLong),
            _ if text.contains('\0') => Err(InvalidValue::Nul),
            _ => Ok(Self(text)),
        }
    }

    /// The value itself: for the program that declared it, and for nobody else.
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
    fn a_value_is_whatever_a_variable_can_hold() {
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
