//! Authorizes a request before any handler or body is read.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{FromRequestParts, MatchedPath, Request, State};
use axum::http::request::Parts;
use axum::http::{Extensions, HeaderMap, HeaderName, HeaderValue, Method, header};
use axum::middleware::Next;
use axum::response::Response;
use serde::Serialize;

use super::access::{Access, Matrix};
use super::extract::Path;
use super::links::{self, Download};
use super::problem::ProblemResponse;
use super::request_filter::RequestedHost;
use super::response;
use super::serve::OnReservedConnection;
use super::session::{self, Credentials, unauthenticated};
use super::state::ApiState;
use crate::api::{require, require_tenant};
use crate::auth::{Caller, Scope};
use crate::engine::Engine;
use crate::error::{Code, Error};
use crate::ids::Tenant;
use crate::limits;
use crate::telemetry::field;

/// The tenant that a client expects its key to belong to (T-05).
const EXPECTED_TENANT: HeaderName = HeaderName::from_static("x-skillbox-tenant");

/// A request with a valid API key or session. Its caller is set only by [`authorize`].
#[derive(Clone, Debug)]
pub(crate) struct Call {
    pub(crate) state: Arc<ApiState>,
    pub(crate) caller: Caller,
    pub(crate) host: RequestedHost,
}

impl Call {
    /// The call of a request that [`authorize`] has passed.
    pub(crate) fn of(state: &Arc<ApiState>, extensions: &Extensions) -> Result<Self, Error> {
        let (Some(caller), Some(host)) = (extensions.get::<Caller>(), extensions.get::<RequestedHost>())
        else {
            return Err(unauthenticated());
        };
        Ok(Self {
            state: Arc::clone(state),
            caller: caller.clone(),
            host: host.clone(),
        })
    }

    pub(crate) fn engine(&self) -> &Engine {
        &self.state.engine
    }

    pub(crate) fn tenant(&self) -> &Tenant {
        self.caller.tenant()
    }

    /// A JSON response within the memory budget.
    pub(crate) fn json(&self, value: &impl Serialize) -> Result<Response, Error> {
        response::json(&self.state.answers, self.tenant(), value)
    }

    /// A response body within the memory budget.
    pub(crate) fn body(&self, content: Vec<u8>) -> Result<Body, Error> {
        response::body(&self.state.answers, self.tenant(), content)
    }
}

/// The tenant whose files may be read: that of the key or of the signed link.
#[derive(Clone, Debug)]
pub(crate) struct FileTenant(pub(crate) Tenant);

#[derive(Clone, Debug)]
pub(crate) struct Authorizer {
    pub(crate) state: Arc<ApiState>,
    pub(crate) matrix: Arc<Matrix>,
}

/// Passes a request to its handler if the access matrix allows it. A route without an entry is closed.
pub(crate) async fn authorize(
    State(authorizer): State<Authorizer>,
    request: Request,
    next: Next,
) -> Result<Response, ProblemResponse> {
    let (mut parts, body) = request.into_parts();
    let access = authorizer.access(&parts)?;
    if access != Access::Open && authorizer.state.has_failed_storage() {
        let error = Error::new(
            Code::Busy,
            "the server's database failed, and the server ends; try again later",
        );
        return Err(error.with_retry_after(limits::STORAGE_RETRY_AFTER).into());
    }
    let (caller, tenant) = match access {
        Access::Open => (None, None),
        Access::KeyOrLink(_)
            if !parts.headers.contains_key(header::AUTHORIZATION) && links::is_link(&parts.uri) =>
        {
            let Path(download) = Path::<Download>::from_request_parts(&mut parts, &authorizer.state).await?;
            let tenant = links::check(&authorizer.state.engine, &download, &parts.uri)?;
            (None, Some(tenant))
        }
        Access::Key(scopes) | Access::KeyOrLink(scopes) => {
            let caller = authorizer.caller(&parts).await?;
            require(&caller, scopes)?;
            let tenant = caller.tenant().clone();
            (Some(caller), Some(tenant))
        }
    };
    if let Some(tenant) = &tenant {
        check_expected_tenant(&parts.headers, tenant)?;
    }
    if parts.extensions.get::<OnReservedConnection>().is_some() && !may_use_reserve(access, caller.as_ref()) {
        let error = Error::new(
            Code::Busy,
            "too many open connections; close some, or try again in a moment",
        );
        return Err(error.with_retry_after(limits::RESERVED_IDLE_MAX).into());
    }
    let span = tracing::Span::current();
    if let Some(caller) = caller {
        span.record(field::KEY_ID, tracing::field::display(caller.key()));
        parts.extensions.insert(caller);
    }
    if let Some(tenant) = tenant {
        span.record(field::TENANT, tracing::field::display(&tenant));
        parts.extensions.insert(FileTenant(tenant));
    }
    Ok(next.run(Request::from_parts(parts, body)).await)
}

