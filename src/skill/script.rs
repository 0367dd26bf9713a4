//! Scripts that are run by path, and their interpreters.

use std::fmt;

use crate::error::quoted;
use crate::skill::{Language, entrypoint};

/// A file of a skill that can be run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Script {
    path: String,
    language: Language,
    /// Possible import names for Python, most likely first.
    modules: Vec<String>,
    /// The module name in its own usage text.
    own: Option<Module>,
}

/// A script that is run like a module by `python -m`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Module<T = String> {
    /// In the skill's folder or its `src`.
    Found(T),
    /// In the package that the skill's folder itself is.
    OfSkill(T),
}

/// Why a path cannot be run, and the remedy.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct InvalidScript(String);

/// Bytes of a file that determine its interpreter.
pub const SCRIPT_HEAD_BYTES_MAX: usize = 64 * 1024;
const SHEBANG_BYTES_MAX: usize = 256;

impl Script {
    /// The script at `path`, relative to the skill's folder. `head` returns the first [`SCRIPT_HEAD_BYTES_MAX`] bytes
    /// of a regular file, `None` if it does not exist. The extension determines the interpreter, else the `#!` line.
    /// A folder that Python can run is its `__main__.py`.
    ///
    /// # Errors
    ///
    /// The path leaves the skill, does not exist, or needs an unsupported interpreter.
    pub fn resolve(path: &str, head: impl Fn(&str) -> Option<Vec<u8>>) -> Result<Self, InvalidScript> {
        let mut first = None;
        let mut checked = |path: &str| {
            entrypoint::checked(path, |path| {
                first = head(path);
                first.is_some()
            })
        };
        let found = checked(path);
        let path = found
            .or_else(|refused| checked(&format!("{path}/__main__.py")).map_err(|_| refused))
            .map_err(InvalidScript)?;
        let first = first.unwrap_or_default();
        let language = language_of_file(&path, &first).ok_or_else(|| {
            InvalidScript(format!(
                "{} cannot be run: neither its extension nor its `#!` line selects Python, Node.js or bash",
                quoted(&path)
            ))
        })?;
        let modules = match language {
            Language::Python => modules(&path),
            Language::Node | Language::Bash => Vec::new(),
        };
        let own = own_module(&path, &modules, &String::from_utf8_lossy(&first));
        Ok(Self {
            path,
            language,
            modules,
            own,
        })
    }

    /// The module name to run it as: from the skill's `instructions`, or from its own text.
    #[must_use]
    pub fn module(&self, instructions: &str) -> Option<Module<&str>> {
        let told = self
            .modules
            .iter()
            .find(|module| tells_to_run(instructions, module));
        match (told, &self.own) {
            (_, Some(Module::OfSkill(module))) => Some(Module::OfSkill(module)),
            (Some(module), _) | (None, Some(Module::Found(module))) => Some(Module::Found(module)),
            (None, None) => None,
        }
    }

