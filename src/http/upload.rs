//! An archive or a blob on its way in: streamed into a file without a name, under a cap.

use std::fs::File;
use std::io;

use axum::body::{Body, Bytes};
use axum::extract::multipart::{Field, MultipartError};
use axum::extract::{FromRequest as _, Multipart, Request};
use axum::http::header;
use futures::{Stream, StreamExt as _, TryStreamExt as _};
use http_body_util::Limited;
use tokio::io::AsyncWriteExt as _;

use super::body::refusal;
use super::budget::BudgetShare;
use super::state::ApiState;
use crate::error::{Code, Error};
use crate::ids::Tenant;
use crate::limits;

/// An archive that was received.
#[derive(Debug)]
pub(crate) struct Upload {
    /// Its bytes, at the beginning; gone when dropped.
    pub(crate) file: File,
    /// The name it was uploaded as, without `.zip`.
    pub(crate) name: Option<String>,
    /// Keep it as long as the file.
    pub(crate) slot: BudgetShare,
}

/// Receives the archive that `request` carries: as its body, or as the one file of a form.
pub(crate) async fn receive(state: &ApiState, tenant: &Tenant, request: Request) -> Result<Upload, Error> {
    let kind = kind(&request)?;
    let slot = state.uploads.hold(tenant, 1)?;
    // The parts of a form have lines of their own.
    let bytes_max = match kind {
        UploadKind::Plain => limits::ARCHIVE_BYTES_MAX,
        UploadKind::Form => limits::ARCHIVE_BYTES_MAX + limits::BODY_BYTES_MAX,
    };
    let capped = usize::try_from(bytes_max).unwrap_or(usize::MAX);
    let declared = axum::body::HttpBody::size_hint(request.body()).lower();
    if declared > bytes_max {
        return Err(too_large());
    }
    let request = request.map(|body| Body::new(Limited::new(body, capped)));
    let file = tempfile::tempfile_in(&state.engine.settings().tmp_dir).map_err(storage)?;
    let (file, name) = match kind {
        UploadKind::Plain => (plain(request, file).await?, None),
        UploadKind::Form => form(request, file).await?,
    };
    Ok(Upload { file, name, slot })
}

/// Receives the body of `request`, whatever it is.
pub(crate) async fn receive_blob(
    state: &ApiState,
    tenant: &Tenant,
    request: Request,
) -> Result<Upload, Error> {
    let slot = state.uploads.hold(tenant, 1)?;
    let max = limits::BLOB_BYTES_MAX;
    if axum::body::HttpBody::size_hint(request.body()).lower() > max {
        return Err(blob_too_large());
    }
    let file = tempfile::tempfile_in(&state.engine.settings().tmp_dir).map_err(storage)?;
    let pieces = request.into_body().into_data_stream();
    let cap = SizeLimit {
        bytes: max,
        refusal: blob_too_large,
    };
    let pieces = pieces.map_err(|error| refusal(&error, blob_too_large));
    let file = copy(pieces, file, cap).await?;
    Ok(Upload {
        file,
        name: None,
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
            "send the archive as `content-type: application/zip`, or as the one file of `multipart/form-data`",
        )),
    }
}

async fn plain(request: Request, file: File) -> Result<File, Error> {
    let pieces = request.into_body().into_data_stream();
    copy(pieces.map_err(|error| refusal(&error, too_large)), file, ARCHIVE).await
}

async fn form(request: Request, file: File) -> Result<(File, Option<String>), Error> {
    let wrong = || Error::invalid("the form must hold exactly one file and nothing else");
    let mut form = Multipart::from_request(request, &()).await.map_err(|_| {
        Error::new(
            Code::UnsupportedMediaType,
            "`multipart/form-data` needs a `boundary`",
        )
    })?;
    let field = form
        .next_field()
        .await
        .map_err(|error| broken(&error))?
        .ok_or_else(wrong)?;
    let name = file_name(&field).ok_or_else(wrong)?;
    let file = copy(field.map_err(|error| broken(&error)), file, ARCHIVE).await?;
    match form.next_field().await {
        Ok(None) => Ok((file, name)),
        Ok(Some(_)) => Err(wrong()),
        Err(error) => Err(broken(&error)),
    }
}

/// `None` for a field that is no file; a path that some browsers send is cut to its last part.
fn file_name(field: &Field<'_>) -> Option<Option<String>> {
    let path = field.file_name()?;
    let name = path.rsplit(['/', '\\']).next().unwrap_or_default();
    let stem = name
        .strip_suffix(".zip")
        .or(name.strip_suffix(".skill"))
        .unwrap_or(name);
    Some((!stem.is_empty()).then(|| stem.to_owned()))
}

/// How much is taken, and what is said of more.
struct SizeLimit {
    bytes: u64,
    refusal: fn() -> Error,
}

const ARCHIVE: SizeLimit = SizeLimit {
    bytes: limits::ARCHIVE_BYTES_MAX,
    refusal: too_large,
};

async fn copy(
    pieces: impl Stream<Item = Result<Bytes, Error>>,
    file: File,
    cap: SizeLimit,
) -> Result<File, Error> {
    let mut pieces = std::pin::pin!(pieces);
    // Each write is a word to another thread: pieces of a connection are too small for one each.
    let file = tokio::fs::File::from_std(file);
    let mut out = tokio::io::BufWriter::with_capacity(limits::UPLOAD_WRITE_BYTES, file);
    let mut left = cap.bytes;
    while let Some(piece) = pieces.next().await {
        let piece = piece?;
        left = left.checked_sub(piece.len() as u64).ok_or_else(cap.refusal)?;
        out.write_all(&piece).await.map_err(storage)?;
    }
    out.flush().await.map_err(storage)?;
    let mut file = out.into_inner().into_std().await;
    io::Seek::rewind(&mut file).map_err(storage)?;
    Ok(file)
}

fn broken(error: &MultipartError) -> Error {
    match refusal(error, too_large) {
        late_or_large if late_or_large.code() != Code::Invalid => late_or_large,
        _ => Error::invalid("the form is not valid `multipart/form-data`"),
    }
}

fn too_large() -> Error {
    let message = format!(
        "the archive is too large; the limit is {} bytes",
        limits::ARCHIVE_BYTES_MAX
    );
    Error::new(Code::TooLarge, message)
}

fn blob_too_large() -> Error {
    let message = format!(
        "the blob is too large; the limit is {} bytes",
        limits::BLOB_BYTES_MAX
    );
    Error::new(Code::TooLarge, message)
}

fn storage(error: io::Error) -> Error {
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            Error::new(Code::StorageFull, "the server has no space left for it").with_source(error)
        }
        _ => Error::internal(error),
    }
}
