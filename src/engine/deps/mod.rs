//! PackageKind that programs ask for: installed once, in a sandbox that reaches the package indexes alone, and then mounted.

mod build;
mod declared;
mod index;
mod manage;
mod pip_file;
mod sets;
mod settings;
mod verdict;

use std::collections::{HashMap, HashSet};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use tokio_util::sync::CancellationToken;

use crate::engine::cache::SkillCache;
use crate::engine::plan::PlannedRun;
use crate::engine::{Engine, clock, failure};
use crate::error::{Code, Error};
use crate::ids::{Digest, Tenant};
use crate::limits;
use crate::sandbox::{BackendChoice, BackendKind, Dependencies, ImageOf, PackageKind, ProgressSender};
use crate::skill::Language;
use crate::store::{self, PackageSet};

use declared::{Remembered, Wanted};

pub use index::Index;
pub use settings::DependencySettings;

/// What is being installed by this process, and what it has used of late.
#[derive(Debug, Default)]
pub(super) struct Builds {
    locks: Mutex<HashMap<SetName, Arc<tokio::sync::Mutex<()>>>>,
    used: Mutex<HashMap<SetName, Instant>>,
    /// Images in which an interpreter was looked for in vain.
    lacking: Mutex<HashSet<(String, Language)>>,
    remembered: Remembered,
}

/// A tenant's own name for one set of packages.
type SetName = (Tenant, Digest);

/// Who waits for packages.
#[derive(Clone, Copy, Debug)]
pub(super) struct Waiting<'a> {
    pub(super) progress: Option<&'a ProgressSender>,
    /// Cancelled when nobody waits any more.
    pub(super) gone: &'a CancellationToken,
}

/// The execution that packages are installed for.
#[derive(Clone, Copy)]
struct Installation<'a> {
    plan: &'a PlannedRun,
    choice: &'a BackendChoice,
    waiting: Waiting<'a>,
}

/// Raise it when the same packages would be installed in another way.
const RECIPE: u32 = 2;

impl Builds {
    /// Held while a set is installed or fetched: who comes second finds it here.
    fn lock(&self, name: &SetName) -> Arc<tokio::sync::Mutex<()>> {
        let mut locks = self.locks.lock().unwrap_or_else(PoisonError::into_inner);
        locks.retain(|_, lock| Arc::strong_count(lock) > 1);
        locks.entry(name.clone()).or_default().clone()
    }

    /// Whether this use is worth remembering: not if another was a moment ago.
    fn is_news(&self, name: &SetName) -> bool {
        let mut used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        used.retain(|_, at| at.elapsed() < limits::PACKAGES_USED_EVERY);
        if used.contains_key(name) {
            return false;
        }
        used.insert(name.clone(), Instant::now());
        true
    }

    /// Remembers that this image has no such interpreter.
    fn lacks(&self, base: &str, language: Language) {
        let mut lacking = self.lacking.lock().unwrap_or_else(PoisonError::into_inner);
        if lacking.len() >= limits::PACKAGES_BASES_LACKING_MAX {
            lacking.clear();
        }
        lacking.insert((base.to_owned(), language));
    }

    fn is_lacking(&self, base: &str, language: Language) -> bool {
        let lacking = self.lacking.lock().unwrap_or_else(PoisonError::into_inner);
        lacking.contains(&(base.to_owned(), language))
    }
}

