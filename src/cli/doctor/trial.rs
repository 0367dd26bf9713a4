//! A real run of a small skill in each language.

use std::io::{Seek as _, Write as _};

use super::{Finding, Report};
use crate::cli::failure::{Failure, Result};
use crate::cli::given;
use crate::cli::place::{Local, Ran};
use crate::cli::progress::Spinner;
use crate::engine::{Ask, What};
use crate::execution::Status;
use crate::skill::{Language, scaffold};

pub(super) fn run_each(local: &Local, languages: &[Language], report: &mut Report<'_>) -> Result<()> {
    for language in languages {
        let _spinner = Spinner::start(format!("running a {language} skill"));
        report.add(match run(local, *language) {
            Ok(finding) => finding,
            Err(failure) => Finding::failed("run", format!("{language}: {failure}")),
        })?;
    }
    Ok(())
}

fn run(local: &Local, language: Language) -> Result<Finding> {
    let failed = |error: std::io::Error| Failure::internal("making a skill to try", error);
    let folder = tempfile::tempdir().map_err(failed)?;
    let name = "doctor"
        .parse()
        .map_err(|error| Failure::internal("naming a skill", error))?;
    for (path, text) in scaffold(&name, language) {
        let path = folder.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap_or(folder.path())).map_err(failed)?;
        let mut file = std::fs::File::create(&path).map_err(failed)?;
        file.write_all(text.as_bytes()).map_err(failed)?;
    }
    let mut archive = given::pack(folder.path())?;
    archive.rewind().map_err(failed)?;
    let ask = Ask {
        input: Some(given::input("{\"name\": \"Doctor\"}")?),
        ..Ask::default()
    };
    let Ran { envelope, .. } = local.run(
        What::Archive {
            archive,
            fallback_name: None,
        },
        ask,
    )?;
    let expected = r#""Hello, Doctor!""#;
    let output = envelope
        .output
        .map(|output| output.to_string())
        .unwrap_or_default();
    Ok(match envelope.status {
        Status::Success if output.contains(expected) => {
            let duration = envelope.duration_ms.unwrap_or_default();
            Finding::ok(
                "run",
                format!("a {language} skill ran in {} in {duration} ms", envelope.backend),
            )
        }
        status => {
            let why = envelope
                .error
                .map_or_else(|| format!("its output was {output:?}"), |error| error.message);
            Finding::failed("run", format!("a {language} skill ended as {status}: {why}"))
        }
    })
}
