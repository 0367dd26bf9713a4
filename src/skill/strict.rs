//! Converts a skill to the literal Agent Skills specification: Skillbox keys move from SKILL.md to skill.toml.

use serde::Serialize;

use crate::skill::document::SkillMdError;
use crate::skill::{Declaration, Dialect, Manifest, fields, yaml};

/// The two files of a converted skill.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StrictSkill {
    /// Name in SKILL.md; the folder must have it, too.
    pub name: String,
    pub skill_md: String,
    /// `None` if the skill has no Skillbox keys.
    pub skill_toml: Option<String>,
}

/// Keys of the front matter in the usual order.
#[derive(Debug, Serialize)]
struct FrontMatter<'a> {
    name: &'a str,
    description: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    license: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    compatibility: Option<String>,
    #[serde(rename = "allowed-tools", skip_serializing_if = "Option::is_none")]
    allowed_tools: Option<&'a str>,
    #[serde(skip_serializing_if = "std::collections::BTreeMap::is_empty")]
    metadata: &'a std::collections::BTreeMap<String, String>,
}

impl Declaration<'_> {
    /// Converts a skill. Unknown keys become text in `metadata`.
    pub fn strict(&self) -> Result<StrictSkill, SkillMdError> {
        let mut manifest = self.manifest()?;
        let document = self.document()?;
        let front_matter = document.as_ref().map(|document| &*document.front_matter);
        let known = |key: &str| {
            let ours = fields::RUNTIME_KEYS
                .iter()
                .filter_map(|known| known.split('.').next());
            fields::AGENT_SKILLS_KEYS
                .into_iter()
                .chain(ours)
                .any(|known| known == key)
                || key == "language"
        };
        let written = front_matter.map(fields::entries).transpose();
        for (key, node) in written.ok().flatten().unwrap_or_default() {
            if !known(&key) {
                manifest.metadata.entry(key).or_insert_with(|| node.to_text());
            }
        }
        let name = strict_name(&manifest);
        let skill_toml = self.skill_toml_of(&manifest, &name, front_matter)?;
        Ok(StrictSkill {
            skill_md: skill_md(&manifest, &name)?,
            name,
            skill_toml,
        })
    }

    /// All Skillbox keys, in one file.
    fn skill_toml_of(
        &self,
        manifest: &Manifest,
        name: &str,
        front_matter: Option<&str>,
    ) -> Result<Option<String>, SkillMdError> {
        let fields = fields::Fields::read(front_matter, self.skill_toml)?;
        let mut table = toml::Table::new();
        if name != manifest.name.as_str() {
            table.insert("name".to_owned(), manifest.name.as_str().into());
        }
        for key in fields::RUNTIME_KEYS {
            // An invalid version stays text of the author.
            let is_meant = key != "version" || manifest.version.is_some();
            if let (true, Some(field)) = (is_meant, fields.field(key)) {
                let value = toml_value(key, &field.node);
                match key.split_once('.') {
                    None => drop(table.insert(key.to_owned(), value)),
                    Some((group, key)) => {
                        let group = table.entry(group).or_insert_with(|| toml::Table::new().into());
                        if let Some(group) = group.as_table_mut() {
                            group.insert(key.to_owned(), value);
                        }
                    }
                }
            }
        }
        if table.is_empty() && self.skill_toml.is_none() {
            return Ok(None);
        }
        // With a skill.toml, `code/` would become the called module.
        if let (Dialect::Program, false, Some(entrypoint)) = (
            manifest.dialect,
            manifest.modules.is_empty(),
            &manifest.entrypoint,
        ) {
            table.insert("entrypoint".to_owned(), entrypoint.as_str().into());
        }
        toml::to_string_pretty(&table)
            .map(Some)
            .map_err(|error| SkillMdError::new(None, error.to_string()))
    }
}

/// The specification allows no dots and no double hyphens.
fn strict_name(manifest: &Manifest) -> String {
    let mut name = String::new();
    for c in manifest
        .name
        .as_str()
        .chars()
        .map(|c| if c == '.' { '-' } else { c })
    {
        if c != '-' || !name.ends_with('-') {
            name.push(c);
        }
    }
    name.trim_end_matches('-').to_owned()
}

fn skill_md(manifest: &Manifest, name: &str) -> Result<String, SkillMdError> {
    let front_matter = FrontMatter {
        name,
        description: &manifest.description,
        license: manifest.license.as_deref().filter(|text| !text.is_empty()),
        compatibility: manifest
            .compatibility
            .as_deref()
            .filter(|text| !text.is_empty())
            .map(cut),
        allowed_tools: manifest.allowed_tools.as_deref(),
        metadata: &manifest.metadata,
    };
    let yaml =
        serde_saphyr::to_string(&front_matter).map_err(|error| SkillMdError::new(None, error.to_string()))?;
    Ok(format!(
        "---\n{}\n---\n\n{}\n",
        yaml.trim_end(),
        manifest.instructions
    ))
}

fn cut(text: &str) -> String {
    text.chars()
        .take(crate::limits::COMPATIBILITY_CHARS_MAX)
        .collect()
}

