//! Holds the house rules that no compiler holds: floors, sizes, names, the one place for `unsafe`.
#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot read the sources has failed"
)]

mod catalogue;
mod documents;

use std::fs;
use std::path::Path;

/// Each room may use only rooms on lower floors, and the pairs in [`SIDEWAYS`].
const FLOORS: &[&[&str]] = &[
    &["ids", "limits", "error", "telemetry", "sys", "addresses"],
    &["skill", "execution", "bundle", "auth", "secret", "webhook"],
    &["store", "blob", "sandbox"],
    &["engine"],
    &["http", "prove"],
    &["cli", "server", "config", "main", "lib"],
];

/// Rooms that may use another one on their own floor: `(who, whom)`.
const SIDEWAYS: &[(&str, &str)] = &[
    ("error", "limits"),
    ("ids", "limits"),
    ("telemetry", "limits"),
    ("execution", "skill"),
    ("execution", "webhook"),
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
    ("tonic", &["src/grpc/", "src/server/"]),
    ("rmcp", &["src/mcp/", "src/server/"]),
    ("rusqlite", &["src/store/"]),
    ("tokio_postgres", &["src/store/"]),
    ("aws_sdk_s3", &["src/blob/"]),
    ("refinery", &["src/store/", "src/telemetry/"]),
    ("bollard", &["src/sandbox/docker/"]),
    ("anyhow", &[]),
    ("figment", &["src/config/"]),
    ("ureq", &["src/cli/", "src/telemetry/otlp.rs"]),
    ("prometheus_client", &["src/telemetry/"]),
    ("opentelemetry", &["src/telemetry/otlp.rs"]),
    ("url", &["src/webhook/"]),
    ("tokio_rustls", &["src/engine/webhooks/"]),
];

/// Words of code and the only places that may say them, and why.
const WORDS: &[(&str, &[&str], &str)] = &[
    ("unsafe", &["src/sys.rs"], "`unsafe` belongs into src/sys.rs"),
    ("async_trait", &[], "backends are enums over a private trait"),
];

/// The same for pieces of code, by the places where they must not stand.
const PIECES: &[(&str, &[&str], &str)] = &[
    ("#[allow(", &["src/"], "use #[expect(…, reason = \"…\")]"),
    ("#![allow(", &["src/"], "use #[expect(…, reason = \"…\")]"),
    (
        "dyn ",
        &["src/store/", "src/blob/", "src/sandbox/", "src/engine/"],
        "backends are enums, not objects",
    ),
    (
        "pub trait",
        &["src/store/", "src/blob/", "src/sandbox/"],
        "the trait of a backend is private",
    ),
    ("Engine<", &["src/"], "`Engine` has no generic parameter"),
    (
        "super::super::",
        &["src/"],
        "climbing hides which room is used; name it",
    ),
];

/// Pieces of code and the only place that may hold them.
const MAKERS: &[(&str, &str, &str)] = &[(
    "Egress::new",
    "src/engine/deps/",
    "only what installs packages makes a way out of a sandbox",
)];

/// The one place that looks at the clock for what is recorded, and the room whose times stay in the container engine.
const CLOCKS: &[&str] = &["src/engine/clock.rs", "src/sandbox/"];

/// Everything that may lie at the top, beside what starts with a dot.
const TOP_LEVEL: &[&str] = &[
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "Cargo.lock",
    "Cargo.toml",
    "LICENSE",
    "README.md",
    "SECURITY.md",
    "benches",
    "clippy.toml",
    "deny.toml",
    "deploy",
    "docs",
    "examples",
    "install.sh",
    "migrations",
    "rustfmt.toml",
    "src",
    "target",
    "tests",
    "web",
];

