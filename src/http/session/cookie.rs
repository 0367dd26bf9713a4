//! The cookie of a session. Its name has the port, since browsers send a cookie to every port of a host.

use axum::http::uri::Authority;
use axum::http::{HeaderMap, header};

use crate::auth::SessionToken;
use crate::limits;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SessionCookie {
    name: String,
    secure: bool,
}

impl SessionCookie {
    /// The cookie of the server that the client knows as `host`. With TLS in front of the server, browsers accept it from
    /// this very host over TLS only (`__Host-`).
    pub(crate) fn new(server_url: Option<&str>, host: &Authority) -> Self {
        let secure = server_url.is_some_and(|url| url.starts_with("https://"));
        let default_port = if secure { 443 } else { 80 };
        let port = host.port_u16().unwrap_or(default_port);
        let prefix = if secure { "__Host-" } else { "" };
        Self {
            name: format!("{prefix}skillbox-{port}"),
            secure,
        }
    }

    /// The value that a request presents. `None` for several: a page on another port can add one.
    pub(crate) fn find<'a>(&self, headers: &'a HeaderMap) -> Option<&'a str> {
        let mut found = self.values(headers);
        match (found.next(), found.next()) {
            (Some(value), None) => Some(value),
            _ => None,
        }
    }

    pub(crate) fn is_sent(&self, headers: &HeaderMap) -> bool {
        self.values(headers).next().is_some()
    }

    fn values<'a>(&self, headers: &'a HeaderMap) -> impl Iterator<Item = &'a str> {
        let lines = headers.get_all(header::COOKIE).iter();
        lines
            .filter_map(|line| line.to_str().ok())
            .flat_map(|line| line.split(';'))
            .filter_map(|pair| pair.trim().split_once('='))
            .filter(|(name, _)| *name == self.name)
            .map(|(_, value)| value)
    }

    /// `Set-Cookie` for a new session.
    pub(crate) fn set(&self, token: &SessionToken) -> String {
        self.text(token.reveal(), limits::SESSION_LIFE.as_secs())
    }

    /// `Set-Cookie` that removes it.
    pub(crate) fn remove(&self) -> String {
        self.text("", 0)
    }

    fn text(&self, value: &str, max_age: u64) -> String {
        let secure = if self.secure { "; Secure" } else { "" };
        format!(
            "{}={value}; Path=/; Max-Age={max_age}; HttpOnly; SameSite=Strict{secure}",
            self.name
        )
    }
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    fn name(server_url: Option<&str>, host: &str) -> String {
        SessionCookie::new(server_url, &host.parse().unwrap()).name
    }

    /// W-09.
    #[test]
    fn cookie_is_named_by_port_and_bound_to_host_with_tls() {
        assert_eq!(name(None, "localhost:8080"), "skillbox-8080");
        assert_eq!(name(None, "localhost"), "skillbox-80");
        assert_eq!(name(Some("http://box:8080"), "box:8080"), "skillbox-8080");
        assert_eq!(
            name(Some("https://box.example"), "box.example"),
            "__Host-skillbox-443"
        );
        assert_eq!(
            name(Some("https://box.example:8443"), "box.example:8443"),
            "__Host-skillbox-8443"
        );
    }

    #[test]
    fn finds_only_single_cookie_of_this_name() {
        let cookie = SessionCookie::new(None, &"localhost:8080".parse().unwrap());
        for (lines, expected) in [
            (&["skillbox-8080=a"][..], Some("a")),
            (&["x=1; skillbox-8080=a;y"], Some("a")),
            (&["x=1", "skillbox-8080=a"], Some("a")),
            (&["skillbox-8080=a; skillbox-8080=a"], None),
            (&["skillbox-8080=a", "skillbox-8080=b"], None),
            (&["skillbox-80=a; Skillbox-8080=a; xskillbox-8080=a"], None),
            (&["skillbox-8080"], None),
            (&[], None),
        ] {
            let mut headers = HeaderMap::new();
            for line in lines {
                headers.append(header::COOKIE, HeaderValue::from_str(line).unwrap());
            }
            assert_eq!(cookie.find(&headers), expected, "{lines:?}");
        }
    }
}
