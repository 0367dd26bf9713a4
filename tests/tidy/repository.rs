//! Checks what is committed: the lints, the top level, and that no secret is in it.

use std::fs;

use super::{root, texts};

/// All entries of the top level, except those that start with a dot.
const TOP_LEVEL: &[&str] = &[
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "Cargo.lock",
    "Cargo.toml",
    "LICENSE",
    "README.md",
    "SECURITY.md",
    "benches",
    "build.rs",
    "clippy.toml",
    "deny.toml",
    "deploy",
    "docs",
    "examples",
    "get.sh",
    "install.sh",
    "migrations",
    "packaging",
    "proto",
    "rustfmt.toml",
    "src",
    "target",
    "tests",
    "web",
];

#[test]
fn lints_are_enabled() {
    let read = |name: &str| fs::read_to_string(root().join(name)).unwrap();
    let clippy = read("clippy.toml");
    for setting in [
        "too-many-lines-threshold = 70",
        "too-many-arguments-threshold = 5",
    ] {
        assert!(clippy.contains(&format!("{setting}\n")), "{setting} is missing");
    }
    let manifest = read("Cargo.toml");
    for lint in [
        "unsafe_code = \"deny\"",
        "unreachable_pub",
        "missing_debug_implementations",
        "undocumented_unsafe_blocks",
        "unwrap_used",
        "cast_possible_truncation",
        "too_many_lines",
        "too_many_arguments",
        "allow_attributes",
    ] {
        assert!(manifest.contains(&format!("\n{lint}")), "{lint} is not enabled");
    }
}

#[test]
fn top_level_holds_only_known_entries() {
    for entry in fs::read_dir(root()).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        assert!(
            name.starts_with('.') || TOP_LEVEL.contains(&name.as_str()),
            "`{name}` is no known entry of the top level; see TOP_LEVEL"
        );
    }
}

/// K-06.
#[test]
fn no_secret_is_committed() {
    // In two halves, so that this file does not match.
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
        "proto",
        "web/dashboard",
        "web/vendor",
        ".ci",
    ] {
        for (path, text) in texts(folder) {
            for mark in &marks {
                assert!(!text.contains(mark), "{path}: {mark}");
            }
        }
    }
}
