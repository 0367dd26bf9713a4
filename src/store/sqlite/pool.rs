//! A few connections, each used by one call at a time, off the async threads.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rusqlite::{Connection, Transaction};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::limits;
use crate::store::Error;

/// Connections for whoever comes first; the wait for one is bounded.
#[derive(Debug)]
pub(super) struct Pool {
    idle: Arc<Idle>,
    permits: Arc<Semaphore>,
}

/// Closed with the pool or with its last lease, whichever comes later: a call may outlive both its caller and the store.
#[derive(Debug)]
struct Idle {
    connections: Mutex<Vec<Connection>>,
    /// Fields drop in order: these close after those above.
    _closed_after: Option<Arc<Idle>>,
}

impl Pool {
    pub(super) fn new(connections: Vec<Connection>) -> Self {
        Self::with_later(connections, None)
    }

    /// A pool whose connections are all closed before the first of `later` is.
    pub(super) fn closed_before(later: &Self, connections: Vec<Connection>) -> Self {
        Self::with_later(connections, Some(later.idle.clone()))
    }

    fn with_later(connections: Vec<Connection>, later: Option<Arc<Idle>>) -> Self {
        Self {
            permits: Arc::new(Semaphore::new(connections.len())),
            idle: Arc::new(Idle {
                connections: Mutex::new(connections),
                _closed_after: later,
            }),
        }
    }

    /// Runs `act` on a connection, and `then` when the connection is the next one's already. Once begun it runs to its end, even
    /// if the caller goes away.
    pub(super) async fn with<A: Send + 'static, T: Send + 'static>(
        &self,
        act: impl FnOnce(&mut Connection) -> Result<A, Error> + Send + 'static,
        then: impl FnOnce(A) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        let permit = tokio::time::timeout(limits::STORE_QUEUE_MAX, self.permits.clone().acquire_owned())
            .await
            .map_err(|_| Error::Busy)?
            .map_err(Error::backend)?;
        let mut lease = Lease::take(&self.idle, permit);
        let acted = move || {
            let done = act(lease.connection());
            drop(lease);
            done.and_then(then)
        };
        tokio::task::spawn_blocking(acted).await.map_err(Error::backend)?
    }

    /// A connection that nobody uses now.
    pub(super) fn idle(&self) -> Option<Lease> {
        let permit = self.permits.clone().try_acquire_owned().ok()?;
        Some(Lease::take(&self.idle, permit))
    }

    /// Connections that nobody uses give back the pages that they keep.
    pub(super) fn rest(&self) {
        for connection in self.idle.locked().iter() {
            if let Err(error) = connection.release_memory() {
                tracing::debug!(%error, "A connection keeps its pages");
            }
        }
    }
}

impl Idle {
    fn locked(&self) -> MutexGuard<'_, Vec<Connection>> {
        self.connections.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A connection on loan; goes back to the pool when dropped, also by a panic.
#[derive(Debug)]
pub(super) struct Lease {
    /// Always there until dropped.
    connection: Option<Connection>,
    idle: Arc<Idle>,
    _permit: OwnedSemaphorePermit,
}

impl Lease {
    fn take(idle: &Arc<Idle>, permit: OwnedSemaphorePermit) -> Self {
        Self {
            connection: idle.locked().pop(),
            idle: idle.clone(),
            _permit: permit,
        }
    }

    pub(super) fn connection(&mut self) -> &mut Connection {
        self.connection
            .as_mut()
            .expect("there are as many permits as connections")
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        // Fields drop after this: the connection is back before its permit is.
        self.idle.locked().extend(self.connection.take());
    }
}

/// Runs `act` in one transaction: all of it is kept, or on an error nothing.
pub(super) fn transact<T>(
    connection: &mut Connection,
    act: impl FnOnce(&Connection) -> Result<T, Error>,
) -> Result<T, Error> {
    whole(connection.transaction()?, act)
}

/// The same in a transaction that has begun.
pub(super) fn whole<T>(
    transaction: Transaction<'_>,
    act: impl FnOnce(&Connection) -> Result<T, Error>,
) -> Result<T, Error> {
    let value = act(&transaction)?;
    transaction.commit()?;
    Ok(value)
}
