//! Every setting there is: its name in a file, its variable, its default. `docs/CONFIGURATION.md` shows this table.

/// One setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Setting {
    /// Where it stands in a configuration file.
    pub key: &'static str,
    /// The variable that sets it; `SKILLBOX_` and the key with `__` for each dot works too.
    pub variable: &'static str,
    /// Its value where nothing sets it; empty means none.
    pub default: &'static str,
    /// What it holds.
    pub kind: SettingKind,
    /// What it is for.
    pub about: &'static str,
}

/// What a setting holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SettingKind {
    /// One value.
    Text,
    /// A list; in a variable separated by commas.
    List,
    /// One value that is never shown.
    Secret,
}

/// One line each: kind, key, variable, default, what it is for.
macro_rules! settings {
    ($($kind:ident $key:literal $variable:literal $default:literal $about:literal;)*) => {
        &[$(Setting { key: $key, variable: $variable, default: $default, kind: SettingKind::$kind, about: $about }),*]
    };
}

/// All of them.
pub const SETTINGS: &[Setting] = settings! {
    Text "data_dir" "SKILLBOX_DATA_DIR" ""
        "Folder for everything that is kept. Without it: /var/lib/skillbox for root, else $XDG_DATA_HOME/skillbox or ~/.skillbox; on Windows %LOCALAPPDATA%\\skillbox";
    Text "server_url" "SKILLBOX_SERVER_URL" ""
        "Where clients reach the server. The command line talks to it; the server starts its links with it";
    Secret "api_key" "SKILLBOX_API_KEY" ""
        "API key of the command line";
    Text "api.host" "SKILLBOX_API_HOST" "127.0.0.1"
        "Address that the REST API listens on";
    Text "api.port" "SKILLBOX_API_PORT" "8080"
        "Port of the REST API; 0 takes a free one";
    Text "grpc.port" "SKILLBOX_GRPC_PORT" "9090"
        "Port of the gRPC API, which this version does not have yet";
    List "allowed_hosts" "SKILLBOX_ALLOWED_HOSTS" ""
        "Host names that the server answers for, besides loopback names and that of server_url; `*` is any";
    Secret "db.dsn" "SKILLBOX_DB_DSN" ""
        "Database: sqlite:///path. Without it: skillbox.db in the data folder";
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
        "What makes sandboxes: docker, native (this Linux kernel, no engine), or auto: docker where it can serve, else native";
    Text "sandbox.native.allow_degraded" "SKILLBOX_NATIVE_ALLOW_DEGRADED" "false"
        "Lets the native sandbox run where no cgroup can be had, with promises P6 and P7 degraded; auto never does";
    Text "sandbox.docker_host" "SKILLBOX_DOCKER_HOST" ""
        "Docker-compatible engine: unix:///path (Windows: npipe:////./pipe/name), tcp://host:port. Without it: DOCKER_HOST or the local socket or pipe";
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
        "Images that may run. Without it: the three above, python:3.11-slim and node:18-slim";
    Text "deps.python_index" "SKILLBOX_DEPS_PYTHON_INDEX" "https://pypi.org/simple"
        "Index (PEP 503) that Python packages are installed from; only HTTPS";
    Text "deps.node_registry" "SKILLBOX_DEPS_NODE_REGISTRY" "https://registry.npmjs.org"
        "Registry that Node packages are installed from; only HTTPS";
    List "deps.hosts" "SKILLBOX_DEPS_HOSTS" ""
        "Further hosts, or host:port, that these keep files on; nothing else is reached. Without it: files.pythonhosted.org";
    Text "deps.ca_bundle" "SKILLBOX_DEPS_CA_BUNDLE" ""
        "File of certificate authorities (PEM) that they are believed by. Without it: this host's usual one";
    Text "deps.cache" "SKILLBOX_DEPS_CACHE" "10Gi"
        "Installed packages that are kept, at least 768Mi; of more, those go that were not used for longest, first of the tenant that has most";
    Text "deps.set_size" "SKILLBOX_DEPS_SET_SIZE" "auto"
        "Installed packages of one program, 64Mi to 8Gi; auto is 2Gi, or a quarter of this host's memory where that is less, at least 768Mi";
    Text "pool.slots" "SKILLBOX_POOL_SLOTS" "8"
        "Sandboxes made in advance for what was run before, Python and Node.js already started; 0 makes none";
    Text "pool.memory" "SKILLBOX_POOL_MEMORY" "256Mi"
        "What they may take together: 12Mi are counted for Python, 32Mi for Node.js, 1Mi for others; what a container engine itself takes for each is not counted";
    Text "pool.idle" "SKILLBOX_POOL_IDLE" "300s"
        "How long one waits before it is given up, at most 600s";
    Text "limits.memory" "SKILLBOX_MEMORY" "512Mi"
        "Memory of one sandbox; a skill may ask for less";
    Text "limits.cpu" "SKILLBOX_CPU" "1"
        "Cores of one sandbox, such as 0.5 or 500m; a skill may ask for less";
    Text "limits.timeout_default" "SKILLBOX_DEFAULT_TIMEOUT" "120s"
        "Wall clock of a skill that names none";
    Text "limits.timeout_max" "SKILLBOX_MAX_TIMEOUT" "600s"
        "Wall clock of any execution, at most 600s";
    Text "limits.concurrency" "SKILLBOX_CONCURRENCY" "auto"
        "Executions at once; auto is one for each core, at least 2";
    Text "limits.queue" "SKILLBOX_QUEUE" "256"
        "Requests of one tenant that wait for a place (four times as many in all); more are answered 429. Tenants take turns";
    Text "limits.async_queue" "SKILLBOX_ASYNC_QUEUE" "1000"
        "Executions of one tenant that nobody waits for (mode: async) and whose turn has not come; more are answered 429";
    Text "limits.tenant_concurrency" "SKILLBOX_TENANT_CONCURRENCY" "auto"
        "Executions of one tenant at once; auto is limits.concurrency";
    Text "limits.tenant_rate" "SKILLBOX_TENANT_RATE" "off"
        "Executions that one tenant may ask for in a minute, or off";
    Text "limits.tenant_storage" "SKILLBOX_TENANT_STORAGE" "off"
        "Archives of skills, files, outputs and logs of one tenant together, or off; who has more gets nothing new until some is deleted or forgotten";
    Secret "secrets.master_key" "SKILLBOX_MASTER_KEY" ""
        "Key that seals secrets: 32 random bytes in base64 or hex. Without it: master.key in the data folder, made once";
    Text "blobs.quota" "SKILLBOX_BLOBS_QUOTA" "1Gi"
        "All blobs of one tenant together; what would be more is refused";
    Text "blobs.ttl" "SKILLBOX_BLOBS_TTL" "7d"
        "Life of a blob whose owner says nothing else, at most 365d; the same content again restarts it";
    Text "retention.age" "SKILLBOX_RETENTION_AGE" "30d"
        "How long ended executions and their files are kept, or off";
    Text "retention.per_tenant" "SKILLBOX_RETENTION_PER_TENANT" "10000"
        "How many of them each tenant keeps, or off";
    Text "links.life" "SKILLBOX_LINK_LIFE" "1h"
        "Life of a signed download link, at most 7d";
    Text "webhooks.allow_http" "SKILLBOX_WEBHOOKS_ALLOW_HTTP" "false"
        "Lets the end of an execution be told to addresses that begin with http://, in the clear";
    List "webhooks.allow_private" "SKILLBOX_WEBHOOKS_ALLOW_PRIVATE" ""
        "Hosts, addresses and networks such as 10.0.0.0/8 that may be told though they are not of the Internet";
    List "webhooks.ports" "SKILLBOX_WEBHOOKS_PORTS" ""
        "The only ports that are told. Without it: 80, 443, and from 1024 all that no well-known service listens on";
    Text "webhooks.ca_bundle" "SKILLBOX_WEBHOOKS_CA_BUNDLE" ""
        "File of certificate authorities (PEM) that receivers are believed by. Without it: those of the Internet";
    List "webhooks.retries" "SKILLBOX_WEBHOOKS_RETRIES" ""
        "Pauses before the next attempts, at most 20. Without it: 5s, 1m, 5m, 30m, 2h, 5h, 10h; then it is given up";
    Text "metrics.enabled" "SKILLBOX_METRICS_ENABLED" "true"
        "Whether /metrics answers an administrator of tenant default";
    Text "metrics.listen" "SKILLBOX_METRICS_LISTEN" ""
        "Address and port, such as 127.0.0.1:9464, that serve /metrics and nothing else, without a key";
    Text "telemetry.otlp_endpoint" "SKILLBOX_OTLP_ENDPOINT" ""
        "OpenTelemetry collector that traces are sent to, such as http://127.0.0.1:4318; needs a build with the feature `otlp`. OTEL_EXPORTER_OTLP_ENDPOINT sets it, too";
    Text "log.level" "SKILLBOX_LOG" ""
        "What is logged: error, warn, info, debug, or a filter such as warn,skillbox=debug";
    Text "log.format" "SKILLBOX_LOG_FORMAT" "text"
        "text or json";
    Secret "redis_url" "SKILLBOX_REDIS_URL" ""
        "Accepted and not used: Skillbox needs no Redis";
};

/// The setting of this name.
pub(super) fn of_key(key: &str) -> Option<&'static Setting> {
    SETTINGS.iter().find(|setting| setting.key == key)
}

/// The setting that this variable sets.
pub(super) fn of_variable(name: &str) -> Option<&'static Setting> {
    SETTINGS
        .iter()
        .find(|setting| setting.variable == name || setting.nested_variable() == name)
}

impl Setting {
    /// `SKILLBOX_SANDBOX__IMAGES__NODE` of `sandbox.images.node`.
    pub(super) fn nested_variable(&self) -> String {
        format!("SKILLBOX_{}", self.key.replace('.', "__").to_uppercase())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_settings_share_a_name() {
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
    fn the_documented_names_work() {
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
