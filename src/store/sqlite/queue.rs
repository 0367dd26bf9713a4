//! Executions that wait for a slot, and the idempotency keys of requests.

use jiff::Timestamp;
use rusqlite::{Connection, named_params};

use super::row::{all, execute, first, owned, text, time, to_json};
use super::{Sqlite, executions, requests};
use crate::execution::{NewExecution, Outcome, Status};
use crate::ids::{Digest, ExecutionId, InstanceId, Tenant};
use crate::limits;
use crate::store::queue::Queue;
use crate::store::{Conflict, Enqueued, Error, KeyedRequest, QueueRecovery, Queued};

const FIND_KEY: &str =
    "select fingerprint, execution, created_at from idempotency_keys where tenant = ?1 and key = ?2";
const PUT_KEY: &str = "
    insert or replace into idempotency_keys (tenant, key, fingerprint, execution, created_at)
    values (:tenant, :key, :fingerprint, :execution, :created_at)";
const DELETE_KEYS: &str = "delete from idempotency_keys where created_at < ?1";
pub(super) const QUEUED_BYTES: &str = "select coalesce(sum(bytes), 0) from queued_requests where tenant = ?1";
const PUT_REQUEST: &str = "
    insert into queued_requests (execution, tenant, bytes, request)
    values (:execution, :tenant, length(:request), :request)";
const REQUEST: &str = "select request from queued_requests where tenant = ?1 and execution = ?2";
const DELETE_REQUEST: &str = "delete from queued_requests where execution = ?1";
const START: &str = "
    update executions set
        status = 'running', instance = :instance, image = :image, backend = :backend, backend_reason = :backend_reason,
        degraded = :degraded, limits = :limits
    where tenant = :tenant and id = :id and status = 'queued'";
const DELETE: &str = "delete from executions where tenant = ?1 and id = ?2 and status = 'queued'";
pub(super) const OWNERS: &str = "select distinct instance from executions where status = 'queued'";
/// The callers of these held the requests, and ended with their process.
const INTERRUPT: &str = concat!(
    "update executions set
        status = 'interrupted', finished_at = ?2, error_code = 'interrupted',
        error_message = 'the server stopped before the execution started; run it again', skipped_total = 0, kept_bytes = ",
    requests::bytes!(),
    " where status = 'queued' and instance = ?1
        and not exists (select 1 from queued_requests where execution = executions.id)
    returning tenant, id, kept_bytes"
);
const CHANGE_OWNER: &str = "
    update executions set instance = ?2 where status = 'queued' and instance = ?1
    returning tenant, id, created_at";

impl Queue for Sqlite {
    async fn enqueue(&self, queued: Queued) -> Result<Enqueued, Error> {
        self.write(move |c| enqueue(c, &queued)).await
    }

    async fn execution_by_key(
        &self,
        tenant: &Tenant,
        key: KeyedRequest,
    ) -> Result<Option<ExecutionId>, Error> {
        let tenant = tenant.clone();
        let find = move |c: &Connection| by_key(c, &tenant, &key);
        match self.read(find.clone()).await? {
            None => Ok(None),
            // It may have been written a moment ago: a writer waits until it is on the disk.
            Some(_) => self.write(find).await,
        }
    }

    async fn queued_request(&self, tenant: &Tenant, id: ExecutionId) -> Result<Vec<u8>, Error> {
        let terms = (tenant.to_string(), id.to_string());
        let request = self.read(move |c| first(c, REQUEST, terms, |row| Ok(row.get(0)?)));
        let request = request.await?;
        request.ok_or_else(|| Error::NotFound("the stored request".to_owned()))
    }

    async fn start_queued(&self, new: NewExecution) -> Result<bool, Error> {
        self.write(move |c| {
            let backend = new.backend.as_ref();
            let backend = backend.ok_or_else(|| Error::backend("a started execution has a backend"))?;
            let started = c.prepare_cached(START)?.execute(named_params! {
                ":tenant": new.tenant.as_str(),
                ":id": new.id.to_string(),
                ":instance": new.instance.to_string(),
                ":image": new.image,
                ":backend": backend.name,
                ":backend_reason": backend.reason,
                ":degraded": to_json(&backend.degraded)?,
                ":limits": to_json(&executions::StoredLimits::of(&new))?,
            })?;
            execute(c, DELETE_REQUEST, [new.id.to_string()])?;
            Ok(started > 0)
        })
        .await
    }

    async fn finish_queued(&self, tenant: &Tenant, id: ExecutionId, outcome: Outcome) -> Result<bool, Error> {
        let tenant = tenant.clone();
        self.write(move |c| {
            let ended = executions::finish(c, &tenant, id, Status::Queued, &outcome)?;
            if ended {
                execute(c, DELETE_REQUEST, [id.to_string()])?;
            }
            Ok(ended)
        })
        .await
    }

    async fn delete_queued(&self, tenant: &Tenant, id: ExecutionId) -> Result<bool, Error> {
        let terms = (tenant.to_string(), id.to_string());
        self.write(move |c| Ok(execute(c, DELETE, terms)? > 0)).await
    }

    async fn queue_owners(&self) -> Result<Vec<InstanceId>, Error> {
        self.read(|c| all(c, OWNERS, [], |row| text(row, "instance")))
            .await
    }

    async fn recover_queue(&self, recovery: QueueRecovery) -> Result<Vec<(Tenant, ExecutionId)>, Error> {
        let QueueRecovery { dead, new_owner, at } = recovery;
        self.write(move |c| {
            executions::interrupt(c, INTERRUPT, dead, at)?;
            let owners = (dead.to_string(), new_owner.to_string());
            let mut moved = all(c, CHANGE_OWNER, owners, |row| {
                Ok((time(row, "created_at")?, owned(row)?))
            })?;
            moved.sort_by_key(|(accepted_at, (_, id))| (*accepted_at, *id));
            Ok(moved.into_iter().map(|(_, execution)| execution).collect())
        })
        .await
    }

    async fn delete_idempotency_keys(&self, before: Timestamp) -> Result<(), Error> {
        self.write(move |c| execute(c, DELETE_KEYS, [before.as_microsecond()]).map(drop))
            .await
    }
}

fn enqueue(c: &Connection, queued: &Queued) -> Result<Enqueued, Error> {
    let new = &queued.execution;
    if let Some(keyed) = &queued.key
        && let Some(known) = by_key(c, &new.tenant, keyed)?
    {
        return Ok(Enqueued::Duplicate(known));
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

/// The execution of the same request, if it was sent since `keyed.since`.
fn by_key(c: &Connection, tenant: &Tenant, keyed: &KeyedRequest) -> Result<Option<ExecutionId>, Error> {
    let terms = (tenant.as_str(), keyed.key.as_str());
    let found = first(c, FIND_KEY, terms, |row| {
        if time(row, "created_at")? < keyed.since {
            return Ok(None);
        }
        if text::<Digest>(row, "fingerprint")? != keyed.fingerprint {
            return Err(Conflict::OtherRequest.of("Idempotency-Key:"));
        }
        text(row, "execution").map(Some)
    })?;
    Ok(found.flatten())
}
