//! The JSON of skills and keys. That of an execution is `execution::Envelope`.

use std::collections::BTreeMap;
use std::fmt;

use serde::de::{self, Deserializer};
use serde::{Deserialize, Serialize};

use super::extract::Body;
use crate::auth::{ApiKey, KeyRecord, Scope, Scopes};
use crate::engine::NewKey;
use crate::ids::{Digest, KeyId, Tenant};
use crate::limits;
use crate::skill::{
    Action, Dialect, Function, Language, Manifest, Origin, SecretName, SkillName, Version, Warning,
};
use crate::store::SkillRecord;

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

/// An API key, without the secret.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Key {
    /// Its public id.
    #[schema(value_type = String, format = Uuid)]
    pub key_id: KeyId,
    /// What its owner calls it.
    #[schema(example = "ci")]
    pub name: String,
    /// The first characters of the secret.
    #[schema(example = "skb_a1B2")]
    pub hint: String,
    /// What it may do.
    pub scopes: Vec<Scope>,
    /// Whose it is.
    #[schema(value_type = String, example = "default")]
    pub tenant: Tenant,
    /// When it was made.
    #[schema(value_type = String, format = DateTime)]
    pub created_at: jiff::Timestamp,
    /// When it stops working.
    #[schema(value_type = Option<String>, format = DateTime, required)]
    pub expires_at: Option<jiff::Timestamp>,
    /// When it was revoked.
    #[schema(value_type = Option<String>, format = DateTime, required)]
    pub revoked_at: Option<jiff::Timestamp>,
}

/// A new API key. Its secret is never shown again.
#[derive(Clone, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct FreshKey {
    /// What is known of it.
    #[serde(flatten)]
    pub key: Key,
    /// The secret: send it as `Authorization: Bearer …`.
    #[schema(example = "skb_…")]
    pub api_key: String,
}

impl fmt::Debug for FreshKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("FreshKey").field(&self.key).finish()
    }
}

/// A key as asked for.
#[derive(Debug, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"name": "ci", "scopes": ["run"]}))]
pub(crate) struct CreateKey {
    /// What you call it.
    #[schema(min_length = 1, max_length = 100)]
    name: String,
    /// What it may do.
    #[schema(min_items = 1)]
    scopes: Vec<Scope>,
    /// Whose it is; yours if absent. Only an administrator of the tenant `default` may name another.
    #[serde(default)]
    #[schema(value_type = Option<String>)]
    tenant: Option<Tenant>,
    /// When it stops working; never if absent.
    #[serde(default, deserialize_with = "time")]
    #[schema(value_type = Option<String>, format = DateTime)]
    expires_at: Option<jiff::Timestamp>,
}

impl Body for CreateKey {
    const BYTES_MAX: u64 = limits::BODY_BYTES_MAX;
}

impl From<CreateKey> for NewKey {
    fn from(body: CreateKey) -> Self {
        Self {
            name: body.name,
            scopes: Scopes::new(body.scopes),
            tenant: body.tenant,
            expires_at: body.expires_at,
        }
    }
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

impl From<&KeyRecord> for Key {
    fn from(record: &KeyRecord) -> Self {
        Self {
            key_id: record.id,
            name: record.name.clone(),
            hint: record.hint.clone(),
            scopes: record.scopes.iter().collect(),
            tenant: record.tenant.clone(),
            created_at: record.created_at,
            expires_at: record.expires_at,
            revoked_at: record.revoked_at,
        }
    }
}

impl FreshKey {
    /// The answer that tells the secret.
    pub(crate) fn new(record: &KeyRecord, key: &ApiKey) -> Self {
        Self {
            key: record.into(),
            api_key: key.reveal().to_owned(),
        }
    }
}

/// A time, refused in words that show how to write one.
pub(super) fn time<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<jiff::Timestamp>, D::Error> {
    let text = Option::<String>::deserialize(deserializer)?;
    let parsed = text.map(|text| text.parse()).transpose();
    parsed.map_err(|_| de::Error::custom("not a time; write it in full, like 2026-01-31T12:00:00Z"))
}
