//! JSON text that is kept byte for byte.

use std::fmt;

use serde_json::value::RawValue;

use crate::limits;

/// Checked JSON text: valid UTF-8, nested at most [`limits::JSON_DEPTH_MAX`] levels. Byte for byte, because parsing
/// would change `2^53+1` or a number with 40 digits.
#[derive(Clone, Debug)]
pub struct JsonText(Box<RawValue>);

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidJson {
    #[error("not valid JSON: {0}")]
    Syntax(String),
    #[error("nested deeper than {max} levels", max = limits::JSON_DEPTH_MAX)]
    TooDeep,
}

impl JsonText {
    /// White space around the value is dropped.
    pub fn parse(bytes: &[u8]) -> Result<Self, InvalidJson> {
        // Before parsing, so that the parser sees only limited depth.
        check_depth(bytes, limits::JSON_DEPTH_MAX)?;
        serde_json::from_slice(bytes)
            .map(Self)
            .map_err(|e| InvalidJson::Syntax(e.to_string()))
    }

    /// Of JSON that is known to be well formed.
    pub fn from_raw(raw: Box<RawValue>) -> Result<Self, InvalidJson> {
        check_depth(raw.get().as_bytes(), limits::JSON_DEPTH_MAX)?;
        Ok(Self(raw))
    }

    #[must_use]
    pub fn as_str(&self) -> &str {
        self.0.get()
    }

    /// For embedding into a larger document.
    #[must_use]
    pub fn as_raw(&self) -> &RawValue {
        &self.0
    }
}

impl PartialEq for JsonText {
    fn eq(&self, other: &Self) -> bool {
        self.as_str() == other.as_str()
    }
}

impl fmt::Display for JsonText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl serde::Serialize for JsonText {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

impl<'de> serde::Deserialize<'de> for JsonText {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = Box::<RawValue>::deserialize(deserializer)?;
        Self::from_raw(raw).map_err(serde::de::Error::custom)
    }
}

/// Rejects nesting beyond `levels`. Counts brackets outside strings; the parser checks the rest.
pub fn check_depth(bytes: &[u8], levels: usize) -> Result<(), InvalidJson> {
    let (mut depth, mut in_string, mut escaped) = (0usize, false, false);
    for &byte in bytes {
        if in_string {
            match byte {
                _ if escaped => escaped = false,
                b'\\' => escaped = true,
                b'"' => in_string = false,
                _ => {}
            }
            continue;
        }
        match byte {
            b'"' => in_string = true,
            b'[' | b'{' => {
                depth += 1;
                if depth > levels {
                    return Err(InvalidJson::TooDeep);
                }
            }
            b']' | b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// numbers no parser can hold come back as they were written.
    #[test]
    fn numbers_survive_byte_for_byte() {
        for text in [
            "9007199254740993",
            "18446744073709551616",
            "-0",
            "1e400",
            "0.1000000000000000055511151231257827021181",
        ] {
            assert_eq!(JsonText::parse(text.as_bytes()).unwrap().as_str(), text);
        }
    }

    ///
    #[test]
    fn rejects_deep_json_before_parsing() {
        let deep = "[".repeat(100_000);
        assert_eq!(JsonText::parse(deep.as_bytes()), Err(InvalidJson::TooDeep));
        let fine = format!(
            "{}{}",
            "[".repeat(limits::JSON_DEPTH_MAX),
            "]".repeat(limits::JSON_DEPTH_MAX)
        );
        assert!(JsonText::parse(fine.as_bytes()).is_ok());
        assert!(JsonText::parse(format!("\"{}\"", "[".repeat(1000)).as_bytes()).is_ok());
    }

    /// A-05, O-11.
    #[test]
    fn rejects_invalid_json() {
        for text in [
            &b"NaN"[..],
            b"",
            b"{}x",
            b"\xff\xfe{\0}\0",
            b"\"\xff\"",
            b"{'a':1}",
        ] {
            assert!(
                matches!(JsonText::parse(text), Err(InvalidJson::Syntax(_))),
                "{text:?}"
            );
        }
    }
}
