//! The JSON of skills and keys, and of the requests that this door takes. An execution's is `execution::Envelope`.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use bytes::Bytes;
use serde::de::{self, Deserializer, MapAccess, Visitor};
use serde::{Deserialize, Serialize};

use super::args::Args;
use super::extract::{Body, unless_null};
use crate::auth::{ApiKey, KeyRecord, Scope, Scopes};
use crate::engine::{Ask, AskedBlob, CalledCode, NewKey, OnDisconnect, RunRequest, What};
use crate::error::Error;
use crate::execution::JsonText;
use crate::ids::{Digest, KeyId, Tenant};
use crate::limits;
use crate::sandbox::InputFile;
use crate::skill::{
    Action, Dialect, Function, Language, Manifest, Origin, SecretName, Selector, SkillName, SkillRef,
    Version, Warning,
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

/// A fresh API key. The secret is told here and never again.
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

/// One execution as asked for.
#[derive(Debug, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"skill": "text-summary", "version": "latest", "input": {"text": "Some text."}, "timeout": 30}))]
pub(crate) struct CreateExecution {
    /// The skill to run; or else `code`.
    #[serde(default)]
    #[schema(value_type = Option<String>, max_length = 64)]
    skill: Option<SkillName>,
    /// Code to run, at most 1 MiB; or else `skill`.
    #[serde(default)]
    code: Option<String>,
    /// What `code` is written in; `python` if absent.
    #[serde(default)]
    language: Option<Language>,
    /// A semantic version, `latest` or a digest `sha256:…`; `latest` if absent.
    #[serde(default)]
    #[schema(value_type = Option<String>, max_length = 71)]
    version: Option<Selector>,
    /// Any JSON, at most 10 MiB; it reaches the program byte for byte. `{}` if absent.
    #[serde(default, deserialize_with = "present")]
    #[schema(value_type = serde_json::Value)]
    input: Option<JsonText>,
    /// Arguments of the program, after its own name. An object is what `main(args)` is called with: another way to write
    /// `input`.
    #[serde(default, deserialize_with = "unless_null")]
    #[schema(value_type = Option<Args>)]
    args: Args,
    /// Files placed below `/workspace`: relative path to content in base64.
    #[serde(default, deserialize_with = "unless_null")]
    #[schema(value_type = Option<BTreeMap<String, String>>)]
    files: Files,
    /// Blobs placed in `/blobs`, each under the 64 hex digits of its id; at most 64 MiB together.
    #[serde(default, deserialize_with = "unless_null")]
    #[schema(value_type = Option<Vec<String>>, max_items = 100, example = json!(["sha256:…"]))]
    blobs: Vec<Digest>,
    /// A script of the skill to run instead of the skill's own program, by its path: `scripts/fill.py`. The extension or
    /// the `#!` line tells the interpreter. New and changed files of `/workspace` come back.
    #[serde(default)]
    #[schema(max_length = 240)]
    script: Option<String>,
    /// Standard input of the program. If absent, a program gets its input there and a script nothing.
    #[serde(default)]
    stdin: Option<String>,
    /// Other published skills that the program sees at `/skills/<name>` and may import: `name`, or `name@1.2.0`.
    #[serde(default, deserialize_with = "unless_null")]
    #[schema(value_type = Option<Vec<String>>, max_items = 16, example = json!(["salesforce.leads@1.2.0"]))]
    mount_skills: Vec<SkillRef>,
    /// Packages besides those that the skill asks for: `pandas>=2` for Python, `lodash@^4` for Node.
    #[serde(default, deserialize_with = "unless_null")]
    #[schema(value_type = Option<Vec<String>>, max_items = 200)]
    requirements: Vec<String>,
    /// Wall clock in seconds, at least 0.1; only shortens what the skill and the server allow.
    #[serde(default, deserialize_with = "seconds")]
    #[schema(minimum = 0.1)]
    timeout: Option<f64>,
    /// Where the end of the execution is told, signed: an address on the Internet over HTTPS.
    #[serde(default)]
    #[schema(max_length = 2048, example = "https://hooks.example/skillbox")]
    callback_url: Option<String>,
    /// Whether the answer is its end, or that it waits for its turn.
    #[serde(default, deserialize_with = "unless_null")]
    #[schema(value_type = Option<Mode>)]
    pub(crate) mode: Mode,
    /// What becomes of it when the client hangs up; with `mode: sync` only.
    #[serde(default)]
    #[schema(value_type = Option<OnDisconnect>)]
    pub(crate) on_disconnect: Option<OnDisconnect>,
}

/// When a request for an execution is answered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Mode {
    /// When it has ended.
    #[default]
    Sync,
    /// When it is recorded; it runs when its turn comes.
    Async,
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

impl Body for CreateExecution {
    const BYTES_MAX: u64 = limits::EXECUTION_BODY_BYTES_MAX;
}

impl Body for CreateKey {
    const BYTES_MAX: u64 = limits::BODY_BYTES_MAX;
}

impl TryFrom<CreateExecution> for RunRequest {
    type Error = Error;

    fn try_from(body: CreateExecution) -> Result<Self, Error> {
        let timeout = body.timeout.map(Duration::try_from_secs_f64).transpose();
        let timeout = timeout.map_err(|_| Error::invalid("timeout: must be a positive number of seconds"))?;
        let (input, args) = body.args.with(body.input)?;
        let what = match (body.skill, body.code) {
            (Some(_), Some(_)) => return Err(Error::invalid("skill, code: give one of the two")),
            (None, None) => return Err(Error::invalid("skill: missing; name a skill, or send code")),
            (Some(_), None) if body.language.is_some() => {
                return Err(Error::invalid("language: is for code; a skill says its own"));
            }
            (None, Some(_)) if body.version.is_some() => {
                return Err(Error::invalid("version: is for skills; leave it out with code"));
            }
            (Some(name), None) => What::Skill {
                name,
                selector: body.version.unwrap_or_default(),
            },
            (None, Some(text)) => What::Code(CalledCode {
                text,
                language: body.language.unwrap_or(Language::Python),
            }),
        };
        Ok(Self {
            what,
            ask: Ask {
                input,
                args,
                files: body.files.0,
                blobs: body.blobs.into_iter().map(AskedBlob::Kept).collect(),
                script: body.script,
                mount_skills: body.mount_skills,
                stdin: body.stdin.map(Into::into),
                requirements: body.requirements,
                timeout,
                callback_url: body.callback_url,
            },
            progress: None,
        })
    }
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

/// An explicit `null` is an input too: the program reads `null`.
fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<JsonText>, D::Error> {
    JsonText::deserialize(deserializer).map(Some)
}

/// A time, refused in words that show how to write one.
pub(super) fn time<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<jiff::Timestamp>, D::Error> {
    let text = Option::<String>::deserialize(deserializer)?;
    let parsed = text.map(|text| text.parse()).transpose();
    parsed.map_err(|_| de::Error::custom("not a time; write it in full, like 2026-01-31T12:00:00Z"))
}

/// A number of seconds: a text with a unit, as the command line takes it, is none.
fn seconds<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<f64>, D::Error> {
    Option::deserialize(deserializer)
        .map_err(|_| de::Error::custom("not a number of seconds; write it without quotes or unit, like 30"))
}

/// The member `files`, decoded as it is read.
#[derive(Debug, Default)]
struct Files(Vec<InputFile>);

impl<'de> Deserialize<'de> for Files {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(FilesVisitor)
    }
}

struct FilesVisitor;

impl<'de> Visitor<'de> for FilesVisitor {
    type Value = Files;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object of paths and contents in base64")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Files, A::Error> {
        let mut files = Vec::new();
        while let Some((path, Base64(content))) = map.next_entry::<String, Base64>()? {
            if files.len() == limits::INPUT_FILES_MAX {
                return Err(de::Error::custom(format!(
                    "more than {} files",
                    limits::INPUT_FILES_MAX
                )));
            }
            files.push(InputFile { path, content });
        }
        Ok(Files(files))
    }
}

/// Text in base64, with or without padding.
struct Base64(Bytes);

const BASE64: GeneralPurpose = GeneralPurpose::new(
    &base64::alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

impl<'de> Deserialize<'de> for Base64 {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Text;

        impl Visitor<'_> for Text {
            type Value = Base64;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("text in base64")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Base64, E> {
                let bytes = BASE64
                    .decode(text)
                    .map_err(|error| E::custom(format!("not base64: {error}")))?;
                Ok(Base64(bytes.into()))
            }
        }

        deserializer.deserialize_str(Text)
    }
}
