//! The same hardened container by hand: `docker run`, the sequence of most tutorials, and what the engine itself can do.

use std::collections::HashMap;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use bollard::models::{ContainerCreateBody, HostConfig, HostConfigLogConfig};
use bollard::query_parameters::{
    CreateContainerOptions, LogsOptionsBuilder, RemoveContainerOptionsBuilder, WaitContainerOptions,
};
use futures::StreamExt as _;
use skillbox::sandbox::seccomp;

use crate::measure::milliseconds;
use crate::spoken::Spoken;
use crate::world;

/// One container's description, and the engine.
pub(crate) struct Containers {
    docker: bollard::Docker,
    body: ContainerCreateBody,
    run: Vec<String>,
    _folder: tempfile::TempDir,
    _profile: tempfile::NamedTempFile,
}

/// The image of a language on this machine.
fn image(spoken: &Spoken) -> String {
    let images = world::images();
    match spoken.name {
        "python" => images.python,
        "node" => images.node,
        _ => images.bash,
    }
}

fn interpreter(spoken: &Spoken) -> &'static str {
    match spoken.name {
        "python" => "python3",
        "node" => "node",
        _ => "bash",
    }
}

const TMPFS: [(&str, u64); 4] = [
    ("/workspace", 256 << 20),
    ("/sandbox", 64 << 20),
    ("/tmp", 64 << 20),
    ("/root", 1 << 20),
];
const ENV: [&str; 2] = [
    "SANDBOX_INPUT_FILE=/skill/input.json",
    "SANDBOX_OUTPUT=/workspace/output.json",
];

fn tmpfs(bytes: u64) -> String {
    format!("rw,noexec,nosuid,nodev,size={bytes},mode=0700,uid=65534,gid=65534")
}

impl Containers {
    pub(crate) fn new(spoken: &Spoken) -> Self {
        let host = world::docker_settings().host;
        let docker = match &host {
            Some(host) => bollard::Docker::connect_with_host(host),
            None => bollard::Docker::connect_with_defaults(),
        };
        let folder = spoken.folder();
        let profile = tempfile::NamedTempFile::new().unwrap();
        let seccomp = seccomp::docker_profile(std::env::consts::ARCH).to_string();
        std::fs::write(profile.path(), &seccomp).unwrap();
        Self {
            docker: docker.unwrap(),
            body: body(spoken, folder.path(), &seccomp),
            run: arguments(spoken, folder.path(), (host.as_deref(), profile.path())),
            _folder: folder,
            _profile: profile,
        }
    }

    /// `docker run --rm`.
    pub(crate) fn docker_run(&self) -> f64 {
        let started = Instant::now();
        let output = Command::new("docker").args(&self.run).output().unwrap();
        let total = milliseconds(started);
        assert!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
        total
    }

    /// Create, start, wait, logs; removed afterwards, off the time.
    pub(crate) async fn naive(&self) -> f64 {
        let started = Instant::now();
        let created = self
            .docker
            .create_container(None::<CreateContainerOptions>, self.body.clone());
        let id = created.await.unwrap().id;
        self.docker.start_container(&id, None).await.unwrap();
        let mut waiting = self.docker.wait_container(&id, None::<WaitContainerOptions>);
        let ended = waiting.next().await.unwrap();
        let options = LogsOptionsBuilder::default().stdout(true).stderr(true).build();
        let _logs: Vec<_> = self.docker.logs(&id, Some(options)).collect().await;
        let total = milliseconds(started);
        assert_eq!(ended.unwrap().status_code, 0);
        self.remove(&id).await;
        total
    }

    /// What the engine itself has to do for any container: create, start, remove; without a log, a network or a wait.
    pub(crate) async fn cycle(&self) -> f64 {
        let mut body = self.body.clone();
        body.network_disabled = Some(true);
        if let Some(host) = &mut body.host_config {
            host.log_config = Some(HostConfigLogConfig {
                typ: Some("none".to_owned()),
                config: None,
            });
        }
        let started = Instant::now();
        let created = self.docker.create_container(None::<CreateContainerOptions>, body);
        let id = created.await.unwrap().id;
        self.docker.start_container(&id, None).await.unwrap();
        self.remove(&id).await;
        milliseconds(started)
    }

    async fn remove(&self, id: &str) {
        let options = RemoveContainerOptionsBuilder::default()
            .force(true)
            .v(true)
            .build();
        self.docker.remove_container(id, Some(options)).await.unwrap();
    }
}

/// The naive container: the same restrictions and limits, a json-file log, no thought for the start-up.
fn body(spoken: &Spoken, folder: &Path, seccomp: &str) -> ContainerCreateBody {
    let scratch = TMPFS.map(|(place, bytes)| (place.to_owned(), tmpfs(bytes)));
    ContainerCreateBody {
        image: Some(image(spoken)),
        cmd: Some(vec![
            interpreter(spoken).to_owned(),
            format!("/skill/{}", spoken.file),
        ]),
        env: Some(ENV.map(str::to_owned).to_vec()),
        user: Some("65534:65534".to_owned()),
        host_config: Some(HostConfig {
            network_mode: Some("none".to_owned()),
            cap_drop: Some(vec!["ALL".to_owned()]),
            security_opt: Some(vec![
                "no-new-privileges:true".to_owned(),
                format!("seccomp={seccomp}"),
            ]),
            readonly_rootfs: Some(true),
            pids_limit: Some(128),
            memory: Some(512 << 20),
            memory_swap: Some(512 << 20),
            nano_cpus: Some(1_000_000_000),
            tmpfs: Some(HashMap::from(scratch)),
            binds: Some(vec![format!("{}:/skill:ro", folder.display())]),
            log_config: Some(HostConfigLogConfig {
                typ: Some("json-file".to_owned()),
                config: None,
            }),
            ..HostConfig::default()
        }),
        ..ContainerCreateBody::default()
    }
}

/// The same for the command line.
fn arguments(spoken: &Spoken, folder: &Path, (host, profile): (Option<&str>, &Path)) -> Vec<String> {
    let mut all: Vec<String> = host
        .map(|host| vec!["-H".to_owned(), host.to_owned()])
        .unwrap_or_default();
    all.extend(
        [
            "run",
            "--rm",
            "--network",
            "none",
            "--cap-drop",
            "ALL",
            "--read-only",
            "--user",
            "65534:65534",
        ]
        .map(str::to_owned),
    );
    all.extend(
        [
            "--pids-limit",
            "128",
            "--memory",
            "512m",
            "--memory-swap",
            "512m",
            "--cpus",
            "1",
        ]
        .map(str::to_owned),
    );
    all.extend(["--security-opt", "no-new-privileges:true", "--security-opt"].map(str::to_owned));
    all.push(format!("seccomp={}", profile.display()));
    for (place, bytes) in TMPFS {
        all.extend(["--tmpfs".to_owned(), format!("{place}:{}", tmpfs(bytes))]);
    }
    for variable in ENV {
        all.extend(["--env".to_owned(), variable.to_owned()]);
    }
    all.extend(["--volume".to_owned(), format!("{}:/skill:ro", folder.display())]);
    all.extend([
        image(spoken),
        interpreter(spoken).to_owned(),
        format!("/skill/{}", spoken.file),
    ]);
    all
}
