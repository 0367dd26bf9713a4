-- Installed packages that are kept, each under what they were asked for and built for. Their bytes are in the blob store.
create table package_sets (
    tenant     text    not null,
    key        text    not null,
    language   text    not null,
    wanted     text    not null, -- JSON
    digest     text    not null,
    bytes      integer not null,
    files      integer not null,
    created_at integer not null,
    used_at    integer not null,
    primary key (tenant, key)
) strict;
create index package_sets_by_time on package_sets (tenant, created_at desc, key desc);
create index package_sets_by_use on package_sets (used_at);
create index package_sets_by_digest on package_sets (digest);
