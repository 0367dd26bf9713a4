//! The dashboard below `/ui/`: embedded files, and one page for all other paths.

mod files;
mod negotiation;

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;

use super::content::value;
use super::extract::Path;
use super::problem::ProblemResponse;
use super::range;
use super::state::ApiState;
use crate::error::{Code, Error, quoted};

use files::StaticFile;

pub(crate) use files::StaticFiles;
pub(crate) use negotiation::prefers_html;

/// Path of the dashboard.
pub(crate) const HOME: &str = "/ui/";

/// Everything comes from this server, scripts only from files, and no text becomes HTML (W-01, W-08).
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; \
     frame-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; \
     trusted-types 'none'";

/// Endings of files that a page loads. A path that ends otherwise is a place in the dashboard.
const ASSET_ENDINGS: [&str; 11] = [
    "css", "html", "ico", "js", "json", "map", "mjs", "png", "svg", "txt", "woff2",
];

/// Not in the access matrix, since these files are public.
pub(crate) fn routes() -> Router<Arc<ApiState>> {
    Router::new()
        .route("/ui", get(|| async { to_dashboard() }))
        .route(HOME, get(home))
        .route("/ui/{*path}", get(file))
}

pub(crate) fn to_dashboard() -> Response {
    (StatusCode::SEE_OTHER, [(header::LOCATION, HOME)]).into_response()
}

async fn home(State(state): State<Arc<ApiState>>, headers: HeaderMap) -> Result<Response, ProblemResponse> {
    let page = state.ui.page().ok_or_else(|| not_found("index.html"))?;
    Ok(answer(page, &headers).await?)
}

/// The file at `path`, else the page, which shows what the path stands for.
async fn file(
    State(state): State<Arc<ApiState>>,
    Path(path): Path<String>,
    headers: HeaderMap,
) -> Result<Response, ProblemResponse> {
    if let Some(file) = state.ui.file(&path) {
        return Ok(answer(file, &headers).await?);
    }
    // A missing script must not be answered with HTML. A path such as `skills/x/files/main.js` is opened by a person.
    if !is_plain(&path) || (is_asset(&path) && !prefers_html(&headers)) {
        return Err(not_found(&path).into());
    }
    let page = state.ui.page().ok_or_else(|| not_found(&path))?;
    let mut response = answer(page, &headers).await?;
    if is_asset(&path) {
        response
            .headers_mut()
            .append(header::VARY, HeaderValue::from_static("accept"));
    }
    Ok(response)
}

fn not_found(path: &str) -> Error {
    let message = format!("no such file of the dashboard: {}", quoted(path));
    Error::new(Code::NotFound, message)
}

/// Without what could be read as another path (W-10).
fn is_plain(path: &str) -> bool {
    let has_odd_part = path
        .trim_end_matches('/')
        .split('/')
        .any(|part| matches!(part, "" | "." | ".."));
    !has_odd_part && !path.contains('\\') && !path.contains(char::is_control)
}

fn is_asset(path: &str) -> bool {
    let ending = path.rsplit('/').next().and_then(|name| name.rsplit_once('.'));
    ending.is_some_and(|(_, ending)| ASSET_ENDINGS.contains(&ending.to_ascii_lowercase().as_str()))
}

/// The file, encoded as the client prefers, or the note that the client has it.
async fn answer(file: &StaticFile, request: &HeaderMap) -> Result<Response, Error> {
    let encoding = negotiation::preferred_encoding(request);
    if range::is_known(request, &file.tag(encoding)) {
        return Ok((StatusCode::NOT_MODIFIED, headers(&file.tag(encoding))?).into_response());
    }
    let (content, encoding) = file.content(encoding).await?;
    let mut headers = headers(&file.tag(encoding))?;
    headers.insert(header::CONTENT_TYPE, value(file.content_type())?);
    if let Some(encoding) = encoding {
        let name = HeaderValue::from_static(encoding.as_str());
        headers.insert(header::CONTENT_ENCODING, name);
    }
    Ok((headers, Body::from(content)).into_response())
}

/// Headers of a file with this entity tag; `outer_layer` adds the others.
fn headers(tag: &str) -> Result<HeaderMap, Error> {
    let fixed: [(HeaderName, &str); 4] = [
        // A new release replaces the files; a tag that is still right costs no download.
        (header::CACHE_CONTROL, "no-cache"),
        (header::VARY, "accept-encoding"),
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (
            HeaderName::from_static("cross-origin-opener-policy"),
            "same-origin",
        ),
    ];
    let mut headers: HeaderMap = fixed
        .into_iter()
        .map(|(name, text)| (name, HeaderValue::from_static(text)))
        .collect();
    headers.insert(header::ETAG, value(tag)?);
    Ok(headers)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// W-10.
    #[test]
    fn distinguishes_places_of_the_dashboard_from_missing_files() {
        for place in ["executions/1", "skills/a.b/1.2.0", "skills/a/", "x.y", "js"] {
            assert!(is_plain(place) && !is_asset(place), "{place}");
        }
        for asset in ["app.js", "pages/x.CSS", "vendor/preact.js", "a.b.svg", ".js"] {
            assert!(is_asset(asset), "{asset}");
        }
        for odd in ["../x", "a/../b", "a//b", "/a", "a\\b", "a\0", "./a", "..", ""] {
            assert!(!is_plain(odd), "{odd:?}");
        }
    }
}
