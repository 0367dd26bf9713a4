//! A whole installation in a temporary folder, over the real engine of this machine.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use skillbox::auth::{ApiKey, Caller};
use skillbox::blob::{Blob, LinkSigner};
use skillbox::egress::{NamedBy, Upstream};
use skillbox::engine::{
    BlobPolicy, DependencySettings, Engine, Images, Index, PageRequest, Parts, RetentionPolicy, RunOptions,
    RunRequest, RunSpec, Settings, Subscription, UnpublishedArchive, WebhookSettings,
};
use skillbox::error::Error;
use skillbox::execution::{Execution, JsonText, Maxima, Outcome};
use skillbox::ids::Tenant;
use skillbox::sandbox::{ProgressSender, Sandbox, docker};
use skillbox::secret::MasterKey;
use skillbox::skill::{ImageAllowlist, Language, Selector, SkillRef};
use skillbox::store::{Instance, Store};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

/// An engine with everything below it, and an administrator.
pub(crate) struct World {
    pub(crate) engine: Engine,
    pub(crate) admin: Caller,
    pub(crate) folder: tempfile::TempDir,
}

/// What a world runs its programs on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Backend {
    Docker,
    Native,
}

/// What is expected on one backend or the other, where they keep a promise by different means.
pub(crate) fn of<T>(backend: Backend, docker: T, native: T) -> T {
    match backend {
        Backend::Docker => docker,
        Backend::Native => native,
    }
}

/// Names what is missing: prints why a test is skipped, or fails where `SKILLBOX_TEST_REQUIRE` asks for it.
pub(crate) fn missing(what: &str, why: &str) {
    let required = std::env::var("SKILLBOX_TEST_REQUIRE").unwrap_or_default();
    assert!(
        !required.split(',').any(|name| name == what),
        "{what} is required and missing: {why}"
    );
    println!("skipped: {what} is missing: {why}");
}

/// Calls of a load test, by all its clients: few enough for each change, or as many as `SKILLBOX_TEST_CALLS` says.
pub(crate) fn calls() -> usize {
    std::env::var("SKILLBOX_TEST_CALLS").map_or(200, |text| text.parse().unwrap())
}

/// Runs a test again in a process of its own, whose memory is its own. True there.
pub(crate) async fn alone(test: &str) -> bool {
    const ALONE: &str = "SKILLBOX_TEST_ALONE";
    if std::env::var_os(ALONE).is_some() {
        return true;
    }
    let mut command = tokio::process::Command::new(std::env::current_exe().unwrap());
    let output = command
        .args(["--exact", test, "--nocapture"])
        .env(ALONE, "1")
        .output()
        .await
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.contains("1 passed"), "{said}");
    false
}

/// The images of this machine: the ones that the environment names, else the defaults.
pub(crate) fn images() -> Images {
    let image = |variable: &str, language: Language| {
        std::env::var(variable).unwrap_or_else(|_| language.default_image().to_owned())
    };
    Images {
        python: image("SKILLBOX_IMAGE_PYTHON", Language::Python),
        node: image("SKILLBOX_IMAGE_NODE", Language::Node),
        bash: image("SKILLBOX_IMAGE_BASH", Language::Bash),
    }
}

/// An image that declares a volume; `tests/with-engine.sh` makes it.
pub(crate) const IMAGE_WITH_VOLUME: &str = "skillbox-test/volumes:2";
/// An image that wants to be run in every way that it must not be run; the test that needs it makes it.
pub(crate) const IMAGE_WITH_WISHES: &str = "skillbox-test/wishes:1";
/// Made by `tests/office-image.sh`.
pub(crate) const IMAGE_WITH_OFFICE: &str = "skillbox-test/office:1";
/// A tag that means one image and then another; the test that needs it makes it.
pub(crate) const IMAGE_THAT_MOVES: &str = "skillbox-test/moves:1";
/// An image that declares volumes where sandboxes have scratch; the test that needs it makes it.
pub(crate) const IMAGE_WITH_SCRATCH: &str = "skillbox-test/scratch:1";

/// How the engine of this machine is reached.
pub(crate) fn docker_settings() -> docker::Settings {
    docker::Settings {
        host: std::env::var("SKILLBOX_DOCKER_HOST").ok(),
        runtime: std::env::var("SKILLBOX_DOCKER_RUNTIME").ok(),
        // The test binary itself cannot be PID 1.
        guest_binary: Some(env!("CARGO_BIN_EXE_skillbox").into()),
    }
}

