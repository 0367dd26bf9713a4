//! Executions: run, submitted, listed, inspected and cancelled, by the embedded engine or a server.

use std::io::Write;
use std::time::Duration;

use percent_encoding::utf8_percent_encode;
use serde_json::json;
use ureq::http::Method;

use super::embedded::copy_object;
use super::remote::{ApiCall, SEGMENT, copy};
use super::{Client, EmbeddedClient, Listed, RemoteClient};
use crate::api::executions::{self, PruneExecutions, StreamTexts};
use crate::api::rerun;
use crate::cli::event_printer::OnEvent;
use crate::cli::exit::Exit;
use crate::cli::failure::{Failure, Result};
use crate::cli::run::RunSubject;
use crate::engine::RunRequest;
use crate::execution::{Arrivals, Envelope, FileLink, Logs, Status, Summary};
use crate::ids::ExecutionId;
use crate::limits;
use crate::skill::SkillName;
use crate::store::{ExecutionFilter, ExecutionSource};

/// Which executions to list.
#[derive(Clone, Debug, Default)]
pub(crate) struct ExecutionListFilter {
    pub(crate) status: Option<Status>,
    pub(crate) skill: Option<SkillName>,
    pub(crate) rows: usize,
}

/// Whether installations of packages are reported where no spinner is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum InstallReports {
    Printed,
    Silent,
}

/// The result of a run.
#[derive(Debug)]
pub(crate) struct RunResult {
    pub(crate) envelope: Envelope,
    /// Ctrl-C cancelled it.
    pub(crate) interrupted: bool,
}

impl Client {
    /// Runs to completion. `on_event` receives events meanwhile. Of a server nothing is known of installations.
    pub(crate) fn run(
        &self,
        runs: RunSubject,
        on_event: Option<&mut OnEvent<'_>>,
        reports: InstallReports,
    ) -> Result<RunResult> {
        match (self, runs) {
            (Self::Embedded(_), RunSubject::Request(request)) if request.spec.callback_url.is_some() => {
                Err(Failure::new(
                    Exit::Usage,
                    "--callback-url needs a server (`--server`): a local run sends no webhooks",
                ))
            }
            (Self::Embedded(local), RunSubject::Request(request)) => local.run(*request, on_event, reports),
            (Self::Embedded(local), RunSubject::Again { id, version }) => {
                let spec = local.call(rerun::rerun_spec(local.engine(), local.caller(), id, version))?;
                if spec.callback_url.is_some() {
                    let message = "the request has a `callback_url`, which needs a server (`--server`): a local run sends no webhooks";
                    return Err(Failure::new(Exit::Usage, message));
                }
                local.run(spec.into(), on_event, reports)
            }
            (Self::Remote(remote), RunSubject::Request(request)) => remote.run(*request, on_event),
            (Self::Remote(remote), RunSubject::Again { id, version }) => remote.rerun(id, version, on_event),
        }
    }

    /// Submits an async execution.
    pub(crate) fn submit(&self, request: RunRequest) -> Result<Envelope> {
        match self {
            Self::Remote(remote) => remote.submit(request),
            Self::Embedded(_) => Err(Failure::new(
                Exit::Usage,
                "--async needs a server (`--server`): a local run ends with this command",
            )),
        }
    }

    pub(crate) fn executions(&self, filter: &ExecutionListFilter) -> Result<Listed<Summary>> {
        let ExecutionListFilter { status, skill, rows } = filter.clone();
        match self {
            Self::Embedded(local) => {
                let filter = ExecutionFilter {
                    statuses: status.into(),
                    source: skill.map(ExecutionSource::Skill),
                    ..ExecutionFilter::default()
                };
                local.list(rows, async |engine, caller, page| {
                    executions::list(engine, caller, filter.clone(), page).await
                })
            }
            Self::Remote(remote) => {
                let status = status.map(|status| ("status", status.to_string()));
                let skill = skill.map(|skill| ("skill", skill.to_string()));
                let query: Vec<_> = status.into_iter().chain(skill).collect();
                remote.listed("/v1/executions", &query, rows)
            }
        }
    }

    pub(crate) fn execution(&self, id: ExecutionId) -> Result<Envelope> {
        match self {
            Self::Embedded(local) => local.execution(id, None),
            Self::Remote(remote) => remote.get(&format!("/v1/executions/{id}")),
        }
    }

    /// The execution once it has ended, or its state after `within`.
    pub(crate) fn ended_within(&self, id: ExecutionId, within: Duration) -> Result<Envelope> {
        match self {
            Self::Embedded(local) => local.execution(id, Some(within)),
            Self::Remote(remote) => remote.json(&ApiCall {
                query: &[("wait", within.as_secs_f64().to_string())],
                answer_max: limits::CLIENT_RUN_MAX,
                ..ApiCall::new(Method::GET, &format!("/v1/executions/{id}"))
            }),
        }
    }

