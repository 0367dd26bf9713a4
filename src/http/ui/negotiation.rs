//! Which encoding and which type a client prefers (RFC 9110, section 12).

use axum::http::{HeaderMap, HeaderName, header};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Encoding {
    Brotli,
    Gzip,
}

impl Encoding {
    /// The name in `Content-Encoding`.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Brotli => "br",
            Self::Gzip => "gzip",
        }
    }
}

/// The smallest accepted encoding; `None` for the file as it is.
pub(crate) fn preferred_encoding(headers: &HeaderMap) -> Option<Encoding> {
    let accepted = Preferences::of(headers, &header::ACCEPT_ENCODING);
    let any = accepted.quality("*").unwrap_or(0);
    let plain = accepted.quality("identity").unwrap_or(0);
    [Encoding::Brotli, Encoding::Gzip]
        .into_iter()
        .map(|encoding| (encoding, accepted.quality(encoding.as_str()).unwrap_or(any)))
        .filter(|(_, quality)| *quality > 0 && *quality >= plain)
        .reduce(|best, other| if other.1 > best.1 { other } else { best })
        .map(|(encoding, _)| encoding)
}

/// Whether the client is a browser that opens a page: it names HTML, and JSON less or not at all.
pub(crate) fn prefers_html(headers: &HeaderMap) -> bool {
    let accepted = Preferences::of(headers, &header::ACCEPT);
    let html = accepted.quality("text/html").unwrap_or(0);
    html > accepted.quality("application/json").unwrap_or(0)
}

/// The values of a header with their quality in thousandths.
struct Preferences<'a>(Vec<(&'a str, u16)>);

impl<'a> Preferences<'a> {
    fn of(headers: &'a HeaderMap, name: &HeaderName) -> Self {
        let values = headers
            .get_all(name)
            .iter()
            .filter_map(|value| value.to_str().ok());
        Self(values.flat_map(|list| list.split(',')).map(preference).collect())
    }

    fn quality(&self, wanted: &str) -> Option<u16> {
        let found = self.0.iter().find(|(name, _)| name.eq_ignore_ascii_case(wanted));
        found.map(|(_, quality)| *quality)
    }
}

fn preference(text: &str) -> (&str, u16) {
    let mut parts = text.split(';').map(str::trim);
    let name = parts.next().unwrap_or_default();
    let quality = parts.find_map(|part| part.strip_prefix("q=").or_else(|| part.strip_prefix("Q=")));
    (name, quality.map_or(1000, thousandths))
}

/// 0 for what is no quality.
fn thousandths(text: &str) -> u16 {
    match text.split_once('.').unwrap_or((text, "")) {
        ("1", zeros) if zeros.bytes().all(|digit| digit == b'0') => 1000,
        ("0", digits) if digits.len() <= 3 => format!("{digits:0<3}").parse().unwrap_or(0),
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    fn headers(name: HeaderName, value: &str) -> HeaderMap {
        HeaderMap::from_iter([(name, HeaderValue::from_str(value).unwrap())])
    }

    #[test]
    fn chooses_the_smallest_accepted_encoding() {
        for (accepted, expected) in [
            ("gzip, deflate, br, zstd", Some(Encoding::Brotli)),
            ("gzip, deflate", Some(Encoding::Gzip)),
            ("br;q=0.5, gzip;q=0.8", Some(Encoding::Gzip)),
            ("br;q=0, gzip;q=0.001", Some(Encoding::Gzip)),
            ("*", Some(Encoding::Brotli)),
            ("*;q=0.1, br;q=0", Some(Encoding::Gzip)),
            ("BR", Some(Encoding::Brotli)),
            ("identity, br;q=0.5", None),
            ("br;q=wrong", None),
            ("zstd", None),
            ("", None),
        ] {
            let headers = headers(header::ACCEPT_ENCODING, accepted);
            assert_eq!(preferred_encoding(&headers), expected, "{accepted}");
        }
        assert_eq!(preferred_encoding(&HeaderMap::new()), None);
    }

    #[test]
    fn only_browsers_prefer_html() {
        for (accepted, expected) in [
            (
                "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8",
                true,
            ),
            ("text/html;q=0.9, application/json;q=0.8", true),
            ("application/json, text/html;q=0.9", false),
            ("application/json, text/html", false),
            ("text/html;q=0", false),
            ("*/*", false),
            ("", false),
        ] {
            let headers = headers(header::ACCEPT, accepted);
            assert_eq!(prefers_html(&headers), expected, "{accepted}");
        }
        assert!(!prefers_html(&HeaderMap::new()));
    }
}
