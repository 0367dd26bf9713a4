//! Executions. The large values are in a table that no list reads.

use jiff::Timestamp;
use rusqlite::{Connection, Row, named_params};
use serde::{Deserialize, Serialize};

use super::counts::Ended;
use super::execution_pages::Page;
use super::row::{
    all, execute, first, is_taken, json, optional_json, optional_text, optional_time, owned, text, time,
    to_json,
};
use super::{Sqlite, counts, deliveries, requests, retention, storage};
use crate::execution::{
    AskedLimits, ChosenBackend, Execution, ExecutionKey, Failure, JsonText, Logs, NewExecution, Omitted,
    Outcome, ResourceLimits, RichResult, Status, Workdir,
};
use crate::ids::{ExecutionId, InstanceId, Tenant};
use crate::skill::Language;
use crate::store::cursor::Moment;
use crate::store::executions::Executions;
use crate::store::{Conflict, Error, ExecutionFilter, Retention};

macro_rules! columns {
    () => {
        "id, tenant, status, skill, version, digest, language, image, backend, backend_reason, degraded, limits, instance, \
         created_at, finished_at, error_code, error_message, exit_code, skipped_total, usage, timings, workdir, requirements, \
         key_id, key_name"
    };
}
pub(super) use columns;

const BY_ID: &str = concat!(
    "select ",
    columns!(),
    ", case when :no_output then null else output end as output, case when :no_logs then x'' else stdout end as stdout, \
      case when :no_logs then x'' else stderr end as stderr, case when :no_logs then '[]' else log_lines end as log_lines, \
      case when :no_logs then null else arrivals end as arrivals, case when :no_results then '[]' else results end as results, \
      stdout_total, stderr_total, log_lines_truncated, results_truncated, exception, files, skipped, output_blobs, \
      (select url from deliveries where deliveries.execution = executions.id) as callback_url \
     from executions left join execution_results on execution = id where tenant = :tenant and id = :id"
);
const RESULTS: &str = "select results from executions left join execution_results on execution = id where tenant = ?1 and id = ?2";
const IN_BRIEF: &str = concat!(
    "select ",
    columns!(),
    " from executions where tenant = ?1 and id = ?2"
);
const INSERT: &str = "
    insert into executions (
        id, tenant, status, skill, version, digest, language, image, backend, backend_reason, degraded, limits,
        instance, created_at, workdir, requirements, key_id, key_name, kept_request
    ) values (
        :id, :tenant, :status, :skill, :version, :digest, :language, :image, :backend, :backend_reason, :degraded, :limits,
        :instance, :created_at, :workdir, :requirements, :key_id, :key_name, :kept_request
    )";
const FINISH: &str = concat!(
    "update executions set
        status = :status, finished_at = :finished_at, error_code = :error_code, error_message = :error_message,
        exit_code = :exit_code, skipped_total = :skipped_total, usage = :usage, timings = :timings, cpu_ms = :cpu_ms,
        kept_bytes = :kept_bytes + ",
    requests::bytes!(),
    " where tenant = :tenant and id = :id and status = :before returning kept_bytes"
);
const INSERT_RESULTS: &str = "
    insert into execution_results (
        execution, output, stdout, stderr, stdout_total, stderr_total, files, skipped, output_blobs, results,
        results_truncated, exception, log_lines, log_lines_truncated, arrivals
    ) values (
        :id, :output, :stdout, :stderr, :stdout_total, :stderr_total, :files, :skipped, :output_blobs, :results,
        :results_truncated, :exception, :log_lines, :log_lines_truncated, :arrivals
    )";
const INTERRUPT: &str = concat!(
    "update executions set
        status = 'interrupted', finished_at = ?2, error_code = 'interrupted',
        error_message = 'the server stopped while this ran; run it again', skipped_total = 0, kept_bytes = ",
    requests::bytes!(),
    " where status = 'running' and instance = ?1 returning tenant, id, kept_bytes"
);
pub(super) const INSTANCES: &str = "select distinct instance from executions where status = 'running'";
const REQUEST_CANCEL: &str = "
    update executions set cancel_requested_at = coalesce(cancel_requested_at, ?3)
    where tenant = ?1 and id = ?2 and finished_at is null";
