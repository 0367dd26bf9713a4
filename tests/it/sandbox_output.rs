//! Outputs and files that are kept byte for byte, and what is stored of them. Refused outputs are in `skillbox prove` (O-01, O-02, O-11).

use std::collections::BTreeMap;

use serde_json::{Value, json};
use skillbox::execution::{Execution, Outcome, Status};
use skillbox::limits;

use crate::outcomes::output;
use crate::sandbox_oracles::{Attack, ObservedWorld};

/// Runs one case of the program that leaves strange outputs.
async fn kind(watched: &ObservedWorld, case: &str) -> Outcome {
    let input = json!({ "case": case, "canary": watched.canary_paths()[0] }).to_string();
    let outcome = watched
        .run(Attack::python(include_str!("../../src/prove/probes/output_kinds.py")).input(&input))
        .await;
    assert!(
        outcome.timings.collect_ms < 5000.0,
        "{case}: collected for {} ms",
        outcome.timings.collect_ms
    );
    outcome
}

/// O-11: what is taken is kept to the byte.
#[tokio::test]
async fn returns_json_output_exactly() {
    let Some(watched) = ObservedWorld::on(super::BACKEND).await else {
        return;
    };
    let digits = "7".repeat(100_000);
    let full = format!("\"{}\"", "x".repeat(10 * 1024 * 1024 - 2));
    let right = [
        ("missing", None),
        ("100,000 digits", Some(digits.as_str())),
        ("at the cap", Some(full.as_str())),
        ("duplicate keys", Some(r#"{"a": 1, "a": 2}"#)),
        ("lone surrogate", Some(r#""\ud800""#)),
        ("bare string", Some(r#""bare""#)),
        ("null", Some("null")),
        (
            "numbers",
            Some(
                r#"{"big": 9007199254740993, "precise": 0.1000000000000000055511151231257827021181, "zero": -0, "huge": 1e400}"#,
            ),
        ),
    ];
    for (case, expected) in right {
        let outcome = kind(&watched, case).await;
        assert_eq!(outcome.status, Status::Success, "{case}: {:?}", outcome.error);
        assert!(
            outcome.output.as_ref().map(|text| text.as_str()) == expected,
            "{case} was changed"
        );
    }
    watched.close().await;
}

/// Runs one case of the program that leaves hostile trees.
async fn tree(watched: &ObservedWorld, case: &str) -> Execution {
    let input = json!({ "case": case, "canaries": watched.canary_paths() }).to_string();
    let execution = watched
        .execution(Attack::python(include_str!("../../src/prove/probes/tree.py")).input(&input))
        .await;
    let outcome = execution.outcome.as_ref().unwrap();
    assert_eq!(outcome.status, Status::Success, "{case}: {:?}", outcome.error);
    execution
}

fn outcome(execution: &Execution) -> &Outcome {
    execution.outcome.as_ref().unwrap()
}

/// The collected files with their contents, as a tenant would download them.
async fn contents(watched: &ObservedWorld, execution: &Execution) -> BTreeMap<String, String> {
    let mut contents = BTreeMap::new();
    for entry in &outcome(execution).files {
        let tenant = watched.world.tenant();
        let found = watched
            .world
            .executions()
            .artifact_file(tenant, execution.new.id, &entry.path)
            .await
            .unwrap();
        let range = found.range();
        let mut reader = found.object.into_reader(range).await.unwrap();
        let mut content = String::new();
        tokio::io::AsyncReadExt::read_to_string(&mut reader, &mut content)
            .await
            .unwrap();
        contents.insert(entry.path.clone(), content);
    }
    contents
}

fn skipped(execution: &Execution) -> BTreeMap<&str, &str> {
    let skipped = &outcome(execution).skipped;
    assert_eq!(outcome(execution).skipped_total, skipped.len() as u64);
    skipped
        .iter()
        .map(|skipped| (skipped.path.as_str(), skipped.reason.as_str()))
        .collect()
}

/// O-04, O-05.
#[tokio::test]
async fn skips_and_reports_links() {
    let Some(watched) = ObservedWorld::on(super::BACKEND).await else {
        return;
    };
    let execution = tree(&watched, "links").await;
    let hard = json!({ "skill": "EXDEV", "image": "EXDEV", "input": "ok", "sibling": "ok" });
    assert_eq!(output(outcome(&execution))["hard"], hard);
    let contents = contents(&watched, &execution).await;
    assert_eq!(contents.keys().collect::<Vec<_>>(), ["input", "real", "sibling"]);
    assert_eq!(
        (contents["real"].as_str(), contents["sibling"].as_str()),
        ("own", "own")
    );
    let skipped = skipped(&execution);
    let canaries = (0..watched.canary_paths().len()).map(|number| format!("canary-{number}"));
    let mut links: Vec<_> = ["absolute", "chain", "descriptor", "folder", "relative", "root"]
        .map(ToOwned::to_owned)
        .into_iter()
        .chain(canaries)
        .collect();
    links.sort();
    assert_eq!(skipped.keys().copied().collect::<Vec<_>>(), links);
    assert!(skipped.values().all(|reason| *reason == "link"), "{skipped:?}");
    watched.close().await;
}

/// O-09.
#[tokio::test]
async fn lists_each_name_with_its_own_bytes() {
    let Some(watched) = ObservedWorld::on(super::BACKEND).await else {
        return;
    };
    let execution = tree(&watched, "names").await;
    let contents = contents(&watched, &execution).await;
    let long = "n".repeat(255);
    let expected = [
        (r"new\x0aline", r"'new\nline'"),
        (r"tab\x09bed", r"'tab\tbed'"),
        (r"\x1b[31mred", r"'\x1b[31mred'"),
        ("quo\"te'", r#"'quo"te\''"#),
        ("-rf", "'-rf'"),
        ("bidi\u{202e}gpj.exe", r"'bidi\u202egpj.exe'"),
        (long.as_str(), &format!("'{long}'")),
        ("%2e%2e", "'%2e%2e'"),
        ("trailing ", "'trailing '"),
        (r"back\x5cslash", r"'back\\slash'"),
        ("...", "'...'"),
        (" ", "' '"),
        ("ü", "'ü'"),
        (r"\x5cxff", r"'\\xff'"),
        (r"\xff", r"b'\xff'"),
        (r"half\xc3", r"b'half\xc3'"),
        (r"C:\x5cx", r"'C:\\x'"),
        ("con", "'con'"),
        ("a:b", "'a:b'"),
        ("*", "'*'"),
    ];
    for (name, content) in expected {
        assert_eq!(
            contents.get(name).map(String::as_str),
            Some(content),
            "{name:?} of {:?}",
            contents.keys()
        );
    }
    let deep = format!("{}deep", format!("{}/", "\"".repeat(255)).repeat(12));
    assert_eq!(contents.get(&deep).map(String::as_str), Some("own"));
    assert_eq!(contents.len(), expected.len() + 1);
    let skipped = skipped(&execution);
    assert_eq!(skipped.values().copied().collect::<Vec<_>>(), ["too_deep"]);
    watched.close().await;
}

/// O-08, O-09: long names of many files would make a result that no client takes.
#[tokio::test]
async fn limits_paths_individually_and_together() {
    let Some(watched) = ObservedWorld::on(super::BACKEND).await else {
        return;
    };
    let execution = tree(&watched, "long_paths").await;
    let one = 14 * 251 + 250;
    let kept = limits::FILE_PATHS_BYTES_MAX / one;
    let files = &outcome(&execution).files;
    assert!(files.iter().all(|file| file.path.len() == one));
    assert_eq!(files.len(), kept);
    let (long, many): (Vec<_>, Vec<_>) = outcome(&execution)
        .skipped
        .iter()
        .partition(|skipped| skipped.reason == "name");
    assert!(many.iter().all(|skipped| skipped.reason == "too_many"));
    assert_eq!((many.len(), long.len()), (300 - kept, 1));
    assert_eq!(long[0].path.len(), limits::FILE_PATH_BYTES_MAX);
    watched.close().await;
}

/// O-13, O-14: what is kept of a file is its path and its bytes.
#[tokio::test]
async fn archive_has_relative_regular_files_without_host_metadata() {
    let Some(watched) = ObservedWorld::on(super::BACKEND).await else {
        return;
    };
    let execution = tree(&watched, "metadata").await;
    let tenant = watched.world.tenant();
    let object = watched
        .world
        .executions()
        .artifacts(tenant, execution.new.id)
        .await
        .unwrap();
    let size = object.size();
    let mut bytes = Vec::new();
    let mut reader = object.into_reader(0..size).await.unwrap();
    tokio::io::AsyncReadExt::read_to_end(&mut reader, &mut bytes)
        .await
        .unwrap();
    let mut archive = tar::Archive::new(&bytes[..]);
    let mut paths = Vec::new();
    for entry in archive.entries().unwrap() {
        let entry = entry.unwrap();
        let header = entry.header();
        assert!(header.entry_type().is_file());
        assert_eq!((header.mode().unwrap(), header.mtime().unwrap()), (0o644, 0));
        assert_eq!((header.uid().unwrap(), header.gid().unwrap()), (0, 0));
        paths.push(entry.path().unwrap().into_owned());
    }
    assert_eq!(paths, ["file", "future"].map(std::path::PathBuf::from));
    watched.close().await;
}

/// O-16.
#[tokio::test]
async fn files_that_cannot_be_stored_prevent_success() {
    let Some(watched) = ObservedWorld::on(super::BACKEND).await else {
        return;
    };
    let blobs = watched.world.folder.path().join("blobs");
    std::fs::remove_dir_all(&blobs).unwrap();
    std::fs::write(&blobs, "in the way").unwrap();
    let input = json!({ "case": "metadata", "canaries": Value::Null }).to_string();
    let outcome = watched
        .run(Attack::python(include_str!("../../src/prove/probes/tree.py")).input(&input))
        .await;
    assert_eq!(
        (outcome.status, outcome.error.unwrap().code.as_str()),
        (Status::Failed, "artifacts_not_stored")
    );
    assert!(outcome.files.is_empty());
    watched.close().await;
}
