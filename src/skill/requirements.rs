//! Requested Python packages: files for pip, of which only package names are accepted.
//!
//! Anything that could lead an installer away from the configured index (Z-27) is rejected with its line.

use std::collections::BTreeSet;
use std::fmt;

use crate::error::quoted;
use crate::limits;
use crate::skill::requirement::Requirement;

/// An invalid requirement with its place and the remedy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{place}: {rule}")]
pub struct InvalidRequirement {
    place: String,
    rule: String,
}

impl InvalidRequirement {
    pub(super) fn new(place: impl fmt::Display, rule: impl Into<String>) -> Self {
        Self {
            place: place.to_string(),
            rule: rule.into(),
        }
    }
}

impl InvalidRequirement {
    /// The file, and the line from 1, if known.
    #[must_use]
    pub fn place(&self) -> (&str, Option<u32>) {
        let numbered = self.place.rsplit_once(':');
        let read = numbered.and_then(|(file, line)| Some((file, Some(line.parse().ok()?))));
        read.unwrap_or((&self.place, None))
    }

    #[must_use]
    pub fn rule(&self) -> &str {
        &self.rule
    }
}

/// Packages, sorted and without duplicates, with constraints and the choice of pre-releases.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Requirements {
    packages: BTreeSet<Requirement>,
    constraints: BTreeSet<Requirement>,
    prereleases: Prereleases,
}

/// Whether pip may install pre-releases.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Prereleases {
    /// Only if no release exists.
    #[default]
    Avoided,
    /// As with `--pre`.
    Taken,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Role {
    Asked,
    /// Constraints: versions of packages in case something requests them.
    Constraint,
}

impl Requirements {
    /// The packages in the file `path` and in files that it includes; `read` returns the text of a file of the skill.
    pub fn of_file(path: &str, read: impl FnMut(&str) -> Option<String>) -> Result<Self, InvalidRequirement> {
        Self::of_lines(path, read, Err)
    }

    /// Every line that [`of_file`](Self::of_file) would reject.
    pub(super) fn complaints(
        path: &str,
        read: impl FnMut(&str) -> Option<String>,
    ) -> Vec<InvalidRequirement> {
        let mut found = Vec::new();
        let last = Self::of_lines(path, read, |wrong| {
            found.push(wrong);
            Ok(())
        });
        found.extend(last.err());
        found
    }

    /// `judge` decides whether an invalid line ends the reading.
    fn of_lines(
        path: &str,
        mut read: impl FnMut(&str) -> Option<String>,
        mut judge: impl FnMut(InvalidRequirement) -> Result<(), InvalidRequirement>,
    ) -> Result<Self, InvalidRequirement> {
        let mut all = Self::default();
        let mut waiting = vec![(path.to_owned(), path.to_owned(), Role::Asked)];
        let mut seen = BTreeSet::new();
        while let Some((path, named_at, role)) = waiting.pop() {
            if !seen.insert((path.clone(), role)) {
                continue;
            }
            let files_max = limits::REQUIREMENTS_FILES_MAX;
            if seen.len() > files_max {
                let rule = format!("includes more than {files_max} files; combine them");
                return Err(InvalidRequirement::new(named_at, rule));
            }
            let missing = || {
                let rule = format!("{} is not a file of the skill, or too large", quoted(&path));
                InvalidRequirement::new(&named_at, rule)
            };
            let text = read(&path).ok_or_else(missing)?;
            for (number, line) in logical_lines(&text) {
                let place = format!("{path}:{number}");
                match parse(&line) {
                    Ok(Line::Package(requirement)) => all.add(requirement, role, &place)?,
                    Ok(Line::File(other, role)) => waiting.push((beside(&path, &other), place, role)),
                    Ok(Line::Prereleases) => all.prereleases = Prereleases::Taken,
                    Ok(Line::Nothing) => {}
                    Err(rule) => judge(InvalidRequirement::new(place, rule))?,
                }
            }
        }
        Ok(all)
    }

    /// Adds single packages; `place` names the place of each for errors.
    pub fn add_all(
        &mut self,
        packages: &[String],
        place: impl Fn(usize) -> String,
    ) -> Result<(), InvalidRequirement> {
        for (index, package) in packages.iter().enumerate() {
            let place = place(index);
            let wrong = |rule: String| InvalidRequirement::new(&place, rule);
            match parse(package.trim()).map_err(wrong)? {
                Line::Package(requirement) => self.add(requirement, Role::Asked, &place)?,
                Line::File(..) | Line::Prereleases | Line::Nothing => {
                    return Err(wrong(format!("{} names no package", quoted(package))));
                }
            }
        }
        Ok(())
    }

    /// Adds another list.
    pub fn extend(&mut self, other: Self) {
        self.packages.extend(other.packages);
        self.constraints.extend(other.constraints);
        if other.prereleases == Prereleases::Taken {
            self.prereleases = Prereleases::Taken;
        }
    }

