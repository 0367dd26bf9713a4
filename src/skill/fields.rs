//! The fields of a declaration, wherever they are declared, with line and origin.

use std::collections::BTreeMap;

use crate::error::quoted;
use crate::limits;
use crate::skill::document::{File, SkillMdError};
use crate::skill::ignored_keys::IgnoredKeys;
use crate::skill::{Origin, Schema, Warning, foreign, repair, skill_toml, yaml};

/// The keys of the Agent Skills specification.
pub(super) const AGENT_SKILLS_KEYS: [&str; 6] = [
    "name",
    "description",
    "license",
    "compatibility",
    "metadata",
    "allowed-tools",
];

/// Skillbox keys: in `skill.toml`, in `metadata` as `skillbox.<key>`, or at the top level.
pub(super) const RUNTIME_KEYS: [&str; 13] = [
    "version",
    "lang",
    "image",
    "entrypoint",
    "export",
    "timeout",
    "resources.memory",
    "resources.cpu",
    "resources.disk",
    "input_schema",
    "output_schema",
    "permissions.secrets",
    "permissions.network",
];

/// Skillbox keys that contain others.
const GROUPS: [(&str, &str); 2] = [
    ("resources", "a mapping of `memory`, `cpu`, `disk`"),
    ("permissions", "a mapping of `secrets`, `network`"),
];

#[derive(Debug, Default)]
pub(super) struct Fields {
    known: BTreeMap<&'static str, Field>,
    /// The author's own `metadata`, as text.
    pub(super) metadata: BTreeMap<String, String>,
    /// Warnings about ignored values.
    pub(super) warnings: Vec<Warning>,
    /// Fields that cannot be read.
    pub(super) errors: Vec<SkillMdError>,
    ignored: IgnoredKeys,
}

/// A value and its origin.
#[derive(Debug, Clone)]
pub(super) struct Field {
    pub(super) node: yaml::Node,
    pub(super) origin: Origin,
}

impl Fields {
    /// Reads both files. `skill.toml` has precedence over `metadata`, and that over the top level.
    ///
    /// # Errors
    ///
    /// A file is no valid YAML or TOML.
    pub(super) fn read(front_matter: Option<&str>, toml: Option<&[u8]>) -> Result<Self, SkillMdError> {
        let mut fields = Self::default();
        let written = front_matter.map(|text| fields.front_matter(text)).transpose()?;
        let mut ours = Runtime::new();
        let mut top = Runtime::new();
        for (key, node) in written.unwrap_or_default() {
            if key == "metadata" {
                fields.take_metadata(node, &mut ours);
            } else {
                fields.take(&key, node, Origin::FrontMatter, &mut top);
            }
        }
        let mut declared = Runtime::new();
        for (key, node) in toml.map(skill_toml::entries).transpose()?.unwrap_or_default() {
            match (key.as_str(), &node.value) {
                ("metadata", yaml::Value::Map(own)) => {
                    let own = own.iter().map(|(key, node)| (key.clone(), node.to_text()));
                    fields.metadata.extend(own);
                }
                _ => fields.take(&key, node, Origin::SkillToml, &mut declared),
            }
        }
        for told in std::mem::take(&mut fields.ignored).warnings() {
            fields.warn_of(told.origin, told.line, told.message);
        }
        for (origin, found) in [
            (Origin::FrontMatter, top),
            (Origin::Metadata, ours),
            (Origin::SkillToml, declared),
        ] {
            let fields_of = found.into_iter().map(|(key, node)| (key, Field { node, origin }));
            fields.known.extend(fields_of.filter(|(key, field)| {
                let is_blank = *key == "description" && field.node.to_text().is_empty();
                !is_blank && field.node.value != yaml::Value::Null
            }));
        }
        Ok(fields)
    }

    /// The top level of a front matter. Texts that need quotes are repaired.
    fn front_matter(&mut self, text: &str) -> Result<Vec<(String, yaml::Node)>, SkillMdError> {
        let refused = match entries(text) {
            Ok(entries) => return Ok(entries),
            Err(refused) => refused,
        };
        let repaired = repair::repair(text).ok_or_else(|| refused.clone())?;
        let entries = entries(&repaired.front_matter).map_err(|_| refused)?;
        for (key, line) in repaired.quoted {
            self.warn(
                line,
                format!("`{key}` is invalid YAML and is read as text; put its value in quotes"),
            );
        }
        Ok(entries)
    }