impl Engine {
    /// Gives the planned job the packages that its program asks for, installed now if they never were; returns their keys.
    pub(super) async fn add_packages(
        &self,
        plan: &mut PlannedRun,
        choice: &BackendChoice,
        waiting: Waiting<'_>,
    ) -> Result<Vec<Digest>, Error> {
        let requirements = std::mem::take(&mut plan.requirements);
        let mut keys = Vec::new();
        for (language, wanted) in declared::wanted(plan, &requirements, &self.0.builds.remembered).await? {
            // Else the program may call no other, or only the one that is there.
            let is_asked_for = !requirements.is_empty() && declared::of_request(plan.language) == language;
            let is_needed = plan.language == language || is_asked_for;
            let Some(base) = self.base(plan, choice, language) else {
                if is_needed {
                    return Err(no_interpreter(language));
                }
                continue;
            };
            let installed = async {
                let wanted = wanted?;
                let key = wanted.key(&base);
                let name = (plan.tenant.clone(), key);
                let installed = self
                    .installed(
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
                // A program that calls none of the other language is not kept from running.
                Err(error)
                    if error.code() == Code::DependenciesFailed
                        && !is_needed
                        && plan.language != Language::Bash =>
                {
                    tracing::warn!(%error, %language, "Left out packages of the other language");
                }
                Err(error) => return Err(error),
                Ok(None) => {
                    self.0.builds.lacks(&base, language);
                    if is_needed {
                        return Err(no_interpreter(language));
                    }
                }
            }
        }
        Ok(keys)
    }

    /// What packages for this language are built for, as far as the sandbox has its interpreter.
    fn base(&self, plan: &mut PlannedRun, choice: &BackendChoice, language: Language) -> Option<String> {
        let job = &mut plan.job;
        let images = &self.0.settings.images;
        // The image of one language has the interpreter of no other; of a skill's own it is seen when packages are installed.
        let is_missing = choice.kind == BackendKind::Docker
            && job.sandbox.image_of == ImageOf::Language
            && job.sandbox.image.as_str() != images.of(language);
        if is_missing {
            return None;
        }
        // The interpreter of this host is told by what would be started.
        let argv = std::mem::replace(&mut job.program.argv, vec![language.interpreter().to_owned()]);
        let base = self.0.sandbox.base(choice, job);
        job.program.argv = argv;
        base.filter(|base| !self.0.builds.is_lacking(base, language))
    }

    /// The set of this name, installed now if it never was; `None` if the image lacks its interpreter.
    async fn installed(
        &self,
        installation: Installation<'_>,
        wanted: &Wanted,
        name: &SetName,
    ) -> Result<Option<Dependencies>, Error> {
        if let Some(set) = self.kept_packages(name).await?
            && let Some(folder) = self.packages_here(&set).await?
        {
            return self.use_packages(name, set, folder).await.map(Some);
        }
        let lock = self.0.builds.lock(name);
        let _once = tokio::select! {
            locked = lock.lock() => locked,
            () = installation.waiting.gone.cancelled() => return Err(nobody_waits()),
        };
        if let Some(set) = self.kept_packages(name).await?
            && let Some(folder) = self.packages_folder(&set).await?
        {
            return self.use_packages(name, set, folder).await.map(Some);
        }
        let began = Instant::now();
        let built = self.build(installation, wanted, name).await;
        self.count_install(wanted.language(), began, &built);
        built
    }

    /// The set of this name, if it is kept.
    async fn kept_packages(&self, (tenant, key): &SetName) -> Result<Option<PackageSet>, Error> {
        match self.0.store.packages(tenant, key).await {
            Ok(set) => Ok(Some(set)),
            Err(store::Error::NotFound(_)) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Remembers that a set on this host is used.
    async fn use_packages(
        &self,
        name: &SetName,
        set: PackageSet,
        folder: PathBuf,
    ) -> Result<Dependencies, Error> {
        let (tenant, key) = name;
        if self.0.builds.is_news(name) {
            self.0.store.touch_packages(tenant, key, clock::now()).await?;
        }
        Ok(Dependencies {
            packages: packages_of(set.language),
            digest: set.digest,
            folder,
        })
    }

    /// Removes sets that are too much together, and folders of packages that nobody uses.
    pub(super) async fn evict_packages(&self) -> Result<(), Error> {
        let bytes_max = self.0.settings.deps.cache_bytes;
        for set in self
            .0
            .store
            .surplus_packages(bytes_max, limits::FORGOTTEN_AT_ONCE)
            .await?
        {
            self.forget_packages(&set).await?;
        }
        for digest in self.on_packages(SkillCache::idle).await? {
            if !self.0.store.packages_digest_is_used(&digest).await? {
                self.on_packages(move |cache| cache.evict(&digest)).await?;
            }
        }
        self.on_packages(SkillCache::sweep).await
    }

    /// Works on the folders of packages off the async threads.
    async fn on_packages<T: Send + 'static>(
        &self,
        work: impl FnOnce(&SkillCache) -> std::io::Result<T> + Send + 'static,
    ) -> Result<T, Error> {
        let engine = self.clone();
        let worked = tokio::task::spawn_blocking(move || work(&engine.0.packages)).await;
        worked.map_err(Error::internal)?.map_err(failure::of_io)
    }

    /// The row goes first: bytes without a row are found again by whoever installs the same.
    async fn forget_packages(&self, set: &PackageSet) -> Result<(), Error> {
        match self.0.store.delete_packages(&set.tenant, &set.key).await {
            // Another process was faster.
            Ok(_) | Err(store::Error::NotFound(_)) => {}
            Err(error) => return Err(error.into()),
        }
        let deleted = self.0.blob.delete(&sets::key_of(set)).await;
        deleted.map_err(|error| failure::of_blob(error, "installed packages"))
    }
}

fn packages_of(language: Language) -> PackageKind {
    match language {
        Language::Node => PackageKind::Node,
        Language::Python | Language::Bash => PackageKind::Python,
    }
}

fn no_interpreter(language: Language) -> Error {
    let interpreter = language.interpreter();
    Error::new(
        Code::DependenciesFailed,
        format!(
            "there is no `{interpreter}` for which packages could be installed; name an image that has it"
        ),
    )
}

fn nobody_waits() -> Error {
    Error::new(Code::Busy, "the caller left before the packages were installed")
}

#[cfg(test)]
mod tests;
