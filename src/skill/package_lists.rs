//! Finds the package lists of a skill, and reports what cannot be installed.

use std::collections::BTreeSet;

use crate::limits;
use crate::skill::imports::{self, Import, python_package};
use crate::skill::requirements::InvalidRequirement;
use crate::skill::{Action, Language, NodePackages, Requirements, action, header_packages};

/// The path of the file `name` in the skill's root folder, else next to the program, else in the usual folder of
/// programs.
#[must_use]
pub fn package_list(name: &str, program: Option<&str>, is_file: impl Fn(&str) -> bool) -> Option<String> {
    let beside = program.and_then(|path| path.rsplit_once('/'));
    let places = ["", beside.map_or("", |(place, _)| place), "scripts", "code"];
    places.into_iter().find_map(|place| {
        let path = if place.is_empty() {
            name.to_owned()
        } else {
            format!("{place}/{name}")
        };
        is_file(&path).then_some(path)
    })
}

/// Modules of the sandbox: mounted skills, and the library of functions.
const PROVIDED: [&str; 2] = ["skills", "runtime"];

/// The files of a skill with package lists.
#[derive(Clone, Copy, Debug)]
pub struct PackageLists<'a> {
    /// In byte order.
    pub files: &'a [&'a str],
    pub actions: &'a [Action],
}

impl PackageLists<'_> {
    /// Every line and package that is rejected before a run, with its place and the remedy. `read` returns the text
    /// of a file up to a size.
    #[must_use]
    pub fn refused(&self, read: impl Fn(&str, u64) -> Option<String>) -> Vec<InvalidRequirement> {
        let list = |path: &str| read(path, limits::REQUIREMENTS_BYTES_MAX);
        let mut refused = Vec::new();
        for path in self.found("requirements.txt", Language::Python) {
            refused.extend(Requirements::complaints(&path, list));
        }
        for Action {
            path, dependencies, ..
        } in self.actions
        {
            let place = |_| format!("{path} (its `script` header)");
            refused.extend(Requirements::default().add_all(dependencies, place).err());
        }
        for path in self.found("package.json", Language::Node) {
            let beside = path.replace("package.json", "package-lock.json");
            let lock = read(&beside, limits::NODE_LOCK_BYTES_MAX);
            let parsed = list(&path).map(|text| NodePackages::parse(&path, &text, lock.as_deref()));
            refused.extend(parsed.and_then(Result::err));
        }
        refused
    }

    /// Imports of scripts that neither the skill nor its package lists have, with their place and the remedy.
    #[must_use]
    pub fn undeclared(&self, read: impl Fn(&str, u64) -> Option<String>) -> Vec<InvalidRequirement> {
        let mut undeclared = Vec::new();
        let declared = self.declared(&read);
        let scripts = self.files.iter().filter(|path| action::may_be_called(path));
        for path in scripts.take(limits::SCRIPTS_LINTED_MAX) {
            let Some(text) = read(path, limits::SCRIPT_LINTED_BYTES_MAX) else {
                continue;
            };
            let (language, imports) = match path.rsplit_once('.') {
                Some((_, "py")) => (Language::Python, imports::python(&text)),
                Some((_, "js" | "mjs" | "cjs")) => (Language::Node, imports::node(&text)),
                _ => continue,
            };
            let header = header_packages(path, text.as_bytes());
            let header: Option<BTreeSet<_>> = header.map(|all| all.iter().map(|one| normal(one)).collect());
            for Import { name, line } in imports {
                let package = match language {
                    Language::Node => name.as_str(),
                    Language::Python | Language::Bash => python_package(&name),
                };
                let known = header.as_ref().unwrap_or(&declared);
                let is_declared = known.contains(&normal(package)) || known.contains(&normal(&name));
                if is_declared || self.has_module(&name) {
                    continue;
                }
                let list = match language {
                    Language::Node => "package.json",
                    Language::Python | Language::Bash => "requirements.txt",
                };
                let rule = format!(
                    "imports `{name}`, which no package list declares; add {package} to {list}, unless another package brings it"
                );
                undeclared.push(InvalidRequirement::new(format!("{path}:{line}"), rule));
            }
        }
        undeclared
    }

    /// Names of all packages in the lists of the skill.
    fn declared(&self, read: impl Fn(&str, u64) -> Option<String>) -> BTreeSet<String> {
        let list = |path: &str| read(path, limits::REQUIREMENTS_BYTES_MAX);
        let mut declared = BTreeSet::new();
        for path in self.named("requirements.txt") {
            let all = Requirements::of_file(path, list).unwrap_or_default();
            declared.extend(all.iter().map(normal));
        }
        for path in self.named("package.json") {
            let parsed = list(path).and_then(|text| serde_json::from_str::<serde_json::Value>(&text).ok());
            for kind in ["dependencies", "optionalDependencies", "peerDependencies"] {
                let names = parsed.as_ref().and_then(|all| all[kind].as_object());
                declared.extend(
                    names
                        .into_iter()
                        .flat_map(|all| all.keys())
                        .map(|name| normal(name)),
                );
            }
        }
        declared
    }

    fn named(&self, name: &str) -> impl Iterator<Item = &str> {
        let files = self.files.iter().copied();
        files.filter(move |path| path.rsplit('/').next() == Some(name))
    }

    /// Whether a file or folder of the skill has the name of a module.
    fn has_module(&self, name: &str) -> bool {
        PROVIDED.contains(&name)
            || self.files.iter().any(|path| {
                let mut parts = path.split('/');
                parts.any(|part| part.split('.').next() == Some(name))
            })
    }

    /// The lists of this name that apply to any program.
    fn found(&self, name: &str, language: Language) -> BTreeSet<String> {
        let readers = self
            .actions
            .iter()
            .filter(|action| action.language == language || action.language == Language::Bash);
        let is_file = |path: &str| self.files.binary_search(&path).is_ok();
        readers
            .filter_map(|action| package_list(name, Some(&action.path), is_file))
            .collect()
    }
}

