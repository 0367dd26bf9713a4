//! The forms of a rich result, each of which can be served on its own.

use std::borrow::Cow;
use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::execution::{JsonText, RichResult};

/// A member of a rich result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, serde::Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum ResultForm {
    Text,
    Html,
    Markdown,
    Svg,
    Png,
    Jpeg,
    Pdf,
    Latex,
    Json,
    Javascript,
    Data,
    Chart,
}

impl ResultForm {
    pub const ALL: [Self; 12] = [
        Self::Text,
        Self::Html,
        Self::Markdown,
        Self::Svg,
        Self::Png,
        Self::Jpeg,
        Self::Pdf,
        Self::Latex,
        Self::Json,
        Self::Javascript,
        Self::Data,
        Self::Chart,
    ];

    /// The member of [`RichResult`].
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Html => "html",
            Self::Markdown => "markdown",
            Self::Svg => "svg",
            Self::Png => "png",
            Self::Jpeg => "jpeg",
            Self::Pdf => "pdf",
            Self::Latex => "latex",
            Self::Json => "json",
            Self::Javascript => "javascript",
            Self::Data => "data",
            Self::Chart => "chart",
        }
    }

    /// JavaScript is plain text, which no browser runs.
    #[must_use]
    pub const fn media_type(self) -> &'static str {
        match self {
            Self::Text | Self::Javascript | Self::Latex => "text/plain; charset=utf-8",
            Self::Html => "text/html; charset=utf-8",
            Self::Markdown => "text/markdown; charset=utf-8",
            Self::Svg => "image/svg+xml; charset=utf-8",
            Self::Png => "image/png",
            Self::Jpeg => "image/jpeg",
            Self::Pdf => "application/pdf",
            Self::Json | Self::Data | Self::Chart => "application/json",
        }
    }
}

impl fmt::Display for ResultForm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl RichResult {
    /// The forms that it has.
    pub fn forms(&self) -> impl Iterator<Item = ResultForm> + '_ {
        ResultForm::ALL
            .into_iter()
            .filter(|form| self.text_of(*form).is_some())
    }

    /// The content of one form; images and PDF decoded.
    #[must_use]
    pub fn content(&self, form: ResultForm) -> Option<Cow<'_, [u8]>> {
        let text = self.text_of(form)?;
        match form {
            ResultForm::Png | ResultForm::Jpeg | ResultForm::Pdf => {
                STANDARD.decode(text).ok().map(Cow::Owned)
            }
            ResultForm::Text
            | ResultForm::Html
            | ResultForm::Markdown
            | ResultForm::Svg
            | ResultForm::Latex
            | ResultForm::Json
            | ResultForm::Javascript
            | ResultForm::Data
            | ResultForm::Chart => Some(Cow::Borrowed(text.as_bytes())),
        }
    }

    fn text_of(&self, form: ResultForm) -> Option<&str> {
        match form {
            ResultForm::Text => self.text.as_deref(),
            ResultForm::Html => self.html.as_deref(),
            ResultForm::Markdown => self.markdown.as_deref(),
            ResultForm::Svg => self.svg.as_deref(),
            ResultForm::Png => self.png.as_deref(),
            ResultForm::Jpeg => self.jpeg.as_deref(),
            ResultForm::Pdf => self.pdf.as_deref(),
            ResultForm::Latex => self.latex.as_deref(),
            ResultForm::Javascript => self.javascript.as_deref(),
            ResultForm::Json => self.json.as_ref().map(JsonText::as_str),
            ResultForm::Data => self.data.as_ref().map(JsonText::as_str),
            ResultForm::Chart => self.chart.as_ref().map(JsonText::as_str),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_is_a_member_of_results() {
        let text = |text: &str| Some(text.to_owned());
        let json = || JsonText::parse(b"{\"n\": 1e400,  \"x\":0.10}").ok();
        let all = RichResult {
            text: text("1"),
            html: text("<b>"),
            markdown: text("#"),
            svg: text("<svg/>"),
            png: text("AAAA"),
            jpeg: text("AAAA"),
            pdf: text("AAAA"),
            latex: text("x"),
            json: json(),
            javascript: text("alert(1)"),
            data: json(),
            chart: json(),
            ..RichResult::default()
        };
        assert!(all.forms().eq(ResultForm::ALL));
        let members = serde_json::to_string(&all).unwrap();
        for form in ResultForm::ALL {
            assert!(members.contains(&format!("\"{form}\":")), "{form}");
            let read: ResultForm = serde_json::from_value(form.as_str().into()).unwrap();
            assert_eq!(read, form);
        }
        assert_eq!(all.content(ResultForm::Png).unwrap()[..], [0, 0, 0]);
        //
        assert_eq!(
            &all.content(ResultForm::Json).unwrap()[..],
            b"{\"n\": 1e400,  \"x\":0.10}"
        );
        assert_eq!(RichResult::default().forms().count(), 0);
    }
}
