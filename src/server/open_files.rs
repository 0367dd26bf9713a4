//! The number of files that this process may open, and the connections that fit into it.

use crate::config::Config;
use crate::http::ConnectionLimits;
use crate::limits;

/// Raises the soft limit to the hard one, and returns it; `None` if there is none. Without this, 1,024 is usual, and one
/// tenant's streams could take all. Sandboxes have limits of their own.
#[cfg(unix)]
pub(super) fn raise_limit() -> Option<u64> {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: limit.maximum,
        maximum: limit.maximum,
    };
    match setrlimit(Resource::Nofile, raised) {
        Ok(()) => limit.maximum,
        // macOS has a lower limit than the one it reports.
        Err(_) => limit.current,
    }
}

#[cfg(not(unix))]
pub(super) fn raise_limit() -> Option<u64> {
    None
}

/// Warns if the limit allows fewer connections than usual.
pub(super) fn connections(files: Option<u64>, config: &Config) -> ConnectionLimits {
    let Some(files) = files else {
        return ConnectionLimits::default();
    };
    let connections = ConnectionLimits::within(files, config.limits.concurrency);
    if connections.connections_max < limits::CONNECTIONS_MAX {
        tracing::warn!(
            "Only {} connections at a time, because this process may open {files} files; raise its limit (`ulimit -n`, or `LimitNOFILE` of a service)",
            connections.connections_max
        );
    }
    connections
}