/// The name of a package as it is compared (PEP 503), without extras and version.
fn normal(requirement: &str) -> String {
    let requirement = requirement.trim();
    let end = requirement
        .char_indices()
        .skip(1)
        .find(|(_, c)| "<>=!~;[(@ ".contains(*c));
    let name = end.map_or(requirement, |(at, _)| &requirement[..at]);
    name.to_lowercase().replace(['_', '.'], "-")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::skill::action;

    fn refused(files: &[(&str, &str)]) -> Vec<String> {
        let mut paths: Vec<_> = files.iter().map(|(path, _)| *path).collect();
        paths.sort_unstable();
        let actions: Vec<_> = files
            .iter()
            .filter_map(|(path, text)| action(path, text.as_bytes()))
            .collect();
        let lists = PackageLists {
            files: &paths,
            actions: &actions,
        };
        let read = |path: &str, _| {
            let found = files.iter().find(|(known, _)| *known == path);
            found.map(|(_, text)| (*text).to_owned())
        };
        lists.refused(read).iter().map(ToString::to_string).collect()
    }

    /// Z-27: reported at the push, not only at the run.
    #[test]
    fn reports_each_rejected_line_with_its_place() {
        let said = refused(&[
            (
                "requirements.txt",
                "-e .\nfine\nx @ https://evil.example/x.whl\n-r more.txt\n",
            ),
            ("more.txt", "./local\n"),
            (
                "scripts/a.py",
                "# /// script\n# dependencies = ['../up']\n# ///\n",
            ),
            ("scripts/b.mjs", ""),
            ("scripts/package.json", r#"{"dependencies": {"a": "file:x"}}"#),
        ]);
        let places: Vec<_> = said
            .iter()
            .map(|line| line.split(": ").next().unwrap_or_default())
            .collect();
        assert_eq!(
            places,
            [
                "requirements.txt:1",
                "requirements.txt:3",
                "more.txt:1",
                "scripts/a.py (its `script` header)",
                "scripts/package.json"
            ],
            "{said:?}"
        );
    }

    #[test]
    fn ignores_package_lists_of_other_programs() {
        let broken = [("requirements.txt", "-e ."), ("package.json", "no")];
        assert!(refused(&broken).is_empty());
        assert_eq!(refused(&[&broken[..], &[("scripts/a.py", "")]].concat()).len(), 1);
        assert_eq!(refused(&[&broken[..], &[("scripts/a.sh", "")]].concat()).len(), 2);
    }

    #[test]
    fn reports_imports_that_no_list_declares() {
        let files = [
            ("requirements.txt", "Pillow>=10\n"),
            ("package.json", r#"{"dependencies": {"lodash": "^4"}}"#),
            ("scripts/a.py", "import PIL, yaml, helper, os\n"),
            ("scripts/helper.py", ""),
            (
                "scripts/alone.py",
                "# /// script\n# dependencies = ['rich']\n# ///\nimport rich, PIL\n",
            ),
            (
                "scripts/b.mjs",
                "import _ from 'lodash';\nimport x from 'pdf-lib';\n",
            ),
            ("tests/test_a.py", "import pytest\n"),
        ];
        let mut names: Vec<_> = files.iter().map(|(path, _)| *path).collect();
        names.sort_unstable();
        let lists = PackageLists {
            files: &names,
            actions: &[],
        };
        let read = |path: &str, _: u64| {
            let file = files.iter().find(|(name, _)| *name == path);
            file.map(|(_, text)| (*text).to_owned())
        };
        let found: Vec<_> = lists.undeclared(read).iter().map(ToString::to_string).collect();
        let begins = |index: usize, text: &str| assert!(found[index].starts_with(text), "{found:?}");
        begins(0, "scripts/a.py:1: imports `yaml`");
        begins(1, "scripts/alone.py:4: imports `PIL`");
        begins(2, "scripts/b.mjs:2: imports `pdf-lib`");
        assert_eq!(found.len(), 3, "{found:?}");
        assert!(found[0].contains("add pyyaml to requirements.txt"), "{found:?}");
    }
}
