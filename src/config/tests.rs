//! What a whole configuration becomes, and what is refused at start (F-24).

use std::path::{Path, PathBuf};
use std::time::Duration;

use secrecy::ExposeSecret as _;

use super::*;
use crate::telemetry;

fn variables(set: &[(&str, &str)]) -> Sources {
    Sources {
        variables: set
            .iter()
            .map(|(name, value)| ((*name).into(), (*value).into()))
            .collect(),
        ..Sources::default()
    }
}

fn refusal(set: &[(&str, &str)]) -> String {
    let refused = Config::load(&variables(set)).map(|_| ()).unwrap_err().to_string();
    assert!(!refused.contains('\n'), "{refused:?}");
    refused
}

fn file(folder: &Path, text: &str) -> ConfigFile {
    let path = folder.join("config.yaml");
    std::fs::write(&path, text).unwrap();
    ConfigFile::Required(path)
}

#[test]
fn defaults_equal_the_limits() {
    let config = Config::load(&Sources::default()).unwrap();
    assert_eq!(config.listen.to_string(), "127.0.0.1:8080");
    assert_eq!(config.limits.maxima, Maxima::default());
    assert_eq!(config.limits.queue, limits::QUEUE_MAX);
    assert_eq!(config.retention.age, Some(limits::RETENTION_AGE));
    assert_eq!(config.retention.per_tenant, Some(limits::RETENTION_PER_TENANT));
    assert_eq!(config.link_life, limits::LINK_LIFE);
    assert_eq!(config.sandbox.images, Images::default());
    let allowed: Vec<_> = config.sandbox.allowlist.iter().collect();
    assert_eq!(
        allowed,
        [
            "bash:5",
            "node:18-slim",
            "node:20-slim",
            "python:3.11-slim",
            "python:3.12-slim"
        ]
    );
    assert_eq!(config.notices, [""; 0]);
}

#[test]
fn dashboard_is_on_unless_switched_off() {
    let dashboard = |sources: &Sources| Config::load(sources).unwrap().dashboard;
    assert_eq!(dashboard(&Sources::default()), Dashboard::Served);
    let off = variables(&[("SKILLBOX_DASHBOARD", "off")]);
    assert_eq!(dashboard(&off), Dashboard::Closed);
    let folder = tempfile::tempdir().unwrap();
    for (text, expected) in [
        ("dashboard: off", Dashboard::Closed),
        ("dashboard: on", Dashboard::Served),
    ] {
        let sources = Sources {
            files: vec![file(folder.path(), text)],
            ..Sources::default()
        };
        assert_eq!(dashboard(&sources), expected, "{text}");
    }
    let refused = refusal(&[("SKILLBOX_DASHBOARD", "false")]);
    assert!(refused.contains("is not on or off"), "{refused}");
}

#[test]
fn later_layers_override_earlier_ones() {
    let folder = tempfile::tempdir().unwrap();
    let mut sources = Sources {
        files: vec![file(folder.path(), "api: {port: 1}\nlimits: {queue: 1}\n")],
        ..variables(&[("SKILLBOX_API_PORT", "2")])
    };
    let port = |sources: &Sources| Config::load(sources).unwrap().listen.port();
    assert_eq!(port(&sources), 2);
    sources.flags.push(("api.port", "3".to_owned()));
    assert_eq!(port(&sources), 3);
    sources.variables.clear();
    sources.flags.clear();
    assert_eq!(port(&sources), 1);
    assert_eq!(Config::load(&sources).unwrap().limits.queue, 1);
}

#[test]
fn nested_and_flat_variables_are_equal() {
    for name in ["SKILLBOX_IMAGE_NODE", "SKILLBOX_SANDBOX__IMAGES__NODE"] {
        assert_eq!(
            Config::load(&variables(&[(name, "n:1")]))
                .unwrap()
                .sandbox
                .images
                .node,
            "n:1"
        );
    }
    let config = Config::load(&variables(&[("SKILLBOX_IMAGE_ALLOWLIST", "a:1, b:2,")])).unwrap();
    assert_eq!(
        config.sandbox.allowlist.iter().collect::<Vec<_>>(),
        ["a:1", "b:2"]
    );
}

