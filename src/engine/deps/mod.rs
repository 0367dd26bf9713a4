//! Packages of programs: installed once in a sandbox that reaches only the package indexes, then mounted.

mod build;
mod check;
mod folders;
mod index;
mod manage;
mod pip_file;
mod requested;
mod settings;
mod storage;
mod transfer;

use std::collections::{HashMap, HashSet};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use tokio_util::sync::CancellationToken;

use crate::engine::cache::SkillCache;
use crate::engine::plan::PlannedRun;
use crate::engine::{Packages, clock, failure};
use crate::error::{Code, Error};
use crate::ids::{Digest, Tenant};
use crate::limits;
use crate::sandbox::{BackendChoice, BackendKind, Dependencies, ImageOf, PackageKind, ProgressSender};
use crate::skill::Language;
use crate::store::{self, PackageSet};

use requested::{KnownRequests, RequestedPackages};

pub(super) use folders::PackageFolders;
pub use index::Index;
pub use settings::DependencySettings;

/// Running installations and recently used package sets of this process.
#[derive(Debug, Default)]
pub(super) struct Installations {
    locks: Mutex<HashMap<PackageSetKey, Arc<tokio::sync::Mutex<()>>>>,
    used: Mutex<HashMap<PackageSetKey, Instant>>,
    /// Images known to lack an interpreter.
    lacking: Mutex<HashSet<(String, Language)>>,
    known_requests: KnownRequests,
}

/// Identifies a package set of a tenant.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct PackageSetKey {
    tenant: Tenant,
    key: Digest,
}

/// The caller that waits for packages.
#[derive(Clone, Copy, Debug)]
pub(super) struct InstallWaiter<'a> {
    pub(super) progress: Option<&'a ProgressSender>,
    /// Cancelled when the caller disconnects.
    pub(super) gone: &'a CancellationToken,
}

/// The run that packages are installed for.
#[derive(Clone, Copy)]
struct Installation<'a> {
    plan: &'a PlannedRun,
    choice: &'a BackendChoice,
    waiting: InstallWaiter<'a>,
}

/// Increase it if the same packages would be installed differently.
const RECIPE: u32 = 2;

impl Installations {
    /// Held while a set is installed or fetched; the next caller finds the result.
    fn lock(&self, name: &PackageSetKey) -> Arc<tokio::sync::Mutex<()>> {
        let mut locks = self.locks.lock().unwrap_or_else(PoisonError::into_inner);
        locks.retain(|_, lock| Arc::strong_count(lock) > 1);
        locks.entry(name.clone()).or_default().clone()
    }

    /// Whether to record this use. Uses within an hour are recorded once.
    fn record_use(&self, name: &PackageSetKey) -> bool {
        let mut used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        used.retain(|_, at| at.elapsed() < limits::PACKAGES_USED_EVERY);
        if used.contains_key(name) {
            return false;
        }
        used.insert(name.clone(), Instant::now());
        true
    }

    fn add_lacking(&self, base: &str, language: Language) {
        let mut lacking = self.lacking.lock().unwrap_or_else(PoisonError::into_inner);
        if lacking.len() >= limits::MISSING_INTERPRETERS_MAX {
            lacking.clear();
        }
        lacking.insert((base.to_owned(), language));
    }

    fn is_lacking(&self, base: &str, language: Language) -> bool {
        let lacking = self.lacking.lock().unwrap_or_else(PoisonError::into_inner);
        lacking.contains(&(base.to_owned(), language))
    }
}

