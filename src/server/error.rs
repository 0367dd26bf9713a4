//! Start-up errors: one line that names the setting and the remedy.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

use crate::blob;
use crate::config;
use crate::error;
use crate::store;
use crate::telemetry;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Config(#[from] config::Error),
    #[error(transparent)]
    Logging(#[from] telemetry::Error),
    #[error("db.dsn: `{}`: {}", path.display(), chain(source))]
    Database { path: PathBuf, source: store::Error },
    #[error("data_dir: `{}`: {}", path.display(), chain(source))]
    Files { path: PathBuf, source: blob::Error },
    #[error("db.dsn: {0}")]
    Instance(#[from] store::CannotRegister),
    #[error("signing.key in the data folder: {0}")]
    Signing(#[from] blob::WeakSecret),
    #[error(
        "api.host, api.port: cannot listen on {address} ({source}); set SKILLBOX_API_PORT to a free port"
    )]
    Listen { address: SocketAddr, source: io::Error },
    #[error(
        "grpc.port: cannot listen on {address} ({source}); set SKILLBOX_GRPC_PORT to a free port, or to 0"
    )]
    ListenForGrpc { address: SocketAddr, source: io::Error },
    #[error(
        "metrics.listen: cannot listen on {address} ({source}); set SKILLBOX_METRICS_LISTEN to a free port"
    )]
    ListenForMetrics { address: SocketAddr, source: io::Error },
    #[error(transparent)]
    Refused(#[from] error::Error),
    #[error("signal handling or the listener's address failed ({0})")]
    Signals(#[source] io::Error),
    #[error(
        "the database accepts nothing any more: its disk failed, or its file was replaced, deleted or damaged; see the log, then start again"
    )]
    StorageFailed,
    #[error("the system refused to create threads ({0})")]
    Runtime(#[source] io::Error),
}

/// An error with its causes, on one line.
fn chain(error: &dyn std::error::Error) -> String {
    let causes = error::causes(error).map(|causes| format!(": {causes}"));
    format!("{error}{}", causes.unwrap_or_default())
}