    pub(crate) fn logs(&self, id: ExecutionId, timestamps: bool) -> Result<Logs> {
        match self {
            Self::Embedded(local) => local.call(executions::logs(local.engine(), local.caller(), id)),
            Self::Remote(remote) if timestamps => remote.logs_in_order(id),
            Self::Remote(remote) => remote.logs(id),
        }
    }

    pub(crate) fn cancel(&self, id: ExecutionId) -> Result<Envelope> {
        match self {
            Self::Embedded(local) => {
                let execution = local.call(executions::cancel(local.engine(), local.caller(), id))?;
                Ok(Envelope::from_execution(&execution, None))
            }
            Self::Remote(remote) => remote.cancel(id),
        }
    }

    pub(crate) fn delete_execution(&self, id: ExecutionId) -> Result<()> {
        match self {
            Self::Embedded(local) => local.call(executions::delete(local.engine(), local.caller(), id)),
            Self::Remote(remote) => remote.delete(&format!("/v1/executions/{id}")),
        }
    }

    /// Repeats the request until nothing is left.
    pub(crate) fn prune_executions(&self, request: &PruneExecutions) -> Result<u64> {
        let mut count = 0;
        loop {
            let pruned = match self {
                Self::Embedded(local) => {
                    let request = request.clone();
                    local.call(executions::prune(local.engine(), local.caller(), request))?
                }
                Self::Remote(remote) => remote.post("/v1/executions/prune", &json!(request))?,
            };
            count += pruned.count;
            // A dry run would count the same ones again.
            if !pruned.more || request.dry_run {
                return Ok(count);
            }
        }
    }

    /// Copies one file artifact. The caller must check its size and digest.
    pub(crate) fn file(&self, id: ExecutionId, file: &FileLink, into: &mut dyn Write) -> Result<()> {
        match self {
            Self::Embedded(local) => local.wait(async {
                let tenant = local.caller().tenant();
                let found = executions::file(local.engine(), tenant, id, &file.path).await?;
                let range = found.range();
                copy_object(found.object, range, into).await
            }),
            Self::Remote(remote) => remote.file(id, file, into),
        }
    }
}

impl EmbeddedClient {
    fn execution(&self, id: ExecutionId, wait: Option<Duration>) -> Result<Envelope> {
        let execution = self.call(executions::get(self.engine(), self.caller(), id, wait))?;
        Ok(Envelope::from_execution(&execution, None))
    }
}

impl RemoteClient {
    pub(super) fn cancel(&self, id: ExecutionId) -> Result<Envelope> {
        self.request_json(Method::POST, &format!("/v1/executions/{id}/cancel"))
    }

    /// The bytes of both streams, which JSON cannot carry, and the rest as JSON.
    fn logs(&self, id: ExecutionId) -> Result<Logs> {
        let path = format!("/v1/executions/{id}/logs");
        let stream = |name: &str| -> Result<Vec<u8>> {
            let answer = self.call(&ApiCall {
                query: &[("stream", name.to_owned())],
                accept: "text/plain",
                ..ApiCall::new(Method::GET, &path)
            })?;
            let mut bytes = Vec::new();
            copy(answer, &mut bytes, limits::LOG_BYTES_MAX)?;
            Ok(bytes)
        };
        let texts: StreamTexts = self.get(&path)?;
        Ok(Logs {
            stdout: stream("stdout")?,
            stderr: stream("stderr")?,
            stdout_total: texts.stdout_total,
            stderr_total: texts.stderr_total,
            lines: texts.lines,
            lines_truncated: texts.lines_truncated,
            arrivals: Arrivals::default(),
        })
    }

    /// With the time of each part.
    fn logs_in_order(&self, id: ExecutionId) -> Result<Logs> {
        let texts: StreamTexts = self.get(&format!("/v1/executions/{id}/logs?timestamps=true"))?;
        texts.into_logs().ok_or_else(|| {
            Failure::new(
                Exit::Unavailable,
                "cannot parse the server's answer: `base64` is invalid",
            )
        })
    }

    /// Builds the URL itself: with the response's own `url`, the server would choose who receives the key.
    fn file(&self, id: ExecutionId, file: &FileLink, into: &mut dyn Write) -> Result<()> {
        let segments = file.path.split('/');
        let segments: Vec<_> = segments
            .map(|part| utf8_percent_encode(part, SEGMENT).to_string())
            .collect();
        let path = format!("/v1/executions/{id}/files/{}", segments.join("/"));
        let answer = self.call(&ApiCall {
            accept: "*/*",
            ..ApiCall::new(Method::GET, &path)
        })?;
        copy(answer, into, file.size)
    }
}
