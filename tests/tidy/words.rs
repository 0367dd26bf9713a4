//! Refuses words that were replaced: old identifiers in code, and phrases that hide the noun in prose.

use super::{code_lines, sources, texts, words};

/// Identifiers that have another name now. Add the old name when you rename one.
const OLD_NAMES: &[&str] = &[
    "CALLERS_COME_WITHIN",
    "Comer",
    "GIVE_WAY_MAX",
    "Impatient",
    "Recurring",
    "SetName",
    "Shelf",
    "TooFar",
    "UPKEEP_EVERY",
    "Wanted",
    "begin_telling",
    "converse",
    "enter_line",
    "give_way",
    "hand_out",
    "line_up",
    "newborn",
    "nobody_waits",
    "send_away",
];

/// Phrases without a noun, or with an image in place of the term. Ordinary words such as `keep` are left to review.
const PHRASES: &[&str] = &[
    "whoever",
    "somebody",
    "anew",
    "in vain",
    "is let in",
    "was not let in",
    "gives way",
    "upkeep",
    "newborn",
    "for good",
    "its turn",
    "taken down",
    "nobody waits for",
    "sandboxes that wait",
    "while clients come",
    "ended as",
    "was judged",
    "in whatever disguise",
    "hangs up",
    "wants no more",
    "looks after",
    "told apart",
    "our fault",
];

const PROSE: &[&str] = &[
    "README.md",
    "SECURITY.md",
    "CONTRIBUTING.md",
    "CHANGELOG.md",
    "get.sh",
    "install.sh",
    "packaging",
    "deploy",
    "docs",
    "examples",
    "src",
    "benches",
    "tests/it",
    "tests/samples",
    "web/dashboard",
];

fn old_names(path: &str, text: &str) -> Vec<String> {
    let found = code_lines(text)
        .flat_map(words)
        .filter(|word| OLD_NAMES.contains(word));
    found
        .map(|word| format!("{path}: `{word}` has another name now"))
        .collect()
}

fn phrases(path: &str, text: &str) -> Vec<String> {
    let in_word =
        |letter: Option<char>| letter.is_some_and(|letter| letter.is_alphanumeric() || letter == '_');
    let text = text.to_lowercase();
    let mut found = Vec::new();
    for phrase in PHRASES {
        for (at, _) in text.match_indices(phrase) {
            let before = text[..at].chars().next_back();
            let after = text[at + phrase.len()..].chars().next();
            if !in_word(before) && !in_word(after) {
                let line = text[..at].lines().count().max(1);
                found.push(format!("{path}: line {line}: say what `{phrase}` means"));
            }
        }
    }
    found
}

#[test]
fn no_replaced_word_is_used() {
    let code = sources().filter(|(path, _)| !path.starts_with("tests/tidy/"));
    let prose = PROSE.iter().flat_map(|place| texts(place));
    let found: Vec<String> = code
        .flat_map(|(path, text)| old_names(&path, &text))
        .chain(prose.flat_map(|(path, text)| phrases(&path, &text)))
        .collect();
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn each_replaced_word_is_reported() {
    for name in OLD_NAMES {
        assert_eq!(
            old_names("src/x.rs", &format!("let x = {name}::new();")).len(),
            1,
            "{name}"
        );
        assert_eq!(
            old_names("src/x.rs", &format!("// {name}\nlet x = My{name};")),
            [""; 0]
        );
    }
    for phrase in PHRASES {
        assert_eq!(
            phrases("docs/x.md", &format!("One.\nIt {phrase}, say.")).len(),
            1,
            "{phrase}"
        );
        assert_eq!(
            phrases("docs/x.md", &format!("`a_{phrase}_b` {phrase}s")),
            [""; 0]
        );
    }
}
