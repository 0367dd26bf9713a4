//! `/v1/blobs`: streamed uploads and downloads.

use std::time::Duration;

use axum::extract::Request;
use axum::http::{HeaderMap, HeaderName, Method, StatusCode, header};
use axum::response::Response;
use serde::Deserialize;

use super::attachment::disposition;
use super::authorization::Call;
use super::content::{self, Content};
use super::document::Raw;
use super::extract::{Path, Query};
use super::page::{PageQuery, Paging};
use super::problem::{JsonResult, ProblemResponse};
use super::upload;
use crate::api::List;
use crate::api::blobs::{self, BlobInfo};
use crate::engine::NewBlob;
use crate::error::Error;
use crate::ids::Digest;
use crate::store::Saved;

/// Header with the upload time of a downloaded blob.
pub const BLOB_CREATED_AT: &str = "x-skillbox-created-at";
/// Header with the expiry of a downloaded blob.
pub const BLOB_EXPIRES_AT: &str = "x-skillbox-expires-at";

#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct UploadQuery {
    /// Lifetime in seconds, at most a year. Default: the server's.
    #[param(value_type = Option<u64>, minimum = 1, maximum = 31536000, example = 3600)]
    ttl: Option<String>,
}

/// Upload a blob
///
/// The body is the content, of any type, at most 64 MiB. Content that is already stored is answered with 200 and
/// lives longer, if its new expiry is later.
#[utoipa::path(post, path = "/v1/blobs", tag = "blobs", operation_id = "create_blob", params(UploadQuery),
    request_body(content((Raw = "application/octet-stream"), (Raw = "*/*"))),
    responses((status = CREATED, description = "Stored", body = BlobInfo), (status = OK, description = "Already stored", body = BlobInfo)))]
pub(crate) async fn create(
    call: Call,
    Query(query): Query<UploadQuery>,
    request: Request,
) -> Result<(StatusCode, axum::Json<BlobInfo>), ProblemResponse> {
    let life = query.ttl.as_deref().map(seconds).transpose()?;
    let media_type = media_type(request.headers())?;
    let received = upload::receive_blob(&call.state, call.tenant(), request).await?;
    let new = NewBlob {
        content: received.file,
        media_type,
        life,
    };
    let (blob, saved) = blobs::add(call.engine(), &call.caller, new).await?;
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
    let wrong = || Error::invalid("content-type: must be one header of printable ASCII");
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
/// Newest first.
#[utoipa::path(get, path = "/v1/blobs", tag = "blobs", operation_id = "list_blobs", params(PageQuery),
    responses((status = OK, body = List<BlobInfo>)))]
pub(crate) async fn list(call: Call, Paging(page): Paging) -> JsonResult<List<BlobInfo>> {
    Ok(axum::Json(blobs::list(call.engine(), &call.caller, page).await?))
}

/// Download a blob
///
/// Supports ranges and conditional requests. The headers `x-skillbox-created-at` and `x-skillbox-expires-at` contain
/// the upload time and the expiry.
#[utoipa::path(get, path = "/v1/blobs/{id}", tag = "blobs", operation_id = "download_blob",
    params(
        ("id" = String, Path, format = "digest", description = "The blob: `sha256:…`"),
        ("range" = Option<String>, Header, description = "One range of bytes"),
    ),
    responses(
        (status = OK, description = "The content, with the type of its upload", body = Raw, content_type = "*/*"),
        (status = PARTIAL_CONTENT, description = "The range", body = Raw, content_type = "*/*"),
        (status = NOT_MODIFIED, description = "The client has this content"),
    ))]
pub(crate) async fn download(
    call: Call,
    Path(id): Path<Digest>,
    method: Method,
    request_headers: HeaderMap,
) -> Result<Response, ProblemResponse> {
    let (blob, object) = blobs::content(call.engine(), &call.caller, &id).await?;
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
    content.answer(&method, &request_headers).await
}

/// Delete a blob
///
/// Takes effect immediately. Running executions that have the blob keep it.
#[utoipa::path(delete, path = "/v1/blobs/{id}", tag = "blobs", operation_id = "delete_blob",
    params(("id" = String, Path, format = "digest", description = "The blob: `sha256:…`")),
    responses((status = NO_CONTENT, description = "Deleted")))]
pub(crate) async fn delete(call: Call, Path(id): Path<Digest>) -> Result<StatusCode, ProblemResponse> {
    blobs::delete(call.engine(), &call.caller, &id).await?;
    Ok(StatusCode::NO_CONTENT)
}
