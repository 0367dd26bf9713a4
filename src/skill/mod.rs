//! What a skill is: its name, version, language and normal form, whatever dialect it was written in. Pure.

mod action;
mod document;
mod entrypoint;
mod fields;
mod front_matter;
mod image;
mod language;
mod lint;
mod manifest;
mod name;
mod node_packages;
mod quantity;
mod requirements;
mod scaffold;
mod script;
mod secret;
#[cfg(test)]
mod tests;
mod version;
mod visible;
mod yaml;

pub use action::{Action, action};
pub use document::SkillMdError;
pub use front_matter::parse_skill_md;
pub use image::{ApprovedImage, ImageAllowlist, ImageRefused};
pub use language::Language;
pub use lint::{Finding, Severity, Verdict, lint};
pub use manifest::{Dialect, Function, Manifest, Permissions, Resources, Warning};
pub use name::{InvalidName, SkillName};
pub use node_packages::NodePackages;
pub use quantity::{parse_bytes, parse_cpu, parse_timeout};
pub use requirements::{InvalidRequirement, Requirements};
pub use scaffold::scaffold;
pub use script::{InvalidScript, SHEBANG_BYTES_MAX, Script};
pub use secret::{InvalidSecretName, SecretName};
pub use version::{InvalidVersion, Selector, Version};
pub use visible::hidden_character;
