//! Reads a configuration file as text values of known settings.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use serde_json::Value as Json;

use super::error::Error;
use super::layers::SettingValue;
use super::settings::{self, SETTINGS, SettingKind};
use crate::error::did_you_mean;
use crate::limits;

/// A setting of a file.
pub(super) struct FileSetting {
    pub(super) key: &'static str,
    pub(super) value: SettingValue,
    /// Where it stands, if that is known.
    pub(super) line: Option<usize>,
}

type FileSettings = Vec<FileSetting>;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConfigFile {
    /// Read if it exists.
    Optional(PathBuf),
    /// Named by the user: must exist.
    Required(PathBuf),
}

impl ConfigFile {
    pub(super) fn path(&self) -> &Path {
        match self {
            Self::Optional(path) | Self::Required(path) => path,
        }
    }
}

/// Reads a file. A missing optional file sets nothing; unknown keys are errors.
pub(super) fn read(file: &ConfigFile) -> Result<FileSettings, Error> {
    let path = file.path();
    let text = match (read_text(path), file) {
        (Ok(text), _) => text,
        (Err(error), ConfigFile::Optional(_))
            if matches!(
                error.kind(),
                io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
            ) =>
        {
            return Ok(FileSettings::new());
        }
        (Err(error), _) => return Err(Error::new(path.display(), format!("cannot be read ({error})"))),
    };
    parse(&text).map_err(|problem| Error::new(path.display(), problem))
}

fn read_text(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    let mut file = File::open(path)?.take(limits::CONFIG_BYTES_MAX + 1);
    file.read_to_string(&mut text)?;
    if text.len() as u64 > limits::CONFIG_BYTES_MAX {
        let message = format!("larger than {} KiB", limits::CONFIG_BYTES_MAX / limits::KIB);
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, message));
    }
    Ok(text)
}

/// The settings of a file, with every scalar as text.
fn parse(text: &str) -> Result<FileSettings, String> {
    if text.trim().is_empty() {
        return Ok(FileSettings::new());
    }
    let tree: Json = serde_saphyr::from_str_with_options(text, options()).map_err(|error| {
        use serde_saphyr::MessageFormatter as _;
        let line = error
            .location()
            .map(|at| format!("line {}: ", at.line()))
            .unwrap_or_default();
        let message = serde_saphyr::UserMessageFormatter
            .format_message(error.without_snippet())
            .into_owned();
        format!("{line}{message}")
    })?;
    match tree {
        Json::Null => Ok(FileSettings::new()),
        Json::Object(members) => {
            let mut settings = FileSettings::new();
            read_members(&members, "", &mut settings).map_err(|problem| with_line(text, &problem))?;
            for setting in &mut settings {
                setting.line = line_of(text, setting.key);
            }
            Ok(settings)
        }
        Json::Bool(_) | Json::Number(_) | Json::String(_) | Json::Array(_) => {
            Err("must be a mapping of settings, such as `api: {port: 8080}`".to_owned())
        }
    }
}

/// Adds the line of the key that the problem names first, if it is found.
fn with_line(text: &str, problem: &str) -> String {
    let named = problem.split('`').nth(1).unwrap_or_default();
    line_of(text, named).map_or_else(|| problem.to_owned(), |line| format!("line {line}: {problem}"))
}

/// The line on which a key stands in block style, or the mapping in braces that holds it.
fn line_of(text: &str, key: &str) -> Option<usize> {
    // The keys above a line with their indentation.
    let mut above: Vec<(usize, &str)> = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        let content = line.trim_start();
        let Some((name, value)) = content.split_once(':').filter(|_| !content.starts_with('#')) else {
            continue;
        };
        let indentation = line.len() - content.len();
        while above.last().is_some_and(|(other, _)| *other >= indentation) {
            above.pop();
        }
        above.push((indentation, name.trim().trim_matches(['"', '\''])));
        let path: Vec<_> = above.iter().map(|(_, name)| *name).collect();
        let rest = key.strip_prefix(&path.join("."));
        let is_in_braces =
            value.trim_start().starts_with('{') && rest.is_some_and(|rest| rest.starts_with('.'));
        if rest == Some("") || is_in_braces {
            return Some(number);
        }
    }
    None
}

fn options() -> serde_saphyr::Options {
    serde_saphyr::options! {
        budget: serde_saphyr::budget! {
            max_events: limits::YAML_EVENTS_MAX,
            max_nodes: limits::YAML_EVENTS_MAX,
            max_depth: limits::YAML_DEPTH_MAX,
            max_aliases: 0,
            max_anchors: 0,
        },
        duplicate_keys: serde_saphyr::DuplicateKeyPolicy::Error,
        merge_keys: serde_saphyr::MergeKeyPolicy::Error,
        reject_unsupported_tags: true,
        strict_booleans: true,
        with_snippet: false,
    }
}

