//! Skills: published, listed, downloaded and deleted.

use std::collections::BTreeMap;
use std::fs::File;

use serde::{Deserialize, Serialize};

use super::{List, RUN_OR_SKILLS, SKILLS, require};
use crate::auth::Caller;
use crate::blob::Object;
use crate::engine::{Engine, PageRequest};
use crate::error::Error;
use crate::ids::Digest;
use crate::skill::{
    Action, Dialect, Function, Language, Manifest, Origin, SecretName, Selector, SkillName, Version, Warning,
};
use crate::store::{Published, SkillRecord};

/// A version of a skill in a list.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct SkillSummary {
    /// Its name.
    #[schema(value_type = String, example = "data-analysis")]
    pub name: SkillName,
    /// Its version.
    #[schema(value_type = String, example = "1.2.0")]
    pub version: Version,
    /// Its content.
    #[schema(value_type = String)]
    pub digest: Digest,
    /// What it does and when to use it.
    pub description: String,
    /// The form it was written in.
    #[serde(default)]
    #[schema(required)]
    pub dialect: Dialect,
    /// The language of its program; `null` where none is run without a word.
    #[schema(required)]
    pub language: Option<Language>,
    /// Size of the archive as uploaded, in bytes.
    pub archive_bytes: u64,
    /// Size of all files unpacked, in bytes.
    pub unpacked_bytes: u64,
    /// How many files.
    pub files: u32,
    /// When it was published.
    #[schema(value_type = String, format = DateTime)]
    pub created_at: jiff::Timestamp,
}

/// A version of a skill with all that its author declared.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Skill {
    /// As in lists.
    #[serde(flatten)]
    pub summary: SkillSummary,
    /// The file that is run, relative to the skill's folder.
    #[schema(required)]
    pub entrypoint: Option<String>,
    /// The image asked for; `null` means the language's default.
    #[schema(required)]
    pub image: Option<String>,
    /// The wall clock asked for, in seconds.
    #[schema(required)]
    pub timeout: Option<f64>,
    /// The memory asked for, in bytes.
    #[schema(required)]
    pub memory_bytes: Option<u64>,
    /// The CPU asked for, in thousandths of a core.
    #[schema(required)]
    pub cpu_millis: Option<u32>,
    /// The size of `/workspace` asked for, in bytes.
    #[schema(required)]
    pub disk_bytes: Option<u64>,
    /// JSON Schema of the input.
    #[schema(required)]
    pub input_schema: Option<serde_json::Value>,
    /// JSON Schema of the output.
    #[schema(required)]
    pub output_schema: Option<serde_json::Value>,
    /// The licence as declared.
    #[schema(required)]
    pub license: Option<String>,
    /// Where it runs, as declared.
    #[schema(required)]
    pub compatibility: Option<String>,
    /// The author's own keys.
    pub metadata: BTreeMap<String, String>,
    /// Tools an agent may use with it, as declared.
    #[schema(required)]
    pub allowed_tools: Option<String>,
    /// Instructions for a model: the body of SKILL.md.
    pub instructions: String,
    /// The function that is called in the entrypoint, where that is a module of functions.
    #[schema(required)]
    pub function: Option<Function>,
    /// Secrets that it is given; all must be there.
    #[schema(value_type = Vec<String>)]
    pub secrets: Vec<SecretName>,
    /// Where each value came from, by its key; what is not here is the server's default.
    pub origins: BTreeMap<String, Origin>,
    /// Its scripts that can be called by their path, and what they say of themselves; the first 200.
    pub actions: Vec<Action>,
    /// What was accepted but looks wrong.
    pub warnings: Vec<Warning>,
}

/// A published version.
#[derive(Debug)]
pub struct PublishedSkill {
    pub skill: Skill,
    /// The same content was already published.
    pub existed: bool,
}

/// Publishes an archive under the name and version that it declares. `fallback_name` names a skill that declares no name.
pub async fn publish(
    engine: &Engine,
    caller: &Caller,
    archive: File,
    fallback_name: Option<&str>,
) -> Result<PublishedSkill, Error> {
    require(caller, SKILLS)?;
    let (record, published) = engine
        .skills()
        .publish(caller.tenant(), archive, fallback_name)
        .await?;
    Ok(PublishedSkill {
        skill: record.into(),
        existed: matches!(published, Published::Same(_)),
    })
}

/// The latest version of each skill, by name.
pub async fn list(engine: &Engine, caller: &Caller, page: PageRequest) -> Result<List<SkillSummary>, Error> {
    require(caller, RUN_OR_SKILLS)?;
    Ok(List::of(&engine.skills().list(caller.tenant(), page).await?))
}

/// The versions of one skill, most recent push first.
pub async fn versions(
    engine: &Engine,
    caller: &Caller,
    name: &SkillName,
    page: PageRequest,
) -> Result<List<SkillSummary>, Error> {
    require(caller, RUN_OR_SKILLS)?;
    Ok(List::of(
        &engine.skills().versions(caller.tenant(), name, page).await?,
    ))
}

pub async fn get(
    engine: &Engine,
    caller: &Caller,
    name: &SkillName,
    selector: &Selector,
) -> Result<Skill, Error> {
    require(caller, RUN_OR_SKILLS)?;
    Ok(engine.skills().get(caller.tenant(), name, selector).await?.into())
}

/// The archive of one version as it was uploaded.
pub async fn archive(
    engine: &Engine,
    caller: &Caller,
    name: &SkillName,
    selector: &Selector,
) -> Result<(SkillRecord, Object), Error> {
    require(caller, RUN_OR_SKILLS)?;
    engine.skills().archive(caller.tenant(), name, selector).await
}

/// Deletes one version. Running executions of it are not affected.
pub async fn delete(
    engine: &Engine,
    caller: &Caller,
    name: &SkillName,
    selector: &Selector,
) -> Result<(), Error> {
    require(caller, SKILLS)?;
    engine.skills().delete(caller.tenant(), name, selector).await
}

impl From<&SkillRecord> for SkillSummary {
    fn from(record: &SkillRecord) -> Self {
        Self {
            name: record.name.clone(),
            version: record.version.clone(),
            digest: record.digest,
            description: record.manifest.description.clone(),
            dialect: record.manifest.dialect,
            language: record.manifest.language,
            archive_bytes: record.archive_bytes,
            unpacked_bytes: record.unpacked_bytes,
            files: record.files,
            created_at: record.created_at,
        }
    }
}

impl From<SkillRecord> for Skill {
    fn from(record: SkillRecord) -> Self {
        let summary = SkillSummary::from(&record);
        let Manifest {
            entrypoint,
            image,
            timeout,
            resources,
            input_schema,
            output_schema,
            license,
            compatibility,
            metadata,
            allowed_tools,
            instructions,
            warnings,
            actions,
            function,
            permissions,
            origins,
            ..
        } = record.manifest;
        Self {
            summary,
            entrypoint,
            image,
            timeout: timeout.map(|timeout| timeout.as_secs_f64()),
            memory_bytes: resources.memory_bytes,
            cpu_millis: resources.cpu_millis,
            disk_bytes: resources.disk_bytes,
            input_schema,
            output_schema,
            license,
            compatibility,
            metadata,
            allowed_tools,
            instructions,
            function,
            secrets: permissions.secrets,
            origins,
            actions,
            warnings,
        }
    }
}
