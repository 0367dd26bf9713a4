//! Sessions of the dashboard: signing in and out, the list of sessions, and sign-in links.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::{ADMIN, ANY_KEY, List, audit, require};
use crate::auth::{AuditAction, Caller, KeyedSession, RequestSource, Scope};
use crate::engine::{Engine, OpenedSession, PageRequest};
use crate::error::{Code, Error};
use crate::ids::{KeyId, SessionId, Tenant};

/// An API key, or the token of a sign-in link.
#[derive(Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"token": "…"}))]
pub struct SignIn {
    /// API key.
    #[serde(default)]
    #[schema(value_type = String)]
    pub key: Option<String>,
    /// Token of a sign-in link: what follows `#token=`.
    #[serde(default)]
    #[schema(value_type = String)]
    pub token: Option<String>,
}

impl fmt::Debug for SignIn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SignIn(…)")
    }
}

/// The key of a session or request.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
#[schema(as = CallingKey)]
pub struct CallingKey {
    /// Public id of the key.
    #[schema(value_type = String, format = Uuid)]
    pub id: KeyId,
    /// Name of the key.
    #[schema(example = "ci")]
    pub name: String,
    pub scopes: Vec<Scope>,
}

/// A new session. The page token is never shown again.
#[derive(Clone, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
#[schema(as = NewSession)]
pub struct NewSession {
    /// Send as header `X-Skillbox-Page`, together with the cookie.
    #[schema(example = "…")]
    pub page_token: String,
    /// Latest end of the session. It ends earlier after 12 hours without a request, and with its key.
    #[schema(value_type = String, format = DateTime)]
    pub expires_at: jiff::Timestamp,
    /// Tenant of the key.
    #[schema(value_type = String, format = "tenant", example = "default")]
    pub tenant: Tenant,
    pub key: CallingKey,
}

impl fmt::Debug for NewSession {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("NewSession").field(&self.key).finish()
    }
}

/// Who sent the request.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Identity {
    /// The session; `null` for a request with an API key.
    #[schema(value_type = Option<String>, format = Uuid, required)]
    pub session_id: Option<SessionId>,
    /// Latest end of the session; `null` for a request with an API key.
    #[schema(value_type = Option<String>, format = DateTime, required)]
    pub expires_at: Option<jiff::Timestamp>,
    /// Tenant of the key.
    #[schema(value_type = String, format = "tenant", example = "default")]
    pub tenant: Tenant,
    pub key: CallingKey,
}

/// A session, without its tokens.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
#[schema(as = Session)]
pub struct SessionInfo {
    /// Public id.
    #[schema(value_type = String, format = Uuid)]
    pub session_id: SessionId,
    /// The key that opened it.
    pub key: CallingKey,
    /// Time of the sign-in.
    #[schema(value_type = String, format = DateTime)]
    pub created_at: jiff::Timestamp,
    /// Time of the last request, exact to 5 minutes.
    #[schema(value_type = String, format = DateTime)]
    pub used_at: jiff::Timestamp,
    /// Latest end of the session.
    #[schema(value_type = String, format = DateTime)]
    pub expires_at: jiff::Timestamp,
    /// Whether this request was sent by it.
    pub current: bool,
}

/// A link that signs in once.
#[derive(Clone, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
#[schema(as = SignInLink)]
pub struct SignInUrl {
    /// Address of the dashboard with a token, which servers and proxies do not see.
    #[schema(example = "http://127.0.0.1:8080/ui/#token=…")]
    pub url: String,
    /// When the link stops working.
    #[schema(value_type = String, format = DateTime)]
    pub expires_at: jiff::Timestamp,
}

impl fmt::Debug for SignInUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SignInUrl")
            .field("expires_at", &self.expires_at)
            .finish_non_exhaustive()
    }
}