const WITHDRAW: &str = "delete from executions where tenant = ?1 and id = ?2 and status = 'running'";
/// Deletes the results and the kept request, too.
const DELETE: &str = "delete from executions where tenant = ?1 and id = ?2 and finished_at is not null
     returning kept_bytes, finished_at, status, skill, created_at, cpu_ms";
pub(super) const CANCEL_REQUESTS: &str = "
    select tenant, id from executions
    where instance = ?1 and cancel_requested_at is not null and finished_at is null";

impl Executions for Sqlite {
    async fn insert_running(&self, new: NewExecution, on_visible: impl FnOnce() + Send) -> Result<(), Error> {
        let insert = move |c: &Connection| insert(c, &new, Status::Running);
        self.write_visible(insert, on_visible).await
    }

    async fn finish(&self, tenant: &Tenant, id: ExecutionId, outcome: Outcome) -> Result<bool, Error> {
        let tenant = tenant.clone();
        self.write(move |c| finish(c, &tenant, id, Status::Running, &outcome))
            .await
    }

    async fn execution(&self, tenant: &Tenant, id: ExecutionId) -> Result<Execution, Error> {
        self.execution_without(tenant, id, Omitted::default()).await
    }

    async fn execution_without(
        &self,
        tenant: &Tenant,
        id: ExecutionId,
        omitted: Omitted,
    ) -> Result<Execution, Error> {
        let tenant = tenant.to_string();
        let found = self.read(move |c| {
            let terms = named_params! {
                ":tenant": tenant,
                ":id": id.to_string(),
                ":no_output": omitted.output,
                ":no_logs": omitted.logs,
                ":no_results": omitted.results,
            };
            first(c, BY_ID, terms, record_with_results)
        });
        found.await?.ok_or_else(|| not_found(id))
    }

    async fn results(&self, tenant: &Tenant, id: ExecutionId) -> Result<Vec<RichResult>, Error> {
        let terms = (tenant.to_string(), id.to_string());
        let found = self.read(move |c| first(c, RESULTS, terms, |row| optional_json(row, "results")));
        let found: Option<Option<_>> = found.await?;
        Ok(found.ok_or_else(|| not_found(id))?.unwrap_or_default())
    }

    async fn kept_request(&self, tenant: &Tenant, id: ExecutionId) -> Result<Option<Vec<u8>>, Error> {
        let tenant = tenant.clone();
        let found = self.read(move |c| requests::find(c, &tenant, id));
        found.await?.ok_or_else(|| not_found(id))
    }

    async fn interrupt_running(
        &self,
        owner: InstanceId,
        at: Timestamp,
    ) -> Result<Vec<(Tenant, ExecutionId)>, Error> {
        self.write(move |c| interrupt(c, INTERRUPT, owner, at)).await
    }

    async fn running_instances(&self) -> Result<Vec<InstanceId>, Error> {
        self.read(|c| all(c, INSTANCES, [], |row| text(row, "instance")))
            .await
    }

    async fn request_cancel(&self, tenant: &Tenant, id: ExecutionId, at: Timestamp) -> Result<bool, Error> {
        let terms = (tenant.to_string(), id.to_string(), at.as_microsecond());
        self.write(move |c| Ok(execute(c, REQUEST_CANCEL, terms)? > 0))
            .await
    }

    async fn cancel_requests(&self, owner: InstanceId) -> Result<Vec<(Tenant, ExecutionId)>, Error> {
        self.read(move |c| all(c, CANCEL_REQUESTS, [owner.to_string()], owned))
            .await
    }

    async fn expired_executions(
        &self,
        retention: &Retention,
        rows: u32,
    ) -> Result<Vec<(Tenant, ExecutionId)>, Error> {
        let retention = *retention;
        self.read(move |c| retention::expired(c, &retention, rows)).await
    }

