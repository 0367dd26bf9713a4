//! HTML and SVG of programs, without what makes a browser connect to other hosts although a content security policy forbids every fetch.
//!
//! Chromium connects for `<link rel=preconnect>` under any policy, and for the address of a frame before it refuses that (tried). A refresh navigates,
//! and a document in `srcdoc` could contain all of these.

/// Elements that a browser must not understand, in lower case. An entity of XML could contain one.
const ELEMENTS: [&[u8]; 6] = [b"link", b"iframe", b"frame", b"object", b"embed", b"!entity"];
/// Attributes that a browser must not understand, in lower case.
const ATTRIBUTES: [&[u8]; 2] = [b"srcdoc", b"http-equiv"];
/// Makes another name of each.
const PREFIX: &[u8] = b"x-";

/// The markup with other names for these elements and attributes.
pub(super) fn inert(markup: &[u8]) -> Vec<u8> {
    let mut safe = Vec::with_capacity(markup.len());
    let mut before = b' ';
    for (at, byte) in markup.iter().enumerate() {
        let rest = &markup[at..];
        if before == b'<' && begins_element(rest) {
            // `<!x-entity` is no entity.
            let after_mark = usize::from(*byte == b'!');
            safe.extend_from_slice(&rest[..after_mark]);
            safe.extend_from_slice(PREFIX);
            if after_mark == 1 {
                before = *byte;
                continue;
            }
        } else if ends_attribute(before) && begins_attribute(rest) {
            safe.extend_from_slice(PREFIX);
        }
        safe.push(*byte);
        before = *byte;
    }
    safe
}

fn begins_element(rest: &[u8]) -> bool {
    let name_bytes = rest
        .iter()
        .skip(1)
        .take_while(|byte| is_name_byte(**byte))
        .count()
        + 1;
    let name = rest[..name_bytes.min(rest.len())].to_ascii_lowercase();
    // In XML, any prefix can stand for the namespace of HTML.
    let local = name.rsplit(|byte| *byte == b':').next().unwrap_or_default();
    ELEMENTS.contains(&local)
}

/// What can stand before the name of an attribute.
fn ends_attribute(byte: u8) -> bool {
    matches!(byte, b'/' | b'"' | b'\'') || byte.is_ascii_whitespace()
}

fn begins_attribute(rest: &[u8]) -> bool {
    ATTRIBUTES.iter().any(|name| {
        let is_name = rest
            .get(..name.len())
            .is_some_and(|found| found.eq_ignore_ascii_case(name));
        is_name && rest[name.len()..].trim_ascii_start().starts_with(b"=")
    })
}

fn is_name_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b':' | b'-' | b'_' | b'.')
}

#[cfg(test)]
mod tests {
    use super::*;

    /// O-15.
    #[test]
    fn hints_refreshes_and_inner_documents_get_other_names() {
        for (markup, expected) in [
            ("<link rel=preconnect href=x>", "<x-link rel=preconnect href=x>"),
            ("<LINK\nrel=x><Link/>", "<x-LINK\nrel=x><x-Link/>"),
            ("<h:link xmlns:h='x'/>", "<x-h:link xmlns:h='x'/>"),
            ("<!ENTITY a '<b/>'>", "<!x-ENTITY a '<b/>'>"),
            ("<iframe srcdoc='a'>", "<x-iframe x-srcdoc='a'>"),
            ("<Frame id='a'SrcDoc = a>", "<x-Frame id='a'x-SrcDoc = a>"),
            (
                "<meta/http-equiv=refresh content=0>",
                "<meta/x-http-equiv=refresh content=0>",
            ),
        ] {
            assert_eq!(String::from_utf8(inert(markup.as_bytes())).unwrap(), expected);
        }
    }

    #[test]
    fn other_markup_stays_as_it_is() {
        let markup = "<!doctype html><links><a-link><linkx>&lt;link> srcdoc is a word, http-equiv too</link><p title='link'>\u{e9} < link";
        assert_eq!(inert(markup.as_bytes()), markup.as_bytes());
        assert_eq!(inert(b"<"), b"<");
        assert_eq!(inert(b""), b"");
    }
}
