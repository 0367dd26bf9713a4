//! A few connections, each used by one call at a time, off the async threads.

use std::sync::{Arc, Mutex, PoisonError};

use rusqlite::Connection;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::limits;
use crate::store::Error;

/// Connections for whoever comes first; the wait for one is bounded.
#[derive(Debug)]
pub(super) struct Pool {
    idle: Arc<Mutex<Vec<Connection>>>,
    permits: Arc<Semaphore>,
}

impl Pool {
    pub(super) fn new(connections: Vec<Connection>) -> Self {
        Self {
            permits: Arc::new(Semaphore::new(connections.len())),
            idle: Arc::new(Mutex::new(connections)),
        }
    }

    /// Runs `act` on a connection. Once begun it runs to its end, even if the caller goes away.
    pub(super) async fn with<T: Send + 'static>(
        &self,
        act: impl FnOnce(&mut Connection) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        let permit = tokio::time::timeout(limits::STORE_QUEUE_MAX, self.permits.clone().acquire_owned())
            .await
            .map_err(|_| Error::Busy)?
            .map_err(Error::backend)?;
        let mut lease = Lease::take(&self.idle, permit);
        tokio::task::spawn_blocking(move || act(lease.connection()))
            .await
            .map_err(Error::backend)?
    }
}

/// A connection on loan; goes back to the pool when dropped, also by a panic.
struct Lease {
    /// Always there until dropped.
    connection: Option<Connection>,
    idle: Arc<Mutex<Vec<Connection>>>,
    _permit: OwnedSemaphorePermit,
}

impl Lease {
    fn take(idle: &Arc<Mutex<Vec<Connection>>>, permit: OwnedSemaphorePermit) -> Self {
        let connection = idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        Self {
            connection,
            idle: idle.clone(),
            _permit: permit,
        }
    }

    fn connection(&mut self) -> &mut Connection {
        self.connection
            .as_mut()
            .expect("there are as many permits as connections")
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        // Fields drop after this: the connection is back before its permit is.
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        idle.extend(self.connection.take());
    }
}
