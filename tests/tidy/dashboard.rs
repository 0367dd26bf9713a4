//! Rules of the dashboard's JavaScript: sizes, one place for requests, and no sink that turns text into code or HTML.

use super::{LINES_MAX, texts};

const FOLDER: &str = "web/dashboard";

/// Pieces of code, the only files that may contain them, and the reason.
const PIECES: &[(&str, &[&str], &str)] = &[
    ("innerHTML", &[], "text becomes nodes, never HTML"),
    ("outerHTML", &[], "text becomes nodes, never HTML"),
    ("insertAdjacentHTML", &[], "text becomes nodes, never HTML"),
    ("dangerouslySetInnerHTML", &[], "text becomes nodes, never HTML"),
    ("createContextualFragment", &[], "text becomes nodes, never HTML"),
    ("document.write", &[], "text becomes nodes, never HTML"),
    ("DOMParser", &[], "text becomes nodes, never HTML"),
    ("srcdoc", &[], "a frame would inherit the policy of the page"),
    ("eval(", &[], "the policy of the page forbids it"),
    ("new Function", &[], "the policy of the page forbids it"),
    (
        "style=\"",
        &[],
        "the policy of the page forbids it; use a class, or an object",
    ),
    // snippets.js only shows the word in an example.
    (
        "fetch(",
        &["web/dashboard/api.js", "web/dashboard/snippets.js"],
        "only api.js sends requests",
    ),
    (
        "XMLHttpRequest",
        &["web/dashboard/api.js"],
        "only api.js sends requests",
    ),
    ("EventSource", &[], "events.js reads streams with the page token"),
    ("WebSocket", &[], "events.js reads streams with the page token"),
];

fn faults(path: &str, text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let lines = text.lines().count();
    // A style sheet has a line for each property.
    if lines > LINES_MAX && path.ends_with(".js") {
        found.push(format!("{path}: {lines} lines, at most {LINES_MAX}"));
    }
    if path.ends_with(".js") && !text.starts_with("// ") {
        found.push(format!("{path}: begin with `//` and one sentence of purpose"));
    }
    for line in text.lines().filter(|line| !line.trim_start().starts_with("//")) {
        for (piece, places, reason) in PIECES {
            if line.contains(piece) && !places.contains(&path) {
                found.push(format!("{path}: `{piece}`: {reason}"));
            }
        }
    }
    found
}

#[test]
fn dashboard_follows_the_rules() {
    let found: Vec<String> = texts(FOLDER)
        .iter()
        .flat_map(|(path, text)| faults(path, text))
        .collect();
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn each_rule_of_the_dashboard_reports_its_violation() {
    for (piece, places, reason) in PIECES {
        let text = format!("// Planted.\nconst a = {piece};\n");
        let found = faults("web/dashboard/pages/x.js", &text);
        assert!(found.iter().any(|one| one.contains(reason)), "{piece}: {found:?}");
        for place in *places {
            assert_eq!(faults(place, &text), [""; 0], "{piece}");
        }
    }
    let long = format!("// Long.\n{}", "x();\n".repeat(LINES_MAX));
    assert_eq!(faults("web/dashboard/x.js", &long).len(), 1);
    assert_eq!(faults("web/dashboard/x.js", "x();\n").len(), 1);
}
