-- Webhooks: one for each execution whose end is to be told, from its begin on.
create table deliveries (
    id          text    not null primary key,
    execution   text    not null references executions (id) on delete cascade,
    tenant      text    not null,
    url         text    not null,
    host        text    not null,
    status      text    not null default 'waiting', -- pending, sending; for good: delivered, gone, failed
    attempts    integer not null default 0,
    -- Attempts before it was last asked for anew.
    before      integer not null default 0,
    -- When it is sent next; while it is being sent, when whoever sends it is given up. Else null.
    next_at     integer,
    last_at     integer,
    last_status integer,
    last_error  text,
    created_at  integer not null
) strict;
create unique index deliveries_by_execution on deliveries (execution);
create index deliveries_by_time on deliveries (tenant, created_at desc, id desc);
create index deliveries_next on deliveries (next_at) where next_at is not null;
create index deliveries_due on deliveries (tenant, next_at, id, host) where next_at is not null;
create index deliveries_sent on deliveries (tenant, host, next_at) where status = 'sending';

-- However an execution ends, whoever ends it: in the same transaction.
create trigger execution_is_told after update of finished_at on executions
when old.finished_at is null and new.finished_at is not null
begin
    update deliveries set status = 'pending', next_at = new.finished_at where execution = new.id and status = 'waiting';
end;

-- What webhooks are signed with. Sealed as secrets are, under a name that no secret can have.
create table signing_secrets (
    tenant         text    not null primary key,
    sealed         blob    not null,
    created_at     integer not null,
    -- The one before, which signs too until this time.
    previous       blob,
    previous_until integer
) strict;
