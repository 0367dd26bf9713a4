//! Installed packages, as those who look after them see them: listed, installed in advance, forgotten.

use std::collections::BTreeSet;

use tokio_util::sync::CancellationToken;

use crate::auth::{Caller, Scope};
use crate::engine::deps::{Waiting, declared};
use crate::engine::{Ask, Engine, PageRequest, What, failure, require, rows};
use crate::error::{Code, Error};
use crate::ids::Digest;
use crate::sandbox::ProgressSender;
use crate::skill::{Selector, SkillName};
use crate::store::{self, PackageSet, Page};

impl Engine {
    /// The caller's installed packages, the newest first.
    pub async fn package_sets(&self, caller: &Caller, page: PageRequest) -> Result<Page<PackageSet>, Error> {
        require(caller, &[Scope::Run, Scope::Skills])?;
        let rows = rows(&page);
        let found = self.0.store.package_sets(caller.tenant(), page.after, rows).await;
        found.map_err(|error| failure::of_store(error, "installed packages"))
    }

    /// Installs whatever a skill's program and its scripts ask for, and returns those sets.
    pub async fn prefetch_packages(
        &self,
        caller: &Caller,
        (name, selector): (SkillName, Selector),
        progress: Option<ProgressSender>,
    ) -> Result<Vec<PackageSet>, Error> {
        require(caller, &[Scope::Skills])?;
        let (engine, caller) = (self.clone(), caller.clone());
        let gone = CancellationToken::new();
        let _goes_with_the_caller = gone.clone().drop_guard();
        let waiting = (progress, gone);
        self.to_the_end(async move {
            Box::pin(engine.prefetch_attached(&caller, (name, selector), &waiting)).await
        })
        .await
    }

    async fn prefetch_attached(
        &self,
        caller: &Caller,
        (name, selector): (SkillName, Selector),
        (progress, gone): &(Option<ProgressSender>, CancellationToken),
    ) -> Result<Vec<PackageSet>, Error> {
        let record = self.skill(caller, &name, &selector).await?;
        let program = record.manifest.entrypoint.as_ref().map(|_| None);
        let scripts = record
            .manifest
            .actions
            .iter()
            .map(|action| Some(action.path.clone()));
        let waiting = Waiting {
            progress: progress.as_ref(),
            gone,
        };
        let admitted = gone
            .run_until_cancelled(self.0.admission.admit(caller.tenant()))
            .await;
        let _slot = admitted.ok_or_else(|| Error::new(Code::Busy, "the caller left the queue"))??;
        let mut keys = BTreeSet::new();
        for script in program.into_iter().chain(scripts) {
            let what = What::Skill {
                name: name.clone(),
                selector: Selector::Digest(record.digest),
            };
            let ask = Ask {
                script,
                ..Ask::default()
            };
            let mut found = self.find(caller, what, &ask).await?;
            // Whether it asks for anything is told without an image or an engine.
            if declared::wanted(&found.plan, &[]).await?.is_empty() {
                continue;
            }
            let choice = self.prepare(&found.plan.job, progress.as_ref()).await?;
            let planned = (&mut found.plan, &choice);
            keys.extend(self.add_packages(caller.tenant(), planned, &[], waiting).await?);
        }
        let mut sets = Vec::with_capacity(keys.len());
        for key in keys {
            let set = self.0.store.packages(caller.tenant(), &key).await;
            sets.push(set.map_err(|error| failure::of_store(error, "installed packages"))?);
        }
        Ok(sets)
    }

    /// Forgets installed packages, if they are there; who asks for them next has them installed anew. Running programs keep theirs.
    pub async fn delete_packages(&self, caller: &Caller, key: &Digest) -> Result<(), Error> {
        require(caller, &[Scope::Skills])?;
        let set = self.0.store.packages(caller.tenant(), key).await;
        let set = match set {
            Ok(set) => set,
            // Another tenant's and nobody's look the same.
            Err(store::Error::NotFound) => return Ok(()),
            Err(error) => return Err(failure::of_store(error, "installed packages")),
        };
        let engine = self.clone();
        // A client that goes away must not leave bytes that nobody finds.
        self.to_the_end(async move { engine.forget_packages(&set).await })
            .await
    }
}
