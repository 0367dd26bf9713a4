//! JSON of requests, parsed with limits.

use serde::de::DeserializeOwned;

use crate::error::Error;
use crate::execution::check_depth;
use crate::limits;

/// Parses a JSON object. The error names the wrong member.
pub fn parse_json<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Error> {
    // The body adds one level to the nesting of its values.
    check_depth(bytes, limits::JSON_DEPTH_MAX + 1).map_err(|error| Error::invalid(error.to_string()))?;
    let text = bytes.trim_ascii_start();
    if !text.is_empty() && !text.starts_with(b"{") {
        return Err(Error::invalid("the body: not a JSON object; write `{…}`"));
    }
    let mut json = serde_json::Deserializer::from_slice(bytes);
    let value = serde_path_to_error::deserialize(&mut json).map_err(|error| {
        let field = error.path().to_string();
        let reason = error.into_inner();
        let message = match field.as_str() {
            "." | "?" => format!("the body: {reason}"),
            field => format!("{field}: {reason}"),
        };
        Error::invalid(safe_message(&message))
    })?;
    json.end()
        .map_err(|error| Error::invalid(safe_message(&format!("the body: {error}"))))?;
    Ok(value)
}

/// A message that quotes the request: truncated, without control characters that could forge log lines.
#[must_use]
pub fn safe_message(message: &str) -> String {
    let mut chars = message
        .chars()
        .map(|c| if c.is_control() { '\u{fffd}' } else { c });
    let mut text: String = chars.by_ref().take(limits::DETAIL_CHARS_MAX).collect();
    if chars.next().is_some() {
        text.push('…');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, serde::Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Sample {
        #[serde(default)]
        args: Vec<String>,
        #[expect(dead_code, reason = "only its presence matters")]
        skill: String,
    }

    fn message(body: &[u8]) -> String {
        parse_json::<Sample>(body).unwrap_err().to_string()
    }

    /// A-03, A-09.
    #[test]
    fn names_the_wrong_field() {
        let cases = [
            (&br#"{"skill":"a","args":[1]}"#[..], "args[0]: invalid type"),
            (
                br#"{"skill":"a","skill":"b"}"#,
                "the body: duplicate field `skill`",
            ),
            (
                br#"{"skill":"a","netwrok":true}"#,
                "netwrok: unknown field `netwrok`, expected `args` or `skill`",
            ),
            (br#"{"args":[]}"#, "the body: missing field `skill`"),
            (br#"{"skill":"a"} x"#, "the body: trailing characters"),
            (b"", "the body: EOF"),
            (b"null", "the body: not a JSON object"),
            (br#"[["a"], "b"]"#, "the body: not a JSON object"),
        ];
        for (body, expected) in cases {
            let message = message(body);
            assert!(message.starts_with(expected), "{message}");
        }
    }

    /// A-02, A-05.
    #[test]
    fn rejects_hostile_json() {
        assert!(message(&[b'['; 100_000]).contains("nested deeper"));
        for body in [
            &b"\xff\xfe{}"[..],
            b"\xef\xbb\xbf{\"skill\":\"a\"}",
            b"{\"skill\":\"\xff\"}",
            b"{\"skill\":\"\xc0\xaf\"}",
            b"{\"skill\":\"\\ud800\"}",
        ] {
            assert!(parse_json::<Sample>(body).is_err(), "{body:?}");
        }
        assert_eq!(
            parse_json::<Sample>(br#"{"skill":"a","args":["b"]}"#)
                .unwrap()
                .args,
            ["b"]
        );
    }

    /// A-23.
    #[test]
    fn truncates_and_escapes_quoted_input() {
        let long = format!("{{\"skill\":\"a\",\"{}\\u001b\\n\":1}}", "x".repeat(10_000));
        let message = message(long.as_bytes());
        assert!(
            message.chars().count() <= limits::DETAIL_CHARS_MAX + 1,
            "{message}"
        );
        assert!(!safe_message("a\n\u{1b}[31mb").contains(char::is_control));
    }
}
