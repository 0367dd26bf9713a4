//! Skills whose SKILL.md has no front matter: the folder names them, the first paragraph describes them.

/// What authors and generators write where a text is still to come.
const PLACEHOLDERS: [&str; 14] = [
    "{{",
    "}}",
    "{%",
    "<%",
    "${",
    "[todo",
    "todo:",
    "[your ",
    "<your",
    "[name",
    "<name",
    "[skill",
    "<skill",
    "lorem ipsum",
];

/// Whether the text of SKILL.md is a template that nobody has filled in.
pub(super) fn is_template(folder: Option<&str>, paragraph: &str) -> bool {
    let folder = folder.unwrap_or_default().to_ascii_lowercase();
    let mut labels = folder.split(|c: char| !c.is_ascii_alphanumeric());
    let text = paragraph.to_ascii_lowercase();
    labels.any(|label| matches!(label, "template" | "templates" | "boilerplate"))
        || PLACEHOLDERS.iter().any(|placeholder| text.contains(placeholder))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recognizes_templates() {
        for (folder, text) in [
            ("skill-template", "Fills forms."),
            ("_Template", "Fills forms."),
            ("a", "{{description}}"),
            ("a", "[TODO: Explain what the skill does.]"),
            ("a", "Use [Your Skill Name] to <your purpose>."),
        ] {
            assert!(is_template(Some(folder), text), "{folder}: {text}");
        }
        for text in [
            "Fills forms.",
            "Lists what is still to do in [a list](todo.md).",
            "Costs $5 {each}.",
        ] {
            assert!(!is_template(Some("a-b"), text), "{text}");
        }
        assert!(!is_template(None, "Makes templates."));
    }
}
