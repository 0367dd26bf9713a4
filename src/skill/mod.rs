//! What a skill is: its name, version, language and normal form, whatever dialect it was written in. Pure.

mod image;
mod language;
mod manifest;
mod name;
mod version;

pub use image::{ApprovedImage, ImageAllowlist, ImageRefused};
pub use language::Language;
pub use manifest::{Manifest, Resources, Warning};
pub use name::{InvalidName, SkillName};
pub use version::{InvalidVersion, Selector, Version};
