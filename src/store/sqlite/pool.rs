//! A few connections, each used by one call at a time, off the async threads.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rusqlite::{Connection, Transaction};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::limits;
use crate::store::Error;

/// Connections, first come, first served; the wait of a call is limited.
#[derive(Debug)]
pub(super) struct Pool {
    idle: Arc<Idle>,
    permits: Arc<Semaphore>,
    /// Maximum wait of a call for a connection and then for a lock of another process, in all.
    wait_max: Duration,
}

/// Closed with the pool or with its last lease, whichever is later: a call may outlive both its caller and the store.
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
            wait_max: limits::STORE_WAIT_MAX,
            idle: Arc::new(Idle {
                connections: Mutex::new(connections),
                _closed_after: later,
            }),
        }
    }

    /// Runs `act` on a connection, and `then` after its return to the pool. A call that has begun completes even if its caller is
    /// dropped.
    pub(super) async fn with<A: Send + 'static, T: Send + 'static>(
        &self,
        act: impl FnOnce(&mut Connection) -> Result<A, Error> + Send + 'static,
        then: impl FnOnce(A) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        let give_up = Instant::now() + self.wait_max;
        let permit = tokio::time::timeout(self.wait_max, self.permits.clone().acquire_owned())
            .await
            .map_err(|_| Error::Busy)?
            .map_err(Error::backend)?;
        let mut lease = Lease::take(&self.idle, permit);
        let acted = move || {
            let connection = lease.connection();
            // Calls that queue behind a lock of another process share one limit, or else each would wait as long again.
            let done = limit_lock_wait(connection, give_up).and_then(|()| act(connection));
            drop(lease);
            done.and_then(then)
        };
        tokio::task::spawn_blocking(acted).await.map_err(Error::backend)?
    }

    /// An idle connection, if there is one.
    pub(super) fn idle(&self) -> Option<Lease> {
        let permit = self.permits.clone().try_acquire_owned().ok()?;
        Some(Lease::take(&self.idle, permit))
    }

    /// Releases the page caches of idle connections.
    pub(super) fn release_memory(&self) {
        for connection in self.idle.locked().iter() {
            if let Err(error) = connection.release_memory() {
                tracing::debug!(%error, "Page cache not released");
            }
        }
    }
}

impl Idle {
    fn locked(&self) -> MutexGuard<'_, Vec<Connection>> {
        self.connections.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A connection on loan; returns to the pool when dropped, also by a panic.
#[derive(Debug)]
pub(super) struct Lease {
    /// Always set until dropped.
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
        // Fields drop after this: the connection returns before its permit.
        self.idle.locked().extend(self.connection.take());
    }
}

/// Lets the connection wait for a lock of another process until `give_up`, and never longer than [`limits::STORE_LOCK_MAX`].
pub(super) fn limit_lock_wait(connection: &Connection, give_up: Instant) -> Result<(), Error> {
    let left = give_up.saturating_duration_since(Instant::now());
    Ok(connection.busy_timeout(left.min(limits::STORE_LOCK_MAX))?)
}

/// Runs `act` in a transaction and commits it; on an error nothing is changed.
pub(super) fn commit<T>(
    transaction: Transaction<'_>,
    act: impl FnOnce(&Connection) -> Result<T, Error>,
) -> Result<T, Error> {
    let value = act(&transaction)?;
    transaction.commit()?;
    Ok(value)
}

#[cfg(test)]
mod tests {
    use rusqlite::TransactionBehavior;

    use super::*;

    /// F-13: calls that queue behind a lock of another process end within the limit of one.
    #[tokio::test]
    async fn queued_calls_share_one_limit_for_a_foreign_lock() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("db");
        let mut foreign = Connection::open(&path).unwrap();
        let lock = foreign
            .transaction_with_behavior(TransactionBehavior::Exclusive)
            .unwrap();
        let pool = Pool {
            wait_max: Duration::from_secs(1),
            ..Pool::new(vec![Connection::open(&path).unwrap()])
        };
        let write = |connection: &mut Connection| Ok(connection.execute_batch("begin immediate; rollback")?);
        let began = Instant::now();
        let calls = (0..4).map(|_| pool.with(write, Ok));
        for result in futures::future::join_all(calls).await {
            assert!(matches!(result, Err(Error::Busy)), "{result:?}");
        }
        let waited = began.elapsed();
        assert!(
            (Duration::from_millis(900)..Duration::from_secs(3)).contains(&waited),
            "{waited:?}"
        );
        lock.commit().unwrap();
        pool.with(write, Ok).await.unwrap();
    }
}
