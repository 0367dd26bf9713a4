//! A skill in its normal form: what every dialect is turned into.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::skill::{Action, Language, Origin, SecretName, SkillName, Version};

/// A skill's declaration after parsing, checking and filling in; stored as JSON beside the version.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    /// The skill's name.
    pub name: SkillName,
    /// The declared version; `None` where the author wrote none.
    pub version: Option<Version>,
    /// What it does and when to use it, at most 1,024 characters.
    pub description: String,
    /// The form it was written in.
    #[serde(default)]
    pub dialect: Dialect,
    /// The language of the entrypoint; `None` for a skill of instructions only.
    pub language: Option<Language>,
    /// The file that is run, relative to the skill's folder; present exactly when `language` is.
    pub entrypoint: Option<String>,
    /// What is called in the entrypoint, where that is a module of functions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub function: Option<Function>,
    /// The labels below `skills.<name>` that its modules take in imports.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub modules: Vec<String>,
    /// What it may be given.
    #[serde(default)]
    pub permissions: Permissions,
    /// Scripts that can be called by their path; the first [`crate::limits::ACTIONS_MAX`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub actions: Vec<Action>,
    /// The image asked for; `None` means the language's default.
    pub image: Option<String>,
    /// The wall clock asked for.
    #[serde(with = "optional_seconds", default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<Duration>,
    /// The resources asked for; a skill may only lower the server's limits.
    #[serde(default)]
    pub resources: Resources,
    /// JSON Schema of the input, if declared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_schema: Option<serde_json::Value>,
    /// JSON Schema of the output, if declared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_schema: Option<serde_json::Value>,
    /// SPDX expression or free text, if declared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub license: Option<String>,
    /// What the author says about where it runs, if declared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compatibility: Option<String>,
    /// The author's own keys, as text.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub metadata: BTreeMap<String, String>,
    /// Tools the author allows an agent to use with it, as written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allowed_tools: Option<String>,
    /// The body of SKILL.md: instructions for a model.
    pub instructions: String,
    /// Where each value came from, by its key.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub origins: BTreeMap<String, Origin>,
    /// What was accepted but looks wrong.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<Warning>,
}

/// The form that a skill was written in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Dialect {
    /// A program with files and variables.
    #[default]
    Program,
    /// A module whose function is called.
    Function,
    /// Scripts that are called by their path.
    Toolbox,
    /// Nothing to run.
    Instructions,
}

impl Dialect {
    /// Its name in results.
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

/// The function of a skill that is called.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Function {
    /// How programs import the module, such as `skills.salesforce.leads.sync`.
    pub module: String,
    /// The function's name in it.
    pub export: String,
}

/// What a skill may be given beyond its input.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Permissions {
    /// Secrets that it finds in its environment; all must be there.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub secrets: Vec<SecretName>,
    /// Hosts that it would like to reach. No sandbox has a network yet.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub network: Vec<String>,
}

/// Resources a skill asks for; each `None` means the server's default.
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

/// Something accepted that the author should look at.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Warning {
    /// Line in SKILL.md, from 1, where known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
    /// What was found and what to do.
    pub message: String,
}

/// A duration as seconds with a fraction.
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
