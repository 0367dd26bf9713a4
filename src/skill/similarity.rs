//! Whether two pushes under one name are versions of one skill.

use std::collections::BTreeSet;

/// What tells skills of one name apart.
#[derive(Clone, Copy, Debug)]
pub struct SkillTraits<'a> {
    /// Name of the pushed folder or archive, if known.
    pub folder: Option<&'a str>,
    pub description: &'a str,
}

impl SkillTraits<'_> {
    /// Whether both look like versions of one skill: they come from the same folder, or their descriptions have at least
    /// half of their words in common.
    #[must_use]
    pub fn are_of_one_skill(&self, other: &Self) -> bool {
        if self.folder.is_some() && self.folder == other.folder {
            return true;
        }
        let (one, two) = (words(self.description), words(other.description));
        let shared = one.intersection(&two).count();
        2 * shared >= one.len().min(two.len())
    }
}

fn words(text: &str) -> BTreeSet<String> {
    let words = text.split(|c: char| !c.is_alphanumeric());
    words
        .filter(|word| !word.is_empty())
        .map(str::to_lowercase)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distinguishes_versions_from_other_skills() {
        let traits = |folder, description| SkillTraits { folder, description };
        let forms = traits(Some("pdf"), "Fills PDF forms, field by field.");
        for version in [
            forms,
            traits(Some("pdf"), "Something else altogether."),
            traits(Some("pdf-1.2"), "Fills PDF forms, and merges them."),
            traits(None, "Fills PDF forms."),
        ] {
            assert!(forms.are_of_one_skill(&version), "{version:?}");
        }
        for other in [
            traits(Some("pdf-tools"), "Converts documents to PDF with LibreOffice."),
            traits(None, "Converts documents to PDF with LibreOffice."),
        ] {
            assert!(
                !forms.are_of_one_skill(&other) && !other.are_of_one_skill(&forms),
                "{other:?}"
            );
        }
    }
}
