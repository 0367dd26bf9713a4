//! The configuration: defaults, files, variables and flags, checked and combined into one [`Config`].

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
use crate::http::Dashboard;
use crate::limits;
#[cfg(target_os = "linux")]
use crate::sandbox::linux::HostFolder;
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

#[derive(Debug)]
pub struct Config {
    /// Data folder; the default is determined when it is needed.
    pub data_dir: Option<PathBuf>,
    pub server_url: Option<String>,
    pub api_key: Option<SecretString>,
    pub listen: SocketAddr,
    pub grpc: GrpcPort,
    /// Further accepted host names.
    pub allowed_hosts: Vec<String>,
    pub dashboard: Dashboard,
    /// Database outside the data folder.
    pub database: Option<PathBuf>,
    pub sandbox: SandboxConfig,
    pub deps: DepsConfig,
    pub limits: LimitsConfig,
    pub retention: RetentionPolicy,
    /// Bytes up to which requests are kept.
    pub keep_request: Option<u64>,
    pub blobs: BlobPolicy,
    /// Lifetime of signed links.
    pub link_life: Duration,
    pub webhooks: WebhookSettings,
    /// Master key outside the data folder.
    pub master_key: Option<MasterKey>,
    pub observe: ObserveConfig,
    pub log: LogConfig,
    /// Warnings about accepted settings without effect.
    pub notices: Vec<String>,
    /// Every setting that has an effect in this build, with its value and source.
    pub effective: Vec<Effective>,
}

/// The port of the gRPC API, at the address of the REST API.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GrpcPort {
    /// 0 disables it.
    pub number: u16,
    /// Whether nobody asked for this port: then the server can do without it.
    pub is_default: bool,
}

/// Settings of sandboxes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SandboxConfig {
    /// Requested backend.
    pub backend: BackendChoice,
    pub docker: docker::Settings,
    /// Whether the native backend may run without cgroups.
    pub native_degraded: bool,
    /// Folders of the host that native sandboxes see.
    #[cfg(target_os = "linux")]
    pub native_folders: Vec<HostFolder>,
    /// Default image of each language.
    pub images: Images,
    pub allowlist: ImageAllowlist,
    pub pool: WarmPoolSettings,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BackendChoice {
    /// The first backend that keeps every promise on this host.
    Auto,
    Docker,
    Native,
}

/// Configurable limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LimitsConfig {
    /// Upper limits of every execution.
    pub maxima: Maxima,
    /// Concurrent executions.
    pub concurrency: usize,
    /// Concurrent executions of one tenant, at most `concurrency`.
    pub tenant_concurrency: usize,
    /// Executions per minute and tenant.
    pub tenant_rate: Option<u32>,
    /// Stored bytes per tenant.
    pub tenant_storage: Option<u64>,
    /// Waiting interactive requests per tenant.
    pub queue: usize,
    /// Queued executions per tenant.
    pub async_queue: usize,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ObserveConfig {
    pub metrics: bool,
    /// Address that serves metrics without authentication.
    pub metrics_listen: Option<SocketAddr>,
    /// Endpoint of the OpenTelemetry collector.
    pub collector: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogConfig {
    /// Log filter; the default of the command if absent.
    pub filter: Option<String>,
    pub format: LogFormat,
}

impl Config {
    /// Reads and checks all sources (F-24).
    pub fn load(sources: &Sources) -> Result<Self, Error> {
        read::config(&sources.merge()?)
    }

    /// Opens the data folder; creates it if it does not exist.
    pub fn data_folder(&self) -> Result<DataFolder, Error> {
        DataFolder::open(&self.data_folder_path()?)
    }

    /// The configuration for attacks on one backend in a folder of its own, without anything of a server.
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

    /// The administrator key in the data folder, if this user may read it. Creates nothing.
    pub fn kept_admin_key(&self) -> Result<Option<ApiKey>, Error> {
        folder::kept_admin_key(&self.data_folder_path()?)
    }

    /// The data folder in use, which may not exist yet.
    pub fn data_folder_path(&self) -> Result<PathBuf, Error> {
        match &self.data_dir {
            Some(path) => Ok(path.clone()),
            None => folder::default_path(),
        }
    }

    /// The folders that native sandboxes see. Fails if one of them shows data of the server.
    #[cfg(target_os = "linux")]
    pub fn native_folders(&self, data: &DataFolder) -> Result<Vec<HostFolder>, Error> {
        let database = self.database_in(data);
        let places = [Some(data.path()), database.parent()];
        for place in places.into_iter().flatten() {
            let place = place.canonicalize().unwrap_or_else(|_| place.to_owned());
            for folder in &self.sandbox.native_folders {
                let apart = folder.check_apart(&place);
                apart.map_err(|problem| Error::new("sandbox.native.folders", problem))?;
            }
        }
        Ok(self.sandbox.native_folders.clone())
    }

    /// This configuration as variables for another process of this program, without secrets; `None` removes a variable.
    #[must_use]
    pub fn as_variables(&self) -> Vec<(String, Option<String>)> {
        let effective = |key: &str| self.effective.iter().find(|row| row.key == key);
        let variables = SETTINGS.iter().flat_map(|setting| {
            let value = match setting.kind {
                SettingKind::Text | SettingKind::List => {
                    effective(setting.key).and_then(|row| row.value.clone())
                }
                SettingKind::Secret => None,
            };
            let nested = setting.nested_variable();
            let nested = (nested != setting.variable).then_some((nested, None));
            [(setting.variable.to_owned(), value)].into_iter().chain(nested)
        });
        variables.collect()
    }

    #[must_use]
    pub fn database_in(&self, folder: &DataFolder) -> PathBuf {
        self.database
            .clone()
            .unwrap_or_else(|| folder.path().join("skillbox.db"))
    }

    /// The configured master key, else the one in `folder`, which is created if it does not exist.
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
            keep_request: self.keep_request,
            blobs: self.blobs,
            link_life: self.link_life,
            deps: self.deps.settings(folder.join("packages")),
            webhooks: self.webhooks.clone(),
            cache_dir: folder.join("cache"),
            tmp_dir: folder.join("tmp"),
        }
    }
}