/// F-24.
#[test]
fn names_invalid_value_and_its_source() {
    let wrong = [
        ("SKILLBOX_API_PORT", "http", "api.port"),
        ("SKILLBOX_API_PORT", "65536", "api.port"),
        ("SKILLBOX_API_HOST", "example.com", "api.host"),
        ("SKILLBOX_DEFAULT_TIMEOUT", "0", "limits.timeout_default"),
        ("SKILLBOX_DEFAULT_TIMEOUT", "601", "limits.timeout_default"),
        ("SKILLBOX_MEMORY", "1Mi", "limits.memory"),
        ("SKILLBOX_CONCURRENCY", "0", "limits.concurrency"),
        (
            "SKILLBOX_NATIVE_ALLOW_DEGRADED",
            "yes",
            "sandbox.native.allow_degraded",
        ),
        ("SKILLBOX_NATIVE_FOLDERS", "/etc", "sandbox.native.folders"),
        ("SKILLBOX_SANDBOX_BACKEND", "podman", "sandbox.backend"),
        ("SKILLBOX_GUEST_BINARY", "/nowhere", "sandbox.guest_binary"),
        ("SKILLBOX_SERVER_URL", "localhost:8080", "server_url"),
        ("SKILLBOX_RETENTION_AGE", "never", "retention.age"),
        ("SKILLBOX_LINK_LIFE", "8d", "links.life"),
        ("SKILLBOX_LOG_FORMAT", "xml", "log.format"),
        ("SKILLBOX_GRPC_PORT", "x", "grpc.port"),
    ];
    for (variable, value, key) in wrong {
        let refused = refusal(&[(variable, value)]);
        assert!(refused.starts_with(&format!("{key}: ")), "{refused}");
        assert!(refused.ends_with(&format!("(set by {variable})")), "{refused}");
    }
}

/// F-24.
#[test]
fn rejects_contradicting_settings() {
    let refused = refusal(&[("SKILLBOX_DEFAULT_TIMEOUT", "60"), ("SKILLBOX_MAX_TIMEOUT", "30")]);
    assert!(refused.starts_with("limits.timeout_default: "), "{refused}");
    let refused = refusal(&[
        ("SKILLBOX_IMAGE_NODE", "n:1"),
        ("SKILLBOX_IMAGE_ALLOWLIST", "a:1"),
    ]);
    assert!(refused.contains("image_allowlist"), "{refused}");
    assert!(Config::load(&variables(&[("SKILLBOX_IMAGE_ALLOWLIST", "a:1")])).is_ok());
}

#[test]
fn names_missing_feature() {
    for dsn in ["postgres://u:geheim@h/db", "postgresql://h"] {
        let refused = refusal(&[("SKILLBOX_DB_DSN", dsn)]);
        assert!(
            refused.contains("feature `postgres`") && !refused.contains("geheim"),
            "{refused}"
        );
    }
    for name in [
        "SKILLBOX_S3_ENDPOINT",
        "SKILLBOX_S3_ACCESS_KEY",
        "SKILLBOX_S3_SECRET_KEY",
    ] {
        let refused = refusal(&[(name, "geheim")]);
        assert!(
            refused.contains("feature `s3`") && !refused.contains("geheim"),
            "{refused}"
        );
    }
}

#[test]
fn redis_is_accepted_and_reported_as_not_needed() {
    let config = Config::load(&variables(&[("SKILLBOX_REDIS_URL", "redis://:geheim@h")])).unwrap();
    assert!(
        config.notices[0].contains("SKILLBOX_REDIS_URL"),
        "{:?}",
        config.notices
    );
    assert!(!config.notices[0].contains("geheim"));
}

