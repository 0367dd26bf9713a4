//! Parses a Python requirement and writes it in a canonical form, so that no installer can read it as an option, a
//! path, a URL, a variable or several lines.

use std::collections::BTreeSet;
use std::str::FromStr;

use crate::error::quoted;

/// A requirement in canonical form: name, extras, versions, marker and hashes.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Requirement(String);

impl Requirement {
    /// The canonical line for pip.
    #[must_use]
    pub(super) fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for Requirement {
    type Err = String;

    /// Parses `name [extras] [versions] [; marker] [--hash=…]…`.
    fn from_str(line: &str) -> Result<Self, String> {
        let refused = |rule: &str| format!("{} {rule}", quoted(line));
        let words: Vec<_> = line.split_whitespace().collect();
        let options = words.iter().position(|word| word.starts_with('-'));
        let (words, options) = words.split_at(options.unwrap_or(words.len()));
        let text = words.join(" ");
        let (package, marker) = match text.split_once(';') {
            Some((package, marker)) => (package.trim(), Some(marker)),
            None => (text.as_str(), None),
        };
        if package.contains("://") || package.contains('@') || is_path(package) {
            return Err(refused(
                "would not be fetched from the configured index; name a published package and its version",
            ));
        }
        let end = package
            .find(|c: char| !(c.is_ascii_alphanumeric() || "-_.".contains(c)))
            .unwrap_or(package.len());
        let (name, rest) = package.split_at(end);
        let name = normal_name(name).ok_or_else(|| refused("does not start with the name of a package"))?;
        let (extras, rest) =
            extras(rest.trim()).ok_or_else(|| refused("has extras that are not written like `[one,two]`"))?;
        let versions =
            versions(rest).ok_or_else(|| refused("has versions that are not written like `>=1.2,<2`"))?;
        let mut text = format!("{name}{extras}{versions}");
        if let Some(marker) = marker {
            let marker = self::marker(marker).ok_or_else(|| {
                refused("has a marker that is not written like `python_version < \"3.12\"`")
            })?;
            text += &format!(" ; {marker}");
        }
        for hash in hashes(options)? {
            text += &format!(" --hash={hash}");
        }
        Ok(Self(text))
    }
}

/// Endings that pip reads as files, whatever precedes them.
const ARCHIVES: [&str; 12] = [
    ".whl", ".zip", ".tar", ".gz", ".tgz", ".bz2", ".tbz", ".xz", ".txz", ".lz", ".tlz", ".lzma",
];

fn is_archive(text: &str) -> bool {
    let text = text.to_ascii_lowercase();
    ARCHIVES.iter().any(|end| text.ends_with(end))
}

fn is_path(package: &str) -> bool {
    package.starts_with(['.', '/', '~', '\\'])
        || package.contains(['/', '\\'])
        || is_archive(package)
        || package
            .split_once(':')
            .is_some_and(|(scheme, _)| !scheme.contains(['=', '<', '>']))
}

/// Parses `--hash=…` and `--hash …`, each once. Other options are invalid.
fn hashes(words: &[&str]) -> Result<BTreeSet<String>, String> {
    let mut hashes = BTreeSet::new();
    let mut words = words.iter();
    while let Some(word) = words.next() {
        let value = match word.strip_prefix("--hash") {
            Some("") => words.next().copied(),
            Some(rest) => rest.strip_prefix('='),
            None => None,
        };
        let hash = value.and_then(|hash| {
            let (algorithm, digest) = hash.split_once(':')?;
            let known = matches!(algorithm, "sha256" | "sha384" | "sha512");
            let hex = digest.len() >= 64 && digest.bytes().all(|b| b.is_ascii_hexdigit());
            (known && hex).then(|| hash.to_ascii_lowercase())
        });
        hashes.insert(hash.ok_or_else(|| format!("{} is not supported here", quoted(word)))?);
    }
    Ok(hashes)
}

/// Lower case, with one `-` for each run of `-`, `_` and `.` (PEP 503).
fn normal_name(name: &str) -> Option<String> {
    let ends = |c: Option<char>| c.is_some_and(|c| c.is_ascii_alphanumeric());
    if !ends(name.chars().next()) || !ends(name.chars().last()) {
        return None;
    }
    let parts = name.split(['-', '_', '.']).filter(|part| !part.is_empty());
    Some(parts.collect::<Vec<_>>().join("-").to_ascii_lowercase())
}

fn extras(text: &str) -> Option<(String, &str)> {
    let Some(rest) = text.strip_prefix('[') else {
        return Some((String::new(), text));
    };
    let (inside, rest) = rest.split_once(']')?;
    let names: Option<BTreeSet<String>> = inside.split(',').map(|name| normal_name(name.trim())).collect();
    let names: Vec<_> = names?.into_iter().collect();
    Some((format!("[{}]", names.join(",")), rest.trim()))
}

const OPERATORS: [&str; 8] = ["===", "==", "~=", "!=", "<=", ">=", "<", ">"];

fn versions(text: &str) -> Option<String> {
    let inside = text.strip_prefix('(').and_then(|rest| rest.strip_suffix(')'));
    let text = inside.unwrap_or(text).trim().trim_end_matches(',');
    if text.is_empty() {
        return Some(String::new());
    }
    let clause = |clause: &str| {
        let clause = clause.trim();
        let operator = OPERATORS.iter().find(|operator| clause.starts_with(**operator))?;
        let version = clause[operator.len()..].trim();
        is_version(version).then(|| format!("{operator}{version}"))
    };
    let clauses: Option<BTreeSet<String>> = text.split(',').map(clause).collect();
    Some(clauses?.into_iter().collect::<Vec<_>>().join(","))
}

/// Letters and digits with single separators between them, and `.*` at the end (PEP 440 and its predecessor).
fn is_version(version: &str) -> bool {
    let parts = version.strip_suffix(".*").unwrap_or(version);
    let mut parts = parts.split(['.', '+', '!', '_', '-']);
    parts.all(|part| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_alphanumeric()))
        && !is_archive(version)
}

