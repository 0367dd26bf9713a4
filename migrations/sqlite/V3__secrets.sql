-- Secrets. The value is sealed under a key that the database does not hold, for this tenant and name alone.
create table secrets (
    tenant     text    not null,
    name       text    not null,
    sealed     blob    not null,
    created_at integer not null,
    updated_at integer not null,
    primary key (tenant, name)
) strict;
