//! What a request presents: an API key, or the cookie and the page token of a session.

use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, Method, header};

use super::cookie::SessionCookie;
use super::same_origin::{self, OriginRule};
use super::{ApiState, Dashboard, requested_host};
use crate::auth::{PresentedSession, RequestSource};
use crate::error::{Code, Error};
use crate::http::serve::Peer;

const PAGE_TOKEN: HeaderName = HeaderName::from_static("x-skillbox-page");
const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

#[derive(Debug)]
pub(crate) enum Credentials<'a> {
    Key(&'a str),
    Session(PresentedSession),
    /// Something else, or a token that no session can have.
    Malformed,
}

/// The client, or the proxy in front of the server.
pub(crate) fn request_source(parts: &Parts) -> RequestSource {
    let peer = parts.extensions.get::<Peer>();
    let id = parts.headers.get(REQUEST_ID).and_then(|id| id.to_str().ok());
    RequestSource {
        address: peer.map(|Peer(address)| address.ip().to_canonical()),
        request_id: id.map(str::to_owned),
    }
}

/// Exactly one kind of credentials. A cookie without its page token counts for nothing: pages on other ports of this host
/// make browsers send it, too (W-05).
pub(crate) fn presented<'a>(state: &ApiState, parts: &'a Parts) -> Result<Credentials<'a>, Error> {
    let headers = &parts.headers;
    let host = requested_host(parts)?;
    let cookie = SessionCookie::new(state.server_url(), host);
    if headers.contains_key(header::AUTHORIZATION) {
        if headers.contains_key(PAGE_TOKEN) || cookie.is_sent(headers) {
            return Err(Error::invalid(
                "Authorization: sent together with the cookie or page token of a session; send one of them",
            ));
        }
        return bearer(headers).map(|key| key.map_or(Credentials::Malformed, Credentials::Key));
    }
    let mut pages = headers.get_all(PAGE_TOKEN).iter();
    let (Dashboard::Served, Some(cookie), Some(page), None) =
        (state.dashboard, cookie.find(headers), pages.next(), pages.next())
    else {
        return Err(unauthenticated());
    };
    let rule = match parts.method {
        Method::GET | Method::HEAD => OriginRule::IfSent,
        _ => OriginRule::Required,
    };
    same_origin::check(headers, state.server_url(), host, rule)?;
    let page = page.to_str().ok().and_then(|page| page.parse().ok());
    Ok(match (cookie.parse(), page) {
        (Ok(cookie), Some(page)) => Credentials::Session(PresentedSession { cookie, page }),
        _ => Credentials::Malformed,
    })
}

/// The bearer token: `None` for another header value, an error for no or several headers (T-06).
fn bearer(headers: &HeaderMap) -> Result<Option<&str>, Error> {
    let mut given = headers.get_all(header::AUTHORIZATION).iter();
    let (Some(only), None) = (given.next(), given.next()) else {
        return Err(unauthenticated());
    };
    let Some((scheme, token)) = only.to_str().ok().and_then(|text| text.split_once(' ')) else {
        return Ok(None);
    };
    // RFC 9110: schemes are case-insensitive, and several spaces are allowed.
    let token = token.trim_start_matches(' ');
    Ok(scheme.eq_ignore_ascii_case("bearer").then_some(token))
}

pub(crate) fn unauthenticated() -> Error {
    Error::new(
        Code::Unauthenticated,
        "send exactly one header `Authorization: Bearer skb_…` with an API key",
    )
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    fn token(values: &[&str]) -> Option<Option<String>> {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(header::AUTHORIZATION, HeaderValue::from_str(value).unwrap());
        }
        bearer(&headers).ok().map(|token| token.map(str::to_owned))
    }

    /// T-06.
    #[test]
    fn reads_a_key_from_one_bearer_header() {
        let key = Some(Some("skb_x".to_owned()));
        assert_eq!(token(&["Bearer skb_x"]), key);
        assert_eq!(token(&["bearer  skb_x"]), key);
        assert_eq!(token(&["Basic skb_x"]), Some(None));
        assert_eq!(token(&["skb_x"]), Some(None));
        assert_eq!(token(&[""]), Some(None));
        assert_eq!(token(&[]), None);
        assert_eq!(token(&["Bearer skb_x", "Bearer skb_x"]), None);
    }
}
