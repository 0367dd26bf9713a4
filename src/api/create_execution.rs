//! The request for an execution.

use std::fmt;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use bytes::Bytes;
use serde::de::{self, Deserializer, MapAccess, Visitor};
use serde::{Deserialize, Serialize, Serializer};
use serde_json::{Value, json};

use super::args::Args;
use super::unless_null;
use crate::engine::{OnDisconnect, RunSpec};
use crate::error::Error;
use crate::execution::{JsonText, Workdir};
use crate::ids::Digest;
use crate::limits;
use crate::sandbox::InputFile;
use crate::skill::{Language, Selector, SkillName, SkillRef};

/// Some 30 years, longer than any limit.
const TIMEOUT_SECONDS_END: f64 = 1e9;

/// A request for an execution.
#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"skill": "text-summary", "version": "latest", "input": {"text": "Some text."}, "timeout": 30}))]
pub struct CreateExecution {
    /// Skill to run. Alternative: `code`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = "skill-name")]
    pub skill: Option<SkillName>,
    /// Code to run, at most 1 MiB. Alternative: `skill`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// Language of `code`. Default: `python`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub language: Option<Language>,
    /// A semantic version, `latest` or a digest `sha256:…`. Default: `latest`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = "selector")]
    pub version: Option<Selector>,
    /// Any JSON, at most 10 MiB. The program receives it byte for byte. Default: `{}`.
    #[serde(
        default,
        deserialize_with = "present",
        skip_serializing_if = "Option::is_none"
    )]
    #[schema(value_type = serde_json::Value)]
    pub input: Option<JsonText>,
    /// Arguments of the program, after its own name. An object is the argument of `main(args)`, as an alternative to
    /// `input`.
    #[serde(default, deserialize_with = "unless_null")]
    #[schema(value_type = Option<Args>)]
    pub args: Args,
    /// Files for `/workspace`: relative path to base64 content. A path that ends in `/`, with empty content, is an empty
    /// folder.
    #[serde(default, deserialize_with = "unless_null")]
    #[schema(value_type = Option<BTreeMap<String, String>>, format = "base64")]
    pub files: Files,
    /// Blobs for `/blobs`, each named by the 64 hex digits of its id. At most 64 MiB in total.
    #[serde(default, deserialize_with = "unless_null")]
    #[schema(value_type = Option<Vec<String>>, format = "digest", max_items = 100, example = json!(["sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"]))]
    pub blobs: Vec<Digest>,
    /// Path of a script of the skill to run instead of its own program, such as `scripts/fill.py`. The extension or
    /// the `#!` line selects the interpreter. New and changed files of `/workspace` are returned.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 240)]
    pub script: Option<String>,
    /// What the working directory of a `script` starts with: the files of the request and files of the skill that an
    /// argument names, or all files of the skill, too. Default: `request` if there are `files`, else `skill`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workdir: Option<Workdir>,
    /// Standard input of the program. Default: the input for a program, nothing for a script.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stdin: Option<String>,
    /// Further published skills, mounted at `/skills/<name>` and importable: `name` or `name@1.2.0`.
    #[serde(default, deserialize_with = "unless_null")]
    #[schema(value_type = Option<Vec<String>>, format = "skill-reference", max_items = 16, example = json!(["salesforce.leads@1.2.0"]))]
    pub mount_skills: Vec<SkillRef>,
    /// Packages in addition to those of the skill: `pandas>=2` for Python, `lodash@^4` for Node.
    #[serde(default, deserialize_with = "unless_null")]
    #[schema(value_type = Option<Vec<String>>, max_items = 200)]
    pub requirements: Vec<String>,
    /// Wall clock limit in seconds, at least 0.1. Can only shorten the limits of the skill and the server.
    #[serde(
        default,
        deserialize_with = "seconds",
        skip_serializing_if = "Option::is_none"
    )]
    #[schema(minimum = 0.1)]
    pub timeout: Option<f64>,
    /// URL that receives a signed webhook at the end of the execution: an address on the Internet over HTTPS.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(format = "uri", max_length = 2048, example = "https://hooks.example/skillbox")]
    pub callback_url: Option<String>,
    /// Respond at the end of the execution, or immediately.
    #[serde(default, deserialize_with = "unless_null")]
    #[schema(value_type = Option<Mode>)]
    pub mode: Mode,
    /// What happens when the client disconnects. Only for `mode: sync`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<OnDisconnect>)]
    pub on_disconnect: Option<OnDisconnect>,
}

impl CreateExecution {
    /// Which members exclude each other, as keywords of JSON Schema.
    #[must_use]
    pub fn document_rules() -> Value {
        let absent = || json!({"type": "null"});
        json!({
            "if": {"required": ["skill"], "properties": {"skill": {"type": "string"}}},
            "then": {"properties": {"code": absent(), "language": absent()}},
            "else": {
                "required": ["code"],
                "properties": {"code": {"type": "string"}, "version": absent(), "script": absent()},
            },
            "not": {"anyOf": [
                {"required": ["workdir"], "properties": {"workdir": {"const": Workdir::Skill}, "script": absent()}},
                {"required": ["args", "input"], "properties": {"args": {"type": "object"}}},
                {
                    "required": ["mode", "on_disconnect"],
                    "properties": {"mode": {"const": Mode::Async}, "on_disconnect": {"const": OnDisconnect::Cancel}},
                },
            ]},
        })
    }
}

