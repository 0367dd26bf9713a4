//! The connection to the container engine.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::OnceCell;

use crate::error::root_cause;
use crate::limits;
use crate::sandbox::docker::guest_binary::GuestBinary;
use crate::sandbox::docker::{Settings, policy};
use crate::sandbox::{Error, seccomp};

/// For `doctor`.
#[derive(Clone, Debug, serde::Serialize)]
pub struct EngineFacts {
    pub version: String,
    pub api_version: String,
    pub os: String,
    pub architecture: String,
    pub kernel: String,
    /// `1` or `2`.
    pub cgroup_version: String,
    pub storage_driver: String,
    /// Default runtime of the engine.
    pub runtime: String,
    /// Whether memory, swap, pids and CPU can be limited: `(name, supported)`.
    pub limits: Vec<(&'static str, bool)>,
    /// `seccomp`, `apparmor`, `rootless` etc., as the engine lists them.
    pub security_options: Vec<String>,
    /// The binary that becomes PID 1 of every sandbox.
    pub guest: std::path::PathBuf,
}

#[derive(Debug)]
pub(super) struct Connection {
    /// For short calls.
    pub(super) docker: bollard::Docker,
    /// For attach and pull, which take long.
    pub(super) long_calls: bollard::Docker,
    pub(super) guest: GuestBinary,
    /// Seccomp profile for its architecture.
    pub(super) seccomp: String,
    /// Promises that it cannot keep; set by the first check.
    broken: OnceCell<Vec<&'static str>>,
}

/// Connects once; retried by the next call after a failure.
#[derive(Debug)]
pub(super) struct Connector {
    settings: Settings,
    connection: OnceCell<Arc<Connection>>,
}

impl Connector {
    pub(super) fn new(settings: Settings) -> Self {
        Self {
            settings,
            connection: OnceCell::new(),
        }
    }

    pub(super) async fn connect(&self) -> Result<Arc<Connection>, Error> {
        self.connection
            .get_or_try_init(|| async { Connection::open(&self.settings).await.map(Arc::new) })
            .await
            .cloned()
    }
}

/// Default address of the library.
const DEFAULT_PLACE: &str = if cfg!(windows) {
    "DOCKER_HOST or npipe:////./pipe/docker_engine"
} else {
    "DOCKER_HOST or /var/run/docker.sock"
};

const START: &str = if cfg!(windows) {
    "start Docker Desktop, with Linux containers"
} else {
    "install and start Docker"
};

impl Connection {
    async fn open(settings: &Settings) -> Result<Self, Error> {
        let unreachable = |error: bollard::errors::Error| {
            let place = settings.host.as_deref().unwrap_or(DEFAULT_PLACE);
            let cause = root_cause(&error);
            let denied = cause
                .downcast_ref::<std::io::Error>()
                .is_some_and(|cause| cause.kind() == std::io::ErrorKind::PermissionDenied);
            let remedy = if denied {
                "make this user a member of the group `docker` and log in again"
            } else {
                START
            };
            Error::Unavailable(format!(
                "no container engine responds; {remedy}, or set SKILLBOX_DOCKER_HOST (tried {place}: {cause})"
            ))
        };
        let docker = match &settings.host {
            Some(host) => bollard::Docker::connect_with_host(host),
            None => bollard::Docker::connect_with_defaults(),
        };
        let docker = docker.map_err(unreachable)?.with_timeout(limits::ENGINE_CALL_MAX);
        let docker = with_call_timeout(docker.negotiate_version())
            .await?
            .map_err(unreachable)?;
        let version = with_call_timeout(docker.version()).await?.map_err(unreachable)?;
        let os = version.os.unwrap_or_default();
        let architecture = version.arch.unwrap_or_default();
        let guest = GuestBinary::find(settings, &os, &architecture)?;
        let long_calls = docker.clone().with_timeout(limits::PULL_MAX);
        let seccomp = seccomp::docker_profile(&architecture).to_string();
        tracing::info!(
            engine = version.version,
            architecture,
            "Connected to the container engine"
        );
        Ok(Self {
            docker,
            long_calls,
            guest,
            seccomp,
            broken: OnceCell::new(),
        })
    }

