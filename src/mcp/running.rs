//! Tool calls that run, so that a later message can cancel them. Stateless HTTP has no connection that both share.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio_util::sync::CancellationToken;

use crate::ids::KeyId;

/// Names a call for its client alone: request ids of two clients may be equal.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct CallId {
    pub key: KeyId,
    /// `Mcp-Session-Id`, which the server gives out and does not store.
    pub session: String,
    /// The JSON of the request's id.
    pub request: String,
}

/// At most one entry for each request that is being answered.
#[derive(Clone, Debug, Default)]
pub struct RunningCalls(Arc<Mutex<HashMap<CallId, CancellationToken>>>);

/// Removes its call from the list when dropped.
#[derive(Debug)]
pub(super) struct RunningCall {
    calls: RunningCalls,
    id: CallId,
}

/// The token of a call, and its entry in the list.
#[derive(Clone, Debug)]
pub(super) struct CancelHandle {
    pub(super) token: CancellationToken,
    _entry: Arc<RunningCall>,
}

impl RunningCalls {
    /// `None` if the client already runs a call with this id, which then stays the one that can be cancelled.
    pub(super) fn begin(&self, id: CallId) -> Option<CancelHandle> {
        let token = CancellationToken::new();
        let mut calls = self.entries();
        if calls.contains_key(&id) {
            return None;
        }
        calls.insert(id.clone(), token.clone());
        drop(calls);
        let calls = self.clone();
        Some(CancelHandle {
            token,
            _entry: Arc::new(RunningCall { calls, id }),
        })
    }

    /// Cancels a call; without effect if it has ended.
    pub fn cancel(&self, id: &CallId) {
        if let Some(token) = self.entries().get(id) {
            token.cancel();
        }
    }

    fn entries(&self) -> MutexGuard<'_, HashMap<CallId, CancellationToken>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for RunningCall {
    fn drop(&mut self) {
        self.calls.entries().remove(&self.id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(session: &str, request: &str) -> CallId {
        CallId {
            key: KeyId::generate(),
            session: session.to_owned(),
            request: request.to_owned(),
        }
    }

    #[test]
    fn cancels_only_the_call_of_the_same_key_session_and_request() {
        let calls = RunningCalls::default();
        let own = id("a", "1");
        let handle = calls.begin(own.clone()).unwrap();
        calls.cancel(&id("a", "1"));
        for other in [
            CallId {
                session: "b".to_owned(),
                ..own.clone()
            },
            CallId {
                request: "2".to_owned(),
                ..own.clone()
            },
        ] {
            calls.cancel(&other);
        }
        assert!(!handle.token.is_cancelled());
        assert!(calls.begin(own.clone()).is_none(), "the first one stays");
        calls.cancel(&own);
        assert!(handle.token.is_cancelled());
    }

    #[test]
    fn forgets_a_call_that_has_ended() {
        let calls = RunningCalls::default();
        let own = id("a", "1");
        drop(calls.begin(own.clone()));
        assert!(calls.entries().is_empty());
        calls.cancel(&own);
        assert!(calls.begin(own).is_some());
    }
}
