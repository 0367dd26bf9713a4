//! The HTTP proxy of the server's network, for package installation only.

use std::io;

use base64::Engine as _;
use hyper::client::conn::http1;
use hyper::header::{HOST, HeaderValue, PROXY_AUTHORIZATION};
use hyper::upgrade::Upgraded;
use hyper::{Method, Request, StatusCode};
use hyper_util::rt::TokioIo;
use secrecy::{ExposeSecret as _, SecretString};
use tokio::net::TcpStream;

use crate::egress::package_proxy::NoBody;

/// A proxy that supports `CONNECT`. It resolves names itself, so its operator controls what they resolve to.
#[derive(Clone, Debug)]
pub struct Upstream {
    host: String,
    port: u16,
    /// `Basic …`
    authorization: Option<SecretString>,
    /// Names and suffixes of hosts that are dialled directly.
    except: Vec<String>,
}

#[derive(Debug)]
pub(super) enum Connected {
    Directly(TcpStream),
    Through(TokioIo<Upgraded>),
}

impl Upstream {
    /// Parses the values of `HTTPS_PROXY` and `NO_PROXY`; `None` if the first is not a plain HTTP proxy.
    #[must_use]
    pub fn parse(proxy: &str, no_proxy: &str) -> Option<Self> {
        let rest = proxy.strip_prefix("http://").unwrap_or(proxy);
        let rest = rest.trim_end_matches('/');
        if rest.is_empty() || rest.contains("://") || rest.contains('/') {
            return None;
        }
        let (user, place) = match rest.rsplit_once('@') {
            Some((user, place)) => (Some(user), place),
            None => (None, rest),
        };
        let (host, port) = match place.rsplit_once(':') {
            Some((host, port)) if !port.ends_with(']') => (host, port.parse().ok()?),
            _ => (place, 80),
        };
        let basic = |user: &str| {
            let plain = percent_encoding::percent_decode_str(user).collect::<Vec<u8>>();
            format!(
                "Basic {}",
                base64::engine::general_purpose::STANDARD.encode(plain)
            )
            .into()
        };
        let except = no_proxy.split(',').map(str::trim).filter(|name| !name.is_empty());
        Some(Self {
            host: host.trim_matches(['[', ']']).to_owned(),
            port,
            authorization: user.map(basic),
            except: except
                .map(|name| name.trim_start_matches('.').to_ascii_lowercase())
                .collect(),
        })
    }

    pub(super) fn serves(&self, name: &str) -> bool {
        !self.except.iter().any(|end| {
            end == "*"
                || name
                    .strip_suffix(end.as_str())
                    .is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
        })
    }

    pub(super) async fn connect(&self, name: &str, port: u16) -> io::Result<Connected> {
        let stream = TcpStream::connect((self.host.as_str(), self.port)).await?;
        let (mut sender, connection) = http1::handshake(TokioIo::new(stream))
            .await
            .map_err(io::Error::other)?;
        tokio::spawn(connection.with_upgrades());
        let name = if name.contains(':') {
            format!("[{name}]")
        } else {
            name.to_owned()
        };
        let target = format!("{name}:{port}");
        let mut request = Request::builder()
            .method(Method::CONNECT)
            .uri(&target)
            .header(HOST, &target);
        if let Some(authorization) = &self.authorization {
            let mut value = HeaderValue::from_str(authorization.expose_secret()).map_err(io::Error::other)?;
            value.set_sensitive(true);
            request = request.header(PROXY_AUTHORIZATION, value);
        }
        let request = request.body(NoBody::new()).map_err(io::Error::other)?;
        let response = sender.send_request(request).await.map_err(io::Error::other)?;
        if response.status() != StatusCode::OK {
            return Err(io::Error::other(format!(
                "the proxy of this server answered {}",
                response.status()
            )));
        }
        let upgraded = hyper::upgrade::on(response).await.map_err(io::Error::other)?;
        Ok(Connected::Through(TokioIo::new(upgraded)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_proxy_variables_as_other_programs_do() {
        let upstream = Upstream::parse(
            "http://user:p%40ss@proxy.example:3128/",
            "localhost, .corp.example",
        )
        .unwrap();
        assert_eq!((upstream.host.as_str(), upstream.port), ("proxy.example", 3128));
        assert_eq!(
            upstream.authorization.as_ref().unwrap().expose_secret(),
            "Basic dXNlcjpwQHNz"
        );
        assert!(!format!("{upstream:?}").contains("dXNlcjpwQHNz"));
        assert!(upstream.serves("pypi.org") && upstream.serves("xcorp.example"));
        assert!(!upstream.serves("pypi.corp.example") && !upstream.serves("localhost"));
        assert_eq!(Upstream::parse("proxy.example", "").unwrap().port, 80);
        assert!(!Upstream::parse("proxy:1", "*").unwrap().serves("pypi.org"));
        for none in ["", "socks5://proxy:1080", "https://proxy", "http://a/b"] {
            assert!(Upstream::parse(none, "").is_none(), "{none}");
        }
    }
}
