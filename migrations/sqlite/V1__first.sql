-- Times are microseconds since 1970 in UTC, sizes are bytes, digests are `sha256:<hex>`, ids are lower-case UUIDs.

-- One row for each published version of a skill.
create table skills (
    tenant         text    not null,
    name           text    not null,
    version        text    not null,
    push           integer not null, -- counts the pushes of this skill, from 1
    rank           text,             -- major.minor.patch in sortable form; null for a pre-release
    digest         text    not null,
    manifest       text    not null, -- JSON
    archive_bytes  integer not null,
    unpacked_bytes integer not null,
    files          integer not null,
    created_at     integer not null,
    primary key (tenant, name, version)
) strict;
-- The first row of a skill in this order is its `latest`.
create index skills_by_rank on skills (tenant, name, rank desc, push desc);
create unique index skills_by_push on skills (tenant, name, push);
create index skills_by_digest on skills (digest, tenant, name);

-- API keys; never the secret itself.
create table keys (
    id         text    not null primary key,
    tenant     text    not null,
    name       text    not null,
    hint       text    not null,
    hash       text    not null unique,
    scopes     text    not null,  -- JSON
    created_at integer not null,
    expires_at integer,
    revoked_at integer
) strict;
create index keys_by_time on keys (tenant, created_at desc, id desc);

-- One small row for each execution: all that a list shows.
create table executions (
    id             text    not null primary key,
    tenant         text    not null,
    status         text    not null,
    skill          text,
    version        text,
    digest         text,
    language       text    not null,
    image          text    not null,
    backend        text    not null,
    backend_reason text    not null,
    limits         text    not null, -- JSON
    instance       text    not null,
    created_at     integer not null,
    -- From here on null until it has ended.
    finished_at    integer,
    error_code     text,
    error_message  text,
    exit_code      integer,
    skipped_total  integer,
    usage          text,             -- JSON
    timings        text              -- JSON
) strict;
create index executions_by_time on executions (tenant, created_at desc, id desc);
create index executions_by_status on executions (tenant, status, created_at desc, id desc);
create index executions_by_skill on executions (tenant, skill, created_at desc, id desc);
create index executions_by_skill_and_status on executions (tenant, skill, status, created_at desc, id desc);
create index executions_running on executions (instance) where status = 'running';
create index executions_by_end on executions (finished_at) where finished_at is not null;

-- The big values of an execution that has ended: no list ever reads them.
create table execution_results (
    execution    text    not null primary key references executions (id) on delete cascade,
    output       text,             -- JSON, byte for byte as the program wrote it
    stdout       blob    not null,
    stderr       blob    not null,
    stdout_total integer not null,
    stderr_total integer not null,
    files        text    not null, -- JSON
    skipped      text    not null  -- JSON
) strict;
