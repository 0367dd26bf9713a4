//! Scripts that are called by their path, as a toolbox's are: which interpreter one wants.

use std::fmt;

use crate::error::quoted;
use crate::skill::{Language, entrypoint};

/// A file of a skill that can be run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Script {
    path: String,
    language: Language,
    /// How Python imports it from the skill's folder, if it can.
    module: Option<String>,
    /// Whether it says itself that it is run as that module.
    is_run_as_module: bool,
}

/// Why a path is no script that can be run: what is wrong and what to do.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct InvalidScript(String);

/// Bytes of a file that tell how it is run.
pub const SCRIPT_HEAD_BYTES_MAX: usize = 64 * 1024;
const SHEBANG_BYTES_MAX: usize = 256;

impl Script {
    /// The script at `path`, relative to the skill's folder. `head` gives the first [`SCRIPT_HEAD_BYTES_MAX`] bytes of a
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
        let first = first.unwrap_or_default();
        let language = language(&path, &first).ok_or_else(|| {
            InvalidScript(format!(
                "{} is run by neither Python, Node.js nor bash, by its extension or its `#!` line; only these are here",
                quoted(&path)
            ))
        })?;
        let module = (language == Language::Python).then(|| module(&path)).flatten();
        let text = String::from_utf8_lossy(&first);
        let is_run_as_module = module
            .as_deref()
            .is_some_and(|module| imports_relatively(&text) || tells_to_run(&text, module));
        Ok(Self {
            path,
            language,
            module,
            is_run_as_module,
        })
    }

    /// What follows `python -m` if that is how it is run: by the text of the script, or by the skill's `instructions`.
    #[must_use]
    pub fn module(&self, instructions: &str) -> Option<&str> {
        let module = self.module.as_deref()?;
        (self.is_run_as_module || tells_to_run(instructions, module)).then_some(module)
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

/// `scripts.report` for `scripts/report.py`; a file beside SKILL.md is in no package.
fn module(path: &str) -> Option<String> {
    let stem = path.strip_suffix(".py")?;
    let stem = stem.strip_suffix("/__main__").unwrap_or(stem);
    let is_identifier = |part: &str| {
        !part.starts_with(|c: char| c.is_ascii_digit())
            && !part.is_empty()
            && part.chars().all(|c| c.is_alphanumeric() || c == '_')
    };
    (path.contains('/') && stem.split('/').all(is_identifier)).then(|| stem.replace('/', "."))
}

/// An import that fails in a file which is run by its path.
fn imports_relatively(text: &str) -> bool {
    text.lines().any(|line| line.starts_with("from ."))
}

fn tells_to_run(text: &str, module: &str) -> bool {
    let ends = |rest: &str| !rest.starts_with(|c: char| c.is_alphanumeric() || matches!(c, '_' | '.'));
    let command = format!("-m {module}");
    text.match_indices(&command)
        .any(|(at, found)| ends(&text[at + found.len()..]))
}

/// The language of a file by its extension, else by its first line.
pub(super) fn language(path: &str, head: &[u8]) -> Option<Language> {
    entrypoint::by_extension(path).or_else(|| by_shebang(head))
}

/// `#!/usr/bin/env -S uv run --script` and its like.
fn by_shebang(head: &[u8]) -> Option<Language> {
    let head = &head[..head.len().min(SHEBANG_BYTES_MAX)];
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

    #[test]
    fn a_script_is_run_as_a_module_where_it_or_the_instructions_say_so() {
        let module = |path: &str, head: &str, instructions: &str| {
            let script = Script::resolve(path, |_| Some(head.as_bytes().to_vec())).unwrap();
            script.module(instructions).map(str::to_owned)
        };
        let relative = "import os\nfrom .tables import rows\n";
        let run = "scripts.run".to_owned();
        assert_eq!(module("scripts/run.py", relative, ""), Some(run.clone()));
        assert_eq!(
            module("scripts/run.py", "\"\"\"python3 -m scripts.run IN\"\"\"", ""),
            Some(run.clone())
        );
        assert_eq!(module("scripts/run.py", "", "`python -m scripts.run`"), Some(run));
        assert_eq!(module("tool/__main__.py", relative, ""), Some("tool".to_owned()));
        for (path, head, instructions) in [
            (
                "scripts/run.py",
                "try:\n    from .a import b\nexcept ImportError:\n    from a import b\n",
                "",
            ),
            (
                "scripts/run.py",
                "",
                "python -m scripts.run_all, python -m scripts.run.more",
            ),
            ("scripts/run-all.py", relative, ""),
            ("run.py", relative, "python -m run"),
            ("scripts/run.sh", relative, "-m scripts.run"),
        ] {
            assert_eq!(
                module(path, head, instructions),
                None,
                "{path} {head} {instructions}"
            );
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
