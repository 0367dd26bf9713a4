//! Volume containers: never started, each with one volume of the guest's binary, a skill's files or packages.
//!
//! Sandboxes mount these volumes read-only. One per tenant and content, shared by all servers on the engine, renamed when
//! complete.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use bollard::query_parameters::{
    CreateContainerOptionsBuilder, RenameContainerOptionsBuilder, UploadToContainerOptionsBuilder,
};
use tokio::time::Instant;
use tokio_util::io::{ReaderStream, SyncIoBridge};

use crate::limits;
use crate::sandbox::docker::container::remove;
use crate::sandbox::docker::engine::{self, Connection};
use crate::sandbox::docker::policy;
use crate::sandbox::docker::volume_tar::{self, VolumeSource};
use crate::sandbox::{Error, SandboxSpec};
use crate::skill::ApprovedImage;

#[derive(Debug, Default)]
pub(super) struct VolumeContainers {
    /// Last use of each.
    used: Mutex<HashMap<String, Instant>>,
    /// Held during creation, so that each content is uploaded once.
    pending: tokio::sync::Mutex<()>,
}

struct VolumeContent {
    /// Name of the volume container; identifies the content.
    name: String,
    mount_point: String,
    source: VolumeSource,
}

impl VolumeContainers {
    /// Creates missing volume containers. Returns the names of all that the sandbox mounts.
    pub(super) async fn ensure(
        &self,
        connection: &Arc<Connection>,
        spec: &SandboxSpec,
    ) -> Result<Vec<String>, Error> {
        let guest = &connection.guest;
        let mut contents = vec![VolumeContent {
            name: guest.volume_container_name(),
            mount_point: policy::GUEST_FOLDER.to_owned(),
            source: VolumeSource::Guest(guest.clone()),
        }];
        contents.extend(spec.mounts().into_iter().map(|mounted| VolumeContent {
            name: format!("skillbox-{}", mounted.name),
            mount_point: mounted.at,
            source: VolumeSource::Folder {
                folder: mounted.folder.to_owned(),
                digest: *mounted.digest,
            },
        }));
        let mut names = Vec::with_capacity(contents.len());
        for content in contents {
            if !self.is_known(&content.name) {
                let _one = self.pending.lock().await;
                if !self.is_known(&content.name) {
                    make(connection, &spec.image, &content).await?;
                }
            }
            self.used().insert(content.name.clone(), Instant::now());
            names.push(content.name);
        }
        Ok(names)
    }

    /// Forgets these containers, so that they are checked again.
    pub(super) fn forget(&self, names: &[String]) {
        self.used().retain(|name, _| !names.contains(name));
    }

    fn is_known(&self, name: &str) -> bool {
        self.used().contains_key(name)
    }

    /// `None` if this process has never used it.
    pub(super) fn idle(&self, name: &str) -> Option<std::time::Duration> {
        self.used().get(name).map(Instant::elapsed)
    }

    fn used(&self) -> std::sync::MutexGuard<'_, HashMap<String, Instant>> {
        self.used.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Created under a temporary name and renamed when complete.
async fn make(
    connection: &Arc<Connection>,
    image: &ApprovedImage,
    content: &VolumeContent,
) -> Result<(), Error> {
    match engine::with_call_timeout(connection.docker.inspect_container(&content.name, None)).await? {
        Ok(_) => return Ok(()),
        Err(error) if engine::is_status(&error, &[404]) => {}
        Err(error) => return Err(engine::failed("looking for a volume container", error)),
    }
    let body = policy::volume_container(image, &content.mount_point, jiff::Timestamp::now().as_second());
    let options = CreateContainerOptionsBuilder::default()
        .name(&format!("skillbox-making-{}", uuid::Uuid::now_v7()))
        .build();
    let created = engine::with_call_timeout(connection.docker.create_container(Some(options), body))
        .await?
        .map_err(|error| engine::failed("creating a volume container", error))?;
    let filled = fill(connection, &created.id, content).await;
    if filled.is_err() {
        let _ = remove(connection, &created.id).await;
        return filled;
    }
    let options = RenameContainerOptionsBuilder::default()
        .name(&content.name)
        .build();
    match engine::with_call_timeout(connection.docker.rename_container(&created.id, options)).await? {
        Ok(()) => Ok(()),
        // Another server was faster, with the same content.
        Err(error) if engine::is_status(&error, &[409]) => remove(connection, &created.id).await,
        Err(error) => {
            let _ = remove(connection, &created.id).await;
            Err(engine::failed("naming a volume container", error))
        }
    }
}

/// Streams the content into the volume as an uncompressed tar (CVE-2026-41567: never a compressed one).
async fn fill(connection: &Connection, id: &str, content: &VolumeContent) -> Result<(), Error> {
    const BUFFER_BYTES: usize = 256 * 1024;
    let (reader, writer) = tokio::io::duplex(BUFFER_BYTES);
    let source = content.source.clone();
    let tar = tokio::task::spawn_blocking(move || {
        let mut writer = SyncIoBridge::new(writer);
        volume_tar::write(&source, &mut writer).and_then(|()| writer.shutdown())
    });
    let options = UploadToContainerOptionsBuilder::default()
        .path(&content.mount_point)
        .build();
    let body = bollard::body_try_stream(ReaderStream::with_capacity(reader, BUFFER_BYTES));
    let upload = connection.long_calls.upload_to_container(id, Some(options), body);
    let uploaded = tokio::time::timeout(limits::PACKAGES_COLLECT_MAX, upload)
        .await
        .map_err(|_| {
            Error::Unavailable("the container engine took too long to receive a sandbox's files".to_owned())
        })?;
    let written = tar.await.map_err(|error| Error::Engine {
        doing: "packing a volume container",
        source: error.into(),
    })?;
    uploaded.map_err(|error| engine::failed("filling a volume container", error))?;
    written.map_err(|error| Error::Engine {
        doing: "packing a volume container",
        source: error.into(),
    })
}