const LINES_MAX: usize = 500;
const BANNED_NAMES: &[&str] = &[
    "util", "utils", "common", "helpers", "helper", "misc", "shared", "manager", "service",
];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Every text file below `folder` with its path below the repository.
fn texts(folder: &str) -> Vec<(String, String)> {
    let mut pending = vec![root().join(folder)];
    let mut found = Vec::new();
    while let Some(path) = pending.pop() {
        if path.is_dir() {
            pending.extend(fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
        } else if let Ok(text) = fs::read_to_string(&path) {
            let relative = path.strip_prefix(root()).unwrap().display().to_string();
            found.push((relative, text));
        }
    }
    assert!(!found.is_empty(), "no files in {folder}");
    found.sort();
    found
}

fn sources() -> impl Iterator<Item = (String, String)> {
    ["src", "tests", "benches"]
        .into_iter()
        .flat_map(texts)
        .filter(|(path, _)| path.ends_with(".rs"))
}

/// The room of `src/room.rs` and `src/room/…`.
fn room(path: &str) -> Option<&str> {
    let inside = path.strip_prefix("src/")?;
    Some(inside.split('/').next()?.trim_end_matches(".rs"))
}

fn code_lines(text: &str) -> impl Iterator<Item = &str> {
    text.lines().filter(|line| !line.trim_start().starts_with("//"))
}

fn words(line: &str) -> Vec<&str> {
    line.split(|c: char| !c.is_alphanumeric() && c != '_')
        .filter(|word| !word.is_empty())
        .collect()
}

fn lies_in(path: &str, places: &[&str]) -> bool {
    places.iter().any(|place| path.starts_with(place))
}

/// Everything that is wrong with one source.
fn complaints(path: &str, text: &str) -> Vec<String> {
    let mut found = shape(path, text);
    if let Some(here) = room(path) {
        for line in code_lines(text) {
            found.extend(floors(path, here, line));
            found.extend(outside_things(path, line));
        }
        if here == "sys" {
            found.extend(unexplained_unsafe(text));
        }
    }
    found
        .into_iter()
        .map(|complaint| format!("{path}: {complaint}"))
        .collect()
}

fn shape(path: &str, text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let lines = text.lines().count();
    if lines > LINES_MAX {
        found.push(format!("{lines} lines, at most {LINES_MAX}"));
    }
    let names = Path::new(path).with_extension("");
    for part in names.iter().filter_map(|part| part.to_str()) {
        if BANNED_NAMES.contains(&part) {
            found.push(format!("`{part}` names nothing"));
        }
    }
    if !text.starts_with("//! ") {
        found.push("begin with `//!` and one sentence of purpose".to_owned());
    }
    found
}

/// Rooms use rooms on lower floors only, and say so in a way that can be read.
fn floors(path: &str, here: &str, line: &str) -> Vec<String> {
    let mut found = Vec::new();
    for used in line.split("crate::").skip(1) {
        let word = used.split(|c: char| !c.is_alphanumeric() && c != '_').next();
        match word.filter(|word| !word.is_empty()) {
            Some(room) => found.extend(judge(here, room, line)),
            None => {
                found.push("`crate::{…}` and `crate::*` hide which rooms are used; one line each".to_owned())
            }
        }
    }
    let is_root = path.ends_with(&format!("src/{here}.rs")) || path.ends_with(&format!("src/{here}/mod.rs"));
    if is_root && line.contains("super::") && !line.contains("use super::*;") {
        found.push("`super` of a room is the whole house; name the room".to_owned());
    }
    found
}

fn floor(room: &str) -> Option<usize> {
    FLOORS.iter().position(|rooms| rooms.contains(&room))
}

fn judge(here: &str, used: &str, line: &str) -> Option<String> {
    if used == here {
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
    let Some(home) = floor(here) else {
        return Some(format!("room `{here}` stands on no floor; add it to tests/tidy"));
    };
    // What is no room is an item of the crate's root, a macro say.
    let allowed = floor(used).is_none_or(|floor| floor < home) || SIDEWAYS.contains(&(here, used));
    (!allowed).then(|| format!("`{here}` must not know about `{used}`"))
}

/// Each outside thing is known in one place.
fn outside_things(path: &str, line: &str) -> Vec<String> {
    let words = words(line);
    let mut found = Vec::new();
    for (name, places) in CRATES {
        let used = words.windows(2).any(|pair| pair == ["use", name]);
        let named = words.contains(name) && line.contains(&format!("{name}::"));
        if (used || named) && !lies_in(path, places) {
            found.push(format!("only {places:?} may name `{name}`"));
        }
    }
    for (word, places, rule) in WORDS {
        if words.contains(word) && !lies_in(path, places) {
            found.push((*rule).to_owned());
        }
    }
    for (piece, places, rule) in PIECES {
        if line.contains(piece) && lies_in(path, places) {
            found.push((*rule).to_owned());
        }
    }
    for (piece, place, rule) in MAKERS {
        if line.contains(piece) && !path.starts_with(place) {
            found.push((*rule).to_owned());
        }
    }
    if line.contains("Timestamp::now") && !lies_in(path, CLOCKS) {
        found.push("times that are recorded come from src/engine/clock.rs".to_owned());
    }
    found
}

fn unexplained_unsafe(text: &str) -> Vec<String> {
    let lines: Vec<&str> = text.lines().collect();
    let blocks = lines.windows(2).filter(|pair| pair[1].contains("unsafe {"));
    blocks
        .filter(|pair| !pair[0].trim_start().starts_with("// SAFETY:"))
        .map(|pair| format!("`{}` does not say why it is sound", pair[1].trim()))
        .collect()
}

#[test]
fn the_house_is_tidy() {
    let found: Vec<String> = sources()
        .flat_map(|(path, text)| complaints(&path, &text))
        .collect();
    assert!(found.is_empty(), "{}", found.join("\n"));
}

/// One break of each rule: where it stands, the line, and what is complained about.
const PLANTED: &[(&str, &str, &str)] = &[
    (
        "src/store/x.rs",
        "use crate::engine::Engine;",
        "must not know about `engine`",
    ),
    (
        "src/store/x.rs",
        "fn f(_: crate::blob::Blob) {}",
        "must not know about `blob`",
    ),
    (
        "src/auth/x.rs",
        "use crate::skill::SkillName;",
        "must not know about `skill`",
    ),
    ("src/engine/x.rs", "use crate::{store, blob};", "hide which rooms"),
    ("src/engine/x.rs", "use crate::*;", "hide which rooms"),
    ("src/store/mod.rs", "use super::engine::Engine;", "name the room"),
    ("src/store/x/y.rs", "use super::super::super::engine;", "climbing"),
    ("src/attic/x.rs", "use crate::ids::Digest;", "stands on no floor"),
    (
        "src/guest/x.rs",
        "use crate::skill::Language;",
        "`guest` must not know about `skill`",
    ),
    ("src/engine/x.rs", "use crate::guest::wire;", "only the frames"),
    ("src/sandbox/x.rs", "use crate::guest::init;", "only the frames"),
    ("src/engine/x.rs", "use axum::Router;", "may name `axum`"),
    ("src/engine/x.rs", "use clap;", "may name `clap`"),
    (
        "src/engine/x.rs",
        "fn f() -> tonic::Status {}",
        "may name `tonic`",
    ),
    ("src/http/x.rs", "use rmcp::Server;", "may name `rmcp`"),
    (
        "src/engine/x.rs",
        "let c: rusqlite::Connection;",
        "may name `rusqlite`",
    ),
    (
        "src/engine/x.rs",
        "use tokio_postgres::Client;",
        "may name `tokio_postgres`",
    ),
    (
        "src/store/x.rs",
        "use aws_sdk_s3::Client;",
        "may name `aws_sdk_s3`",
    ),
    ("src/sandbox/x.rs", "use bollard::Docker;", "may name `bollard`"),
    (
        "src/engine/x.rs",
        "fn f() -> anyhow::Result<()> {}",
        "may name `anyhow`",
    ),
    ("src/http/x.rs", "use figment::Figment;", "may name `figment`"),
    ("src/http/x.rs", "use ureq::Agent;", "may name `ureq`"),
    ("src/http/x.rs", "use refinery::Runner;", "may name `refinery`"),
    ("src/http/x.rs", "    unsafe { f() }", "belongs into src/sys.rs"),
    ("src/sys.rs", "\n    unsafe { f() }", "why it is sound"),
    ("src/http/x.rs", "#[allow(dead_code)]", "use #[expect"),
    ("src/http/x.rs", "#![allow(dead_code)]", "use #[expect"),
    ("src/store/x.rs", "#[async_trait]", "enums over a private trait"),
    ("src/store/x.rs", "store: Box<dyn Backend>,", "not objects"),
    ("src/blob/x.rs", "pub trait Backend {", "is private"),
    (
        "src/engine/x.rs",
        "pub struct Engine<S>(S);",
        "no generic parameter",
    ),
    (
        "src/http/x.rs",
        "let now = jiff::Timestamp::now();",
        "src/engine/clock.rs",
    ),
    (
        "src/engine/run.rs",
        "let (egress, tunnels) = Egress::new();",
        "a way out of a sandbox",
    ),
    ("src/http/helpers.rs", "", "names nothing"),
    ("src/util/x.rs", "use crate::ids::Digest;", "names nothing"),
    ("tests/it/common/mod.rs", "", "names nothing"),
];

/// K-02: each rule is broken here once.
#[test]
fn each_rule_finds_what_it_forbids() {
    for (path, line, complaint) in PLANTED {
        let found = complaints(path, &format!("//! Planted.\n{line}\n"));
        assert!(
            found.iter().any(|one| one.contains(complaint)),
            "{path}: {line}: {found:?}"
        );
    }
    for (text, complaint) in [
        ("use std::fs;\n".to_owned(), "begin with"),
        ("//! Long.\n".repeat(501), "501 lines"),
    ] {
        let found = complaints("src/http/x.rs", &text);
        assert!(found.iter().any(|one| one.contains(complaint)), "{found:?}");
    }
}

#[test]
fn what_is_allowed_is_let_alone() {
    let fine = [
        ("src/engine/x.rs", "use crate::store::Store;"),
        ("src/execution/x.rs", "use crate::skill::Language;"),
        ("src/store/x/y.rs", "use super::row::text;"),
        ("src/store/mod.rs", "    use super::*;"),
        ("src/sandbox/x.rs", "use crate::guest::wire;"),
        ("src/http/x.rs", "use axum::Router;"),
        ("src/http/x.rs", "// an unsafe thing: rusqlite::Connection"),
        (
            "src/sys.rs",
            "    // SAFETY: nothing is shared.\n    unsafe { f() }",
        ),
    ];
    for (path, line) in fine {
        assert_eq!(
            complaints(path, &format!("//! Planted.\n{line}\n")),
            [""; 0],
            "{line}"
        );
    }
}

/// What clippy holds for us is switched on: functions of at most 70 lines, and the rest.
#[test]
fn the_lints_are_on() {
    let read = |name: &str| fs::read_to_string(root().join(name)).unwrap();
    assert!(read("clippy.toml").contains("too-many-lines-threshold = 70\n"));
    let manifest = read("Cargo.toml");
    for lint in [
        "unsafe_code = \"deny\"",
        "unreachable_pub",
        "missing_debug_implementations",
        "undocumented_unsafe_blocks",
        "unwrap_used",
        "cast_possible_truncation",
        "too_many_lines",
        "allow_attributes",
    ] {
        assert!(manifest.contains(&format!("\n{lint}")), "{lint} is off");
    }
}

#[test]
fn the_top_level_holds_what_belongs_there() {
    for entry in fs::read_dir(root()).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        assert!(
            name.starts_with('.') || TOP_LEVEL.contains(&name.as_str()),
            "`{name}` does not belong at the top"
        );
    }
}

/// K-06.
#[test]
fn no_secret_is_checked_in() {
    // In two halves, so that this file is not one of those it looks for.
    let marks = [
        ["PRIVATE", " KEY-----"],
        ["AK", "IA"],
        ["gh", "p_"],
        ["xox", "b-"],
    ]
    .map(|halves| halves.concat());
    for folder in [
        "src",
        "tests",
        "benches",
        "docs",
        "examples",
        "deploy",
        "migrations",
        ".ci",
    ] {
        for (path, text) in texts(folder) {
            for mark in &marks {
                assert!(!text.contains(mark), "{path}: {mark}");
            }
        }
    }
}
