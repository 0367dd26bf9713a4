-- Requests as they were sent, to be shown and run again; compressed if that saves space. Executions of earlier releases have none.
create table execution_requests (
    execution text not null primary key references executions (id) on delete cascade,
    request   blob not null -- JSON, or JSON compressed by zlib
) strict, without rowid;
