//! `/v1/secrets`: set, listed by name, deleted. No route answers a value.

use std::fmt;
use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use serde::Deserialize;
use serde::de::{self, Deserializer};
use serde_json::Value;

use super::authorization::Authenticated;
use super::extract::{Body, Json, Path, Query};
use super::page::PageQuery;
use super::problem::ProblemResponse;
use super::state::ApiState;
use crate::api::List;
use crate::api::secrets::{self, SecretInfo};
use crate::error::Error;
use crate::limits;
use crate::secret::SecretValue;
use crate::skill::SecretName;
use crate::store::Saved;

/// The value of a secret.
#[derive(utoipa::ToSchema)]
pub(crate) struct PutSecret {
    /// 1 to 65,536 bytes of text without NUL; it reaches programs as it is.
    #[schema(min_length = 1, max_length = 65536, example = "…")]
    value: String,
}

impl Body for PutSecret {
    const BYTES_MAX: u64 = limits::SECRET_BODY_BYTES_MAX;
}

impl<'de> Deserialize<'de> for PutSecret {
    /// By hand: a message of serde's own would repeat what it does not like.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(OneMember)
    }
}

/// Reads an object with one member, `value`, and refuses everything else in the same words.
struct OneMember;

fn wrong<E: de::Error>() -> E {
    E::custom("must be an object with one member, `value`, a text")
}

impl<'de> de::Visitor<'de> for OneMember {
    type Value = PutSecret;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object with one member, `value`, a text")
    }

    fn visit_map<A: de::MapAccess<'de>>(self, mut members: A) -> Result<PutSecret, A::Error> {
        let mut found = None;
        while let Some(name) = members.next_key::<String>()? {
            match (name.as_str(), members.next_value()?, &found) {
                ("value", Value::String(value), None) => found = Some(PutSecret { value }),
                ("value", _, Some(_)) => return Err(de::Error::duplicate_field("value")),
                _ => return Err(wrong()),
            }
        }
        found.ok_or_else(wrong)
    }

    fn visit_seq<A: de::SeqAccess<'de>>(self, _: A) -> Result<PutSecret, A::Error> {
        Err(wrong())
    }

    fn visit_str<E: de::Error>(self, _: &str) -> Result<PutSecret, E> {
        Err(wrong())
    }

    fn visit_bool<E: de::Error>(self, _: bool) -> Result<PutSecret, E> {
        Err(wrong())
    }

    fn visit_i64<E: de::Error>(self, _: i64) -> Result<PutSecret, E> {
        Err(wrong())
    }

    fn visit_u64<E: de::Error>(self, _: u64) -> Result<PutSecret, E> {
        Err(wrong())
    }

    fn visit_f64<E: de::Error>(self, _: f64) -> Result<PutSecret, E> {
        Err(wrong())
    }

    fn visit_unit<E: de::Error>(self) -> Result<PutSecret, E> {
        Err(wrong())
    }
}

/// Set a secret
///
/// In place of the one that has this name. Skills that declare the name find it among their variables from the next run on.
#[utoipa::path(put, path = "/v1/secrets/{name}", tag = "secrets", operation_id = "set_secret", request_body = PutSecret,
    params(("name" = String, Path, description = "A variable's name, such as `API_TOKEN`", max_length = 64)),
    responses((status = CREATED, description = "Set for the first time"), (status = NO_CONTENT, description = "Replaced")))]
pub(crate) async fn set(
    State(state): State<Arc<ApiState>>,
    Authenticated(caller): Authenticated,
    Path(name): Path<SecretName>,
    Json(body, _held): Json<PutSecret>,
) -> Result<StatusCode, ProblemResponse> {
    let value = SecretValue::new(body.value).map_err(|error| Error::invalid(format!("value: {error}")))?;
    Ok(match secrets::set(&state.engine, &caller, &name, &value).await? {
        Saved::New => StatusCode::CREATED,
        Saved::Existing => StatusCode::NO_CONTENT,
    })
}

/// List secrets
///
/// Sorted by name, without their values, which are never returned.
#[utoipa::path(get, path = "/v1/secrets", tag = "secrets", operation_id = "list_secrets", params(PageQuery),
    responses((status = OK, body = List<SecretInfo>)))]
pub(crate) async fn list(
    State(state): State<Arc<ApiState>>,
    Authenticated(caller): Authenticated,
    Query(page): Query<PageQuery>,
) -> Result<axum::Json<List<SecretInfo>>, ProblemResponse> {
    let page = page.into_request()?;
    Ok(axum::Json(secrets::list(&state.engine, &caller, page).await?))
}

/// Delete a secret
///
/// Permanent. Skills that declare it are rejected until it is set again.
#[utoipa::path(delete, path = "/v1/secrets/{name}", tag = "secrets", operation_id = "delete_secret",
    params(("name" = String, Path, description = "Its name", max_length = 64)),
    responses((status = NO_CONTENT, description = "Deleted")))]
pub(crate) async fn delete(
    State(state): State<Arc<ApiState>>,
    Authenticated(caller): Authenticated,
    Path(name): Path<SecretName>,
) -> Result<StatusCode, ProblemResponse> {
    secrets::delete(&state.engine, &caller, &name).await?;
    Ok(StatusCode::NO_CONTENT)
}
