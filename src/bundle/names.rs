//! Checks paths of bundles: equal on every file system, without traversal and without hidden parts.

use unicode_normalization::UnicodeNormalization as _;

use crate::limits;
use crate::skill::hidden_character;

/// Whether `path` is a plain relative path with `/`, visible, at most 240 bytes.
///
/// # Errors
///
/// The violated rule, as the end of a sentence.
pub fn check_path(path: &str) -> Result<(), &'static str> {
    if path.is_empty() {
        return Err("has no name");
    }
    if path.len() > limits::ARCHIVE_PATH_BYTES_MAX {
        return Err("has a path of more than 240 bytes; shorten it");
    }
    if path.contains('\\') {
        return Err("has a backslash in its path; pack it with `/` between folders");
    }
    if path.starts_with('/') || path.as_bytes().get(1) == Some(&b':') {
        return Err("has an absolute path; pack it relative to the skill's folder");
    }
    if path.chars().any(char::is_control) || hidden_character(path).is_some() {
        return Err("has a control or invisible character in its path; rename it");
    }
    if path.split('/').any(|part| matches!(part, "" | "." | "..")) {
        return Err("has an empty, `.` or `..` part in its path; pack it relative to the skill's folder");
    }
    if cfg!(windows) && !path.split('/').all(windows_keeps) {
        return Err("has a name with a special meaning on Windows; rename it, or use another system");
    }
    Ok(())
}

/// Whether Windows reads this name as this file: no device, no alternate stream, no end that Windows drops.
fn windows_keeps(part: &str) -> bool {
    const DEVICES: [&str; 6] = ["con", "prn", "aux", "nul", "conin$", "conout$"];
    let stem = part.split('.').next().unwrap_or(part).trim_end().to_lowercase();
    let numbered = ["com", "lpt"]
        .iter()
        .find_map(|port| stem.strip_prefix(port))
        .is_some_and(|number| {
            matches!(
                number.chars().collect::<Vec<_>>()[..],
                ['0'..='9' | '¹' | '²' | '³']
            )
        });
    !part.contains(['<', '>', ':', '"', '|', '?', '*'])
        && !part.ends_with(['.', ' '])
        && !numbered
        && !DEVICES.contains(&stem.as_str())
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Named<'a> {
    pub(super) path: &'a str,
    pub(super) folder: bool,
}

/// Finds two paths that cannot both exist: duplicates, a file that is also a folder, or two names that are equal on
/// some file system (after lower-casing and Unicode normal form C, in any part).
pub(super) fn clash<'a>(names: impl Iterator<Item = Named<'a>>) -> Option<(&'a str, &'a str)> {
    let mut sorted: Vec<_> = names.map(Folded::from).collect();
    // Parts of a path are joined by the lowest character, so a folder directly precedes its content.
    sorted.sort_unstable_by(|a, b| a.folded.cmp(&b.folded));
    sorted.windows(2).find_map(|pair| {
        let [x, y] = pair else { return None };
        x.collides_with(y).then_some((x.name.path, y.name.path))
    })
}

/// The name as every file system compares it.
struct Folded<'a> {
    folded: String,
    name: Named<'a>,
}

impl<'a> From<Named<'a>> for Folded<'a> {
    fn from(name: Named<'a>) -> Self {
        Self {
            folded: folded(name.path),
            name,
        }
    }
}

impl Folded<'_> {
    /// Whether it conflicts with `next`, which sorts after it.
    fn collides_with(&self, next: &Self) -> bool {
        let shared = self
            .folded
            .split('\0')
            .zip(next.folded.split('\0'))
            .take_while(|(a, b)| a == b)
            .count();
        let (x, y) = (&self.name, &next.name);
        let spelled_alike = x.path.split('/').take(shared).eq(y.path.split('/').take(shared));
        let x_is_on_the_way = x.path.split('/').count() == shared;
        let y_is_deeper = y.path.split('/').count() > shared;
        !spelled_alike || x_is_on_the_way && !(x.folder && y_is_deeper)
    }
}

fn folded(path: &str) -> String {
    path.nfc()
        .flat_map(char::to_lowercase)
        .nfc()
        .map(|c| if c == '/' { '\0' } else { c })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn detects_names_reserved_on_windows() {
        for part in [
            "CON",
            "nul.py",
            "com1",
            "Lpt³.txt",
            "a:b",
            "a?",
            "x.",
            "x ",
            "aux .py",
            "CONIN$",
        ] {
            assert!(!windows_keeps(part), "{part:?}");
        }
        for part in [
            "SKILL.md",
            "console.py",
            "com",
            "com10",
            "comb",
            ".env",
            "a b",
            "é",
        ] {
            assert!(windows_keeps(part), "{part:?}");
        }
    }

    /// Z-01, Z-02, Z-16.
    #[test]
    fn rejects_traversal_and_hidden_characters() {
        let long = "a/".repeat(120) + "b";
        let wrong = [
            "",
            ".",
            "..",
            "../x",
            "a/../x",
            "a/..",
            "a//b",
            "/etc/x",
            "a/",
            "./a",
            "C:\\x",
            "C:/x",
            "\\\\srv\\x",
            "..\\x",
            "a\\..\\..\\x",
            "a\0b",
            "a\nb",
            "a\u{1b}[31m",
            "a\u{202e}b",
            "a\u{200b}",
            "a\u{7f}",
            &long,
        ];
        for path in wrong {
            assert!(check_path(path).is_err(), "{path:?}");
        }
        for path in [
            "SKILL.md",
            "a/b.py",
            "-rf",
            "con",
            "nul.txt",
            "ünï/世界.txt",
            "a b",
            "...",
            "..a",
            "%2e%2e",
            "10:30.txt",
        ] {
            assert_eq!(check_path(path), Ok(()), "{path:?}");
        }
    }

    fn clashes(paths: &[&str]) -> bool {
        let named = paths.iter().map(|path| match path.strip_suffix('/') {
            Some(path) => Named { path, folder: true },
            None => Named { path, folder: false },
        });
        clash(named).is_some()
    }

    /// Z-12, Z-13.
    #[test]
    fn rejects_names_that_collide_on_other_systems() {
        let wrong: [&[&str]; 10] = [
            &["a", "a"],
            &["a/", "a/"],
            &["a", "a/"],
            &["a/", "a"],
            &["a", "a-", "a.b", "a/b"],
            &["SKILL.md", "x", "skill.md"],
            &["\u{e9}", "e\u{301}"],
            &["A/x", "a/y"],
            &["a/B/1", "a/b/2"],
            &["É/x", "e\u{301}/y"],
        ];
        for paths in wrong {
            assert!(clashes(paths), "{paths:?}");
        }
        let fine: [&[&str]; 4] = [
            &["a/", "a/b", "a/c", "b"],
            &["a/b", "a/", "a/b.c"],
            &["a", "ab", "a.b", "a-b/c"],
            &["x/a", "y/A"],
        ];
        for paths in fine {
            assert!(!clashes(paths), "{paths:?}");
        }
    }
}
