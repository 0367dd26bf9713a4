//! Skills with a function: the module in `code/` and how programs import it.

use crate::error::quoted;
use crate::skill::{Function, Language, SkillName, entrypoint};

/// Folder of a skill's modules.
const CODE: &str = "code/";
/// Default name of the function.
const EXPORT: &str = "main";

#[derive(Debug, Default)]
pub(super) struct DeclaredFunction<'a> {
    /// A path, a module, or either with `:function`.
    pub(super) entrypoint: Option<&'a str>,
    pub(super) export: Option<&'a str>,
    pub(super) language: Option<Language>,
}

/// A function and its file.
#[derive(Debug, PartialEq, Eq)]
pub struct Called {
    /// Language of the module.
    pub language: Language,
    /// Path relative to the skill's folder.
    pub entrypoint: String,
    /// How it is imported and called.
    pub function: Function,
}

/// The function `main` of the module at `path`; `None` if the path is outside `code/`, an error if the file cannot be
/// imported.
#[must_use]
pub fn module_at(name: &SkillName, path: &str) -> Option<Result<Called, String>> {
    path.starts_with(CODE).then(|| called(name, path, EXPORT))
}

/// Whether a skill is a function: it has modules and declares no program elsewhere.
pub(super) fn is_meant(declared: &DeclaredFunction<'_>, files: &[&str]) -> bool {
    let has_code = files.iter().any(|path| is_module(path));
    let elsewhere = |path: &str| path.contains('/') && !path.trim_start_matches("./").starts_with(CODE);
    declared.export.is_some() || (has_code && !declared.entrypoint.is_some_and(elsewhere))
}

/// Selects the module and the function; `None` if nothing is declared and no module is obvious.
pub(super) fn choose(
    name: &SkillName,
    declared: &DeclaredFunction<'_>,
    files: &[&str],
) -> Result<Option<Called>, String> {
    let (path, export) = match declared.entrypoint {
        Some(given) => {
            let (path, export) = given
                .split_once(':')
                .map_or((given, None), |(path, export)| (path, Some(export)));
            (find(path, declared.language, files)?, export)
        }
        None => match obvious(name, declared.language, files) {
            Some(path) => (path.to_owned(), None),
            None => return Ok(None),
        },
    };
    let export = declared.export.or(export).unwrap_or(EXPORT);
    if !is_identifier(export) {
        return Err(format!("{} is not a valid function name", quoted(export)));
    }
    called(name, &path, export).map(Some)
}

/// How the module at `path` is imported.
pub(super) fn called(name: &SkillName, path: &str, export: &str) -> Result<Called, String> {
    let language = entrypoint::by_extension(path)
        .filter(|language| *language != Language::Bash)
        .ok_or_else(|| format!("{} is not a module of Python or Node.js", quoted(path)))?;
    let inside = path.strip_prefix(CODE).unwrap_or(path);
    let (stem, _) = inside.rsplit_once('.').unwrap_or((inside, ""));
    let mut parts: Vec<_> = stem.split('/').collect();
    if parts.last() == Some(&"__init__") {
        parts.pop();
    }
    if language == Language::Python && !parts.iter().all(|part| is_identifier(part)) {
        return Err(format!(
            "{} cannot be imported; use letters, digits and `_` in its name",
            quoted(path)
        ));
    }
    let mut module = format!("skills.{}", import_path(name));
    for part in parts {
        module += &format!(".{part}");
    }
    Ok(Called {
        language,
        entrypoint: path.to_owned(),
        function: Function {
            module,
            export: export.to_owned(),
        },
    })
}

/// A skill's name in imports.
fn import_path(name: &SkillName) -> String {
    name.as_str().replace('-', "_")
}

fn is_module(path: &str) -> bool {
    path.starts_with(CODE)
        && entrypoint::by_extension(path).is_some_and(|language| language != Language::Bash)
}

fn is_identifier(text: &str) -> bool {
    !text.is_empty()
        && !text.starts_with(|c: char| c.is_ascii_digit())
        && text
            .chars()
            .all(|c| c.is_alphanumeric() || matches!(c, '_' | '$'))
}

const EXTENSIONS: [&str; 4] = ["py", "mjs", "js", "cjs"];

