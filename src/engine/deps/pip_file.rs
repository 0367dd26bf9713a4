//! Writes requirement files for pip. Checks each line against pip's own rules, in addition to the grammar of
//! requirements.

use crate::error::{Code, Error, quoted};

/// One requirement per line. Fails at the first line that pip could read as anything but a package.
pub(super) fn text<'a>(lines: impl Iterator<Item = &'a str>) -> Result<String, Error> {
    let mut text = String::new();
    for line in lines {
        if !is_package(line) {
            let message = format!(
                "{} is not passed to pip: it is not a plain requirement",
                quoted(line)
            );
            return Err(Error::new(Code::DependenciesFailed, message));
        }
        text += line;
        text.push('\n');
    }
    Ok(text)
}

/// pip expands `${…}`, joins lines that end in a backslash, splits at spaces, reads words with a leading hyphen as
/// options, and words with a slash, a colon or an `@` as locations.
fn is_package(line: &str) -> bool {
    let legal = |c: char| c.is_ascii_alphanumeric() || " -_.,+*!<>=~;()[]'".contains(c);
    let mut words = line.split(' ');
    words
        .next()
        .is_some_and(|name| name.starts_with(|c: char| c.is_ascii_alphanumeric()) && name.chars().all(legal))
        && words.all(|word| match word.strip_prefix("--hash=") {
            Some(hash) => hash.chars().all(|c| c.is_ascii_alphanumeric() || c == ':'),
            None => !word.starts_with('-') && word.chars().all(legal),
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Z-27.
    #[test]
    fn passes_only_packages_to_pip() {
        let hashed = format!("six==1 ; python_version < '3' --hash=sha256:{}", "0".repeat(64));
        let good = ["six", "six[a,b]>=1.0,<2.*", &hashed, "six ; ( extra == 'a' )"];
        assert_eq!(text(good.into_iter()).unwrap(), good.join("\n") + "\n");
        for line in [
            "",
            " six",
            "-r x",
            "--index-url=https://evil.example",
            "six ; --global-option=x",
            "six -e .",
            "six\n--no-index",
            "six\r-e .",
            "six\u{b}x",
            "six\t-e .",
            "six\\",
            "six==${V}",
            "six # x",
            "./six",
            "six/x",
            "six@x",
            "six @ file:x",
            "https://evil.example/six.whl",
            "c:six",
            "six ; python_version < \"3\"",
        ] {
            let refused = text(["fine", line].into_iter()).unwrap_err();
            assert_eq!(refused.code(), Code::DependenciesFailed, "{line:?}");
        }
    }
}
