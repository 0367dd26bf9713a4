//! Skills: published, listed, fetched and deleted, by the embedded engine or a server.

use std::fs::File;
use std::io::Read as _;

use serde_json::json;
use ureq::http::Method;

use super::embedded::copy_object;
use super::remote::{ApiCall, RequestBody, SEGMENT, copy, read_json};
use super::{Client, Listed, RemoteClient};
use crate::api::skills::{self, AddedRequirements, PublishedSkill, Push, Skill, SkillSummary};
use crate::cli::failure::{Failure, Result};
use crate::cli::progress::Spinner;
use crate::ids::ExecutionId;
use crate::limits;
use crate::skill::{Selector, SkillName, SkillRef};

impl Client {
    pub(crate) fn publish(&self, push: Push) -> Result<PublishedSkill> {
        match self {
            Self::Embedded(local) => local.call(skills::publish(local.engine(), local.caller(), push)),
            Self::Remote(remote) => remote.publish(push),
        }
    }

    /// Replaces the packages that were added to a version.
    pub(crate) fn set_requirements(&self, skill: &SkillRef, added: &AddedRequirements) -> Result<Skill> {
        match self {
            Self::Embedded(local) => local.call(skills::set_requirements(
                local.engine(),
                local.caller(),
                skill,
                added,
            )),
            Self::Remote(remote) => {
                let path = format!("{}/requirements", skill_path(&skill.name, &skill.selector));
                read_json(remote.send(
                    &ApiCall::new(Method::PUT, &path),
                    RequestBody::json(&json!(added)),
                )?)
            }
        }
    }

    pub(crate) fn skills(&self, rows: usize) -> Result<Listed<SkillSummary>> {
        match self {
            Self::Embedded(local) => local.list(rows, skills::list),
            Self::Remote(remote) => remote.listed("/v1/skills", &[], rows),
        }
    }

    pub(crate) fn versions(&self, name: &SkillName, rows: usize) -> Result<Listed<SkillSummary>> {
        match self {
            Self::Embedded(local) => local.list(rows, async |engine, caller, page| {
                skills::versions(engine, caller, name, page).await
            }),
            Self::Remote(remote) => remote.listed(&format!("/v1/skills/{name}"), &[], rows),
        }
    }

    pub(crate) fn skill(&self, name: &SkillName, selector: &Selector) -> Result<Skill> {
        match self {
            Self::Embedded(local) => local.call(skills::get(local.engine(), local.caller(), name, selector)),
            Self::Remote(remote) => remote.get(&skill_path(name, selector)),
        }
    }

    pub(crate) fn archive(&self, name: &SkillName, selector: &Selector, into: &mut File) -> Result<()> {
        match self {
            Self::Embedded(local) => local.wait(async {
                let archive = skills::archive(local.engine(), local.caller(), name, selector);
                let (_, object) = archive.await?;
                let size = object.size();
                copy_object(object, 0..size, into).await
            }),
            Self::Remote(remote) => {
                let answer = remote.call(&ApiCall {
                    accept: "application/zip",
                    ..ApiCall::new(Method::GET, &format!("{}/archive", skill_path(name, selector)))
                })?;
                copy(answer, into, limits::ARCHIVE_BYTES_MAX)
            }
        }
    }

    pub(crate) fn delete(&self, name: &SkillName, selector: &Selector) -> Result<()> {
        match self {
            Self::Embedded(local) => {
                local.call(skills::delete(local.engine(), local.caller(), name, selector))
            }
            Self::Remote(remote) => remote.delete(&skill_path(name, selector)),
        }
    }
}

impl RemoteClient {
    fn publish(&self, push: Push) -> Result<PublishedSkill> {
        let mut zip = Vec::new();
        (&push.archive)
            .take(limits::ARCHIVE_BYTES_MAX + 1)
            .read_to_end(&mut zip)
            .map_err(|error| Failure::internal("reading the archive", error))?;
        let _spinner = Spinner::start("uploading");
        let requirements = push.requirements.unwrap_or_default();
        let sent = match push.fallback_name {
            None if requirements.is_empty() => RequestBody {
                content_type: "application/zip".to_owned(),
                bytes: zip,
            },
            name => form(&name.unwrap_or_else(|| "skill".to_owned()), &zip, &requirements),
        };
        let answer = self.send(&ApiCall::new(Method::POST, "/v1/skills"), sent)?;
        Ok(PublishedSkill {
            existed: answer.status().as_u16() == 200,
            skill: read_json(answer)?,
        })
    }
}

fn skill_path(name: &SkillName, selector: &Selector) -> String {
    let selector = selector.to_string();
    let selector = percent_encoding::utf8_percent_encode(&selector, SEGMENT);
    format!("/v1/skills/{name}/{selector}")
}

/// A form with the archive, so that the server learns its name, and with packages to add.
fn form(name: &str, zip: &[u8], requirements: &[String]) -> RequestBody {
    let boundary = format!("skillbox-{}", ExecutionId::generate());
    let mut head = String::new();
    for requirement in requirements {
        head += &format!(
            "--{boundary}\r\ncontent-disposition: form-data; name=\"requirements\"\r\n\r\n{requirement}\r\n"
        );
    }
    head += &format!(
        "--{boundary}\r\ncontent-disposition: form-data; name=\"file\"; filename=\"{name}.zip\"\r\ncontent-type: application/zip\r\n\r\n"
    );
    let tail = format!("\r\n--{boundary}--\r\n");
    RequestBody {
        content_type: format!("multipart/form-data; boundary={boundary}"),
        bytes: [head.as_bytes(), zip, tail.as_bytes()].concat(),
    }
}
