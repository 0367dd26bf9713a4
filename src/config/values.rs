//! Parses values of settings. Each error says what to write instead.

use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use secrecy::SecretString;

use crate::error::quoted;
use crate::limits;
use crate::skill::{parse_bytes, parse_span as span};
use crate::telemetry;

/// A whole number within limits.
pub(super) fn number<T>(text: &str, from: T, to: T) -> Result<T, String>
where
    T: std::str::FromStr + PartialOrd + std::fmt::Display,
{
    let number = text
        .parse::<T>()
        .ok()
        .filter(|number| *number >= from && *number <= to);
    number.ok_or_else(|| format!("{} is not a whole number from {from} to {to}", quoted(text)))
}

pub(super) fn address(text: &str) -> Result<IpAddr, String> {
    match text {
        "localhost" => Ok(IpAddr::from([127, 0, 0, 1])),
        _ => text.parse().map_err(|_| {
            format!(
                "{} is not an IP address such as 127.0.0.1 or 0.0.0.0",
                quoted(text)
            )
        }),
    }
}

pub(super) fn socket(text: &str) -> Result<SocketAddr, String> {
    text.parse().map_err(|_| {
        format!(
            "{} is not an address and port such as 127.0.0.1:9464",
            quoted(text)
        )
    })
}

/// A duration with a unit. A bare number could mean seconds or days, which matters for deletion.
pub(super) fn span_with_unit(text: &str) -> Result<Duration, String> {
    if text.trim_end().ends_with(|c: char| c.is_ascii_digit()) {
        return Err(format!("{} has no unit; write for example 30d", quoted(text)));
    }
    span(text)
}

/// An API key as a header value; a trailing line break from a file is removed.
pub(super) fn key(text: &str) -> Result<SecretString, String> {
    let key = text.trim();
    if key.is_empty() || !key.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err("is not an API key: it contains an invalid character".to_owned());
    }
    Ok(key.into())
}

/// A level, or a filter of `target=level`. A misspelt level would be read as a target, and nothing would be logged.
pub(super) fn log_filter(text: &str) -> Result<String, String> {
    let levels = ["off", "error", "warn", "info", "debug", "trace"];
    let known = |part: &str| part.contains('=') || levels.contains(&part.to_ascii_lowercase().as_str());
    match text.split(',').map(str::trim).find(|part| !known(part)) {
        Some(part) => Err(format!(
            "{} is not a level; use error, warn, info, debug, or a filter such as warn,skillbox=debug",
            quoted(part)
        )),
        None => telemetry::check(text).map(|()| text.to_owned()),
    }
}

/// A duration within limits.
pub(super) fn span_within(text: &str, from: Duration, to: Duration) -> Result<Duration, String> {
    let span = span(text)?;
    if span < from || span > to {
        return Err(format!(
            "must be from {} s to {} s",
            from.as_secs_f64(),
            to.as_secs_f64()
        ));
    }
    Ok(span)
}

/// `off`, or the result of `parse`.
pub(super) fn or_off<T>(
    text: &str,
    parse: impl FnOnce(&str) -> Result<T, String>,
) -> Result<Option<T>, String> {
    if text == "off" {
        Ok(None)
    } else {
        parse(text)
            .map(Some)
            .map_err(|problem| format!("{problem}, or off"))
    }
}

/// Size up to which a request is kept.
pub(super) fn kept_request(text: &str) -> Result<u64, String> {
    let max = limits::KEEP_REQUEST_BYTES_MAX;
    let bytes = parse_bytes(text, 1).ok().filter(|bytes| *bytes <= max);
    bytes.ok_or_else(|| {
        let max = max / limits::MIB;
        format!("{} is not a size such as 256Ki, at most {max}Mi", quoted(text))
    })
}

/// An absolute path.
pub(super) fn absolute(text: &str) -> Result<PathBuf, String> {
    std::path::absolute(text).map_err(|error| format!("{} is not a path ({error})", quoted(text)))
}

/// The database file of a DSN: `sqlite:///var/lib/x.db`, `sqlite://x.db`, or a plain path. Errors do not repeat the
/// text, which may contain a password.
pub(super) fn sqlite_file(dsn: &str) -> Result<PathBuf, String> {
    let scheme = dsn
        .split_once("://")
        .map(|(scheme, rest)| (scheme.to_ascii_lowercase(), rest));
    let path = match scheme {
        None => dsn.strip_prefix("sqlite:").unwrap_or(dsn),
        Some((scheme, path)) if scheme == "sqlite" || scheme == "file" => path,
        Some((scheme, _)) if scheme == "postgres" || scheme == "postgresql" => {
            return Err(
                "PostgreSQL needs a build with the feature `postgres`; use sqlite:///path or remove the setting"
                    .to_owned(),
            );
        }
        Some((scheme, _)) => {
            return Err(format!(
                "unknown database scheme {}; use sqlite:///path",
                quoted(&scheme)
            ));
        }
    };
    if path.is_empty() || path.starts_with(':') || path.contains('?') {
        return Err("must name a file, as in sqlite:///var/lib/skillbox/skillbox.db".to_owned());
    }
    absolute(path)
}

