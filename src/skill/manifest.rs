//! The manifest of a skill, the same for every dialect.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::skill::{Action, Language, Origin, SecretName, SkillName, Version};

/// A parsed, checked and completed declaration, stored as JSON with the version.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    pub name: SkillName,
    /// `None` if not declared.
    pub version: Option<Version>,
    /// Purpose and use, at most 1,024 characters.
    pub description: String,
    #[serde(default)]
    pub dialect: Dialect,
    /// Language of the entrypoint; `None` for a skill with instructions only.
    pub language: Option<Language>,
    /// Program, relative to the skill's folder. Present if and only if `language` is.
    pub entrypoint: Option<String>,
    /// Function of the entrypoint, if that is a module.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub function: Option<Function>,
    /// Labels after `skills.<name>` that its modules use in imports.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub modules: Vec<String>,
    #[serde(default)]
    pub permissions: Permissions,
    /// Scripts that can be run by path; the first [`crate::limits::ACTIONS_MAX`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub actions: Vec<Action>,
    /// Requested image; `None` for the default of the language.
    pub image: Option<String>,
    /// Requested wall clock limit.
    #[serde(with = "optional_seconds", default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<Duration>,
    /// Requested resources, at most the server's maxima.
    #[serde(default)]
    pub resources: Resources,
    /// JSON Schema of the input.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_schema: Option<serde_json::Value>,
    /// JSON Schema of the output.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_schema: Option<serde_json::Value>,
    /// SPDX expression or free text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub license: Option<String>,
    /// Declared compatibility.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compatibility: Option<String>,
    /// Further keys of the author, as text.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub metadata: BTreeMap<String, String>,
    /// Tools that an agent may use with the skill, as declared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allowed_tools: Option<String>,
    /// Body of SKILL.md: instructions for a model.
    pub instructions: String,
    /// Source of each value, by its key.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub origins: BTreeMap<String, Origin>,
    /// Accepted values that are probably mistakes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<Warning>,
}

/// Format of a skill.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Dialect {
    /// A program with files and variables.
    #[default]
    Program,
    /// A module with a function.
    Function,
    /// Scripts that are run by path.
    Toolbox,
    /// Only instructions.
    Instructions,
}

impl Manifest {
    /// The language of packages that are added to the skill. A shell script calls Python; a skill of scripts has the language of
    /// all of them, else Python.
    #[must_use]
    pub fn package_language(&self) -> Language {
        let is_node = match self.language {
            Some(language) => language == Language::Node,
            None => {
                let mut scripts = self.actions.iter();
                !self.actions.is_empty() && scripts.all(|script| script.language == Language::Node)
            }
        };
        if is_node { Language::Node } else { Language::Python }
    }
}

impl Dialect {
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Program => "program",
            Self::Function => "function",
            Self::Toolbox => "toolbox",
            Self::Instructions => "instructions",
        }
    }
}

/// The function of a skill.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Function {
    /// Import path of the module, such as `skills.salesforce.leads.sync`.
    pub module: String,
    /// Name of the function.
    pub export: String,
}

/// Permissions of a skill.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Permissions {
    /// Secrets in its environment, all of which must be set.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub secrets: Vec<SecretName>,
    /// Requested hosts. No sandbox has network access yet.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub network: Vec<String>,
}

/// Requested resources; `None` for the server's default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Resources {
    /// Memory in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_bytes: Option<u64>,
    /// CPU in thousandths of a core.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_millis: Option<u32>,
    /// Size of `/workspace` in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disk_bytes: Option<u64>,
}

/// A warning for the author.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Warning {
    /// Line in SKILL.md, from 1, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
    /// What was found and what to do.
    pub message: String,
}

/// Serializes a duration as seconds with a fraction.
mod optional_seconds {
    use std::time::Duration;

    use serde::{Deserialize, Deserializer, Serializer};

    #[expect(clippy::ref_option, reason = "serde calls it with a reference to the field")]
    pub(super) fn serialize<S: Serializer>(
        value: &Option<Duration>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        match value {
            Some(duration) => serializer.serialize_f64(duration.as_secs_f64()),
            None => serializer.serialize_none(),
        }
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<Duration>, D::Error> {
        let seconds = Option::<f64>::deserialize(deserializer)?;
        seconds
            .map(|s| Duration::try_from_secs_f64(s).map_err(serde::de::Error::custom))
            .transpose()
    }
}
