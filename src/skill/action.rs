//! Describes scripts without running them: purpose, usage and requirements.

use serde::{Deserialize, Serialize};

use crate::limits;
use crate::skill::{Language, hidden_character, script};

/// A script of a skill that can be run by its path.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Action {
    /// Path relative to the skill's folder, for `script` of a request.
    #[schema(example = "scripts/fill_form.py")]
    pub path: String,
    /// Language of the script.
    pub language: Language,
    /// First paragraph of its docstring or opening comment.
    #[serde(default)]
    #[schema(required)]
    pub summary: Option<String>,
    /// Usage line of the script.
    #[serde(default)]
    #[schema(required)]
    pub usage: Option<String>,
    /// Required Python versions (PEP 723).
    #[serde(default)]
    #[schema(required)]
    pub requires_python: Option<String>,
    /// Required packages (PEP 723).
    #[serde(default)]
    pub dependencies: Vec<String>,
}

/// Folders with tests and internal parts.
const NOT_CALLED: [&str; 4] = ["node_modules", "__pycache__", "tests", "test"];

/// Whether a script at `path` is more than a test or an internal part.
pub(super) fn may_be_called(path: &str) -> bool {
    let (folders, name) = path.rsplit_once('/').unwrap_or(("", path));
    let is_hidden = |part: &str| part.starts_with('.') || NOT_CALLED.contains(&part);
    !folders.split('/').any(is_hidden) && !name.starts_with('.') && name != "__init__.py"
}

/// Describes the script at `path` that starts with `head`; `None` for a file that is not meant to be run.
#[must_use]
pub fn action(path: &str, head: &[u8]) -> Option<Action> {
    if !may_be_called(path) {
        return None;
    }
    let language = script::language_of_file(path, head)?;
    let text = String::from_utf8_lossy(head);
    let words = match language {
        Language::Python => docstring(&text).unwrap_or_else(|| opening_comment(&text)),
        Language::Node => block_comment(&text).unwrap_or_else(|| opening_comment(&text)),
        Language::Bash => opening_comment(&text),
    };
    let metadata = (language == Language::Python)
        .then(|| inline_metadata(&text))
        .flatten()
        .unwrap_or_default();
    Some(Action {
        path: path.to_owned(),
        language,
        summary: shown(summary(&words), limits::ACTION_SUMMARY_CHARS_MAX),
        usage: shown(usage(&words), limits::ACTION_USAGE_CHARS_MAX),
        requires_python: metadata.requires_python,
        dependencies: metadata.dependencies,
    })
}

/// The packages that the header of the Python program at `path` declares (PEP 723); `None` without a valid header.
#[must_use]
pub fn header_packages(path: &str, head: &[u8]) -> Option<Vec<String>> {
    let is_python = script::language_of_file(path, head) == Some(Language::Python);
    let metadata = is_python.then(|| inline_metadata(&String::from_utf8_lossy(head)));
    Some(metadata??.dependencies)
}

/// Lines after the `#!` line that are not blank.
fn lines(text: &str) -> impl Iterator<Item = &str> {
    text.lines().skip(usize::from(text.starts_with("#!")))
}

/// The docstring of a Python module.
fn docstring(text: &str) -> Option<String> {
    let mut rest = text;
    loop {
        rest = rest.trim_start();
        if rest.starts_with('#') {
            rest = rest.split_once('\n')?.1;
        } else {
            break;
        }
    }
    let rest = rest.trim_start_matches(['r', 'R', 'u', 'U']);
    ["\"\"\"", "'''", "\"", "'"].iter().find_map(|quote| {
        let body = rest.strip_prefix(quote)?;
        let end = body.find(quote).unwrap_or(body.len());
        Some(body[..end].to_owned())
    })
}

/// The `/* … */` comment at the start of a file.
fn block_comment(text: &str) -> Option<String> {
    let first = lines(text).find(|line| {
        let line = line.trim();
        !line.is_empty() && !matches!(line.trim_end_matches(';'), "'use strict'" | "\"use strict\"")
    })?;
    let start = text.find(first)?;
    let body = text[start..].trim_start().strip_prefix("/*")?;
    let body = body.split("*/").next().unwrap_or(body);
    let plain = |line: &str| line.trim().trim_start_matches('*').trim().to_owned();
    Some(body.lines().map(plain).collect::<Vec<_>>().join("\n"))
}

/// The comment lines at the start, without PEP 723 blocks, coding marks and rulers.
fn opening_comment(text: &str) -> String {
    let mut kept = Vec::new();
    let mut in_block = false;
    for line in lines(text) {
        let line = line.trim();
        let Some(comment) = line.strip_prefix('#').or_else(|| line.strip_prefix("//")) else {
            if line.is_empty() && kept.is_empty() {
                continue;
            }
            break;
        };
        let comment = comment.trim_start_matches(['#', '/']);
        let words = comment.trim();
        if words.starts_with("/// ") || (in_block && words == "///") || line == "# ///" {
            in_block = !in_block;
        } else if !in_block && !words.contains("coding:") && !words.starts_with("shellcheck") {
            kept.push(if words.chars().all(|c| "=-*#".contains(c)) {
                ""
            } else {
                words
            });
        }
    }
    kept.join("\n")
}

/// The first paragraph that is not about usage, on one line.
fn summary(words: &str) -> Option<String> {
    let paragraph: Vec<_> = words
        .lines()
        .map(str::trim)
        .skip_while(|line| line.is_empty())
        .take_while(|line| !line.is_empty() && !is_usage(line))
        .collect();
    Some(paragraph.join(" "))
}

