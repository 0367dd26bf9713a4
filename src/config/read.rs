//! Converts layers into a checked configuration.

use std::fmt::Display;
use std::net::SocketAddr;
use std::time::Duration;

use super::error::Error;
use super::layers::{COLLECTOR, COLLECTOR_VARIABLE, Layers, SettingValue};
use super::settings::{self, SETTINGS, SettingKind};
use super::{
    BackendChoice, Config, DepsConfig, GrpcPort, LimitsConfig, LogConfig, ObserveConfig, SandboxConfig,
    values, webhooks,
};
use crate::engine::{BlobPolicy, Images, RetentionPolicy};
use crate::error::quoted;
use crate::execution::Maxima;
use crate::http::Dashboard;
use crate::limits;
#[cfg(target_os = "linux")]
use crate::sandbox::linux::HostFolder;
use crate::sandbox::{WarmPoolSettings, docker};
use crate::secret::InvalidMasterKey;
use crate::skill::{ImageAllowlist, Language, parse_bytes, parse_cpu};
use crate::telemetry::{self, LogFormat};

/// One row of `skillbox config`.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Effective {
    /// Key in a file.
    pub key: &'static str,
    /// Its value; `***` for a secret, `null` for none.
    pub value: Option<String>,
    /// Source: `default`, a file, a variable, `command line`.
    pub source: String,
    pub variable: &'static str,
}

/// Allowed images in addition to the default images.
const MORE_IMAGES: [&str; 2] = ["python:3.11-slim", "node:18-slim"];

/// Checks all settings and reports the first error.
pub(super) fn config(layers: &Layers) -> Result<Config, Error> {
    let reader = SettingsReader(layers);
    let config = Config {
        data_dir: reader.optional("data_dir", values::absolute)?,
        server_url: reader.optional("server_url", values::server_url)?,
        api_key: reader.optional("api_key", values::key)?,
        listen: SocketAddr::new(
            reader.required("api.host", values::address)?,
            reader.required("api.port", port)?,
        ),
        grpc: GrpcPort {
            number: reader.required("grpc.port", port)?,
            is_default: !reader.is_set("grpc.port"),
        },
        allowed_hosts: reader.list("allowed_hosts").unwrap_or_default(),
        dashboard: reader.required("dashboard", dashboard)?,
        database: reader.optional("db.dsn", values::sqlite_file)?,
        sandbox: sandbox(&reader)?,
        deps: DepsConfig::read(&reader)?,
        limits: limits_config(&reader)?,
        retention: RetentionPolicy {
            age: reader.required("retention.age", |text| {
                values::or_off(text, values::span_with_unit)
            })?,
            per_tenant: reader.required("retention.per_tenant", |text| {
                values::or_off(text, |text| values::number(text, 1, u64::MAX))
            })?,
        },
        keep_request: reader.required("executions.keep_request", |text| {
            values::or_off(text, values::kept_request)
        })?,
        blobs: BlobPolicy {
            quota_bytes: reader.required("blobs.quota", |text| parse_bytes(text, 1))?,
            life: reader.required("blobs.ttl", |text| {
                values::span_with_unit(text)?;
                values::span_within(text, Duration::from_secs(1), limits::BLOB_LIFE_MAX)
            })?,
        },
        link_life: reader.required("links.life", |text| {
            values::span_within(text, Duration::from_secs(1), limits::LINK_LIFE_MAX)
        })?,
        webhooks: webhooks::read(&reader)?,
        master_key: reader.optional("secrets.master_key", |text| {
            text.parse().map_err(|error: InvalidMasterKey| error.to_string())
        })?,
        observe: observe(&reader)?,
        log: LogConfig {
            filter: reader.optional("log.level", values::log_filter)?,
            format: reader.required("log.format", log_format)?,
        },
        notices: notices(&reader)?,
        effective: SETTINGS
            .iter()
            .filter(|setting| reason_without_effect(setting.key).is_none())
            .map(|setting| reader.effective(setting))
            .collect(),
    };
    refuse_s3(&reader)?;
    Ok(config)
}

