//! Layers of settings, in order of precedence: flags, variables, files, defaults.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

use super::error::Error;
use super::settings::{self, SETTINGS, Setting, SettingKind};
use super::yaml::{self, ConfigFile, FileSetting};
use crate::error::did_you_mean;

/// Sources of settings.
#[derive(Clone, Debug, Default)]
pub struct Sources {
    /// Files; later ones take precedence.
    pub files: Vec<ConfigFile>,
    /// Environment variables.
    pub variables: Vec<(OsString, OsString)>,
    /// Flags: the setting's key and its value.
    pub flags: Vec<(&'static str, String)>,
}

/// Variable that names a configuration file.
pub const FILE_VARIABLE: &str = "SKILLBOX_CONFIG";
const PREFIX: &str = "SKILLBOX_";
/// Variables of the project's own tests.
const TEST_PREFIX: &str = "SKILLBOX_TEST_";

/// Setting that OpenTelemetry's variable sets.
pub(super) const COLLECTOR: &str = "telemetry.otlp_endpoint";
/// OpenTelemetry's variable for the collector.
pub(super) const COLLECTOR_VARIABLE: &str = "OTEL_EXPORTER_OTLP_ENDPOINT";

impl Sources {
    /// The sources of this process. `file` replaces the one in the home folder.
    #[must_use]
    pub fn of_process(file: Option<PathBuf>, flags: Vec<(&'static str, String)>) -> Self {
        let named = file.or_else(|| {
            std::env::var_os(FILE_VARIABLE)
                .filter(|path| !path.is_empty())
                .map(PathBuf::from)
        });
        let own = match named {
            Some(file) => Some(ConfigFile::Required(file)),
            None => std::env::home_dir().map(|home| ConfigFile::Optional(home.join(".skillbox/config.yaml"))),
        };
        let system = ConfigFile::Optional(PathBuf::from("/etc/skillbox/config.yaml"));
        Self {
            files: std::iter::once(system).chain(own).collect(),
            variables: std::env::vars_os().collect(),
            flags,
        }
    }

    /// The value with the highest precedence of each setting.
    pub(super) fn merge(&self) -> Result<Layers, Error> {
        let mut layers = Layers::new();
        for setting in SETTINGS.iter().filter(|setting| !setting.default.is_empty()) {
            layers.insert(setting.key, Layered::parse(setting, setting.default, "default"));
        }
        for file in &self.files {
            let path = file.path().display();
            for FileSetting { key, value, line } in yaml::read(file)? {
                let origin = line.map_or_else(|| path.to_string(), |line| format!("{path}:{line}"));
                layers.insert(key, Layered { value, origin });
            }
        }
        for (setting, value, name) in self.variables()? {
            layers.insert(setting.key, Layered::parse(setting, &value, &name));
        }
        for (key, value) in &self.flags {
            let setting = settings::of_key(key).expect("flags exist for known settings only");
            layers.insert(setting.key, Layered::parse(setting, value, "command line"));
        }
        Ok(layers)
    }

    /// Variables of ours that name no setting, each with what may be meant (F-24). A server refuses to start with one.
    #[must_use]
    pub fn unknown_variables(&self) -> Vec<Error> {
        let own = self.variables.iter().filter_map(|(name, value)| own(name, value));
        let unknown = own.filter(|(name, _)| settings::of_variable(name).is_none());
        unknown
            .map(|(name, _)| {
                let meant = did_you_mean(name, SETTINGS.iter().map(|setting| setting.variable));
                Error::new(
                    name,
                    format!("unknown variable{meant}; `skillbox config` lists all settings"),
                )
            })
            .collect()
    }

    /// Settings from variables. Contradictory variables are rejected (F-24).
    fn variables(&self) -> Result<Vec<(&'static Setting, String, String)>, Error> {
        let mut found: Vec<(&Setting, String, String)> = Vec::new();
        for (name, value) in self.variables.iter().filter_map(|(name, value)| own(name, value)) {
            let Some(setting) = settings::of_variable(name) else {
                continue;
            };
            let value = value
                .to_str()
                .ok_or_else(|| Error::new(name, "is not UTF-8 text; set it again"))?;
            if let Some((_, other, twin)) = found.iter().find(|(known, ..)| known.key == setting.key)
                && other != value
            {
                return Err(Error::new(
                    setting.key,
                    format!("{twin} and {name} are contradictory; set only one"),
                ));
            }
            found.push((setting, value.to_owned(), name.to_owned()));
        }
        let collector = self
            .variables
            .iter()
            .find(|(name, value)| name == COLLECTOR_VARIABLE && !value.is_empty());
        if let Some(value) = collector.and_then(|(_, value)| value.to_str())
            && !found.iter().any(|(known, ..)| known.key == COLLECTOR)
            && let Some(setting) = settings::of_key(COLLECTOR)
        {
            found.push((setting, value.to_owned(), COLLECTOR_VARIABLE.to_owned()));
        }
        Ok(found)
    }
}

/// A variable that is meant for us and has a value.
fn own<'a>(name: &'a OsStr, value: &'a OsStr) -> Option<(&'a str, &'a OsStr)> {
    let name = name.to_str().filter(|name| name.starts_with(PREFIX))?;
    let is_other = value.is_empty()
        || name.starts_with(TEST_PREFIX)
        || name == FILE_VARIABLE
        || value.to_str().is_some_and(|value| is_of_kubernetes(name, value));
    (!is_other).then_some((name, value))
}

/// Kubernetes describes a service named `skillbox` to its pods in variables such as
/// `SKILLBOX_PORT=tcp://10.0.0.1:8080`.
fn is_of_kubernetes(name: &str, value: &str) -> bool {
    let address = ["tcp://", "udp://", "sctp://"]
        .iter()
        .any(|scheme| value.starts_with(scheme));
    name.contains("_SERVICE_HOST")
        || name.contains("_SERVICE_PORT")
        || name.contains("_PORT_")
        || (name.ends_with("_PORT") && address)
}

pub(super) type Layers = BTreeMap<&'static str, Layered>;

/// A value and its source: file, variable or flag.
pub(super) struct Layered {
    pub(super) value: SettingValue,
    pub(super) origin: String,
}

pub(super) enum SettingValue {
    Text(String),
    List(Vec<String>),
}

impl Layered {
    fn parse(setting: &Setting, text: &str, origin: &str) -> Self {
        let value = match setting.kind {
            SettingKind::Text | SettingKind::Secret => SettingValue::Text(text.to_owned()),
            SettingKind::List => SettingValue::List(split(text)),
        };
        let origin = origin.to_owned();
        Self { value, origin }
    }
}

fn split(text: &str) -> Vec<String> {
    text.split(',')
        .map(str::trim)
        .filter(|item| !item.is_empty())
        .map(str::to_owned)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn variables(set: &[(&str, &str)]) -> Result<Vec<(&'static Setting, String, String)>, Error> {
        let variables = set
            .iter()
            .map(|(name, value)| ((*name).into(), (*value).into()))
            .collect();
        Sources {
            variables,
            ..Sources::default()
        }
        .variables()
    }

    /// F-24.
    #[test]
    fn names_unknown_variable() {
        let sources = Sources {
            variables: vec![("SKILLBOX_API_PROT".into(), "1".into())],
            ..Sources::default()
        };
        let [unknown] = &sources.unknown_variables()[..] else {
            panic!("one unknown variable");
        };
        let message = unknown.to_string();
        assert!(message.starts_with("SKILLBOX_API_PROT: "), "{message}");
        assert!(message.contains("did you mean `SKILLBOX_API_PORT`?"), "{message}");
        assert!(variables(&[("SKILLBOX_API_PROT", "1")]).unwrap().is_empty());
    }

    /// F-24.
    #[test]
    fn rejects_contradicting_spellings_of_a_setting() {
        let same = [("SKILLBOX_API_PORT", "1"), ("SKILLBOX_API__PORT", "1")];
        assert!(variables(&same).is_ok());
        let other = [("SKILLBOX_API_PORT", "1"), ("SKILLBOX_API__PORT", "2")];
        let refused = variables(&other).unwrap_err().to_string();
        assert!(
            refused.contains("SKILLBOX_API_PORT and SKILLBOX_API__PORT"),
            "{refused}"
        );
    }

    #[test]
    fn ignores_variables_of_other_programs() {
        let set = [
            ("SKILLBOX_PORT", "tcp://10.0.0.1:8080"),
            ("SKILLBOX_PORT_8080_TCP_ADDR", "10.0.0.1"),
            ("SKILLBOX_SERVICE_HOST", "10.0.0.1"),
            ("SKILLBOX_API_PORT", "tcp://10.0.0.1:8080"),
            ("SKILLBOX_TEST_REQUIRE", "docker"),
            ("SKILLBOX_S3_ENDPOINT", ""),
            ("PATH", "/bin"),
        ];
        assert_eq!(variables(&set).unwrap(), []);
    }
}