    /// Relative to the skill's folder.
    #[must_use]
    pub fn path(&self) -> &str {
        &self.path
    }

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

/// `scripts.report` for `scripts/report.py`, and `tool.cli` for `src/tool/cli.py`, which other authors write with
/// `src`. Files next to SKILL.md are in no package.
fn modules(path: &str) -> Vec<String> {
    let named = |path: &str| {
        let module = dotted(path)?;
        path.contains('/').then_some(module)
    };
    let in_src = path.strip_prefix("src/").and_then(named);
    in_src.into_iter().chain(named(path)).collect()
}

/// The module name of the file at `path`, if Python allows such a name.
fn dotted(path: &str) -> Option<String> {
    let stem = path.strip_suffix(".py")?;
    let stem = stem.strip_suffix("/__main__").unwrap_or(stem);
    let is_identifier = |part: &str| {
        !part.starts_with(|c: char| c.is_ascii_digit())
            && !part.is_empty()
            && part.chars().all(|c| c.is_alphanumeric() || c == '_')
    };
    stem.split('/').all(is_identifier).then(|| stem.replace('/', "."))
}

/// The module name that a script requires by its path or its text.
fn own_module(path: &str, modules: &[String], text: &str) -> Option<Module> {
    let folders = path.matches('/').count();
    if upward(text) > folders {
        return dotted(path).map(Module::OfSkill);
    }
    let told = modules.iter().find(|module| tells_to_run(text, module));
    let is_one = upward(text) > 0 || path.ends_with("/__main__.py");
    let likely = modules.iter().find(|module| {
        let package = module.split('.').next().unwrap_or_default();
        modules.len() == 1 || !text.contains("from src.") || package == "src"
    });
    let own = told.or(likely.filter(|_| is_one))?;
    Some(Module::Found(own.clone()))
}

/// The maximum number of leading dots of an import, which fails in a file that is run by path.
fn upward(text: &str) -> usize {
    let relative = text.lines().filter_map(|line| line.strip_prefix("from "));
    let dots = relative.map(|rest| rest.chars().take_while(|c| *c == '.').count());
    dots.max().unwrap_or(0)
}

fn tells_to_run(text: &str, module: &str) -> bool {
    let ends = |rest: &str| !rest.starts_with(|c: char| c.is_alphanumeric() || matches!(c, '_' | '.'));
    let command = format!("-m {module}");
    text.match_indices(&command)
        .any(|(at, found)| ends(&text[at + found.len()..]))
}

/// The language by extension, else by the first line.
#[must_use]
pub fn language_of_file(path: &str, head: &[u8]) -> Option<Language> {
    entrypoint::by_extension(path).or_else(|| by_shebang(head))
}

/// `#!/usr/bin/env -S uv run --script` and similar.
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
        // `uv run --script` runs Python scripts with declared dependencies.
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
    fn finds_interpreter_by_extension_or_first_line() {
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
    fn runs_script_as_module_if_documented() {
        let module = |path: &str, head: &str, instructions: &str| {
            let script = Script::resolve(path, |_| Some(head.as_bytes().to_vec())).unwrap();
            match script.module(instructions)? {
                Module::Found(module) => Some(module.to_owned()),
                Module::OfSkill(module) => Some(format!("(skill).{module}")),
            }
        };
        let relative = "import os\nfrom .tables import rows\n";
        let run = "scripts.run".to_owned();
        assert_eq!(module("scripts/run.py", relative, ""), Some(run.clone()));
        assert_eq!(
            module("scripts/run.py", "\"\"\"python3 -m scripts.run IN\"\"\"", ""),
            Some(run.clone())
        );
        assert_eq!(module("scripts/run.py", "", "`python -m scripts.run`"), Some(run));
        for (path, head, instructions, expected) in [
            ("tool/__main__.py", "", "", "tool"),
            ("src/tool/cli.py", relative, "", "tool.cli"),
            ("src/tool/cli.py", "", "python -m tool.cli", "tool.cli"),
            (
                "src/tool/cli.py",
                relative,
                "python -m src.tool.cli",
                "src.tool.cli",
            ),
            (
                "src/tool/cli.py",
                "from src.tool import x\nfrom .y import z\n",
                "",
                "src.tool.cli",
            ),
            ("src/cli.py", relative, "", "src.cli"),
            ("run.py", relative, "", "(skill).run"),
            (
                "scripts/run.py",
                "from ..lib import x\n",
                "",
                "(skill).scripts.run",
            ),
        ] {
            assert_eq!(
                module(path, head, instructions).as_deref(),
                Some(expected),
                "{path} {head} {instructions}"
            );
        }
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
            ("run.py", "", "python -m run"),
            ("__main__.py", "", ""),
            ("src/tool/cli.py", "from tool.x import y\n", ""),
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
    fn rejects_script_outside_the_skill() {
        let folder = Script::resolve("./tool", |path| {
            (path == "tool/__main__.py").then(|| b"import os".to_vec())
        });
        assert_eq!(folder.unwrap().path(), "tool/__main__.py");
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
