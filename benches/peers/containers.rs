//! The same hardened container: by `docker run`, by the sequence of most tutorials, and what the engine itself can do.

use std::path::Path;
use std::process::Command;
use std::time::Instant;

use bollard::models::HostConfigLogConfig;
use bollard::query_parameters::CreateContainerOptions;
use skillbox::sandbox::seccomp;

use crate::container::{ByHand, ENV, Program, TMPFS, tmpfs};
use crate::measure::{milliseconds, timed_as_it_is};
use crate::spoken::Spoken;
use crate::world;

/// One container's description, and the engine.
pub(crate) struct Containers {
    by_hand: ByHand,
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

impl Containers {
    pub(crate) fn new(spoken: &Spoken) -> Self {
        let folder = spoken.folder();
        let profile = tempfile::NamedTempFile::new().unwrap();
        let seccomp = seccomp::docker_profile(std::env::consts::ARCH).to_string();
        std::fs::write(profile.path(), &seccomp).unwrap();
        let image = image(spoken);
        let program = Program {
            image: &image,
            interpreter: interpreter(spoken),
            file: spoken.file,
            folder: folder.path(),
        };
        let host = world::docker_settings().host;
        Self {
            by_hand: ByHand::new(&program, &seccomp),
            run: arguments(&program, host.as_deref(), profile.path()),
            _folder: folder,
            _profile: profile,
        }
    }

    /// `docker run --rm`.
    pub(crate) fn docker_run(&self) -> f64 {
        timed_as_it_is(Command::new("docker").args(&self.run))
    }

    /// Create, start, wait, logs; removed afterwards, off the time.
    pub(crate) async fn naive(&self) -> f64 {
        self.by_hand.once().await.0
    }

    /// What the engine itself has to do for any container: create, start, remove; without a log, a network or a wait.
    pub(crate) async fn cycle(&self) -> f64 {
        let mut body = self.by_hand.body.clone();
        body.network_disabled = Some(true);
        if let Some(host) = &mut body.host_config {
            host.log_config = Some(HostConfigLogConfig {
                typ: Some("none".to_owned()),
                config: None,
            });
        }
        let started = Instant::now();
        let docker = &self.by_hand.docker;
        let created = docker.create_container(None::<CreateContainerOptions>, body);
        let id = created.await.unwrap().id;
        docker.start_container(&id, None).await.unwrap();
        self.by_hand.remove(&id).await;
        milliseconds(started)
    }
}

/// The same for the command line.
fn arguments(program: &Program<'_>, host: Option<&str>, profile: &Path) -> Vec<String> {
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
    all.extend([
        "--volume".to_owned(),
        format!("{}:/skill:ro", program.folder.display()),
    ]);
    all.extend([
        program.image.to_owned(),
        program.interpreter.to_owned(),
        format!("/skill/{}", program.file),
    ]);
    all
}