/// Set where less than every promise is accepted.
pub(crate) const DEGRADED: &str = "SKILLBOX_TEST_DEGRADED";

/// How native sandboxes are made on this machine.
#[cfg(target_os = "linux")]
pub(crate) fn native_settings() -> skillbox::sandbox::linux::Settings {
    use skillbox::sandbox::linux::{Degraded, Settings};

    Settings {
        // The test binary itself cannot be PID 1.
        program: Some(env!("CARGO_BIN_EXE_skillbox").into()),
        waiting_max: 2,
        folders: Vec::new(),
        // Set for the tests that run once more as a user without cgroups.
        allow_degraded: match std::env::var_os(DEGRADED) {
            Some(_) => Degraded::Allowed,
            None => Degraded::Refused,
        },
    }
}

/// The use cases of its engine.
impl std::ops::Deref for World {
    type Target = Engine;

    fn deref(&self) -> &Engine {
        &self.engine
    }
}

impl World {
    /// The tenant of the administrator.
    pub(crate) fn tenant(&self) -> &Tenant {
        self.admin.tenant()
    }

    /// A world on this backend, or `None` (and a word about it) where this machine has none.
    pub(crate) async fn on(backend: Backend) -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        let instance = instance_in(folder.path());
        let sandbox = sandbox_on(backend, &instance).await?;
        Some(Self::over(folder, instance, sandbox).await)
    }

    /// A world on this backend that gets its packages as these settings say.
    pub(crate) async fn with_packages(
        backend: Backend,
        deps: impl FnOnce(&Path) -> DependencySettings,
    ) -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        let instance = instance_in(folder.path());
        let sandbox = sandbox_on(backend, &instance).await?;
        let deps = deps(folder.path());
        let engine = engine_with_packages(deps, folder.path(), instance, sandbox).await;
        Some(Self::of(folder, engine).await)
    }

    /// A world over this sandbox, in this folder, which may hold an older world's data.
    pub(crate) async fn over(folder: tempfile::TempDir, instance: Instance, sandbox: Sandbox) -> Self {
        let engine = engine_in(folder.path(), instance, sandbox).await;
        Self::of(folder, engine).await
    }

    /// A world around this engine of this fresh folder.
    pub(crate) async fn of(folder: tempfile::TempDir, engine: Engine) -> Self {
        let key = ApiKey::from_random([7; 32]);
        assert!(engine.keys().adopt_first(&key).await.unwrap());
        let admin = engine.keys().authenticate(key.reveal()).await.unwrap();
        Self {
            engine,
            admin,
            folder,
        }
    }

    /// Runs a program as a skill of its own.
    pub(crate) async fn run(
        &self,
        language: Language,
        program: &str,
        request: impl Into<RunRequest>,
    ) -> Execution {
        self.try_run(language, program, request).await.unwrap()
    }

    /// As [`run`](Self::run), where a refusal is expected.
    pub(crate) async fn try_run(
        &self,
        language: Language,
        program: &str,
        request: impl Into<RunRequest>,
    ) -> Result<Execution, Error> {
        self.try_run_watched(language, program, request, None).await
    }

    /// As [`try_run`](Self::try_run), and prints slow phases.
    pub(crate) async fn try_run_watched(
        &self,
        language: Language,
        program: &str,
        request: impl Into<RunRequest>,
        progress: Option<ProgressSender>,
    ) -> Result<Execution, Error> {
        let request = RunRequest {
            archive: unpublished(archive(language, "", program)),
            progress,
            ..request.into()
        };
        self.runs().run(self.tenant(), request).await
    }

    /// Runs an archive that is not published.
    pub(crate) async fn run_archive(
        &self,
        archive: std::fs::File,
        request: impl Into<RunRequest>,
    ) -> Result<Execution, Error> {
        let archive = unpublished(archive);
        self.run_request(RunRequest {
            archive,
            ..request.into()
        })
        .await
    }

    /// Runs an archive and follows it from its beginning; its end comes with the task.
    pub(crate) async fn watch(
        &self,
        archive: std::fs::File,
    ) -> (Subscription, JoinHandle<Result<Execution, Error>>) {
        let archive = unpublished(archive);
        let request = RunRequest {
            archive,
            ..RunRequest::default()
        };
        let (engine, admin) = (self.engine.clone(), self.admin.clone());
        let (watcher, watched) = oneshot::channel();
        let run = tokio::spawn(async move {
            engine
                .runs()
                .run_watched(admin.tenant(), request, RunOptions::default(), Some(watcher))
                .await
        });
        (watched.await.unwrap(), run)
    }

    /// Runs the latest version of a published skill.
    pub(crate) async fn run_latest(&self, name: &str, ask: RunSpec) -> Result<Execution, Error> {
        let skill = SkillRef {
            name: name.parse().unwrap(),
            selector: Selector::Latest,
        };
        self.run_request(RunSpec {
            skill: Some(skill),
            ..ask
        })
        .await
    }

    pub(crate) async fn run_request(&self, request: impl Into<RunRequest>) -> Result<Execution, Error> {
        self.runs().run(self.tenant(), request).await
    }

    /// Nothing that was refused stands among the executions.
    pub(crate) async fn has_recorded_nothing(&self) -> bool {
        let page = PageRequest { after: None, rows: 1 };
        let recorded = self.executions().list(self.tenant(), Default::default(), page);
        recorded.await.unwrap().items.is_empty()
    }

    /// Runs a Python program and returns how it ended.
    pub(crate) async fn python(&self, program: &str) -> Outcome {
        self.run(Language::Python, program, RunSpec::default())
            .await
            .outcome
            .unwrap()
    }
}

