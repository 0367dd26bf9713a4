//! `skillbox doctor`: checks everything that a run needs, and runs a skill.

mod engine;
#[cfg(target_os = "linux")]
mod native;
mod trial;

use serde::Serialize;
use tempfile::TempDir;

use crate::api::skills::SkillSummary;
use crate::cli::client::{self, EmbeddedClient};
use crate::cli::console::{Console, Format, Mark, Rows};
use crate::cli::exit::Exit;
use crate::cli::failure::{Failure, Result};
use crate::config::Config;
use crate::http::Ready;
use crate::server::{self, Assembled};

/// The result of one check.
#[derive(Debug, Serialize)]
pub(super) struct CheckResult {
    part: &'static str,
    state: CheckState,
    found: String,
    /// The remedy.
    #[serde(skip_serializing_if = "Option::is_none")]
    remedy: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum CheckState {
    Ok,
    /// Works, with limitations.
    Warning,
    Failed,
}

impl CheckResult {
    fn ok(part: &'static str, found: impl ToString) -> Self {
        Self {
            part,
            state: CheckState::Ok,
            found: found.to_string(),
            remedy: None,
        }
    }

    fn warning(part: &'static str, found: impl ToString, remedy: &str) -> Self {
        Self {
            state: CheckState::Warning,
            remedy: Some(remedy.to_owned()),
            ..Self::ok(part, found)
        }
    }

    /// The message contains the remedy.
    fn failed(part: &'static str, found: impl ToString) -> Self {
        Self {
            state: CheckState::Failed,
            ..Self::ok(part, found)
        }
    }

    fn failed_with(part: &'static str, found: impl ToString, remedy: &str) -> Self {
        Self {
            remedy: Some(remedy.to_owned()),
            ..Self::failed(part, found)
        }
    }
}

/// Results, printed as they occur in text mode and all at once as data.
pub(super) struct DoctorReport<'a> {
    console: &'a Console,
    findings: Vec<CheckResult>,
}

impl DoctorReport<'_> {
    fn add(&mut self, finding: CheckResult) -> Result<()> {
        if self.console.format_or(Format::Table) == Format::Table {
            let mark = match finding.state {
                CheckState::Ok => Mark::Good,
                CheckState::Warning => Mark::Doubtful,
                CheckState::Failed => Mark::Bad,
            };
            let remedy = finding
                .remedy
                .as_ref()
                .map(|remedy| format!("\n    → {remedy}"))
                .unwrap_or_default();
            let found = finding.found.replace('\n', "\n    ");
            self.console
                .check(mark, &format!("{:<17} {found}{remedy}", finding.part))?;
        }
        self.findings.push(finding);
        Ok(())
    }
}

pub(crate) fn doctor(config: Result<Config>, console: &Console) -> Result<Exit> {
    let mut report = DoctorReport {
        console,
        findings: Vec::new(),
    };
    check(config, &mut report)?;
    if console.format_or(Format::Table) != Format::Table {
        console.data(Format::Json, &report.findings, |_| Rows::default())?;
    } else {
        console.say("`skillbox prove` attacks sandboxes on this machine and reports which promises hold");
    }
    let failed = report
        .findings
        .iter()
        .any(|finding| finding.state == CheckState::Failed);
    Ok(if failed { Exit::Failed } else { Exit::Success })
}

fn check(config: Result<Config>, report: &mut DoctorReport<'_>) -> Result<()> {
    let config = match config {
        Ok(config) => config,
        Err(failure) => return report.add(CheckResult::failed("configuration", failure)),
    };
    let set = config
        .effective
        .iter()
        .filter(|row| row.source != "default")
        .count();
    report.add(CheckResult::ok(
        "configuration",
        format!("valid, settings changed: {set}; `skillbox config` lists them"),
    ))?;
    for notice in &config.notices {
        report.add(CheckResult::warning(
            "configuration",
            notice,
            "remove the setting",
        ))?;
    }
    if let Some(url) = &config.server_url {
        report.add(check_server(&config, url, report.console))?;
    }
    let (config, _temporary) = own_folder(config, report)?;
    let runtime = server::runtime()?;
    let Assembled { engine, folder } = match runtime.block_on(server::assemble(&config)) {
        Ok(assembled) => assembled,
        Err(error) => return report.add(CheckResult::failed("data folder", error)),
    };
    report.add(CheckResult::ok(
        "data folder",
        format!("{} is private and writable", folder.path().display()),
    ))?;
    for doubt in folder.doubts() {
        let told = format!("{} {doubt}", folder.path().display());
        report.add(CheckResult::warning("data folder", told, "set SKILLBOX_DATA_DIR"))?;
    }
    let local = EmbeddedClient::over(runtime, Assembled { engine, folder }, &config);
    engine::check(&local, &config, report)
}

/// If a server uses the data folder as another user, for example as a service, the other checks use a temporary
/// folder.
fn own_folder(mut config: Config, report: &mut DoctorReport<'_>) -> Result<(Config, Option<TempDir>)> {
    let Some(refused) = config.server_url.as_ref().and(config.data_folder().err()) else {
        return Ok((config, None));
    };
    report.add(CheckResult::warning(
        "data folder",
        refused,
        "expected if a server uses it as another user; the other checks use a temporary folder",
    ))?;
    let temporary =
        tempfile::tempdir().map_err(|error| Failure::internal("making a folder to try", error))?;
    config.data_dir = Some(temporary.path().to_owned());
    config.database = None;
    Ok((config, Some(temporary)))
}

fn check_server(config: &Config, url: &str, console: &Console) -> CheckResult {
    let asked = client::server(config, url, console).and_then(|server| {
        server.listed::<SkillSummary>("/v1/skills", &[], 1)?;
        server.readiness()
    });
    match asked {
        Ok(Ready { ready: true, .. }) => {
            CheckResult::ok("server", format!("{url} accepts the API key and is ready"))
        }
        Ok(Ready { checks, .. }) => {
            let parts: Vec<_> = checks
                .into_iter()
                .filter(|part| !part.ok)
                .map(|part| part.name)
                .collect();
            CheckResult::failed_with(
                "server",
                format!("{url} accepts the API key and is not ready: {}", parts.join(", ")),
                "see its log, or run `skillbox doctor` with its settings",
            )
        }
        Err(failure) => CheckResult::failed("server", failure),
    }
}
