//! Sessions of the dashboard, and the links that open them.

use jiff::Timestamp;
use rusqlite::{Row, named_params};

use super::row::{all, before, execute, first, text, time};
use super::{Sqlite, keys};
use crate::auth::{KeyRecord, KeyedSession, SessionRecord, SignInLink};
use crate::ids::{Digest, SessionId, Tenant};
use crate::store::cursor::Moment;
use crate::store::sessions::Sessions;
use crate::store::{Error, SessionEnd, SessionQuota};

/// A session with its key, whose columns keep their names.
macro_rules! keyed_session {
    ($terms:literal) => {
        concat!(
            "select sessions.id as session, cookie_hash, page_hash, sessions.created_at as opened_at, used_at,
                sessions.expires_at as ends_at, keys.id, keys.tenant, name, hint, keys.hash, scopes, keys.created_at,
                keys.expires_at, revoked_at
            from sessions join keys on keys.id = sessions.key and keys.tenant = sessions.tenant ",
            $terms
        )
    };
}

const INSERT: &str =
    "insert into sessions (id, tenant, key, cookie_hash, page_hash, created_at, used_at, expires_at)
    values (:id, :tenant, :key, :cookie_hash, :page_hash, :created_at, :used_at, :expires_at)";
const EVICT_OF_KEY: &str = "delete from sessions where id in (
    select id from sessions where tenant = ?1 and key = ?2 order by used_at desc, id desc limit -1 offset ?3)";
const EVICT_OF_TENANT: &str = "delete from sessions where id in (
    select id from sessions where tenant = ?1 order by used_at desc, id desc limit -1 offset ?2)";
const BY_COOKIE: &str = keyed_session!("where cookie_hash = ?1");
const BY_ID: &str = keyed_session!("where sessions.tenant = ?1 and sessions.id = ?2");
const USE: &str = "update sessions set used_at = ?3 where tenant = ?1 and id = ?2 and used_at < ?3";
const DELETE: &str = "delete from sessions where tenant = ?1 and id = ?2";
const PAGE: &str = keyed_session!(
    "where sessions.tenant = :tenant and (sessions.created_at, sessions.id) < (:at, :id)
        and sessions.expires_at > :now and used_at > :idle_since
        and revoked_at is null and (keys.expires_at is null or keys.expires_at > :now)
    order by sessions.created_at desc, sessions.id desc limit :rows"
);
const DELETE_ENDED: &str = "delete from sessions where id in (
    select sessions.id from sessions join keys on keys.id = sessions.key
    where sessions.expires_at <= ?1 or used_at <= ?2 or revoked_at is not null or keys.expires_at <= ?1
    limit ?3)";
const INSERT_LINK: &str = "insert into sign_in_links (hash, tenant, key, expires_at) values (?1, ?2, ?3, ?4)";
const EVICT_LINKS: &str = "delete from sign_in_links where hash in (
    select hash from sign_in_links where tenant = ?1 and key = ?2 order by expires_at desc, hash limit -1 offset ?3)";
const TAKE_LINK: &str =
    "delete from sign_in_links where hash = ?1 and expires_at > ?2 returning tenant, key as id";
const DELETE_EXPIRED_LINKS: &str = "delete from sign_in_links where hash in (
    select hash from sign_in_links where expires_at <= ?1 limit ?2)";

impl Sessions for Sqlite {
    async fn add_session(&self, session: SessionRecord, quota: SessionQuota) -> Result<(), Error> {
        self.write(move |c| {
            let (tenant, key) = (session.tenant.as_str(), session.key.to_string());
            c.prepare_cached(INSERT)?.execute(named_params! {
                ":id": session.id.to_string(),
                ":tenant": tenant,
                ":key": key,
                ":cookie_hash": session.cookie_hash.to_string(),
                ":page_hash": session.page_hash.to_string(),
                ":created_at": session.created_at.as_microsecond(),
                ":used_at": session.used_at.as_microsecond(),
                ":expires_at": session.expires_at.as_microsecond(),
            })?;
            execute(c, EVICT_OF_KEY, (tenant, key, quota.per_key))?;
            execute(c, EVICT_OF_TENANT, (tenant, quota.per_tenant))?;
            Ok(())
        })
        .await
    }