/// When a request is answered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// At the end of the execution.
    #[default]
    Sync,
    /// As soon as it is recorded. It runs when it gets a slot.
    Async,
}

impl Mode {
    /// Rejects what a request in this mode cannot ask for.
    pub fn check(self, on_disconnect: Option<OnDisconnect>, wait: Option<Duration>) -> Result<(), Error> {
        match self {
            Self::Sync if wait.is_some() => Err(Error::invalid(
                "wait: requires `\"mode\": \"async\"`; omit it, a synchronous request waits for the end",
            )),
            Self::Async if on_disconnect == Some(OnDisconnect::Cancel) => Err(Error::invalid(
                "on_disconnect: cannot be used with `\"mode\": \"async\"`, which closes the connection; omit one of them",
            )),
            Self::Sync | Self::Async => Ok(()),
        }
    }
}

impl TryFrom<CreateExecution> for RunSpec {
    type Error = Error;

    fn try_from(body: CreateExecution) -> Result<Self, Error> {
        // A larger one shortens nothing.
        let timeout = body.timeout.map(|seconds| seconds.min(TIMEOUT_SECONDS_END));
        let timeout = timeout.map(Duration::try_from_secs_f64).transpose();
        let timeout = timeout.map_err(|_| Error::invalid("timeout: must be a positive number of seconds"))?;
        let (input, args) = body.args.with(body.input)?;
        let subject = match (body.skill, body.code) {
            (Some(_), Some(_)) => return Err(Error::invalid("skill, code: both given; send one of them")),
            (None, None) => return Err(Error::invalid("skill, code: both missing; send one of them")),
            (Some(_), None) if body.language.is_some() => {
                return Err(Error::invalid("language: only for `code`; omit it for a skill"));
            }
            (None, Some(_)) if body.version.is_some() => {
                return Err(Error::invalid("version: only for `skill`; omit it for code"));
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
            workdir: body.workdir,
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
    /// Standard input that is not UTF-8, which JSON cannot contain.
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
            workdir: spec.workdir,
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

/// `null` is an input, too: the program reads `null`.
fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<JsonText>, D::Error> {
    JsonText::deserialize(deserializer).map(Some)
}

/// A number of seconds. A text with a unit, as on the command line, is rejected.
fn seconds<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<f64>, D::Error> {
    Option::deserialize(deserializer)
        .map_err(|_| de::Error::custom("not a number of seconds; write it without quotes or unit, like 30"))
}

/// The member `files`, decoded while it is read.
#[derive(Debug, Default)]
pub struct Files(pub Vec<InputFile>);

impl Files {
    /// Adds a file; the error says why it is rejected.
    pub(crate) fn push(&mut self, file: InputFile) -> Result<(), String> {
        if self.0.len() == limits::INPUT_FILES_MAX {
            return Err(format!("more than {} files; send fewer", limits::INPUT_FILES_MAX));
        }
        self.0.push(file);
        Ok(())
    }
}

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
        f.write_str("an object of paths and base64 contents")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Files, A::Error> {
        let mut files = Files::default();
        while let Some((path, Base64(content))) = map.next_entry::<String, Base64>()? {
            let file = InputFile { path, content };
            files.push(file).map_err(de::Error::custom)?;
        }
        Ok(files)
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
                f.write_str("a base64 string")
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

    #[test]
    fn accepts_timeouts_above_every_limit() {
        let timeout = |seconds: &str| {
            let body = format!("{{\"code\": \"\", \"timeout\": {seconds}}}");
            let body: CreateExecution = serde_json::from_str(&body).unwrap();
            RunSpec::try_from(body).map(|spec| spec.timeout).ok()
        };
        assert_eq!(timeout("1e300"), Some(Some(Duration::from_secs(1_000_000_000))));
        assert_eq!(timeout("30"), Some(Some(Duration::from_secs(30))));
        assert_eq!(timeout("-1"), None);
    }

    /// Which members exclude each other, documented and checked.
    #[test]
    fn documents_which_members_exclude_each_other() {
        let schema = jsonschema::validator_for(&CreateExecution::document_rules()).unwrap();
        for (body, expected) in [
            (json!({"skill": "a"}), true),
            (json!({"code": ""}), true),
            (
                json!({"skill": "a", "code": null, "version": "1.2.0", "args": ["x"], "input": 1}),
                true,
            ),
            (json!({"skill": "a", "script": "a.py", "workdir": "skill"}), true),
            (
                json!({"code": "", "skill": null, "language": "bash", "args": {}}),
                true,
            ),
            (json!({}), false),
            (json!({"skill": null, "code": null}), false),
            (json!({"skill": "a", "code": ""}), false),
            (json!({"skill": "a", "language": "bash"}), false),
            (json!({"code": "", "version": "1.2.0"}), false),
            (json!({"code": "", "args": {}, "input": null}), false),
        ] {
            assert_eq!(schema.is_valid(&body), expected, "documented: {body}");
            let read = serde_json::from_value::<CreateExecution>(body.clone()).unwrap();
            assert_eq!(RunSpec::try_from(read).is_ok(), expected, "checked: {body}");
        }
        // The transport and the plan check these.
        for body in [
            json!({"code": "", "mode": "async", "on_disconnect": "cancel"}),
            json!({"code": "", "script": "a.py"}),
            json!({"code": "", "workdir": "skill"}),
            json!({"skill": "a", "workdir": "skill"}),
        ] {
            assert!(!schema.is_valid(&body), "{body}");
        }
    }

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
