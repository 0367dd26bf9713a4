//! Selects the entrypoint of a skill: declared, or at a usual path.

use crate::error::quoted;
use crate::skill::Language;

#[derive(Debug, Default)]
pub(super) struct DeclaredProgram<'a> {
    pub(super) language: Option<Language>,
    pub(super) entrypoint: Option<&'a str>,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Choice {
    Program {
        language: Language,
        entrypoint: String,
    },
    /// Nothing declared and no `scripts/main.*`: a toolbox, or only instructions.
    NoProgram,
    /// Nothing declared and more than one `scripts/main.*`.
    Ambiguous(Vec<&'static str>),
}

/// Selects the entrypoint, which is always a file of the skill.
pub(super) fn choose(
    declared: &DeclaredProgram<'_>,
    has_file: impl Fn(&str) -> bool,
) -> Result<Choice, String> {
    if let Some(entrypoint) = declared.entrypoint {
        let entrypoint = checked(entrypoint, has_file)?;
        let language = declared
            .language
            .or_else(|| by_extension(&entrypoint))
            .ok_or_else(|| {
                format!(
                    "`lang` is missing and cannot be derived from {}; add `lang: python`, `node` or `bash`",
                    quoted(&entrypoint)
                )
            })?;
        return Ok(Choice::Program { language, entrypoint });
    }
    if let Some(language) = declared.language {
        let entrypoint = language.default_entrypoint();
        if !has_file(entrypoint) {
            return Err(format!(
                "{} does not exist; add it or name the file in `entrypoint`",
                quoted(entrypoint)
            ));
        }
        return Ok(Choice::Program {
            language,
            entrypoint: entrypoint.to_owned(),
        });
    }
    let found: Vec<_> = Language::ALL
        .into_iter()
        .filter(|language| has_file(language.default_entrypoint()))
        .collect();
    Ok(match found[..] {
        [] => Choice::NoProgram,
        [language] => Choice::Program {
            language,
            entrypoint: language.default_entrypoint().to_owned(),
        },
        _ => Choice::Ambiguous(found.into_iter().map(Language::default_entrypoint).collect()),
    })
}

/// A plain relative path: it becomes an argument of an interpreter.
pub(super) fn checked(entrypoint: &str, has_file: impl FnOnce(&str) -> bool) -> Result<String, String> {
    let path = entrypoint.strip_prefix("./").unwrap_or(entrypoint);
    let wrong = |rule: &str| Err(format!("{} {rule}", quoted(entrypoint)));
    if path.starts_with('-') {
        return wrong("starts with `-`, which an interpreter reads as an option; rename the file");
    }
    let plain = |part: &str| {
        !matches!(part, "" | "." | "..") && !part.contains(['\\', ':']) && !part.contains(char::is_control)
    };
    if !path.split('/').all(plain) {
        return wrong("must be a relative path inside the skill's folder, like `scripts/main.py`");
    }
    if !has_file(path) {
        return wrong("is not a file of the skill; check the path, which is relative to SKILL.md");
    }
    Ok(path.to_owned())
}

pub(super) fn by_extension(path: &str) -> Option<Language> {
    match path.rsplit_once('.')?.1 {
        "py" => Some(Language::Python),
        "js" | "mjs" | "cjs" => Some(Language::Node),
        "sh" | "bash" => Some(Language::Bash),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILES: [&str; 5] = ["SKILL.md", "scripts/main.py", "-c", "run.mjs", "tool"];

    fn chosen(language: Option<Language>, entrypoint: Option<&str>) -> Result<Choice, String> {
        choose(&DeclaredProgram { language, entrypoint }, |path| {
            FILES.contains(&path)
        })
    }

    fn program(language: Language, entrypoint: &str) -> Result<Choice, String> {
        Ok(Choice::Program {
            language,
            entrypoint: entrypoint.to_owned(),
        })
    }

    /// Z-26.
    #[test]
    fn rejects_entrypoint_outside_the_skill() {
        let outside = [
            "/bin/sh",
            "../main.py",
            "scripts/../../x",
            "scripts",
            "scripts/",
            "missing.py",
            "-c",
            "./-c",
            "",
            ".",
            "..",
            "C:\\x.py",
            "scripts\\main.py",
            "scripts//main.py",
            "scripts/main.py\0",
            "scripts/main.py\n",
        ];
        for path in outside {
            assert!(chosen(Some(Language::Python), Some(path)).is_err(), "{path:?}");
        }
    }

    #[test]
    fn reads_language_from_declaration_or_extension() {
        assert_eq!(chosen(None, Some("run.mjs")), program(Language::Node, "run.mjs"));
        assert_eq!(
            chosen(None, Some("./scripts/main.py")),
            program(Language::Python, "scripts/main.py")
        );
        assert_eq!(
            chosen(Some(Language::Bash), Some("tool")),
            program(Language::Bash, "tool")
        );
        assert!(
            chosen(None, Some("tool"))
                .unwrap_err()
                .contains("`lang` is missing")
        );
    }

    #[test]
    fn finds_the_usual_entrypoint_by_default() {
        assert_eq!(chosen(None, None), program(Language::Python, "scripts/main.py"));
        assert_eq!(
            chosen(Some(Language::Python), None),
            program(Language::Python, "scripts/main.py")
        );
        assert!(
            chosen(Some(Language::Node), None)
                .unwrap_err()
                .contains("scripts/main.js")
        );
        assert_eq!(
            choose(&DeclaredProgram::default(), |_| false),
            Ok(Choice::NoProgram)
        );
        assert!(
            matches!(choose(&DeclaredProgram::default(), |_| true), Ok(Choice::Ambiguous(found)) if found.len() == 3)
        );
    }
}
