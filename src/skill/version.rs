//! Versions: a published version never changes its content.

use std::fmt;
use std::str::FromStr;

use crate::ids::{Digest, serde_as_text};
use crate::limits;

/// A strict semantic version, at most 64 characters. Ordered by semver precedence.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Version(semver::Version);

/// The rule for a version.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "version must be a strict semantic version of at most 64 characters, for example `1.2.0` or `2.0.0-rc.1` (no leading `v` or zeros; `latest` is reserved)"
)]
pub struct InvalidVersion;

impl Version {
    /// The version of a skill without one: `0.0.0+<first 12 hex digits of its digest>`.
    #[must_use]
    pub fn unnamed(digest: &Digest) -> Self {
        let mut version = semver::Version::new(0, 0, 0);
        version.build =
            semver::BuildMetadata::new(&digest.hex()[..12]).expect("hex digits are build metadata");
        Self(version)
    }

    #[must_use]
    pub fn of_release([major, minor, patch]: [u64; 3]) -> Self {
        Self(semver::Version::new(major, minor, patch))
    }

    /// Major, minor and patch, which determine the precedence of releases. `None` for a pre-release, which is
    /// `latest` only without releases.
    #[must_use]
    pub fn release(&self) -> Option<[u64; 3]> {
        self.0
            .pre
            .is_empty()
            .then_some([self.0.major, self.0.minor, self.0.patch])
    }
}

impl FromStr for Version {
    type Err = InvalidVersion;

    fn from_str(text: &str) -> Result<Self, InvalidVersion> {
        if text.len() > limits::VERSION_CHARS_MAX {
            return Err(InvalidVersion);
        }
        semver::Version::parse(text).map(Self).map_err(|_| InvalidVersion)
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
serde_as_text!(Version);

/// Selects a version of a skill.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum Selector {
    /// The highest release, else the most recent push.
    #[default]
    Latest,
    Version(Version),
    Digest(Digest),
}

impl FromStr for Selector {
    type Err = InvalidVersion;

    fn from_str(text: &str) -> Result<Self, InvalidVersion> {
        if text == "latest" {
            return Ok(Self::Latest);
        }
        if text.starts_with("sha256:") {
            return text.parse().map(Self::Digest).map_err(|_| InvalidVersion);
        }
        text.parse().map(Self::Version)
    }
}

impl fmt::Display for Selector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Latest => f.write_str("latest"),
            Self::Version(version) => version.fmt(f),
            Self::Digest(digest) => digest.fmt(f),
        }
    }
}
serde_as_text!(Selector);

#[cfg(test)]
mod tests {
    use super::*;

    /// Z-23.
    #[test]
    fn accepts_strict_semver_only() {
        let long = format!("1.0.0-{}", "a".repeat(10_000));
        for wrong in [
            "latest",
            "1.0.0/..",
            "1.0.0+../../x",
            "01.0.0",
            "v1",
            "v1.0.0",
            "1.0",
            "",
            " 1.0.0",
            &long,
        ] {
            assert!(wrong.parse::<Version>().is_err(), "{wrong}");
        }
        for right in ["1.2.0", "2.0.0-rc.1", "0.0.0+0123456789ab"] {
            assert_eq!(
                right.parse::<Version>().map(|v| v.to_string()).as_deref(),
                Ok(right)
            );
        }
    }

    #[test]
    fn labels_unversioned_skill_by_digest() {
        let version = Version::unnamed(&Digest::of(b"abc"));
        assert_eq!(version.to_string(), "0.0.0+ba7816bf8f01");
    }
}