/// The `archive` of a request.
pub(crate) fn unpublished(zip: std::fs::File) -> Option<UnpublishedArchive> {
    Some(UnpublishedArchive {
        zip,
        fallback_name: None,
    })
}

/// A sandbox of this backend, or `None` (and a word about it) where this machine has none.
pub(crate) async fn sandbox_on(backend: Backend, instance: &Instance) -> Option<Sandbox> {
    let (what, sandbox) = match backend {
        Backend::Docker => ("docker", Sandbox::docker(docker_settings(), instance.id())),
        #[cfg(target_os = "linux")]
        Backend::Native => ("linux", Sandbox::native(native_settings(), instance.id())),
        #[cfg(not(target_os = "linux"))]
        Backend::Native => unreachable!("there is no native sandbox here"),
    };
    if let Err(error) = sandbox.check().await {
        missing(what, &error.to_string());
        return None;
    }
    Some(sandbox)
}

/// Registers a process in `folder`.
pub(crate) fn instance_in(folder: &Path) -> Instance {
    Instance::register_beside(&folder.join("skillbox.db")).unwrap()
}

/// An engine over `folder` with the images of this machine, which keeps everything.
pub(crate) async fn engine_in(folder: &Path, instance: Instance, sandbox: Sandbox) -> Engine {
    engine_with(folder, instance, sandbox, images()).await
}

/// An engine over `folder` that runs each language in these images.
pub(crate) async fn engine_with(
    folder: &Path,
    instance: Instance,
    sandbox: Sandbox,
    images: Images,
) -> Engine {
    engine_of(settings(folder, images), folder, instance, sandbox).await
}

/// An engine over `folder` that forgets.
pub(crate) async fn engine_with_retention(
    retention: RetentionPolicy,
    folder: &Path,
    instance: Instance,
    sandbox: Sandbox,
) -> Engine {
    let settings = Settings {
        retention,
        ..settings(folder, images())
    };
    engine_of(settings, folder, instance, sandbox).await
}

/// An engine over `folder` that gets its packages as these settings say.
pub(crate) async fn engine_with_packages(
    deps: DependencySettings,
    folder: &Path,
    instance: Instance,
    sandbox: Sandbox,
) -> Engine {
    let settings = Settings {
        deps,
        ..settings(folder, images())
    };
    engine_of(settings, folder, instance, sandbox).await
}

/// An engine over `folder` that sends webhooks with these settings.
pub(crate) async fn engine_with_webhooks(
    webhooks: WebhookSettings,
    folder: &Path,
    instance: Instance,
    sandbox: Sandbox,
) -> Engine {
    let settings = Settings {
        webhooks,
        ..settings(folder, images())
    };
    engine_of(settings, folder, instance, sandbox).await
}

