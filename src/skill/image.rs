//! Allowed images. Only the allowlist can create an [`ApprovedImage`].

use std::collections::BTreeSet;
use std::fmt;

/// Allowed images, compared exactly: no default tag, no normalisation (S-35).
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(transparent)]
pub struct ImageAllowlist(BTreeSet<String>);

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ApprovedImage(String);

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "image `{image}` is not in the allow-list; the operator can add it to sandbox.image_allowlist (SKILLBOX_IMAGE_ALLOWLIST)"
)]
pub struct ImageRefused {
    /// The requested image, with control characters escaped.
    pub image: String,
}

impl ImageAllowlist {
    pub fn new(images: impl IntoIterator<Item = String>) -> Self {
        Self(images.into_iter().collect())
    }

    /// The only way to create an [`ApprovedImage`].
    pub fn approve(&self, image: &str) -> Result<ApprovedImage, ImageRefused> {
        if self.0.contains(image) {
            Ok(ApprovedImage(image.to_owned()))
        } else {
            let image: String = image.chars().take(128).collect();
            Err(ImageRefused {
                image: image.escape_debug().to_string(),
            })
        }
    }

    /// The allowed names, in order.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(String::as_str)
    }
}

impl ApprovedImage {
    /// The name for the engine.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ApprovedImage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// S-35.
    #[test]
    fn approves_exact_images_only() {
        let list = ImageAllowlist::new(["python:3.12-slim".to_owned()]);
        let tricks = [
            "python:3.12-slim ",
            "Python:3.12-slim",
            "docker.io/library/python:3.12-slim",
            "python@sha256:0000",
            "python:3.12-slim\n",
            "python:3.12-slim --privileged",
            "pуthon:3.12-slim",
            "python",
            "",
        ];
        for image in tricks {
            assert!(list.approve(image).is_err(), "{image:?}");
        }
        assert_eq!(
            list.approve("python:3.12-slim").unwrap().as_str(),
            "python:3.12-slim"
        );
    }

    #[test]
    fn rejection_stays_on_one_log_line() {
        let refused = ImageAllowlist::new([]).approve("x\nERROR").unwrap_err();
        assert!(!refused.to_string().contains('\n'));
    }
}