    async fn session_by_cookie(&self, hash: &Digest) -> Result<KeyedSession, Error> {
        let hash = hash.to_string();
        let found = match self.try_read_now(|c| first(c, BY_COOKIE, [&hash], keyed_session)) {
            Some(found) => found?,
            None => {
                self.read(move |c| first(c, BY_COOKIE, [hash], keyed_session))
                    .await?
            }
        };
        found.ok_or_else(|| Error::NotFound("session".to_owned()))
    }

    async fn session(&self, tenant: &Tenant, id: SessionId) -> Result<KeyedSession, Error> {
        let terms = (tenant.to_string(), id.to_string());
        let found = self.read(move |c| first(c, BY_ID, terms, keyed_session)).await?;
        found.ok_or_else(|| Error::not_found("session", id))
    }

    async fn use_session(&self, tenant: &Tenant, id: SessionId, at: Timestamp) -> Result<(), Error> {
        let terms = (tenant.to_string(), id.to_string(), at.as_microsecond());
        self.write(move |c| execute(c, USE, terms).map(drop)).await
    }

    async fn delete_session(&self, tenant: &Tenant, id: SessionId) -> Result<(), Error> {
        let terms = (tenant.to_string(), id.to_string());
        self.write(move |c| match execute(c, DELETE, terms)? {
            0 => Err(Error::not_found("session", id)),
            _ => Ok(()),
        })
        .await
    }

    async fn add_sign_in_link(&self, link: SignInLink, max: u32) -> Result<(), Error> {
        self.write(move |c| {
            let (tenant, key) = (link.tenant.to_string(), link.key.to_string());
            let expires_at = link.expires_at.as_microsecond();
            execute(c, INSERT_LINK, (link.hash.to_string(), &tenant, &key, expires_at))?;
            execute(c, EVICT_LINKS, (tenant, key, max))?;
            Ok(())
        })
        .await
    }

    async fn take_sign_in_link(&self, hash: &Digest, now: Timestamp) -> Result<KeyRecord, Error> {
        let terms = (hash.to_string(), now.as_microsecond());
        self.write(move |c| {
            let owner = first(c, TAKE_LINK, terms, |row| {
                Ok((row.get::<_, String>("tenant")?, row.get::<_, String>("id")?))
            })?;
            let key = match owner {
                Some(owner) => first(c, keys::BY_ID, owner, keys::record)?,
                None => None,
            };
            key.ok_or_else(|| Error::NotFound("sign-in link".to_owned()))
        })
        .await
    }

    async fn delete_ended_sessions(&self, end: SessionEnd, rows: u32) -> Result<(), Error> {
        let (now, idle_since) = (end.now.as_microsecond(), end.idle_since.as_microsecond());
        self.write(move |c| {
            execute(c, DELETE_ENDED, (now, idle_since, rows))?;
            execute(c, DELETE_EXPIRED_LINKS, (now, rows))?;
            Ok(())
        })
        .await
    }

    async fn sessions(
        &self,
        tenant: &Tenant,
        end: SessionEnd,
        after: Option<Moment<SessionId>>,
        rows: u32,
    ) -> Result<Vec<KeyedSession>, Error> {
        let (tenant, (at, id)) = (tenant.to_string(), before(after));
        self.read(move |c| {
            let terms = named_params! {
                ":tenant": tenant,
                ":at": at,
                ":id": id,
                ":now": end.now.as_microsecond(),
                ":idle_since": end.idle_since.as_microsecond(),
                ":rows": rows,
            };
            all(c, PAGE, terms, keyed_session)
        })
        .await
    }
}

fn keyed_session(row: &Row<'_>) -> Result<KeyedSession, Error> {
    let key = keys::record(row)?;
    Ok(KeyedSession {
        session: SessionRecord {
            id: text(row, "session")?,
            tenant: key.tenant.clone(),
            key: key.id,
            cookie_hash: text(row, "cookie_hash")?,
            page_hash: text(row, "page_hash")?,
            created_at: time(row, "opened_at")?,
            used_at: time(row, "used_at")?,
            expires_at: time(row, "ends_at")?,
        },
        key,
    })
}
