//! Compares the catalogue of attacks with the ids that sources, tests and documents quote.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use super::{root, texts};

const CATALOGUE: &str = "docs/security/catalogue.md";
/// Quoted where a test needs an id that does not exist.
const NO_ID: &str = "S-99";
/// Files with planted ids, and the record of an earlier release.
const EXEMPT: &[&str] = &["tests/tidy/catalogue.rs", "tests/baseline/", CATALOGUE];
const NO_TEST: &str = "—";
const UPDATE: &str = "SKILLBOX_TEST_UPDATE";

type Texts = [(String, String)];

/// What quotes each id: test functions and `skillbox prove`.
type Quotes = BTreeMap<String, BTreeSet<String>>;

/// One line of the catalogue's tables.
struct Row<'a> {
    id: &'a str,
    attack: &'a str,
    result: &'a str,
    tests: &'a str,
}

impl<'a> Row<'a> {
    fn parse(line: &'a str) -> Option<Self> {
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        let [_, id, attack, result, tests, _] = cells[..] else {
            return None;
        };
        ids(id).next().is_some().then_some(Self {
            id,
            attack,
            result,
            tests,
        })
    }

    fn quoted(&self) -> BTreeSet<String> {
        self.names()
            .split('`')
            .skip(1)
            .step_by(2)
            .map(str::to_owned)
            .collect()
    }

    /// The part of the last column that is written from the sources.
    fn names(&self) -> &'a str {
        match self.tests.split_once("; ") {
            _ if self.tests.starts_with(NO_TEST) => "",
            Some((names, _)) => names,
            None => self.tests,
        }
    }

    fn complaints(&self, quotes: &Quotes) -> Vec<String> {
        let id = self.id;
        let mut found = Vec::new();
        if self.attack.is_empty() || self.result.is_empty() {
            found.push(format!("{id} has no attack or no required result"));
        }
        let expected = quotes.get(id).cloned().unwrap_or_default();
        match self.tests.strip_prefix(NO_TEST) {
            Some(reason) if reason.trim().is_empty() => found.push(format!("{id} has no test and no reason")),
            Some(_) => found.extend(
                expected
                    .iter()
                    .map(|name| format!("{id} claims to have no test, but `{name}` quotes it")),
            ),
            None if expected.is_empty() => {
                found.push(format!("{id} is quoted by no test; add one or a reason"))
            }
            None => {
                let named = self.quoted();
                found.extend(
                    named.difference(&expected).map(|name| {
                        format!("{id} names `{name}`, which does not exist or does not quote it")
                    }),
                );
                found.extend(
                    expected
                        .difference(&named)
                        .map(|name| format!("{id} does not name `{name}`, which quotes it")),
                );
            }
        }
        found
    }

    fn updated(&self, quotes: &Quotes) -> String {
        let names = quotes.get(self.id).map(|names| {
            let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
            match self.tests.split_once("; ") {
                Some((_, note)) if !self.tests.starts_with(NO_TEST) => {
                    format!("{}; {note}", names.join(", "))
                }
                _ => names.join(", "),
            }
        });
        let tests = names.as_deref().unwrap_or(self.tests);
        format!("| {} | {} | {} | {tests} |", self.id, self.attack, self.result)
    }
}

/// All ids in a line: a capital letter, a hyphen and two digits, as a word.
fn ids(line: &str) -> impl Iterator<Item = &str> {
    let is_word = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphanumeric);
    let bytes = line.as_bytes();
    (0..bytes.len().saturating_sub(3)).filter_map(move |at| {
        let id = &bytes[at..at + 4];
        let shape = id[0].is_ascii_uppercase() && id[1] == b'-' && id[2..].iter().all(u8::is_ascii_digit);
        // A probe's id is its entry's with a letter.
        let ends = !bytes.get(at + 4).is_some_and(u8::is_ascii_digit);
        let starts = !is_word(at.checked_sub(1).and_then(|before| bytes.get(before)));
        (shape && starts && ends).then(|| &line[at..at + 4])
    })
}

fn quotes(files: &Texts) -> Quotes {
    let mut found = Quotes::new();
    for (path, text) in files {
        if path.starts_with("src/prove/") && path.ends_with(".yaml") {
            for line in text.lines().filter(|line| line.contains("id: ")) {
                for id in ids(line) {
                    found
                        .entry(id.to_owned())
                        .or_default()
                        .insert("skillbox prove".to_owned());
                }
            }
        } else if path.ends_with(".rs") {
            for (id, name) in quoting_tests(path, text) {
                found.entry(id.to_owned()).or_default().insert(name.to_owned());
            }
        }
    }
    found
}