    /// The error names the promises that this engine cannot keep. An engine behind a proxy that denies `info` is trusted.
    pub(super) async fn check_promises(&self) -> Result<(), Error> {
        let broken = self
            .broken
            .get_or_try_init(|| async {
                match with_call_timeout(self.docker.info()).await? {
                    Ok(info) => Ok(broken(&info)),
                    Err(error) if is_status(&error, &[403, 404]) => Ok(Vec::new()),
                    Err(error) => Err(failed("asking its state", error)),
                }
            })
            .await?;
        if broken.is_empty() {
            return Ok(());
        }
        Err(Error::Unavailable(format!(
            "the container engine cannot limit {}; enable these cgroup controllers in the kernel, for a rootless engine delegate them to its user, and restart it",
            broken.join(" and ")
        )))
    }

    pub(super) async fn ping(&self) -> Result<(), Error> {
        with_call_timeout(self.docker.ping())
            .await?
            .map(|_| ())
            .map_err(|error| {
                Error::Unavailable(format!(
                    "the container engine does not respond ({}); is it running?",
                    root_cause(&error)
                ))
            })
    }

    pub(super) async fn facts(&self) -> Result<EngineFacts, Error> {
        let version = with_call_timeout(self.docker.version())
            .await?
            .map_err(|error| failed("asking its version", error))?;
        let info = with_call_timeout(self.docker.info())
            .await?
            .map_err(|error| failed("asking its state", error))?;
        let known = |text: Option<String>| text.unwrap_or_else(|| "unknown".to_owned());
        let cgroup_version = info
            .cgroup_version
            .map_or_else(|| "1".to_owned(), |version| version.to_string());
        Ok(EngineFacts {
            version: known(version.version),
            api_version: self.docker.client_version().to_string(),
            os: known(version.os),
            architecture: known(version.arch),
            kernel: known(version.kernel_version),
            cgroup_version,
            storage_driver: known(info.driver),
            runtime: known(info.default_runtime),
            limits: vec![
                ("memory", info.memory_limit.unwrap_or(false)),
                ("swap", info.swap_limit.unwrap_or(false)),
                ("pids", info.pids_limit.unwrap_or(false)),
                ("cpu", info.cpu_cfs_quota.unwrap_or(false)),
            ],
            security_options: info.security_options.unwrap_or_default(),
            guest: self.guest.path.clone(),
        })
    }

    /// All containers with our label, in any state.
    pub(super) async fn own_containers(&self) -> Result<Vec<bollard::models::ContainerSummary>, Error> {
        let options = bollard::query_parameters::ListContainersOptionsBuilder::default()
            .all(true)
            .filters(&std::collections::HashMap::from([(
                "label",
                vec![policy::LABEL_ROLE],
            )]))
            .build();
        with_call_timeout(self.docker.list_containers(Some(options)))
            .await?
            .map_err(|error| failed("listing containers", error))
    }
}

/// The promises that an engine reports as not supported.
fn broken(info: &bollard::models::SystemInfo) -> Vec<&'static str> {
    let limits = [
        (info.memory_limit, "memory (P6)"),
        (info.pids_limit, "processes (P5)"),
        (info.cpu_cfs_quota, "CPU (P7)"),
    ];
    let cannot = limits.into_iter().filter(|(held, _)| *held == Some(false));
    cannot.map(|(_, promise)| promise).collect()
}

pub(super) async fn with_call_timeout<F: Future>(call: F) -> Result<F::Output, Error> {
    const SLACK: Duration = Duration::from_secs(5);
    tokio::time::timeout(limits::ENGINE_CALL_MAX + SLACK, call)
        .await
        .map_err(|_| {
            Error::Unavailable(
                "the container engine accepts calls but does not respond; restart it".to_owned(),
            )
        })
}

/// An engine's failure during an operation.
pub(super) fn failed(doing: &'static str, error: bollard::errors::Error) -> Error {
    use bollard::errors::Error as Bollard;
    match error {
        Bollard::DockerResponseServerError { .. } => Error::Engine {
            doing,
            source: error.into(),
        },
        // Every other error means that the engine cannot be reached.
        other => Error::Unavailable(format!(
            "the container engine could not be reached while {doing} ({})",
            root_cause(&other)
        )),
    }
}

/// Whether the engine answered with one of these statuses.
pub(super) fn is_status(error: &bollard::errors::Error, statuses: &[u16]) -> bool {
    matches!(error, bollard::errors::Error::DockerResponseServerError { status_code, .. } if statuses.contains(status_code))
}
