//! What the working directory of a program contains at its start.

use serde::{Deserialize, Serialize};

/// Content of the working directory at the start. Files of the request are always there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum Workdir {
    /// Files of the request, and files and folders of the skill that an argument names.
    Request,
    /// Files of the request and of the skill.
    Skill,
}

impl Workdir {
    pub const ALL: [Self; 2] = [Self::Request, Self::Skill];

    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Request => "request",
            Self::Skill => "skill",
        }
    }

    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|workdir| workdir.as_str() == name)
    }
}