#[test]
fn hides_secrets() {
    let set = [
        ("SKILLBOX_API_KEY", "geheim"),
        ("SKILLBOX_DB_DSN", "sqlite:///geheim"),
        ("SKILLBOX_REDIS_URL", "geheim"),
    ];
    let config = Config::load(&variables(&set)).unwrap();
    assert_eq!(config.api_key.as_ref().unwrap().expose_secret(), "geheim");
    assert_eq!(config.database, Some(PathBuf::from("/geheim")));
    let shown = serde_json::to_string(&config.effective).unwrap();
    assert!(!shown.contains("geheim") && shown.contains("***"), "{shown}");
    assert!(!format!("{:?}", config.api_key).contains("geheim"));
}

#[test]
fn reports_the_source_of_each_value() {
    let folder = tempfile::tempdir().unwrap();
    let sources = Sources {
        files: vec![file(folder.path(), "limits:\n  cpu: 0.5\n")],
        ..variables(&[("SKILLBOX_API_PORT", "9000")])
    };
    let config = Config::load(&sources).unwrap();
    let source = |key: &str| {
        config
            .effective
            .iter()
            .find(|row| row.key == key)
            .unwrap()
            .source
            .clone()
    };
    assert_eq!(source("api.port"), "SKILLBOX_API_PORT");
    assert!(
        source("limits.cpu").contains("config.yaml:"),
        "{}",
        source("limits.cpu")
    );
    assert_eq!(source("api.host"), "default");
    assert_eq!(config.limits.maxima.cpu_millis, 500);
    assert_eq!(config.limits.maxima.timeout_default, Duration::from_secs(120));
}

/// F-24.
#[test]
fn rejects_missing_file_and_unknown_keys() {
    let folder = tempfile::tempdir().unwrap();
    let missing = Sources {
        files: vec![ConfigFile::Required(folder.path().join("no.yaml"))],
        ..Sources::default()
    };
    assert!(
        Config::load(&missing)
            .unwrap_err()
            .to_string()
            .contains("no.yaml")
    );
    let sources = Sources {
        files: vec![file(folder.path(), "api: {prot: 1}")],
        ..Sources::default()
    };
    let refused = Config::load(&sources).unwrap_err().to_string();
    assert!(
        refused.contains("config.yaml") && refused.contains("`api.prot`"),
        "{refused}"
    );
    let optional = Sources {
        files: vec![ConfigFile::Optional(folder.path().join("no.yaml"))],
        ..Sources::default()
    };
    assert!(Config::load(&optional).is_ok());
}

/// A setting that has no effect is refused; a variable that may be meant for others is only noticed.
#[test]
fn rejects_trace_collector_without_the_feature() {
    let standard = [("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:4318")];
    let config = Config::load(&variables(&standard)).unwrap();
    assert_eq!(config.observe.collector.as_deref(), Some("http://127.0.0.1:4318"));
    let ours = [("SKILLBOX_OTLP_ENDPOINT", "http://127.0.0.1:1")];
    let both = Config::load(&variables(&[standard, ours].concat()));
    if telemetry::CAN_TRACE {
        assert_eq!(
            both.unwrap().observe.collector.as_deref(),
            Some("http://127.0.0.1:1")
        );
        return;
    }
    let notice = "telemetry.otlp_endpoint (OTEL_EXPORTER_OTLP_ENDPOINT) has no effect";
    assert!(config.notices[0].starts_with(notice), "{:?}", config.notices);
    assert!(refusal(&ours).contains("--features otlp"), "{}", refusal(&ours));
    assert!(both.is_err());
}

#[test]
fn rejects_metrics_address_with_metrics_off() {
    let listen = ("SKILLBOX_METRICS_LISTEN", "127.0.0.1:9464");
    let config = Config::load(&variables(&[listen])).unwrap();
    assert!(config.observe.metrics);
    assert_eq!(config.observe.metrics_listen, listen.1.parse().ok());
    let off = ("SKILLBOX_METRICS_ENABLED", "false");
    assert!(!Config::load(&variables(&[off])).unwrap().observe.metrics);
    assert!(refusal(&[off, listen]).contains("metrics.enabled"));
    assert!(refusal(&[("SKILLBOX_METRICS_LISTEN", "9464")]).contains("127.0.0.1:9464"));
}
