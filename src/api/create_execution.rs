//! The JSON of a request for an execution.

use std::fmt;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use bytes::Bytes;
use serde::de::{self, Deserializer, MapAccess, Visitor};
use serde::{Deserialize, Serialize, Serializer};

use super::args::Args;
use super::unless_null;
use crate::engine::{OnDisconnect, RunSpec};
use crate::error::Error;
use crate::execution::JsonText;
use crate::ids::Digest;
use crate::limits;
use crate::sandbox::InputFile;
use crate::skill::{Language, Selector, SkillName, SkillRef};

/// One execution as asked for.
#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"skill": "text-summary", "version": "latest", "input": {"text": "Some text."}, "timeout": 30}))]
pub struct CreateExecution {
    /// The skill to run; or else `code`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, max_length = 64)]
    pub skill: Option<SkillName>,
    /// Code to run, at most 1 MiB; or else `skill`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// What `code` is written in; `python` if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub language: Option<Language>,
    /// A semantic version, `latest` or a digest `sha256:…`; `latest` if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, max_length = 71)]
    pub version: Option<Selector>,
    /// Any JSON, at most 10 MiB; it reaches the program byte for byte. `{}` if absent.
    #[serde(
        default,
        deserialize_with = "present",
        skip_serializing_if = "Option::is_none"
    )]
    #[schema(value_type = serde_json::Value)]
    pub input: Option<JsonText>,
    /// Arguments of the program, after its own name. An object is what `main(args)` is called with: another way to write
    /// `input`.
    #[serde(default, deserialize_with = "unless_null")]
    #[schema(value_type = Option<Args>)]
    pub args: Args,
    /// Files placed below `/workspace`: relative path to content in base64.
    #[serde(default, deserialize_with = "unless_null")]
    #[schema(value_type = Option<BTreeMap<String, String>>)]
    pub files: Files,
    /// Blobs placed in `/blobs`, each under the 64 hex digits of its id; at most 64 MiB together.
    #[serde(default, deserialize_with = "unless_null")]
    #[schema(value_type = Option<Vec<String>>, max_items = 100, example = json!(["sha256:…"]))]
    pub blobs: Vec<Digest>,
    /// A script of the skill to run instead of the skill's own program, by its path: `scripts/fill.py`. The extension or
    /// the `#!` line tells the interpreter. New and changed files of `/workspace` come back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 240)]
    pub script: Option<String>,
    /// Standard input of the program. If absent, a program gets its input there and a script nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stdin: Option<String>,
    /// Other published skills that the program sees at `/skills/<name>` and may import: `name`, or `name@1.2.0`.
    #[serde(default, deserialize_with = "unless_null")]
    #[schema(value_type = Option<Vec<String>>, max_items = 16, example = json!(["salesforce.leads@1.2.0"]))]
    pub mount_skills: Vec<SkillRef>,
    /// Packages besides those that the skill asks for: `pandas>=2` for Python, `lodash@^4` for Node.
    #[serde(default, deserialize_with = "unless_null")]
    #[schema(value_type = Option<Vec<String>>, max_items = 200)]
    pub requirements: Vec<String>,
    /// Wall clock in seconds, at least 0.1; only shortens what the skill and the server allow.
    #[serde(
        default,
        deserialize_with = "seconds",
        skip_serializing_if = "Option::is_none"
    )]
    #[schema(minimum = 0.1)]
    pub timeout: Option<f64>,
    /// Where the end of the execution is told, signed: an address on the Internet over HTTPS.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 2048, example = "https://hooks.example/skillbox")]
    pub callback_url: Option<String>,
    /// Whether the answer is its end, or that it waits for its turn.
    #[serde(default, deserialize_with = "unless_null")]
    #[schema(value_type = Option<Mode>)]
    pub mode: Mode,
    /// What becomes of it when the client hangs up; with `mode: sync` only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<OnDisconnect>)]
    pub on_disconnect: Option<OnDisconnect>,
}

/// When a request for an execution is answered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// When it has ended.
    #[default]
    Sync,
    /// When it is recorded; it runs when its turn comes.
    Async,
}

