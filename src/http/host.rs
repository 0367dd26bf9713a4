//! Checks `Host`: a web page that points its own name at this machine must not reach the server (W-06).

use std::collections::BTreeSet;
use std::net::Ipv4Addr;

use axum::http::request::Parts;
use axum::http::uri::Authority;
use axum::http::{Uri, header};

use crate::error::{Code, Error};

/// Accepted host names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Hosts {
    names: BTreeSet<String>,
    /// For servers behind a proxy or a probe that changes the name.
    any: bool,
}

impl Hosts {
    /// Loopback names, the host of `server_url`, and `allowed` (`*` stands for every name).
    pub(crate) fn new(server_url: Option<&str>, allowed: &[String]) -> Self {
        let own = server_url
            .and_then(|url| url.parse::<Uri>().ok())
            .and_then(|url| url.host().map(str::to_owned));
        let names = allowed
            .iter()
            .cloned()
            .chain(own)
            .map(|name| name.to_ascii_lowercase())
            .collect();
        Self {
            names,
            any: allowed.iter().any(|name| name == "*"),
        }
    }

    /// The authority of the request, if it is accepted.
    pub(crate) fn check(&self, request: &Parts) -> Result<Authority, Error> {
        let authority = authority(request)?;
        let name = authority.host().to_ascii_lowercase();
        if self.any || is_loopback(&name) || self.names.contains(&name) {
            return Ok(authority);
        }
        Err(Error::new(
            Code::Misdirected,
            "Host: unknown name; set `server_url` or add the name to `allowed_hosts` (SKILLBOX_ALLOWED_HOSTS)",
        ))
    }
}

pub(crate) fn is_loopback(name: &str) -> bool {
    name == "localhost" || name == "[::1]" || name.parse::<Ipv4Addr>().is_ok_and(|ip| ip.is_loopback())
}

/// Exactly one authority: of the `Host` header, of the request target, or of both if they are equal.
fn authority(request: &Parts) -> Result<Authority, Error> {
    let mut headers = request.headers.get_all(header::HOST).iter();
    let (first, second) = (headers.next(), headers.next());
    if second.is_some() {
        return Err(Error::invalid("Host: sent twice; send one"));
    }
    let named = match first {
        Some(value) => Some(parse(value.as_bytes())?),
        None => None,
    };
    match (named, request.uri.authority().cloned()) {
        (Some(named), Some(target)) if named != target => Err(Error::invalid(
            "Host: differs from the host of the request target; send the same",
        )),
        (Some(host), _) | (None, Some(host)) if !host.as_str().contains('@') => Ok(host),
        _ => Err(Error::invalid(
            "Host: missing or with user information; send one name and a port",
        )),
    }
}

fn parse(value: &[u8]) -> Result<Authority, Error> {
    Authority::try_from(value).map_err(|_| Error::invalid("Host: not a host name; send a name and a port"))
}

#[cfg(test)]
mod tests {
    use axum::http::Request;

    use super::*;

    fn checked(hosts: &Hosts, target: &str, headers: &[&str]) -> Result<(), Code> {
        let mut request = Request::builder().uri(target);
        for host in headers {
            request = request.header(header::HOST, *host);
        }
        let (parts, ()) = request.body(()).unwrap().into_parts();
        hosts.check(&parts).map(drop).map_err(|error| error.code())
    }

    /// W-06.
    #[test]
    fn accepts_only_configured_host_names() {
        let hosts = Hosts::new(
            Some("https://Skillbox.example:8443/x"),
            &["box.internal".to_owned()],
        );
        for own in [
            "localhost",
            "LOCALHOST:8080",
            "127.0.0.1:1",
            "127.8.8.8",
            "[::1]:8080",
            "skillbox.example",
            "Box.Internal:80",
        ] {
            assert_eq!(checked(&hosts, "/", &[own]), Ok(()), "{own}");
        }
        for foreign in [
            "evil.test",
            "localhost.evil",
            "localhost.",
            "127.0.0.1.evil.test",
            "10.0.0.1",
            "0.0.0.0",
            "[::]",
            "[::ffff:127.0.0.1]",
            "2130706433",
            "skillbox.example.evil",
        ] {
            assert_eq!(
                checked(&hosts, "/", &[foreign]),
                Err(Code::Misdirected),
                "{foreign}"
            );
        }
    }

    /// two hosts, none, userinfo, and an absolute-form target that contradicts the header.
    #[test]
    fn rejects_an_ambiguous_host() {
        let hosts = Hosts::new(None, &[]);
        let invalid = Err(Code::Invalid);
        assert_eq!(checked(&hosts, "/", &["localhost", "localhost"]), invalid);
        assert_eq!(checked(&hosts, "/", &[]), invalid);
        assert_eq!(checked(&hosts, "/", &["x@localhost"]), invalid);
        assert_eq!(checked(&hosts, "/", &["local host"]), invalid);
        assert_eq!(checked(&hosts, "/", &[""]), invalid);
        assert_eq!(
            checked(&hosts, "http://evil.test/healthz", &["localhost"]),
            invalid
        );
        assert_eq!(
            checked(&hosts, "http://evil.test/healthz", &[]),
            Err(Code::Misdirected)
        );
        assert_eq!(
            checked(&hosts, "http://localhost/healthz", &["localhost"]),
            Ok(())
        );
    }

    #[test]
    fn accepts_every_host_with_a_wildcard() {
        let hosts = Hosts::new(None, &["*".to_owned()]);
        assert_eq!(checked(&hosts, "/", &["10.1.2.3:8080"]), Ok(()));
    }
}
