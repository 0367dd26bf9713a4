//! Receives archives and blobs: streamed into an unnamed file with a size limit.

use std::fs::File;
use std::io;

use axum::body::{Body, Bytes};
use axum::extract::multipart::{Field, MultipartError};
use axum::extract::{FromRequest as _, Multipart, Request};
use axum::http::header;
use futures::{Stream, StreamExt as _, TryStreamExt as _};
use http_body_util::Limited;
use tokio::io::AsyncWriteExt as _;

use super::body::read_error;
use super::budget::BudgetShare;
use super::state::ApiState;
use crate::api::skills::Push;
use crate::error::{Code, Error};
use crate::ids::Tenant;
use crate::limits;

#[derive(Debug)]
pub(crate) struct Upload {
    /// Rewound; removed when dropped.
    pub(crate) file: File,
    /// Its file name without `.zip`.
    pub(crate) name: Option<String>,
    /// Packages to add to the skill; `None` if no field names any.
    pub(crate) requirements: Option<Vec<String>>,
    /// Must live as long as the file.
    pub(crate) slot: BudgetShare,
}

impl Upload {
    pub(crate) fn into_push(self) -> (Push, BudgetShare) {
        let push = Push {
            archive: self.file,
            fallback_name: self.name,
            requirements: self.requirements,
        };
        (push, self.slot)
    }
}

/// Receives an archive as the body, or as the file of a form.
pub(crate) async fn receive(state: &ApiState, tenant: &Tenant, request: Request) -> Result<Upload, Error> {
    let kind = kind(&request)?;
    let slot = state.uploads.hold(tenant, 1)?;
    // Allow for the form's own lines.
    let bytes_max = match kind {
        UploadKind::Plain => limits::ARCHIVE_BYTES_MAX,
        UploadKind::Form => limits::ARCHIVE_BYTES_MAX + limits::BODY_BYTES_MAX,
    };
    let capped = usize::try_from(bytes_max).unwrap_or(usize::MAX);
    let declared = axum::body::HttpBody::size_hint(request.body()).lower();
    if declared > bytes_max {
        return Err(ARCHIVE.exceeded());
    }
    let request = request.map(|body| Body::new(Limited::new(body, capped)));
    let file = tempfile::tempfile_in(&state.engine.settings().tmp_dir).map_err(storage)?;
    match kind {
        UploadKind::Plain => Ok(Upload {
            file: plain(request, file).await?,
            name: None,
            requirements: None,
            slot,
        }),
        UploadKind::Form => form(request, file, slot).await,
    }
}

/// Receives an archive in pieces; the slot must live as long as the file.
#[cfg(feature = "grpc")]
pub(crate) async fn receive_pieces(
    state: &ApiState,
    tenant: &Tenant,
    pieces: impl Stream<Item = Result<Bytes, Error>>,
) -> Result<(File, BudgetShare), Error> {
    let slot = state.uploads.hold(tenant, 1)?;
    let file = tempfile::tempfile_in(&state.engine.settings().tmp_dir).map_err(storage)?;
    Ok((copy(pieces, file, ARCHIVE).await?, slot))
}

/// Receives a body of any type.
pub(crate) async fn receive_blob(
    state: &ApiState,
    tenant: &Tenant,
    request: Request,
) -> Result<Upload, Error> {
    let slot = state.uploads.hold(tenant, 1)?;
    if axum::body::HttpBody::size_hint(request.body()).lower() > BLOB.bytes {
        return Err(BLOB.exceeded());
    }
    let file = tempfile::tempfile_in(&state.engine.settings().tmp_dir).map_err(storage)?;
    let pieces = request.into_body().into_data_stream();
    let pieces = pieces.map_err(|error| read_error(&error, || BLOB.exceeded()));
    let file = copy(pieces, file, BLOB).await?;
    Ok(Upload {
        file,
        name: None,
        requirements: None,
        slot,
    })
}

#[derive(Clone, Copy)]
enum UploadKind {
    Plain,
    Form,
}

fn kind(request: &Request) -> Result<UploadKind, Error> {
    let mut types = request.headers().get_all(header::CONTENT_TYPE).iter();
    let essence = match (types.next(), types.next()) {
        (Some(only), None) => only.to_str().ok().and_then(|text| text.split(';').next()),
        _ => None,
    };
    match essence
        .map(|essence| essence.trim().to_ascii_lowercase())
        .as_deref()
    {
        Some("application/zip" | "application/x-zip-compressed" | "application/octet-stream") => {
            Ok(UploadKind::Plain)
        }
        Some("multipart/form-data") => Ok(UploadKind::Form),
        _ => Err(Error::new(
            Code::UnsupportedMediaType,
            "send the archive as `content-type: application/zip`, or as the only file of `multipart/form-data`",
        )),
    }
}

async fn plain(request: Request, file: File) -> Result<File, Error> {
    let pieces = request.into_body().into_data_stream();
    copy(
        pieces.map_err(|error| read_error(&error, || ARCHIVE.exceeded())),
        file,
        ARCHIVE,
    )
    .await
}

