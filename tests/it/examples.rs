//! The examples do on every backend what their expected outputs say, with real packages.

use std::path::{Path, PathBuf};
use std::time::Instant;

use serde_json::Value;
use skillbox::bundle;
use skillbox::engine::{RunRequest, RunSpec};
use skillbox::execution::{Outcome, Status};
use skillbox::ids::Digest;
use skillbox::sandbox::InputFile;

use crate::outcomes::{output, stderr};
use crate::world::{World, json, missing};

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("examples/skills")
        .join(name)
}

fn read(name: &str, file: &str) -> String {
    std::fs::read_to_string(folder(name).join(file)).unwrap()
}

/// Runs an example; `None` (and a word about it) where it needs packages and this machine has no index.
async fn ended(world: &World, name: &str, request: impl Into<RunRequest>) -> Option<Outcome> {
    let mut archive = tempfile::tempfile().unwrap();
    bundle::pack(&folder(name), &mut archive).unwrap();
    std::io::Seek::rewind(&mut archive).unwrap();
    match world.run_archive(archive, request).await {
        Ok(execution) => execution.outcome,
        Err(error) if error.to_string().contains("cannot be reached") => {
            missing("packages", &error.to_string());
            None
        }
        Err(error) => panic!("{name}: {error}"),
    }
}

/// With its own input; it gives its expected output and these files.
async fn gives(world: &World, name: &str, files: &[&str]) -> Option<Outcome> {
    let ask = RunSpec {
        input: Some(json(&read(name, "input.json"))),
        ..RunSpec::default()
    };
    let outcome = ended(world, name, ask).await?;
    assert_eq!(
        outcome.status,
        Status::Success,
        "{name}: {:?} {}",
        outcome.error,
        stderr(&outcome)
    );
    let expected: Value = serde_json::from_str(&read(name, "expected-output.json")).unwrap();
    assert_eq!(output(&outcome), expected, "{name}");
    let found: Vec<_> = outcome.files.iter().map(|file| file.path.as_str()).collect();
    assert_eq!(found, files, "{name}");
    Some(outcome)
}

/// The same table again, as a file. NumPy, pandas and Matplotlib are installed once: later runs take less than half as long.
#[tokio::test]
async fn data_analysis_describes_and_plots_table() {
    let Some(world) = World::on(super::BACKEND).await else {
        return;
    };
    let mut took = Vec::new();
    let begun = Instant::now();
    let Some(outcome) = gives(&world, "data-analysis", &["chart.png"]).await else {
        return;
    };
    took.push(begun.elapsed());
    assert!(outcome.files[0].size > 5_000, "an empty picture is smaller");
    let given: Value = serde_json::from_str(&read("data-analysis", "input.json")).unwrap();
    let file = InputFile {
        path: "sales.csv".to_owned(),
        content: given["csv"].as_str().unwrap().to_owned().into(),
    };
    let by = |column: &str| RunSpec {
        input: Some(json(&format!(
            "{{\"path\": \"sales.csv\", \"group\": \"{column}\", \"how\": \"count\"}}"
        ))),
        files: vec![file.clone()],
        ..RunSpec::default()
    };
    let begun = Instant::now();
    let outcome = ended(&world, "data-analysis", by("date")).await.unwrap();
    took.push(begun.elapsed());
    let months = &output(&outcome)["groups"]["rows"];
    assert_eq!(months[0], serde_json::json!({"name": "2026-01", "value": 2}));
    let begun = Instant::now();
    let outcome = ended(&world, "data-analysis", by("town")).await.unwrap();
    took.push(begun.elapsed());
    assert_eq!((outcome.status, outcome.exit_code), (Status::Failed, Some(2)));
    assert!(
        stderr(&outcome).contains("there is no column 'town'"),
        "{}",
        stderr(&outcome)
    );
    println!("first, second and third run: {took:?}");
    assert!(took[1].min(took[2]) < took[0] / 2, "{took:?}");
}

#[tokio::test]
async fn pdf_extract_returns_text_per_page() {
    use base64::Engine as _;

    let Some(world) = World::on(super::BACKEND).await else {
        return;
    };
    if gives(&world, "pdf-extract", &["text.txt"]).await.is_none() {
        return;
    }
    let given: Value = serde_json::from_str(&read("pdf-extract", "input.json")).unwrap();
    let pdf = base64::engine::general_purpose::STANDARD.decode(given["base64"].as_str().unwrap());
    let ask = RunSpec {
        input: Some(json("{\"path\": \"lease.pdf\", \"pages\": \"2-\"}")),
        files: vec![InputFile {
            path: "lease.pdf".to_owned(),
            content: pdf.unwrap().into(),
        }],
        ..RunSpec::default()
    };
    let outcome = ended(&world, "pdf-extract", ask).await.unwrap();
    let pages = &output(&outcome)["pages"];
    assert_eq!(
        (pages[0]["page"].as_u64(), pages.as_array().unwrap().len()),
        (Some(2), 1)
    );
}

#[tokio::test]
async fn lead_scoring_returns_scores_and_stores_ranking_as_blob() {
    use std::io::Write as _;

    let Some(world) = World::on(super::BACKEND).await else {
        return;
    };
    let outcome = gives(&world, "lead-scoring", &[]).await.unwrap();
    let lines = &outcome.logs.lines;
    assert!(
        lines.iter().any(|line| line.message == "read the leads"),
        "{lines:?}"
    );
    let ranking: Digest = output(&outcome)["ranking"].as_str().unwrap().parse().unwrap();
    assert!(world.blobs().get(world.tenant(), &ranking).await.is_ok());

    let table = "name,email,visits\nAda,ada@a.example,12\n,nobody@a.example,3\nBen,ada@A.example,1\n";
    let mut content = tempfile::tempfile().unwrap();
    content.write_all(table.as_bytes()).unwrap();
    let spec = RunSpec {
        input: Some(json(&format!(
            "{{\"blob\": \"{}\"}}",
            Digest::of(table.as_bytes())
        ))),
        ..RunSpec::default()
    };
    let request = RunRequest {
        blob_contents: vec![content],
        ..spec.into()
    };
    let outcome = ended(&world, "lead-scoring", request).await.unwrap();
    assert_eq!(outcome.status, Status::Success, "{:?}", outcome.error);
    let told = output(&outcome);
    assert_eq!((&told["leads"], &told["duplicates"]), (&1.into(), &1.into()));
    assert_eq!(told["top"][0]["score"], 25);
}

#[tokio::test]
async fn running_instructions_skill_is_rejected() {
    let Some(world) = World::on(super::BACKEND).await else {
        return;
    };
    let mut archive = tempfile::tempfile().unwrap();
    bundle::pack(&folder("incident-review"), &mut archive).unwrap();
    std::io::Seek::rewind(&mut archive).unwrap();
    let (published, _) = world
        .skills()
        .publish(world.tenant(), archive, None)
        .await
        .unwrap();
    assert_eq!(published.manifest.dialect, skillbox::skill::Dialect::Instructions);
    assert!(published.manifest.instructions.contains("references/template.md"));
}