fn port(text: &str) -> Result<u16, String> {
    values::number(text, 0, u16::MAX)
}

fn log_format(text: &str) -> Result<LogFormat, String> {
    match text {
        "text" => Ok(LogFormat::Text),
        "json" => Ok(LogFormat::Json),
        _ => Err(format!("{} is not text or json", quoted(text))),
    }
}

fn observe(reader: &SettingsReader<'_>) -> Result<ObserveConfig, Error> {
    let observe = ObserveConfig {
        metrics: reader.required("metrics.enabled", boolean)?,
        metrics_listen: reader.optional("metrics.listen", values::socket)?,
        collector: reader.optional(COLLECTOR, values::server_url)?,
    };
    if observe.metrics_listen.is_some() && !observe.metrics {
        return Err(reader.wrong(
            "metrics.listen",
            "has no effect while metrics.enabled is false; remove one of them",
        ));
    }
    let may_be_meant_for_others = reader.origin(COLLECTOR) == COLLECTOR_VARIABLE;
    if observe.collector.is_some() && !telemetry::CAN_TRACE && !may_be_meant_for_others {
        return Err(reader.wrong(
            COLLECTOR,
            "traces need a build with the feature `otlp` (cargo build --release --features otlp); remove the setting to send none",
        ));
    }
    Ok(observe)
}

fn backend(text: &str) -> Result<BackendChoice, String> {
    match text {
        "auto" => Ok(BackendChoice::Auto),
        "docker" => Ok(BackendChoice::Docker),
        "native" if cfg!(target_os = "linux") => Ok(BackendChoice::Native),
        "native" => Err("the native sandbox needs Linux; use auto or docker".to_owned()),
        _ => Err(format!("{} is not auto, docker or native", quoted(text))),
    }
}

pub(super) fn boolean(text: &str) -> Result<bool, String> {
    match text {
        "true" => Ok(true),
        "false" => Ok(false),
        _ => Err(format!("{} is not true or false", quoted(text))),
    }
}

fn dashboard(text: &str) -> Result<Dashboard, String> {
    match text {
        "on" => Ok(Dashboard::Served),
        "off" => Ok(Dashboard::Closed),
        _ => Err(format!("{} is not on or off", quoted(text))),
    }
}

fn sandbox(reader: &SettingsReader<'_>) -> Result<SandboxConfig, Error> {
    #[cfg(not(target_os = "linux"))]
    native_folders(reader)?;
    let images = Images {
        python: reader.required("sandbox.images.python", values::word)?,
        node: reader.required("sandbox.images.node", values::word)?,
        bash: reader.required("sandbox.images.bash", values::word)?,
    };
    Ok(SandboxConfig {
        backend: reader.required("sandbox.backend", backend)?,
        docker: docker::Settings {
            host: reader.optional("sandbox.docker_host", values::engine_host)?,
            runtime: reader.optional("sandbox.runtime", values::word)?,
            guest_binary: reader.optional("sandbox.guest_binary", values::existing_file)?,
        },
        native_degraded: reader.required("sandbox.native.allow_degraded", boolean)?,
        #[cfg(target_os = "linux")]
        native_folders: native_folders(reader)?,
        allowlist: allowlist(reader, &images)?,
        images,
        pool: WarmPoolSettings {
            slots: reader.required("pool.slots", |text| {
                values::number(text, 0, limits::WARM_SLOTS_MAX)
            })?,
            memory_bytes: reader.required("pool.memory", |text| parse_bytes(text, limits::MIB))?,
            idle: reader.required("pool.idle", |text| {
                values::span_within(text, Duration::from_secs(1), limits::WARM_IDLE_MAX)
            })?,
        },
    })
}

