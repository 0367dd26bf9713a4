//! Lists, prefetches and deletes installed packages.

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::engine::deps::{InstallWaiter, requested};
use crate::engine::{Packages, PageRequest, RunSpec, rows};
use crate::error::{Code, Error};
use crate::ids::{Digest, Tenant};
use crate::limits;
use crate::sandbox::ProgressSender;
use crate::skill::{Selector, SkillName};
use crate::store::{self, PackageSet, Page};

impl Packages<'_> {
    /// Newest first.
    pub async fn list(self, tenant: &Tenant, page: PageRequest) -> Result<Page<PackageSet>, Error> {
        let rows = rows(&page);
        Ok(self.engine.store.package_sets(tenant, page.after, rows).await?)
    }

    /// Installs the packages of a skill's program and scripts.
    pub async fn prefetch(
        self,
        tenant: &Tenant,
        name: SkillName,
        selector: Selector,
        progress: Option<ProgressSender>,
    ) -> Result<Vec<PackageSet>, Error> {
        let (engine, tenant) = (self.engine.clone(), tenant.clone());
        let gone = CancellationToken::new();
        let _goes_with_the_caller = gone.clone().drop_guard();
        self.engine
            .run_detached(async move {
                let prefetch = async |gone: &CancellationToken| {
                    let waiting = InstallWaiter {
                        progress: progress.as_ref(),
                        gone,
                    };
                    Box::pin(
                        engine
                            .packages()
                            .prefetch_attached(&tenant, name, selector, waiting),
                    )
                    .await
                };
                with_time_limit(limits::PREFETCH_MAX, &gone, prefetch).await
            })
            .await
    }

    /// Holds a slot only while it installs, so that other executions run between two programs.
    async fn prefetch_attached(
        self,
        tenant: &Tenant,
        name: SkillName,
        selector: Selector,
        waiting: InstallWaiter<'_>,
    ) -> Result<Vec<PackageSet>, Error> {
        let record = self.engine.skills().get(tenant, &name, &selector).await?;
        let program = record.manifest.entrypoint.as_ref().map(|_| None);
        let scripts = record
            .manifest
            .actions
            .iter()
            .map(|action| Some(action.path.clone()));
        let InstallWaiter { progress, gone } = waiting;
        let mut keys = BTreeSet::new();
        for script in program.into_iter().chain(scripts) {
            let mut spec = RunSpec {
                script,
                ..RunSpec::of_skill(name.clone(), Selector::Digest(record.digest))
            };
            let mut planned = self.engine.runs().resolve(tenant, None, &mut spec).await?;
            // Needs no image and no engine.
            if requested::wanted(&planned, &[], &self.engine.builds.known_requests)
                .await?
                .is_empty()
            {
                continue;
            }
            let _slot = self.engine.admission.admit_unless_gone(tenant, gone).await?;
            let choice = self.engine.runs().prepare(&planned.job, progress).await?;
            keys.extend(self.add(&mut planned, &choice, waiting).await?);
        }
        let mut sets = Vec::with_capacity(keys.len());
        for key in keys {
            let set = self.engine.store.packages(tenant, &key).await;
            sets.push(set?);
        }
        Ok(sets)
    }

    /// Deletes installed packages, if they exist. Running programs keep theirs.
    pub async fn delete(self, tenant: &Tenant, key: &Digest) -> Result<(), Error> {
        let set = self.engine.store.packages(tenant, key).await;
        let set = match set {
            Ok(set) => set,
            // Packages of another tenant look the same as none.
            Err(store::Error::NotFound(_)) => return Ok(()),
            Err(error) => return Err(error.into()),
        };
        let engine = self.engine.clone();
        // Finish even if the client disconnects, so that no bytes remain without a row.
        self.engine
            .run_detached(async move { engine.packages().delete_set(&set).await })
            .await
    }
}

/// Runs `work` with a time limit, after which `gone` is cancelled.
async fn with_time_limit<T>(
    limit: Duration,
    gone: &CancellationToken,
    work: impl AsyncFnOnce(&CancellationToken) -> Result<T, Error>,
) -> Result<T, Error> {
    let late = gone.child_token();
    let clock = async {
        tokio::time::sleep(limit).await;
        late.cancel();
        std::future::pending::<Infallible>().await
    };
    let done = tokio::select! {
        done = work(&late) => done,
        never = clock => match never {},
    };
    done.map_err(|error| {
        if !late.is_cancelled() || gone.is_cancelled() {
            return error;
        }
        let minutes = limit.as_secs() / 60;
        Error::new(
            Code::Busy,
            format!("installing all packages takes longer than {minutes} minutes; installed packages stay, so repeat the request for the rest"),
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Z-27.
    #[tokio::test(start_paused = true)]
    async fn installing_in_advance_times_out_with_message() {
        let gone = CancellationToken::new();
        let endless = async |gone: &CancellationToken| {
            gone.cancelled().await;
            Err::<(), _>(crate::engine::deps::caller_disconnected())
        };
        let begun = tokio::time::Instant::now();
        let error = with_time_limit(Duration::from_secs(120), &gone, endless)
            .await
            .unwrap_err();
        assert_eq!(begun.elapsed().as_secs(), 120);
        assert!(
            error.code() == Code::Busy && error.to_string().contains("longer than 2 minutes"),
            "{error}"
        );
        gone.cancel();
        let error = with_time_limit(Duration::from_secs(120), &gone, endless)
            .await
            .unwrap_err();
        assert!(error.to_string().contains("caller disconnected"), "{error}");
        let quick = async |_: &CancellationToken| Ok(1);
        assert_eq!(
            with_time_limit(Duration::from_secs(120), &gone, quick)
                .await
                .unwrap(),
            1
        );
    }
}
