-- Blobs: one row for each content of a tenant. The bytes lie in the file store under `object`.
create table blobs (
    tenant     text    not null,
    digest     text    not null,
    object     text    not null,
    size       integer not null,
    media_type text    not null,
    created_at integer not null,
    expires_at integer not null, -- from then on it is not there, and its bytes may go
    primary key (tenant, digest)
) strict;
create index blobs_by_time on blobs (tenant, created_at desc, digest desc);
create index blobs_by_size on blobs (tenant, size);
create index blobs_by_expiry on blobs (expires_at);

-- Blobs that an execution made. Before, there were none.
alter table execution_results add column output_blobs text not null default '[]'; -- JSON
