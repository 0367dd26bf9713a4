//! The use cases: the only place that decides. `api` checks who may call them.

mod added_packages;
mod admission;
mod audit;
mod blobs;
mod cache;
mod cancel;
mod changes;
mod clock;
mod code;
mod deps;
mod executions;
mod failure;
mod keys;
mod last_words;
mod linked_files;
mod maintenance;
mod metrics;
mod missing_file;
mod missing_package;
mod mounts;
mod network_use;
mod outcome;
mod overview;
mod plan;
mod proofs;
mod queue;
mod request;
mod rerun;
mod resolve;
mod run;
mod running;
mod schemas;
mod secret_guard;
mod secrets;
mod sessions;
mod skill_files;
mod skills;
mod statistics;
mod subscription;
#[cfg(test)]
mod tests;
mod wait;
mod warm_use;
mod webhooks;

use std::fs::File;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Notify;
use tokio_util::task::TaskTracker;
use tracing::Instrument as _;

use crate::blob::{self, Blob, LinkSigner};
use crate::error::{Code, Error};
use crate::execution::Maxima;
use crate::ids::{InstanceId, Tenant};
use crate::limits;
use crate::sandbox::Sandbox;
use crate::secret::MasterKey;
use crate::skill::{ImageAllowlist, Language};
use crate::store::{Cursor, Instance, Store};
use crate::telemetry::Metrics;

use admission::{Admission, AdmissionLimits, Rate, SubmissionLimit};
use blobs::Swept;
use cache::SkillCache;
use deps::Installations;
use proofs::ProofState;
use running::RunningExecutions;

pub use admission::Load;
pub use blobs::{BlobPolicy, NewBlob};
pub use changes::{Change, ChangeId, ChangeSubscription, InvalidChangeId, SkillAction, SkillChange};
pub use deps::{DependencySettings, Index};
pub use executions::ArtifactFile;
pub use keys::NewKey;
pub use maintenance::{Check, Readiness};
pub use overview::{ServerState, TenantUsage, Tenants};
pub use proofs::{ProofBackend, ProofProgressLine, ProofRequest, ProofSettings, ProofStatus};
pub use request::{OnDisconnect, RequestFile, RunOptions, RunRequest, RunSpec, UnpublishedArchive};
pub use rerun::{RequestRecord, RerunVersion};
pub use sessions::{NewSignInLink, OpenedSession};
pub use skill_files::{FileDiff, OpenSkillFile, SkillDiff, SkillFile};
pub use skills::PushSource;
pub use statistics::{Stats, StatsRequest};
pub use subscription::Subscription;
pub use warm_use::WarmCounts;
pub use webhooks::{Signing, WebhookSender, WebhookSettings};

/// All use cases over one set of adapters, grouped by what they deal with. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Engine(Arc<EngineState>);

/// The adapters of an engine and its state in memory.
#[derive(Debug)]
pub struct EngineState {
    store: Store,
    blob: Blob,
    sandbox: Sandbox,
    links: LinkSigner,
    master_key: MasterKey,
    settings: Settings,
    instance: Instance,
    cache: SkillCache,
    /// Installed packages, one folder per package set.
    packages: deps::PackageFolders,
    builds: Installations,
    blobs_swept: Swept,
    admission: Admission,
    rate: Rate,
    submissions: SubmissionLimit,
    running: Arc<RunningExecutions>,
    metrics: Metrics,
    observed: overview::Observed,
    published: changes::Published,
    proof_state: ProofState,
    /// Wakes the webhook sender.
    webhooks_due: Notify,
    /// Executions run here, not in a handler's future, so that a disconnect does not cancel their cleanup.
    tasks: TaskTracker,
}

#[derive(Debug)]
pub struct Parts {
    pub store: Store,
    pub blob: Blob,
    pub sandbox: Sandbox,
    pub links: LinkSigner,
    pub master_key: MasterKey,
    pub settings: Settings,
    pub instance: Instance,
}

/// Settings of the engine.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Upper limits of every execution.
    pub maxima: Maxima,
    /// Default image of each language.
    pub images: Images,
    pub allowlist: ImageAllowlist,
    /// Concurrent executions.
    pub concurrency: usize,
    /// Concurrent executions of one tenant.
    pub tenant_concurrency: usize,
    /// Executions per minute and tenant; `None` for no limit.
    pub tenant_rate: Option<u32>,
    /// Bytes of skills, files, outputs and logs per tenant; `None` for no limit.
    pub tenant_storage: Option<u64>,
    /// Waiter interactive requests per tenant; further ones are rejected.
    pub queue: usize,
    /// Queued executions per tenant; further ones are rejected.
    pub async_queue: usize,
    /// Longest wait of an interactive request.
    pub queue_wait: Duration,
    pub retention: RetentionPolicy,
    /// Bytes up to which a request is kept with its execution; `None` keeps none.
    pub keep_request: Option<u64>,
    pub blobs: BlobPolicy,
    /// Lifetime of signed links.
    pub link_life: Duration,
    pub deps: DependencySettings,
    pub webhooks: WebhookSettings,
    /// Private to this installation.
    pub cache_dir: PathBuf,
    /// Private to this installation.
    pub tmp_dir: PathBuf,
}

#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Images {
    pub python: String,
    pub node: String,
    pub bash: String,
}

impl Default for Images {
    fn default() -> Self {
        let image = |language: Language| language.default_image().to_owned();
        Self {
            python: image(Language::Python),
            node: image(Language::Node),
            bash: image(Language::Bash),
        }
    }
}

