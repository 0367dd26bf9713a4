//! The embedded files, each compressed once when a client first asks for it.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::OnceLock;

use axum::body::Bytes;
use flate2::write::GzEncoder;
use rust_embed::{Embed, EmbeddedFile};
use tokio::sync::OnceCell;

use super::negotiation::Encoding;
use crate::error::Error;
use crate::ids::Digest;

/// Our own files.
#[derive(Embed)]
#[folder = "web/dashboard"]
#[include = "*.html"]
#[include = "*.js"]
#[include = "*.css"]
#[include = "*.svg"]
#[include = "*.png"]
#[include = "*.ico"]
#[include = "*.woff2"]
struct OwnFiles;

/// Bundles of other projects, and their licences.
#[derive(Embed)]
#[folder = "web/vendor"]
#[allow_missing = true]
#[include = "*.js"]
#[include = "*.txt"]
struct VendoredFiles;

/// All files by path below `/ui/`.
#[derive(Debug)]
pub(crate) struct StaticFiles(HashMap<String, StaticFile>);

#[derive(Debug)]
pub(crate) struct StaticFile {
    embedded: Bytes,
    source: Source,
    sent: OnceLock<Sent>,
    content_type: String,
    brotli: Compressed,
    gzip: Compressed,
}

/// What clients get without compression.
#[derive(Debug)]
struct Sent {
    content: Bytes,
    digest: Digest,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Source {
    /// Scripts and style sheets: comments and indentation are for readers of the source, and are not sent.
    Code,
    /// Code with texts of several lines, whose indentation counts.
    CodeWithTexts,
    Other,
}

/// `None` if compression does not make the file smaller.
type Compressed = OnceCell<Option<Bytes>>;

impl StaticFiles {
    pub(crate) fn embedded() -> Self {
        let own = OwnFiles::iter().filter_map(|path| {
            let source = match path.rsplit_once('.') {
                _ if path == "snippets.js" => Source::CodeWithTexts,
                Some((_, "js" | "css")) => Source::Code,
                _ => Source::Other,
            };
            let file = StaticFile::new(&path, OwnFiles::get(&path)?, source);
            Some((path.into_owned(), file))
        });
        let vendored = VendoredFiles::iter().filter_map(|path| {
            let file = StaticFile::new(&path, VendoredFiles::get(&path)?, Source::Other);
            Some((format!("vendor/{path}"), file))
        });
        Self(own.chain(vendored).collect())
    }

    pub(crate) fn file(&self, path: &str) -> Option<&StaticFile> {
        self.0.get(path)
    }

    /// The page that shows every place of the dashboard.
    pub(crate) fn page(&self) -> Option<&StaticFile> {
        self.file("index.html")
    }
}

impl StaticFile {
    fn new(path: &str, file: EmbeddedFile, source: Source) -> Self {
        let content = match file.data {
            Cow::Borrowed(bytes) => Bytes::from_static(bytes),
            Cow::Owned(bytes) => Bytes::from(bytes),
        };
        Self {
            embedded: content,
            source,
            sent: OnceLock::new(),
            content_type: content_type(path),
            brotli: Compressed::default(),
            gzip: Compressed::default(),
        }
    }

    pub(crate) fn content_type(&self) -> &str {
        &self.content_type
    }

    /// The strong entity tag of the file in this encoding.
    pub(crate) fn tag(&self, encoding: Option<Encoding>) -> String {
        let suffix = encoding.map(|encoding| format!("-{}", encoding.as_str()));
        format!("\"{}{}\"", self.sent().digest.hex(), suffix.unwrap_or_default())
    }

    /// The content in this encoding, or as it is if that is smaller.
    pub(crate) async fn content(
        &self,
        encoding: Option<Encoding>,
    ) -> Result<(Bytes, Option<Encoding>), Error> {
        let compressed = match encoding {
            Some(encoding) => self.compressed(encoding).await?,
            None => None,
        };
        Ok(match compressed {
            Some(bytes) => (bytes, encoding),
            None => (self.sent().content.clone(), None),
        })
    }

    fn sent(&self) -> &Sent {
        self.sent.get_or_init(|| {
            let content = match self.source {
                Source::Other => self.embedded.clone(),
                Source::Code => without_indentation(&without_comments(&self.embedded)),
                Source::CodeWithTexts => without_comments(&self.embedded).into(),
            };
            let digest = Digest::of(&content);
            Sent { content, digest }
        })
    }

