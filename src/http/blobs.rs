//! `/v1/blobs`: bytes under what they hold, in and out as streams.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderName, Method, StatusCode, header};
use axum::response::Response;
use serde::Deserialize;

use super::attachment::disposition;
use super::authorization::Authenticated;
use super::content::{self, Content};
use super::document::Raw;
use super::extract::{Path, Query};
use super::page::PageQuery;
use super::problem::ProblemResponse;
use super::state::ApiState;
use super::upload;
use crate::api::List;
use crate::api::blobs::{self, BlobInfo};
use crate::engine::NewBlob;
use crate::error::Error;
use crate::ids::Digest;
use crate::store::Saved;

/// When a downloaded blob came, as a header.
pub const BLOB_CREATED_AT: &str = "x-skillbox-created-at";
/// From when on it is not there, as a header.
pub const BLOB_EXPIRES_AT: &str = "x-skillbox-expires-at";

/// The query of an upload.
#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct UploadQuery {
    /// Life in seconds, at most a year; the server's choice if absent.
    #[param(value_type = Option<u64>, minimum = 1, example = 3600)]
    ttl: Option<String>,
}

/// Keep a blob
///
/// The body is the content, of any type, at most 64 MiB. The same content again is the same blob: it is kept longer, if that is later, and answered with 200.
#[utoipa::path(post, path = "/v1/blobs", tag = "blobs", operation_id = "create_blob", params(UploadQuery),
    request_body(content = Raw, content_type = "*/*"),
    responses((status = CREATED, description = "Kept", body = BlobInfo), (status = OK, description = "It was there", body = BlobInfo)))]
pub(crate) async fn create(
    State(state): State<Arc<ApiState>>,
    Authenticated(caller): Authenticated,
    Query(query): Query<UploadQuery>,
    request: Request,
) -> Result<(StatusCode, axum::Json<BlobInfo>), ProblemResponse> {
    let life = query.ttl.as_deref().map(seconds).transpose()?;
    let media_type = media_type(request.headers())?;
    let received = upload::receive_blob(&state, caller.tenant(), request).await?;
    let new = NewBlob {
        content: received.file,
        media_type,
        life,
    };
    let (blob, saved) = blobs::add(&state.engine, &caller, new).await?;
    drop(received.slot);
    let status = match saved {
        Saved::New => StatusCode::CREATED,
        Saved::Existing => StatusCode::OK,
    };
    Ok((status, axum::Json(blob)))
}

fn seconds(text: &str) -> Result<Duration, Error> {
    let seconds = text.parse().ok().filter(|seconds: &u64| *seconds > 0);
    let seconds = seconds.ok_or_else(|| Error::invalid("ttl: must be a whole number of seconds from 1"))?;
    Ok(Duration::from_secs(seconds))
}

fn media_type(headers: &HeaderMap) -> Result<Option<String>, Error> {
    let mut types = headers.get_all(header::CONTENT_TYPE).iter();
    let wrong = || Error::invalid("content-type: must be one line of printable ASCII");
    match (types.next(), types.next()) {
        (None, _) => Ok(None),
        (Some(only), None) => only
            .to_str()
            .map(|text| Some(text.to_owned()))
            .map_err(|_| wrong()),
        (Some(_), Some(_)) => Err(wrong()),
    }
}

/// List blobs
///
/// The newest first.
#[utoipa::path(get, path = "/v1/blobs", tag = "blobs", operation_id = "list_blobs", params(PageQuery),
    responses((status = OK, body = List<BlobInfo>)))]
pub(crate) async fn list(
    State(state): State<Arc<ApiState>>,
    Authenticated(caller): Authenticated,
    Query(page): Query<PageQuery>,
) -> Result<axum::Json<List<BlobInfo>>, ProblemResponse> {
    let page = page.into_request()?;
    Ok(axum::Json(blobs::list(&state.engine, &caller, page).await?))
}

/// Download a blob
///
/// Ranges and conditional requests are answered. The headers `x-skillbox-created-at` and `x-skillbox-expires-at` say when it came and until when it is kept.
#[utoipa::path(get, path = "/v1/blobs/{id}", tag = "blobs", operation_id = "download_blob",
    params(
        ("id" = String, Path, description = "The blob: `sha256:…`"),
        ("range" = Option<String>, Header, description = "One range of bytes"),
    ),
    responses(
        (status = OK, description = "The content, under the type that it came with", body = Raw, content_type = "*/*"),
        (status = PARTIAL_CONTENT, description = "The range", body = Raw, content_type = "*/*"),
        (status = NOT_MODIFIED, description = "The client has it already"),
    ))]
pub(crate) async fn download(
    State(state): State<Arc<ApiState>>,
    Authenticated(caller): Authenticated,
    Path(id): Path<Digest>,
    method: Method,
    asked: HeaderMap,
) -> Result<Response, ProblemResponse> {
    let (blob, object) = blobs::content(&state.engine, &caller, &id).await?;
    let name = blob.blob_id.hex();
    let mut headers = content::headers(&blob.media_type, &disposition(&name))?;
    for (name, at) in [
        (BLOB_CREATED_AT, blob.created_at),
        (BLOB_EXPIRES_AT, blob.expires_at),
    ] {
        headers.insert(HeaderName::from_static(name), content::value(&at.to_string())?);
    }
    let content = Content {
        headers,
        tag: format!("\"{name}\""),
        range: 0..blob.size,
        object,
    };
    content.answer(&method, &asked).await
}

/// Delete a blob
///
/// At once; executions that have it already keep it until they end.
#[utoipa::path(delete, path = "/v1/blobs/{id}", tag = "blobs", operation_id = "delete_blob",
    params(("id" = String, Path, description = "The blob: `sha256:…`")),
    responses((status = NO_CONTENT, description = "Deleted")))]
pub(crate) async fn delete(
    State(state): State<Arc<ApiState>>,
    Authenticated(caller): Authenticated,
    Path(id): Path<Digest>,
) -> Result<StatusCode, ProblemResponse> {
    blobs::delete(&state.engine, &caller, &id).await?;
    Ok(StatusCode::NO_CONTENT)
}
