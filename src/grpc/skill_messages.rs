//! Messages of skills from the types of `api`.

use serde_json::Value;

use super::messages::into_all;
use super::proto;
use crate::api::skills::{Skill, SkillSummary};
use crate::skill::{Action, Function, Origin, Warning};

impl From<SkillSummary> for proto::SkillSummary {
    fn from(summary: SkillSummary) -> Self {
        Self {
            name: summary.name.to_string(),
            version: summary.version.to_string(),
            digest: summary.digest.to_string(),
            description: summary.description,
            dialect: summary.dialect.as_str().to_owned(),
            language: summary.language.map(|language| language.as_str().to_owned()),
            archive_bytes: summary.archive_bytes,
            unpacked_bytes: summary.unpacked_bytes,
            files: summary.files,
            created_at: summary.created_at.to_string(),
        }
    }
}

impl From<Skill> for proto::Skill {
    fn from(skill: Skill) -> Self {
        let text = |schema: Value| schema.to_string().into_bytes();
        Self {
            summary: Some(skill.summary.into()),
            entrypoint: skill.entrypoint,
            image: skill.image,
            timeout: skill.timeout,
            memory_bytes: skill.memory_bytes,
            cpu_millis: skill.cpu_millis,
            disk_bytes: skill.disk_bytes,
            input_schema: skill.input_schema.map(text),
            output_schema: skill.output_schema.map(text),
            license: skill.license,
            compatibility: skill.compatibility,
            metadata: skill.metadata.into_iter().collect(),
            allowed_tools: skill.allowed_tools,
            instructions: skill.instructions,
            function: skill
                .function
                .map(|Function { module, export }| proto::Function { module, export }),
            secrets: skill.secrets.iter().map(ToString::to_string).collect(),
            origins: skill
                .origins
                .into_iter()
                .map(|(key, origin)| (key, origin_name(origin).to_owned()))
                .collect(),
            actions: into_all(skill.actions),
            requirements: skill.requirements,
            warnings: skill
                .warnings
                .into_iter()
                .map(|Warning { line, message }| proto::Warning { line, message })
                .collect(),
            latest: skill.latest.map(|version| version.to_string()),
        }
    }
}

/// As in the REST API.
fn origin_name(origin: Origin) -> &'static str {
    match origin {
        Origin::SkillToml => "skill_toml",
        Origin::Metadata => "metadata",
        Origin::FrontMatter => "front_matter",
        Origin::Inferred => "inferred",
    }
}

impl From<Action> for proto::Action {
    fn from(action: Action) -> Self {
        Self {
            path: action.path,
            language: action.language.as_str().to_owned(),
            summary: action.summary,
            usage: action.usage,
            requires_python: action.requires_python,
            dependencies: action.dependencies,
        }
    }
}
