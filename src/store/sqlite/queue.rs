//! Executions that wait for their turn, and the keys under which they were asked for.

use jiff::Timestamp;
use rusqlite::{Connection, Row, named_params};

use super::executions;
use super::row::{text, time, to_json};
use crate::execution::{NewExecution, Outcome, Status};
use crate::ids::{Digest, ExecutionId, InstanceId, Tenant};
use crate::limits;
use crate::store::{Conflict, Enqueued, Error, KeyedRequest, Queued};

const FIND_KEY: &str =
    "select fingerprint, execution, created_at from idempotency_keys where tenant = ?1 and key = ?2";
const PUT_KEY: &str = "
    insert or replace into idempotency_keys (tenant, key, fingerprint, execution, created_at)
    values (:tenant, :key, :fingerprint, :execution, :created_at)";
const FORGET_KEYS: &str = "delete from idempotency_keys where created_at < ?1";
pub(super) const QUEUED_BYTES: &str = "select coalesce(sum(bytes), 0) from queued_requests where tenant = ?1";
const PUT_REQUEST: &str = "
    insert into queued_requests (execution, tenant, bytes, request)
    values (:execution, :tenant, length(:request), :request)";
const REQUEST: &str = "select request from queued_requests where tenant = ?1 and execution = ?2";
const DROP_REQUEST: &str = "delete from queued_requests where execution = ?1";
const START: &str = "
    update executions set
        status = 'running', instance = :instance, image = :image, backend = :backend, backend_reason = :backend_reason,
        degraded = :degraded, limits = :limits
    where tenant = :tenant and id = :id and status = 'queued'";
const WITHDRAW: &str = "delete from executions where tenant = ?1 and id = ?2 and status = 'queued'";
pub(super) const OWNERS: &str = "select distinct instance from executions where status = 'queued'";
/// Whoever waited for these kept their requests, and is gone.
const INTERRUPT_ALONE: &str = "
    update executions set
        status = 'interrupted', finished_at = ?2, error_code = 'interrupted',
        error_message = 'the server stopped before its turn came; run it again', skipped_total = 0
    where status = 'queued' and instance = ?1
        and not exists (select 1 from queued_requests where execution = executions.id)";
const ADOPT: &str = "
    update executions set instance = ?2 where status = 'queued' and instance = ?1
    returning tenant, id, created_at";

pub(super) fn enqueue(c: &Connection, queued: &Queued) -> Result<Enqueued, Error> {
    let new = &queued.execution;
    if let Some(keyed) = &queued.key
        && let Some(known) = known(c, &new.tenant, keyed)?
    {
        return Ok(Enqueued::Known(known));
    }
    executions::insert(c, new, Status::Queued)?;
    let (id, tenant) = (new.id.to_string(), new.tenant.as_str());
    if let Some(request) = &queued.request {
        let waiting: u64 = c
            .prepare_cached(QUEUED_BYTES)?
            .query_row([tenant], |row| row.get(0))?;
        if waiting + request.len() as u64 > limits::QUEUED_BYTES_MAX {
            return Err(Error::Quota);
        }
        c.prepare_cached(PUT_REQUEST)?.execute(named_params! {
            ":execution": id,
            ":tenant": tenant,
            ":request": request,
        })?;
    }
    if let Some(keyed) = &queued.key {
        c.prepare_cached(PUT_KEY)?.execute(named_params! {
            ":tenant": tenant,
            ":key": keyed.key.as_str(),
            ":fingerprint": keyed.fingerprint.to_string(),
            ":execution": id,
            ":created_at": new.created_at.as_microsecond(),
        })?;
    }
    Ok(Enqueued::New)
}

/// The execution of the same request, if there was one lately.
pub(super) fn known(
    c: &Connection,
    tenant: &Tenant,
    keyed: &KeyedRequest,
) -> Result<Option<ExecutionId>, Error> {
    let mut statement = c.prepare_cached(FIND_KEY)?;
    let mut rows = statement.query((tenant.as_str(), keyed.key.as_str()))?;
    let Some(row) = rows.next()? else {
        return Ok(None);
    };
    if time(row, "created_at")? < keyed.since {
        return Ok(None);
    }
    if text::<Digest>(row, "fingerprint")? != keyed.fingerprint {
        return Err(Conflict::OtherRequest.into());
    }
    text(row, "execution").map(Some)
}

pub(super) fn request(c: &Connection, tenant: &Tenant, id: ExecutionId) -> Result<Vec<u8>, Error> {
    let mut statement = c.prepare_cached(REQUEST)?;
    Ok(statement.query_row((tenant.as_str(), id.to_string()), |row| row.get(0))?)
}

pub(super) fn start(c: &Connection, new: &NewExecution) -> Result<bool, Error> {
    let backend = new
        .backend
        .as_ref()
        .ok_or_else(|| Error::backend("what starts has a backend"))?;
    let started = c.prepare_cached(START)?.execute(named_params! {
        ":tenant": new.tenant.as_str(),
        ":id": new.id.to_string(),
        ":instance": new.instance.to_string(),
        ":image": new.image,
        ":backend": backend.name,
        ":backend_reason": backend.reason,
        ":degraded": to_json(&backend.degraded)?,
        ":limits": to_json(&new.limits)?,
    })?;
    drop_request(c, new.id)?;
    Ok(started > 0)
}

pub(super) fn leave(
    c: &Connection,
    tenant: &Tenant,
    id: ExecutionId,
    outcome: &Outcome,
) -> Result<bool, Error> {
    let left = executions::finish(c, tenant, id, (Status::Queued, outcome))?;
    if left {
        drop_request(c, id)?;
    }
    Ok(left)
}

fn drop_request(c: &Connection, id: ExecutionId) -> Result<(), Error> {
    c.prepare_cached(DROP_REQUEST)?.execute([id.to_string()])?;
    Ok(())
}

pub(super) fn withdraw(c: &Connection, tenant: &Tenant, id: ExecutionId) -> Result<bool, Error> {
    let mut statement = c.prepare_cached(WITHDRAW)?;
    Ok(statement.execute((tenant.as_str(), id.to_string()))? > 0)
}

pub(super) fn owners(c: &Connection) -> Result<Vec<InstanceId>, Error> {
    let mut statement = c.prepare_cached(OWNERS)?;
    let found = statement.query_and_then([], |row| text(row, "instance"))?;
    found.collect()
}

pub(super) fn adopt(
    c: &Connection,
    (owner, heir): (InstanceId, InstanceId),
    at: Timestamp,
) -> Result<Vec<(Tenant, ExecutionId)>, Error> {
    c.prepare_cached(INTERRUPT_ALONE)?
        .execute((owner.to_string(), at.as_microsecond()))?;
    let mut statement = c.prepare_cached(ADOPT)?;
    let adopted = statement.query_and_then((owner.to_string(), heir.to_string()), place)?;
    let mut adopted = adopted.collect::<Result<Vec<_>, Error>>()?;
    adopted.sort_by_key(|(accepted_at, _, id)| (*accepted_at, *id));
    Ok(adopted.into_iter().map(|(_, tenant, id)| (tenant, id)).collect())
}

fn place(row: &Row<'_>) -> Result<(Timestamp, Tenant, ExecutionId), Error> {
    Ok((time(row, "created_at")?, text(row, "tenant")?, text(row, "id")?))
}

pub(super) fn forget_keys(c: &Connection, before: Timestamp) -> Result<(), Error> {
    c.prepare_cached(FORGET_KEYS)?
        .execute([before.as_microsecond()])?;
    Ok(())
}