#[cfg(target_os = "linux")]
fn native_folders(reader: &SettingsReader<'_>) -> Result<Vec<HostFolder>, Error> {
    const KEY: &str = "sandbox.native.folders";
    let listed = reader.list(KEY).unwrap_or_default();
    let max = limits::HOST_FOLDERS_MAX;
    if listed.len() > max {
        return Err(reader.wrong(KEY, format!("has more than {max} folders; name fewer")));
    }
    let parsed = listed
        .iter()
        .map(|text| reader.check(KEY, HostFolder::parse(text)));
    parsed.collect()
}

#[cfg(not(target_os = "linux"))]
fn native_folders(reader: &SettingsReader<'_>) -> Result<(), Error> {
    const KEY: &str = "sandbox.native.folders";
    match reader.is_set(KEY) {
        true => Err(reader.wrong(KEY, "native sandboxes need Linux; remove the setting")),
        false => Ok(()),
    }
}

/// The allowed images. An explicitly configured default image that is not allowed is an error.
fn allowlist(reader: &SettingsReader<'_>, images: &Images) -> Result<ImageAllowlist, Error> {
    let Some(listed) = reader.list("sandbox.image_allowlist") else {
        let own = Language::ALL.map(|language| images.of(language).to_owned());
        return Ok(ImageAllowlist::new(
            own.into_iter().chain(MORE_IMAGES.map(str::to_owned)),
        ));
    };
    for image in &listed {
        reader.check("sandbox.image_allowlist", values::word(image))?;
    }
    let list = ImageAllowlist::new(listed);
    for language in Language::ALL {
        let key = match language {
            Language::Python => "sandbox.images.python",
            Language::Node => "sandbox.images.node",
            Language::Bash => "sandbox.images.bash",
        };
        let image = images.of(language);
        if reader.is_set(key) && list.approve(image).is_err() {
            let problem = format!(
                "{} is not in sandbox.image_allowlist; add it there",
                quoted(image)
            );
            return Err(reader.wrong(key, problem));
        }
    }
    Ok(list)
}

fn limits_config(reader: &SettingsReader<'_>) -> Result<LimitsConfig, Error> {
    let most = |text: &str| values::span_within(text, limits::TIMEOUT_MIN, limits::TIMEOUT_MAX);
    let maxima = Maxima {
        memory_bytes: reader.required("limits.memory", |text| {
            parse_bytes(text, limits::MEMORY_BYTES_MIN)
        })?,
        cpu_millis: reader.required("limits.cpu", parse_cpu)?,
        timeout_default: reader.required("limits.timeout_default", most)?,
        timeout_max: reader.required("limits.timeout_max", most)?,
    };
    if maxima.timeout_default > maxima.timeout_max {
        let seconds = maxima.timeout_max.as_secs_f64();
        return Err(reader.wrong(
            "limits.timeout_default",
            format!("is longer than limits.timeout_max ({seconds} s); shorten one or raise the other"),
        ));
    }
    let concurrency = reader.required("limits.concurrency", concurrency)?;
    let queue = |text: &str| values::number(text, 0, limits::QUEUE_CONFIGURED_MAX);
    Ok(LimitsConfig {
        maxima,
        concurrency,
        tenant_concurrency: reader.required("limits.tenant_concurrency", |text| match text {
            "auto" => Ok(concurrency),
            text => values::number(text, 1, limits::CONCURRENCY_MAX)
                .map_err(|problem| format!("{problem}, or auto")),
        })?,
        tenant_rate: reader.required("limits.tenant_rate", |text| {
            values::or_off(text, |text| values::number(text, 1, u32::MAX))
        })?,
        tenant_storage: reader.required("limits.tenant_storage", |text| {
            values::or_off(text, |text| parse_bytes(text, limits::MIB))
        })?,
        queue: reader.required("limits.queue", queue)?,
        async_queue: reader.required("limits.async_queue", queue)?,
    })
}