    async fn delete_execution(&self, tenant: &Tenant, id: ExecutionId) -> Result<(), Error> {
        let (tenant, terms) = (tenant.clone(), (tenant.to_string(), id.to_string()));
        self.write(move |c| {
            let deleted = first(c, DELETE, terms, |row| {
                Ok((row.get("kept_bytes")?, Ended::of(row)?))
            })?;
            let (kept_bytes, ended) = deleted.ok_or_else(|| not_found(id))?;
            counts::count_deleted(c, &tenant, ended)?;
            storage::take(c, &tenant, kept_bytes)
        })
        .await
    }

    async fn withdraw(&self, tenant: &Tenant, id: ExecutionId) -> Result<bool, Error> {
        let terms = (tenant.to_string(), id.to_string());
        self.write(move |c| Ok(execute(c, WITHDRAW, terms)? > 0)).await
    }

    async fn storage_used(&self, tenant: &Tenant) -> Result<u64, Error> {
        let tenant = tenant.to_string();
        let used = self.read(move |c| first(c, storage::USED, [tenant], |row| Ok(row.get(0)?)));
        Ok(used.await?.unwrap_or(0))
    }

    async fn executions(
        &self,
        tenant: &Tenant,
        filter: &ExecutionFilter,
        after: Option<Moment<ExecutionId>>,
        rows: u32,
    ) -> Result<Vec<Execution>, Error> {
        let page = Page::of(tenant, filter, after, rows);
        self.read(move |c| page.read(c)).await
    }
}

pub(super) fn insert(c: &Connection, new: &NewExecution, status: Status) -> Result<(), Error> {
    let backend = new.backend.as_ref();
    let inserted = c.prepare_cached(INSERT)?.execute(named_params! {
        ":id": new.id.to_string(),
        ":tenant": new.tenant.as_str(),
        ":status": status.as_str(),
        ":skill": new.skill.as_ref().map(|name| name.as_str()),
        ":version": new.version.as_ref().map(ToString::to_string),
        ":digest": new.digest.map(|digest| digest.to_string()),
        ":language": new.language.as_str(),
        ":image": new.image,
        ":backend": backend.map_or("", |backend| &backend.name),
        ":backend_reason": backend.map_or("", |backend| &backend.reason),
        ":degraded": to_json(&backend.map_or(&[][..], |backend| &backend.degraded))?,
        ":limits": to_json(&StoredLimits::of(new))?,
        ":instance": new.instance.to_string(),
        ":created_at": new.created_at.as_microsecond(),
        ":workdir": new.workdir.map(Workdir::as_str),
        ":requirements": new.requirements.as_ref().map(to_json).transpose()?,
        ":key_id": new.key.as_ref().map(|key| key.id.to_string()),
        ":key_name": new.key.as_ref().map(|key| &key.name),
        ":kept_request": requests::in_row(new),
    });
    match inserted {
        Err(e) if is_taken(&e) => Err(Conflict::Exists.of("execution")),
        Err(e) => Err(e.into()),
        Ok(_) => {
            requests::insert(c, new)?;
            deliveries::insert(c, new)
        }
    }
}

/// Ends executions by a statement that returns `tenant, id, kept_bytes`, and counts what they keep.
pub(super) fn interrupt(
    c: &Connection,
    sql: &str,
    owner: InstanceId,
    at: Timestamp,
) -> Result<Vec<(Tenant, ExecutionId)>, Error> {
    let terms = (owner.to_string(), at.as_microsecond());
    let ended = all(c, sql, terms, |row| Ok((owned(row)?, row.get("kept_bytes")?)))?;
    ended
        .into_iter()
        .map(|(execution, kept_bytes)| storage::add(c, &execution.0, kept_bytes).map(|()| execution))
        .collect()
}

