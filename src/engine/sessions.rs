//! Sessions of the dashboard: opened with a key or a sign-in link, checked at each request, ended.

use crate::auth::{
    Caller, KeyRecord, KeyedSession, PresentedSession, SessionRecord, SessionToken, SignInLink,
};
use crate::engine::keys::rejected_key;
use crate::engine::{PageRequest, Sessions, clock, rows};
use crate::error::{Code, Error};
use crate::ids::{SessionId, Tenant};
use crate::limits;
use crate::store::{self, Page, SessionEnd, SessionQuota};

/// A new session. Its tokens are returned once.
#[derive(Debug)]
pub struct OpenedSession {
    pub caller: Caller,
    pub cookie: SessionToken,
    pub page: SessionToken,
    pub expires_at: jiff::Timestamp,
}

/// A new sign-in link. Its token is returned once.
#[derive(Debug)]
pub struct NewSignInLink {
    pub token: SessionToken,
    pub expires_at: jiff::Timestamp,
}

impl Sessions<'_> {
    /// Signs in with an API key.
    pub async fn open_with_key(self, presented: &str) -> Result<OpenedSession, Error> {
        let key = self.engine.keys().find_presented(presented).await?;
        self.open(&key).await
    }

    /// Signs in with the token of a link, which is used up even if the sign-in fails later.
    pub async fn open_with_link(self, presented: &str) -> Result<OpenedSession, Error> {
        let rejected = || {
            Error::new(
                Code::Unauthenticated,
                "token: not valid, used before, or older than 10 minutes; get a new link with `skillbox open`",
            )
        };
        let token: SessionToken = presented.parse().map_err(|_| rejected())?;
        let hash = token.hash();
        match self.engine.store.take_sign_in_link(&hash, clock::now()).await {
            Ok(key) => self.open(&key).await,
            Err(store::Error::NotFound(_)) => Err(rejected()),
            Err(error) => Err(error.into()),
        }
    }

    async fn open(self, key: &KeyRecord) -> Result<OpenedSession, Error> {
        let now = clock::now();
        let (cookie, page) = (generate()?, generate()?);
        let session = SessionRecord {
            id: SessionId::generate(),
            tenant: key.tenant.clone(),
            key: key.id,
            cookie_hash: cookie.hash(),
            page_hash: page.hash(),
            created_at: now,
            used_at: now,
            expires_at: SessionRecord::expiry(key, now),
        };
        let presented = PresentedSession { cookie, page };
        let found = KeyedSession {
            session,
            key: key.clone(),
        };
        let caller = Caller::in_session(&found, &presented, now).map_err(|_| rejected_key())?;
        let expires_at = found.session.expires_at;
        let quota = SessionQuota {
            per_key: limits::SESSIONS_PER_KEY_MAX,
            per_tenant: limits::SESSIONS_PER_TENANT_MAX,
        };
        self.engine.store.add_session(found.session, quota).await?;
        Ok(OpenedSession {
            caller,
            cookie: presented.cookie,
            page: presented.page,
            expires_at,
        })
    }

    /// The caller behind a cookie and a page token.
    pub async fn authenticate(self, presented: &PresentedSession) -> Result<Caller, Error> {
        let rejected = || {
            Error::new(
                Code::Unauthenticated,
                "the session has ended or its page token is wrong; sign in again",
            )
        };
        let store = &self.engine.store;
        let found = match store.session_by_cookie(&presented.cookie.hash()).await {
            Ok(found) => found,
            Err(store::Error::NotFound(_)) => return Err(rejected()),
            Err(error) => return Err(error.into()),
        };
        let now = clock::now();
        let caller = Caller::in_session(&found, presented, now).map_err(|_| rejected())?;
        let session = &found.session;
        if session.records_use(now)
            && let Err(error) = store.use_session(&session.tenant, session.id, now).await
        {
            // A full disk must not keep users from reading.
            tracing::warn!(%error, session.id = %session.id, "Use of a session not recorded; it may end early");
        }
        Ok(caller)
    }

    /// A session of the tenant that has not ended.
    pub async fn find(self, tenant: &Tenant, id: SessionId) -> Result<KeyedSession, Error> {
        Ok(self.engine.store.session(tenant, id).await?)
    }

    /// The tenant's sessions that have not ended, newest first.
    pub async fn list(self, tenant: &Tenant, page: PageRequest) -> Result<Page<KeyedSession>, Error> {
        let rows = rows(&page);
        let listed = self.engine.store.sessions(tenant, end_now(), page.after, rows);
        Ok(listed.await?)
    }

    /// Permanent, with immediate effect.
    pub async fn end(self, tenant: &Tenant, id: SessionId) -> Result<(), Error> {
        self.engine.store.delete_session(tenant, id).await?;
        self.engine.recheck_readers();
        tracing::info!(session.id = %id, "Ended session {id}");
        Ok(())
    }

    /// A link that signs in once with the key of `caller`.
    pub async fn create_link(self, caller: &Caller) -> Result<NewSignInLink, Error> {
        let token = generate()?;
        let expires_at = clock::kept(clock::now() + limits::SIGN_IN_LINK_LIFE);
        let link = SignInLink {
            hash: token.hash(),
            tenant: caller.tenant().clone(),
            key: caller.key(),
            expires_at,
        };
        let max = limits::SIGN_IN_LINKS_PER_KEY_MAX;
        self.engine.store.add_sign_in_link(link, max).await?;
        Ok(NewSignInLink { token, expires_at })
    }

    /// Deletes sessions and links that have ended.
    pub(super) async fn delete_ended(self) -> Result<(), Error> {
        let rows = limits::ENDED_SESSIONS_PER_ROUND;
        Ok(self.engine.store.delete_ended_sessions(end_now(), rows).await?)
    }
}

fn end_now() -> SessionEnd {
    let now = clock::now();
    SessionEnd {
        now,
        idle_since: SessionRecord::idle_since(now),
    }
}

fn generate() -> Result<SessionToken, Error> {
    let mut random = [0; 32];
    getrandom::fill(&mut random).map_err(|error| Error::internal(error.to_string()))?;
    Ok(SessionToken::from_random(random))
}
