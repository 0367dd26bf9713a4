//! Enforces the rules that the compiler does not: layers, sizes, names, and the one place for `unsafe`.
#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot read the sources has failed"
)]

mod catalogue;
mod dashboard;
mod documents;
mod generated;
mod parameters;
mod repository;
mod vendored;
mod words;

use std::fs;
use std::path::Path;

/// A module may use modules of lower layers, and the pairs in [`SAME_LAYER`].
const LAYERS: &[&[&str]] = &[
    &["ids", "limits", "error", "telemetry", "sys"],
    &["skill", "execution", "bundle", "auth", "secret", "webhook"],
    &["store", "blob", "sandbox", "egress"],
    &["engine"],
    &["api"],
    &["grpc", "http", "mcp", "prove"],
    &["cli", "server", "config", "main", "lib"],
];

/// Modules that may use another one of their own layer: `(user, used)`.
const SAME_LAYER: &[(&str, &str)] = &[
    ("error", "limits"),
    ("ids", "limits"),
    ("telemetry", "limits"),
    ("execution", "skill"),
    ("execution", "webhook"),
    ("bundle", "skill"),
    ("bundle", "execution"),
    ("http", "mcp"),
    ("http", "prove"),
    ("grpc", "http"),
    ("cli", "config"),
    ("cli", "server"),
    ("server", "config"),
    ("main", "cli"),
];

/// All that `guest` may use. Other modules may use only its frames.
const GUEST_USES: &[&str] = &["limits", "sys", "guest"];

/// Crates and the only places that may name them.
const CRATES: &[(&str, &[&str])] = &[
    ("axum", &["src/grpc/", "src/http/", "src/server/"]),
    ("clap", &["src/cli/", "src/main.rs", "src/config/"]),
    ("tonic", &["src/grpc/", "src/server/"]),
    ("rmcp", &["src/mcp/", "src/server/"]),
    ("rusqlite", &["src/store/"]),
    ("tokio_postgres", &["src/store/"]),
    ("aws_sdk_s3", &["src/blob/"]),
    ("refinery", &["src/store/", "src/telemetry/"]),
    ("bollard", &["src/sandbox/docker/"]),
    ("anyhow", &[]),
    ("ureq", &["src/cli/", "src/telemetry/otlp.rs"]),
    ("prometheus_client", &["src/telemetry/"]),
    ("opentelemetry", &["src/telemetry/otlp.rs"]),
    ("url", &["src/webhook/", "src/egress/webhook_policy.rs"]),
    ("tokio_rustls", &["src/engine/webhooks/"]),
];

/// Words of code, the only places that may use them, and the message.
const WORDS: &[(&str, &[&str], &str)] = &[
    (
        "unsafe",
        // The second has a policy with 'unsafe-inline'; the compiler refuses such code there.
        &["src/sys.rs", "src/http/results.rs"],
        "`unsafe` is allowed in src/sys.rs only",
    ),
    (
        "async_trait",
        &["src/grpc/"],
        "backends are enums over a private trait",
    ),
];

/// Pieces of code, the places that must not use them, and the message.
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
    ("super::super::", &["src/"], "name the module instead"),
];

/// Constructors and functions, the only places that may call them, and the message.
const CONSTRUCTORS: &[(&str, &[&str], &str)] = &[
    (
        "Egress::new",
        &["src/engine/deps/"],
        "only package installation may open network access",
    ),
    (
        "lookup_host",
        &["src/egress/connect.rs"],
        "`egress` checks the addresses of names",
    ),
    // Nothing inside of a sandbox has a network.
    (
        "TcpStream::connect",
        &["src/egress/", "src/guest/"],
        "`egress` dials hosts",
    ),
];

/// Recorded times come from the first place; those of the second stay in the container engine.
const CLOCKS: &[&str] = &[
    "src/engine/clock.rs",
    "src/execution/transcript/mod.rs",
    "src/sandbox/",
];

const LINES_MAX: usize = 500;
const BANNED_NAMES: &[&str] = &[
    "util", "utils", "common", "helpers", "helper", "misc", "shared", "manager", "service",
];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Each text file in `folder`, with its path in the repository.
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

