//! Extractors: read with limits; errors name the field.

use std::sync::Arc;

use axum::extract::path::ErrorKind;
use axum::extract::rejection::PathRejection;
use axum::extract::{FromRequest, FromRequestParts, Request};
use axum::http::request::Parts;
use axum::http::{HeaderMap, header};
use serde::de::DeserializeOwned;

use super::authorization::FileTenant;
use super::body;
use super::budget::BudgetShare;
use super::problem::ProblemResponse;
use super::state::ApiState;
use crate::api::executions::PruneExecutions;
use crate::api::keys::CreateKey;
use crate::api::packages::Prefetch;
use crate::api::prove::StartProof;
use crate::api::rerun::RerunExecution;
use crate::api::skills::AddedRequirements;
use crate::api::{CreateExecution, parse_json, safe_message};
use crate::error::{Code, Error};
use crate::ids::Tenant;
use crate::limits;

/// A JSON body, and its share of the memory budget, held until the response is made.
#[derive(Debug)]
pub(crate) struct Json<T>(pub(crate) T, pub(crate) BudgetShare);

/// As [`Json`]; a request without a body has the default.
#[derive(Debug)]
pub(crate) struct JsonOrDefault<T>(pub(crate) T, pub(crate) BudgetShare);

impl<T: Body + Default> FromRequest<Arc<ApiState>> for JsonOrDefault<T> {
    type Rejection = ProblemResponse;

    async fn from_request(request: Request, state: &Arc<ApiState>) -> Result<Self, ProblemResponse> {
        let is_absent = !request.headers().contains_key(header::CONTENT_TYPE)
            && axum::body::HttpBody::is_end_stream(request.body());
        if is_absent {
            let (mut parts, _) = request.into_parts();
            let FileTenant(tenant) = FileTenant::from_request_parts(&mut parts, state).await?;
            return Ok(Self(T::default(), state.bodies.hold(&tenant, 0)?));
        }
        let Json(value, held) = Json::from_request(request, state).await?;
        Ok(Self(value, held))
    }
}

/// The type of a JSON body.
pub(crate) trait Body: DeserializeOwned + Send + 'static {
    /// Maximum size in bytes.
    const BYTES_MAX: u64 = limits::BODY_BYTES_MAX;
}

impl Body for CreateExecution {
    const BYTES_MAX: u64 = limits::EXECUTION_BODY_BYTES_MAX;
}

impl Body for CreateKey {}

impl Body for Prefetch {}
impl Body for PruneExecutions {}
impl Body for RerunExecution {}
impl Body for StartProof {}
impl Body for AddedRequirements {}

#[derive(Debug)]
pub(crate) struct Path<T>(pub(crate) T);

/// Each parameter at most once.
#[derive(Debug)]
pub(crate) struct Query<T>(pub(crate) T);

impl<T: Body> FromRequest<Arc<ApiState>> for Json<T> {
    type Rejection = ProblemResponse;

    async fn from_request(request: Request, state: &Arc<ApiState>) -> Result<Self, ProblemResponse> {
        if !is_json(request.headers()) {
            let message = "send the body as `content-type: application/json`, in UTF-8";
            return Err(Error::new(Code::UnsupportedMediaType, message).into());
        }
        let (parts, body) = request.into_parts();
        // A route without a caller reads small bodies only.
        let tenant = parts.extensions.get::<FileTenant>();
        let tenant = tenant.map_or_else(Tenant::default_tenant, |FileTenant(tenant)| tenant.clone());
        let mut held = state.bodies.hold(&tenant, 0)?;
        let bytes = body::read(body, T::BYTES_MAX, &mut held).await?;
        // Parsing a large body would block other requests of this thread.
        let value = if bytes.len() as u64 <= limits::INLINE_PARSE_BYTES_MAX {
            parse_json(&bytes)
        } else {
            tokio::task::spawn_blocking(move || parse_json(&bytes))
                .await
                .map_err(Error::internal)?
        };
        Ok(Self(value?, held))
    }
}

impl<T: DeserializeOwned + Send> FromRequestParts<Arc<ApiState>> for Path<T> {
    type Rejection = ProblemResponse;

    async fn from_request_parts(parts: &mut Parts, state: &Arc<ApiState>) -> Result<Self, ProblemResponse> {
        let found = axum::extract::Path::<T>::from_request_parts(parts, state).await;
        match found {
            Ok(axum::extract::Path(value)) => Ok(Self(value)),
            Err(rejection) => Err(Error::invalid(path_message(&rejection)).into()),
        }
    }
}

impl<T: DeserializeOwned> FromRequestParts<Arc<ApiState>> for Query<T> {
    type Rejection = ProblemResponse;

    async fn from_request_parts(parts: &mut Parts, _state: &Arc<ApiState>) -> Result<Self, ProblemResponse> {
        match axum::extract::Query::<T>::try_from_uri(&parts.uri) {
            Ok(axum::extract::Query(value)) => Ok(Self(value)),
            Err(rejection) => {
                let text = rejection.body_text();
                let reason = text.strip_prefix("Failed to deserialize query string: ");
                Err(Error::invalid(safe_message(&format!("query: {}", reason.unwrap_or(&text)))).into())
            }
        }
    }
}

/// Exactly one `Content-Type` of JSON, in UTF-8 if it names a charset (A-10: forms and plain text, which a foreign
/// page can send, are never parsed).
pub(crate) fn is_json(headers: &HeaderMap) -> bool {
    let mut types = headers.get_all(header::CONTENT_TYPE).iter();
    let (Some(only), None) = (types.next(), types.next()) else {
        return false;
    };
    let Ok(text) = only.to_str() else { return false };
    let mut parts = text.split(';').map(str::trim);
    let essence = parts.next().unwrap_or_default();
    essence.eq_ignore_ascii_case("application/json") && parts.all(is_utf8)
}

fn is_utf8(parameter: &str) -> bool {
    let Some((name, value)) = parameter.split_once('=') else {
        return false;
    };
    name.eq_ignore_ascii_case("charset") && value.trim_matches('"').eq_ignore_ascii_case("utf-8")
}

fn path_message(rejection: &PathRejection) -> String {
    match rejection {
        PathRejection::FailedToDeserializePathParams(failed) => match failed.kind() {
            ErrorKind::InvalidUtf8InPathParam { key } => format!("{key}: not valid UTF-8"),
            ErrorKind::DeserializeError { key, message, .. } => safe_message(&format!("{key}: {message}")),
            other => safe_message(&other.to_string()),
        },
        other => safe_message(&other.body_text()),
    }
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    ///
    #[test]
    fn accepts_only_utf8_json_content_types() {
        let accepted = |types: &[&str]| {
            let mut headers = HeaderMap::new();
            for value in types {
                headers.append(header::CONTENT_TYPE, HeaderValue::from_str(value).unwrap());
            }
            is_json(&headers)
        };
        for json in [
            "application/json",
            "Application/JSON",
            "application/json; charset=utf-8",
            "application/json;charset=\"UTF-8\"",
        ] {
            assert!(accepted(&[json]), "{json}");
        }
        for other in [
            "text/plain",
            "text/json",
            "application/x-www-form-urlencoded",
            "multipart/form-data; boundary=x",
            "application/json; charset=utf-7",
            "application/json; charset=utf-16",
            "application/json, text/plain",
            "application/json; x",
            "",
        ] {
            assert!(!accepted(&[other]), "{other}");
        }
        assert!(!accepted(&[]));
        assert!(!accepted(&["application/json", "application/json"]));
    }
}
