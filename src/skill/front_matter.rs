//! From SKILL.md to the normal form: the one loader of the program, toolbox and instructions dialects.

use std::time::Duration;

use crate::error::quoted;
use crate::limits;
use crate::skill::{
    Language, Manifest, Permissions, Resources, SecretName, SkillName, document::Document,
    document::SkillMdError, entrypoint, fields::Fields, hidden_character, quantity,
};

/// Reads a SKILL.md. `fallback_name` names a skill whose front matter does not (the folder's or archive's name), `has_file`
/// tells whether the skill has a regular file at a path.
///
/// # Errors
///
/// Anything that is declared and cannot be meant: wrong types, wrong values, a missing entrypoint, YAML beyond its budget.
/// The message names the line, the field and the remedy.
pub fn parse_skill_md(
    bytes: &[u8],
    fallback_name: Option<&str>,
    has_file: impl Fn(&str) -> bool,
) -> Result<Manifest, SkillMdError> {
    let document = Document::split(bytes)?;
    let mut fields = Fields::read(document.front_matter)?;
    let name = name(&fields, fallback_name)?;
    let description = description(&mut fields)?;
    let timeout = timeout(&mut fields)?;
    let (language, entrypoint) = program(&mut fields, has_file)?;
    let owned = |text: Option<&str>| text.map(str::to_owned);
    Ok(Manifest {
        name,
        version: fields.parsed("version", str::parse)?,
        description,
        language,
        entrypoint,
        dialect: crate::skill::Dialect::default(),
        function: None,
        permissions: permissions(&fields)?,
        actions: Vec::new(),
        image: fields.parsed("image", image)?,
        timeout,
        resources: Resources {
            memory_bytes: fields.parsed("resources.memory", |text| {
                quantity::parse_bytes(text, limits::MEMORY_BYTES_MIN)
            })?,
            cpu_millis: fields.parsed("resources.cpu", quantity::parse_cpu)?,
            disk_bytes: fields.parsed("resources.disk", |text| quantity::parse_bytes(text, limits::MIB))?,
        },
        input_schema: fields.schema("input_schema")?,
        output_schema: fields.schema("output_schema")?,
        license: owned(fields.text("license")?),
        compatibility: owned(fields.text("compatibility")?),
        allowed_tools: fields.list("allowed-tools")?,
        metadata: fields.metadata,
        instructions: document.body.to_owned(),
        warnings: fields.warnings,
    })
}

fn name(fields: &Fields, fallback: Option<&str>) -> Result<SkillName, SkillMdError> {
    if let Some(name) = fields.parsed("name", str::parse)? {
        return Ok(name);
    }
    let Some(fallback) = fallback else {
        return Err(SkillMdError::new(
            None,
            "`name` is missing; add it to the front matter",
        ));
    };
    fallback.parse().map_err(|rule| {
        SkillMdError::new(
            None,
            format!(
                "`name` is missing and {} cannot stand in: {rule}",
                quoted(fallback)
            ),
        )
    })
}

fn description(fields: &mut Fields) -> Result<String, SkillMdError> {
    let text = fields.text("description")?.unwrap_or_default().to_owned();
    let line = fields.line("description");
    let max = limits::DESCRIPTION_CHARS_MAX;
    let refuse = |rule: String| Err(SkillMdError::new(line, rule));
    if text.is_empty() {
        return refuse("`description` is missing; say what the skill does and when to use it".to_owned());
    }
    if text.chars().count() > max {
        return refuse(format!(
            "`description` is longer than {max} characters; move detail below the front matter"
        ));
    }
    if let Some(hidden) = hidden_character(&text) {
        return refuse(format!(
            "`description` holds the hidden character U+{:04X}; remove it",
            u32::from(hidden)
        ));
    }
    if text.contains("<!--") {
        fields.warn(
            line,
            "`description` holds an HTML comment, which people do not see and models do".to_owned(),
        );
    }
    Ok(text)
}

/// Names of secrets: a list, or text with commas.
fn permissions(fields: &Fields) -> Result<Permissions, SkillMdError> {
    const KEY: &str = "permissions.secrets";
    let refused = |rule: String| SkillMdError::new(fields.line(KEY), format!("`{KEY}`: {rule}"));
    let mut secrets: Vec<SecretName> = Vec::new();
    for name in fields.list(KEY)?.unwrap_or_default().split(',') {
        let name = name.trim();
        if !name.is_empty() {
            let name = name
                .parse()
                .map_err(|rule| refused(format!("{}: {rule}", quoted(name))))?;
            if !secrets.contains(&name) {
                secrets.push(name);
            }
        }
    }
    if secrets.len() > limits::SECRETS_GRANTED_MAX {
        return Err(refused(format!(
            "more than {} secrets",
            limits::SECRETS_GRANTED_MAX
        )));
    }
    Ok(Permissions {
        secrets,
        ..Permissions::default()
    })
}

fn timeout(fields: &mut Fields) -> Result<Option<Duration>, SkillMdError> {
    let timeout = fields.parsed("timeout", quantity::parse_timeout)?;
    if timeout.is_some_and(|timeout| timeout > limits::TIMEOUT_MAX) {
        let max = limits::TIMEOUT_MAX.as_secs();
        fields.warn(
            fields.line("timeout"),
            format!("`timeout` is above {max} s; {max} s is what it gets at most"),
        );
    }
    Ok(timeout.map(|timeout| timeout.min(limits::TIMEOUT_MAX)))
}

fn program(
    fields: &mut Fields,
    has_file: impl Fn(&str) -> bool,
) -> Result<(Option<Language>, Option<String>), SkillMdError> {
    let declared = entrypoint::Declared {
        language: fields.parsed("lang", |text| {
            Language::from_alias(&text.to_ascii_lowercase()).ok_or("must be `python`, `node` or `bash`")
        })?,
        entrypoint: fields.exact("entrypoint")?,
    };
    let line = fields.line("entrypoint").or_else(|| fields.line("lang"));
    let choice = entrypoint::choose(&declared, has_file)
        .map_err(|rule| SkillMdError::new(line, format!("`entrypoint`: {rule}")))?;
    Ok(match choice {
        entrypoint::Choice::Program { language, entrypoint } => (Some(language), Some(entrypoint)),
        entrypoint::Choice::NoProgram => (None, None),
        entrypoint::Choice::Ambiguous(found) => {
            let found = found.join(", ");
            fields.warn(
                None,
                format!("nothing is run, because {found} all could be; name one in `entrypoint`"),
            );
            (None, None)
        }
    })
}

/// A name for the allow-list to compare; whether it may run is decided there.
fn image(text: &str) -> Result<String, &'static str> {
    if (1..=limits::IMAGE_CHARS_MAX).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_graphic()) {
        Ok(text.to_owned())
    } else {
        Err("must be an image name like `python:3.12-slim`, without white space")
    }
}
