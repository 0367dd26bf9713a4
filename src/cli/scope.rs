//! Restarts the command of an ordinary user in a cgroup of its own, which native sandboxes need. The user's service
//! manager creates it.

use std::env;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::process::Command;

use crate::config::{BackendChoice, Config};
use crate::sandbox::linux;

/// Set in the environment of a restarted command, so that it is not restarted again.
const STARTED_ANEW: &str = "_SKILLBOX_IN_SCOPE";

/// Restarts this command in a delegated scope if it lacks only that, and then does not return. If that fails, it
/// changes nothing, and creating a cgroup fails later with the reason.
pub(super) fn enter(config: &Config) {
    if env::var_os(STARTED_ANEW).is_some() || config.server_url.is_some() || !is_native_likely(config) {
        return;
    }
    if !linux::has_user_manager() || !linux::wants_a_scope() {
        return;
    }
    let Ok(own) = env::current_exe() else { return };
    let error = Command::new("systemd-run")
        .args([
            "--user",
            "--scope",
            "--quiet",
            "--collect",
            // Otherwise the journal would contain the command line, perhaps with a key.
            "--description=skillbox",
            "--property=Delegate=yes",
            "--",
        ])
        .arg(own)
        .args(env::args_os().skip(1))
        .env(STARTED_ANEW, "1")
        .exec();
    tracing::debug!(%error, "Restart with systemd-run failed");
}

/// Whether the native sandbox is configured, or `auto` selects it because no engine exists.
fn is_native_likely(config: &Config) -> bool {
    match config.sandbox.backend {
        BackendChoice::Native => !config.sandbox.native_degraded,
        BackendChoice::Docker => false,
        BackendChoice::Auto => {
            config.sandbox.docker.host.is_none()
                && env::var_os("DOCKER_HOST").is_none()
                && UnixStream::connect("/var/run/docker.sock").is_err()
        }
    }
}
