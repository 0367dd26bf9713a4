//! Finds the package lists of a skill, and reports what cannot be installed.

use std::collections::BTreeSet;

use crate::limits;
use crate::skill::requirements::InvalidRequirement;
use crate::skill::{Action, Language, NodePackages, Requirements};

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
}
