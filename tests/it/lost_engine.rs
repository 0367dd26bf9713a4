//! A container engine that goes away, as a caller sees it: F-06.

use std::path::PathBuf;
use std::time::Duration;

use skillbox::engine::{PageRequest, RunRequest, RunSpec};
use skillbox::error::Code;
use skillbox::execution::Status;
use skillbox::sandbox::{Sandbox, docker};
use skillbox::skill::Language;
use tokio::io::copy_bidirectional;
use tokio::net::{UnixListener, UnixStream};
use tokio::task::JoinSet;

use crate::world::{Backend, World, docker_settings, instance_in, missing};

/// A socket before the real engine, until it is dropped.
struct Gateway {
    _connections: JoinSet<()>,
    socket: PathBuf,
}

impl Gateway {
    fn before(real: PathBuf, socket: PathBuf) -> Self {
        let listener = UnixListener::bind(&socket).unwrap();
        let mut connections = JoinSet::new();
        connections.spawn(async move {
            let mut open = JoinSet::new();
            while let Ok((mut caller, _)) = listener.accept().await {
                let real = real.clone();
                open.spawn(async move {
                    if let Ok(mut engine) = UnixStream::connect(&real).await {
                        let _ = copy_bidirectional(&mut caller, &mut engine).await;
                    }
                });
            }
        });
        Self {
            _connections: connections,
            socket,
        }
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        std::fs::remove_file(&self.socket).unwrap();
    }
}

fn code(program: &str) -> RunRequest {
    RunRequest::from(RunSpec {
        code: Some(program.to_owned()),
        language: Some(Language::Bash),
        ..RunSpec::default()
    })
}

/// Before its start a run is refused and leaves no execution behind; after it the execution has failed, and not because of
/// its program. The engine that returns is used again.
#[tokio::test]
async fn engine_lost_before_and_during_run() {
    let Some(real) = docker_settings()
        .host
        .and_then(|host| host.strip_prefix("unix://").map(PathBuf::from))
    else {
        return missing("docker", "the engine must be at a socket of this machine");
    };
    if World::on(Backend::Docker).await.is_none() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("docker.sock");
    let gateway = Gateway::before(real.clone(), socket.clone());
    let instance = instance_in(folder.path());
    let settings = docker::Settings {
        host: Some(format!("unix://{}", socket.display())),
        ..docker_settings()
    };
    let sandbox = Sandbox::docker(settings, instance.id());
    let world = World::over(folder, instance, sandbox).await;
    let tenant = world.tenant().clone();

    let run = async {
        world
            .engine
            .runs()
            .run(&tenant, code("echo begun; sleep 60"))
            .await
    };
    let lose = async {
        tokio::time::sleep(Duration::from_secs(3)).await;
        drop(gateway);
    };
    let (ended, ()) = tokio::join!(run, lose);
    let outcome = ended.unwrap().outcome.unwrap();
    let error = outcome.error.unwrap();
    assert_eq!(
        (outcome.status, error.code.as_str()),
        (Status::Failed, "sandbox_unavailable"),
        "{error:?}"
    );
    assert_eq!(outcome.logs.stdout, b"begun\n");

    let refused = world.engine.runs().run(&tenant, code("true")).await.unwrap_err();
    assert_eq!(refused.code(), Code::SandboxUnavailable, "{refused}");
    assert!(refused.retry_after().is_some());
    let listed = world
        .engine
        .executions()
        .list(
            &tenant,
            Default::default(),
            PageRequest {
                after: None,
                rows: 10,
            },
        )
        .await
        .unwrap();
    assert_eq!(listed.items.len(), 1, "{listed:?}");

    let _gateway = Gateway::before(real, socket);
    let ended = world.engine.runs().run(&tenant, code("true")).await.unwrap();
    assert_eq!(ended.status, Status::Success);
}
