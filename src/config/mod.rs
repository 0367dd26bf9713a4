//! What the operator decided: defaults, files, variables and flags, composed and checked into one [`Config`].

mod deps;
mod error;
mod folder;
mod key_file;
mod layers;
#[cfg_attr(windows, path = "privacy_windows.rs")]
mod privacy;
mod read;
mod settings;
#[cfg(test)]
mod tests;
mod values;
mod webhooks;
mod yaml;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use secrecy::SecretString;

use crate::auth::ApiKey;
use crate::engine::{self, BlobPolicy, Images, RetentionPolicy, WebhookSettings};
use crate::execution::Maxima;
use crate::limits;
use crate::sandbox::{WarmPoolSettings, docker};
use crate::secret::MasterKey;
use crate::skill::ImageAllowlist;
use crate::telemetry::LogFormat;

pub use deps::DepsConfig;
pub use error::Error;
pub use folder::DataFolder;
pub use layers::{FILE_VARIABLE, Sources};
pub use read::Effective;
pub use settings::{SETTINGS, Setting, SettingKind};
pub use yaml::ConfigFile;

/// A checked configuration.
#[derive(Debug)]
pub struct Config {
    /// Folder for everything that is kept; where none is set, found when it is needed.
    pub data_dir: Option<PathBuf>,
    /// Where clients reach the server.
    pub server_url: Option<String>,
    /// API key of the command line.
    pub api_key: Option<SecretString>,
    /// Where the REST API listens.
    pub listen: SocketAddr,
    /// Further host names that the server answers for.
    pub allowed_hosts: Vec<String>,
    /// The database, where it is not in the data folder.
    pub database: Option<PathBuf>,
    /// The sandbox.
    pub sandbox: SandboxConfig,
    /// Packages that programs ask for.
    pub deps: DepsConfig,
    /// The bounds.
    pub limits: LimitsConfig,
    /// How long ended executions are kept.
    pub retention: RetentionPolicy,
    /// How much each tenant may keep as blobs, and for how long.
    pub blobs: BlobPolicy,
    /// Life of a signed link.
    pub link_life: Duration,
    /// Webhook receivers and retries.
    pub webhooks: WebhookSettings,
    /// The key that seals secrets, where it is not in the data folder.
    pub master_key: Option<MasterKey>,
    /// Metrics and traces.
    pub observe: ObserveConfig,
    /// Logging.
    pub log: LogConfig,
    /// What was accepted and has no effect, one sentence each.
    pub notices: Vec<String>,
    /// Every setting, its value and where it came from.
    pub effective: Vec<Effective>,
}

/// What makes sandboxes, and of what.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SandboxConfig {
    /// What was asked for.
    pub backend: BackendChoice,
    /// The engine.
    pub docker: docker::Settings,
    /// Whether the native sandbox may run where no cgroup can be had.
    pub native_degraded: bool,
    /// The image of each language.
    pub images: Images,
    /// The images that may run.
    pub allowlist: ImageAllowlist,
    /// Sandboxes that are made in advance.
    pub pool: WarmPoolSettings,
}

/// What was asked for as the maker of sandboxes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BackendChoice {
    /// Whatever keeps every promise on this host.
    Auto,
    /// Containers.
    Docker,
    /// Processes in namespaces of this kernel.
    Native,
}

/// The bounds that the operator may change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LimitsConfig {
    /// The most that any skill gets.
    pub maxima: Maxima,
    /// Executions at once.
    pub concurrency: usize,
    /// Executions of one tenant at once; at most `concurrency`.
    pub tenant_concurrency: usize,
    /// Executions of one tenant in a minute.
    pub tenant_rate: Option<u32>,
    /// Bytes that one tenant may keep.
    pub tenant_storage: Option<u64>,
    /// Callers of one tenant who wait.
    pub queue: usize,
    /// Async executions in the queue of one tenant.
    pub async_queue: usize,
}