/// Marker variables (PEP 508), including old spellings.
const VARIABLES: [&str; 18] = [
    "extra",
    "implementation_name",
    "implementation_version",
    "os.name",
    "os_name",
    "platform.machine",
    "platform.python_implementation",
    "platform.version",
    "platform_machine",
    "platform_python_implementation",
    "platform_release",
    "platform_system",
    "platform_version",
    "python_full_version",
    "python_implementation",
    "python_version",
    "sys.platform",
    "sys_platform",
];

/// The canonical marker: comparisons joined by `and` and `or`, with brackets.
fn marker(text: &str) -> Option<String> {
    let mut words = Vec::new();
    let mut rest = text.trim();
    let mut depth = 0_usize;
    let mut is_compared = false;
    while !rest.is_empty() {
        let (word, behind) = marker_word(rest)?;
        rest = behind;
        match (word.as_str(), is_compared) {
            ("(", false) => depth += 1,
            (")", true) => depth = depth.checked_sub(1)?,
            ("and" | "or", true) => is_compared = false,
            (_, false) => {
                let (operator, behind) = marker_operator(rest)?;
                let (value, behind) = marker_word(behind)?;
                if !is_value(&word) || !is_value(&value) {
                    return None;
                }
                words.extend([word, operator, value]);
                (rest, is_compared) = (behind, true);
                continue;
            }
            (_, true) => return None,
        }
        words.push(word);
    }
    (is_compared && depth == 0).then(|| words.join(" "))
}

/// The next token, a bracket, a name or a quoted text, and the rest.
fn marker_word(text: &str) -> Option<(String, &str)> {
    let first = text.chars().next()?;
    if matches!(first, '(' | ')') {
        return Some((first.to_string(), text[1..].trim_start()));
    }
    if matches!(first, '"' | '\'') {
        let (inside, rest) = text[1..].split_once(first)?;
        let legal = |c: char| c.is_ascii_alphanumeric() || " ._+*-".contains(c);
        // A word with a leading hyphen would be an option.
        return (inside.chars().all(legal) && !inside.contains(" -"))
            .then(|| (format!("'{inside}'"), rest.trim_start()));
    }
    let end = text
        .find(|c: char| !(c.is_ascii_alphanumeric() || "._".contains(c)))
        .unwrap_or(text.len());
    (end > 0).then(|| (text[..end].to_owned(), text[end..].trim_start()))
}

