//! The part of a request that is kept with its execution, to be shown and run again.

use std::borrow::Cow;
use std::io::{self, Read as _, Write as _};

use bytes::Bytes;
use flate2::Compression;
use flate2::read::ZlibDecoder;
use flate2::write::ZlibEncoder;
use serde::{Deserialize, Serialize};

use crate::engine::{RunRequest, RunSpec};
use crate::error::Error;
use crate::execution::JsonText;
use crate::ids::Digest;
use crate::limits;
use crate::sandbox::{InputFile, SkillFiles};
use crate::secret::{Mask, Truncation};
use crate::skill::{Selector, SkillRef};

/// What is stored with an execution. Its JSON is read back after an upgrade.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(in crate::engine) enum StoredRequest {
    Kept(Box<KeptRequest>),
    NotKept(NotKept),
}

#[derive(Debug, Serialize, Deserialize)]
pub(in crate::engine) struct KeptRequest {
    /// As it was sent, but without the contents of the files in `left_out`.
    pub(in crate::engine) spec: RunSpec,
    /// In the JSON of `spec`, `null` means that no input was sent.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    input_is_null: bool,
    /// The mounted skills with the digests that they had.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(in crate::engine) mounted: Vec<SkillRef>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(in crate::engine) left_out: Vec<RequestFile>,
}

/// A file of a request whose content was not kept.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestFile {
    pub path: String,
    pub size: u64,
    pub sha256: Digest,
}

/// Why a request was not kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(in crate::engine) enum NotKept {
    TooLarge { bytes: u64, max: u64 },
    UnpublishedArchive,
    BlobContents,
    SecretValue,
}

/// A request that is not planned yet, reduced to what is kept of it.
#[derive(Debug)]
pub(in crate::engine) enum RequestDraft {
    Kept {
        spec: Box<RunSpec>,
        left_out: Vec<InputFile>,
    },
    NotKept(NotKept),
}

impl RequestDraft {
    /// `None` if no requests are kept. Files are kept in their order, each that still fits into `bytes_max`.
    pub(in crate::engine) fn of(request: &RunRequest, bytes_max: Option<u64>) -> Option<Self> {
        let max = bytes_max?;
        if request.archive.is_some() {
            return Some(Self::NotKept(NotKept::UnpublishedArchive));
        }
        if !request.blob_contents.is_empty() {
            return Some(Self::NotKept(NotKept::BlobContents));
        }
        let bytes = bytes_without_files(&request.spec);
        let Some(mut left) = max.checked_sub(bytes) else {
            return Some(Self::NotKept(NotKept::TooLarge { bytes, max }));
        };
        let files = request.spec.files.iter().cloned();
        let (files, left_out) = files.partition(|file| {
            let rest = left.checked_sub(file.content.len() as u64);
            left = rest.unwrap_or(left);
            rest.is_some()
        });
        // Cloned by fields: the whole would copy the large ones twice.
        let spec = Box::new(RunSpec {
            files,
            ..request.spec.clone()
        });
        Some(Self::Kept { spec, left_out })
    }

    /// Whether to encode it on a blocking thread.
    pub(in crate::engine) fn is_large(&self) -> bool {
        match self {
            Self::Kept { spec, left_out } => {
                let files = spec.files.iter().chain(left_out).map(|file| file.content.len());
                bytes_without_files(spec) + files.sum::<usize>() as u64 > limits::INLINE_PARSE_BYTES_MAX
            }
            Self::NotKept(_) => false,
        }
    }

    /// What to store. A request that contains the value of a secret is not kept.
    pub(in crate::engine) fn encode(self, mask: &Mask, mounted: &[SkillFiles]) -> Result<Bytes, Error> {
        let stored = match self {
            Self::NotKept(reason) => StoredRequest::NotKept(reason),
            Self::Kept { spec, .. } if spec.files.iter().any(|file| is_masked(mask, file)) => {
                StoredRequest::NotKept(NotKept::SecretValue)
            }
            Self::Kept { spec, left_out } => StoredRequest::Kept(Box::new(KeptRequest {
                input_is_null: spec.has_null_input(),
                spec: *spec,
                mounted: mounted.iter().map(pinned).collect(),
                left_out: left_out.iter().map(RequestFile::from).collect(),
            })),
        };
        let json = serde_json::to_string(&stored).map_err(Error::internal)?;
        if matches!(mask.mask_json(&json), Cow::Owned(_)) {
            let not_kept = StoredRequest::NotKept(NotKept::SecretValue);
            return Ok(serde_json::to_vec(&not_kept).map_err(Error::internal)?.into());
        }
        compress(json.into_bytes())
            .map(Bytes::from)
            .map_err(Error::internal)
    }
}

