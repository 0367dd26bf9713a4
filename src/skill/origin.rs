//! Where a value of the normal form came from.

use serde::{Deserialize, Serialize};

/// Where a value came from; of two, the one that stands first here counts. What is in none is the server's default.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Origin {
    /// `skill.toml`.
    SkillToml,
    /// `metadata` of SKILL.md, as `skillbox.<key>`.
    Metadata,
    /// A key of SKILL.md's front matter.
    FrontMatter,
    /// Told by the files, or by the text of SKILL.md.
    Inferred,
}
