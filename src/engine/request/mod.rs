//! A request to run something, and the part of it that can be stored.

mod stored;

use std::collections::{BTreeMap, HashSet};
use std::convert::Infallible;
use std::fs::File;
use std::time::Duration;

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;

use crate::engine::mounts;
use crate::error::{Code, Error};
use crate::execution::{ExecutionKey, JsonText, Workdir};
use crate::ids::{Digest, IdempotencyKey};
use crate::limits;
use crate::sandbox::{InputFile, ProgressSender, SkillFiles};
use crate::skill::{Language, Selector, SkillName, SkillRef};

pub use stored::RequestFile;
pub(super) use stored::{KeptRequest, RequestDraft, StoredRequest};

/// A request for one execution.
#[derive(Debug, Default)]
pub struct RunRequest {
    pub spec: RunSpec,
    /// Runs this archive instead of what `spec` names.
    pub archive: Option<UnpublishedArchive>,
    /// Further blobs for `/blobs`, which are not retained.
    pub blob_contents: Vec<File>,
    /// Receives progress of long preparations.
    pub progress: Option<ProgressSender>,
}

#[derive(Debug)]
pub struct UnpublishedArchive {
    pub zip: File,
    /// The skill's name if the archive has none.
    pub fallback_name: Option<String>,
}

/// The part of a request that can be stored. Its JSON is read back from the queue after an upgrade and identifies repeated
/// requests, so the order and the encoding of its fields must not change.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct RunSpec {
    /// The published skill to run.
    pub skill: Option<SkillRef>,
    /// The code to run where `skill` is absent.
    pub code: Option<String>,
    /// The language of `code`.
    pub language: Option<Language>,
    /// `{}` if absent.
    pub input: Option<JsonText>,
    /// Arguments of the program, after its own name.
    pub args: Vec<String>,
    /// Files placed below `/workspace`.
    #[serde(with = "stored_files")]
    pub files: Vec<InputFile>,
    /// Blobs placed in `/blobs`.
    pub blobs: Vec<Digest>,
    /// A script of the skill, by its path, instead of the skill's own program.
    pub script: Option<String>,
    /// If absent, a program reads its input there and a script nothing.
    #[serde(default, with = "stored_bytes")]
    pub stdin: Option<Bytes>,
    /// Other skills that the program sees at `/skills/<name>` and may import.
    pub mount_skills: Vec<SkillRef>,
    /// Packages in addition to those the skill declares.
    pub requirements: Vec<String>,
    /// Can only shorten the limit of the skill.
    #[serde(default, rename = "timeout_ms", with = "stored_milliseconds")]
    pub timeout: Option<Duration>,
    pub callback_url: Option<String>,
    /// If absent, a script works among the files of the request, or without these among those of the skill. Not stored if
    /// absent, so that requests of earlier releases are found again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workdir: Option<Workdir>,
}

/// How [`RunSpec`] is stored.
#[derive(Serialize)]
struct StoredSpec<'a> {
    #[serde(flatten)]
    spec: &'a RunSpec,
    #[serde(flatten)]
    mark: InputMark,
}

/// Tells an input that is `null` from an absent one. Only stored for the former, as for `workdir`.
#[derive(Serialize, Deserialize)]
struct InputMark {
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    input_is_null: bool,
}

/// How a request is executed.
#[derive(Clone, Debug, Default)]
pub struct RunOptions {
    /// A repeated request with the same key is not executed again.
    pub idempotency_key: Option<IdempotencyKey>,
    pub on_disconnect: OnDisconnect,
    /// The key that is recorded with the execution.
    pub key: Option<ExecutionKey>,
}

/// What happens to an execution when its client disconnects.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum OnDisconnect {
    /// Cancel it.
    Cancel,
    /// Run it to its end, once started.
    #[default]
    Continue,
}

impl OnDisconnect {
    /// Cancels if requested when the caller has disconnected; never returns.
    pub(super) async fn watch(self, gone: &CancellationToken, cancel: &CancellationToken) -> Infallible {
        if self == Self::Cancel {
            gone.cancelled().await;
            cancel.cancel();
        }
        std::future::pending().await
    }
}

impl From<RunSpec> for RunRequest {
    fn from(spec: RunSpec) -> Self {
        Self {
            spec,
            ..Self::default()
        }
    }
}