pub(super) fn finish(
    c: &Connection,
    tenant: &Tenant,
    id: ExecutionId,
    before: Status,
    outcome: &Outcome,
) -> Result<bool, Error> {
    debug_assert!(outcome.status.is_final(), "an outcome is final");
    let (results, lines) = (to_json(&outcome.results)?, to_json(&outcome.logs.lines)?);
    let arrivals = to_json(&outcome.logs.arrivals)?;
    let kept_bytes = kept_bytes(outcome, &[&results, &lines, &arrivals]);
    let terms = named_params! {
        ":tenant": tenant.as_str(),
        ":id": id.to_string(),
        ":status": outcome.status.as_str(),
        ":finished_at": outcome.finished_at.as_microsecond(),
        ":error_code": outcome.error.as_ref().map(|failure| failure.code.as_str()),
        ":error_message": outcome.error.as_ref().map(|failure| failure.message.as_str()),
        ":exit_code": outcome.exit_code,
        ":skipped_total": outcome.skipped_total,
        ":usage": to_json(&outcome.usage)?,
        ":timings": to_json(&outcome.timings)?,
        ":kept_bytes": kept_bytes,
        ":cpu_ms": outcome.usage.cpu_ms,
        ":before": before.as_str(),
    };
    let Some(kept_bytes) = first(c, FINISH, terms, |row| Ok(row.get(0)?))? else {
        return Ok(false);
    };
    storage::add(c, tenant, kept_bytes)?;
    let exception = outcome
        .error
        .as_ref()
        .and_then(|failure| failure.exception.as_ref());
    c.prepare_cached(INSERT_RESULTS)?.execute(named_params! {
        ":id": id.to_string(),
        ":output": outcome.output.as_ref().map(JsonText::as_str),
        ":stdout": outcome.logs.stdout,
        ":stderr": outcome.logs.stderr,
        ":stdout_total": outcome.logs.stdout_total,
        ":stderr_total": outcome.logs.stderr_total,
        ":files": to_json(&outcome.files)?,
        ":skipped": to_json(&outcome.skipped)?,
        ":output_blobs": to_json(&outcome.blobs)?,
        ":results": results,
        ":results_truncated": outcome.results_truncated,
        ":exception": exception.map(to_json).transpose()?,
        ":log_lines": lines,
        ":log_lines_truncated": outcome.logs.lines_truncated,
        ":arrivals": arrivals,
    })?;
    Ok(true)
}

/// The stored bytes of an outcome, as far as a program decides how many they are.
fn kept_bytes(outcome: &Outcome, json: &[&str]) -> u64 {
    let output = outcome.output.as_ref().map_or(0, |output| output.as_str().len());
    let texts = output + outcome.logs.stdout.len() + outcome.logs.stderr.len();
    let json: usize = json.iter().map(|json| json.len()).sum();
    let files: u64 = outcome.files.iter().map(|file| file.size).sum();
    files + (texts + json) as u64
}

fn not_found(id: ExecutionId) -> Error {
    Error::not_found("execution", id)
}

/// Without what no list shows.
pub(super) fn in_brief(c: &Connection, tenant: &Tenant, id: ExecutionId) -> Result<Execution, Error> {
    let found = first(c, IN_BRIEF, (tenant.as_str(), id.to_string()), record)?;
    found.ok_or_else(|| not_found(id))
}

fn record_with_results(row: &Row<'_>) -> Result<Execution, Error> {
    let mut execution = record(row)?;
    execution.new.callback_url = optional_text(row, "callback_url")?;
    // An interrupted execution has an outcome but no results.
    let has_results = row.get::<_, Option<u64>>("stdout_total")?.is_some();
    if let Some(outcome) = execution.outcome.as_mut().filter(|_| has_results) {
        add_results(row, outcome)?;
    }
    Ok(execution)
}

/// The column `limits`. Executions of older versions have no `asked`.
#[derive(Serialize, Deserialize)]
pub(super) struct StoredLimits {
    #[serde(flatten)]
    granted: ResourceLimits,
    #[serde(default)]
    asked: AskedLimits,
}

