//! The template of a new skill.

use crate::skill::{Language, SkillName};

/// The files of a new skill: path and text. It runs unchanged and passes the lint.
#[must_use]
pub fn scaffold(name: &SkillName, language: Language) -> Vec<(&'static str, String)> {
    vec![
        ("SKILL.md", skill_md(name, language)),
        (language.default_entrypoint(), script(language).to_owned()),
        ("input.json", "{\"name\": \"World\"}\n".to_owned()),
    ]
}

fn skill_md(name: &SkillName, language: Language) -> String {
    let entrypoint = language.default_entrypoint();
    format!(
        "---
name: {name}
description: Returns a greeting. Replace this text with what the skill does and when to use it.
metadata:
  skillbox.version: 0.1.0
  skillbox.lang: {language}
  skillbox.timeout: 30s
---

# {name}

The program is `{entrypoint}`. It reads the input, a JSON document, from the file that `SANDBOX_INPUT_FILE` names
and writes its result, also JSON, to the file that `SANDBOX_OUTPUT` names. Whatever it leaves in
the folder `SANDBOX_FILES_DIR` comes back as files.

Try it: `skillbox run . --input @input.json`
"
    )
}

const fn script(language: Language) -> &'static str {
    match language {
        Language::Python => {
            r#"import json
import os

with open(os.environ["SANDBOX_INPUT_FILE"], encoding="utf-8") as file:
    data = json.load(file)

result = {"greeting": f"Hello, {data.get('name', 'World')}!"}

with open(os.environ["SANDBOX_OUTPUT"], "w", encoding="utf-8") as file:
    json.dump(result, file)
"#
        }
        Language::Node => {
            r#"const fs = require("fs");

const data = JSON.parse(fs.readFileSync(process.env.SANDBOX_INPUT_FILE, "utf8"));

const result = { greeting: `Hello, ${data.name ?? "World"}!` };

fs.writeFileSync(process.env.SANDBOX_OUTPUT, JSON.stringify(result));
"#
        }
        Language::Bash => {
            r#"set -euo pipefail

# Bash has no JSON parser: this takes the text between the quotes as it stands, escapes included.
name=$(sed -nE 's/.*"name"[[:space:]]*:[[:space:]]*"(([^"\\]|\\.)*)".*/\1/p' "$SANDBOX_INPUT_FILE" | head -n 1)

printf '{"greeting": "Hello, %s!"}\n' "${name:-World}" > "$SANDBOX_OUTPUT"
"#
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::skill::{Declaration, lint};

    #[test]
    fn new_skill_loads_without_findings() {
        let name: SkillName = "my-skill".parse().unwrap();
        for language in Language::ALL {
            let files = scaffold(&name, language);
            let mut paths: Vec<_> = files.iter().map(|(path, _)| *path).collect();
            paths.sort_unstable();
            let declaration = Declaration {
                skill_md: Some(files[0].1.as_bytes()),
                fallback_name: Some("my-skill"),
                files: &paths,
                ..Declaration::default()
            };
            assert_eq!(lint(&declaration), []);
            let manifest = declaration.manifest().unwrap();
            assert_eq!((manifest.name, manifest.language), (name.clone(), Some(language)));
            assert_eq!(
                manifest.entrypoint.as_deref(),
                Some(language.default_entrypoint())
            );
        }
    }
}
