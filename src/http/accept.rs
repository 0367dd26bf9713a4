//! Content negotiation by `Accept`.

use axum::http::{HeaderMap, header};

/// The first media type of `Accept` that is offered, or a range that matches any.
pub(crate) fn preferred<'a>(headers: &HeaderMap, offered: &[&'a str]) -> Option<&'a str> {
    headers
        .get_all(header::ACCEPT)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|list| list.split(','))
        .filter_map(|range| range.split(';').next())
        .map(str::trim)
        .find_map(|range| {
            let same = |media: &&&str| media.eq_ignore_ascii_case(range);
            offered.iter().find(same).copied()
        })
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    #[test]
    fn selects_the_first_offered_media_type() {
        let offered = ["application/json", "text/plain", "*/*"];
        for (accept, expected) in [
            ("text/plain, application/json", Some("text/plain")),
            ("text/html, Application/JSON;q=0.9", Some("application/json")),
            ("*/*, application/json", Some("*/*")),
            ("text/html", None),
            ("", None),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(header::ACCEPT, HeaderValue::from_static(accept));
            assert_eq!(preferred(&headers, &offered), expected, "{accept}");
        }
        assert_eq!(preferred(&HeaderMap::new(), &offered), None);
    }
}
