//! Requested Node packages: `package.json` and its lock. Nothing in them may lead outside the registry.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer};
use serde_json::{Value, json};

use crate::error::quoted;
use crate::skill::requirements::InvalidRequirement;

/// The files for npm.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodePackages {
    package_json: String,
    lock: Option<String>,
}

/// Only the dependencies of a `package.json`, so that nothing else in it is run.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct PackageJson {
    #[serde(deserialize_with = "packages")]
    dependencies: BTreeMap<String, Value>,
    #[serde(rename = "optionalDependencies", deserialize_with = "packages")]
    optional: BTreeMap<String, Value>,
    #[serde(rename = "devDependencies", deserialize_with = "packages")]
    development: BTreeMap<String, Value>,
    workspaces: Option<Value>,
}

/// `null` means none, as for npm.
fn packages<'de, D: Deserializer<'de>>(deserializer: D) -> Result<BTreeMap<String, Value>, D::Error> {
    Option::deserialize(deserializer).map(Option::unwrap_or_default)
}

impl NodePackages {
    /// Reads both files; `None` if no package is requested. `path` names the first in errors.
    ///
    /// # Errors
    ///
    /// A dependency that is not a version range of a published package.
    pub fn parse(
        path: &str,
        package_json: &str,
        lock: Option<&str>,
    ) -> Result<Option<Self>, InvalidRequirement> {
        let wrong = |rule: String| InvalidRequirement::new(path, rule);
        let parsed: PackageJson = serde_json::from_str(package_json)
            .map_err(|error| wrong(format!("is no package.json: {error}")))?;
        if parsed.dependencies.is_empty() && parsed.optional.is_empty() {
            return Ok(None);
        }
        if parsed.workspaces.is_some() {
            return Err(wrong(
                "`workspaces` are not supported; publish the parts or add them to the skill".to_owned(),
            ));
        }
        // Never installed, but npm compares them with the lock.
        let development = lock.map(|_| &parsed.development);
        let kinds = [Some(&parsed.dependencies), Some(&parsed.optional), development];
        for (name, version) in kinds.into_iter().flatten().flatten() {
            check(name, version).map_err(&wrong)?;
        }
        if let Some(lock) = lock {
            check_lock(lock).map_err(|rule| {
                InvalidRequirement::new(path.replace("package.json", "package-lock.json"), rule)
            })?;
            return Ok(Some(Self {
                // npm compares the two, so both are passed unchanged.
                package_json: package_json.to_owned(),
                lock: Some(lock.to_owned()),
            }));
        }
        let asked = json!({
            "private": true,
            "dependencies": parsed.dependencies,
            "optionalDependencies": parsed.optional,
        });
        Ok(Some(Self {
            package_json: asked.to_string(),
            lock: None,
        }))
    }

    /// Adds packages of a request: `name` or `name@range`.
    ///
    /// # Errors
    ///
    /// An invalid package; a lock, which must contain everything that is installed.
    pub fn with(declared: Option<Self>, names: &[String]) -> Result<Option<Self>, InvalidRequirement> {
        if names.is_empty() {
            return Ok(declared);
        }
        if declared.as_ref().is_some_and(|declared| declared.lock.is_some()) {
            let rule = "the skill's package-lock.json determines all packages; add them there";
            return Err(InvalidRequirement::new("requirements", rule));
        }
        let text = declared.map_or_else(|| "{}".to_owned(), |declared| declared.package_json);
        let mut parsed: Value = serde_json::from_str(&text).unwrap_or_default();
        for (index, asked) in names.iter().enumerate() {
            // The first character may be the `@` of a scope.
            let at = asked
                .char_indices()
                .skip(1)
                .find(|(_, c)| *c == '@')
                .map(|(at, _)| at);
            let (name, range) = at.map_or((asked.as_str(), "*"), |at| (&asked[..at], &asked[at + 1..]));
            let range = Value::from(range);
            check(name, &range)
                .map_err(|rule| InvalidRequirement::new(format!("requirements[{index}]"), rule))?;
            parsed["dependencies"][name] = range;
        }
        Self::parse("requirements", &parsed.to_string(), None)
    }

    /// Adds another list. Two lists have no common lock: a locked list then requests exactly the versions of its
    /// lock.
    ///
    /// # Errors
    ///
    /// A package without a version that both lists accept.
    pub fn join(self, other: Self) -> Result<Self, InvalidRequirement> {
        if self == other {
            return Ok(self);
        }
        let (mut all, more) = (self.pinned(), other.pinned());
        for (name, range) in more.dependencies.into_iter().chain(more.optional) {
            let known = all.dependencies.remove(&name).or(all.optional.remove(&name));
            let range = match known {
                Some(known) => both(&known, &range).ok_or_else(|| {
                    let rule = format!(
                        "`{name}`: no version matches both {known} and {range}; request the same range"
                    );
                    InvalidRequirement::new("package.json", rule)
                })?,
                None => range,
            };
            all.dependencies.insert(name, range);
        }
        let asked = json!({
            "private": true,
            "dependencies": all.dependencies,
            "optionalDependencies": all.optional,
        });
        Ok(Self {
            package_json: asked.to_string(),
            lock: None,
        })
    }