/// Ids in comments above and inside test functions; the promises of `contract` modules become tests by a macro.
fn quoting_tests<'a>(path: &'a str, text: &'a str) -> Vec<(&'a str, &'a str)> {
    let mut found = Vec::new();
    let mut above: Vec<&str> = Vec::new();
    let mut is_test = false;
    let mut inside: Option<(&str, String)> = None;
    for line in text.lines() {
        let code = line.trim_start();
        let comment = code.starts_with("//") && !code.starts_with("//!");
        if let Some((name, end)) = &inside {
            found.extend(ids(line).filter(|_| comment).map(|id| (id, *name)));
            if line == end {
                inside = None;
            }
        } else if comment {
            above.extend(ids(line));
        } else if code.starts_with("#[") {
            is_test |= code.contains("test]") || code.contains("test(");
        } else if let Some(name) = function(code) {
            if is_test || path.contains("/contract") {
                found.extend(above.drain(..).map(|id| (id, name)));
                let indent = &line[..line.len() - code.len()];
                inside = (!line.ends_with('}')).then(|| (name, format!("{indent}}}")));
            }
            above.clear();
            is_test = false;
        } else if code == "}" {
            above.clear();
        }
    }
    found
}

fn function(code: &str) -> Option<&str> {
    let (before, after) = code.split_once("fn ")?;
    let modifiers = before.split(' ').filter(|word| !word.is_empty());
    let plain = modifiers.into_iter().all(|word| {
        word.starts_with("pub") || word == "async" || word.starts_with("crate") || word.ends_with(')')
    });
    plain.then(|| after.split(['(', '<']).next().unwrap_or(after))
}

fn complaints(catalogue: &str, files: &Texts) -> Vec<String> {
    let quotes = quotes(files);
    let mut known = BTreeSet::new();
    let mut found = Vec::new();
    for row in catalogue.lines().filter_map(Row::parse) {
        if !known.insert(row.id) {
            found.push(format!("{} is in the catalogue twice", row.id));
        }
        found.extend(row.complaints(&quotes));
    }
    for (path, text) in files {
        let unknown: BTreeSet<&str> = text
            .lines()
            .flat_map(ids)
            .filter(|id| *id != NO_ID && !known.contains(id))
            .collect();
        found.extend(
            unknown
                .iter()
                .map(|id| format!("{path}: {id} is not in the catalogue")),
        );
    }
    found
}

fn files() -> Vec<(String, String)> {
    let exempt = |path: &str| EXEMPT.iter().any(|exempt| path.starts_with(exempt));
    ["src", "tests", "docs"]
        .into_iter()
        .flat_map(texts)
        .filter(|(path, _)| !exempt(path))
        .collect()
}

#[test]
fn catalogue_and_tests_agree() {
    let path = root().join(CATALOGUE);
    let catalogue = fs::read_to_string(&path).unwrap();
    let files = files();
    if std::env::var_os(UPDATE).is_some() {
        let quotes = quotes(&files);
        let lines = catalogue.lines().map(|line| {
            Row::parse(line).map_or_else(|| format!("{line}\n"), |row| row.updated(&quotes) + "\n")
        });
        fs::write(&path, lines.collect::<String>()).unwrap();
        return;
    }
    let found = complaints(&catalogue, &files);
    assert!(
        found.is_empty(),
        "{}\nAfter renaming a test: {UPDATE}=1 cargo test --test tidy",
        found.join("\n")
    );
}

#[test]
fn each_difference_is_reported() {
    let quoting = "/// S-01.\n#[test]\nfn drops_capabilities() {\n    // S-02: here, too.\n}\n";
    let row = |id: &str, tests: &str| format!("| {id} | attack | result | {tests} |\n");
    let both = |first: &str, second: &str| row("S-01", first) + &row("S-02", second);
    let named = "`drops_capabilities`";
    let check = |catalogue: &str, path: &str, source: &str| {
        complaints(catalogue, &[(path.to_owned(), source.to_owned())])
    };
    let right = both(named, &format!("{named}; on Linux only"));
    assert_eq!(check(&right, "src/x.rs", quoting), [""; 0]);
    for (catalogue, complaint) in [
        (row("S-01", named), "src/x.rs: S-02 is not in the catalogue"),
        (both("`gone`", named), "S-01 names `gone`"),
        (both("", named), "S-01 does not name `drops_capabilities`"),
        (both("— later", named), "S-01 claims to have no test"),
        (both(named, "—"), "S-02 has no test and no reason"),
        (right.clone() + &row("S-03", "`x`"), "S-03 is quoted by no test"),
        (
            right.clone() + &row("S-01", named),
            "S-01 is in the catalogue twice",
        ),
        (right.replace("| attack |", "| |"), "S-01 has no attack"),
    ] {
        let found = check(&catalogue, "src/x.rs", quoting);
        assert!(
            found.iter().any(|one| one.contains(complaint)),
            "{complaint}: {found:?}"
        );
    }
    assert!(
        !check(&right, "docs/x.md", NO_ID)
            .iter()
            .any(|one| one.contains(NO_ID))
    );
    let probe = check(
        &row("S-04", "`skillbox prove`"),
        "src/prove/x.yaml",
        "- { id: S-04a }",
    );
    assert_eq!(probe, [""; 0]);
}