fn marker_operator(text: &str) -> Option<(String, &str)> {
    if let Some(operator) = OPERATORS.iter().find(|operator| text.starts_with(**operator)) {
        return Some(((*operator).to_owned(), text[operator.len()..].trim_start()));
    }
    match marker_word(text)? {
        (word, rest) if word == "in" => Some((word, rest)),
        (word, rest) if word == "not" => {
            let (word, rest) = marker_word(rest)?;
            (word == "in").then(|| ("not in".to_owned(), rest))
        }
        _ => None,
    }
}

fn is_value(word: &str) -> bool {
    word.starts_with('\'') || VARIABLES.contains(&word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writes_requirements_in_normal_form() {
        let hash = "a".repeat(64);
        let with_hashes = format!("six==1 --hash sha256:{hash} --hash=sha256:{hash}");
        let one_hash = format!("six==1 --hash=sha256:{hash}");
        for (line, written) in [
            ("six", "six"),
            ("Six.x  [B, a] ( >= 1.0 , <2 )", "six-x[a,b]<2,>=1.0"),
            ("six==1!2.0.post1+cu118", "six==1!2.0.post1+cu118"),
            ("six==1.0-1", "six==1.0-1"),
            ("six~=1.0.*", "six~=1.0.*"),
            ("six;python_version<\"3\"", "six ; python_version < '3'"),
            (
                "six ; (os.name=='nt' or 'linux' in sys_platform) and platform_machine not in \"a b\"",
                "six ; ( os.name == 'nt' or 'linux' in sys_platform ) and platform_machine not in 'a b'",
            ),
            ("six ; extra == 'more-of-it'", "six ; extra == 'more-of-it'"),
            (&with_hashes, &one_hash),
        ] {
            assert_eq!(line.parse::<Requirement>().unwrap().as_str(), written, "{line}");
        }
    }

    /// Z-27: by whatever spelling, no line becomes an option, a path, an address, a variable or another line.
    #[test]
    fn writes_only_the_grammar() {
        for line in [
            "six ;--global-option=x",
            "six ; --global-option=x",
            "six;-r x",
            "six ; -e .",
            "six ;\t--config-settings=x",
            "six ;\u{a0}--x",
            "six ; python_version < '3' -r x",
            "six ; python_version < '3 --config-settings=x'",
            "six ; python_version < '3' or --x",
            "six ; python_version <-3",
            "six ; '' -x",
            "six ; a",
            "six ; python_version",
            "six ; python_version < '3' and",
            "six ; (python_version < '3'",
            "six ; python_version < '3')",
            "six ; python_version < 3",
            "six ; unknown == 'x'",
            "six ; python_version < '3' ; os_name == 'x'",
            "six ; python_version < '${HOME}'",
            "six ; python_version < '3\\'",
            "six ; python_version < '3' \\",
            "six ; python_version < '3' # x",
            "six ;",
            "six; ()",
            "six --install-option=x",
            "six --hash=md5:00",
            "six --hash=sha256:00",
            "six --hash",
            "six --hashsha256:00",
            "six -e .",
            "six -r/etc/passwd",
            "-six",
            "six=={V}",
            "six==$V",
            "six==${V}",
            "six==-x",
            "six==1 -x",
            "six==1 --x",
            "six==1\\",
            "six==1\n--x",
            "six==1\u{b}--x",
            "six==1\u{85}2",
            "six==1\u{2028}2",
            "six==1.zip",
            "six==1.TAR",
            "six==1.tar.bz2",
            "six>=1,<2.whl",
            "six==..",
            "six==1..2",
            "six==*",
            "six==1.*.*",
            "six[a -x]",
            "six[-x]",
            "six[a]-x",
            "six[a] x",
            "six x",
            "six/x",
            "six:x",
            "six@x",
            "s\u{131}x",
            "six\\",
            "%six",
            "",
        ] {
            let read = line.parse::<Requirement>();
            assert!(read.is_err(), "{line:?} became {read:?}");
        }
    }
}
