//! Checks the decision records, their index, and the links between documents.

use std::fs;
use std::path::Path;

use super::{root, texts};

const RECORDS: &str = "docs/decisions/";
const INDEX: &str = "docs/decisions/README.md";
/// One page.
const RECORD_LINES_MAX: usize = 60;
const RECORD_COLUMNS_MAX: usize = 150;
const README_WORDS_MAX: usize = 900;
const PARTS: &[&str] = &["Context", "Decision", "Alternatives", "Consequences"];

/// One record's line of the index, or what is wrong with the record.
fn index_line(path: &str, text: &str) -> Result<String, Vec<String>> {
    let name = path.strip_prefix(RECORDS).unwrap_or(path);
    let mut lines = text.lines();
    let heading = lines.next().and_then(|line| line.strip_prefix("# "));
    let Some((number, title)) = heading.and_then(|heading| heading.split_once(". ")) else {
        return Err(vec![format!("{path}: begin with `# NUMBER. Title`")]);
    };
    let mut found = Vec::new();
    if !name.starts_with(&format!("{number:0>4}-")) {
        found.push(format!("{path}: the title has the number {number}"));
    }
    let stated = lines.nth(1).and_then(|line| line.strip_suffix('.')).unwrap_or("");
    let parts = stated
        .strip_prefix("Status: ")
        .and_then(|rest| rest.split_once(". Date: "));
    let (status, date) = parts.unwrap_or_default();
    if status != "accepted" && !status.starts_with("superseded by ") {
        found.push(format!(
            "{path}: third line is not `Status: accepted. Date: YYYY-MM-DD.`"
        ));
    } else if !is_date(date) {
        found.push(format!("{path}: `{date}` is no date"));
    }
    let headings: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("## ")).collect();
    if headings != PARTS {
        found.push(format!("{path}: parts are {headings:?} instead of {PARTS:?}"));
    }
    let (count, widest) = (text.lines().count(), text.lines().map(str::len).max());
    if count > RECORD_LINES_MAX || widest > Some(RECORD_COLUMNS_MAX) {
        found.push(format!(
            "{path}: more than {RECORD_LINES_MAX} lines of {RECORD_COLUMNS_MAX} bytes"
        ));
    }
    if found.is_empty() {
        Ok(format!("| {number} | [{title}]({name}) | {status} | {date} |"))
    } else {
        Err(found)
    }
}

fn is_date(text: &str) -> bool {
    let shape = text
        .bytes()
        .map(|byte| if byte.is_ascii_digit() { b'0' } else { byte });
    shape.eq(*b"0000-00-00")
}

fn record_complaints(index: &str, records: &[(String, String)]) -> Vec<String> {
    let mut found = Vec::new();
    let mut expected = Vec::new();
    for (path, text) in records {
        match index_line(path, text) {
            Ok(line) => expected.push(line),
            Err(complaints) => found.extend(complaints),
        }
    }
    let listed: Vec<&str> = index.lines().filter(|line| line.contains("](0")).collect();
    if found.is_empty() && listed != expected {
        found.push(format!("{INDEX} must list:\n{}", expected.join("\n")));
    }
    found
}

/// Relative links of a document to files that do not exist.
fn broken_links(path: &str, text: &str) -> Vec<String> {
    let folder = Path::new(path).parent().unwrap_or(Path::new(""));
    let targets = text
        .split("](")
        .skip(1)
        .filter_map(|rest| rest.split([')', '#']).next());
    let relative = targets.filter(|target| !target.is_empty() && !target.contains(':'));
    relative
        .filter(|target| !root().join(folder).join(target).exists())
        .map(|target| format!("{path}: no such file: {target}"))
        .collect()
}

/// The anchor of a heading, as code hosts make it.
fn anchor(heading: &str) -> String {
    let kept = heading.trim_start_matches('#').trim().to_lowercase();
    kept.chars()
        .filter(|letter| letter.is_alphanumeric() || ['-', '_', ' '].contains(letter))
        .map(|letter| if letter == ' ' { '-' } else { letter })
        .collect()
}

/// Links to headings that do not exist, in the document itself or another one.
fn broken_anchors(path: &str, text: &str) -> Vec<String> {
    let folder = Path::new(path).parent().unwrap_or(Path::new(""));
    let targets = text.split("](").skip(1).filter_map(|rest| rest.split(')').next());
    let mut found = Vec::new();
    for target in targets.filter(|target| !target.contains(':')) {
        let Some((file, wanted)) = target.split_once('#') else {
            continue;
        };
        let linked = match file {
            "" => Some(text.to_owned()),
            _ => fs::read_to_string(root().join(folder).join(file)).ok(),
        };
        let headings = linked.unwrap_or_default();
        let mut headings = headings.lines().filter(|line| line.starts_with('#'));
        if !headings.any(|heading| anchor(heading) == wanted) {
            found.push(format!("{path}: no such heading: {target}"));
        }
    }
    found
}

