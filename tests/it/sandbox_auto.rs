//! What `auto` decides, over real sockets: which backend, why, and that deciding takes a bounded time.

use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Json, Response};
use serde_json::json;
use skillbox::engine::{RunRequest, RunSpec};
use skillbox::error::{Code, Error};
use skillbox::execution::{Execution, Status};
use skillbox::sandbox::{Sandbox, docker, linux};
use skillbox::skill::Language;

use crate::world::{
    Backend, IMAGE_WITH_WISHES, World, archive, docker_settings, instance_in, missing, native_settings,
    unpublished,
};

/// Something that answers, or does not, where an engine should be.
#[derive(Debug)]
struct Engine {
    manner: Manner,
    asked: Mutex<Vec<String>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Manner {
    /// Takes calls and never answers one.
    Silent,
    /// Has no image, and no registry has it either.
    NoImage,
    /// Has no image, and its registry never answers.
    SilentRegistry,
    /// Cannot bound memory.
    NoMemoryLimit,
    /// Fails at everything about images.
    Failing,
}

impl Engine {
    /// Listens on the loopback; returns itself and its address.
    async fn listen(manner: Manner) -> (Arc<Self>, String) {
        let engine = Arc::new(Self {
            manner,
            asked: Mutex::default(),
        });
        let routes = axum::Router::new().fallback(answer).with_state(engine.clone());
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("tcp://{}", listener.local_addr().unwrap());
        tokio::spawn(async move { axum::serve(listener, routes).await });
        (engine, address)
    }