fn concurrency(text: &str) -> Result<usize, String> {
    if text == "auto" {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        return Ok(cores.clamp(2, limits::CONCURRENCY_MAX));
    }
    values::number(text, 1, limits::CONCURRENCY_MAX).map_err(|problem| format!("{problem}, or auto"))
}

/// Why a setting has no effect in this build; `None` if it has one.
fn reason_without_effect(key: &str) -> Option<&'static str> {
    match key {
        "redis_url" => Some("Skillbox uses no Redis"),
        "grpc.port" if !cfg!(feature = "grpc") => Some("the gRPC API needs a build with the feature `grpc`"),
        COLLECTOR if !telemetry::CAN_TRACE => Some("sending traces needs a build with the feature `otlp`"),
        key if key.starts_with("s3.") => Some("S3 needs a build with the feature `s3`"),
        _ => None,
    }
}

fn notices(reader: &SettingsReader<'_>) -> Result<Vec<String>, Error> {
    let set = SETTINGS.iter().filter(|setting| reader.is_set(setting.key));
    Ok(set
        .filter_map(|setting| {
            let reason = reason_without_effect(setting.key)?;
            let origin = reader.origin(setting.key);
            Some(format!("{} ({origin}) has no effect: {reason}", setting.key))
        })
        .collect())
}

/// An ignored setting about storage could lose data, so it is an error.
fn refuse_s3(reader: &SettingsReader<'_>) -> Result<(), Error> {
    let set = SETTINGS
        .iter()
        .find(|setting| setting.key.starts_with("s3.") && reader.is_set(setting.key));
    match set {
        Some(setting) => Err(reader.wrong(
            setting.key,
            "S3 needs a build with the feature `s3`; remove the setting to store files in the data folder",
        )),
        None => Ok(()),
    }
}

pub(super) struct SettingsReader<'a>(&'a Layers);

impl SettingsReader<'_> {
    fn text(&self, key: &str) -> Option<&str> {
        match &self.0.get(key)?.value {
            SettingValue::Text(text) => (!text.is_empty()).then_some(text),
            SettingValue::List(_) => None,
        }
    }

    pub(super) fn list(&self, key: &str) -> Option<Vec<String>> {
        match &self.0.get(key)?.value {
            SettingValue::List(items) => Some(items.clone()),
            SettingValue::Text(_) => None,
        }
    }

    /// Whether the setting is configured.
    pub(super) fn is_set(&self, key: &str) -> bool {
        self.origin(key) != "default"
    }

    fn origin(&self, key: &str) -> &str {
        self.0.get(key).map_or("default", |layered| &layered.origin)
    }

    fn wrong(&self, key: &str, problem: impl Display) -> Error {
        Error::new(key, problem).set_by(self.origin(key))
    }

    pub(super) fn check<T>(&self, key: &str, result: Result<T, String>) -> Result<T, Error> {
        result.map_err(|problem| self.wrong(key, problem))
    }

    pub(super) fn optional<T>(
        &self,
        key: &str,
        parse: impl FnOnce(&str) -> Result<T, String>,
    ) -> Result<Option<T>, Error> {
        self.text(key)
            .map(|text| self.check(key, parse(text)))
            .transpose()
    }

    pub(super) fn required<T>(
        &self,
        key: &str,
        parse: impl FnOnce(&str) -> Result<T, String>,
    ) -> Result<T, Error> {
        let text = self
            .text(key)
            .ok_or_else(|| Error::new(key, "has no value; set it"))?;
        self.check(key, parse(text))
    }

    fn effective(&self, setting: &'static settings::Setting) -> Effective {
        let value = match setting.kind {
            SettingKind::Text => self.text(setting.key).map(str::to_owned),
            SettingKind::List => self.list(setting.key).map(|items| items.join(",")),
            SettingKind::Secret => self.text(setting.key).map(|_| "***".to_owned()),
        };
        Effective {
            key: setting.key,
            value,
            source: self.origin(setting.key).to_owned(),
            variable: setting.variable,
        }
    }
}
