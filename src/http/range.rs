//! Byte ranges of RFC 9110, sections 13 and 14. Requests for several ranges receive the whole file.

use std::ops::Range;

use axum::http::{HeaderMap, HeaderName, header};

#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum ByteRange {
    /// The whole file.
    Whole,
    Part(Range<u64>),
    /// Beyond the end.
    Beyond,
}

/// The range that `headers` request of a file with this size and strong entity tag.
pub(crate) fn requested_range(headers: &HeaderMap, size: u64, tag: &str) -> ByteRange {
    let still_valid = text(headers, &header::IF_RANGE).is_none_or(|condition| condition == tag);
    match text(headers, &header::RANGE) {
        Some(range) if still_valid => parse(range, size),
        _ => ByteRange::Whole,
    }
}

/// Whether the client has this content. Weak and strong tags are equal here.
pub(crate) fn is_known(headers: &HeaderMap, tag: &str) -> bool {
    fn opaque(tag: &str) -> &str {
        tag.strip_prefix("W/").unwrap_or(tag)
    }
    headers
        .get_all(header::IF_NONE_MATCH)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|list| list.split(','))
        .map(str::trim)
        .any(|known| known == "*" || opaque(known) == opaque(tag))
}

/// An invalid range is ignored.
fn parse(text: &str, size: u64) -> ByteRange {
    let Some((first, last)) = text
        .strip_prefix("bytes=")
        .and_then(|range| range.split_once('-'))
    else {
        return ByteRange::Whole;
    };
    let number = |digits: &str| {
        let decimal = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
        // Numbers with more digits are beyond any file.
        decimal.then(|| digits.parse().unwrap_or(u64::MAX))
    };
    let range = match (number(first.trim()), number(last.trim())) {
        (Some(first), Some(last)) if first <= last => first..last.saturating_add(1).min(size),
        (Some(first), None) if last.trim().is_empty() => first..size,
        (None, Some(suffix)) if first.trim().is_empty() => size.saturating_sub(suffix)..size,
        _ => return ByteRange::Whole,
    };
    if range.is_empty() {
        ByteRange::Beyond
    } else {
        ByteRange::Part(range)
    }
}

fn text<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    const TAG: &str = "\"0123\"";

    fn headers(pairs: &[(HeaderName, &str)]) -> HeaderMap {
        pairs
            .iter()
            .map(|(name, value)| (name.clone(), HeaderValue::from_str(value).unwrap()))
            .collect()
    }

    fn requested(range: &str) -> ByteRange {
        requested_range(&headers(&[(header::RANGE, range)]), 10, TAG)
    }

    /// O-15.
    #[test]
    fn clamps_a_range_to_the_file() {
        assert_eq!(requested("bytes=0-0"), ByteRange::Part(0..1));
        assert_eq!(requested("bytes=2-5"), ByteRange::Part(2..6));
        assert_eq!(requested("bytes=2-"), ByteRange::Part(2..10));
        assert_eq!(requested("bytes=-3"), ByteRange::Part(7..10));
        assert_eq!(requested("bytes=-300"), ByteRange::Part(0..10));
        assert_eq!(requested("bytes=5-18446744073709551615"), ByteRange::Part(5..10));
        assert_eq!(
            requested("bytes=0-99999999999999999999999999"),
            ByteRange::Part(0..10)
        );
    }

    /// O-15.
    #[test]
    fn rejects_a_range_beyond_the_end() {
        for range in [
            "bytes=10-",
            "bytes=10-20",
            "bytes=-0",
            "bytes=99999999999999999999999999-",
        ] {
            assert_eq!(requested(range), ByteRange::Beyond, "{range}");
        }
        let empty = requested_range(&headers(&[(header::RANGE, "bytes=0-")]), 0, TAG);
        assert_eq!(empty, ByteRange::Beyond);
    }

    #[test]
    fn ignores_an_invalid_range() {
        for range in [
            "bytes=5-2",
            "bytes=0-1,3-4",
            "bytes=-",
            "bytes=",
            "bytes=a-b",
            "bytes=+1-2",
            "bytes=--1",
            "lines=0-1",
            "0-1",
            "",
        ] {
            assert_eq!(requested(range), ByteRange::Whole, "{range}");
        }
    }

    #[test]
    fn returns_the_whole_file_if_if_range_differs() {
        let requested = |condition| {
            let headers = headers(&[(header::RANGE, "bytes=0-1"), (header::IF_RANGE, condition)]);
            requested_range(&headers, 10, TAG)
        };
        assert_eq!(requested(TAG), ByteRange::Part(0..2));
        assert_eq!(requested("W/\"0123\""), ByteRange::Whole);
        assert_eq!(requested("\"other\""), ByteRange::Whole);
        assert_eq!(requested("Wed, 21 Oct 2026 07:28:00 GMT"), ByteRange::Whole);
    }

    /// O-15.
    #[test]
    fn matches_if_none_match_tags() {
        let known = |tags| is_known(&headers(&[(header::IF_NONE_MATCH, tags)]), TAG);
        for tags in ["\"0123\"", "W/\"0123\"", "\"x\", \"0123\"", "*"] {
            assert!(known(tags), "{tags}");
        }
        for tags in ["\"012\"", "0123", ""] {
            assert!(!known(tags), "{tags}");
        }
    }
}