impl RunRequest {
    /// The JSON to store; an error if the request cannot be stored.
    pub(super) fn to_stored(&self) -> Result<Vec<u8>, Error> {
        if self.archive.is_some() {
            return Err(cannot_store("an unpublished archive"));
        }
        if !self.blob_contents.is_empty() {
            return Err(cannot_store("a blob that is not stored"));
        }
        self.spec.to_stored()
    }
}

fn cannot_store(what: &str) -> Error {
    Error::invalid(format!(
        "{what} cannot wait in the queue; run it without `mode: async`"
    ))
}

impl RunSpec {
    #[must_use]
    pub fn of_skill(name: SkillName, selector: Selector) -> Self {
        Self {
            skill: Some(SkillRef { name, selector }),
            ..Self::default()
        }
    }

    #[must_use]
    pub fn of_code(language: Language, code: String) -> Self {
        Self {
            code: Some(code),
            language: Some(language),
            ..Self::default()
        }
    }

    fn to_stored(&self) -> Result<Vec<u8>, Error> {
        let stored = StoredSpec {
            spec: self,
            mark: InputMark {
                input_is_null: self.has_null_input(),
            },
        };
        serde_json::to_vec(&stored).map_err(Error::internal)
    }

    pub(super) fn from_stored(json: &[u8]) -> Result<Self, Error> {
        let mut spec: Self = serde_json::from_slice(json).map_err(Error::internal)?;
        let mark: InputMark = serde_json::from_slice(json).map_err(Error::internal)?;
        if mark.input_is_null {
            spec.input = JsonText::parse(b"null").ok();
        }
        Ok(spec)
    }

    /// Whether the input is given, as `null`.
    fn has_null_input(&self) -> bool {
        self.input.as_ref().is_some_and(|input| input.as_str() == "null")
    }

    /// Replaces the selectors of mounted skills by the current digests.
    pub(super) fn pin_mounts(stored: Vec<u8>, mounted: &[SkillFiles]) -> Result<Vec<u8>, Error> {
        if mounted.is_empty() {
            return Ok(stored);
        }
        let mut spec = Self::from_stored(&stored)?;
        for mount in &mut spec.mount_skills {
            if let Some(files) = mounted.iter().find(|files| files.name == mount.name) {
                mount.selector = Selector::Digest(files.digest);
            }
        }
        spec.to_stored()
    }

    pub(super) fn check(&self) -> Result<(), Error> {
        if let Some(input) = &self.input
            && input.as_str().len() as u64 > limits::INPUT_BYTES_MAX
        {
            let message = format!(
                "input: {} bytes, the limit is {}; send large data as files or blobs",
                input.as_str().len(),
                limits::INPUT_BYTES_MAX
            );
            return Err(Error::new(Code::TooLarge, message));
        }
        if let Some(stdin) = &self.stdin
            && stdin.len() as u64 > limits::INPUT_BYTES_MAX
        {
            let (bytes, max) = (stdin.len(), limits::INPUT_BYTES_MAX);
            let message = format!("stdin: {bytes} bytes, the limit is {max}; use files");
            return Err(Error::new(Code::TooLarge, message));
        }
        if let Some(code) = &self.code
            && code.len() > limits::CODE_BYTES_MAX
        {
            let (bytes, max) = (code.len(), limits::CODE_BYTES_MAX);
            let message = format!("code: {bytes} bytes, the limit is {max}; put data into input or files");
            return Err(Error::new(Code::TooLarge, message));
        }
        check_args(&self.args)?;
        mounts::check(&self.mount_skills)?;
        check_files(&self.files)?;
        match self.timeout {
            Some(timeout) if timeout < limits::TIMEOUT_MIN => Err(Error::invalid(format!(
                "timeout: must be at least {} seconds",
                limits::TIMEOUT_MIN.as_secs_f64()
            ))),
            Some(_) | None => Ok(()),
        }
    }
}

fn check_args(args: &[String]) -> Result<(), Error> {
    if args.len() > limits::ARGS_MAX {
        return Err(Error::invalid(format!(
            "args: {} arguments, the limit is {}",
            args.len(),
            limits::ARGS_MAX
        )));
    }
    let total: usize = args.iter().map(String::len).sum();
    if total > limits::ARGS_BYTES_MAX {
        return Err(Error::new(
            Code::TooLarge,
            format!(
                "args: {total} bytes in total, the limit is {}",
                limits::ARGS_BYTES_MAX
            ),
        ));
    }
    for (index, arg) in args.iter().enumerate() {
        if arg.contains('\0') {
            return Err(Error::invalid(format!(
                "args[{index}]: contains a NUL character, which no program can be given"
            )));
        }
        if arg.len() > limits::ARG_BYTES_MAX {
            return Err(Error::new(
                Code::TooLarge,
                format!(
                    "args[{index}]: more than {} bytes; use input",
                    limits::ARG_BYTES_MAX
                ),
            ));
        }
    }
    Ok(())
}