impl Images {
    #[must_use]
    pub fn of(&self, language: Language) -> &str {
        match language {
            Language::Python => &self.python,
            Language::Node => &self.node,
            Language::Bash => &self.bash,
        }
    }
}

/// Retention of ended executions and their artifacts; `None` for no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RetentionPolicy {
    pub age: Option<Duration>,
    /// Number of executions.
    pub per_tenant: Option<u64>,
}

#[derive(Clone, Debug, Default)]
pub struct PageRequest {
    /// The first page if `None`.
    pub after: Option<Cursor>,
    /// Rows, between 1 and [`limits::PAGE_ROWS_MAX`].
    pub rows: u32,
}

/// Declares one handle per group of use cases. The module of each group contains its methods.
macro_rules! use_cases {
    ($($(#[$doc:meta])* $accessor:ident: $group:ident;)*) => {
        $(
            $(#[$doc])*
            #[derive(Clone, Copy, Debug)]
            pub struct $group<'a> {
                engine: &'a Engine,
            }
        )*

        impl Engine {
            $(
                #[must_use]
                pub fn $accessor(&self) -> $group<'_> {
                    $group { engine: self }
                }
            )*
        }
    };
}

use_cases! {
    /// Who changed what.
    audit: Audit;
    /// Uploaded files and those that programs return, by digest.
    blobs: Blobs;
    /// Changes as they happen.
    changes: Changes;
    /// Recorded executions: listed, watched, cancelled, and their files.
    executions: Executions;
    /// API keys.
    keys: Keys;
    /// Health, cleanup and shutdown of this process.
    maintenance: Maintenance;
    /// State of this server and what a tenant uses of it.
    overview: Overview;
    /// Installed packages.
    packages: Packages;
    /// Proofs of the sandbox promises on this host.
    proofs: Proofs;
    /// Runs and queues requests.
    runs: Runs;
    /// Secrets that programs receive.
    secrets: Secrets;
    /// Sessions of the dashboard, and links that open them.
    sessions: Sessions;
    /// Published skills.
    skills: Skills;
    /// Webhook deliveries and their signing secret.
    webhooks: Webhooks;
}

impl std::ops::Deref for Engine {
    type Target = EngineState;

    fn deref(&self) -> &EngineState {
        &self.0
    }
}

impl Engine {
    #[must_use]
    pub fn new(parts: Parts) -> Self {
        let Parts {
            store,
            blob,
            sandbox,
            links,
            master_key,
            settings,
            instance,
        } = parts;
        let cache = SkillCache::new(settings.cache_dir.clone());
        let packages = deps::PackageFolders::new(&settings.deps);
        let admission = Admission::new(AdmissionLimits {
            slots: settings.concurrency,
            slots_per_tenant: settings.tenant_concurrency,
            interactive: settings.queue,
            queued: settings.async_queue,
            wait: settings.queue_wait,
        });
        let rate = Rate::new(settings.tenant_rate);
        let metrics = Metrics::new(store.latency(), blob.kept());
        let (running, tasks) = (Arc::new(RunningExecutions::default()), TaskTracker::new());
        Self(Arc::new(EngineState {
            store,
            blob,
            sandbox,
            links,
            master_key,
            settings,
            instance,
            cache,
            packages,
            builds: Installations::default(),
            blobs_swept: Swept::default(),
            admission,
            rate,
            submissions: SubmissionLimit::new(limits::SUBMISSIONS_AT_ONCE),
            running,
            metrics,
            observed: overview::Observed::default(),
            published: changes::Published::default(),
            proof_state: ProofState::default(),
            webhooks_due: Notify::new(),
            tasks,
        }))
    }

    /// Runs `work` to its end even if the caller disconnects, in the caller's log span.
    pub async fn run_detached<T: Send + 'static>(
        &self,
        work: impl Future<Output = Result<T, Error>> + Send + 'static,
    ) -> Result<T, Error> {
        let task = self.tasks.spawn(work.in_current_span());
        task.await.map_err(Error::internal)?
    }

    /// Rejects `more` bytes that would exceed the tenant's quota.
    async fn check_storage(&self, tenant: &Tenant, more: u64) -> Result<(), Error> {
        let Some(max) = self.settings.tenant_storage else {
            return Ok(());
        };
        let used = self.store.storage_used(tenant).await?;
        if used < max && more <= max - used {
            return Ok(());
        }
        let mebibytes = |bytes: u64| bytes.div_ceil(limits::MIB);
        Err(Error::new(
            Code::StorageFull,
            format!(
                "your skills and executions use {} of {} MiB; delete versions of skills, or wait until old executions expire",
                mebibytes(used),
                mebibytes(max)
            ),
        ))
    }

    /// Copies an object into an unnamed local file.
    async fn copy_object(&self, object: blob::Object) -> Result<File, Error> {
        let size = object.size();
        let reader = object.into_reader(0..size).await;
        let mut reader = reader.map_err(|error| failure::of_blob(error, "object"))?;
        let file = tempfile::tempfile_in(&self.settings.tmp_dir).map_err(failure::of_io)?;
        let mut copy = tokio::fs::File::from_std(file);
        tokio::io::copy(&mut reader, &mut copy)
            .await
            .map_err(failure::of_io)?;
        Ok(copy.into_std().await)
    }

    #[must_use]
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    #[must_use]
    pub fn sandbox(&self) -> &Sandbox {
        &self.sandbox
    }

    #[must_use]
    pub fn instance(&self) -> InstanceId {
        self.instance.id()
    }
}

fn rows(page: &PageRequest) -> u32 {
    page.rows.clamp(1, limits::PAGE_ROWS_MAX)
}