    /// The dependencies, with the versions of the lock if there is one.
    fn pinned(&self) -> PackageJson {
        let mut asked: PackageJson = serde_json::from_str(&self.package_json).unwrap_or_default();
        let lock: Value = self
            .lock
            .as_deref()
            .and_then(|lock| serde_json::from_str(lock).ok())
            .unwrap_or_default();
        for (name, range) in asked.dependencies.iter_mut().chain(&mut asked.optional) {
            let locked = &lock["packages"][format!("node_modules/{name}")];
            if let Some(version) = locked["version"].as_str() {
                let pinned = match locked["name"].as_str() {
                    Some(other) if other != name => format!("npm:{other}@{version}"),
                    _ => version.to_owned(),
                };
                let pinned = Value::from(pinned);
                if check(name, &pinned).is_ok() {
                    *range = pinned;
                }
            }
        }
        asked
    }

    #[must_use]
    pub fn package_json(&self) -> &str {
        &self.package_json
    }

    #[must_use]
    pub fn lock(&self) -> Option<&str> {
        self.lock.as_deref()
    }

    /// Human-readable list of `name@range`.
    #[must_use]
    pub fn names(&self) -> Vec<String> {
        let parsed: PackageJson = serde_json::from_str(&self.package_json).unwrap_or_default();
        let all = parsed.dependencies.iter().chain(&parsed.optional);
        all.map(|(name, range)| format!("{name}@{}", range.as_str().unwrap_or("*")))
            .collect()
    }
}

/// The intersection of two ranges, if it can be written as a range.
fn both(one: &Value, other: &Value) -> Option<Value> {
    let (first, second) = (one.as_str()?.trim(), other.as_str()?.trim());
    let is_any = |range: &str| matches!(range, "" | "*" | "x" | "latest");
    if first == second || is_any(second) {
        return Some(one.clone());
    }
    if is_any(first) {
        return Some(other.clone());
    }
    // Tags and aliases name one version each; `1 - 2` cannot be combined.
    let plain = |range: &str| {
        let is_comparator =
            |word: &str| word.starts_with(|c: char| c.is_ascii_digit() || "^~<>=v*".contains(c));
        range.split("||").all(|part| {
            !part.trim().is_empty()
                && part
                    .split_whitespace()
                    .all(|word| is_comparator(word) && word != "-")
        })
    };
    if !plain(first) || !plain(second) {
        return None;
    }
    let pairs = first.split("||").flat_map(|one| {
        let with = move |other: &str| format!("{} {}", one.trim(), other.trim());
        second.split("||").map(with)
    });
    Some(Value::from(pairs.collect::<Vec<_>>().join(" || ")))
}

fn check(name: &str, version: &Value) -> Result<(), String> {
    let part = |part: &str| {
        let plain = |c: char| c.is_ascii_alphanumeric() || "-_.~".contains(c);
        !part.is_empty() && !part.starts_with('.') && part.chars().all(plain)
    };
    let is_name = |name: &str| match name.strip_prefix('@') {
        Some(scoped) => scoped
            .split_once('/')
            .is_some_and(|(scope, name)| part(scope) && part(name)),
        None => part(name),
    };
    if !is_name(name) {
        return Err(format!("{} is not the name of a package", quoted(name)));
    }
    let range = version.as_str().unwrap_or("\0");
    let range = match range.strip_prefix("npm:") {
        // An alias: another name and its range.
        Some(alias) => match alias.rsplit_once('@') {
            Some((other, range)) if is_name(other) => range,
            _ if is_name(alias) => "*",
            _ => "\0",
        },
        None => range,
    };
    // Letters for tags and pre-releases. Without `:` and `/` it is no URL, path or repository.
    let plain = |c: char| c.is_ascii_alphanumeric() || " .-+*^~<>=|_".contains(c);
    if range.chars().all(plain) {
        return Ok(());
    }
    Err(format!(
        "`{name}`: {} would not be fetched from the configured registry; name a version of a published package",
        quoted(version.as_str().unwrap_or("not a text"))
    ))
}

