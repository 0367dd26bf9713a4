//! Serves untrusted bytes, also in ranges, so that no browser runs them under this server's origin (O-15).

use std::ops::Range;

use axum::body::Body;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use tokio_util::io::ReaderStream;

use super::problem::ProblemResponse;
use super::range::{self, ByteRange};
use crate::blob::Object;
use crate::error::{Code, Error};
use crate::limits;

/// Content for range and conditional requests.
#[derive(Debug)]
pub(crate) struct Content {
    /// Made by [`headers`].
    pub(crate) headers: HeaderMap,
    /// Strong entity tag, in quotes.
    pub(crate) tag: String,
    /// Position in the object.
    pub(crate) range: Range<u64>,
    pub(crate) object: Object,
}

/// Content for conditional requests only.
#[derive(Debug)]
pub(crate) struct Whole {
    /// Made by [`headers`].
    pub(crate) headers: HeaderMap,
    /// Entity tag, in quotes.
    pub(crate) tag: String,
    pub(crate) size: u64,
}

impl Whole {
    /// Calls `body` only if the response has one.
    pub(crate) fn answer(
        self,
        method: &Method,
        request_headers: &HeaderMap,
        body: impl FnOnce() -> Result<Body, Error>,
    ) -> Result<Response, ProblemResponse> {
        let Self {
            mut headers,
            tag,
            size,
        } = self;
        headers.insert(header::ETAG, value(&tag)?);
        if range::is_known(request_headers, &tag) {
            return Ok((StatusCode::NOT_MODIFIED, headers).into_response());
        }
        headers.insert(header::CONTENT_LENGTH, HeaderValue::from(size));
        if *method == Method::HEAD {
            return Ok(headers.into_response());
        }
        Ok((headers, body()?).into_response())
    }
}

/// Headers of a download with this type and name.
pub(crate) fn headers(content_type: &str, content_disposition: &str) -> Result<HeaderMap, Error> {
    let fixed: [(HeaderName, &str); 3] = [
        (header::CACHE_CONTROL, "private, no-cache"),
        (
            header::CONTENT_SECURITY_POLICY,
            "sandbox; default-src 'none'; frame-ancestors 'none'",
        ),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    ];
    let mut headers: HeaderMap = fixed
        .into_iter()
        .map(|(name, text)| (name, HeaderValue::from_static(text)))
        .collect();
    headers.insert(header::CONTENT_TYPE, value(content_type)?);
    headers.insert(header::CONTENT_DISPOSITION, value(content_disposition)?);
    Ok(headers)
}

impl Content {
    pub(crate) async fn answer(
        self,
        method: &Method,
        request_headers: &HeaderMap,
    ) -> Result<Response, ProblemResponse> {
        let Self {
            mut headers,
            tag,
            range,
            object,
        } = self;
        let size = range.end - range.start;
        headers.insert(header::ETAG, value(&tag)?);
        headers.insert(header::ACCEPT_RANGES, HeaderValue::from_static("bytes"));
        if range::is_known(request_headers, &tag) {
            return Ok((StatusCode::NOT_MODIFIED, headers).into_response());
        }
        let requested_range = if *method == Method::GET {
            range::requested_range(request_headers, size, &tag)
        } else {
            ByteRange::Whole
        };
        let (status, part) = match requested_range {
            ByteRange::Whole => (StatusCode::OK, 0..size),
            ByteRange::Part(part) => {
                let range = format!("bytes {}-{}/{size}", part.start, part.end - 1);
                headers.insert(header::CONTENT_RANGE, value(&range)?);
                (StatusCode::PARTIAL_CONTENT, part)
            }
            ByteRange::Beyond => {
                let error = Error::new(
                    Code::RangeNotSatisfiable,
                    format!("range: starts after the end of the file, which has {size} bytes"),
                );
                return Err(ProblemResponse::from(error)
                    .with_header(header::CONTENT_RANGE, value(&format!("bytes */{size}"))?));
            }
        };
        headers.insert(header::CONTENT_LENGTH, HeaderValue::from(part.end - part.start));
        if *method == Method::HEAD {
            return Ok((status, headers).into_response());
        }
        let wanted = range.start + part.start..range.start + part.end;
        let reader = object.into_reader(wanted).await.map_err(Error::internal)?;
        let body = Body::from_stream(ReaderStream::with_capacity(reader, limits::DOWNLOAD_CHUNK_BYTES));
        Ok((status, headers, body).into_response())
    }
}

pub(crate) fn value(text: &str) -> Result<HeaderValue, Error> {
    HeaderValue::from_str(text).map_err(Error::internal)
}