/// The declared file: a path, a path in `code/`, or a module there.
fn find(given: &str, language: Option<Language>, files: &[&str]) -> Result<String, String> {
    let has = |path: &str| files.binary_search(&path).is_ok();
    let of_language = |extension: &&&str| {
        language.is_none_or(|language| entrypoint::by_extension(&format!("x.{extension}")) == Some(language))
    };
    if !given.contains('/') {
        let inside = format!("{CODE}{given}");
        let dotted = format!("{CODE}{}", given.replace('.', "/"));
        let module = EXTENSIONS
            .iter()
            .filter(of_language)
            .map(|extension| format!("{dotted}.{extension}"));
        if let Some(found) = std::iter::once(inside).chain(module).find(|path| has(path)) {
            return entrypoint::checked(&found, has);
        }
    }
    entrypoint::checked(given, has)
}

/// `code/main.py` or similar, else the module with the skill's name, else the only one.
fn obvious<'a>(name: &SkillName, language: Option<Language>, files: &[&'a str]) -> Option<&'a str> {
    let modules: Vec<&str> = files
        .iter()
        .copied()
        .filter(|path| {
            is_module(path) && language.is_none_or(|own| entrypoint::by_extension(path) == Some(own))
        })
        .collect();
    let own = import_path(name);
    let own = own.rsplit('.').next().unwrap_or(&own);
    for stem in ["main", "index", own, "__init__"] {
        let candidates: Vec<_> = EXTENSIONS
            .iter()
            .map(|extension| format!("{CODE}{stem}.{extension}"))
            .collect();
        if let Some(found) = modules
            .iter()
            .find(|path| candidates.iter().any(|candidate| candidate == *path))
        {
            return Some(found);
        }
    }
    let top: Vec<_> = modules
        .into_iter()
        .filter(|path| !path[CODE.len()..].contains('/'))
        .collect();
    match top[..] {
        [only] => Some(only),
        _ => None,
    }
}

/// The first labels after `skills.<name>` that the skill's modules use. They must not conflict with those of other
/// skills.
pub(super) fn labels<'a>(files: &[&'a str]) -> Vec<&'a str> {
    let mut labels: Vec<_> = files
        .iter()
        .filter(|path| is_module(path))
        .filter_map(|path| path[CODE.len()..].split(['/', '.']).next())
        .filter(|label| *label != "__init__")
        .collect();
    labels.sort_unstable();
    labels.dedup();
    labels
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILES: [&str; 6] = [
        "SKILL.md",
        "code/enrich/__init__.py",
        "code/enrich/by_mail.py",
        "code/render.mjs",
        "code/sync.py",
        "skill.toml",
    ];

    fn chosen(name: &str, entrypoint: Option<&str>) -> Result<Option<(String, String, String)>, String> {
        let declared = DeclaredFunction {
            entrypoint,
            ..DeclaredFunction::default()
        };
        let called = choose(&name.parse().unwrap(), &declared, &FILES)?;
        Ok(called.map(|called| (called.entrypoint, called.function.module, called.function.export)))
    }

    #[test]
    fn accepts_common_spellings_of_a_module() {
        let module = |path: &str, module: &str, export: &str| {
            Ok(Some((
                path.to_owned(),
                format!("skills.salesforce.leads_eu.{module}"),
                export.to_owned(),
            )))
        };
        let name = "salesforce.leads-eu";
        for (given, expected) in [
            ("code/sync.py", module("code/sync.py", "sync", "main")),
            ("./code/sync.py:run", module("code/sync.py", "sync", "run")),
            ("sync.py", module("code/sync.py", "sync", "main")),
            ("sync", module("code/sync.py", "sync", "main")),
            ("sync:run", module("code/sync.py", "sync", "run")),
            (
                "enrich.by_mail",
                module("code/enrich/by_mail.py", "enrich.by_mail", "main"),
            ),
            (
                "code/enrich/__init__.py",
                module("code/enrich/__init__.py", "enrich", "main"),
            ),
            ("render", module("code/render.mjs", "render", "main")),
        ] {
            assert_eq!(chosen(name, Some(given)), expected, "{given}");
        }
        for wrong in [
            "missing",
            "../sync.py",
            "/code/sync.py",
            "sync:1",
            "sync:a b",
            "skill.toml",
            "code",
        ] {
            assert!(chosen(name, Some(wrong)).is_err(), "{wrong}");
        }
    }

    #[test]
    fn finds_an_unambiguous_function_by_default() {
        assert_eq!(chosen("salesforce.leads", None), Ok(None));
        assert_eq!(chosen("data.sync", None).unwrap().unwrap().0, "code/sync.py");
        assert_eq!(
            obvious(&"a".parse().unwrap(), Some(Language::Node), &FILES),
            Some("code/render.mjs")
        );
        assert_eq!(labels(&FILES), ["enrich", "render", "sync"]);
    }
}
