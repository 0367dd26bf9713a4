//! The description of a skill: text for humans and models, visible and limited.

use crate::limits;
use crate::skill::document::SkillMdError;
use crate::skill::fields::Fields;
use crate::skill::{Origin, hidden_character};

/// The declared text, else the first words of the instructions.
pub(super) fn description(
    fields: &mut Fields,
    body: &str,
    missing: &str,
    inferred: &mut Vec<&'static str>,
) -> Result<String, SkillMdError> {
    let declared = fields.words("description").filter(|text| !text.is_empty());
    let (origin, line) = fields
        .field("description")
        .map_or((Origin::Inferred, 1), |field| (field.origin, field.node.line));
    let mut text = match declared.or_else(|| first_paragraph(body)) {
        Some(text) => text,
        None => {
            let message = "`description` is missing; say what the skill does and when to use it".to_owned();
            return Err(fields.refuse("description", message));
        }
    };
    if fields
        .field("description")
        .is_none_or(|field| field.node.to_text().trim().is_empty())
    {
        inferred.push("description");
        fields.warn(line, missing.to_owned());
    }
    if let Some(hidden) = hidden_character(&text) {
        let hidden = u32::from(hidden);
        fields.warn_of(
            origin,
            line,
            format!("`description` contains the invisible character U+{hidden:04X}, which is removed"),
        );
        text = text
            .chars()
            .filter(|c| hidden_character(c.encode_utf8(&mut [0; 4])).is_none())
            .collect();
    }
    let max = limits::DESCRIPTION_CHARS_MAX;
    if text.chars().count() > max {
        fields.warn_of(
            origin,
            line,
            format!(
                "`description` is longer than {max} characters and is truncated; move details below the front matter"
            ),
        );
        text = text.chars().take(max).collect();
    }
    if text.contains("<!--") {
        fields.warn_of(
            origin,
            line,
            "`description` contains an HTML comment, which is invisible to humans but not to models"
                .to_owned(),
        );
    }
    Ok(text)
}

/// The first paragraph of the instructions, else the first heading.
fn first_paragraph(body: &str) -> Option<String> {
    paragraph(body).or_else(|| {
        let heading = body.lines().find_map(|line| line.trim().strip_prefix('#'))?;
        let text = heading.trim_start_matches('#').trim().to_owned();
        (!text.is_empty()).then_some(text)
    })
}

/// The first lines of the instructions that are not a heading.
pub(super) fn paragraph(body: &str) -> Option<String> {
    let lines = body.lines().map(str::trim);
    let is_text = |line: &&str| !line.is_empty() && !line.starts_with(['#', '`', '<', '|', '-', '!']);
    let paragraph: Vec<_> = lines
        .skip_while(|line| !is_text(line))
        .take_while(is_text)
        .collect();
    (!paragraph.is_empty()).then(|| paragraph.join(" "))
}
