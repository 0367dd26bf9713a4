//! Installed packages, here and on a server.

use std::sync::Arc;

use serde_json::json;
use ureq::http::Method;

use super::remote::{ApiCall, RequestBody, read_json};
use super::{Client, EmbeddedClient, Listed, RemoteClient};
use crate::cli::failure::Result;
use crate::cli::progress::Spinner;
use crate::http::{List, Packages};
use crate::ids::Digest;
use crate::limits;
use crate::sandbox::Progress;
use crate::skill::{Selector, SkillName};

impl Client {
    pub(crate) fn packages(&self, rows: usize) -> Result<Listed<Packages>> {
        match self {
            Self::Embedded(local) => local.list(rows, async |page| {
                local.engine().package_sets(local.caller(), page).await
            }),
            Self::Remote(remote) => remote.listed("/v1/deps", &[], rows),
        }
    }

    pub(crate) fn prefetch(&self, name: &SkillName, selector: &Selector) -> Result<Vec<Packages>> {
        match self {
            Self::Embedded(local) => local.prefetch(name, selector),
            Self::Remote(remote) => remote.prefetch(name, selector),
        }
    }

    pub(crate) fn delete_packages(&self, key: &Digest) -> Result<()> {
        match self {
            Self::Embedded(local) => Ok(local.wait(local.engine().delete_packages(local.caller(), key))?),
            Self::Remote(remote) => remote.delete(&format!("/v1/deps/{key}")),
        }
    }
}

impl EmbeddedClient {
    fn prefetch(&self, name: &SkillName, selector: &Selector) -> Result<Vec<Packages>> {
        let (sender, mut progress) = tokio::sync::mpsc::channel(limits::PROGRESS_QUEUE);
        let spinner = Arc::new(Spinner::start("looking for packages"));
        let (name, selector) = (name.clone(), selector.clone());
        let sets = self.wait(async {
            let told = async {
                while let Some(progress) = progress.recv().await {
                    spinner.say(progress_message(progress));
                }
                std::future::pending().await
            };
            tokio::select! {
                sets = self.engine().prefetch_packages(self.caller(), name, selector, Some(sender)) => sets,
                sets = told => sets,
            }
        })?;
        Ok(sets.iter().map(Packages::from).collect())
    }
}

impl RemoteClient {
    fn prefetch(&self, name: &SkillName, selector: &Selector) -> Result<Vec<Packages>> {
        let _spinner = Spinner::start(format!("installing packages of {name}"));
        let call = ApiCall {
            answer_max: limits::CLIENT_RUN_MAX,
            ..ApiCall::new(Method::POST, "/v1/deps/prefetch")
        };
        let body = json!({ "skill": name, "version": selector });
        let sets: List<Packages> = read_json(self.send(&call, RequestBody::json(&body))?)?;
        Ok(sets.items)
    }
}

/// What takes long, for people.
pub(super) fn progress_message(progress: Progress) -> String {
    match progress {
        Progress::Pulling { image, detail } => format!("pulling {image}: {detail}"),
        Progress::Installing { packages } => format!("installing {packages}"),
    }
}