/// The module of `src/module.rs` and `src/module/…`.
fn module(path: &str) -> Option<&str> {
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

/// All faults of one source file.
fn complaints(path: &str, text: &str) -> Vec<String> {
    if generated::is_generated(path, text) {
        return Vec::new();
    }
    let mut found = shape(path, text);
    if let Some(here) = module(path) {
        for line in code_lines(text) {
            found.extend(wrong_uses(path, here, line));
            found.extend(misplaced_code(path, line));
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
            found.push(format!("`{part}` is no name for a module; say what it contains"));
        }
    }
    if !text.starts_with("//! ") {
        found.push("begin with `//!` and one sentence of purpose".to_owned());
    }
    found
}

/// Uses of modules that are not in a lower layer, or that cannot be read.
fn wrong_uses(path: &str, here: &str, line: &str) -> Vec<String> {
    let mut found = Vec::new();
    for used in line.split("crate::").skip(1) {
        let word = used.split(|c: char| !c.is_alphanumeric() && c != '_').next();
        match word.filter(|word| !word.is_empty()) {
            Some(used) => found.extend(wrong_use(here, used, line)),
            None => found
                .push("`crate::{…}` and `crate::*` hide which modules are used; one line each".to_owned()),
        }
    }
    let is_root = path.ends_with(&format!("src/{here}.rs")) || path.ends_with(&format!("src/{here}/mod.rs"));
    if is_root && line.contains("super::") && !line.contains("use super::*;") {
        found.push("`super` of a top-level module is the crate; name the module".to_owned());
    }
    found
}

fn layer(module: &str) -> Option<usize> {
    LAYERS.iter().position(|modules| modules.contains(&module))
}

fn wrong_use(here: &str, used: &str, line: &str) -> Option<String> {
    if used == here {
        return None;
    }
    if here == "guest" {
        return (!GUEST_USES.contains(&used)).then(|| format!("`guest` must not use `{used}`"));
    }
    if used == "guest" {
        // The frames, the name of the command, and for `main` the entry point.
        let allowed = here == "main"
            || (here == "sandbox" && (line.contains("guest::wire") || line.contains("guest;")));
        return (!allowed).then(|| format!("`{here}` may use only the frames of `guest`"));
    }
    let Some(own) = layer(here) else {
        return Some(format!("module `{here}` is in no layer; add it to tests/tidy"));
    };
    // A name that is no module is an item of the crate's root, such as a macro.
    let allowed = layer(used).is_none_or(|layer| layer < own) || SAME_LAYER.contains(&(here, used));
    (!allowed).then(|| format!("`{here}` must not use `{used}`"))
}

/// Crates, words and constructors outside of their places.
fn misplaced_code(path: &str, line: &str) -> Vec<String> {
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
    for (piece, places, rule) in CONSTRUCTORS {
        if line.contains(piece) && !lies_in(path, places) {
            found.push((*rule).to_owned());
        }
    }
    if line.contains("Timestamp::now") && !lies_in(path, CLOCKS) {
        found.push("recorded times come from src/engine/clock.rs".to_owned());
    }
    found
}

fn unexplained_unsafe(text: &str) -> Vec<String> {
    let lines: Vec<&str> = text.lines().collect();
    let blocks = lines.windows(2).filter(|pair| pair[1].contains("unsafe {"));
    blocks
        .filter(|pair| !pair[0].trim_start().starts_with("// SAFETY:"))
        .map(|pair| format!("`{}` has no `// SAFETY:` comment", pair[1].trim()))
        .collect()
}

#[test]
fn sources_follow_the_rules() {
    let found: Vec<String> = sources()
        .flat_map(|(path, text)| complaints(&path, &text))
        .collect();
    assert!(found.is_empty(), "{}", found.join("\n"));
}

/// One violation of each rule: path, line, and part of the message.
const PLANTED: &[(&str, &str, &str)] = &[
    (
        "src/store/x.rs",
        "use crate::engine::Engine;",
        "must not use `engine`",
    ),
    (
        "src/store/x.rs",
        "fn f(_: crate::blob::Blob) {}",
        "must not use `blob`",
    ),
    (
        "src/auth/x.rs",
        "use crate::skill::SkillName;",
        "must not use `skill`",
    ),
    (
        "src/engine/x.rs",
        "use crate::{store, blob};",
        "hide which modules",
    ),
    ("src/engine/x.rs", "use crate::*;", "hide which modules"),
    ("src/store/mod.rs", "use super::engine::Engine;", "is the crate"),
    (
        "src/store/x/y.rs",
        "use super::super::super::engine;",
        "name the module",
    ),
    ("src/attic/x.rs", "use crate::ids::Digest;", "is in no layer"),
    (
        "src/guest/x.rs",
        "use crate::skill::Language;",
        "`guest` must not use `skill`",
    ),
    ("src/engine/x.rs", "use crate::guest::wire;", "only the frames"),
    ("src/sandbox/x.rs", "use crate::guest::init;", "only the frames"),
    ("src/engine/x.rs", "use crate::api::List;", "must not use `api`"),
    ("src/api/x.rs", "use axum::Router;", "may name `axum`"),
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
    ("src/http/x.rs", "use ureq::Agent;", "may name `ureq`"),
    ("src/http/x.rs", "use refinery::Runner;", "may name `refinery`"),
    ("src/http/x.rs", "    unsafe { f() }", "in src/sys.rs only"),
    ("src/sys.rs", "\n    unsafe { f() }", "has no `// SAFETY:`"),
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
        "open network access",
    ),
    (
        "src/egress/upstream.rs",
        "tokio::net::lookup_host((name, 0)).await?",
        "checks the addresses",
    ),
    (
        "src/engine/webhooks/client.rs",
        "TcpStream::connect(address)",
        "dials hosts",
    ),
    ("src/http/helpers.rs", "", "is no name"),
    ("src/util/x.rs", "use crate::ids::Digest;", "is no name"),
    ("tests/it/common/mod.rs", "", "is no name"),
];

/// K-02: each rule is violated here once.
#[test]
fn each_rule_reports_its_violation() {
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
fn allowed_code_is_not_reported() {
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
