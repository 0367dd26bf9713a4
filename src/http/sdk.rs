//! The client libraries of `web/sdk`, served below `/sdk` and printed by the command line.

use std::borrow::Cow;

use axum::http::{StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use rust_embed::Embed;
use serde::Serialize;

use super::document::Raw;
use super::extract::Path;
use super::problem::ProblemResponse;
use crate::error::{Code, Error, quoted};
use crate::ids::Digest;

/// What an installation needs. Each file is named, because the build does not see files that are added.
#[derive(Embed)]
#[folder = "web/sdk"]
#[include = "go/README.md"]
#[include = "python/README.md"]
#[include = "typescript/README.md"]
#[include = "go/go.mod"]
#[include = "go/skillbox.go"]
#[include = "python/pyproject.toml"]
#[include = "python/skillbox/__init__.py"]
#[include = "python/skillbox/py.typed"]
#[include = "typescript/package.json"]
#[include = "typescript/skillbox.d.ts"]
#[include = "typescript/skillbox.js"]
struct EmbeddedFiles;

/// The module of Python under the name that a copy of it has.
const PYTHON_COPY: &str = "python/skillbox.py";
const PYTHON_MODULE: &str = "python/skillbox/__init__.py";

/// The files of the client libraries.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub(crate) struct SdkIndex {
    items: Vec<SdkFile>,
}

/// A file of a client library.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub(crate) struct SdkFile {
    /// Path on this server.
    #[schema(example = "/sdk/go/skillbox.go")]
    path: String,
    /// Bytes.
    size: u64,
    /// Digest of the content.
    #[schema(value_type = String, format = "digest")]
    sha256: Digest,
}

/// Paths below `/sdk/`, in order.
pub(crate) fn paths() -> impl Iterator<Item = Cow<'static, str>> {
    EmbeddedFiles::iter()
}

/// The file at a path below `/sdk/`.
pub(crate) fn content(path: &str) -> Option<Cow<'static, [u8]>> {
    let path = if path == PYTHON_COPY { PYTHON_MODULE } else { path };
    EmbeddedFiles::get(path).map(|file| file.data)
}

/// List the client libraries
///
/// The files of the packages for Go, Python and TypeScript, of this server's version.
#[utoipa::path(get, path = "/sdk", tag = "server", operation_id = "list_sdk_files",
    responses((status = OK, body = SdkIndex)))]
pub(crate) async fn index() -> axum::Json<SdkIndex> {
    let files = paths().chain([PYTHON_COPY.into()]).filter_map(|path| {
        let content = content(&path)?;
        Some(SdkFile {
            path: format!("/sdk/{path}"),
            size: content.len() as u64,
            sha256: Digest::of(&content),
        })
    });
    axum::Json(SdkIndex {
        items: files.collect(),
    })
}

/// Download a file of a client library
#[utoipa::path(get, path = "/sdk/{*path}", tag = "server", operation_id = "download_sdk_file",
    params(("path" = String, Path, description = "One of `GET /sdk`", example = "go/skillbox.go")),
    responses((status = OK, description = "The file", body = Raw, content_type = "*/*")))]
pub(crate) async fn file(Path(path): Path<String>) -> Result<Response, ProblemResponse> {
    let Some(content) = content(&path) else {
        let message = format!(
            "no client library has the file {}; `GET /sdk` lists all",
            quoted(&path)
        );
        return Err(Error::new(Code::NotFound, message).into());
    };
    let headers = [(header::CONTENT_TYPE, media_type(&path))];
    Ok((StatusCode::OK, headers, content).into_response())
}

/// Browsers and Deno run a module only with a type of JavaScript.
fn media_type(path: &str) -> &'static str {
    match path.rsplit_once('.') {
        Some((_, "js")) => "text/javascript; charset=utf-8",
        _ => "text/plain; charset=utf-8",
    }
}