    fn add(&mut self, requirement: Requirement, role: Role, place: &str) -> Result<(), InvalidRequirement> {
        let (all, max, what) = match role {
            Role::Asked => (&mut self.packages, limits::REQUIREMENTS_MAX, "packages"),
            Role::Constraint => (&mut self.constraints, limits::CONSTRAINTS_MAX, "constraints"),
        };
        all.insert(requirement);
        if all.len() > max {
            return Err(InvalidRequirement::new(
                place,
                format!("more than {max} {what}; list fewer, since dependencies are installed automatically"),
            ));
        }
        Ok(())
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.packages.is_empty()
    }

    /// In order.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        self.packages.iter().map(Requirement::as_str)
    }

    /// In order.
    pub fn constraints(&self) -> impl Iterator<Item = &str> {
        self.constraints.iter().map(Requirement::as_str)
    }

    #[must_use]
    pub fn prereleases(&self) -> Prereleases {
        self.prereleases
    }
}

enum Line {
    Package(Requirement),
    /// Another file, relative to this one.
    File(String, Role),
    Prereleases,
    Nothing,
}

/// Lines without comments. A line that ends in a backslash continues.
fn logical_lines(text: &str) -> Vec<(usize, String)> {
    let mut lines: Vec<(usize, String)> = Vec::new();
    let mut continued = false;
    for (index, line) in text.trim_start_matches('\u{feff}').lines().enumerate() {
        let is_comment = line.trim_start().starts_with('#');
        let line = if is_comment { "" } else { line };
        let line = line.split(" #").next().unwrap_or(line).trim();
        let (line, goes_on) = line
            .strip_suffix('\\')
            .map_or((line, is_comment && continued), |line| (line.trim(), true));
        match lines.last_mut() {
            Some((_, last)) if continued => {
                last.push(' ');
                last.push_str(line);
            }
            _ => lines.push((index + 1, line.to_owned())),
        }
        continued = goes_on;
    }
    lines.retain(|(_, line)| !line.trim().is_empty());
    lines
}

/// Options without effect here: only wheels are installed, and only from one index.
const WITHOUT_EFFECT: [&str; 4] = [
    "--only-binary",
    "--prefer-binary",
    "--require-hashes",
    "--no-binary :none:",
];

/// Default indexes, which the operator's index replaces.
const PUBLIC_INDEX: &str = "https://pypi.org/simple";

fn parse(line: &str) -> Result<Line, String> {
    if line.len() > limits::REQUIREMENT_BYTES_MAX {
        return Err("is too long".to_owned());
    }
    if line.starts_with('-') {
        return option(line);
    }
    if line.is_empty() {
        return Ok(Line::Nothing);
    }
    line.parse().map(Line::Package)
}

/// As in pip, files included by constraint files are requirement files again.
const FILE_OPTIONS: [(&str, Role); 4] = [
    ("--requirement", Role::Asked),
    ("--constraint", Role::Constraint),
    ("-r", Role::Asked),
    ("-c", Role::Constraint),
];

fn option(line: &str) -> Result<Line, String> {
    for (name, role) in FILE_OPTIONS {
        if let Some(rest) = line.strip_prefix(name) {
            let path = rest.trim_start_matches('=').trim();
            let plain = !path.is_empty() && !path.starts_with(['/', '~', '-']) && !path.contains([':', '$']);
            return if plain {
                Ok(Line::File(path.to_owned(), role))
            } else {
                Err(format!("{} is not a file of the skill", quoted(path)))
            };
        }
    }
    if line == "--pre" {
        return Ok(Line::Prereleases);
    }
    if WITHOUT_EFFECT.iter().any(|known| line.starts_with(known)) {
        return Ok(Line::Nothing);
    }
    let (word, value) = line.split_once([' ', '=']).unwrap_or((line, ""));
    let names_an_index = matches!(word, "--index-url" | "-i" | "--extra-index-url");
    if names_an_index && value.trim().trim_end_matches('/') == PUBLIC_INDEX {
        return Ok(Line::Nothing);
    }
    Err(match word {
        "--index-url" | "-i" | "--extra-index-url" | "--find-links" | "-f" | "--trusted-host"
        | "--no-index" | "--proxy" => format!(
            "{} would not use the configured index; remove the line, since the operator sets deps.python_index",
            quoted(word)
        ),
        "-e" | "--editable" => format!(
            "{} would build from source; name a published package instead",
            quoted(word)
        ),
        _ => format!("{} is not supported; remove the line", quoted(word)),
    })
}