async fn form(request: Request, file: File, slot: BudgetShare) -> Result<Upload, Error> {
    let wrong = || Error::invalid("the form must contain one file, and else only `requirements` fields");
    let mut form = Multipart::from_request(request, &()).await.map_err(|_| {
        Error::new(
            Code::UnsupportedMediaType,
            "content-type: `multipart/form-data` needs a `boundary`",
        )
    })?;
    let (mut archive, mut requirements) = (Err(file), Vec::new());
    while let Some(field) = form.next_field().await.map_err(|error| broken(&error))? {
        if field.file_name().is_none() && field.name() == Some("requirements") {
            check_count(requirements.len() + 1)?;
            requirements.push(short_text(field, requirements.len()).await?);
            continue;
        }
        let name = file_name(&field).ok_or_else(wrong)?;
        let file = archive.err().ok_or_else(wrong)?;
        let file = copy(field.map_err(|error| broken(&error)), file, ARCHIVE).await?;
        archive = Ok((file, name));
    }
    let (file, name) = archive.map_err(|_| wrong())?;
    Ok(Upload {
        file,
        name,
        requirements: (!requirements.is_empty()).then_some(requirements),
        slot,
    })
}

/// Limits the packages of an upload before they are read as such.
#[cfg(feature = "grpc")]
pub(crate) fn check_requirements(requirements: &[String]) -> Result<(), Error> {
    check_count(requirements.len())?;
    let mut sizes = requirements.iter().map(String::len).enumerate();
    sizes.try_for_each(|(index, bytes)| check_size(index, bytes))
}

fn check_count(count: usize) -> Result<(), Error> {
    let max = limits::REQUIREMENTS_MAX;
    if count <= max {
        return Ok(());
    }
    Err(Error::invalid(format!(
        "requirements: the limit is {max} packages"
    )))
}

fn check_size(index: usize, bytes: usize) -> Result<(), Error> {
    let max = limits::REQUIREMENT_BYTES_MAX;
    if bytes <= max {
        return Ok(());
    }
    Err(Error::invalid(format!(
        "requirements[{index}]: longer than {max} bytes"
    )))
}

/// The text of a `requirements` field.
async fn short_text(mut field: Field<'_>, index: usize) -> Result<String, Error> {
    let mut bytes = Vec::new();
    while let Some(piece) = field.chunk().await.map_err(|error| broken(&error))? {
        bytes.extend_from_slice(&piece);
        check_size(index, bytes.len())?;
    }
    String::from_utf8(bytes).map_err(|_| Error::invalid(format!("requirements[{index}]: not UTF-8")))
}

/// `None` for a field without a file. Some browsers send a path, of which the last part is used.
fn file_name(field: &Field<'_>) -> Option<Option<String>> {
    let path = field.file_name()?;
    let name = path.rsplit(['/', '\\']).next().unwrap_or_default();
    let stem = name
        .strip_suffix(".zip")
        .or(name.strip_suffix(".skill"))
        .unwrap_or(name);
    Some((!stem.is_empty()).then(|| stem.to_owned()))
}

/// A size limit and its error.
struct SizeLimit {
    subject: &'static str,
    bytes: u64,
}

const ARCHIVE: SizeLimit = SizeLimit {
    subject: "archive",
    bytes: limits::ARCHIVE_BYTES_MAX,
};

const BLOB: SizeLimit = SizeLimit {
    subject: "blob",
    bytes: limits::BLOB_BYTES_MAX,
};

impl SizeLimit {
    fn exceeded(&self) -> Error {
        let Self { subject, bytes } = self;
        Error::new(
            Code::TooLarge,
            format!("the {subject} is too large; the limit is {bytes} bytes"),
        )
    }
}

async fn copy(
    pieces: impl Stream<Item = Result<Bytes, Error>>,
    file: File,
    cap: SizeLimit,
) -> Result<File, Error> {
    let mut pieces = std::pin::pin!(pieces);
    // Each write is a message to another thread, so small pieces are collected.
    let file = tokio::fs::File::from_std(file);
    let mut out = tokio::io::BufWriter::with_capacity(limits::UPLOAD_WRITE_BYTES, file);
    let mut left = cap.bytes;
    while let Some(piece) = pieces.next().await {
        let piece = piece?;
        left = left
            .checked_sub(piece.len() as u64)
            .ok_or_else(|| cap.exceeded())?;
        out.write_all(&piece).await.map_err(storage)?;
    }
    out.flush().await.map_err(storage)?;
    let mut file = out.into_inner().into_std().await;
    io::Seek::rewind(&mut file).map_err(storage)?;
    Ok(file)
}

fn broken(error: &MultipartError) -> Error {
    match read_error(error, || ARCHIVE.exceeded()) {
        late_or_large if late_or_large.code() != Code::Invalid => late_or_large,
        _ => Error::invalid("the form is not valid `multipart/form-data`"),
    }
}

fn storage(error: io::Error) -> Error {
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Error::new(
            Code::StorageFull,
            "the server has no disk space for the upload; free space, then try again",
        )
        .with_source(error),
        _ => Error::internal(error),
    }
}
