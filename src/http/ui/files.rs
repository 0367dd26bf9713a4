//! The embedded files, each compressed once when a client first asks for it.

use std::borrow::Cow;
use std::collections::HashMap;

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
    content: Bytes,
    content_type: String,
    digest: Digest,
    brotli: Compressed,
    gzip: Compressed,
}

/// `None` if compression does not make the file smaller.
type Compressed = OnceCell<Option<Bytes>>;

impl StaticFiles {
    pub(crate) fn embedded() -> Self {
        let own = OwnFiles::iter().filter_map(|path| {
            let file = StaticFile::new(&path, OwnFiles::get(&path)?);
            Some((path.into_owned(), file))
        });
        let vendored = VendoredFiles::iter().filter_map(|path| {
            let file = StaticFile::new(&path, VendoredFiles::get(&path)?);
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
    fn new(path: &str, file: EmbeddedFile) -> Self {
        let content = match file.data {
            Cow::Borrowed(bytes) => Bytes::from_static(bytes),
            Cow::Owned(bytes) => Bytes::from(bytes),
        };
        Self {
            content,
            content_type: content_type(path),
            digest: Digest::from_bytes(file.metadata.sha256_hash()),
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
        format!("\"{}{}\"", self.digest.hex(), suffix.unwrap_or_default())
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
            None => (self.content.clone(), None),
        })
    }

    async fn compressed(&self, encoding: Encoding) -> Result<Option<Bytes>, Error> {
        let cell = match encoding {
            Encoding::Brotli => &self.brotli,
            Encoding::Gzip => &self.gzip,
        };
        let compressed = cell.get_or_try_init(|| async {
            let content = self.content.clone();
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
    fn leaves_files_alone_that_compression_enlarges() {
        for encoding in [Encoding::Brotli, Encoding::Gzip] {
            assert_eq!(compress(b"x", encoding).unwrap(), None);
            let text = "const a = 1;\n".repeat(100);
            let compressed = compress(text.as_bytes(), encoding).unwrap().unwrap();
            assert!(compressed.len() < text.len() / 4, "{}", compressed.len());
        }
    }
}