/// The bytes that the limit counts, but for the contents of files.
fn bytes_without_files(spec: &RunSpec) -> u64 {
    let texts = [&spec.code, &spec.script, &spec.callback_url];
    let texts = texts.into_iter().flatten();
    let lists = spec.args.iter().chain(&spec.requirements);
    let paths = spec.files.iter().map(|file| &file.path);
    let all: usize = texts.chain(lists).chain(paths).map(String::len).sum();
    let input = spec.input.as_ref().map_or(0, |input| input.as_str().len());
    let stdin = spec.stdin.as_ref().map_or(0, Bytes::len);
    (all + input + stdin) as u64
}

fn is_masked(mask: &Mask, file: &InputFile) -> bool {
    matches!(mask.mask(&file.content, Truncation::None), Cow::Owned(_))
}

fn pinned(files: &SkillFiles) -> SkillRef {
    SkillRef {
        name: files.name.clone(),
        selector: Selector::Digest(files.digest),
    }
}

impl From<&InputFile> for RequestFile {
    fn from(file: &InputFile) -> Self {
        Self {
            path: file.path.clone(),
            size: file.content.len() as u64,
            sha256: Digest::of(&file.content),
        }
    }
}

/// JSON starts with `{`, and zlib never does.
fn compress(json: Vec<u8>) -> io::Result<Vec<u8>> {
    if json.len() < limits::REQUEST_COMPRESSED_BYTES_MIN {
        return Ok(json);
    }
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(&json)?;
    let compressed = encoder.finish()?;
    Ok(if compressed.len() < json.len() {
        compressed
    } else {
        json
    })
}

fn decompress(stored: &[u8]) -> io::Result<Cow<'_, [u8]>> {
    if stored.starts_with(b"{") {
        return Ok(Cow::Borrowed(stored));
    }
    let mut json = Vec::new();
    ZlibDecoder::new(stored)
        .take(limits::KEPT_REQUEST_JSON_BYTES_MAX)
        .read_to_end(&mut json)?;
    Ok(Cow::Owned(json))
}

impl StoredRequest {
    pub(in crate::engine) fn decode(stored: &[u8]) -> Result<Self, Error> {
        let json = decompress(stored).map_err(Error::internal)?;
        let mut stored = serde_json::from_slice(&json).map_err(Error::internal)?;
        if let Self::Kept(kept) = &mut stored
            && kept.input_is_null
        {
            kept.spec.input = JsonText::parse(b"null").ok();
        }
        Ok(stored)
    }
}