fn check_files(files: &[InputFile]) -> Result<(), Error> {
    if files.len() > limits::INPUT_FILES_MAX {
        return Err(Error::invalid(format!(
            "files: {} files, the limit is {}",
            files.len(),
            limits::INPUT_FILES_MAX
        )));
    }
    let mut seen = HashSet::new();
    for file in files {
        let path = file.folder().unwrap_or(&file.path);
        let plain = path.split('/').all(|part| !matches!(part, "" | "." | ".."));
        let short = file.path.len() <= limits::ARCHIVE_PATH_BYTES_MAX;
        if !plain || !short || file.path.chars().any(char::is_control) {
            return Err(Error::invalid(format!(
                "files: {:?} is not a valid relative path",
                file.path
            )));
        }
        if file.folder().is_some() && !file.content.is_empty() {
            return Err(Error::invalid(format!(
                "files: {:?} is a folder, which has no content; remove the `/` at its end, or the content",
                file.path
            )));
        }
        if !seen.insert(path) {
            return Err(Error::invalid(format!("files: {:?} is given twice", file.path)));
        }
    }
    for file in files.iter().filter(|file| file.folder().is_some()) {
        seen.remove(file.folder().unwrap_or_default());
    }
    for file in files {
        let mut above = file.path.match_indices('/').map(|(at, _)| &file.path[..at]);
        if let Some(above) = above.find(|above| seen.contains(above)) {
            let message = format!(
                "files: {above:?} cannot be a file and the folder of {:?}",
                file.path
            );
            return Err(Error::invalid(message));
        }
    }
    Ok(())
}

/// Path to base64, in the order of the paths.
mod stored_files {
    use super::{BTreeMap, Bytes, InputFile};
    use base64::Engine as _;
    use base64::prelude::BASE64_STANDARD;
    use serde::de::Error as _;
    use serde::{Deserialize as _, Deserializer, Serialize as _, Serializer};

    pub(super) fn serialize<S: Serializer>(files: &[InputFile], serializer: S) -> Result<S::Ok, S::Error> {
        let files = files.iter();
        let files: BTreeMap<_, _> = files
            .map(|file| (file.path.as_str(), BASE64_STANDARD.encode(&file.content)))
            .collect();
        files.serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Vec<InputFile>, D::Error> {
        let files = BTreeMap::<String, String>::deserialize(deserializer)?;
        let decode = |(path, content): (String, String)| {
            let content = BASE64_STANDARD.decode(content).map_err(D::Error::custom)?;
            Ok(InputFile {
                path,
                content: Bytes::from(content),
            })
        };
        files.into_iter().map(decode).collect()
    }
}

/// Base64.
mod stored_bytes {
    use super::Bytes;
    use base64::Engine as _;
    use base64::prelude::BASE64_STANDARD;
    use serde::de::Error as _;
    use serde::{Deserialize as _, Deserializer, Serialize as _, Serializer};

    #[expect(clippy::ref_option, reason = "serde passes a reference to the field")]
    pub(super) fn serialize<S: Serializer>(bytes: &Option<Bytes>, serializer: S) -> Result<S::Ok, S::Error> {
        let text = bytes.as_ref().map(|bytes| BASE64_STANDARD.encode(bytes));
        text.serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Bytes>, D::Error> {
        let text = Option::<String>::deserialize(deserializer)?;
        let bytes = text.map(|text| BASE64_STANDARD.decode(text)).transpose();
        Ok(bytes.map_err(D::Error::custom)?.map(Bytes::from))
    }
}

/// Whole milliseconds.
mod stored_milliseconds {
    use super::Duration;
    use serde::{Deserialize as _, Deserializer, Serialize as _, Serializer};

    #[expect(clippy::ref_option, reason = "serde passes a reference to the field")]
    pub(super) fn serialize<S: Serializer>(
        time: &Option<Duration>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        let milliseconds = time.map(|time| u64::try_from(time.as_millis()).unwrap_or(u64::MAX));
        milliseconds.serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<Duration>, D::Error> {
        Ok(Option::<u64>::deserialize(deserializer)?.map(Duration::from_millis))
    }
}

#[cfg(test)]
mod tests;
