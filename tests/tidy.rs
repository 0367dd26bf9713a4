//! Holds the house rules that no compiler holds: floors, sizes, names, the one place for `unsafe`.
#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot read the sources has failed"
)]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// Each room may use only rooms on lower floors, and the pairs in [`SIDEWAYS`].
const FLOORS: &[&[&str]] = &[
    &["ids", "limits", "error", "telemetry", "sys"],
    &["skill", "execution", "bundle", "auth"],
    &["store", "blob", "sandbox"],
    &["engine"],
    &["http"],
    &["cli", "server", "config", "main", "lib"],
];

/// Rooms that may use another one on their own floor: `(who, whom)`.
const SIDEWAYS: &[(&str, &str)] = &[
    ("error", "limits"),
    ("ids", "limits"),
    ("telemetry", "limits"),
    ("execution", "skill"),
    ("bundle", "skill"),
    ("bundle", "execution"),
    ("cli", "config"),
    ("cli", "server"),
    ("server", "config"),
    ("main", "cli"),
];

/// What runs inside a sandbox may use only this, and only its frames may be seen from outside.
const GUEST_USES: &[&str] = &["limits", "sys", "guest"];

/// A crate and the only place that may name it.
const CRATES: &[(&str, &[&str])] = &[
    ("axum", &["src/http/", "src/server/"]),
    ("clap", &["src/cli/", "src/main.rs", "src/config/"]),
    ("rusqlite", &["src/store/"]),
    ("refinery", &["src/store/", "src/telemetry.rs"]),
    ("bollard", &["src/sandbox/docker/"]),
    ("anyhow", &[]),
    ("figment", &["src/config/"]),
    ("ureq", &["src/cli/"]),
];

const LINES_MAX: usize = 500;
const BANNED_NAMES: &[&str] = &[
    "util", "utils", "common", "helpers", "helper", "misc", "shared", "manager", "service",
];

fn sources(folder: &str) -> Vec<(String, String)> {
    let mut pending = vec![PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(folder)];
    let mut found = Vec::new();
    while let Some(path) = pending.pop() {
        if path.is_dir() {
            pending.extend(fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let relative = path
                .strip_prefix(env!("CARGO_MANIFEST_DIR"))
                .unwrap()
                .display()
                .to_string();
            found.push((relative, fs::read_to_string(&path).unwrap()));
        }
    }
    assert!(!found.is_empty(), "no sources in {folder}");
    found.sort();
    found
}

/// The room of `src/room.rs` and `src/room/…`.
fn room(path: &str) -> &str {
    let inside = path.strip_prefix("src/").unwrap();
    inside.split('/').next().unwrap().trim_end_matches(".rs")
}

fn code_lines(text: &str) -> impl Iterator<Item = &str> {
    text.lines().filter(|line| !line.trim_start().starts_with("//"))
}

#[test]
fn rooms_use_lower_floors_only() {
    let floors: BTreeMap<&str, usize> = FLOORS
        .iter()
        .enumerate()
        .flat_map(|(floor, rooms)| rooms.iter().map(move |room| (*room, floor)))
        .collect();
    let mut complaints = Vec::new();
    for (path, text) in sources("src") {
        let here = room(&path);
        for line in code_lines(&text) {
            if line.contains("use crate::{") {
                complaints.push(format!(
                    "{path}: `use crate::{{…}}` hides which rooms are used; one line each"
                ));
            }
            for used in line.split("crate::").skip(1) {
                let used: String = used
                    .chars()
                    .take_while(|c| c.is_alphanumeric() || *c == '_')
                    .collect();
                if let Some(complaint) = judge(here, &used, line, &floors) {
                    complaints.push(format!("{path}: {complaint}"));
                }
            }
        }
    }
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
}

fn judge(here: &str, used: &str, line: &str, floors: &BTreeMap<&str, usize>) -> Option<String> {
    if used == here || used.is_empty() {
        return None;
    }
    if here == "guest" {
        return (!GUEST_USES.contains(&used)).then(|| format!("`guest` must not know about `{used}`"));
    }
    if used == "guest" {
        // The frames, the name of the command, and for `main` the way in.
        let allowed = here == "main"
            || (here == "sandbox" && (line.contains("guest::wire") || line.contains("guest;")));
        return (!allowed).then(|| format!("`{here}` may see only the frames of `guest`"));
    }
    let (Some(home), Some(floor)) = (floors.get(here), floors.get(used)) else {
        return floors
            .get(here)
            .is_none()
            .then(|| format!("room `{here}` stands on no floor; add it to tests/tidy.rs"));
    };
    let allowed = floor < home || SIDEWAYS.contains(&(here, used));
    (!allowed).then(|| format!("`{here}` must not know about `{used}`"))
}

#[test]
fn each_outside_thing_is_known_in_one_place() {
    let mut complaints = Vec::new();
    for (path, text) in sources("src") {
        for line in code_lines(&text) {
            for (name, places) in CRATES {
                let named = line.contains(&format!("{name}::")) || line.contains(&format!("use {name};"));
                if named && !places.iter().any(|place| path.starts_with(place)) {
                    complaints.push(format!("{path}: only {places:?} may name `{name}`"));
                }
            }
            let words: Vec<&str> = line.split(|c: char| !c.is_alphanumeric() && c != '_').collect();
            if words.contains(&"unsafe") && path != "src/sys.rs" {
                complaints.push(format!("{path}: `unsafe` belongs into src/sys.rs"));
            }
            if line.contains("#[allow(") || line.contains("#![allow(") {
                complaints.push(format!("{path}: use #[expect(…, reason = \"…\")]"));
            }
            if words.contains(&"async_trait") || line.contains("dyn Backend") {
                complaints.push(format!("{path}: backends are enums over a private trait"));
            }
        }
    }
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
}

#[test]
fn files_are_short_named_for_what_they_hold_and_say_what_it_is() {
    let mut complaints = Vec::new();
    for (path, text) in sources("src")
        .into_iter()
        .chain(sources("tests"))
        .chain(sources("benches"))
    {
        let lines = text.lines().count();
        if lines > LINES_MAX {
            complaints.push(format!("{path}: {lines} lines, at most {LINES_MAX}"));
        }
        let names = Path::new(&path).with_extension("");
        for part in names.iter().filter_map(|part| part.to_str()) {
            if BANNED_NAMES.contains(&part) {
                complaints.push(format!("{path}: `{part}` names nothing"));
            }
        }
        if !text.starts_with("//!") {
            complaints.push(format!("{path}: begin with `//!` and one sentence of purpose"));
        }
    }
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
}

#[test]
fn every_unsafe_block_says_why_it_is_sound() {
    let text = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("src/sys.rs")).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    let blocks = lines
        .iter()
        .enumerate()
        .filter(|(_, line)| line.contains("unsafe {"));
    let mut count = 0;
    for (index, line) in blocks {
        assert!(lines[index - 1].trim_start().starts_with("// SAFETY:"), "{line}");
        count += 1;
    }
    assert!(count > 0, "the file that may say `unsafe` does not");
}

/// K-06 and the workplace's own rule: nothing here speaks of the machine it was written on.
#[test]
fn no_secret_and_no_foreign_path_is_checked_in() {
    let planted = ["BEGIN RSA PRIVATE KEY", "BEGIN OPENSSH PRIVATE KEY", "AKIA"];
    for (path, text) in sources("src") {
        for word in planted {
            assert!(!text.contains(word), "{path}: {word}");
        }
    }
}
