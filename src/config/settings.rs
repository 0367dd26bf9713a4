//! Table of all settings: key, variable, default. `docs/CONFIGURATION.md` shows it.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Setting {
    /// Key in a configuration file.
    pub key: &'static str,
    /// Variable; `SKILLBOX_` and the key with `__` for each dot works too.
    pub variable: &'static str,
    /// Default; empty means none.
    pub default: &'static str,
    pub kind: SettingKind,
    /// Description.
    pub about: &'static str,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SettingKind {
    Text,
    /// Comma-separated in a variable.
    List,
    /// A value that is never shown.
    Secret,
}

/// Kind, key, variable, default, description.
macro_rules! settings {
    ($($kind:ident $key:literal $variable:literal $default:literal $about:literal;)*) => {
        &[$(Setting { key: $key, variable: $variable, default: $default, kind: SettingKind::$kind, about: $about }),*]
    };
}

pub const SETTINGS: &[Setting] = settings! {
    Text "data_dir" "SKILLBOX_DATA_DIR" ""
        "Data folder. Default: /var/lib/skillbox for root, else $XDG_DATA_HOME/skillbox or ~/.skillbox; on Windows %LOCALAPPDATA%\\skillbox";
    Text "server_url" "SKILLBOX_SERVER_URL" ""
        "Public URL of the server. The command line connects to it; the server uses it in links";
    Secret "api_key" "SKILLBOX_API_KEY" ""
        "API key of the command line";
    Text "api.host" "SKILLBOX_API_HOST" "127.0.0.1"
        "Listen address of the REST API";
    Text "api.port" "SKILLBOX_API_PORT" "8080"
        "Port of the REST API; 0 selects a free port";
    Text "grpc.port" "SKILLBOX_GRPC_PORT" "9090"
        "Port of the gRPC API; that of the REST API serves both, 0 disables it. Unless it is set, a port in use only logs a warning";
    List "allowed_hosts" "SKILLBOX_ALLOWED_HOSTS" ""
        "Accepted host names, in addition to loopback names and that of server_url; `*` accepts all";
    Text "dashboard" "SKILLBOX_DASHBOARD" "on"
        "Serves the dashboard at /ui/; off also rejects its sessions and sign-in links";
    Secret "db.dsn" "SKILLBOX_DB_DSN" ""
        "Database: sqlite:///path. Default: skillbox.db in the data folder";
    Text "s3.endpoint" "SKILLBOX_S3_ENDPOINT" ""
        "S3 endpoint; needs a build with the feature `s3`";
    Text "s3.region" "SKILLBOX_S3_REGION" ""
        "S3 region";
    Text "s3.bucket" "SKILLBOX_S3_BUCKET" ""
        "S3 bucket";
    Secret "s3.access_key" "SKILLBOX_S3_ACCESS_KEY" ""
        "S3 access key";
    Secret "s3.secret_key" "SKILLBOX_S3_SECRET_KEY" ""
        "S3 secret key";
    Text "sandbox.backend" "SKILLBOX_SANDBOX_BACKEND" "auto"
        "Sandbox backend: docker, native (this Linux kernel, no engine), or auto: docker if it keeps every promise, else native";
    Text "sandbox.native.allow_degraded" "SKILLBOX_NATIVE_ALLOW_DEGRADED" "false"
        "Allows native sandboxes without cgroups, with promises P6 and P7 degraded; auto never uses them";
    List "sandbox.native.folders" "SKILLBOX_NATIVE_FOLDERS" ""
        "Further folders of the host that programs in native sandboxes may read, such as /etc/R or /opt/tools";
    Text "sandbox.docker_host" "SKILLBOX_DOCKER_HOST" ""
        "Docker-compatible engine: unix:///path (Windows: npipe:////./pipe/name), tcp://host:port. Default: DOCKER_HOST or the local socket or pipe";
    Text "sandbox.runtime" "SKILLBOX_DOCKER_RUNTIME" ""
        "Another runtime of the engine by name, such as runsc";
    Text "sandbox.guest_binary" "SKILLBOX_GUEST_BINARY" ""
        "Static Linux build of Skillbox for an engine of another architecture than this binary";
    Text "sandbox.images.python" "SKILLBOX_IMAGE_PYTHON" "python:3.12-slim"
        "Image of Python skills";
    Text "sandbox.images.node" "SKILLBOX_IMAGE_NODE" "node:20-slim"
        "Image of Node.js skills";
    Text "sandbox.images.bash" "SKILLBOX_IMAGE_BASH" "bash:5"
        "Image of bash skills";
    List "sandbox.image_allowlist" "SKILLBOX_IMAGE_ALLOWLIST" ""
        "Allowed images. Default: the three above, python:3.11-slim and node:18-slim";
    Text "deps.python_index" "SKILLBOX_DEPS_PYTHON_INDEX" "https://pypi.org/simple"
        "Index (PEP 503) of Python packages; only HTTPS";
    Text "deps.node_registry" "SKILLBOX_DEPS_NODE_REGISTRY" "https://registry.npmjs.org"
        "Registry of Node packages; only HTTPS";
    List "deps.hosts" "SKILLBOX_DEPS_HOSTS" ""
        "Further hosts, or host:port, of package files; no others are reachable. Default: files.pythonhosted.org";
    Text "deps.ca_bundle" "SKILLBOX_DEPS_CA_BUNDLE" ""
        "File of certificate authorities (PEM) for these hosts. Default: that of this host";
    Text "deps.requests" "SKILLBOX_DEPS_REQUESTS" "true"
        "Installs packages that requests ask for; false: only those of published skills";
    Text "deps.cache" "SKILLBOX_DEPS_CACHE" "10Gi"
        "Size of all installed packages, at least 768Mi; above it the least recently used are evicted, of the tenant with the most first";
    Text "deps.set_size" "SKILLBOX_DEPS_SET_SIZE" "auto"
        "Size of the packages of one program, 64Mi to 8Gi; auto is 2Gi, or a quarter of this host's memory if that is less, at least 768Mi";
    Text "pool.slots" "SKILLBOX_POOL_SLOTS" "8"
        "Size of the warm pool: pre-started sandboxes for recently used skills; 0 disables it";
    Text "pool.memory" "SKILLBOX_POOL_MEMORY" "256Mi"
        "Memory of the warm pool: 12Mi are counted for Python, 32Mi for Node.js, 1Mi for others; the container engine's own memory is not counted";
    Text "pool.idle" "SKILLBOX_POOL_IDLE" "300s"
        "Idle time after which a warm sandbox is evicted, at most 600s";
    Text "limits.memory" "SKILLBOX_MEMORY" "512Mi"
        "Memory of one sandbox; a skill may ask for less";
    Text "limits.cpu" "SKILLBOX_CPU" "1"
        "Cores of one sandbox, such as 0.5 or 500m; a skill may ask for less";
    Text "limits.timeout_default" "SKILLBOX_DEFAULT_TIMEOUT" "120s"
        "Default wall clock limit";
    Text "limits.timeout_max" "SKILLBOX_MAX_TIMEOUT" "600s"
        "Maximum wall clock limit, at most 600s";
    Text "limits.concurrency" "SKILLBOX_CONCURRENCY" "auto"
        "Concurrent executions; auto is one per core, at least 2";
    Text "limits.queue" "SKILLBOX_QUEUE" "256"
        "Waiting synchronous requests per tenant (four times as many in all); more are answered 429. Tenants take turns";
    Text "limits.async_queue" "SKILLBOX_ASYNC_QUEUE" "1000"
        "Queued async executions per tenant (mode: async); more are answered 429";
    Text "limits.tenant_concurrency" "SKILLBOX_TENANT_CONCURRENCY" "auto"
        "Concurrent executions per tenant; auto is limits.concurrency";
    Text "limits.tenant_rate" "SKILLBOX_TENANT_RATE" "off"
        "Executions per tenant and minute, or off";
    Text "limits.tenant_storage" "SKILLBOX_TENANT_STORAGE" "off"
        "Stored archives, files, outputs and logs per tenant, or off; above it new executions and skills are rejected until some are deleted or expire";
    Secret "secrets.master_key" "SKILLBOX_MASTER_KEY" ""
        "Master key that encrypts secrets: 32 random bytes in base64 or hex. Default: master.key in the data folder, generated once";
    Text "blobs.quota" "SKILLBOX_BLOBS_QUOTA" "1Gi"
        "Size of all blobs per tenant; further blobs are rejected";
    Text "blobs.ttl" "SKILLBOX_BLOBS_TTL" "7d"
        "Default lifetime of a blob, at most 365d; uploading the same content again restarts it";
    Text "retention.age" "SKILLBOX_RETENTION_AGE" "30d"
        "Retention of ended executions and their files, or off";
    Text "retention.per_tenant" "SKILLBOX_RETENTION_PER_TENANT" "10000"
        "Ended executions retained per tenant, or off";
    Text "executions.keep_request" "SKILLBOX_KEEP_REQUEST" "256Ki"
        "Size up to which requests are kept, to be shown and run again, at most 4Mi, or off; larger files are listed without their contents";
    Text "links.life" "SKILLBOX_LINK_LIFE" "1h"
        "Lifetime of a signed download link, at most 7d";
    Text "webhooks.allow_http" "SKILLBOX_WEBHOOKS_ALLOW_HTTP" "false"
        "Allows unencrypted webhooks to http:// URLs";
    List "webhooks.allow_private" "SKILLBOX_WEBHOOKS_ALLOW_PRIVATE" ""
        "Private hosts, addresses and networks such as 10.0.0.0/8 that may receive webhooks";
    List "webhooks.ports" "SKILLBOX_WEBHOOKS_PORTS" ""
        "Allowed ports of receivers. Default: 80, 443, and ports from 1024 that no well-known service uses";
    Text "webhooks.ca_bundle" "SKILLBOX_WEBHOOKS_CA_BUNDLE" ""
        "File of certificate authorities (PEM) for receivers. Default: public ones";
    List "webhooks.retries" "SKILLBOX_WEBHOOKS_RETRIES" ""
        "Pauses before retries, at most 20. Default: 5s, 1m, 5m, 30m, 2h, 5h, 10h";
    Text "metrics.enabled" "SKILLBOX_METRICS_ENABLED" "true"
        "Whether administrators of tenant default can read /metrics";
    Text "metrics.listen" "SKILLBOX_METRICS_LISTEN" ""
        "Address and port, such as 127.0.0.1:9464, that serve only /metrics, without a key";
    Text "telemetry.otlp_endpoint" "SKILLBOX_OTLP_ENDPOINT" ""
        "OpenTelemetry collector for traces, such as http://127.0.0.1:4318; needs a build with the feature `otlp`. OTEL_EXPORTER_OTLP_ENDPOINT sets it, too";
    Text "log.level" "SKILLBOX_LOG" ""
        "Log level: error, warn, info, debug, or a filter such as warn,skillbox=debug";
    Text "log.format" "SKILLBOX_LOG_FORMAT" "text"
        "text or json";
    Secret "redis_url" "SKILLBOX_REDIS_URL" ""
        "Accepted and not used: Skillbox needs no Redis";
};