impl TryFrom<CreateExecution> for RunSpec {
    type Error = Error;

    fn try_from(body: CreateExecution) -> Result<Self, Error> {
        let timeout = body.timeout.map(Duration::try_from_secs_f64).transpose();
        let timeout = timeout.map_err(|_| Error::invalid("timeout: must be a positive number of seconds"))?;
        let (input, args) = body.args.with(body.input)?;
        let subject = match (body.skill, body.code) {
            (Some(_), Some(_)) => return Err(Error::invalid("skill, code: give one of the two")),
            (None, None) => return Err(Error::invalid("skill: missing; name a skill, or send code")),
            (Some(_), None) if body.language.is_some() => {
                return Err(Error::invalid("language: is for code; a skill says its own"));
            }
            (None, Some(_)) if body.version.is_some() => {
                return Err(Error::invalid("version: is for skills; leave it out with code"));
            }
            (Some(name), None) => Self::of_skill(name, body.version.unwrap_or_default()),
            (None, Some(code)) => Self::of_code(body.language.unwrap_or(Language::Python), code),
        };
        Ok(Self {
            input,
            args,
            files: body.files.0,
            blobs: body.blobs,
            script: body.script,
            stdin: body.stdin.map(Into::into),
            mount_skills: body.mount_skills,
            requirements: body.requirements,
            timeout,
            callback_url: body.callback_url,
            ..subject
        })
    }
}

impl TryFrom<RunSpec> for CreateExecution {
    /// Standard input is not UTF-8, which JSON cannot carry.
    type Error = std::str::Utf8Error;

    fn try_from(spec: RunSpec) -> Result<Self, Self::Error> {
        let stdin = spec.stdin.as_deref().map(std::str::from_utf8).transpose()?;
        let stdin = stdin.map(ToOwned::to_owned);
        let (skill, version) = spec.skill.map(|skill| (skill.name, skill.selector)).unzip();
        Ok(Self {
            skill,
            code: spec.code,
            language: spec.language,
            version,
            input: spec.input,
            args: Args::Words(spec.args),
            files: Files(spec.files),
            blobs: spec.blobs,
            script: spec.script,
            stdin,
            mount_skills: spec.mount_skills,
            requirements: spec.requirements,
            timeout: spec.timeout.map(|timeout| timeout.as_secs_f64()),
            callback_url: spec.callback_url,
            mode: Mode::default(),
            on_disconnect: None,
        })
    }
}

/// An explicit `null` is an input too: the program reads `null`.
fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<JsonText>, D::Error> {
    JsonText::deserialize(deserializer).map(Some)
}

/// A number of seconds: a text with a unit, as the command line takes it, is none.
fn seconds<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<f64>, D::Error> {
    Option::deserialize(deserializer)
        .map_err(|_| de::Error::custom("not a number of seconds; write it without quotes or unit, like 30"))
}

/// The member `files`, decoded as it is read.
#[derive(Debug, Default)]
pub struct Files(pub Vec<InputFile>);

impl Serialize for Files {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(
            self.0
                .iter()
                .map(|file| (&file.path, BASE64.encode(&file.content))),
        )
    }
}

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

#[cfg(test)]
mod tests {
    use super::*;

    ///
    #[test]
    fn sends_input_as_written_and_reads_itself_back() {
        let spec = RunSpec {
            input: JsonText::parse(b"{\"n\": 9007199254740993.10}").ok(),
            files: vec![InputFile {
                path: "a".to_owned(),
                content: Bytes::from_static(b"\0\xff"),
            }],
            timeout: Some(Duration::from_millis(1500)),
            ..RunSpec::of_skill("demo".parse().unwrap(), Selector::Latest)
        };
        let body = CreateExecution::try_from(spec.clone()).unwrap();
        let body = serde_json::to_string(&body).unwrap();
        assert!(body.contains("\"input\":{\"n\": 9007199254740993.10}"), "{body}");
        let read: CreateExecution = serde_json::from_str(&body).unwrap();
        let read = RunSpec::try_from(read).unwrap();
        assert_eq!(
            serde_json::to_string(&read).unwrap(),
            serde_json::to_string(&spec).unwrap()
        );
    }
}
