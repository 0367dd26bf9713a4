//! Origins of the values in a manifest.

use serde::{Deserialize, Serialize};

/// Origin of a value, in order of precedence. Values without one have the server's default.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Origin {
    /// `skill.toml`.
    SkillToml,
    /// `metadata` of SKILL.md, as `skillbox.<key>`.
    Metadata,
    /// A key of SKILL.md's front matter.
    FrontMatter,
    /// Derived from the files or the text of SKILL.md.
    Inferred,
}
