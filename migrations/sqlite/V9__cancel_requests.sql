-- When another process asked the one that owns an execution to cancel it.
alter table executions add column cancel_requested_at integer;
create index executions_cancel_requested on executions (instance)
    where cancel_requested_at is not null and finished_at is null;