/// A literal text, or a list or mapping of such; numbers in a schema stay numbers.
fn toml_value(key: &str, node: &yaml::Node) -> toml::Value {
    if key.ends_with("_schema") {
        let schema = node.to_json();
        return of_json(&schema).unwrap_or_else(|| schema.to_string().into());
    }
    match &node.value {
        yaml::Value::Null | yaml::Value::Scalar { .. } => node.to_text().into(),
        yaml::Value::List(items) => items
            .iter()
            .map(|item| toml_value(key, item))
            .collect::<Vec<_>>()
            .into(),
        yaml::Value::Map(entries) => {
            let entries = entries
                .iter()
                .map(|(name, node)| (name.clone(), toml_value(key, node)));
            entries.collect::<toml::Table>().into()
        }
    }
}

/// The TOML value; `None` for `null` and for numbers that TOML lacks.
fn of_json(value: &serde_json::Value) -> Option<toml::Value> {
    Some(match value {
        serde_json::Value::Null => return None,
        serde_json::Value::Bool(truth) => (*truth).into(),
        serde_json::Value::Number(number) => of_number(number)?,
        serde_json::Value::String(text) => text.as_str().into(),
        serde_json::Value::Array(items) => items.iter().map(of_json).collect::<Option<Vec<_>>>()?.into(),
        serde_json::Value::Object(members) => {
            let members = members
                .iter()
                .map(|(key, value)| Some((key.clone(), of_json(value)?)));
            members.collect::<Option<toml::Table>>()?.into()
        }
    })
}

/// The same number: integers of 64 bits, and floats that are parsed as they are written.
fn of_number(number: &serde_json::Number) -> Option<toml::Value> {
    let text = number.to_string();
    if let Some(integer) = number.as_i64().filter(|integer| integer.to_string() == text) {
        return Some(integer.into());
    }
    let float = number.as_f64()?;
    let same = serde_json::Number::from_f64(float)?.to_string() == text;
    same.then(|| float.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::skill::{RuleSet, lint};

    const FILES: [&str; 3] = ["SKILL.md", "code/sync.py", "scripts/main.py"];

    fn declaration(skill_md: &str) -> Declaration<'_> {
        Declaration {
            skill_md: Some(skill_md.as_bytes()),
            files: &FILES,
            ..Declaration::default()
        }
    }

    /// The export of an export is the same, means the same, and pleases the strict verdict.
    #[test]
    fn moves_own_fields_without_changing_their_meaning() {
        let mixed = "---\nname: Sales.Leads\ndescription: \"Syncs: leads\"\nversion: 1.2.0\nlang: python\ntimeout: 1.5\nresources: {memory: 256Mi}\n\
                     input_schema: {type: object, properties: {n: {minimum: 0.5}}}\nargument-hint: x\nmetadata:\n  a: [1]\n  skillbox.image: python:3.11-slim\n---\nDo *it*.\n";
        let first = declaration(mixed);
        let strict = first.strict().unwrap();
        insta::assert_snapshot!(format!(
            "{}\n{}",
            strict.skill_md,
            strict.skill_toml.as_deref().unwrap()
        ));
        let second = Declaration {
            skill_md: Some(strict.skill_md.as_bytes()),
            skill_toml: strict.skill_toml.as_deref().map(str::as_bytes),
            fallback_name: Some(&strict.name),
            ..first
        };
        let complaints = lint(&second);
        assert!(
            complaints
                .iter()
                .all(|finding| finding.rule_set != RuleSet::AgentSkills),
            "{complaints:?}"
        );
        assert_eq!(second.strict().unwrap(), strict);
        let (before, after) = (first.manifest().unwrap(), second.manifest().unwrap());
        let meaning = |manifest: &Manifest| {
            let mut value = serde_json::to_value(manifest).unwrap();
            for told in ["origins", "warnings", "metadata"] {
                value.as_object_mut().unwrap().remove(told);
            }
            value
        };
        assert_eq!(meaning(&after), meaning(&before));
    }

    #[test]
    fn preserves_schemas_that_toml_cannot_express() {
        for schema in [
            r#"{"enum":[null,1]}"#,
            r#"{"const":null,"type":["object","null"]}"#,
            r#"{"properties":{"a":{"default":null}}}"#,
            r#"{"maximum":18446744073709551615}"#,
            r#"{"maximum":123456789012345678901234567890}"#,
            r#"{"enum":[1.0,0.5,1e2,-9223372036854775808]}"#,
            r#"{"enum":["","null",[],{}]}"#,
        ] {
            let skill_md = format!(
                "---\nname: a\ndescription: Adds.\nlang: python\ninput_schema: {schema}\n---\nBody\n"
            );
            let first = declaration(&skill_md);
            let strict = first.strict().unwrap();
            let second = Declaration {
                skill_md: Some(strict.skill_md.as_bytes()),
                skill_toml: strict.skill_toml.as_deref().map(str::as_bytes),
                ..first
            };
            let (before, after) = (first.manifest().unwrap(), second.manifest().unwrap());
            let text = |manifest: &Manifest| manifest.input_schema.as_ref().unwrap().to_string();
            assert_eq!(text(&after), text(&before), "{:?}", strict.skill_toml);
            assert_eq!(before.input_schema, serde_json::from_str(schema).ok(), "{schema}");
        }
    }

    #[test]
    fn leaves_strict_skill_unchanged() {
        let clean = "---\nname: a\ndescription: Adds.\nlicense: MIT\n---\n\nBody\n";
        let strict = declaration(clean).strict().unwrap();
        assert_eq!((strict.skill_md.as_str(), strict.skill_toml), (clean, None));
    }
}