/// `path` relative to the skill's folder, for a file that `from` includes.
fn beside(from: &str, path: &str) -> String {
    let mut parts: Vec<&str> = from.split('/').collect();
    parts.pop();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            // A path outside the skill's folder.
            ".." if parts.pop().is_none() => parts.push(".."),
            ".." => {}
            part => parts.push(part),
        }
    }
    parts.join("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Vec<String>, String> {
        let files = |path: &str| match path {
            "requirements.txt" => Some(text.to_owned()),
            "more/base.txt" => Some("-r deep.txt\nAlpha\n".to_owned()),
            "more/deep.txt" => Some("omega\n-r base.txt\n".to_owned()),
            _ => None,
        };
        let found = Requirements::of_file("requirements.txt", files).map_err(|error| error.to_string())?;
        Ok(found.iter().map(ToOwned::to_owned).collect())
    }

    #[test]
    fn normalizes_requirements() {
        let text = "\u{feff}# data\nPandas >= 2.0 , <3  # frames\r\n\nnumpy==1.26.*\nzope.interface\nuvicorn [standard, Extra_One] (>=0.20)\n--prefer-binary\n\
            tomli>=1.1.0 ; python_version   < '3.11'\npkg==1.0 \\\n    --hash=sha256:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA\n-r more/base.txt\n";
        let hash = "a".repeat(64);
        assert_eq!(
            read(text).unwrap(),
            [
                "alpha",
                "numpy==1.26.*",
                "omega",
                "pandas<3,>=2.0",
                &format!("pkg==1.0 --hash=sha256:{hash}"),
                "tomli>=1.1.0 ; python_version < '3.11'",
                "uvicorn[extra-one,standard]>=0.20",
                "zope-interface",
            ]
        );
    }

    #[test]
    fn reads_constraints_and_prerelease_option() {
        let files = |path: &str| match path {
            "requirements.txt" => Some("Alpha\n--constraint=more/limits.txt\n--pre\n"),
            "more/limits.txt" => Some("alpha==1.0rc1\nomega<2\n"),
            _ => None,
        };
        let all =
            Requirements::of_file("requirements.txt", |path| files(path).map(ToOwned::to_owned)).unwrap();
        assert_eq!(all.iter().collect::<Vec<_>>(), ["alpha"]);
        assert_eq!(
            all.constraints().collect::<Vec<_>>(),
            ["alpha==1.0rc1", "omega<2"]
        );
        assert_eq!(all.prereleases(), Prereleases::Taken);
        let mut both = Requirements::default();
        assert_eq!(both.prereleases(), Prereleases::Avoided);
        both.extend(all.clone());
        assert_eq!(both, all);
    }

    /// Z-27.
    #[test]
    fn rejects_sources_outside_the_index_with_remedy() {
        for line in [
            "--index-url https://evil.example/simple",
            "-i https://evil.example/simple",
            "--extra-index-url=https://evil.example/simple",
            "--find-links /opt/wheels",
            "-f .",
            "--trusted-host evil.example",
            "-e git+ssh://git@evil.example/x",
            "-e .",
            "git+https://evil.example/x#egg=x",
            "https://evil.example/x-1.0-py3-none-any.whl",
            "file:///etc/passwd",
            "name @ https://evil.example/x.whl",
            "name@file:///etc/passwd",
            "./local",
            "../up",
            "/etc/passwd",
            "x-1.0-py3-none-any.whl",
            "C:\\x",
            "-r /etc/passwd",
            "-r https://evil.example/r.txt",
            "-r ../../etc/passwd",
            "-c absent.txt",
            "-c /etc/pip.conf",
            "-c https://evil.example/c.txt",
            "--pre x",
            "--prefer-source",
            "--config-settings x",
            "name --global-option=x",
            "name ; $(id)",
            "name==${VERSION}",
            "name==1 2",
            "six ;--global-option=x",
            "six ; python_version < '3' --config-settings=x",
            "-name",
            "name[",
            "%import os",
        ] {
            let error = read(&format!("fine\n{line}\n")).unwrap_err();
            assert!(error.starts_with("requirements.txt:2: "), "{line}: {error}");
        }
        let error = read("--index-url https://evil.example/simple").unwrap_err();
        assert!(error.contains("deps.python_index"), "{error}");
    }

    #[test]
    fn accepts_the_public_index_option() {
        let text = "-i https://pypi.org/simple\n--extra-index-url=https://pypi.org/simple/\na\n";
        assert_eq!(read(text).unwrap(), ["a"]);
        assert!(read("--index-url https://pypi.org.evil.example/simple").is_err());
    }

    #[test]
    fn limits_package_lists() {
        let many: String = (0..=limits::REQUIREMENTS_MAX)
            .map(|n| format!("p{n}\n"))
            .collect();
        assert!(read(&many).unwrap_err().contains("packages"));
        assert!(read(&format!("a=={}", "1".repeat(10_000))).is_err());
    }

    #[test]
    fn same_rules_hold_for_single_packages() {
        let mut all = Requirements::default();
        let place = |index| format!("requirements[{index}]");
        all.add_all(&["rich".to_owned(), "Rich".to_owned()], place)
            .unwrap();
        assert_eq!(all.iter().collect::<Vec<_>>(), ["rich"]);
        for wrong in ["", "-r x.txt", "-c x.txt", "--pre", "x @ file:///x", "# x"] {
            let error = all
                .add_all(&["ok".to_owned(), wrong.to_owned()], place)
                .unwrap_err();
            assert!(error.to_string().starts_with("requirements[1]: "), "{error}");
        }
    }
}
