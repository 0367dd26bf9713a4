//! Scripts that are called by their path, as a toolbox's are: which interpreter one wants.

use std::fmt;

use crate::error::quoted;
use crate::skill::{Language, entrypoint};

/// A file of a skill that can be run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Script {
    path: String,
    language: Language,
}

/// Why a path is no script that can be run: what is wrong and what to do.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct InvalidScript(String);

/// Bytes of a file that tell its interpreter.
pub const SHEBANG_BYTES_MAX: usize = 256;

impl Script {
    /// The script at `path`, relative to the skill's folder. `head` gives the first [`SHEBANG_BYTES_MAX`] bytes of a
    /// regular file of the skill, `None` if there is no such file. The extension tells the interpreter, else the `#!` line.
    ///
    /// # Errors
    ///
    /// The path leaves the skill, is no file of it, or wants an interpreter that is not here.
    pub fn resolve(path: &str, head: impl FnOnce(&str) -> Option<Vec<u8>>) -> Result<Self, InvalidScript> {
        let mut first = None;
        let path = entrypoint::checked(path, |path| {
            first = head(path);
            first.is_some()
        })
        .map_err(InvalidScript)?;
        let language = language(&path, &first.unwrap_or_default()).ok_or_else(|| {
            InvalidScript(format!(
                "{} is run by neither Python, Node.js nor bash, by its extension or its `#!` line; only these are here",
                quoted(&path)
            ))
        })?;
        Ok(Self { path, language })
    }

    /// Relative to the skill's folder.
    #[must_use]
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Whose interpreter runs it.
    #[must_use]
    pub fn language(&self) -> Language {
        self.language
    }
}

impl fmt::Display for Script {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.path)
    }
}

/// The language of a file by its extension, else by its first line.
pub(super) fn language(path: &str, head: &[u8]) -> Option<Language> {
    entrypoint::by_extension(path).or_else(|| by_shebang(head))
}

/// `#!/usr/bin/env -S uv run --script` and its like.
fn by_shebang(head: &[u8]) -> Option<Language> {
    let line = head.strip_prefix(b"#!")?.split(|byte| *byte == b'\n').next()?;
    let line = std::str::from_utf8(line).ok()?;
    let name = |word: &str| word.rsplit('/').next().unwrap_or(word).to_owned();
    let mut words = line.split_whitespace();
    let mut program = name(words.next()?);
    if program == "env" {
        program = name(words.find(|word| !word.starts_with('-') && !word.contains('='))?);
    }
    match program.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.') {
        // `uv run --script` is for Python scripts that name their dependencies.
        "python" | "uv" => Some(Language::Python),
        "node" | "nodejs" => Some(Language::Node),
        "bash" | "sh" | "dash" => Some(Language::Bash),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resolved(path: &str, head: &str) -> Result<Language, InvalidScript> {
        Script::resolve(path, |_| Some(head.as_bytes().to_vec())).map(|script| script.language())
    }

    #[test]
    fn the_interpreter_is_told_by_the_extension_or_the_first_line() {
        let known = [
            ("scripts/fill_form.py", "", Language::Python),
            ("scripts/office/pack.py", "#!/bin/sh\n", Language::Python),
            ("bin/render.mjs", "", Language::Node),
            ("setup.sh", "", Language::Bash),
            (
                "bin/convert",
                "#!/usr/bin/env python3\nimport os",
                Language::Python,
            ),
            ("bin/convert", "#!/usr/bin/python3.11 -u\r\n", Language::Python),
            (
                "bin/convert",
                "#! /usr/bin/env -S uv run --script\n",
                Language::Python,
            ),
            (
                "bin/convert",
                "#!/usr/bin/env -S A=b node --no-warnings\n",
                Language::Node,
            ),
            ("bin/convert", "#!/bin/sh -e", Language::Bash),
        ];
        for (path, head, language) in known {
            assert_eq!(resolved(path, head), Ok(language), "{path} {head:?}");
        }
        for (path, head) in [
            ("a.rb", "#!/usr/bin/ruby\n"),
            ("tool", ""),
            ("tool", "#!/usr/bin/env"),
            ("data.csv", "a,b\n"),
            ("tool", "#!\u{1}\n"),
        ] {
            assert!(resolved(path, head).is_err(), "{path} {head:?}");
        }
    }

    /// Z-26, S-19.
    #[test]
    fn only_a_file_of_the_skill_is_a_script() {
        for path in [
            "/bin/sh",
            "../x.py",
            "scripts/../../x.py",
            "",
            "-c",
            "a\n.py",
            "scripts//x.py",
        ] {
            assert!(resolved(path, "").is_err(), "{path:?}");
        }
        assert!(Script::resolve("scripts/x.py", |_| None).is_err());
    }
}
