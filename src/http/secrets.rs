//! `/v1/secrets`: set, listed by name, deleted. No route returns a value.

use axum::http::StatusCode;
use serde::Deserialize;
use serde::de::{self, Deserializer};
use serde_json::value::RawValue;

use super::authorization::Call;
use super::extract::{Body, Json, Path};
use super::page::{PageQuery, Paging};
use super::problem::{JsonResult, ProblemResponse};
use crate::api::List;
use crate::api::secrets::{self, SecretInfo};
use crate::error::Error;
use crate::limits;
use crate::secret::SecretValue;
use crate::skill::SecretName;
use crate::store::Saved;

#[derive(utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct PutSecret {
    /// 1 to 65,536 bytes of text without NUL. Programs receive it unchanged.
    #[schema(min_length = 1, max_length = 65536, pattern = r"^[^\x00]*$", example = "…")]
    value: String,
}

impl Body for PutSecret {
    const BYTES_MAX: u64 = limits::SECRET_BODY_BYTES_MAX;
}

impl<'de> Deserialize<'de> for PutSecret {
    /// From raw JSON with one message for all errors, because serde's messages would repeat the value.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct OneMember {
            value: String,
        }
        let json = Box::<RawValue>::deserialize(deserializer)?;
        let OneMember { value } = serde_json::from_str(json.get())
            .map_err(|_| de::Error::custom("must be an object with one member, the string `value`"))?;
        Ok(Self { value })
    }
}

/// Set a secret
///
/// Replaces an existing secret of this name. Skills that declare the name receive it as a variable from the next run
/// on.
#[utoipa::path(put, path = "/v1/secrets/{name}", tag = "secrets", operation_id = "set_secret", request_body = PutSecret,
    params(("name" = String, Path, format = "secret-name", description = "Name of the variable, such as `API_TOKEN`")),
    responses((status = CREATED, description = "Created"), (status = NO_CONTENT, description = "Replaced")))]
pub(crate) async fn set(
    call: Call,
    Path(name): Path<SecretName>,
    Json(body, _held): Json<PutSecret>,
) -> Result<StatusCode, ProblemResponse> {
    let value = SecretValue::new(body.value).map_err(|error| Error::invalid(format!("value: {error}")))?;
    Ok(
        match secrets::set(call.engine(), &call.caller, &name, &value).await? {
            Saved::New => StatusCode::CREATED,
            Saved::Existing => StatusCode::NO_CONTENT,
        },
    )
}

/// List secrets
///
/// Sorted by name, without their values, which are never returned.
#[utoipa::path(get, path = "/v1/secrets", tag = "secrets", operation_id = "list_secrets", params(PageQuery),
    responses((status = OK, body = List<SecretInfo>)))]
pub(crate) async fn list(call: Call, Paging(page): Paging) -> JsonResult<List<SecretInfo>> {
    Ok(axum::Json(
        secrets::list(call.engine(), &call.caller, page).await?,
    ))
}

/// Delete a secret
///
/// Permanent. Skills that declare it are rejected until it is set again.
#[utoipa::path(delete, path = "/v1/secrets/{name}", tag = "secrets", operation_id = "delete_secret",
    params(("name" = String, Path, format = "secret-name", description = "The name of the secret")),
    responses((status = NO_CONTENT, description = "Deleted")))]
pub(crate) async fn delete(call: Call, Path(name): Path<SecretName>) -> Result<StatusCode, ProblemResponse> {
    secrets::delete(call.engine(), &call.caller, &name).await?;
    Ok(StatusCode::NO_CONTENT)
}
