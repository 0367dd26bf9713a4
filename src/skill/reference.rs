//! References to skills: `data-analysis`, `data-analysis@1.2.0`.

use std::fmt;
use std::str::FromStr;

use crate::error::quoted;
use crate::ids::serde_as_text;
use crate::skill::{Selector, SkillName};

/// A published skill and a version: `name`, `name@1.2.0`, `name@latest` or `name@sha256:…`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SkillRef {
    pub name: SkillName,
    pub selector: Selector,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct InvalidSkillRef(String);

impl FromStr for SkillRef {
    type Err = InvalidSkillRef;

    fn from_str(text: &str) -> Result<Self, InvalidSkillRef> {
        let (name, selector) = text
            .split_once('@')
            .map_or((text, None), |(name, rest)| (name, Some(rest)));
        Ok(Self {
            name: name.parse().map_err(|rule| refused(text, rule))?,
            selector: match selector {
                Some(selector) => selector.parse().map_err(|rule| refused(text, rule))?,
                None => Selector::default(),
            },
        })
    }
}

fn refused(text: &str, rule: impl fmt::Display) -> InvalidSkillRef {
    InvalidSkillRef(format!("{}: {rule}", quoted(text)))
}

impl fmt::Display for SkillRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.selector {
            Selector::Latest => self.name.fmt(f),
            selector => write!(f, "{}@{selector}", self.name),
        }
    }
}
serde_as_text!(SkillRef);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reference_survives_display_and_parse() {
        let digest = format!("a@sha256:{}", "0".repeat(64));
        for text in ["a", "salesforce.leads@1.2.0", digest.as_str()] {
            assert_eq!(
                text.parse::<SkillRef>().map(|found| found.to_string()),
                Ok(text.to_owned())
            );
        }
        for wrong in ["", "@1.0.0", "a@", "a@1", "a@1.0.0@2", "../a", "a @1.0.0"] {
            assert!(wrong.parse::<SkillRef>().is_err(), "{wrong}");
        }
    }
}