/// Base URL of a server: scheme, host, optional port and path.
pub(super) fn server_url(text: &str) -> Result<String, String> {
    let wrong = || {
        "must look like http://127.0.0.1:8080 or https://skillbox.example, without user, query or fragment"
            .to_owned()
    };
    let (scheme, rest) = text.split_once("://").ok_or_else(wrong)?;
    let authority = rest.split('/').next().unwrap_or_default();
    let legal = |c: char| c.is_ascii_alphanumeric() || "-._~:/[]%".contains(c);
    if !matches!(scheme, "http" | "https")
        || authority.is_empty()
        || authority.starts_with(':')
        || !rest.chars().all(legal)
    {
        return Err(wrong());
    }
    Ok(text.trim_end_matches('/').to_owned())
}

/// Address of a container engine.
pub(super) fn engine_host(text: &str) -> Result<String, String> {
    let known = [LOCAL_ENGINE, "tcp://", "http://"]
        .iter()
        .any(|scheme| text.strip_prefix(scheme).is_some_and(|rest| !rest.is_empty()));
    if known {
        word(text)
    } else {
        let local = if cfg!(windows) {
            "npipe:////./pipe/docker_engine"
        } else {
            "unix:///run/docker.sock"
        };
        Err(format!("must look like {local} or tcp://127.0.0.1:2375"))
    }
}

/// Socket of an engine on this host.
const LOCAL_ENGINE: &str = if cfg!(windows) { "npipe://" } else { "unix://" };

/// An existing file, by absolute path.
pub(super) fn existing_file(text: &str) -> Result<PathBuf, String> {
    let path = absolute(text)?;
    if Path::is_file(&path) {
        Ok(path)
    } else {
        Err(format!("no such file: {}", quoted(text)))
    }
}

/// A visible text of limited length.
pub(super) fn word(text: &str) -> Result<String, String> {
    let plain = !text.is_empty()
        && text.len() <= limits::IMAGE_CHARS_MAX
        && text.chars().all(|c| c.is_ascii_graphic());
    if plain {
        Ok(text.to_owned())
    } else {
        Err("must be 1 to 255 visible ASCII characters without spaces".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rejects_unsupported_databases_with_reason() {
        for (dsn, path) in [
            ("sqlite:///a/b.db", "/a/b.db"),
            ("/a/b.db", "/a/b.db"),
            ("sqlite:/a/b.db", "/a/b.db"),
            ("SQLITE:///a", "/a"),
        ] {
            assert_eq!(sqlite_file(dsn), Ok(PathBuf::from(path)), "{dsn}");
        }
        for dsn in [
            "postgres://u:geheim@h/db",
            "mysql://u:geheim@h",
            "sqlite://",
            ":memory:",
            "sqlite:///a?mode=ro",
        ] {
            let refused = sqlite_file(dsn).unwrap_err();
            assert!(!refused.contains("geheim"), "{refused}");
        }
        assert!(
            sqlite_file("postgres://h/db")
                .unwrap_err()
                .contains("feature `postgres`")
        );
    }

    #[test]
    fn rejects_server_urls_with_more_than_host_and_path() {
        for url in [
            "http://127.0.0.1:8080",
            "https://skillbox.example/",
            "http://[::1]:8080",
            "https://a.example/skillbox",
        ] {
            assert!(server_url(url).is_ok(), "{url}");
        }
        for url in [
            "127.0.0.1:8080",
            "ftp://a",
            "http://",
            "http://u:p@a",
            "http://a?b",
            "http://a#b",
            "http://a b",
            "http://:80",
            "http://a\n",
        ] {
            assert!(server_url(url).is_err(), "{url}");
        }
        assert_eq!(server_url("http://a/").as_deref(), Ok("http://a"));
    }

    #[test]
    fn requires_a_scheme_for_the_engine() {
        for host in [
            "unix:///run/docker.sock",
            "tcp://10.0.0.1:2375",
            "http://proxy:2375",
        ] {
            assert_eq!(engine_host(host).as_deref(), Ok(host));
        }
        for host in ["docker", "/run/docker.sock", "unix://", "ssh://host", "tcp://a b"] {
            assert!(engine_host(host).is_err(), "{host}");
        }
    }

    #[test]
    fn parses_positive_durations() {
        assert_eq!(span("30d"), Ok(Duration::from_hours(720)));
        assert_eq!(span("90"), Ok(Duration::from_secs(90)));
        assert_eq!(span("12h"), Ok(Duration::from_hours(12)));
        for text in ["", "d", "-1d", "forever", "0", "1y", "99999999999d"] {
            assert!(span(text).is_err(), "{text:?}");
        }
        assert_eq!(or_off("off", span), Ok(None));
        assert!(span_with_unit("30").unwrap_err().contains("30d"));
        assert_eq!(span_with_unit("30d"), span("30d"));
    }

    #[test]
    fn rejects_keys_that_no_header_can_carry() {
        use secrecy::ExposeSecret as _;
        assert_eq!(key("skb_x\r\n").unwrap().expose_secret(), "skb_x");
        for text in ["", " ", "skb_é", "skb_a b"] {
            assert!(key(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn rejects_unknown_log_level() {
        for text in [
            "info",
            "WARN",
            "off",
            "warn,skillbox=debug",
            "error,skillbox=trace",
        ] {
            assert!(log_filter(text).is_ok(), "{text}");
        }
        for text in ["loud", "inof", "warn,skillbox", "foo=bar=baz", ""] {
            assert!(log_filter(text).is_err(), "{text}");
        }
    }

    #[test]
    fn rejects_numbers_out_of_range() {
        assert_eq!(number("8080", 0_u16, u16::MAX), Ok(8080));
        for text in ["", "x", "65536", "-1", "1.0", "0x10"] {
            assert!(number(text, 0_u16, u16::MAX).is_err(), "{text:?}");
        }
    }
}
