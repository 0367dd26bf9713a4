//! Callback URLs in a canonical form.

use std::fmt;
use std::str::FromStr;

use url::{Host, Url};

use crate::limits;

/// An HTTP or HTTPS URL without user and fragment, in a canonical spelling that every parser reads alike; IP
/// addresses have their usual form. [`Policy`](super::Policy) decides whether it may be reached.
///
/// It may contain a token of the receiver, so logs show only its host.
#[derive(Clone, PartialEq, Eq)]
pub struct CallbackUrl(Url);

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum InvalidCallback {
    #[error("must look like https://hooks.example/path")]
    Malformed,
    #[error("has more than {max} bytes; shorten it", max = limits::CALLBACK_URL_BYTES_MAX)]
    TooLong,
    /// Parsers disagree about user names.
    #[error("must hold no user name and no password; put a token into the path or the query")]
    User,
    /// A fragment is never sent.
    #[error("must hold no fragment (`#…`); it is never sent")]
    Fragment,
    /// A trailing dot, another spelling of the same host.
    #[error("must hold no dot at the end of its host; leave it out")]
    TrailingDot,
}

impl CallbackUrl {
    /// The stored and shown form.
    #[must_use]
    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }

    #[must_use]
    pub fn is_encrypted(&self) -> bool {
        self.0.scheme() == "https"
    }

    /// A name in lower case, or an IP address; IPv6 in brackets.
    #[must_use]
    pub fn host(&self) -> &str {
        self.0.host_str().unwrap_or_default()
    }

    pub(super) fn told_apart(&self) -> Host<&str> {
        self.0.host().unwrap_or(Host::Domain(""))
    }

    #[must_use]
    pub fn address(&self) -> Option<std::net::IpAddr> {
        match self.told_apart() {
            Host::Domain(_) => None,
            Host::Ipv4(address) => Some(address.into()),
            Host::Ipv6(address) => Some(address.into()),
        }
    }

    /// The explicit or default port.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.0.port_or_known_default().unwrap_or_default()
    }

    /// The header `Host`: the host, and the port unless it is the default.
    #[must_use]
    pub fn authority(&self) -> String {
        match self.0.port() {
            Some(port) => format!("{}:{port}", self.host()),
            None => self.host().to_owned(),
        }
    }

    #[must_use]
    pub fn target(&self) -> &str {
        &self.0[url::Position::BeforePath..url::Position::AfterQuery]
    }
}

impl FromStr for CallbackUrl {
    type Err = InvalidCallback;

    fn from_str(text: &str) -> Result<Self, InvalidCallback> {
        if text.len() > limits::CALLBACK_URL_BYTES_MAX {
            return Err(InvalidCallback::TooLong);
        }
        // Some parsers drop tabs and line breaks, and read backslashes as slashes.
        if text.contains(|c: char| c.is_whitespace() || c.is_control() || c == '\\') {
            return Err(InvalidCallback::Malformed);
        }
        let (scheme, rest) = text.split_once("://").ok_or(InvalidCallback::Malformed)?;
        let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
        let is_http = ["http", "https"]
            .iter()
            .any(|known| scheme.eq_ignore_ascii_case(known));
        if !is_http || authority.is_empty() {
            return Err(InvalidCallback::Malformed);
        }
        if authority.contains('@') {
            return Err(InvalidCallback::User);
        }
        let url = Url::parse(text).map_err(|_| InvalidCallback::Malformed)?;
        let host = url.host_str().unwrap_or_default();
        // Parsing may have made it longer.
        if url.as_str().len() > limits::CALLBACK_URL_BYTES_MAX {
            return Err(InvalidCallback::TooLong);
        }
        if url.fragment().is_some() {
            return Err(InvalidCallback::Fragment);
        }
        if !url.username().is_empty() || url.password().is_some() || host.is_empty() || url.port() == Some(0)
        {
            return Err(InvalidCallback::Malformed);
        }
        if host.ends_with('.') && !host.ends_with("..") {
            return Err(InvalidCallback::TrailingDot);
        }
        if host.split('.').any(str::is_empty) {
            return Err(InvalidCallback::Malformed);
        }
        Ok(Self(url))
    }
}

