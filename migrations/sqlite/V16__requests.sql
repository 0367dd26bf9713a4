-- Requests as they were sent, to be shown and run again: JSON, or JSON compressed by zlib. Executions of earlier releases have none.
-- Small ones are in the row itself, which costs no further page when it is inserted.
alter table executions add column kept_request blob;
create table execution_requests (
    execution text not null primary key references executions (id) on delete cascade,
    request   blob not null
) strict, without rowid;