    /// How many calls had this in their path.
    fn asked(&self, what: &str) -> usize {
        let asked = self.asked.lock().unwrap();
        asked.iter().filter(|path| path.contains(what)).count()
    }
}

async fn answer(State(engine): State<Arc<Engine>>, request: Request) -> Response {
    let path = request.uri().path().to_owned();
    engine.asked.lock().unwrap().push(path.clone());
    let manner = engine.manner;
    if manner == Manner::Silent || (manner == Manner::SilentRegistry && path.ends_with("/images/create")) {
        return std::future::pending().await;
    }
    let refused = |status: StatusCode, why: &str| (status, Json(json!({ "message": why }))).into_response();
    let architecture = std::env::consts::ARCH;
    match path.rsplit('/').next().unwrap_or_default() {
        "version" => {
            Json(json!({ "ApiVersion": "1.41", "Version": "0", "Os": "linux", "Arch": architecture }))
                .into_response()
        }
        "_ping" => "OK".into_response(),
        "info" => {
            Json(json!({ "MemoryLimit": manner != Manner::NoMemoryLimit, "PidsLimit": true })).into_response()
        }
        _ if manner == Manner::Failing => refused(StatusCode::INTERNAL_SERVER_ERROR, "out of order"),
        "create" => refused(StatusCode::INTERNAL_SERVER_ERROR, "no such host"),
        _ => refused(StatusCode::NOT_FOUND, "no such image"),
    }
}

/// A world on `auto` whose engine should be at `host`; `None` where the native sandbox cannot be had.
async fn world(host: &str) -> Option<World> {
    World::on(Backend::Native).await?;
    Some(world_with(host, native_settings()).await)
}

async fn world_with(host: &str, native: linux::Settings) -> World {
    let folder = tempfile::tempdir().unwrap();
    let instance = instance_in(folder.path());
    let engine = docker::Settings {
        host: Some(host.to_owned()),
        ..docker_settings()
    };
    let sandbox = Sandbox::auto(engine, native, instance.id());
    World::over(folder, instance, sandbox).await
}

async fn run(world: &World, front_matter: &str) -> Result<Execution, Error> {
    let archive = unpublished(archive(Language::Bash, front_matter, "true"));
    let ask = RunSpec::default();
    let request = RunRequest {
        archive,
        ..RunRequest::from(ask)
    };
    world.runs().run(world.tenant(), request).await
}

/// Runs natively; returns why, and how long that took.
async fn runs_natively(world: &World) -> (String, Duration) {
    let started = Instant::now();
    let execution = run(world, "").await.unwrap();
    let took = started.elapsed();
    let backend = execution.new.backend.unwrap();
    assert_eq!(backend.name, "native", "{}", backend.reason);
    let outcome = execution.outcome.unwrap();
    assert_eq!(outcome.status, Status::Success, "{:?}", outcome.error);
    (backend.reason, took)
}

/// Far below what an engine's silence costs, far above a run on a busy machine.
const AT_ONCE: Duration = Duration::from_secs(8);

/// F-07.
#[tokio::test]
async fn falls_back_to_native_without_an_engine_and_says_why() {
    let Some(world) = world("unix:///nonexistent/docker.sock").await else {
        return;
    };
    let (why, took) = runs_natively(&world).await;
    assert!(
        why.contains("no container engine responds; the native sandbox keeps every promise")
            && !why.contains("docker.sock"),
        "{why}"
    );
    assert!(took < AT_ONCE, "{took:?}");
}

/// F-08.
#[tokio::test]
async fn waits_for_a_silent_engine_once() {
    let (engine, host) = Engine::listen(Manner::Silent).await;
    let Some(world) = world(&host).await else {
        return;
    };
    let (why, _) = runs_natively(&world).await;
    assert!(why.contains("no response of the container engine"), "{why}");
    let asked = engine.asked("");
    let (_, took) = runs_natively(&world).await;
    assert!(took < AT_ONCE, "{took:?}");
    assert_eq!(engine.asked(""), asked, "it was asked again");
}

/// F-10.
#[tokio::test]
async fn pulls_a_missing_image_once() {
    let (engine, host) = Engine::listen(Manner::NoImage).await;
    let Some(world) = world(&host).await else {
        return;
    };
    for _ in 0..3 {
        let (why, took) = runs_natively(&world).await;
        assert!(why.contains("could not be pulled"), "{why}");
        assert!(took < AT_ONCE, "{took:?}");
    }
    assert_eq!(engine.asked("/images/create"), 1);
}

/// F-10.
#[tokio::test]
async fn waits_for_a_silent_registry_once() {
    let (engine, host) = Engine::listen(Manner::SilentRegistry).await;
    let Some(world) = world(&host).await else {
        return;
    };
    let (why, _) = runs_natively(&world).await;
    assert!(why.contains("registry"), "{why}");
    let (_, took) = runs_natively(&world).await;
    assert!(took < AT_ONCE, "{took:?}");
    assert_eq!(engine.asked("/images/create"), 1);
}

/// P6: `auto` takes no engine that breaks a promise.
#[tokio::test]
async fn skips_an_engine_without_memory_limits() {
    let (engine, host) = Engine::listen(Manner::NoMemoryLimit).await;
    let Some(world) = world(&host).await else {
        return;
    };
    let (why, _) = runs_natively(&world).await;
    assert!(why.contains("cannot limit memory (P6)"), "{why}");
    assert_eq!(engine.asked("/images/"), 0);
}

/// F-08.
#[tokio::test]
async fn failing_engine_is_an_error_without_fallback() {
    let (_engine, host) = Engine::listen(Manner::Failing).await;
    let Some(world) = world(&host).await else {
        return;
    };
    let error = run(&world, "").await.unwrap_err();
    assert_eq!(error.code(), Code::SandboxUnavailable);
    assert!(error.to_string().contains("inspecting the image"), "{error}");
}

/// S-35: an image that the operator has not allowed is neither run nor pulled.
#[tokio::test]
async fn rejects_an_image_that_is_not_allowed_on_every_backend() {
    let (engine, host) = Engine::listen(Manner::NoImage).await;
    let Some(world) = world(&host).await else {
        return;
    };
    let error = run(&world, "image: other-team/tool:1\n").await.unwrap_err();
    assert_eq!(error.code(), Code::Invalid);
    assert!(error.to_string().contains("not in the allow-list"), "{error}");
    assert_eq!(engine.asked("/images/"), 0);
}

#[tokio::test]
async fn skill_with_its_own_image_never_uses_programs_of_the_host() {
    let front_matter = format!("image: {IMAGE_WITH_WISHES}\n");
    let Some(native) = World::on(Backend::Native).await else {
        return;
    };
    let auto = world_with("unix:///nonexistent/docker.sock", native_settings()).await;
    for (world, engine) in [(native, ""), (auto, "/nonexistent/docker.sock")] {
        let error = run(&world, &front_matter).await.unwrap_err();
        assert_eq!(error.code(), Code::SandboxUnavailable);
        let message = error.to_string();
        for part in [IMAGE_WITH_WISHES, "remove `image`", engine] {
            assert!(message.contains(part), "{message}");
        }
    }
}

#[tokio::test]
async fn error_without_backend_has_remedies_for_both() {
    let native = linux::Settings {
        program: Some("/nonexistent/skillbox".into()),
        ..native_settings()
    };
    let world = world_with("unix:///nonexistent/docker.sock", native).await;
    let error = run(&world, "").await.unwrap_err();
    assert_eq!(error.code(), Code::SandboxUnavailable);
    let message = error.to_string();
    for part in ["docker: ", "start Docker", "native: "] {
        assert!(message.contains(part), "{message}");
    }
}

/// F-06.
#[tokio::test]
async fn engine_that_returns_is_used_again() {
    let Some(real) = docker_settings()
        .host
        .and_then(|host| host.strip_prefix("unix://").map(ToOwned::to_owned))
    else {
        return missing("docker", "the engine must be at a socket of this machine");
    };
    if World::on(Backend::Docker).await.is_none() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("docker.sock");
    let Some(world) = world(&format!("unix://{}", socket.display())).await else {
        return;
    };
    runs_natively(&world).await;
    std::os::unix::fs::symlink(Path::new(&real), &socket).unwrap();
    let started = Instant::now();
    loop {
        let execution = run(&world, "").await.unwrap();
        let backend = execution.new.backend.unwrap();
        if backend.name == "docker" {
            assert!(backend.reason.starts_with("auto: "));
            return;
        }
        assert!(started.elapsed() < Duration::from_secs(30), "{}", backend.reason);
    }
}

#[tokio::test]
async fn shutdown_does_not_wait_for_backend_selection() {
    let (engine, host) = Engine::listen(Manner::Silent).await;
    let world = world_with(&host, native_settings()).await;
    let asking = async {
        while engine.asked("") == 0 {
            tokio::task::yield_now().await;
        }
        let started = Instant::now();
        world.maintenance().shutdown(Duration::ZERO).await;
        started.elapsed()
    };
    let (refused, took) = tokio::join!(run(&world, ""), asking);
    assert_eq!(refused.unwrap_err().code(), Code::Busy);
    assert!(took < AT_ONCE, "{took:?}");
}
