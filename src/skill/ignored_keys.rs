//! Keys without effect: those of other products, and unknown ones. Each group is one warning.

use crate::error::quoted;
use crate::skill::Origin;

/// Frequent keys of published skills for other products.
const OTHER_PRODUCTS: &[&str] = &[
    "agent",
    "always",
    "argument-hint",
    "arguments",
    "author",
    "authors",
    "category",
    "color",
    "context",
    "created",
    "date",
    "disable-model-invocation",
    "domain",
    "emoji",
    "env",
    "examples",
    "hooks",
    "homepage",
    "icon",
    "id",
    "inputs",
    "keywords",
    "maintainer",
    "mcp",
    "model",
    "outputs",
    "parameters",
    "primaryEnv",
    "priority",
    "repository",
    "role",
    "slug",
    "source",
    "status",
    "tags",
    "title",
    "tools",
    "triggers",
    "type",
    "updated",
    "user-invocable",
    "when_to_use",
];
/// Of these, lists of programs and packages, which an author may expect to be installed.
const INSTALLED_ELSEWHERE: [&str; 3] = ["dependencies", "prerequisites", "requires"];
/// Keys that a warning names.
const NAMED_MAX: usize = 10;

#[derive(Debug, Default)]
pub(super) struct IgnoredKeys(Vec<IgnoredKey>);

#[derive(Debug)]
struct IgnoredKey {
    origin: Origin,
    line: u32,
    key: String,
}

/// A warning about keys of one origin, at the line of the first.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct KeyWarning {
    pub(super) origin: Origin,
    pub(super) line: u32,
    pub(super) message: String,
}

impl IgnoredKeys {
    pub(super) fn add(&mut self, key: &str, origin: Origin, line: u32) {
        let key = key.to_owned();
        self.0.push(IgnoredKey { origin, line, key });
    }

    /// At most three for each file, in the order of their first keys.
    pub(super) fn warnings(&self) -> Vec<KeyWarning> {
        let mut found = Vec::new();
        for origin in [Origin::FrontMatter, Origin::Metadata, Origin::SkillToml] {
            let of_origin = self.0.iter().filter(|ignored| ignored.origin == origin);
            let (installed, others): (Vec<_>, Vec<_>) =
                of_origin.partition(|ignored| INSTALLED_ELSEWHERE.contains(&ignored.key.as_str()));
            let (others, unknown): (Vec<_>, Vec<_>) = others
                .into_iter()
                .partition(|ignored| OTHER_PRODUCTS.contains(&ignored.key.as_str()));
            for (keys, singular, plural, remedy) in [
                (
                    installed,
                    "key",
                    "keys",
                    "without effect here; list packages in requirements.txt or package.json, and have programs installed on the host or in the image",
                ),
                (others, "key", "keys", "of other products, without effect here"),
                (
                    unknown,
                    "unknown key",
                    "unknown keys",
                    "ignored; check the spelling, or write text in `metadata`",
                ),
            ] {
                let Some(first) = keys.first() else { continue };
                let word = if keys.len() == 1 { singular } else { plural };
                found.push(KeyWarning {
                    origin,
                    line: first.line,
                    message: format!("{word} {}: {remedy}", names(&keys)),
                });
            }
        }
        found.sort_by_key(|warning| warning.line);
        found
    }
}

fn names(keys: &[&IgnoredKey]) -> String {
    let named: Vec<_> = keys
        .iter()
        .take(NAMED_MAX)
        .map(|ignored| quoted(&ignored.key))
        .collect();
    match keys.len().checked_sub(NAMED_MAX) {
        Some(more @ 1..) => format!("{} and {more} more", named.join(", ")),
        Some(0) | None => named.join(", "),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_keys_by_meaning_and_file() {
        let mut ignored = IgnoredKeys::default();
        for (line, key) in ["model", "requires", "desciption", "tags", "verison"]
            .into_iter()
            .enumerate()
        {
            ignored.add(key, Origin::FrontMatter, u32::try_from(line).unwrap() + 2);
        }
        ignored.add("tags", Origin::SkillToml, 1);
        let told: Vec<_> = ignored
            .warnings()
            .into_iter()
            .map(|told| (told.line, told.message))
            .collect();
        let starts: Vec<_> = told
            .iter()
            .map(|(line, text)| (*line, text.split(": ").next().unwrap()))
            .collect();
        assert_eq!(
            starts,
            [
                (1, "key `tags`"),
                (2, "keys `model`, `tags`"),
                (3, "key `requires`"),
                (4, "unknown keys `desciption`, `verison`"),
            ]
        );
    }

    #[test]
    fn names_at_most_ten_keys() {
        let mut ignored = IgnoredKeys::default();
        (0..2000).for_each(|n| ignored.add(&format!("k{n}"), Origin::FrontMatter, n));
        let told = ignored.warnings();
        assert_eq!(told.len(), 1);
        assert!(
            told[0].message.contains("`k9` and 1990 more") && told[0].message.len() < 300,
            "{told:?}"
        );
    }
}