    fn take_metadata(&mut self, node: yaml::Node, ours: &mut Runtime) {
        let entries = match node.value {
            yaml::Value::Map(entries) => entries,
            yaml::Value::Null => return,
            _ => {
                let kind = node.kind();
                self.warn(
                    node.line,
                    format!("`metadata` is ignored: it is {kind}, not a mapping of keys to text"),
                );
                return;
            }
        };
        for (key, node) in entries {
            if let Some(key) = key.strip_prefix("skillbox.") {
                self.take(key, node, Origin::Metadata, ours);
            } else if let (true, yaml::Value::Map(nested)) = (key == "skillbox", &node.value) {
                for (key, node) in nested.clone() {
                    self.take(&key, node, Origin::Metadata, ours);
                }
            } else {
                self.metadata.insert(key, node.to_text());
            }
        }
    }

    fn take(&mut self, key: &str, node: yaml::Node, origin: Origin, into: &mut Runtime) {
        let line = node.line;
        if let Some((_, wanted)) = GROUPS.into_iter().find(|(group, _)| *group == key) {
            match node.value {
                yaml::Value::Map(nested) => {
                    for (name, node) in nested {
                        self.take(&format!("{key}.{name}"), node, origin, &mut *into);
                    }
                }
                yaml::Value::Null => {}
                // Other products have fields of that name with other types.
                _ if foreign::is_other_group(&node, origin) => {
                    let kind = node.kind();
                    self.warn_of(
                        origin,
                        line,
                        format!("`{key}` is ignored: it is {kind}, not {wanted}"),
                    );
                }
                _ => self
                    .errors
                    .push(unfit(key, &node, wanted).in_file(file_of(origin))),
            }
            return;
        }
        if let (Origin::FrontMatter, Some(wanted)) = (origin, foreign::wanted_instead(key, &node)) {
            let text = quoted(&node.to_text());
            self.warn(line, format!("`{key}` {text} is ignored: it is {wanted}"));
            return;
        }
        let key = if key == "language" { "lang" } else { key };
        let mut spoken = AGENT_SKILLS_KEYS
            .into_iter()
            .filter(|_| origin != Origin::Metadata);
        let known = spoken
            .find(|known| *known == key)
            .or_else(|| RUNTIME_KEYS.into_iter().find(|known| *known == key));
        let Some(known) = known else {
            self.ignored.add(key, origin, line);
            return;
        };
        if into.insert(known, node).is_some() {
            self.errors.push(twice(known, line).in_file(file_of(origin)));
        }
    }

    /// Adds a warning up to a limit, since a hostile file must not become a large record.
    pub(super) fn warn(&mut self, line: impl Into<Option<u32>>, message: String) {
        if self.warnings.len() < limits::WARNINGS_MAX {
            self.warnings.push(Warning {
                line: line.into(),
                message,
            });
        }
    }

    /// A warning about one of the files. Its line refers to SKILL.md, or is in the text.
    pub(super) fn warn_of(&mut self, origin: Origin, line: u32, message: String) {
        match origin {
            Origin::SkillToml => self.warn(None, format!("skill.toml, line {line}: {message}")),
            Origin::Metadata | Origin::FrontMatter | Origin::Inferred => self.warn(line, message),
        }
    }

    pub(super) fn origins(&self) -> BTreeMap<String, Origin> {
        let told = |(key, field): (&&str, &Field)| ((*key).to_owned(), field.origin);
        self.known.iter().map(told).collect()
    }

    /// A field with a value.
    pub(super) fn field(&self, key: &str) -> Option<&Field> {
        self.known.get(key)
    }

    /// An error that names a field and its place.
    pub(super) fn refuse(&self, key: &str, message: String) -> SkillMdError {
        match self.known.get(key) {
            Some(field) => SkillMdError::new(field.node.line, message).in_file(field.file()),
            None => SkillMdError::new(None, message),
        }
    }

    /// A trimmed text for humans. Other values are written as JSON.
    pub(super) fn words(&mut self, key: &str) -> Option<String> {
        let field = self.known.get(key)?.clone();
        if let yaml::Value::Map(_) | yaml::Value::List(_) = field.node.value {
            let kind = field.node.kind();
            self.warn_of(
                field.origin,
                field.node.line,
                format!("`{key}` is {kind} and is stored as text"),
            );
        }
        Some(field.node.to_text().trim().to_owned())
    }

    /// A literal text: `"bash:5 "` is not `bash:5` (S-35). Numbers count as written.
    pub(super) fn exact(&self, key: &str) -> Result<Option<&str>, SkillMdError> {
        self.known
            .get(key)
            .map(|field| match &field.node.value {
                yaml::Value::Scalar { text, .. } => Ok(text.as_str()),
                _ => Err(field.unfit(key, "text")),
            })
            .transpose()
    }

