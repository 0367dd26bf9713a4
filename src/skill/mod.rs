//! What a skill is: its name, version, language and normal form, whatever dialect it was written in. Pure.

mod action;
mod declaration;
mod document;
mod entrypoint;
mod fields;
mod function;
mod image;
mod language;
mod lint;
mod manifest;
mod name;
mod origin;
mod quantity;
mod reference;
mod repair;
mod scaffold;
mod script;
mod secret;
mod skill_toml;
mod strict;
#[cfg(test)]
mod tests;
mod title;
mod version;
mod visible;
mod yaml;

pub use action::{Action, action};
pub use declaration::Declaration;
pub use document::{File, SkillMdError};
pub use image::{ApprovedImage, ImageAllowlist, ImageRefused};
pub use language::Language;
pub use lint::{Finding, Severity, Verdict, lint};
pub use manifest::{Dialect, Function, Manifest, Permissions, Resources, Warning};
pub use name::{InvalidName, SkillName};
pub use origin::Origin;
pub use quantity::{parse_bytes, parse_cpu, parse_timeout};
pub use reference::{InvalidSkillRef, SkillRef};
pub use scaffold::scaffold;
pub use script::{InvalidScript, SHEBANG_BYTES_MAX, Script};
pub use secret::{InvalidSecretName, SecretName};
pub use strict::StrictSkill;
pub use version::{InvalidVersion, Selector, Version};
pub use visible::hidden_character;
