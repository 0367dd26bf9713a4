-- Sessions of the dashboard. Of the cookie and the page token only hashes are stored. A session has no scopes of its own: each
-- request reads those of its key, and whether the key is still valid.
create table sessions (
    id          text    not null primary key,
    tenant      text    not null,
    key         text    not null references keys (id) on delete cascade,
    cookie_hash text    not null unique,
    page_hash   text    not null,
    created_at  integer not null,
    used_at     integer not null, -- exact to a few minutes
    expires_at  integer not null
) strict;
create index sessions_by_time on sessions (tenant, created_at desc, id desc);
create index sessions_by_use on sessions (tenant, key, used_at desc, id desc);

-- Unused sign-in links: a link is deleted when it is used.
create table sign_in_links (
    hash       text    not null primary key,
    tenant     text    not null,
    key        text    not null references keys (id) on delete cascade,
    expires_at integer not null
) strict;
create index sign_in_links_by_key on sign_in_links (tenant, key, expires_at desc);

-- Who changed what. A row is never changed; the oldest rows of a tenant are deleted beyond a limit.
create table audit (
    tenant     text    not null,
    number     integer not null, -- counts the rows of the tenant, from 1
    id         text    not null,
    at         integer not null,
    key        text    not null,
    key_name   text    not null, -- as it was then
    session    text,
    action     text    not null,
    target     text,
    address    text,
    request_id text,
    primary key (tenant, number)
) strict, without rowid;
create index audit_by_time on audit (at);
create trigger audit_is_append_only before update on audit
begin
    select raise(abort, 'the audit trail is append-only');
end;