    async fn compressed(&self, encoding: Encoding) -> Result<Option<Bytes>, Error> {
        let cell = match encoding {
            Encoding::Brotli => &self.brotli,
            Encoding::Gzip => &self.gzip,
        };
        let compressed = cell.get_or_try_init(|| async {
            let content = self.sent().content.clone();
            // The best compression of a large file takes a second.
            tokio::task::spawn_blocking(move || compress(&content, encoding))
                .await
                .map_err(Error::internal)?
                .map_err(Error::internal)
        });
        compressed.await.cloned()
    }
}

fn content_type(path: &str) -> String {
    let media_type = mime_guess::from_path(path).first_or_octet_stream();
    match media_type.type_() {
        mime_guess::mime::TEXT => format!("{media_type}; charset=utf-8"),
        _ => media_type.to_string(),
    }
}

/// Leaves out lines that are only a comment, and comments of types. `web/served.mjs` checks that the code stays the same.
fn without_comments(content: &[u8]) -> String {
    let text = String::from_utf8_lossy(content);
    let mut kept = String::with_capacity(text.len());
    let mut is_in_comment = false;
    for line in text.split_inclusive('\n') {
        let trimmed = line.trim();
        let ends = trimmed.ends_with("*/");
        let begins = trimmed.starts_with("/*")
            && (trimmed.find("*/") == trimmed.len().checked_sub(2) || !trimmed.contains("*/"));
        if is_in_comment || begins {
            is_in_comment = !ends;
        } else if !trimmed.starts_with("//") {
            push_without_types(line, &mut kept);
        }
    }
    kept
}

fn without_indentation(text: &str) -> Bytes {
    let lines = text.split_inclusive('\n');
    lines
        .map(|line| line.trim_start_matches([' ', '\t']))
        .collect::<String>()
        .into()
}

/// Appends a line without comments such as `/** @type {string} */`.
fn push_without_types(mut line: &str, kept: &mut String) {
    while let Some((before, after)) = line.split_once("/** @") {
        let Some((_, rest)) = after.split_once("*/") else {
            break;
        };
        kept.push_str(before);
        line = rest.strip_prefix(' ').unwrap_or(rest);
    }
    kept.push_str(line);
}

fn compress(content: &[u8], encoding: Encoding) -> std::io::Result<Option<Bytes>> {
    let compressed = match encoding {
        Encoding::Brotli => brotli(content)?,
        Encoding::Gzip => gzip(content)?,
    };
    Ok((compressed.len() < content.len()).then(|| compressed.into()))
}

fn brotli(mut content: &[u8]) -> std::io::Result<Vec<u8>> {
    let parameters = brotli::enc::BrotliEncoderParams {
        quality: 11,
        size_hint: content.len(),
        ..Default::default()
    };
    let mut compressed = Vec::new();
    brotli::BrotliCompress(&mut content, &mut compressed, &parameters)?;
    Ok(compressed)
}

fn gzip(content: &[u8]) -> std::io::Result<Vec<u8>> {
    let mut encoder = GzEncoder::new(Vec::new(), flate2::Compression::best());
    std::io::Write::write_all(&mut encoder, content)?;
    encoder.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_types_with_their_charset() {
        for (path, expected) in [
            ("index.html", "text/html; charset=utf-8"),
            ("pages/app.js", "text/javascript; charset=utf-8"),
            ("style.css", "text/css; charset=utf-8"),
            ("icon.svg", "image/svg+xml"),
            ("font.woff2", "font/woff2"),
        ] {
            assert_eq!(content_type(path), expected, "{path}");
        }
    }

    #[test]
    fn sends_no_comments_and_no_indentation() {
        let source = "// First.\n/** @param {a} b */\nconst a = 1; // stays\n/**\n * Two\n * lines.\n */\n  const c = /** @type {x} */ (b);\n\
                      const url = 'https://x'; /* stays */\n/* a */ f(/* b */);\n";
        let sent = "const a = 1; // stays\n  const c = (b);\nconst url = 'https://x'; /* stays */\n/* a */ f(/* b */);\n";
        assert_eq!(without_comments(source.as_bytes()), sent);
        let flat = sent.replace("  const", "const");
        assert_eq!(without_indentation(sent), flat);
    }

    #[test]
    fn leaves_files_alone_that_compression_enlarges() {
        for encoding in [Encoding::Brotli, Encoding::Gzip] {
            assert_eq!(compress(b"x", encoding).unwrap(), None);
            let text = "const a = 1;\n".repeat(100);
            let compressed = compress(text.as_bytes(), encoding).unwrap().unwrap();
            assert!(compressed.len() < text.len() / 4, "{}", compressed.len());
        }
    }
}
