//! Kept requests: stored with their executions, shown, and run again.

use crate::engine::plan::PlannedRun;
use crate::engine::request::{KeptRequest, RequestDraft, RequestFile, StoredRequest};
use crate::engine::{Executions, RunSpec, Runs};
use crate::error::{Code, Error};
use crate::ids::{ExecutionId, Tenant};
use crate::skill::Selector;

/// What is known of the request of an execution.
#[derive(Debug)]
pub enum RequestRecord {
    /// As it was sent, and the files whose contents are missing in it.
    Kept {
        spec: Box<RunSpec>,
        left_out: Vec<RequestFile>,
    },
    /// Why it was not kept.
    NotKept(String),
}

/// Which version of the skill runs again.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize, utoipa::ToSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum RerunVersion {
    /// The content that ran, also of mounted skills.
    #[default]
    Same,
    /// The version that `latest` selects now. Mounted skills are selected as in the request.
    Latest,
}

impl Runs<'_> {
    /// Encodes what is kept of an accepted request.
    pub(super) async fn keep_request(
        self,
        draft: Option<RequestDraft>,
        planned: &mut PlannedRun,
    ) -> Result<(), Error> {
        let Some(draft) = draft else { return Ok(()) };
        let (mask, mounted) = (
            planned.job.program.mask.clone(),
            planned.job.sandbox.mounted.clone(),
        );
        let is_large = draft.is_large();
        let encode = move || draft.encode(&mask, &mounted);
        let encoded = if is_large {
            let blocking = tokio::task::spawn_blocking(encode);
            blocking.await.map_err(Error::internal)??
        } else {
            encode()?
        };
        planned.kept_request = Some(encoded);
        Ok(())
    }
}

impl Executions<'_> {
    /// The request of an execution.
    pub async fn request(self, tenant: &Tenant, id: ExecutionId) -> Result<RequestRecord, Error> {
        let stored = self.stored_request(tenant, id).await?;
        Ok(match stored {
            Ok(kept) => RequestRecord::Kept {
                spec: Box::new(kept.spec),
                left_out: kept.left_out,
            },
            Err(reason) => RequestRecord::NotKept(reason),
        })
    }

    /// The request of an execution, to be run again. An error names what was not kept.
    pub async fn rerun_spec(
        self,
        tenant: &Tenant,
        id: ExecutionId,
        version: RerunVersion,
    ) -> Result<RunSpec, Error> {
        let stored = self.stored_request(tenant, id).await?;
        let kept = stored.map_err(|reason| {
            Error::invalid(format!(
                "the request of execution `{id}` was not kept: {reason}; send the request again"
            ))
        })?;
        check_files(&kept.left_out)?;
        let KeptRequest {
            mut spec, mounted, ..
        } = kept;
        match version {
            RerunVersion::Latest => {
                if let Some(skill) = &mut spec.skill {
                    skill.selector = Selector::Latest;
                }
            }
            RerunVersion::Same => {
                self.pin_skill(tenant, id, &mut spec).await?;
                for mount in &mut spec.mount_skills {
                    if let Some(pinned) = mounted.iter().find(|pinned| pinned.name == mount.name) {
                        mount.selector = pinned.selector.clone();
                    }
                }
            }
        }
        Ok(spec)
    }

    /// Selects the content that ran, under whatever version it is published now.
    async fn pin_skill(self, tenant: &Tenant, id: ExecutionId, spec: &mut RunSpec) -> Result<(), Error> {
        let Some(skill) = &mut spec.skill else {
            return Ok(());
        };
        let ran = self.get(tenant, id).await?.new;
        let Some(digest) = ran.digest else { return Ok(()) };
        skill.selector = Selector::Digest(digest);
        let found = self
            .engine
            .skills()
            .get(tenant, &skill.name, &skill.selector)
            .await;
        match found {
            Ok(_) => Ok(()),
            Err(error) if error.code() == Code::NotFound => {
                let version = ran
                    .version
                    .map_or_else(String::new, |version| format!(" {version}"));
                Err(Error::new(
                    Code::NotFound,
                    format!(
                        "version: the content of `{}`{version} that ran was deleted; send `\"version\": \"latest\"`, or publish it again",
                        skill.name
                    ),
                ))
            }
            Err(error) => Err(error),
        }
    }

    /// The kept request, or why there is none.
    async fn stored_request(
        self,
        tenant: &Tenant,
        id: ExecutionId,
    ) -> Result<Result<KeptRequest, String>, Error> {
        let stored = self.engine.store.kept_request(tenant, id).await?;
        let Some(stored) = stored else {
            return Ok(Err(
                "the execution is from an earlier release, or `executions.keep_request` was off".to_owned(),
            ));
        };
        // A large one takes some milliseconds to parse.
        let decoding = tokio::task::spawn_blocking(move || StoredRequest::decode(&stored));
        Ok(match decoding.await.map_err(Error::internal)?? {
            StoredRequest::Kept(kept) => Ok(*kept),
            StoredRequest::NotKept(reason) => Err(reason.reason()),
        })
    }
}

fn check_files(left_out: &[RequestFile]) -> Result<(), Error> {
    let Some(first) = left_out.first() else {
        return Ok(());
    };
    let path = crate::error::quoted(&first.path);
    let others = match left_out.len() - 1 {
        0 => String::new(),
        1 => " and another file".to_owned(),
        others => format!(" and {others} other files"),
    };
    Err(Error::invalid(format!(
        "the request's file {path}{others} was not kept; send the request again"
    )))
}