impl Packages<'_> {
    /// Adds the packages that the program requests to the planned job and installs missing ones. Returns their keys.
    pub(super) async fn add(
        self,
        plan: &mut PlannedRun,
        choice: &BackendChoice,
        waiting: InstallWaiter<'_>,
    ) -> Result<Vec<Digest>, Error> {
        let requirements = plan.requirements.clone();
        let mut keys = Vec::new();
        let all = requested::wanted(plan, &requirements, &self.engine.builds.known_requests).await?;
        if !self.engine.settings.deps.requests && !all.is_empty() && requested::come_with_request(plan) {
            return Err(packages_forbidden());
        }
        for (language, wanted) in all {
            // The program may never call the other language, or its image has one interpreter.
            let is_asked_for =
                !requirements.is_empty() && requested::requirements_language(plan.language) == language;
            let is_added = plan.added.iter().any(|added| added.language == language);
            let is_needed = plan.language == language || is_asked_for || is_added;
            let Some(base) = self.base(plan, choice, language) else {
                if is_needed {
                    return Err(no_interpreter(language));
                }
                continue;
            };
            let installed = async {
                let wanted = wanted?;
                let key = wanted.key(&base);
                let name = PackageSetKey {
                    tenant: plan.tenant.clone(),
                    key,
                };
                let installed = self
                    .ensure_installed(
                        Installation {
                            plan,
                            choice,
                            waiting,
                        },
                        &wanted,
                        &name,
                    )
                    .await?;
                Ok::<_, Error>(installed.map(|installed| (key, installed)))
            };
            match installed.await {
                Ok(Some((key, installed))) => {
                    plan.job.sandbox.deps.push(installed);
                    keys.push(key);
                }
                // A program that may not need the other language runs without its packages.
                Err(error)
                    if error.code() == Code::DependenciesFailed
                        && !is_needed
                        && plan.language != Language::Bash =>
                {
                    tracing::warn!(%error, %language, "Left out packages of the other language");
                }
                Err(error) => return Err(error),
                Ok(None) => {
                    self.engine.builds.add_lacking(&base, language);
                    if is_needed {
                        return Err(no_interpreter(language));
                    }
                }
            }
        }
        Ok(keys)
    }

    /// Identifies the interpreter that packages are installed for; `None` if the sandbox lacks it.
    fn base(self, plan: &mut PlannedRun, choice: &BackendChoice, language: Language) -> Option<String> {
        let job = &mut plan.job;
        let images = &self.engine.settings.images;
        // The image of one language lacks the others. Whether a skill's own image has it is known after an
        // installation.
        let is_missing = choice.kind == BackendKind::Docker
            && job.sandbox.image_of == ImageOf::Language
            && job.sandbox.image.as_str() != images.of(language);
        if is_missing {
            return None;
        }
        // The native backend identifies the interpreter by the program that it would start.
        let argv = std::mem::replace(&mut job.program.argv, vec![language.interpreter().to_owned()]);
        let base = self.engine.sandbox.base(choice, job);
        job.program.argv = argv;
        base.filter(|base| !self.engine.builds.is_lacking(base, language))
    }

    /// The package set, installed if it does not exist; `None` if the image lacks the interpreter.
    async fn ensure_installed(
        self,
        installation: Installation<'_>,
        wanted: &RequestedPackages,
        name: &PackageSetKey,
    ) -> Result<Option<Dependencies>, Error> {
        if let Some(set) = self.find_set(name).await?
            && let Some(folder) = self.local_folder(&set).await?
        {
            return self.use_set(name, set, folder).await.map(Some);
        }
        let lock = self.engine.builds.lock(name);
        let _once = tokio::select! {
            locked = lock.lock() => locked,
            () = installation.waiting.gone.cancelled() => return Err(caller_disconnected()),
        };
        if let Some(set) = self.find_set(name).await?
            && let Some(folder) = self.fetch_folder(&set).await?
        {
            return self.use_set(name, set, folder).await.map(Some);
        }
        let began = Instant::now();
        let built = self.build(installation, wanted, name).await;
        self.engine.count_install(wanted.language(), began, &built);
        built
    }

    async fn find_set(self, set: &PackageSetKey) -> Result<Option<PackageSet>, Error> {
        match self.engine.store.packages(&set.tenant, &set.key).await {
            Ok(set) => Ok(Some(set)),
            Err(store::Error::NotFound(_)) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Records the use of a set on this host.
    async fn use_set(
        self,
        name: &PackageSetKey,
        set: PackageSet,
        folder: PathBuf,
    ) -> Result<Dependencies, Error> {
        if self.engine.builds.record_use(name) {
            let store = &self.engine.store;
            store
                .touch_packages(&name.tenant, &name.key, clock::now())
                .await?;
        }
        Ok(Dependencies {
            packages: packages_of(set.language),
            digest: set.digest,
            folder,
        })
    }

    /// Removes package sets over the size limit, and unused folders.
    pub(super) async fn evict(self) -> Result<(), Error> {
        let bytes_max = self.engine.settings.deps.cache_bytes;
        for set in self
            .engine
            .store
            .surplus_packages(bytes_max, limits::EXPIRED_PER_QUERY)
            .await?
        {
            self.delete_set(&set).await?;
        }
        let engine = self.engine.clone();
        let tenants = tokio::task::spawn_blocking(move || engine.packages.tenants()).await;
        let tenants = tenants.map_err(Error::internal)?.map_err(failure::of_io)?;
        for tenant in &tenants {
            for digest in self.on_folders(tenant, SkillCache::idle).await? {
                if !self.engine.store.packages_digest_is_used(tenant, &digest).await? {
                    self.on_folders(tenant, move |folders| folders.evict(&digest))
                        .await?;
                }
            }
            self.on_folders(tenant, SkillCache::sweep).await?;
        }
        Ok(())
    }

    /// Runs `work` on the tenant's folders, on a blocking thread.
    async fn on_folders<T: Send + 'static>(
        self,
        tenant: &Tenant,
        work: impl FnOnce(&SkillCache) -> std::io::Result<T> + Send + 'static,
    ) -> Result<T, Error> {
        let folders = self.engine.packages.of(tenant);
        let worked = tokio::task::spawn_blocking(move || work(&folders)).await;
        worked.map_err(Error::internal)?.map_err(failure::of_io)
    }

    /// Row first: bytes without a row are found when the same packages are installed again.
    async fn delete_set(self, set: &PackageSet) -> Result<(), Error> {
        match self.engine.store.delete_packages(&set.tenant, &set.key).await {
            // Another process was faster.
            Ok(_) | Err(store::Error::NotFound(_)) => {}
            Err(error) => return Err(error.into()),
        }
        let deleted = self.engine.blob.delete(&storage::blob_key(set)).await;
        deleted.map_err(|error| failure::of_blob(error, "installed packages"))
    }
}

fn packages_of(language: Language) -> PackageKind {
    match language {
        Language::Node => PackageKind::Node,
        Language::Python | Language::Bash => PackageKind::Python,
    }
}

pub(super) fn packages_forbidden() -> Error {
    Error::new(
        Code::Forbidden,
        "requirements: this server installs packages of published skills only (deps.requests is false); publish a skill that declares them",
    )
}

fn no_interpreter(language: Language) -> Error {
    let interpreter = language.interpreter();
    Error::new(
        Code::DependenciesFailed,
        format!("packages need `{interpreter}`, which the image lacks; use an image that has it"),
    )
}

fn caller_disconnected() -> Error {
    Error::new(
        Code::Busy,
        "the caller disconnected before the packages were installed",
    )
}

#[cfg(test)]
mod tests;