fn check_expected_tenant(headers: &HeaderMap, tenant: &Tenant) -> Result<(), Error> {
    let mut expected = headers.get_all(EXPECTED_TENANT).iter();
    expected.try_for_each(|expected| require_tenant(tenant, &String::from_utf8_lossy(expected.as_bytes())))
}

/// Health checks and administrators get an answer when all usual connections are taken.
fn may_use_reserve(access: Access, caller: Option<&Caller>) -> bool {
    match access {
        Access::Open => true,
        Access::Key(_) | Access::KeyOrLink(_) => caller.is_some_and(|caller| caller.may(Scope::Admin)),
    }
}

impl Authorizer {
    /// The entry of the route in the access matrix. The router also passes other methods of a known path.
    fn access(&self, parts: &Parts) -> Result<Access, ProblemResponse> {
        let method = match &parts.method {
            // Answered by the handler for GET.
            &Method::HEAD => &Method::GET,
            method => method,
        };
        let path = parts
            .extensions
            .get::<MatchedPath>()
            .map_or("", MatchedPath::as_str);
        self.matrix.access(method, path).ok_or_else(|| {
            let message = "method not allowed for this path; see the `Allow` header";
            let allow =
                HeaderValue::from_str(&self.matrix.allow(path)).unwrap_or(HeaderValue::from_static(""));
            ProblemResponse::from(Error::new(Code::MethodNotAllowed, message))
                .with_header(header::ALLOW, allow)
        })
    }

    /// Authenticates the caller. Counts invalid keys and sessions by source address.
    async fn caller(&self, parts: &Parts) -> Result<Caller, Error> {
        let engine = &self.state.engine;
        let source = session::request_source(parts);
        let checked = match session::presented(&self.state, parts)? {
            Credentials::Key(key) => engine.keys().authenticate(key).await,
            Credentials::Session(presented) => engine.sessions().authenticate(&presented).await,
            Credentials::Malformed => Err(unauthenticated()),
        };
        checked
            .map_err(|error| match error.code() {
                Code::Unauthenticated => self.state.count_wrong_key(source.address, error),
                _ => error,
            })
            .map(|caller| caller.from_source(source))
    }
}

impl FromRequestParts<Arc<ApiState>> for Call {
    type Rejection = ProblemResponse;

    async fn from_request_parts(parts: &mut Parts, state: &Arc<ApiState>) -> Result<Self, ProblemResponse> {
        Ok(Self::of(state, &parts.extensions)?)
    }
}

impl FromRequestParts<Arc<ApiState>> for FileTenant {
    type Rejection = ProblemResponse;

    async fn from_request_parts(parts: &mut Parts, _state: &Arc<ApiState>) -> Result<Self, ProblemResponse> {
        let tenant = parts.extensions.get::<Self>().cloned();
        Ok(tenant.ok_or_else(unauthenticated)?)
    }
}
