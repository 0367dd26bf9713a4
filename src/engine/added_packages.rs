//! Packages that are added to a published skill, beside its files.

use crate::error::Error;
use crate::limits;
use crate::skill::{InvalidRequirement, Language, Manifest, NodePackages, Requirements, SkillName};
use crate::store::SkillRecord;

/// Packages that were added to a published skill.
#[derive(Clone, Debug)]
pub(super) struct AddedPackages {
    pub(super) skill: SkillName,
    pub(super) language: Language,
    pub(super) requirements: Vec<String>,
}

impl AddedPackages {
    pub(super) fn of(record: &SkillRecord) -> Option<Self> {
        (!record.requirements.is_empty()).then(|| Self {
            skill: record.name.clone(),
            language: record.manifest.package_language(),
            requirements: record.requirements.clone(),
        })
    }
}

/// Packages without repetitions, checked as those of a request.
pub(super) fn check_requirements(manifest: &Manifest, requirements: &[String]) -> Result<Vec<String>, Error> {
    let mut checked: Vec<String> = Vec::with_capacity(requirements.len().min(limits::REQUIREMENTS_MAX));
    for requirement in requirements.iter().map(|text| text.trim()) {
        if !checked.iter().any(|known| known == requirement) {
            checked.push(requirement.to_owned());
        }
    }
    let invalid = |error: InvalidRequirement| Error::invalid(error.to_string());
    match manifest.package_language() {
        Language::Node => drop(NodePackages::with(None, &checked).map_err(invalid)?),
        Language::Python | Language::Bash => Requirements::default()
            .add_all(&checked, |index| format!("requirements[{index}]"))
            .map_err(invalid)?,
    }
    Ok(checked)
}
