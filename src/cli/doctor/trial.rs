//! Runs a small skill in each language.

use super::{CheckResult, DoctorReport};
use crate::cli::arguments;
use crate::cli::authoring::write_scaffold;
use crate::cli::client::{EmbeddedClient, InstallReports, RunResult};
use crate::cli::failure::{Failure, Result};
use crate::cli::progress::Spinner;
use crate::engine::{RunRequest, RunSpec, UnpublishedArchive};
use crate::execution::Status;
use crate::skill::Language;

pub(super) fn run_each(
    local: &EmbeddedClient,
    languages: &[Language],
    report: &mut DoctorReport<'_>,
) -> Result<()> {
    for language in languages {
        let _spinner = Spinner::start(format!("running a {language} skill"));
        report.add(match run(local, *language) {
            Ok(finding) => finding,
            Err(failure) => CheckResult::failed("run", format!("{language}: {failure}")),
        })?;
    }
    Ok(())
}

fn run(local: &EmbeddedClient, language: Language) -> Result<CheckResult> {
    let folder = tempfile::tempdir().map_err(|error| Failure::internal("making a skill to try", error))?;
    let name = "doctor".parse().expect("it keeps to the rule of names");
    write_scaffold(folder.path(), &name, language)?;
    let archive = arguments::pack(folder.path())?;
    let spec = RunSpec {
        input: Some(arguments::input("{\"name\": \"Doctor\"}")?),
        ..RunSpec::default()
    };
    let request = RunRequest {
        archive: Some(UnpublishedArchive {
            zip: archive,
            fallback_name: None,
        }),
        ..spec.into()
    };
    let RunResult { envelope, .. } = local.run(request, None, InstallReports::Silent)?;
    let expected = r#""Hello, Doctor!""#;
    let output = envelope
        .output
        .map(|output| output.to_string())
        .unwrap_or_default();
    if envelope.status == Status::Success && output.contains(expected) {
        let duration = envelope.duration_ms.unwrap_or_default();
        let backend = envelope.backend.as_deref().unwrap_or("no sandbox");
        let message = format!("a {language} skill ran in {backend} in {duration} ms");
        return Ok(CheckResult::ok("run", message));
    }
    let why = envelope
        .error
        .map_or_else(|| format!("its output was {output:?}"), |error| error.message);
    Ok(CheckResult::failed(
        "run",
        format!("a {language} skill failed: {why}"),
    ))
}
