//! Checks that a browser's request comes from a page of this server (W-05, W-07).

use axum::http::uri::Authority;
use axum::http::{HeaderMap, HeaderName, Uri, header};

use crate::error::{Code, Error};
use crate::http::host;

const FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OriginRule {
    /// Of a request that changes something.
    Required,
    /// Browsers send none with some requests that read.
    IfSent,
}

/// Rejects a request of a page of another site, of another port of this host, or of an unknown page.
pub(crate) fn check(
    headers: &HeaderMap,
    server_url: Option<&str>,
    host: &Authority,
    rule: OriginRule,
) -> Result<(), Error> {
    let rejected = |message: &str| Error::new(Code::Forbidden, message);
    if headers
        .get_all(FETCH_SITE)
        .iter()
        .any(|site| site != "same-origin")
    {
        return Err(rejected(
            "Sec-Fetch-Site: only pages of this server may send this request",
        ));
    }
    let mut origins = headers.get_all(header::ORIGIN).iter();
    match (origins.next(), origins.next()) {
        (None, _) if rule == OriginRule::IfSent => Ok(()),
        (Some(origin), None)
            if origin
                .to_str()
                .is_ok_and(|origin| is_own(origin, server_url, host)) =>
        {
            Ok(())
        }
        (None, _) => Err(rejected(
            "Origin: missing; a session changes something only from a page of this server",
        )),
        (Some(_), _) => Err(rejected(
            "Origin: not that of this server; open the dashboard at its own address, and set `server_url` behind a proxy",
        )),
    }
}

/// Whether `origin` is that of `server_url`, or of `host` without TLS.
fn is_own(origin: &str, server_url: Option<&str>, host: &Authority) -> bool {
    let Some(origin) = canonical(origin) else {
        return false;
    };
    let public = server_url.and_then(canonical);
    // With TLS in front of it, only this machine reaches the server without.
    let has_tls = server_url.is_some_and(|url| url.starts_with("https://"));
    let plain = (!has_tls || host::is_loopback(&host.host().to_ascii_lowercase()))
        .then(|| canonical(&format!("http://{host}")))
        .flatten();
    [public, plain].iter().flatten().any(|own| *own == origin)
}

/// Scheme, host and port, without a path.
fn canonical(url: &str) -> Option<(String, String, u16)> {
    let url: Uri = url.parse().ok()?;
    let scheme = url.scheme_str()?.to_ascii_lowercase();
    let default_port = match scheme.as_str() {
        "http" => 80,
        "https" => 443,
        _ => return None,
    };
    let port = url.port_u16().unwrap_or(default_port);
    Some((scheme, url.host()?.to_ascii_lowercase(), port))
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    fn own(origin: &str, server_url: Option<&str>, host: &str) -> bool {
        is_own(origin, server_url, &host.parse().unwrap())
    }

    /// W-05: the same name with another scheme or port is another origin.
    #[test]
    fn only_own_scheme_host_and_port_are_own() {
        for origin in ["http://localhost:8080", "HTTP://LocalHost:8080"] {
            assert!(own(origin, None, "localhost:8080"), "{origin}");
        }
        for origin in [
            "http://localhost:9090",
            "http://localhost",
            "https://localhost:8080",
            "http://127.0.0.1:8080",
            "http://localhost.evil.test:8080",
            "http://evil.test",
            "file://localhost:8080",
            "localhost:8080",
            "null",
            "",
        ] {
            assert!(!own(origin, None, "localhost:8080"), "{origin}");
        }
        assert!(own("http://localhost", None, "localhost:80"));
        assert!(own("http://[::1]:8080", None, "[::1]:8080"));
    }

    #[test]
    fn behind_tls_only_public_address_and_loopback_are_own() {
        let url = Some("https://box.example/base");
        assert!(own("https://box.example", url, "box.example"));
        assert!(own("https://box.example:443", url, "127.0.0.1:8080"));
        assert!(own("http://127.0.0.1:8080", url, "127.0.0.1:8080"));
        for origin in [
            "http://box.example",
            "https://box.example:8443",
            "https://evil.test",
        ] {
            assert!(!own(origin, url, "box.example"), "{origin}");
        }
        assert!(!own("http://10.0.0.1:8080", url, "10.0.0.1:8080"));
    }

    /// W-05, W-07.
    #[test]
    fn browser_headers_of_other_sites_are_rejected() {
        let host: Authority = "localhost:8080".parse().unwrap();
        let check = |headers: &[(HeaderName, &str)], rule| {
            let mut map = HeaderMap::new();
            for (name, value) in headers {
                map.append(name.clone(), HeaderValue::from_str(value).unwrap());
            }
            check(&map, None, &host, rule).is_ok()
        };
        let own = (header::ORIGIN, "http://localhost:8080");
        let foreign = (header::ORIGIN, "http://localhost:9090");
        let site = |site| (FETCH_SITE, site);
        assert!(check(std::slice::from_ref(&own), OriginRule::Required));
        assert!(check(&[own.clone(), site("same-origin")], OriginRule::Required));
        assert!(check(&[], OriginRule::IfSent) && !check(&[], OriginRule::Required));
        for rule in [OriginRule::Required, OriginRule::IfSent] {
            assert!(!check(std::slice::from_ref(&foreign), rule));
            assert!(!check(&[own.clone(), foreign.clone()], rule));
            assert!(!check(&[own.clone(), own.clone()], rule));
            for other in ["same-site", "cross-site", "none", ""] {
                assert!(!check(&[own.clone(), site(other)], rule), "{other}");
            }
            assert!(!check(
                &[own.clone(), site("same-origin"), site("cross-site")],
                rule
            ));
        }
    }
}