/// Opens a session with a key or a token. Needs no caller: the body is the proof.
pub async fn open(engine: &Engine, body: SignIn, source: RequestSource) -> Result<OpenedSession, Error> {
    let runner = engine.clone();
    // Detached: a client that disconnects must not keep a used link out of the audit trail.
    let work = async move {
        let opened = match (body.key, body.token) {
            (Some(key), None) => runner.sessions().open_with_key(&key).await?,
            (None, Some(token)) => runner.sessions().open_with_link(&token).await?,
            (Some(_), Some(_)) | (None, None) => {
                return Err(Error::invalid("key, token: send exactly one of them"));
            }
        };
        let caller = opened.caller.from_source(source);
        let session = caller.session().map(|id| id.to_string());
        let audit = runner.audit();
        audit.record(&caller, AuditAction::SessionOpened, session).await;
        Ok(OpenedSession { caller, ..opened })
    };
    engine.run_detached(work).await
}

pub async fn identity(engine: &Engine, caller: &Caller) -> Result<Identity, Error> {
    require(caller, ANY_KEY)?;
    let expires_at = match caller.session() {
        Some(id) => {
            let found = engine.sessions().find(caller.tenant(), id).await?;
            Some(found.session.expires_at)
        }
        None => None,
    };
    Ok(Identity {
        session_id: caller.session(),
        expires_at,
        tenant: caller.tenant().clone(),
        key: caller.into(),
    })
}

/// Ends the caller's own session.
pub async fn sign_out(engine: &Engine, caller: &Caller) -> Result<(), Error> {
    require(caller, ANY_KEY)?;
    let Some(id) = caller.session() else {
        return Err(Error::invalid(
            "a request with an API key has no session; revoke the key to end it",
        ));
    };
    end_recorded(engine, caller, id).await
}

async fn end_recorded(engine: &Engine, caller: &Caller, id: SessionId) -> Result<(), Error> {
    let tenant = caller.tenant().clone();
    let ended = audit::recorded(engine, caller, AuditAction::SessionEnded, |engine| async move {
        engine.sessions().end(&tenant, id).await?;
        Ok(((), id.to_string()))
    });
    ended.await
}

/// Sessions that have not ended, newest first.
pub async fn list(engine: &Engine, caller: &Caller, page: PageRequest) -> Result<List<SessionInfo>, Error> {
    require(caller, ADMIN)?;
    let found = engine.sessions().list(caller.tenant(), page).await?;
    let mut list = List::<SessionInfo>::of(&found);
    for session in &mut list.items {
        session.current = Some(session.session_id) == caller.session();
    }
    Ok(list)
}

pub async fn end(engine: &Engine, caller: &Caller, id: SessionId) -> Result<(), Error> {
    require(caller, ADMIN)?;
    end_recorded(engine, caller, id).await
}

/// A link to the dashboard at `base_url`. A session cannot extend itself with one.
pub async fn create_link(engine: &Engine, caller: &Caller, base_url: &str) -> Result<SignInUrl, Error> {
    require(caller, ANY_KEY)?;
    if caller.session().is_some() {
        return Err(Error::new(
            Code::Forbidden,
            "sign-in links are created with an API key; run `skillbox open`",
        ));
    }
    let key = caller.clone();
    let created = audit::recorded(
        engine,
        caller,
        AuditAction::SignInLinkCreated,
        |engine| async move {
            let link = engine.sessions().create_link(&key).await?;
            Ok((link, key.key().to_string()))
        },
    );
    let link = created.await?;
    Ok(SignInUrl {
        url: format!("{base_url}/ui/#token={}", link.token.reveal()),
        expires_at: link.expires_at,
    })
}

impl From<&OpenedSession> for NewSession {
    fn from(opened: &OpenedSession) -> Self {
        Self {
            page_token: opened.page.reveal().to_owned(),
            expires_at: opened.expires_at,
            tenant: opened.caller.tenant().clone(),
            key: (&opened.caller).into(),
        }
    }
}

impl From<&Caller> for CallingKey {
    fn from(caller: &Caller) -> Self {
        Self {
            id: caller.key(),
            name: caller.key_name().to_owned(),
            scopes: caller.scopes().iter().collect(),
        }
    }
}

impl From<&KeyedSession> for SessionInfo {
    fn from(found: &KeyedSession) -> Self {
        let KeyedSession { session, key } = found;
        Self {
            session_id: session.id,
            key: CallingKey {
                id: key.id,
                name: key.name.clone(),
                scopes: key.scopes.iter().collect(),
            },
            created_at: session.created_at,
            used_at: session.used_at,
            expires_at: session.expires_at,
            current: false,
        }
    }
}