fn read_members(
    members: &serde_json::Map<String, Json>,
    above: &str,
    settings: &mut FileSettings,
) -> Result<(), String> {
    for (name, value) in members {
        let key = if above.is_empty() {
            name.clone()
        } else {
            format!("{above}.{name}")
        };
        read_member(&key, value, settings)?;
    }
    Ok(())
}

/// A setting or a mapping without a value sets nothing.
fn read_member(key: &str, value: &Json, settings: &mut FileSettings) -> Result<(), String> {
    if let Some(setting) = settings::of_key(key) {
        let value = match (setting.kind, value) {
            (_, Json::Null) => return Ok(()),
            (SettingKind::List, Json::Array(items)) => {
                let items: Option<Vec<String>> = items.iter().map(scalar).collect();
                SettingValue::List(items.ok_or_else(|| format!("{key} must be a list of texts"))?)
            }
            (SettingKind::List, _) => return Err(format!("{key} must be a list, such as `[a, b]`")),
            (SettingKind::Text | SettingKind::Secret, value) => {
                SettingValue::Text(scalar(value).ok_or_else(|| format!("{key} must be one value"))?)
            }
        };
        settings.push(FileSetting {
            key: setting.key,
            value,
            line: None,
        });
        return Ok(());
    }
    let inside = format!("{key}.");
    let first = SETTINGS
        .iter()
        .find_map(|setting| setting.key.strip_prefix(&inside));
    match (first, value) {
        (None, _) => {
            let meant = did_you_mean(key, SETTINGS.iter().map(|setting| setting.key));
            Err(format!(
                "unknown key `{key}`{meant}; `skillbox config` lists all settings"
            ))
        }
        (Some(_), Json::Null) => Ok(()),
        (Some(_), Json::Object(members)) => read_members(members, key, settings),
        (Some(first), _) => Err(format!("`{key}` must hold settings, such as `{first}: …`")),
    }
}

fn scalar(value: &Json) -> Option<String> {
    match value {
        Json::String(text) => Some(text.clone()),
        Json::Number(number) => Some(number.to_string()),
        Json::Bool(flag) => Some(flag.to_string()),
        Json::Null | Json::Array(_) | Json::Object(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accepts_empty_and_partial_files() {
        for text in [
            "",
            "\n# nothing yet\n",
            "api:\n  port: 9000\n",
            "allowed_hosts: [a, b]\n",
            "sandbox:\n  images: {node: 'n:1'}\n",
            "api_key:\n",
            "api:\n  # port: 9000\n",
        ] {
            assert!(parse(text).is_ok(), "{text:?}");
        }
    }

    /// F-24.
    #[test]
    fn names_unknown_key() {
        for (text, key) in [
            ("prot: 1", "`prot`"),
            ("api: {prot: 1}", "`api.prot`"),
            ("sandbox: {images: {ruby: x}}", "`sandbox.images.ruby`"),
            ("api: 8080", "`api`"),
        ] {
            let refused = parse(text).err().unwrap();
            assert!(refused.contains(key), "{refused}");
        }
    }

    #[test]
    fn suggests_similar_key_and_names_its_line() {
        let refused = parse("api:\n  host: 127.0.0.1\n  prot: 1\n").err().unwrap();
        assert!(refused.starts_with("line 3: unknown key `api.prot`"), "{refused}");
        assert!(refused.contains("did you mean `api.port`?"), "{refused}");
        let refused = parse("zzz: 1\n").err().unwrap();
        assert!(!refused.contains("did you mean"), "{refused}");
    }

    #[test]
    fn finds_line_of_nested_key() {
        let text =
            "# first\nlimits:\n  memory: 1Gi # more\npool:\n  'memory': 64Mi\n  slots: 4\napi: {port: 1}\n";
        for (key, line) in [
            ("limits.memory", Some(3)),
            ("pool.memory", Some(5)),
            ("pool.slots", Some(6)),
            ("api.port", Some(7)),
            ("pool", Some(4)),
            ("limits.cpu", None),
        ] {
            assert_eq!(line_of(text, key), line, "{key}");
        }
    }

    #[test]
    fn rejects_yaml_beyond_plain_settings() {
        let bomb = "a: &a [x, x]\nb: [*a, *a]\n";
        for text in [
            "- a",
            "text",
            "api: {port: 1, port: 2}",
            "api: {port: [1]}",
            "allowed_hosts: a",
            "api: [",
            bomb,
            "a: !!python/object x",
        ] {
            assert!(parse(text).is_err(), "{text:?}");
        }
    }
}
