//! Finds characters that hide or reorder text.

/// The first character of `text` that is invisible or reorders text: control characters except line break and tab,
/// zero-width and bidi characters, tag characters, fillers, unusual variation selectors.
///
/// The two joiners are legitimate between letters of many scripts and in emoji, so a single one between two non-ASCII
/// characters is accepted.
#[must_use]
pub fn hidden_character(text: &str) -> Option<char> {
    let mut before = None;
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        let joins = matches!(c, '\u{200c}' | '\u{200d}')
            && [before, rest.peek().copied()]
                .iter()
                .all(|c| c.is_some_and(|c: char| !c.is_ascii() && !hides(c)));
        if hides(c) && !joins {
            return Some(c);
        }
        before = Some(c);
    }
    None
}

fn hides(c: char) -> bool {
    match c {
        '\n' | '\r' | '\t' => false,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' => true,
        '\u{180b}'..='\u{180f}'
        | '\u{200b}'..='\u{200f}'
        | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}' => true,
        // The last two select text or emoji style, which is visible.
        '\u{fe00}'..='\u{fe0d}' => true,
        '\u{3164}' | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}' | '\u{1d173}'..='\u{1d17a}' => true,
        '\u{e0000}'..='\u{e0fff}' => true,
        _ => c.is_control(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// W-13.
    #[test]
    fn finds_invisible_characters() {
        let hiding = [
            "a\u{200b}b",
            "a\u{200d}b",
            "\u{e0041}",
            "\u{202e}x",
            "\u{2066}x",
            "\u{feff}x",
            "a\u{1b}[0m",
            "\0",
            "a\u{ad}b",
            "\u{3164}",
            "\u{85}",
            "é\u{200d}\u{200d}é",
            "x\u{e0100}",
            "a\u{2028}b",
        ];
        for text in hiding {
            assert!(hidden_character(text).is_some(), "{text:?}");
        }
        for text in [
            "plain",
            "line\r\nbreak\tand tab",
            "Grüße, 世界",
            "⚠️ 👩‍💻",
            "می‌خواهم",
        ] {
            assert_eq!(hidden_character(text), None, "{text:?}");
        }
    }
}
