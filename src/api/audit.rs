//! The audit trail: what administrators read, and how acts of this layer are recorded.

use std::net::IpAddr;

use serde::{Deserialize, Serialize};

use super::{ADMIN, List, require};
use crate::auth::{AuditAction, AuditEntry, Caller};
use crate::engine::{Engine, PageRequest};
use crate::error::Error;
use crate::ids::{AuditId, KeyId, SessionId};

/// An act that changed who may do what, or what programs receive.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
#[schema(as = AuditEntry)]
pub struct AuditEntryInfo {
    #[schema(value_type = String, format = Uuid)]
    pub id: AuditId,
    /// Time of the act.
    #[schema(value_type = String, format = DateTime)]
    pub at: jiff::Timestamp,
    pub actor: Actor,
    /// What was done, such as `key.created`.
    #[schema(example = "key.created")]
    pub action: String,
    /// What it was done to: an id, a name, or `name@version`.
    #[schema(required)]
    pub target: Option<String>,
    /// Address of the client, or of the proxy in front of the server; `null` for a command with its own engine.
    #[schema(value_type = Option<String>, required, example = "127.0.0.1")]
    pub from: Option<IpAddr>,
    /// `X-Request-Id` of the request.
    #[schema(required)]
    pub request_id: Option<String>,
}

/// Who did it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Actor {
    /// The API key.
    #[schema(value_type = String, format = Uuid)]
    pub key_id: KeyId,
    /// The name of the key at that time.
    #[schema(example = "ci")]
    pub key_name: String,
    /// The session of the dashboard; `null` for a request with the key itself.
    #[schema(value_type = Option<String>, format = Uuid, required)]
    pub session: Option<SessionId>,
}

/// Newest first.
pub async fn list(
    engine: &Engine,
    caller: &Caller,
    page: PageRequest,
) -> Result<List<AuditEntryInfo>, Error> {
    require(caller, ADMIN)?;
    Ok(List::of(&engine.audit().list(caller.tenant(), page).await?))
}

/// Does `act` and records it, both even if the client disconnects. `act` returns its result and what it was done to.
pub async fn recorded<T, A>(
    engine: &Engine,
    caller: &Caller,
    action: AuditAction,
    act: impl FnOnce(Engine) -> A,
) -> Result<T, Error>
where
    T: Send + 'static,
    A: Future<Output = Result<(T, String), Error>> + Send + 'static,
{
    let (act, caller, recorder) = (act(engine.clone()), caller.clone(), engine.clone());
    let work = async move {
        let (done, target) = act.await?;
        recorder.audit().record(&caller, action, Some(target)).await;
        Ok(done)
    };
    engine.run_detached(work).await
}

impl From<&AuditEntry> for AuditEntryInfo {
    fn from(entry: &AuditEntry) -> Self {
        Self {
            id: entry.id,
            at: entry.at,
            actor: Actor {
                key_id: entry.key,
                key_name: entry.key_name.clone(),
                session: entry.session,
            },
            action: entry.action.as_str().to_owned(),
            target: entry.target.clone(),
            from: entry.source.address,
            request_id: entry.source.request_id.clone(),
        }
    }
}
