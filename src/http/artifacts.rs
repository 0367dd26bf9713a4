//! `/v1/executions/{id}/files`: files of executions, served so that no browser runs them under this server's origin
//! (O-15).

use std::io::{self, Write as _};
use std::sync::Arc;

use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{HeaderMap, Method};
use axum::response::{IntoResponse, Response};
use flate2::Compression;
use flate2::write::GzEncoder;
use futures::{Stream, stream};
use tokio::io::{AsyncRead, AsyncReadExt as _};

use super::authorization::FileTenant;
use super::content::{self, Content};
use super::document::Raw;
use super::extract::Path;
use super::links::{Download, Part};
use super::problem::ProblemResponse;
use super::state::ApiState;
use crate::api::executions;
use crate::engine::ArtifactFile;
use crate::error::Error;
use crate::limits;

/// Download all files of an execution
///
/// A `tar.gz`. Requires a key, or the execution's `files_url`.
#[utoipa::path(get, path = "/v1/executions/{id}/files", tag = "executions", operation_id = "download_files",
    params(("id" = uuid::Uuid, Path, description = "The execution")),
    responses((status = OK, description = "The archive", body = Raw, content_type = "application/gzip")))]
pub(crate) async fn archive(
    State(state): State<Arc<ApiState>>,
    FileTenant(tenant): FileTenant,
    Path(download): Path<Download>,
    method: Method,
) -> Result<Response, ProblemResponse> {
    let tar = executions::archive(&state.engine, &tenant, download.id).await?;
    let headers = headers(&download)?;
    if method == Method::HEAD {
        // Without a length, as the archive has none.
        let nothing = stream::empty::<io::Result<Bytes>>();
        return Ok((headers, Body::from_stream(nothing)).into_response());
    }
    let size = tar.size();
    let tar = tar.into_reader(0..size).await.map_err(Error::internal)?;
    Ok((headers, Body::from_stream(gzip(tar))).into_response())
}

/// Download a file of an execution
///
/// Requires a key, or the file's `url`. Supports ranges and conditional requests.
#[utoipa::path(get, path = "/v1/executions/{id}/files/{*path}", tag = "executions", operation_id = "download_file",
    params(
        ("id" = uuid::Uuid, Path, description = "The execution"),
        ("path" = String, Path, description = "The file's path"),
        ("range" = Option<String>, Header, description = "One range of bytes"),
    ),
    responses(
        (status = OK, description = "The file, with the type of its name", body = Raw, content_type = "*/*"),
        (status = PARTIAL_CONTENT, description = "The range", body = Raw, content_type = "*/*"),
        (status = NOT_MODIFIED, description = "The client has this content"),
    ))]
pub(crate) async fn file(
    State(state): State<Arc<ApiState>>,
    FileTenant(tenant): FileTenant,
    Path(download): Path<Download>,
    method: Method,
    request_headers: HeaderMap,
) -> Result<Response, ProblemResponse> {
    let Part::File(path) = &download.part else {
        return Err(Error::internal("the route of files has a path").into());
    };
    let file = executions::file(&state.engine, &tenant, download.id, path).await?;
    let range = file.range();
    let ArtifactFile { entry, object } = file;
    let content = Content {
        headers: headers(&download)?,
        tag: format!("\"{}\"", entry.sha256.hex()),
        range,
        object,
    };
    content.answer(&method, &request_headers).await
}

/// A link's signature covers the type and the name, so they depend only on the path.
fn headers(download: &Download) -> Result<HeaderMap, Error> {
    content::headers(&download.content_type(), &download.content_disposition())
}

/// Compresses `tar` while it is sent. A chunk takes less than a millisecond, so it needs no thread, which a client
/// that does not read could block.
fn gzip<R: AsyncRead + Unpin>(tar: R) -> impl Stream<Item = io::Result<Bytes>> {
    let encoder = GzEncoder::new(Vec::new(), Compression::fast());
    stream::try_unfold(Some((tar, encoder)), |state| async {
        let Some((mut tar, mut encoder)) = state else {
            return Ok(None);
        };
        let mut chunk = vec![0; limits::DOWNLOAD_CHUNK_BYTES];
        loop {
            let read = tar.read(&mut chunk).await?;
            if read == 0 {
                return Ok(Some((Bytes::from(encoder.finish()?), None)));
            }
            encoder.write_all(&chunk[..read])?;
            if !encoder.get_ref().is_empty() {
                let ready = Bytes::from(std::mem::take(encoder.get_mut()));
                return Ok(Some((ready, Some((tar, encoder)))));
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use futures::TryStreamExt as _;

    use super::*;

    #[tokio::test]
    async fn compresses_a_stream_in_chunks() {
        let original: Vec<u8> = (0..1_000_000_u32).flat_map(u32::to_le_bytes).collect();
        let pieces: Vec<Bytes> = gzip(&original[..]).try_collect().await.unwrap();
        assert!(pieces.len() > 1);
        let mut read = Vec::new();
        flate2::read::GzDecoder::new(&pieces.concat()[..])
            .read_to_end(&mut read)
            .unwrap();
        assert_eq!(read, original);
    }
}