impl fmt::Display for CallbackUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Debug for CallbackUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CallbackUrl({}://{}/…)", self.0.scheme(), self.authority())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Result<CallbackUrl, InvalidCallback> {
        text.parse()
    }

    #[test]
    fn parses_addresses() {
        let url = parsed("HTTPS://Hooks.Example:8443/a/b?token=x%20y").unwrap();
        assert_eq!((url.host(), url.port()), ("hooks.example", 8443));
        assert_eq!(url.authority(), "hooks.example:8443");
        assert_eq!(url.target(), "/a/b?token=x%20y");
        assert!(url.is_encrypted() && url.address().is_none());
        assert_eq!(parsed(url.as_str()).unwrap(), url);
        let plain = parsed("http://hooks.example:80?x").unwrap();
        assert_eq!((plain.authority().as_str(), plain.port()), ("hooks.example", 80));
        assert_eq!(plain.target(), "/?x");
        let new = parsed("https://[2A00::1]:9/").unwrap();
        assert_eq!(
            (new.host(), new.authority().as_str()),
            ("[2a00::1]", "[2a00::1]:9")
        );
        assert_eq!(new.address(), "2a00::1".parse().ok());
    }

    #[test]
    fn debug_output_hides_the_token() {
        let url = parsed("https://hooks.example/s3cr3t?t=s3cr3t").unwrap();
        assert_eq!(format!("{url:?}"), "CallbackUrl(https://hooks.example/…)");
    }

    ///
    #[test]
    fn rejects_ambiguous_addresses() {
        use InvalidCallback::{Fragment, Malformed, TooLong, TrailingDot, User};
        let long = format!(
            "https://hooks.example/{}",
            "x".repeat(limits::CALLBACK_URL_BYTES_MAX)
        );
        let grows = format!(
            "https://hooks.example/{}",
            "ü".repeat(limits::CALLBACK_URL_BYTES_MAX / 3)
        );
        for (text, why) in [
            ("", Malformed),
            ("hooks.example", Malformed),
            ("//hooks.example", Malformed),
            ("file:///etc/passwd", Malformed),
            ("gopher://hooks.example/", Malformed),
            ("ftp://hooks.example/", Malformed),
            ("ws://hooks.example/", Malformed),
            ("javascript:alert(1)", Malformed),
            ("unix:///run/docker.sock", Malformed),
            ("https:hooks.example", Malformed),
            ("https:/hooks.example", Malformed),
            ("https:///hooks.example", Malformed),
            ("https://", Malformed),
            ("https://:443/", Malformed),
            ("https://hooks.example:0/", Malformed),
            ("https://hooks.example:65536/", Malformed),
            ("https://hooks.example\\@evil.example/", Malformed),
            ("https://hooks.example/ a", Malformed),
            ("https://hooks.example/\r\nHost: evil", Malformed),
            ("ht\ttps://hooks.example/", Malformed),
            (" https://hooks.example/", Malformed),
            ("https://a%00b/", Malformed),
            ("https://[::1/", Malformed),
            ("https://a..b/", Malformed),
            ("https://.a/", Malformed),
            ("https://a../", Malformed),
            ("https://999.1.1.1/", Malformed),
            ("https://1.2.3.4.5/", Malformed),
            ("https://[fe80::1%25eth0]/", Malformed),
            ("https://user@hooks.example/", User),
            ("https://user:pass@hooks.example/", User),
            ("https://@hooks.example/", User),
            ("https://hooks.example@evil.example/", User),
            ("https://hooks.example/#part", Fragment),
            ("https://hooks.example/#", Fragment),
            ("https://hooks.example./", TrailingDot),
            ("https://localhost./", TrailingDot),
            (&long, TooLong),
            (&grows, TooLong),
        ] {
            assert_eq!(parsed(text), Err(why), "{text:?}");
        }
        // After the host it is the receiver's own.
        assert!(parsed("https://hooks.example/@me?to=a@b").is_ok());
    }
}
