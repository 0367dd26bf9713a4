//! Escapes untrusted text for terminals, so that it cannot move the cursor, set the clipboard or reorder text (W-12).

use std::borrow::Cow;

use crate::skill::hidden_character;

/// Text of several lines; line breaks and tabs stay.
pub(crate) fn lines(text: &str) -> Cow<'_, str> {
    escape(
        text,
        |c| matches!(c, '\n' | '\t'),
        |c, out| out.extend(c.escape_unicode()),
    )
}

/// Text for one line of a table or message.
pub(crate) fn line(text: &str) -> Cow<'_, str> {
    escape(
        text,
        |_| false,
        |c, out| {
            if matches!(c, '\n' | '\t') {
                out.push(' ')
            } else {
                out.extend(c.escape_unicode())
            }
        },
    )
}

/// JSON text of the same value: hidden characters occur only inside strings.
pub(crate) fn json(text: &str) -> Cow<'_, str> {
    escape(
        text,
        |c| matches!(c, '\n' | '\t' | '\r'),
        |c, out| {
            for unit in c.encode_utf16(&mut [0; 2]) {
                out.push_str(&format!("\\u{unit:04x}"));
            }
        },
    )
}

fn escape(text: &str, stays: impl Fn(char) -> bool, replace: impl Fn(char, &mut String)) -> Cow<'_, str> {
    let hides =
        |c: char| matches!(c, '\n' | '\t' | '\r') || hidden_character(c.encode_utf8(&mut [0; 4])).is_some();
    let acts = |c: char| !c.is_ascii_graphic() && c != ' ' && hides(c) && !stays(c);
    if !text.chars().any(acts) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        if acts(c) {
            replace(c, &mut shown)
        } else {
            shown.push(c)
        }
    }
    Cow::Owned(shown)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ATTACKS: [&str; 8] = [
        "\u{1b}[2J\u{1b}[H",
        "\u{1b}]52;c;ZXZpbA==\u{7}",
        "\u{9b}31m",
        "a\u{202e}b",
        "a\u{2066}b",
        "\rfake",
        "\u{e0041}\u{e0042}",
        "\u{8}\u{7f}\0",
    ];

    /// W-12.
    #[test]
    fn escapes_terminal_control_characters() {
        for attack in ATTACKS {
            for shown in [lines(attack), line(attack), json(attack)] {
                let shown = shown.replace('\r', "");
                assert!(
                    shown.chars().all(|c| c.is_ascii_graphic() || c == ' '),
                    "{shown:?}"
                );
            }
        }
    }

    #[test]
    fn leaves_ordinary_text_unchanged() {
        let text = "Grüße, 世界 — “quoted”\n\tindented";
        assert!(matches!(lines(text), Cow::Borrowed(_)));
        assert_eq!(line("a\nb"), "a b");
    }

    #[test]
    fn escaping_preserves_json_values() {
        let value = serde_json::json!({"a\u{202e}": ATTACKS.concat(), "b": "\u{e0041}"});
        let text = serde_json::to_string_pretty(&value).unwrap();
        let back: serde_json::Value = serde_json::from_str(&json(&text)).unwrap();
        assert_eq!(back, value);
    }
}
