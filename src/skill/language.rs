//! Supported languages and their defaults.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A language with an interpreter in the default images.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum Language {
    /// CPython 3.
    #[serde(alias = "python3", alias = "py")]
    Python,
    /// Node.js.
    #[serde(alias = "nodejs", alias = "javascript", alias = "js")]
    Node,
    /// GNU bash.
    #[serde(alias = "sh", alias = "shell")]
    Bash,
}

impl Language {
    pub const ALL: [Self; 3] = [Self::Python, Self::Node, Self::Bash];

    /// Name in `lang:` and in the API.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Python => "python",
            Self::Node => "node",
            Self::Bash => "bash",
        }
    }

    /// Accepted names in `lang:`, in lower case.
    #[must_use]
    pub fn from_alias(text: &str) -> Option<Self> {
        match text {
            "python" | "python3" | "py" => Some(Self::Python),
            "node" | "nodejs" | "javascript" | "js" => Some(Self::Node),
            "bash" | "sh" | "shell" => Some(Self::Bash),
            _ => None,
        }
    }

    /// Default entrypoint of a skill.
    #[must_use]
    pub const fn default_entrypoint(self) -> &'static str {
        match self {
            Self::Python => "scripts/main.py",
            Self::Node => "scripts/main.js",
            Self::Bash => "scripts/main.sh",
        }
    }

    /// The interpreter, found in the sandbox's `PATH`.
    #[must_use]
    pub const fn interpreter(self) -> &'static str {
        match self {
            Self::Python => "python3",
            Self::Node => "node",
            Self::Bash => "bash",
        }
    }

    /// Default image.
    #[must_use]
    pub const fn default_image(self) -> &'static str {
        match self {
            Self::Python => "python:3.12-slim",
            Self::Node => "node:20-slim",
            Self::Bash => "bash:5",
        }
    }
}

impl fmt::Display for Language {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accepts_common_names_of_languages() {
        for text in [
            "python",
            "python3",
            "py",
            "node",
            "nodejs",
            "javascript",
            "js",
            "bash",
            "sh",
            "shell",
        ] {
            let read: Language = serde_json::from_value(text.into()).unwrap();
            assert_eq!(Some(read), Language::from_alias(text), "{text}");
        }
        assert!(serde_json::from_value::<Language>("ruby".into()).is_err());
    }
}
