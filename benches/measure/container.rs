//! The same hardened container by hand, driven as most tutorials do.

use std::collections::HashMap;
use std::path::Path;
use std::time::Instant;

use bollard::models::{ContainerCreateBody, HostConfig, HostConfigLogConfig};
use bollard::query_parameters::{
    CreateContainerOptions, LogsOptionsBuilder, RemoveContainerOptionsBuilder, WaitContainerOptions,
};
use futures::StreamExt as _;

use crate::world;

/// What is run in it.
pub(crate) struct Program<'a> {
    pub(crate) image: &'a str,
    pub(crate) interpreter: &'a str,
    pub(crate) file: &'a str,
    /// Has the program and `input.json`; bound at `/skill`.
    pub(crate) folder: &'a Path,
}

/// Where it may write, and how many bytes.
pub(crate) const TMPFS: [(&str, u64); 4] = [
    ("/workspace", 256 << 20),
    ("/sandbox", 64 << 20),
    ("/tmp", 64 << 20),
    ("/root", 1 << 20),
];
pub(crate) const ENV: [&str; 2] = [
    "SANDBOX_INPUT_FILE=/skill/input.json",
    "SANDBOX_OUTPUT=/workspace/output.json",
];

pub(crate) fn tmpfs(bytes: u64) -> String {
    format!("rw,noexec,nosuid,nodev,size={bytes},mode=0700,uid=65534,gid=65534")
}

/// One container's description, and the engine of this machine.
pub(crate) struct ByHand {
    pub(crate) docker: bollard::Docker,
    pub(crate) body: ContainerCreateBody,
}

impl ByHand {
    pub(crate) fn new(program: &Program<'_>, seccomp: &str) -> Self {
        let docker = match &world::docker_settings().host {
            Some(host) => bollard::Docker::connect_with_host(host),
            None => bollard::Docker::connect_with_defaults(),
        };
        Self {
            docker: docker.unwrap(),
            body: body(program, seccomp),
        }
    }

    /// Create, start, wait, logs; removed afterwards, off the time. The milliseconds, and what was printed.
    pub(crate) async fn once(&self) -> (f64, String) {
        let started = Instant::now();
        let created = self
            .docker
            .create_container(None::<CreateContainerOptions>, self.body.clone());
        let id = created.await.unwrap().id;
        self.docker.start_container(&id, None).await.unwrap();
        let mut waiting = self.docker.wait_container(&id, None::<WaitContainerOptions>);
        let ended = waiting.next().await.unwrap();
        let options = LogsOptionsBuilder::default().stdout(true).stderr(true).build();
        let logs: Vec<_> = self.docker.logs(&id, Some(options)).collect().await;
        let total = started.elapsed().as_secs_f64() * 1000.0;
        assert_eq!(ended.unwrap().status_code, 0);
        self.remove(&id).await;
        (
            total,
            logs.into_iter().map(|log| log.unwrap().to_string()).collect(),
        )
    }

    pub(crate) async fn remove(&self, id: &str) {
        let options = RemoveContainerOptionsBuilder::default()
            .force(true)
            .v(true)
            .build();
        self.docker.remove_container(id, Some(options)).await.unwrap();
    }
}

/// The same restrictions and limits, a json-file log, no thought for the start-up.
fn body(program: &Program<'_>, seccomp: &str) -> ContainerCreateBody {
    let scratch = TMPFS.map(|(place, bytes)| (place.to_owned(), tmpfs(bytes)));
    ContainerCreateBody {
        image: Some(program.image.to_owned()),
        cmd: Some(vec![
            program.interpreter.to_owned(),
            format!("/skill/{}", program.file),
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
            binds: Some(vec![format!("{}:/skill:ro", program.folder.display())]),
            log_config: Some(HostConfigLogConfig {
                typ: Some("json-file".to_owned()),
                config: None,
            }),
            ..HostConfig::default()
        }),
        ..ContainerCreateBody::default()
    }
}