pub(super) fn of_key(key: &str) -> Option<&'static Setting> {
    SETTINGS.iter().find(|setting| setting.key == key)
}

pub(super) fn of_variable(name: &str) -> Option<&'static Setting> {
    SETTINGS
        .iter()
        .find(|setting| setting.variable == name || setting.nested_variable() == name)
}

impl Setting {
    /// `SKILLBOX_SANDBOX__IMAGES__NODE` for `sandbox.images.node`.
    pub(super) fn nested_variable(&self) -> String {
        format!("SKILLBOX_{}", self.key.replace('.', "__").to_uppercase())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn setting_names_are_unique() {
        let mut names: Vec<String> = Vec::new();
        for setting in SETTINGS {
            names.push(setting.variable.to_owned());
            if setting.nested_variable() != setting.variable {
                names.push(setting.nested_variable());
            }
        }
        let count = names.len();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), count);
    }

    #[test]
    fn accepts_documented_names() {
        let promised = [
            "DB_DSN",
            "S3_ENDPOINT",
            "S3_ACCESS_KEY",
            "S3_SECRET_KEY",
            "DOCKER_HOST",
            "IMAGE_ALLOWLIST",
            "DEFAULT_TIMEOUT",
            "API_PORT",
            "GRPC_PORT",
            "SERVER_URL",
            "API_KEY",
            "DATA_DIR",
            "SANDBOX_BACKEND",
            "DOCKER_RUNTIME",
            "REDIS_URL",
            "IMAGE_PYTHON",
            "IMAGE_NODE",
            "IMAGE_BASH",
            "SANDBOX__BACKEND",
            "MASTER_KEY",
        ];
        for name in promised {
            assert!(of_variable(&format!("SKILLBOX_{name}")).is_some(), "{name}");
        }
    }
}