/// Words of a document without code blocks, tables and addresses of links.
fn prose_words(text: &str) -> usize {
    let mut is_code = false;
    let mut count = 0;
    for line in text.lines() {
        if line.starts_with("```") {
            is_code = !is_code;
        } else if !is_code && !line.starts_with('|') {
            let visible: String = line
                .split("](")
                .enumerate()
                .map(|(index, part)| match index {
                    0 => part,
                    _ => part.split_once(')').map_or("", |(_, rest)| rest),
                })
                .collect();
            count += visible
                .split_whitespace()
                .filter(|word| word.contains(char::is_alphanumeric))
                .count();
        }
    }
    count
}

/// A reader finds each document from the index.
#[test]
fn index_lists_every_document() {
    let index = fs::read_to_string(root().join("docs/README.md")).unwrap();
    let listed = |path: &String| index.contains(&format!("]({})", path.trim_start_matches("docs/")));
    let mut documents: Vec<String> = texts("docs").into_iter().map(|(path, _)| path).collect();
    documents.retain(|path| path.ends_with(".md") && path != "docs/README.md" && !path.starts_with(RECORDS));
    assert!(documents.len() > 15, "{documents:?}");
    documents.retain(|path| !listed(path));
    assert!(documents.is_empty(), "docs/README.md lacks {documents:?}");
}

#[test]
fn readme_is_short() {
    let count = prose_words(&fs::read_to_string(root().join("README.md")).unwrap());
    assert!(count > 300, "only {count} words were found");
    assert!(
        count <= README_WORDS_MAX,
        "{count} words, at most {README_WORDS_MAX}"
    );
    let text = "# One two\n\n| no | no |\n|---|---|\n```sh\nno\n```\n* three [four](no no) five\n";
    assert_eq!(prose_words(text), 5);
}

#[test]
fn decision_records_match_their_index() {
    let mut records = texts(RECORDS);
    records.retain(|(path, _)| path != INDEX);
    let index = fs::read_to_string(root().join(INDEX)).unwrap();
    let found = record_complaints(&index, &records);
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn links_between_documents_lead_to_files() {
    let top = ["README.md", "SECURITY.md", "CONTRIBUTING.md"];
    let documents = top.into_iter().chain(["docs"]).flat_map(texts);
    let found: Vec<String> = documents
        .flat_map(|(path, text)| [broken_links(&path, &text), broken_anchors(&path, &text)].concat())
        .collect();
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn each_fault_of_a_record_is_reported() {
    let right = "# 7. Title\n\nStatus: accepted. Date: 2026-01-31.\n\n## Context\n## Decision\n## Alternatives\n## Consequences\n";
    let line = "| 7 | [Title](0007-title.md) | accepted | 2026-01-31 |\n";
    let check = |index: &str, name: &str, text: &str| {
        record_complaints(index, &[(format!("{RECORDS}{name}"), text.to_owned())]).join("\n")
    };
    assert_eq!(check(line, "0007-title.md", right), "");
    for (from, to, complaint) in [
        ("# 7. ", "# ", "begin with"),
        ("# 7. ", "# 8. ", "has the number 8"),
        ("Title", "Name", "must list"),
        ("accepted", "", "third line"),
        ("2026-01-31", "January", "no date"),
        ("## Context\n", "", "parts are"),
        ("## Decision", &"\n".repeat(61), "more than 60 lines"),
        (
            "Context\n",
            &format!("Context\n{}\n", "x".repeat(151)),
            "of 150 bytes",
        ),
    ] {
        let found = check(line, "0007-title.md", &right.replacen(from, to, 1));
        assert!(found.contains(complaint), "{complaint}: {found}");
    }
    assert!(check("", "0007-title.md", right).contains("must list"));
    let linked = "## A `b` c\n[a](#a-b-c) [b](../SECURITY.md#known-limits) [c](#d) [d](../README.md#nowhere)";
    assert_eq!(
        broken_anchors("docs/x.md", linked),
        [
            "docs/x.md: no such heading: #d",
            "docs/x.md: no such heading: ../README.md#nowhere"
        ]
    );
    assert_eq!(
        broken_links(
            "docs/x.md",
            "[a](nowhere.md#x) [b](../README.md) [c](https://x.example)"
        )
        .len(),
        1
    );
}

/// A newcomer who follows the architecture finds the file.
#[test]
fn architecture_names_existing_files() {
    let text = fs::read_to_string(root().join("docs/ARCHITECTURE.md")).unwrap();
    let exists = |path: &str| root().join("src").join(path).exists() || root().join(path).exists();
    let (_, table) = text.split_once("| to change | open |").unwrap();
    let (table, _) = table.split_once("\n\n").unwrap();
    let paths: Vec<&str> = table
        .lines()
        .filter_map(|line| line.split('|').nth(2))
        .flat_map(|files| files.split('`').skip(1).step_by(2))
        .map(|path| path.trim_end_matches("/*.yaml"))
        .collect();
    assert!(paths.len() > 20, "{paths:?}");
    let missing: Vec<&&str> = paths.iter().filter(|path| !exists(path)).collect();
    assert!(missing.is_empty(), "{missing:?}");
}