impl NotKept {
    /// Completes `… the request was not kept: …`.
    pub(in crate::engine) fn reason(self) -> String {
        match self {
            Self::TooLarge { bytes, max } => format!(
                "it has {bytes} bytes without its files, and the server keeps {max} (`executions.keep_request`)"
            ),
            Self::UnpublishedArchive => "it contained an unpublished skill".to_owned(),
            Self::BlobContents => "it contained blobs that are not stored".to_owned(),
            Self::SecretValue => "it contained the value of a secret".to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::secret::SecretValue;
    use crate::skill::Language;

    const INPUT: &[u8] = br#"{"n": 1e400,  "x":0.10, "n": 9007199254740993}"#;

    fn file(path: &str, content: &[u8]) -> InputFile {
        InputFile {
            path: path.to_owned(),
            content: Bytes::copy_from_slice(content),
        }
    }

    fn code(code: &str) -> RunSpec {
        RunSpec {
            input: JsonText::parse(INPUT).ok(),
            ..RunSpec::of_code(Language::Bash, code.to_owned())
        }
    }

    fn stored(spec: RunSpec, max: u64) -> (StoredRequest, usize) {
        let draft = RequestDraft::of(&spec.into(), Some(max)).unwrap();
        let bytes = draft.encode(&Mask::default(), &[]).unwrap();
        (StoredRequest::decode(&bytes).unwrap(), bytes.len())
    }

    fn kept(spec: RunSpec, max: u64) -> KeptRequest {
        match stored(spec, max).0 {
            StoredRequest::Kept(kept) => *kept,
            StoredRequest::NotKept(reason) => panic!("{reason:?}"),
        }
    }

    /// A-04.
    #[test]
    fn reads_requests_back_byte_for_byte() {
        for code_text in ["echo\r\n\0\u{fffd}", &"x  y\n".repeat(10_000)] {
            let spec = RunSpec {
                stdin: Some(Bytes::from_static(b"\xff\0")),
                args: vec!["a  b".to_owned()],
                files: vec![file("a", b"\0\xff")],
                ..code(code_text)
            };
            let kept = kept(spec.clone(), limits::MIB);
            assert_eq!(kept.spec.to_owned().code.as_deref(), Some(code_text));
            assert_eq!(kept.spec.input.unwrap().as_str().as_bytes(), INPUT);
            assert_eq!(kept.spec.stdin, spec.stdin);
            assert_eq!(kept.spec.args, spec.args);
            assert_eq!(kept.spec.files[0].content, spec.files[0].content);
        }
    }

    #[test]
    fn distinguishes_null_from_no_input() {
        let spec = |input: Option<&str>| RunSpec {
            input: input.and_then(|input| JsonText::parse(input.as_bytes()).ok()),
            ..code("")
        };
        let read = |input| kept(spec(input), limits::MIB).spec.input;
        assert_eq!(read(Some("null")).unwrap().as_str(), "null");
        assert_eq!(read(None), None);
    }

    #[test]
    fn compresses_large_requests() {
        let (_, bytes) = stored(code(&"print(1)\n".repeat(20_000)), limits::MIB);
        assert!(bytes < 10_000, "{bytes}");
    }

    #[test]
    fn leaves_out_files_that_exceed_the_limit() {
        let spec = RunSpec {
            files: vec![
                file("first", &[1; 60]),
                file("large", &[2; 60]),
                file("small", &[3; 30]),
            ],
            ..RunSpec::of_code(Language::Bash, "x".repeat(84))
        };
        // 84 bytes of code and 15 of names leave 101.
        let kept = kept(spec, 200);
        let names: Vec<_> = kept.spec.files.iter().map(|file| file.path.as_str()).collect();
        assert_eq!(names, ["first", "small"]);
        let large = RequestFile {
            path: "large".to_owned(),
            size: 60,
            sha256: Digest::of(&[2; 60]),
        };
        assert_eq!(kept.left_out, [large]);
    }

    #[test]
    fn rejects_requests_above_the_limit_and_those_that_cannot_be_stored() {
        let (stored, _) = stored(RunSpec::of_code(Language::Bash, "x".repeat(101)), 100);
        let too_large = NotKept::TooLarge { bytes: 101, max: 100 };
        assert!(matches!(stored, StoredRequest::NotKept(reason) if reason == too_large));
        let request = RunRequest {
            blob_contents: vec![tempfile::tempfile().unwrap()],
            ..RunRequest::default()
        };
        let draft = RequestDraft::of(&request, Some(100));
        assert!(matches!(
            draft,
            Some(RequestDraft::NotKept(NotKept::BlobContents))
        ));
        assert!(RequestDraft::of(&request, None).is_none());
    }

    #[test]
    fn never_keeps_values_of_secrets() {
        let secret = SecretValue::new("correct \"horse\" battery".to_owned()).unwrap();
        let mask = Mask::new([&secret]);
        let in_input = RunSpec {
            input: JsonText::parse(br#"{"a": "correct \"horse\" battery"}"#).ok(),
            ..code("")
        };
        let in_file = RunSpec {
            files: vec![file("a", b"> correct \"horse\" battery <")],
            ..code("")
        };
        for spec in [in_input, in_file, code("echo 'correct \"horse\" battery'")] {
            let draft = RequestDraft::of(&spec.into(), Some(limits::MIB)).unwrap();
            let bytes = draft.encode(&mask, &[]).unwrap();
            assert_eq!(bytes, "{\"not_kept\":\"secret_value\"}");
        }
    }
}
