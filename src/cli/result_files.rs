//! Rich results without a place in a terminal: what is printed of them, and the files that `--out` makes of them.

use base64::Engine as _;

use crate::execution::{Envelope, FileLink, RichResult};

/// A file made of a rich result.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ResultFile {
    pub(crate) path: String,
    pub(crate) content: Vec<u8>,
}

/// The charts and HTML pages of an execution, numbered by their place in `results`. A name that the program has given to a
/// file gets another number.
pub(crate) fn files(results: &[RichResult], taken: &[FileLink]) -> Vec<ResultFile> {
    let mut made: Vec<ResultFile> = Vec::new();
    for (index, result) in results.iter().enumerate() {
        for (extension, content) in forms(result) {
            let names = std::iter::once(format!("result-{}.{extension}", index + 1))
                .chain((2_usize..).map(|attempt| format!("result-{}-{attempt}.{extension}", index + 1)));
            // File systems of Macs ignore case.
            let is_free = |name: &String| taken.iter().all(|file| !file.path.eq_ignore_ascii_case(name));
            made.extend(
                names
                    .take(taken.len() + 1)
                    .find(is_free)
                    .map(|path| ResultFile { path, content }),
            );
        }
    }
    made
}

fn forms(result: &RichResult) -> Vec<(&'static str, Vec<u8>)> {
    let decoded = |text: &Option<String>| {
        let text = text.as_ref()?;
        base64::engine::general_purpose::STANDARD.decode(text).ok()
    };
    let plain = |text: &Option<String>| text.as_ref().map(|text| text.clone().into_bytes());
    let forms = [
        ("png", decoded(&result.png)),
        // The same image, less exact.
        ("jpg", decoded(&result.jpeg).filter(|_| result.png.is_none())),
        ("svg", plain(&result.svg)),
        ("pdf", decoded(&result.pdf)),
        ("html", plain(&result.html)),
    ];
    forms
        .into_iter()
        .filter_map(|(extension, content)| Some((extension, content?)))
        .collect()
}

/// The text of each result, except for the main result of a program with an output, which is printed itself.
pub(crate) fn texts(envelope: &Envelope) -> Vec<&str> {
    let is_output = |result: &RichResult| result.is_main_result && envelope.output.is_some();
    let results = envelope.results.iter().filter(|result| !is_output(result));
    results.filter_map(readable).collect()
}

/// The text of the main result.
pub(crate) fn main_text(envelope: &Envelope) -> Option<&str> {
    envelope
        .results
        .iter()
        .find(|result| result.is_main_result)
        .and_then(readable)
}

/// Text for a person. An image has none, nor has an object that Python only names, as in `<… object at 0x7f…>`.
fn readable(result: &RichResult) -> Option<&str> {
    if is_chart(result) {
        return None;
    }
    let text = result.text.as_deref().filter(|text| !text.is_empty());
    let is_name = |text: &str| text.starts_with('<') && text.ends_with('>');
    let other = result.markdown.as_deref().or(result.latex.as_deref());
    match (text, other) {
        (Some(text), Some(other)) if is_name(text) => Some(other),
        (Some(text), None) if is_name(text) && result.html.is_some() => None,
        (Some(text), _) => Some(text),
        (None, other) => other,
    }
}

fn is_chart(result: &RichResult) -> bool {
    [&result.png, &result.jpeg, &result.svg, &result.pdf]
        .into_iter()
        .any(Option::is_some)
}

/// Results of which nothing is printed, such as `2 charts and 1 HTML result`.
pub(crate) fn unprinted(envelope: &Envelope) -> Option<String> {
    let charts = envelope.results.iter().filter(|result| is_chart(result)).count();
    let is_html =
        |result: &&RichResult| result.html.is_some() && !is_chart(result) && readable(result).is_none();
    let pages = envelope.results.iter().filter(is_html).count();
    let counted = |count: usize, what: &str| {
        let plural = if count == 1 { "" } else { "s" };
        (count > 0).then(|| format!("{count} {what}{plural}"))
    };
    let parts: Vec<_> = [counted(charts, "chart"), counted(pages, "HTML result")]
        .into_iter()
        .flatten()
        .collect();
    (!parts.is_empty()).then(|| parts.join(" and "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::Digest;

    fn result(text: &str) -> RichResult {
        RichResult {
            text: Some(text.to_owned()),
            ..RichResult::default()
        }
    }

    fn link(path: &str) -> FileLink {
        FileLink {
            path: path.to_owned(),
            size: 0,
            sha256: Digest::of(b""),
            media_type: String::new(),
            url: None,
        }
    }

    #[test]
    fn names_of_result_files_differ_from_names_of_the_program() {
        let chart = RichResult {
            png: Some("AAAA".to_owned()),
            ..result("<Figure>")
        };
        let page = RichResult {
            html: Some("<b>x</b>".to_owned()),
            ..result("<HTML object>")
        };
        let made = files(
            &[result("1"), chart, page],
            &[link("Result-2.png"), link("result-2-2.png")],
        );
        let paths: Vec<_> = made.iter().map(|file| file.path.as_str()).collect();
        assert_eq!(paths, ["result-2-3.png", "result-3.html"]);
        assert_eq!(made[0].content, [0, 0, 0]);
    }

    #[test]
    fn prints_what_a_person_can_read() {
        let markdown = RichResult {
            markdown: Some("# Title".to_owned()),
            ..result("<IPython.core.display.Markdown object>")
        };
        let table = RichResult {
            html: Some("<table>".to_owned()),
            ..result("   a\n0  1")
        };
        let page = RichResult {
            html: Some("<b>".to_owned()),
            ..result("<IPython.core.display.HTML object>")
        };
        let chart = RichResult {
            svg: Some("<svg/>".to_owned()),
            ..result("<Figure size 640x480>")
        };
        assert_eq!(readable(&markdown), Some("# Title"));
        assert_eq!(readable(&table), Some("   a\n0  1"));
        assert_eq!(readable(&page), None);
        assert_eq!(readable(&chart), None);
        assert_eq!(
            readable(&result("<built-in function len>")),
            Some("<built-in function len>")
        );
        assert_eq!(readable(&result("{1, 2}")), Some("{1, 2}"));
    }
}