fn settings(folder: &Path, images: Images) -> Settings {
    let allowlist = [
        &images.python,
        &images.node,
        &images.bash,
        IMAGE_WITH_VOLUME,
        IMAGE_WITH_WISHES,
        IMAGE_WITH_SCRATCH,
        IMAGE_THAT_MOVES,
        IMAGE_WITH_OFFICE,
    ]
    .map(ToOwned::to_owned);
    Settings {
        maxima: Maxima {
            timeout_default: Duration::from_secs(60),
            ..Maxima::default()
        },
        images,
        allowlist: ImageAllowlist::new(allowlist),
        concurrency: 4,
        tenant_concurrency: 4,
        tenant_rate: None,
        tenant_storage: None,
        queue: 64,
        async_queue: 64,
        queue_wait: Duration::from_secs(60),
        retention: RetentionPolicy::default(),
        keep_request: Some(skillbox::limits::KEEP_REQUEST_BYTES),
        blobs: BlobPolicy {
            quota_bytes: 64 << 20,
            ..BlobPolicy::default()
        },
        link_life: Duration::from_secs(60),
        deps: DependencySettings::in_folder(folder.join("packages")),
        webhooks: WebhookSettings::default(),
        cache_dir: folder.join("cache"),
        tmp_dir: folder.join("tmp"),
    }
}

/// Packages from the index that this machine's own pip and npm use, in this folder.
pub(crate) fn packages(folder: &Path) -> DependencySettings {
    let mut settings = DependencySettings::in_folder(folder.join("packages"));
    let variable = |name: &str| std::env::var(name).unwrap_or_default();
    settings.upstream = Upstream::parse(&variable("HTTPS_PROXY"), &variable("NO_PROXY"));
    if let Some(url) = configured("pip", &["config", "get", "global.index-url"], "PIP_INDEX_URL") {
        settings.python_index = Index::parse(&url, NamedBy::Operator).unwrap();
    }
    if let Some(url) = configured("npm", &["config", "get", "registry"], "NPM_CONFIG_REGISTRY") {
        settings.node_registry = Index::parse(&url, NamedBy::Operator).unwrap();
    }
    settings
}

/// What a variable says, or a program; `None` where that is what we would take anyway.
fn configured(program: &str, arguments: &[&str], variable: &str) -> Option<String> {
    let asked = || {
        let output = Command::new(program).args(arguments).output().ok()?;
        let text = String::from_utf8(output.stdout).ok()?;
        output
            .status
            .success()
            .then(|| text.trim().trim_end_matches('/').to_owned())
    };
    let url = std::env::var(variable).ok().or_else(asked)?;
    (url.starts_with("https://") && url != Index::PYTHON && url != Index::NODE).then_some(url)
}

async fn engine_of(settings: Settings, folder: &Path, instance: Instance, sandbox: Sandbox) -> Engine {
    std::fs::create_dir_all(&settings.tmp_dir).unwrap();
    let store = Store::open_sqlite(&folder.join("skillbox.db")).await.unwrap();
    let blob = Blob::open_local(&folder.join("blobs")).unwrap();
    let links = LinkSigner::new(b"0123456789abcdef-links-of-a-test-").unwrap();
    Engine::new(Parts {
        store,
        blob,
        sandbox,
        links,
        master_key: MasterKey::from_random(MASTER_KEY),
        settings,
        instance,
    })
}

/// Seals the secrets of tests.
pub(crate) const MASTER_KEY: [u8; 32] = *b"0123456789abcdef-master-of-tests";

/// A zip with a SKILL.md and one program; `front_matter` adds lines.
pub(crate) fn archive(language: Language, front_matter: &str, program: &str) -> std::fs::File {
    let skill_md = format!(
        "---\nname: probe\ndescription: Probes the sandbox\nlang: {language}\n{front_matter}---\n\nProbe.\n"
    );
    zip_of(&[("SKILL.md", &skill_md), (language.default_entrypoint(), program)])
}

/// A zip of these files.
pub(crate) fn zip_of(files: &[(&str, &str)]) -> std::fs::File {
    use std::io::{Seek as _, Write as _};

    let mut zip = zip::ZipWriter::new(tempfile::tempfile().unwrap());
    for (path, content) in files {
        zip.start_file(*path, zip::write::SimpleFileOptions::default())
            .unwrap();
        zip.write_all(content.as_bytes()).unwrap();
    }
    let mut file = zip.finish().unwrap();
    file.rewind().unwrap();
    file
}

/// Checked JSON.
pub(crate) fn json(text: &str) -> JsonText {
    JsonText::parse(text.as_bytes()).unwrap()
}
