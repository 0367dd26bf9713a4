-- What executions that wait for their turn will be given then.
create table queued_requests (
    execution text    not null primary key references executions (id) on delete cascade,
    tenant    text    not null,
    bytes     integer not null,
    request   blob    not null -- JSON
) strict;
create index queued_requests_by_tenant on queued_requests (tenant, bytes);
create index executions_queued on executions (instance, created_at, id) where status = 'queued';

-- Under which keys clients have asked for executions, so that asking again is no second execution.
create table idempotency_keys (
    tenant      text    not null,
    key         text    not null,
    fingerprint text    not null, -- of the request
    execution   text    not null references executions (id) on delete cascade,
    created_at  integer not null,
    primary key (tenant, key)
) strict;
create index idempotency_keys_by_time on idempotency_keys (created_at);
create index idempotency_keys_by_execution on idempotency_keys (execution);

-- What is kept for each tenant: archives of skills, and what executions left. Blobs and packages have bounds of their own.
create table storage_used (
    tenant text    not null primary key,
    bytes  integer not null
) strict;
alter table executions add column kept_bytes integer not null default 0;
update executions set kept_bytes = (
    select coalesce(length(output), 0) + length(stdout) + length(stderr) + length(results) + length(log_lines)
        + (select coalesce(sum(value ->> '$.size'), 0) from json_each(files))
    from execution_results where execution = id
) where exists (select 1 from execution_results where execution = id);
insert into storage_used (tenant, bytes)
    select tenant, sum(bytes) from (
        select tenant, sum(archive_bytes) as bytes from skills group by tenant
        union all
        select tenant, sum(kept_bytes) from executions group by tenant
    ) group by tenant;
