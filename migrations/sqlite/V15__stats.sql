-- The API key that started an execution, as it was called then. Null for executions of earlier releases and of command lines.
alter table executions add column key_id text;
alter table executions add column key_name text;
create index executions_by_key on executions (tenant, key_id, status, created_at desc, id desc) where key_id is not null;
-- A list of one skill reads `executions_by_skill_and_status` for each status.
drop index executions_by_skill;

-- CPU time of an execution that has ended. Null for executions of earlier releases.
alter table executions add column cpu_ms integer;
-- All that statistics read of an execution.
drop index executions_by_end;
create index executions_by_end on executions (tenant, finished_at, status, skill, created_at, cpu_ms)
    where finished_at is not null;

-- Ended executions, counted by time of end: one row for each period of `seconds`.
create table execution_counts (
    tenant      text    not null,
    seconds     integer not null, -- 300, 3600 or 86400
    skill       text    not null, -- '' for code, '*' for all
    start       integer not null,
    success     integer not null,
    failed      integer not null,
    timeout     integer not null,
    oom         integer not null,
    cancelled   integer not null,
    denied      integer not null,
    interrupted integer not null,
    cpu_ms      integer not null,
    durations   blob    not null, -- a histogram
    primary key (tenant, seconds, skill, start)
) strict, without rowid;
create index execution_counts_by_start on execution_counts (seconds, start);

-- Executions of a tenant that ended before this time are in `execution_counts`; without a row none is.
create table execution_counts_until (
    tenant text    not null primary key,
    until  integer not null
) strict;
