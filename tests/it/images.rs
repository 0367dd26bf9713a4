//! Images that the engine does not have yet: pulled, or refused with a word on what to do.

use std::io::Write as _;
use std::sync::Arc;

use axum::extract::{Path, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;
use bollard::query_parameters::RemoveImageOptionsBuilder;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use skillbox::engine::{Images, RunSpec};
use skillbox::error::Code;
use skillbox::execution::Status;
use skillbox::sandbox::{Progress, Sandbox};
use skillbox::skill::Language;

use crate::sandbox_oracles::connect;
use crate::world::{World, docker_settings, engine_with, images, instance_in, missing};

/// An image without a single program, as a registry serves it.
struct Registry {
    manifest: Value,
    config: Vec<u8>,
    layer: Vec<u8>,
}

impl Registry {
    fn new() -> Self {
        let mut tar = tar::Builder::new(Vec::new());
        let mut header = tar::Header::new_gnu();
        header.set_size(0);
        header.set_mode(0o644);
        tar.append_data(&mut header, "made-by-a-test", std::io::empty())
            .unwrap();
        let tar = tar.into_inner().unwrap();
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        gzip.write_all(&tar).unwrap();
        let layer = gzip.finish().unwrap();
        let architecture = if cfg!(target_arch = "aarch64") {
            "arm64"
        } else {
            "amd64"
        };
        let config = json!({
            "architecture": architecture, "os": "linux", "config": {},
            "rootfs": {"type": "layers", "diff_ids": [digest(&tar)]},
        });
        let config = serde_json::to_vec(&config).unwrap();
        let manifest = json!({
            "schemaVersion": 2,
            "mediaType": "application/vnd.docker.distribution.manifest.v2+json",
            "config": {
                "mediaType": "application/vnd.docker.container.image.v1+json",
                "size": config.len(), "digest": digest(&config),
            },
            "layers": [{
                "mediaType": "application/vnd.docker.image.rootfs.diff.tar.gzip",
                "size": layer.len(), "digest": digest(&layer),
            }],
        });
        Self {
            manifest,
            config,
            layer,
        }
    }

    /// Serves one image on the loopback, where engines accept plain HTTP, and returns the address.
    async fn serve(self) -> std::net::SocketAddr {
        let routes = axum::Router::new()
            .route("/v2/", get(async || "{}"))
            .route("/v2/skillbox-test/pulled/{kind}/{reference}", get(answer))
            .with_state(Arc::new(self));
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move { axum::serve(listener, routes).await });
        address
    }
}

async fn answer(
    State(registry): State<Arc<Registry>>,
    Path((kind, reference)): Path<(String, String)>,
) -> Response {
    let manifest = serde_json::to_vec(&registry.manifest).unwrap();
    let (kind_of, bytes) = match (kind.as_str(), reference) {
        ("manifests", reference) if reference == "latest" || reference == digest(&manifest) => {
            ("application/vnd.docker.distribution.manifest.v2+json", manifest)
        }
        ("blobs", wanted) if wanted == digest(&registry.config) => {
            ("application/octet-stream", registry.config.clone())
        }
        ("blobs", wanted) if wanted == digest(&registry.layer) => {
            ("application/octet-stream", registry.layer.clone())
        }
        _ => return StatusCode::NOT_FOUND.into_response(),
    };
    let digest = digest(&bytes);
    let headers = [
        (header::CONTENT_TYPE, kind_of),
        (header::HeaderName::from_static("docker-content-digest"), &digest),
    ];
    (headers, bytes).into_response()
}

fn digest(bytes: &[u8]) -> String {
    let hex: String = Sha256::digest(bytes)
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    format!("sha256:{hex}")
}

/// A world whose Bash runs in `image`; `None` where the engine of this machine cannot reach this machine's loopback.
async fn world_with(image: &str) -> Option<World> {
    if !docker_settings()
        .host
        .is_some_and(|host| host.starts_with("unix://"))
    {
        missing(
            "docker",
            "a registry on the loopback needs an engine on this machine; run tests/with-engine.sh",
        );
        return None;
    }
    let folder = tempfile::tempdir().unwrap();
    let instance = instance_in(folder.path());
    let sandbox = Sandbox::docker(docker_settings(), instance.id());
    let images = Images {
        bash: image.to_owned(),
        ..images()
    };
    let engine = engine_with(folder.path(), instance, sandbox, images).await;
    Some(World::of(folder, engine).await)
}

/// A name without a tag means `latest`, not every tag that the registry has.
#[tokio::test]
async fn pulls_missing_image_with_progress_and_runs() {
    let address = Registry::new().serve().await;
    let image = format!("{address}/skillbox-test/pulled");
    let Some(world) = world_with(&image).await else {
        return;
    };
    let (sender, mut progress) = tokio::sync::mpsc::channel(64);
    let execution = world
        .try_run_watched(Language::Bash, "true", RunSpec::default(), Some(sender))
        .await
        .unwrap();
    let outcome = execution.outcome.unwrap();
    // PID 1 came up in the pulled image and found no program there.
    assert_eq!(outcome.status, Status::Failed);
    let message = outcome.error.unwrap().message;
    assert!(message.contains("`bash` was not found"), "{message}");
    let Some(Progress::Pulling { image: pulled, .. }) = progress.recv().await else {
        panic!("no progress was told");
    };
    assert_eq!(pulled, image);
    // Keepers that were made from it stay until they age; the name need not.
    let force = RemoveImageOptionsBuilder::default().force(true).build();
    let docker = connect().await;
    docker.remove_image(&image, Some(force), None).await.unwrap();
}

/// F-10.
#[tokio::test]
async fn reports_unavailable_image_with_fix() {
    let address = Registry::new().serve().await;
    let image = format!("{address}/skillbox-test/pulled:absent");
    let Some(world) = world_with(&image).await else {
        return;
    };
    let refused = world
        .try_run(Language::Bash, "true", RunSpec::default())
        .await
        .unwrap_err();
    assert_eq!(refused.code(), Code::SandboxUnavailable, "{refused}");
    let message = refused.to_string();
    for part in [image.as_str(), "docker pull", "SKILLBOX_IMAGE_BASH"] {
        assert!(message.contains(part), "{message}");
    }
}
