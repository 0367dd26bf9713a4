//! Installed packages of the embedded engine or a server.

use std::sync::Arc;

use serde_json::json;
use ureq::http::Method;

use super::remote::{ApiCall, RequestBody, read_json};
use super::{Client, EmbeddedClient, Listed, RemoteClient};
use crate::api::List;
use crate::api::packages::{self, PackageSetInfo, Prefetch};
use crate::cli::failure::Result;
use crate::cli::progress::{Message, Spinner};
use crate::ids::Digest;
use crate::limits;
use crate::sandbox::Progress;
use crate::skill::{Selector, SkillName};

impl Client {
    pub(crate) fn packages(&self, rows: usize) -> Result<Listed<PackageSetInfo>> {
        match self {
            Self::Embedded(local) => local.list(rows, packages::list),
            Self::Remote(remote) => remote.listed("/v1/deps", &[], rows),
        }
    }

    pub(crate) fn prefetch(&self, name: &SkillName, selector: &Selector) -> Result<Vec<PackageSetInfo>> {
        let request = Prefetch {
            skill: name.clone(),
            version: Some(selector.clone()),
        };
        let sets = match self {
            Self::Embedded(local) => local.prefetch(request),
            Self::Remote(remote) => remote.prefetch(&request),
        };
        Ok(sets?.items)
    }

    pub(crate) fn delete_packages(&self, key: &Digest) -> Result<()> {
        match self {
            Self::Embedded(local) => local.call(packages::delete(local.engine(), local.caller(), key)),
            Self::Remote(remote) => remote.delete(&format!("/v1/deps/{key}")),
        }
    }
}

impl EmbeddedClient {
    fn prefetch(&self, request: Prefetch) -> Result<List<PackageSetInfo>> {
        let (sender, mut progress) = tokio::sync::mpsc::channel(limits::PROGRESS_QUEUE);
        let spinner = Arc::new(Spinner::start("looking for packages"));
        self.call(async {
            let told = async {
                while let Some(progress) = progress.recv().await {
                    spinner.report(progress_message(progress));
                }
                std::future::pending().await
            };
            tokio::select! {
                sets = packages::prefetch(self.engine(), self.caller(), request, Some(sender)) => sets,
                sets = told => sets,
            }
        })
    }
}

impl RemoteClient {
    fn prefetch(&self, request: &Prefetch) -> Result<List<PackageSetInfo>> {
        let _spinner = Spinner::start(format!("installing packages of {}", request.skill));
        let call = ApiCall {
            answer_max: limits::CLIENT_RUN_MAX,
            ..ApiCall::new(Method::POST, "/v1/deps/prefetch")
        };
        read_json(self.send(&call, RequestBody::json(&json!(request)))?)
    }
}

pub(super) fn progress_message(progress: Progress) -> Message {
    let mib = |bytes: u64| bytes.div_ceil(limits::MIB);
    match progress {
        Progress::Pulling { image, detail } => Message::Passing(format!("pulling {image}: {detail}")),
        Progress::Installing { packages, count: 1 } => Message::Step(format!("installing {packages}")),
        Progress::Installing { packages, count } => {
            Message::Step(format!("installing {count} packages: {packages}"))
        }
        Progress::Downloaded {
            packages,
            count,
            bytes,
        } => {
            let packages = packages.map_or_else(String::new, |packages| format!("{packages}/{count}, "));
            Message::Passing(format!(
                "installing packages: {packages}{} MiB downloaded",
                mib(bytes)
            ))
        }
        Progress::Unpacking { bytes } => Message::Passing(format!(
            "installing packages: {} MiB downloaded, unpacking",
            mib(bytes)
        )),
        Progress::Storing => Message::Passing("installing packages: storing them".to_owned()),
        Progress::Installed { bytes, took } => {
            let seconds = took.as_secs_f64();
            Message::Step(format!("installed {} MiB in {seconds:.0} s", mib(bytes)))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn says_how_many_packages_have_arrived() {
        let arrived = |packages, count| {
            let bytes = 3 * limits::MIB - 1;
            let progress = Progress::Downloaded {
                packages,
                count,
                bytes,
            };
            progress_message(progress).into_text()
        };
        assert_eq!(
            arrived(Some(9), 14),
            "installing packages: 9/14, 3 MiB downloaded"
        );
        // npm does not name the packages that it fetches.
        assert_eq!(arrived(None, 2), "installing packages: 3 MiB downloaded");
    }
}
