//! File names of downloads.

use std::fmt::Write as _;

/// The `Content-Disposition` of a file at `path`: always an attachment, with a name without bidirectional, separator
/// or control characters (O-09).
#[must_use]
pub(crate) fn disposition(path: &str) -> String {
    let name: String = path
        .rsplit('/')
        .next()
        .unwrap_or_default()
        .chars()
        .map(|c| if is_harmless(c) { c } else { '_' })
        .take(NAME_CHARS_MAX)
        .collect();
    // A leading dot hides a file; Windows drops a trailing dot or space.
    let name = name.trim_end_matches(['.', ' ']);
    let name = match name.strip_prefix('.') {
        Some(rest) => format!("_{rest}"),
        None if name.is_empty() => "download".to_owned(),
        None => name.to_owned(),
    };
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
    let ascii: String = name.chars().map(|c| if plain(c) { c } else { '_' }).collect();
    let mut header = format!("attachment; filename=\"{ascii}\"");
    if ascii != name {
        header.push_str("; filename*=UTF-8''");
        for byte in name.bytes() {
            if plain(char::from(byte)) {
                header.push(char::from(byte));
            } else {
                write!(header, "%{byte:02X}").expect("a string takes everything");
            }
        }
    }
    header
}

const NAME_CHARS_MAX: usize = 150;

fn is_harmless(c: char) -> bool {
    let turns_the_text = matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{061c}' | '\u{feff}');
    !c.is_control() && !turns_the_text && !"/\\\"<>:|?*".contains(c)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// O-09.
    #[test]
    fn sanitizes_file_names() {
        let names = [
            ("plots/report.pdf", "attachment; filename=\"report.pdf\""),
            (
                "a b.txt",
                "attachment; filename=\"a_b.txt\"; filename*=UTF-8''a%20b.txt",
            ),
            (
                "é.txt",
                "attachment; filename=\"_.txt\"; filename*=UTF-8''%C3%A9.txt",
            ),
            (
                "x\"; filename=\"evil.exe",
                "attachment; filename=\"x___filename__evil.exe\"; filename*=UTF-8''x_%3B%20filename%3D_evil.exe",
            ),
            (
                "a\r\nX: x",
                "attachment; filename=\"a__X__x\"; filename*=UTF-8''a__X_%20x",
            ),
            ("\u{202e}fdp.exe", "attachment; filename=\"_fdp.exe\""),
            (".bashrc", "attachment; filename=\"_bashrc\""),
            ("..", "attachment; filename=\"download\""),
            ("", "attachment; filename=\"download\""),
            ("\\xff.txt", "attachment; filename=\"_xff.txt\""),
            ("-rf", "attachment; filename=\"-rf\""),
            ("trailing. ", "attachment; filename=\"trailing\""),
        ];
        for (path, expected) in names {
            let header = disposition(path);
            assert_eq!(header, expected, "{path:?}");
        }
    }

    #[test]
    fn truncates_long_file_names() {
        assert!(disposition(&"é".repeat(10_000)).len() < 1200);
    }
}
