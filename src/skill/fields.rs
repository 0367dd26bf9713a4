//! The fields of a front matter, wherever the author put them: each read once, with its line.

use std::collections::BTreeMap;

use crate::error::quoted;
use crate::limits;
use crate::skill::{Warning, document::SkillMdError, yaml};

/// The keys of the Agent Skills specification.
pub(super) const AGENT_SKILLS_KEYS: [&str; 6] = [
    "name",
    "description",
    "license",
    "compatibility",
    "metadata",
    "allowed-tools",
];

/// Our own keys: at the top level, or in `metadata` as `skillbox.<key>`, which wins.
const RUNTIME_KEYS: [&str; 11] = [
    "version",
    "lang",
    "image",
    "entrypoint",
    "timeout",
    "resources.memory",
    "resources.cpu",
    "resources.disk",
    "permissions.secrets",
    "input_schema",
    "output_schema",
];

/// Everything a front matter says.
#[derive(Debug, Default)]
pub(super) struct Fields {
    known: BTreeMap<&'static str, yaml::Node>,
    /// The author's own `metadata`, as text.
    pub(super) metadata: BTreeMap<String, String>,
    /// What was passed over.
    pub(super) warnings: Vec<Warning>,
}

impl Fields {
    /// Reads the YAML and sorts its keys.
    pub(super) fn read(front_matter: &str) -> Result<Self, SkillMdError> {
        let mut fields = Self::default();
        let mut ours = BTreeMap::new();
        for (key, node) in entries(front_matter)? {
            if key == "metadata" {
                fields.take_metadata(node, &mut ours)?;
            } else if let Some(known) = AGENT_SKILLS_KEYS.into_iter().find(|known| *known == key) {
                fields.known.insert(known, node);
            } else {
                let mut found = BTreeMap::new();
                fields.take_runtime(&key, node, &mut found)?;
                for (key, node) in found {
                    let line = node.line;
                    if fields.known.insert(key, node).is_some() {
                        return Err(twice(key, line));
                    }
                }
            }
        }
        fields.known.extend(ours);
        fields.known.retain(|_, node| node.value != yaml::Value::Null);
        Ok(fields)
    }

    fn take_metadata(&mut self, node: yaml::Node, ours: &mut Runtime) -> Result<(), SkillMdError> {
        let entries = match node.value {
            yaml::Value::Map(entries) => entries,
            yaml::Value::Null => return Ok(()),
            _ => return Err(unfit("metadata", &node, "a mapping of keys to text")),
        };
        for (key, node) in entries {
            if let Some(key) = key.strip_prefix("skillbox.") {
                self.take_runtime(key, node, ours)?;
            } else if let (true, yaml::Value::Map(nested)) = (key == "skillbox", &node.value) {
                for (key, node) in nested.clone() {
                    self.take_runtime(&key, node, ours)?;
                }
            } else {
                let text = match node.value {
                    yaml::Value::Scalar { text, .. } => text,
                    _ => node.to_json().to_string(),
                };
                self.metadata.insert(key, text);
            }
        }
        Ok(())
    }

    fn take_runtime(&mut self, key: &str, node: yaml::Node, into: &mut Runtime) -> Result<(), SkillMdError> {
        let line = node.line;
        match (key, node.value) {
            ("resources" | "permissions", yaml::Value::Map(nested)) => {
                for (inner, node) in nested {
                    self.take_runtime(&format!("{key}.{inner}"), node, into)?;
                }
            }
            ("resources" | "permissions", yaml::Value::Null) => {}
            ("permissions", value) => {
                let node = yaml::Node { line, value };
                return Err(unfit("permissions", &node, "a mapping with `secrets`"));
            }
            ("resources", value) => {
                return Err(unfit(
                    "resources",
                    &yaml::Node { line, value },
                    "a mapping of `memory`, `cpu`, `disk`",
                ));
            }
            (key, value) => {
                let key = if key == "language" { "lang" } else { key };
                let Some(known) = RUNTIME_KEYS.into_iter().find(|known| *known == key) else {
                    self.warn(
                        line,
                        format!(
                            "unknown key {} is ignored; check its spelling or move it into `metadata`",
                            quoted(key)
                        ),
                    );
                    return Ok(());
                };
                if into.insert(known, yaml::Node { line, value }).is_some() {
                    return Err(twice(known, line));
                }
            }
        }
        Ok(())
    }

    /// Keeps a warning, up to a bound: a hostile file must not become a large record.
    pub(super) fn warn(&mut self, line: impl Into<Option<u32>>, message: String) {
        if self.warnings.len() < limits::WARNINGS_MAX {
            self.warnings.push(Warning {
                line: line.into(),
                message,
            });
        }
    }

    /// The line of a field that is there.
    pub(super) fn line(&self, key: &str) -> Option<u32> {
        self.known.get(key).map(|node| node.line)
    }

    /// A field for people, without the white space around it.
    pub(super) fn text(&self, key: &str) -> Result<Option<&str>, SkillMdError> {
        Ok(self.exact(key)?.map(str::trim))
    }

    /// A field that must be text, to the letter: `"bash:5 "` is not `bash:5` (S-35). Numbers and the like count as they are written.
    pub(super) fn exact(&self, key: &str) -> Result<Option<&str>, SkillMdError> {
        self.known
            .get(key)
            .map(|node| match &node.value {
                yaml::Value::Scalar { text, .. } => Ok(text.as_str()),
                _ => Err(unfit(key, node, "text")),
            })
            .transpose()
    }

    /// A field that must be text that `parse` takes, to the letter.
    pub(super) fn parsed<T, E: std::fmt::Display>(
        &self,
        key: &str,
        parse: impl Fn(&str) -> Result<T, E>,
    ) -> Result<Option<T>, SkillMdError> {
        let Some(text) = self.exact(key)? else {
            return Ok(None);
        };
        let refused = |rule| SkillMdError::new(self.line(key), format!("`{key}` {}: {rule}", quoted(text)));
        parse(text).map(Some).map_err(refused)
    }

    /// A field that may be text or a list of texts, which are joined by `, `.
    pub(super) fn list(&self, key: &str) -> Result<Option<String>, SkillMdError> {
        let Some(node) = self.known.get(key) else {
            return Ok(None);
        };
        let yaml::Value::List(items) = &node.value else {
            return Ok(self.text(key)?.map(str::to_owned));
        };
        let texts: Result<Vec<_>, _> = items
            .iter()
            .map(|item| match &item.value {
                yaml::Value::Scalar { text, .. } => Ok(text.as_str()),
                _ => Err(unfit(key, item, "text or a list of texts")),
            })
            .collect();
        Ok(Some(texts?.join(", ")))
    }

    /// A JSON Schema: a mapping, or JSON as text.
    pub(super) fn schema(&self, key: &str) -> Result<Option<serde_json::Value>, SkillMdError> {
        let Some(node) = self.known.get(key) else {
            return Ok(None);
        };
        let schema = match &node.value {
            yaml::Value::Scalar { text, .. } => {
                serde_json::from_str(text).map_err(|_| unfit(key, node, "a JSON Schema"))?
            }
            _ => node.to_json(),
        };
        if schema.is_object() {
            Ok(Some(schema))
        } else {
            Err(unfit(key, node, "a JSON Schema (a mapping)"))
        }
    }
}

type Runtime = BTreeMap<&'static str, yaml::Node>;

/// The top-level keys and values of a front matter.
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
    SkillMdError::new(line, format!("`{key}` is given twice; keep one of the two"))
}