    /// A literal text that `parse` accepts.
    pub(super) fn parsed<T, E: std::fmt::Display>(
        &self,
        key: &str,
        parse: impl Fn(&str) -> Result<T, E>,
    ) -> Result<Option<T>, SkillMdError> {
        let Some(text) = self.exact(key)? else {
            return Ok(None);
        };
        let refused = |rule| self.refuse(key, format!("`{key}` {}: {rule}", quoted(text)));
        parse(text).map(Some).map_err(refused)
    }

    /// A text or a list of texts, joined by `, `.
    pub(super) fn joined(&mut self, key: &str) -> Option<String> {
        match self.texts(key) {
            Ok(texts) => texts.map(|texts| texts.join(", ")),
            Err(_) => self.words(key),
        }
    }

    /// A text, a list of texts, or a list of mappings with a `name`.
    pub(super) fn texts(&self, key: &str) -> Result<Option<Vec<String>>, SkillMdError> {
        let Some(field) = self.known.get(key) else {
            return Ok(None);
        };
        let named = |item: &yaml::Node| match &item.value {
            yaml::Value::Scalar { text, .. } => Some(text.clone()),
            yaml::Value::Map(entries) => {
                let name = entries.iter().find(|(key, _)| key == "name")?;
                Some(name.1.to_text())
            }
            yaml::Value::List(_) | yaml::Value::Null => None,
        };
        let items = match &field.node.value {
            yaml::Value::List(items) => items.as_slice(),
            yaml::Value::Scalar { .. } | yaml::Value::Map(_) | yaml::Value::Null => {
                std::slice::from_ref(&field.node)
            }
        };
        let texts: Option<Vec<_>> = items.iter().map(named).collect();
        texts
            .map(Some)
            .ok_or_else(|| field.unfit(key, "text or a list of texts"))
    }

    /// A JSON Schema, as a mapping or as JSON text.
    pub(super) fn schema(&self, key: &str) -> Result<Option<serde_json::Value>, SkillMdError> {
        let Some(field) = self.known.get(key) else {
            return Ok(None);
        };
        let schema = match &field.node.value {
            yaml::Value::Scalar { text, .. } => {
                serde_json::from_str(text).map_err(|_| field.unfit(key, "a JSON Schema"))?
            }
            _ => field.node.to_json(),
        };
        if !schema.is_object() {
            return Err(field.unfit(key, "a JSON Schema (a mapping)"));
        }
        match Schema::compile(&schema) {
            Ok(_) => Ok(Some(schema)),
            Err(rule) => Err(self.refuse(key, format!("`{key}` is no valid JSON Schema: {rule}"))),
        }
    }
}

fn file_of(origin: Origin) -> File {
    match origin {
        Origin::SkillToml => File::SkillToml,
        Origin::Metadata | Origin::FrontMatter | Origin::Inferred => File::SkillMd,
    }
}

impl Field {
    fn file(&self) -> File {
        file_of(self.origin)
    }

    fn unfit(&self, key: &str, wanted: &str) -> SkillMdError {
        unfit(key, &self.node, wanted).in_file(self.file())
    }
}

type Runtime = BTreeMap<&'static str, yaml::Node>;

pub(super) fn entries(front_matter: &str) -> Result<Vec<(String, yaml::Node)>, SkillMdError> {
    let root = yaml::parse(front_matter).map_err(|error| {
        let (reason, _) = error
            .message
            .split_once(": limits breached")
            .unwrap_or((&error.message, ""));
        let hint = if reason.contains("mapping values") {
            "; put a value that contains `: ` in quotes"
        } else if reason.starts_with("tab") || reason.ends_with("a tab") {
            "; indent with spaces"
        } else {
            ""
        };
        SkillMdError::new(
            error.line,
            format!("the front matter is not valid YAML: {}{hint}", quoted(reason)),
        )
    })?;
    match root.value {
        yaml::Value::Map(entries) => Ok(entries),
        yaml::Value::Null => Ok(Vec::new()),
        _ => Err(SkillMdError::new(
            root.line,
            "the front matter must be lines of `key: value`",
        )),
    }
}

fn unfit(key: &str, node: &yaml::Node, wanted: &str) -> SkillMdError {
    SkillMdError::new(
        node.line,
        format!("`{key}` must be {wanted}, but is {}", node.kind()),
    )
}

fn twice(key: &str, line: u32) -> SkillMdError {
    SkillMdError::new(line, format!("`{key}` is declared twice; remove one"))
}