/// From the line with the word usage to the end of its paragraph, or of the next one if nothing else is on that line.
fn usage(words: &str) -> Option<String> {
    let from = words.lines().skip_while(|line| !is_usage(line.trim()));
    let mut kept: Vec<&str> = Vec::new();
    for line in from {
        let line = line.trim();
        if !line.is_empty() {
            kept.push(line);
        } else if kept.len() > 1 {
            break;
        }
    }
    Some(kept.join("\n"))
}

fn is_usage(line: &str) -> bool {
    line.get(..5)
        .is_some_and(|head| head.eq_ignore_ascii_case("usage"))
}

/// Truncated text without invisible characters.
fn shown(text: Option<String>, chars_max: usize) -> Option<String> {
    let text = text.filter(|text| !text.is_empty() && hidden_character(text).is_none())?;
    Some(text.chars().take(chars_max).collect())
}

/// The `# /// script` block of PEP 723.
#[derive(Debug, Default, Deserialize)]
struct InlineMetadata {
    #[serde(default, rename = "requires-python")]
    requires_python: Option<String>,
    #[serde(default)]
    dependencies: Vec<String>,
}

/// Parses the block. A truncated or invalid one is ignored.
fn inline_metadata(text: &str) -> Option<InlineMetadata> {
    let mut block = text
        .lines()
        .skip_while(|line| line.trim_end() != "# /// script")
        .skip(1);
    let mut toml = String::new();
    loop {
        let line = block.next()?.trim_end();
        if line == "# ///" {
            break;
        }
        toml.push_str(line.strip_prefix('#')?.strip_prefix(' ').unwrap_or_default());
        toml.push('\n');
    }
    let metadata: InlineMetadata = toml::from_str(&toml).ok()?;
    let bounded = metadata.dependencies.len() <= limits::ACTION_DEPENDENCIES_MAX;
    bounded.then_some(metadata)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(path: &str, head: &str) -> Action {
        action(path, head.as_bytes()).unwrap()
    }

    #[test]
    fn reads_description_and_call_from_docstring() {
        let action = told(
            "scripts/fill_form.py",
            "#!/usr/bin/env python3\n# -*- coding: utf-8 -*-\n\"\"\"Fills a form,\nfield by field.\n\nUsage:\n    python fill_form.py IN.pdf VALUES.json OUT.pdf\n\nMore.\n\"\"\"\nimport sys\n",
        );
        assert_eq!(action.summary.as_deref(), Some("Fills a form, field by field."));
        assert_eq!(
            action.usage.as_deref(),
            Some("Usage:\npython fill_form.py IN.pdf VALUES.json OUT.pdf")
        );
    }

    #[test]
    fn reads_description_from_comments() {
        let bash = told(
            "pack.sh",
            "#!/bin/bash\n#\n# Packs a folder.\n# usage: pack.sh DIR\n# ------\nset -e\n# not this\n",
        );
        assert_eq!(bash.summary.as_deref(), Some("Packs a folder."));
        assert_eq!(bash.usage.as_deref(), Some("usage: pack.sh DIR"));
        let node = told(
            "render.mjs",
            "#!/usr/bin/env node\n'use strict';\n/**\n * Renders a page.\n *\n * @param x\n */\n",
        );
        assert_eq!(node.summary.as_deref(), Some("Renders a page."));
        let line = told("a.js", "// Adds numbers.\nconst a = 1;\n");
        assert_eq!(line.summary.as_deref(), Some("Adds numbers."));
        let silent = told("a.py", "import os\n# not at the top\n");
        assert_eq!((silent.summary, silent.usage), (None, None));
    }

    /// PEP 723.
    #[test]
    fn reads_packages_from_script_metadata() {
        let action = told(
            "a.py",
            "# /// script\n# requires-python = \">=3.11\"\n# dependencies = [\n#   \"requests<3\",\n#   \"rich\",\n# ]\n# ///\n\"\"\"Asks.\"\"\"\n",
        );
        assert_eq!(action.requires_python.as_deref(), Some(">=3.11"));
        assert_eq!(action.dependencies, ["requests<3", "rich"]);
        assert_eq!(action.summary.as_deref(), Some("Asks."));
        for broken in ["# /// script\n# dependencies = [\n", "# /// script\n# ]\n# ///\n"] {
            assert_eq!(told("a.py", broken).dependencies, [""; 0]);
            assert_eq!(header_packages("a.py", broken.as_bytes()), None);
        }
        let header = b"# /// script\n# requires-python = \">=3.11\"\n# ///\n";
        assert_eq!(header_packages("tests/a.py", header), Some(Vec::new()));
        assert_eq!(header_packages("a.sh", header), None);
    }

    #[test]
    fn ignores_scripts_that_are_not_actions() {
        for path in [
            "scripts/__init__.py",
            "tests/test_a.py",
            ".git/hooks/x.sh",
            "node_modules/a/b.js",
            "README.md",
            "data.csv",
        ] {
            assert_eq!(action(path, b""), None, "{path}");
        }
    }

    /// W-13: a text that hides something is not passed on to a model.
    #[test]
    fn removes_invisible_text() {
        let action = told("a.py", "\"\"\"Adds\u{202e} numbers.\"\"\"\n");
        assert_eq!(action.summary, None);
        let long = format!("\"\"\"{}\"\"\"", "x".repeat(10_000));
        assert_eq!(
            told("a.py", &long).summary.map(|text| text.len()),
            Some(limits::ACTION_SUMMARY_CHARS_MAX)
        );
    }
}