impl StoredLimits {
    pub(super) fn of(new: &NewExecution) -> Self {
        Self {
            granted: new.limits,
            asked: new.asked,
        }
    }
}

pub(super) fn record(row: &Row<'_>) -> Result<Execution, Error> {
    let status: String = row.get("status")?;
    let status = Status::from_name(&status).ok_or_else(|| Error::backend("column status: unknown name"))?;
    let language: String = row.get("language")?;
    let language =
        Language::from_alias(&language).ok_or_else(|| Error::backend("column language: unknown name"))?;
    let stored: StoredLimits = json(row, "limits")?;
    let new = NewExecution {
        id: text(row, "id")?,
        tenant: text(row, "tenant")?,
        skill: optional_text(row, "skill")?,
        version: optional_text(row, "version")?,
        digest: optional_text(row, "digest")?,
        language,
        image: row.get("image")?,
        backend: backend(row)?,
        limits: stored.granted,
        asked: stored.asked,
        instance: text(row, "instance")?,
        created_at: time(row, "created_at")?,
        workdir: row
            .get::<_, Option<String>>("workdir")?
            .as_deref()
            .and_then(Workdir::from_name),
        requirements: optional_json(row, "requirements")?,
        key: key(row)?,
        callback_url: None,
        kept_request: None,
    };
    let outcome = optional_time(row, "finished_at")?
        .map(|finished_at| outcome(row, status, finished_at))
        .transpose()?;
    Ok(Execution { new, status, outcome })
}

fn key(row: &Row<'_>) -> Result<Option<ExecutionKey>, Error> {
    let name: Option<String> = row.get("key_name")?;
    let id = optional_text(row, "key_id")?;
    Ok(id.zip(name).map(|(id, name)| ExecutionKey { id, name }))
}

fn backend(row: &Row<'_>) -> Result<Option<ChosenBackend>, Error> {
    let name: String = row.get("backend")?;
    if name.is_empty() {
        return Ok(None);
    }
    Ok(Some(ChosenBackend {
        name,
        reason: row.get("backend_reason")?,
        degraded: json(row, "degraded")?,
    }))
}

fn outcome(row: &Row<'_>, status: Status, finished_at: Timestamp) -> Result<Outcome, Error> {
    let code: Option<String> = row.get("error_code")?;
    let message: Option<String> = row.get("error_message")?;
    let was_measured = row.get::<_, Option<String>>("usage")?.is_some();
    Ok(Outcome {
        error: code.zip(message).map(|(code, message)| Failure {
            code,
            message,
            exception: None,
        }),
        exit_code: row.get("exit_code")?,
        skipped_total: row.get("skipped_total")?,
        usage: if was_measured {
            json(row, "usage")?
        } else {
            Default::default()
        },
        timings: if was_measured {
            json(row, "timings")?
        } else {
            Default::default()
        },
        ..Outcome::bare(status, finished_at)
    })
}

fn add_results(row: &Row<'_>, outcome: &mut Outcome) -> Result<(), Error> {
    let output = row
        .get_ref("output")?
        .as_bytes_or_null()
        .map_err(Error::backend)?;
    outcome.output = output.map(JsonText::parse).transpose().map_err(Error::backend)?;
    outcome.logs = Logs {
        stdout: row.get("stdout")?,
        stderr: row.get("stderr")?,
        stdout_total: row.get("stdout_total")?,
        stderr_total: row.get("stderr_total")?,
        lines: json(row, "log_lines")?,
        lines_truncated: row.get("log_lines_truncated")?,
        arrivals: optional_json(row, "arrivals")?.unwrap_or_default(),
    };
    outcome.results = json(row, "results")?;
    outcome.results_truncated = row.get("results_truncated")?;
    if let Some(failure) = &mut outcome.error {
        failure.exception = optional_json(row, "exception")?;
    }
    outcome.files = json(row, "files")?;
    outcome.skipped = json(row, "skipped")?;
    outcome.blobs = json(row, "output_blobs")?;
    Ok(())
}