/// npm fetches packages from the URLs in a lock: only archives over HTTPS, and no links.
fn check_lock(lock: &str) -> Result<(), String> {
    let parsed: Value =
        serde_json::from_str(lock).map_err(|error| format!("is not a lock of npm: {error}"))?;
    if parsed
        .get("lockfileVersion")
        .and_then(Value::as_u64)
        .is_none_or(|version| version < 2)
    {
        return Err("is older than lockfileVersion 2; create it again with npm 7 or later".to_owned());
    }
    let packages = parsed.get("packages").and_then(Value::as_object);
    for (place, package) in packages.into_iter().flatten() {
        let resolved = package.get("resolved").and_then(Value::as_str);
        if package.get("link").is_some() || resolved.is_some_and(|from| !from.starts_with("https://")) {
            return Err(format!(
                "{} would not be fetched from the configured registry; name a published package",
                quoted(place)
            ));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(dependencies: &str) -> Result<Option<NodePackages>, InvalidRequirement> {
        NodePackages::parse(
            "package.json",
            &format!("{{\"dependencies\": {dependencies}}}"),
            None,
        )
    }

    #[test]
    fn passes_on_installed_dependencies_only() {
        let text = r#"{"name": "x", "type": "module", "scripts": {"preinstall": "curl evil"},
            "dependencies": {"@scope/a": "^1.2.3 || >=2 <3", "b": "npm:@scope/c@~1", "d": "latest"}, "devDependencies": {"t": "1", "own": "file:../own", "fork": "github:a/b", "odd": 1},
            "optionalDependencies": null}"#;
        let asked = NodePackages::parse("package.json", text, None).unwrap().unwrap();
        assert!(!asked.package_json().contains("preinstall") && !asked.package_json().contains("\"t\""));
        assert_eq!(
            asked.names(),
            ["@scope/a@^1.2.3 || >=2 <3", "b@npm:@scope/c@~1", "d@latest"]
        );
        for nothing in [
            "{}",
            r#"{"type": "module"}"#,
            r#"{"devDependencies": {"t": "file:../t"}}"#,
            r#"{"dependencies": null, "optionalDependencies": null, "devDependencies": null}"#,
        ] {
            assert_eq!(NodePackages::parse("package.json", nothing, None), Ok(None));
        }
    }

    #[test]
    fn merges_two_dependency_lists() {
        let list = |dependencies: &str| with(dependencies).unwrap().unwrap();
        let joined = list(r#"{"a": "^1.2 || 3", "b": "*", "c": "1"}"#)
            .join(list(r#"{"a": ">=1.3 <4", "b": "~2", "d": "latest"}"#))
            .unwrap();
        assert_eq!(
            joined.names(),
            ["a@^1.2 >=1.3 <4 || 3 >=1.3 <4", "b@~2", "c@1", "d@latest"]
        );
        let lock = r#"{"lockfileVersion": 3, "packages": {"node_modules/a": {"version": "1.2.3", "resolved": "https://r.example/a.tgz"}}}"#;
        let text = r#"{"dependencies": {"a": "^1"}}"#;
        let locked = || {
            NodePackages::parse("package.json", text, Some(lock))
                .unwrap()
                .unwrap()
        };
        assert_eq!(locked().join(locked()).unwrap(), locked());
        let pinned = locked().join(list(r#"{"b": "2"}"#)).unwrap();
        assert_eq!(
            (pinned.names(), pinned.lock()),
            (vec!["a@1.2.3".to_owned(), "b@2".to_owned()], None)
        );
        for (one, other) in [("next", "1"), ("1 - 2", "2"), ("npm:b@1", "1")] {
            let list = |range: &str| list(&format!("{{\"a\": \"{range}\"}}"));
            let error = list(one).join(list(other)).unwrap_err().to_string();
            assert!(error.starts_with("package.json: `a`: "), "{error}");
        }
    }

    /// Z-27.
    #[test]
    fn names_dependency_outside_the_registry() {
        for range in [
            "git+ssh://git@evil.example/x.git",
            "https://evil.example/x.tgz",
            "file:../x",
            "link:x",
            "user/repo",
            "github:user/repo",
            "workspace:*",
            "npm:x@file:y",
        ] {
            let error = with(&format!("{{\"bad\": \"{range}\"}}"))
                .unwrap_err()
                .to_string();
            assert!(error.starts_with("package.json: `bad`: "), "{range}: {error}");
        }
        for wrong in [r#"{"../x": "1"}"#, r#"{"a b": "1"}"#, r#"{"a": 1}"#, "[]"] {
            assert!(with(wrong).is_err(), "{wrong}");
        }
        let text = r#"{"dependencies": {"a": "1"}}"#;
        for lock in [
            r#"{"lockfileVersion": 3, "packages": {"node_modules/a": {"resolved": "git+ssh://evil"}}}"#,
            r#"{"lockfileVersion": 3, "packages": {"node_modules/a": {"link": true, "resolved": "x"}}}"#,
            r#"{"lockfileVersion": 1}"#,
            "no",
        ] {
            let error = NodePackages::parse("package.json", text, Some(lock))
                .unwrap_err()
                .to_string();
            assert!(error.starts_with("package-lock.json: "), "{error}");
        }
        let with_development = r#"{"dependencies": {"a": "1"}, "devDependencies": {"own": "file:../own"}}"#;
        let lock = r#"{"lockfileVersion": 3, "packages": {}}"#;
        assert!(NodePackages::parse("package.json", with_development, Some(lock)).is_err());
        let lock = r#"{"lockfileVersion": 3, "packages": {"": {}, "node_modules/a": {"resolved": "https://r.example/a.tgz"}}}"#;
        assert!(
            NodePackages::parse("package.json", text, Some(lock))
                .unwrap()
                .unwrap()
                .lock()
                .is_some()
        );
    }
}