/// Metrics and traces.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ObserveConfig {
    /// Whether metrics are enabled.
    pub metrics: bool,
    /// Address that serves metrics without authentication.
    pub metrics_listen: Option<SocketAddr>,
    /// The collector that traces are sent to.
    pub collector: Option<String>,
}

/// Logging.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogConfig {
    /// What is logged; the program's own choice where nothing is set.
    pub filter: Option<String>,
    /// How lines look.
    pub format: LogFormat,
}

impl Config {
    /// Reads and checks all sources.
    ///
    /// # Errors
    ///
    /// One line that names the setting, what set it, and the remedy (F-24).
    pub fn load(sources: &Sources) -> Result<Self, Error> {
        read::config(&sources.merge()?)
    }

    /// The data folder, made where it is missing and checked.
    ///
    /// # Errors
    ///
    /// It cannot be made, or others could write into it.
    pub fn data_folder(&self) -> Result<DataFolder, Error> {
        match &self.data_dir {
            Some(path) => DataFolder::open(path),
            None => DataFolder::open(&folder::default_path()?),
        }
    }

    /// The same for a trial of one backend over a folder of its own: with nothing that belongs to a server or a database.
    #[must_use]
    pub fn trying(&self, backend: BackendChoice, folder: &Path) -> Self {
        Self {
            data_dir: Some(folder.to_owned()),
            server_url: None,
            api_key: None,
            database: None,
            master_key: None,
            sandbox: SandboxConfig {
                backend,
                ..self.sandbox.clone()
            },
            allowed_hosts: self.allowed_hosts.clone(),
            deps: self.deps.clone(),
            webhooks: WebhookSettings::default(),
            observe: ObserveConfig::default(),
            log: self.log.clone(),
            notices: Vec::new(),
            effective: Vec::new(),
            ..*self
        }
    }

    /// The administrator's key in the data folder, if this user may read it there; nothing is made.
    ///
    /// # Errors
    ///
    /// The file is there and holds no key, or others can read it.
    pub fn kept_admin_key(&self) -> Result<Option<ApiKey>, Error> {
        let folder = match &self.data_dir {
            Some(path) => path.clone(),
            None => folder::default_path()?,
        };
        folder::kept_admin_key(&folder)
    }

    /// The database in (or beside) the data folder.
    #[must_use]
    pub fn database_in(&self, folder: &DataFolder) -> PathBuf {
        self.database
            .clone()
            .unwrap_or_else(|| folder.path().join("skillbox.db"))
    }

    /// The key that seals secrets: the configured one, else the one in `folder`, which is made where there is none.
    ///
    /// # Errors
    ///
    /// The file holds no key, others can read it, or it cannot be written.
    pub fn master_key(&self, folder: &DataFolder) -> Result<MasterKey, Error> {
        match &self.master_key {
            Some(key) => Ok(key.clone()),
            None => folder.master_key(),
        }
    }

    /// Settings of the engine, with its folders in `folder`.
    #[must_use]
    pub fn engine_settings(&self, folder: &Path) -> engine::Settings {
        engine::Settings {
            maxima: self.limits.maxima,
            images: self.sandbox.images.clone(),
            allowlist: self.sandbox.allowlist.clone(),
            concurrency: self.limits.concurrency,
            tenant_concurrency: self.limits.tenant_concurrency,
            tenant_rate: self.limits.tenant_rate,
            tenant_storage: self.limits.tenant_storage,
            queue: self.limits.queue,
            async_queue: self.limits.async_queue,
            queue_wait: limits::QUEUE_WAIT_MAX,
            retention: self.retention,
            blobs: self.blobs,
            link_life: self.link_life,
            deps: self.deps.settings(folder.join("packages")),
            webhooks: self.webhooks.clone(),
            cache_dir: folder.join("cache"),
            tmp_dir: folder.join("tmp"),
        }
    }
}
