//! `/v1/session` and `/v1/sessions`: signing in to the dashboard and out.

mod cookie;
mod credentials;
mod same_origin;

use std::sync::Arc;

use axum::extract::{FromRequestParts, State};
use axum::http::request::Parts;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse as _, Response};

use super::authorization::Call;
use super::extract::{Body, Json, Path};
use super::page::{PageQuery, Paging};
use super::problem::{JsonResult, ProblemResponse};
use super::request_filter::RequestedHost;
use super::state::{ApiState, Dashboard};
use crate::api::List;
use crate::api::sessions::{self, Identity, NewSession, SessionInfo, SignIn, SignInUrl};
use crate::error::{Code, Error};
use crate::ids::SessionId;
use crate::limits;

use cookie::SessionCookie;

pub(crate) use same_origin::{OriginRule, check as check_origin};

pub(crate) use credentials::{Credentials, presented, request_source, unauthenticated};

impl Body for SignIn {
    const BYTES_MAX: u64 = limits::SIGN_IN_BODY_BYTES_MAX;
}

/// A request that signs in, and so has no caller yet.
#[derive(Debug)]
pub(crate) struct Visit {
    cookie: SessionCookie,
    source: crate::auth::RequestSource,
}

impl FromRequestParts<Arc<ApiState>> for Visit {
    type Rejection = ProblemResponse;

    async fn from_request_parts(parts: &mut Parts, state: &Arc<ApiState>) -> Result<Self, ProblemResponse> {
        require_dashboard(state)?;
        let host = requested_host(parts)?;
        check_origin(&parts.headers, state.server_url(), host, OriginRule::IfSent)?;
        Ok(Self {
            cookie: SessionCookie::new(state.server_url(), host),
            source: request_source(parts),
        })
    }
}

fn require_dashboard(state: &ApiState) -> Result<(), Error> {
    match state.dashboard {
        Dashboard::Served => Ok(()),
        Dashboard::Closed => Err(Error::new(
            Code::NotFound,
            "the dashboard is off (`dashboard`, SKILLBOX_DASHBOARD)",
        )),
    }
}

fn requested_host(parts: &Parts) -> Result<&axum::http::uri::Authority, Error> {
    let host = parts.extensions.get::<RequestedHost>();
    host.map(|RequestedHost(host)| host)
        .ok_or_else(|| Error::internal("the host was not checked"))
}

/// Sign in to the dashboard
///
/// Opens a session: the answer sets an `HttpOnly` cookie and contains a page token. A request is accepted with both, the
/// token in `X-Skillbox-Page`; neither is enough alone. A changing request also needs the server's own `Origin`. The
/// session has the scopes of the key and ends with it, after 12 hours without a request, after 7 days, or by signing out.
#[utoipa::path(post, path = "/v1/session", tag = "sessions", operation_id = "sign_in", request_body = SignIn,
    responses((status = CREATED, description = "Signed in", body = NewSession,
        headers(("set-cookie" = String, description = "The session's cookie"))),
        (status = UNAUTHORIZED, description = "The key or token is not valid", body = crate::api::Problem,
            content_type = "application/problem+json")))]
pub(crate) async fn open(
    State(state): State<Arc<ApiState>>,
    visit: Visit,
    Json(body, _held): Json<SignIn>,
) -> Result<Response, ProblemResponse> {
    let address = visit.source.address;
    let opened = sessions::open(&state.engine, body, visit.source)
        .await
        .map_err(|error| match error.code() {
            Code::Unauthenticated => state.count_wrong_key(address, error),
            _ => error,
        })?;
    let mut response = (StatusCode::CREATED, axum::Json(NewSession::from(&opened))).into_response();
    set_cookie(&mut response, &visit.cookie.set(&opened.cookie))?;
    Ok(response)
}

fn set_cookie(response: &mut Response, text: &str) -> Result<(), Error> {
    let value = HeaderValue::from_str(text).map_err(Error::internal)?;
    response.headers_mut().insert(header::SET_COOKIE, value);
    Ok(())
}

/// Show who is calling
///
/// The key, its scopes and its tenant, for a session or for an API key.
#[utoipa::path(get, path = "/v1/session", tag = "sessions", operation_id = "show_session",
    responses((status = OK, body = Identity)))]
pub(crate) async fn show(call: Call) -> JsonResult<Identity> {
    Ok(axum::Json(sessions::identity(call.engine(), &call.caller).await?))
}

/// Sign out
///
/// Ends the session of this request on the server, and removes its cookie.
#[utoipa::path(delete, path = "/v1/session", tag = "sessions", operation_id = "sign_out",
    responses((status = NO_CONTENT, description = "Signed out",
        headers(("set-cookie" = String, description = "Removes the session's cookie")))))]
pub(crate) async fn close(call: Call) -> Result<Response, ProblemResponse> {
    sessions::sign_out(call.engine(), &call.caller).await?;
    let cookie = SessionCookie::new(call.state.server_url(), &call.host.0);
    let mut response = StatusCode::NO_CONTENT.into_response();
    set_cookie(&mut response, &cookie.remove())?;
    Ok(response)
}

/// List sessions
///
/// Those of the tenant that have not ended, newest first, without their tokens.
#[utoipa::path(get, path = "/v1/sessions", tag = "sessions", operation_id = "list_sessions", params(PageQuery),
    responses((status = OK, body = List<SessionInfo>)))]
pub(crate) async fn list(call: Call, Paging(page): Paging) -> JsonResult<List<SessionInfo>> {
    Ok(axum::Json(
        sessions::list(call.engine(), &call.caller, page).await?,
    ))
}

/// End a session
///
/// Permanent, with immediate effect.
#[utoipa::path(delete, path = "/v1/sessions/{id}", tag = "sessions", operation_id = "end_session",
    params(("id" = uuid::Uuid, Path, description = "The session's public id")),
    responses((status = NO_CONTENT, description = "Ended")))]
pub(crate) async fn end(call: Call, Path(id): Path<SessionId>) -> Result<StatusCode, ProblemResponse> {
    sessions::end(call.engine(), &call.caller, id).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Create a sign-in link
///
/// The first browser that opens it within 10 minutes is signed in with the key of this request. Only a request with an API key can
/// create one.
#[utoipa::path(post, path = "/v1/session/links", tag = "sessions", operation_id = "create_sign_in_link",
    responses((status = CREATED, description = "Created", body = SignInUrl)))]
pub(crate) async fn create_link(call: Call) -> Result<(StatusCode, axum::Json<SignInUrl>), ProblemResponse> {
    require_dashboard(&call.state)?;
    let base_url = call.state.base_url(&call.host.0);
    let link = sessions::create_link(call.engine(), &call.caller, &base_url).await?;
    Ok((StatusCode::CREATED, axum::Json(link)))
}
