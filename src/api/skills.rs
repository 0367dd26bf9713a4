//! Skills: published, listed, downloaded and deleted.

use std::collections::BTreeMap;
use std::fs::File;

use serde::{Deserialize, Serialize};

use super::{List, RUN_OR_SKILLS, SKILLS, audit, require};
use crate::auth::{AuditAction, Caller};
use crate::blob::Object;
use crate::engine::{Engine, PageRequest, PushSource};
use crate::error::Error;
use crate::ids::Digest;
use crate::skill::{
    Action, Dialect, Function, Language, Manifest, Origin, SecretName, Selector, SkillName, SkillRef,
    Version, Warning,
};
use crate::store::{Published, SkillRecord};

/// A version of a skill in a list.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct SkillSummary {
    #[schema(value_type = String, format = "skill-name", example = "data-analysis")]
    pub name: SkillName,
    #[schema(value_type = String, format = "version", example = "1.2.0")]
    pub version: Version,
    /// Digest of the content.
    #[schema(value_type = String, format = "digest")]
    pub digest: Digest,
    /// Purpose and use.
    pub description: String,
    /// Format of the skill.
    #[serde(default)]
    #[schema(required)]
    pub dialect: Dialect,
    /// Language of the program; `null` if the skill has no default program.
    #[schema(required)]
    pub language: Option<Language>,
    /// Size of the uploaded archive in bytes.
    pub archive_bytes: u64,
    /// Size of all files in bytes.
    pub unpacked_bytes: u64,
    /// Number of files.
    pub files: u32,
    /// Time of publication.
    #[schema(value_type = String, format = DateTime)]
    pub created_at: jiff::Timestamp,
}

/// A version of a skill with everything that its author declared.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Skill {
    #[serde(flatten)]
    pub summary: SkillSummary,
    /// File that is run, relative to the skill's folder.
    #[schema(required)]
    pub entrypoint: Option<String>,
    /// Requested image; `null` for the default of the language.
    #[schema(required)]
    pub image: Option<String>,
    /// Requested wall clock limit in seconds.
    #[schema(required)]
    pub timeout: Option<f64>,
    /// Requested memory in bytes.
    #[schema(required)]
    pub memory_bytes: Option<u64>,
    /// Requested CPU in thousandths of a core.
    #[schema(required)]
    pub cpu_millis: Option<u32>,
    /// Requested size of `/workspace` in bytes.
    #[schema(required)]
    pub disk_bytes: Option<u64>,
    /// JSON Schema of the input.
    #[schema(required)]
    pub input_schema: Option<serde_json::Value>,
    /// JSON Schema of the output.
    #[schema(required)]
    pub output_schema: Option<serde_json::Value>,
    /// Declared licence.
    #[schema(required)]
    pub license: Option<String>,
    /// Declared compatibility.
    #[schema(required)]
    pub compatibility: Option<String>,
    /// Further keys of the author.
    pub metadata: BTreeMap<String, String>,
    /// Declared tools that an agent may use with it.
    #[schema(required)]
    pub allowed_tools: Option<String>,
    /// Instructions for a model: the body of SKILL.md.
    pub instructions: String,
    /// Function of the entrypoint, if that is a module of functions.
    #[schema(required)]
    pub function: Option<Function>,
    /// Declared secrets, all of which must be set.
    #[schema(value_type = Vec<String>, format = "secret-name")]
    pub secrets: Vec<SecretName>,
    /// Source of each value, by its key. Missing keys have the server's default.
    pub origins: BTreeMap<String, Origin>,
    /// The first 200 scripts that can be run by path, with their descriptions.
    pub actions: Vec<Action>,
    /// Packages that were added to this version, beside its files.
    #[serde(default)]
    #[schema(required)]
    pub requirements: Vec<String>,
    /// Warnings of the lint.
    pub warnings: Vec<Warning>,
    /// The version that `latest` selects now; `null` if all versions were deleted meanwhile.
    #[serde(default)]
    #[schema(required, value_type = Option<String>, format = "version", example = "1.2.0")]
    pub latest: Option<Version>,
}

/// A published version.
#[derive(Debug)]
pub struct PublishedSkill {
    pub skill: Skill,
    /// The same content was already published.
    pub existed: bool,
}

/// An archive to publish.
#[derive(Debug)]
pub struct Push {
    pub archive: File,
    /// Names a skill that declares no name.
    pub fallback_name: Option<String>,
    /// Packages to add to the version; those of the version that is `latest` if absent.
    pub requirements: Option<Vec<String>>,
}

impl Push {
    pub(super) fn of(self, caller: &Caller) -> (PushSource, File) {
        let source = PushSource {
            tenant: caller.tenant().clone(),
            folder: self.fallback_name,
            key: Some(caller.key()),
            requirements: self.requirements,
        };
        (source, self.archive)
    }
}

/// Packages to add to a version of a skill.
#[derive(Clone, Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct AddedRequirements {
    /// All of them, as in `requirements` of a request; an empty list removes all.
    #[schema(max_items = 200, example = json!(["pypdf>=5"]))]
    pub requirements: Vec<String>,
}

/// Publishes an archive under the name and version that it declares.
pub async fn publish(engine: &Engine, caller: &Caller, push: Push) -> Result<PublishedSkill, Error> {
    require(caller, SKILLS)?;
    let (source, archive) = push.of(caller);
    let published = audit::recorded(engine, caller, AuditAction::SkillPublished, |engine| async move {
        let made = engine.skills().publish_from(source, archive).await?;
        let target = format!("{}@{}", made.0.name, made.0.version);
        Ok((made, target))
    });
    let (record, published) = published.await?;
    Ok(PublishedSkill {
        skill: with_latest(engine, record).await?,
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
    let record = engine.skills().get(caller.tenant(), name, selector).await?;
    with_latest(engine, record).await
}

/// Replaces the packages that were added to a version. Later pushes carry them over.
pub async fn set_requirements(
    engine: &Engine,
    caller: &Caller,
    skill: &SkillRef,
    added: &AddedRequirements,
) -> Result<Skill, Error> {
    require(caller, SKILLS)?;
    let (tenant, skill, added) = (caller.tenant().clone(), skill.clone(), added.clone());
    let action = AuditAction::SkillRequirementsSet;
    let changed = audit::recorded(engine, caller, action, |engine| async move {
        let SkillRef { name, selector } = &skill;
        let skills = engine.skills();
        let record = skills.set_requirements(&tenant, name, selector, &added.requirements);
        let record = record.await?;
        let target = format!("{}@{}", record.name, record.version);
        Ok((record, target))
    });
    with_latest(engine, changed.await?).await
}

async fn with_latest(engine: &Engine, record: SkillRecord) -> Result<Skill, Error> {
    let latest = engine.skills().latest(&record.tenant, &record.name).await?;
    Ok(Skill::of(record, latest))
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
    let (tenant, name, selector) = (caller.tenant().clone(), name.clone(), selector.clone());
    let deleted = audit::recorded(engine, caller, AuditAction::SkillDeleted, |engine| async move {
        engine.skills().delete(&tenant, &name, &selector).await?;
        Ok(((), format!("{name}@{selector}")))
    });
    deleted.await
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

impl Skill {
    pub(super) fn of(record: SkillRecord, latest: Option<Version>) -> Self {
        let summary = SkillSummary::from(&record);
        let requirements = record.requirements;
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
            requirements,
            warnings,
            latest,
        }
    }
}
