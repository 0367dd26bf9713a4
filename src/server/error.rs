//! Why a process could not be put together: one line that names the part and what to do.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

use crate::blob;
use crate::config;
use crate::error;
use crate::store;
use crate::telemetry;

/// Nothing was started.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The configuration.
    #[error(transparent)]
    Config(#[from] config::Error),
    /// Logging.
    #[error(transparent)]
    Logging(#[from] telemetry::Error),
    /// The database.
    #[error("db.dsn: `{}`: {}", path.display(), Causes(source))]
    Database {
        /// Its file.
        path: PathBuf,
        /// What it said.
        source: store::Error,
    },
    /// The folder of files.
    #[error("data_dir: `{}`: {}", path.display(), Causes(source))]
    Files {
        /// The folder.
        path: PathBuf,
        /// What it said.
        source: blob::Error,
    },
    /// Registering this process.
    #[error("db.dsn: {0}")]
    Instance(#[from] store::CannotRegister),
    /// The secret that signs links.
    #[error("signing.key in the data folder: {0}")]
    Signing(#[from] blob::WeakSecret),
    /// The address to listen on.
    #[error(
        "api.host, api.port: cannot listen on {address} ({source}); set SKILLBOX_API_PORT to a free port"
    )]
    Listen {
        /// Which.
        address: SocketAddr,
        /// What the system said.
        source: io::Error,
    },
    /// The address that metrics are served on.
    #[error(
        "metrics.listen: cannot listen on {address} ({source}); set SKILLBOX_METRICS_LISTEN to a free port"
    )]
    ListenForMetrics {
        /// Which.
        address: SocketAddr,
        /// What the system said.
        source: io::Error,
    },
    /// The engine refused.
    #[error(transparent)]
    Refused(#[from] error::Error),
    /// Signals.
    #[error("the system refused signal handling or the listener's address ({0})")]
    Signals(#[source] io::Error),
    /// The runtime.
    #[error("the system gives no threads ({0})")]
    Runtime(#[source] io::Error),
}

/// An error with its causes, on one line.
struct Causes<'a, E>(&'a E);

impl<E: std::error::Error> std::fmt::Display for Causes<'_, E> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.0)?;
        let mut cause = self.0.source();
        while let Some(error) = cause {
            write!(f, ": {error}")?;
            cause = error.source();
        }
        Ok(())
    }
}
