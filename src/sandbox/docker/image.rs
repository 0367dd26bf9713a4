//! Ensures that an approved image exists on the engine and can be a root filesystem.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use bollard::query_parameters::CreateImageOptionsBuilder;
use futures::StreamExt as _;

use crate::limits;
use crate::sandbox::docker::engine::{self, Connection};
use crate::sandbox::docker::policy;
use crate::sandbox::{Error, Progress, ProgressSender};
use crate::skill::ApprovedImage;

#[derive(Debug, Default)]
pub(super) struct Images {
    /// Image ids with the time of the check.
    ready: Mutex<BTreeMap<ApprovedImage, (Instant, String)>>,
    /// Failed pulls. The lock also prevents two pulls of the same image.
    pulling: tokio::sync::Mutex<HashMap<ApprovedImage, (Instant, String)>>,
}

impl Images {
    pub(super) async fn ensure(
        &self,
        connection: &Connection,
        image: &ApprovedImage,
        progress: Option<&ProgressSender>,
    ) -> Result<(), Error> {
        let looked_at = self.ready().get(image).map(|(at, _)| at.elapsed());
        if looked_at.is_some_and(|age| age < limits::IMAGE_RECHECK_AFTER) {
            return Ok(());
        }
        let mut found = inspect(connection, image).await?;
        if found.is_none() {
            let mut failed = self.pulling.lock().await;
            found = inspect(connection, image).await?;
            if found.is_none() {
                failed.retain(|_, (at, _)| at.elapsed() < limits::PULL_RETRY_AFTER);
                if let Some((_, why)) = failed.get(image) {
                    return Err(Error::ImageMissing(why.clone()));
                }
                if let Err(why) = pull(connection, image, progress).await {
                    failed.insert(image.clone(), (Instant::now(), why.clone()));
                    return Err(Error::ImageMissing(why));
                }
                found = inspect(connection, image).await?;
            }
        }
        let id = found.ok_or_else(|| {
            Error::Image(format!(
                "image `{image}` was pulled but does not exist; check the container engine"
            ))
        })?;
        self.ready().insert(image.clone(), (Instant::now(), id));
        Ok(())
    }

    /// The id of the image, once it was found. Packages are installed for that id.
    pub(super) fn id(&self, image: &ApprovedImage) -> Option<String> {
        self.ready().get(image).map(|(_, id)| id.clone())
    }

    pub(super) fn forget(&self, image: &ApprovedImage) {
        self.ready().remove(image);
    }

    fn ready(&self) -> std::sync::MutexGuard<'_, BTreeMap<ApprovedImage, (Instant, String)>> {
        self.ready.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The id of the image, if it exists. An image with volumes of its own is rejected: they would be writable and unlimited (S-34).
async fn inspect(connection: &Connection, image: &ApprovedImage) -> Result<Option<String>, Error> {
    let inspected = match engine::with_call_timeout(connection.docker.inspect_image(image.as_str())).await? {
        Ok(inspected) => inspected,
        Err(error) if engine::is_status(&error, &[404]) => return Ok(None),
        Err(error) => return Err(engine::failed("inspecting the image", error)),
    };
    let id = inspected.id.unwrap_or_else(|| image.to_string());
    let volumes = inspected
        .config
        .and_then(|config| config.volumes)
        .unwrap_or_default();
    let foreign = volumes
        .iter()
        .find(|path| !policy::SCRATCH.contains(&path.trim_end_matches('/')));
    match foreign {
        None => Ok(Some(id)),
        Some(path) => Err(Error::Image(format!(
            "image `{image}` declares the volume {path:?}, which would be writable and unlimited; build it without VOLUME"
        ))),
    }
}

async fn pull(
    connection: &Connection,
    image: &ApprovedImage,
    progress: Option<&ProgressSender>,
) -> Result<(), String> {
    tracing::info!(image = %image, "Pulling image {image}");
    let failed = |why: String| {
        format!(
            "image `{image}` is not on the engine and could not be pulled ({why}); run `docker pull {image}` yourself, load it with `docker load`, or set another image (SKILLBOX_IMAGE_PYTHON, SKILLBOX_IMAGE_NODE, SKILLBOX_IMAGE_BASH)"
        )
    };
    let options = CreateImageOptionsBuilder::default()
        .from_image(image.as_str())
        .tag(tag_to_pull(image.as_str()))
        .build();
    let mut events = Box::pin(connection.long_calls.create_image(Some(options), None, None));
    let all = async {
        while let Some(event) = events.next().await {
            let event = event.map_err(|error| failed(error.to_string()))?;
            if let Some(detail) = event.error_detail.and_then(|detail| detail.message) {
                return Err(failed(detail));
            }
            if let (Some(sender), Some(status)) = (progress, event.status) {
                let layer = event.id.map(|id| format!("{id}: ")).unwrap_or_default();
                let _ = sender.try_send(Progress::Pulling {
                    image: image.to_string(),
                    detail: format!("{layer}{status}"),
                });
            }
        }
        Ok(())
    };
    tokio::time::timeout(limits::PULL_MAX, all)
        .await
        .unwrap_or_else(|_| Err(failed("it took too long".to_owned())))
}

/// The tag of a name. Without a tag, an engine would pull all tags.
fn tag_to_pull(image: &str) -> &'static str {
    let last = image.rsplit('/').next().unwrap_or(image);
    if last.contains([':', '@']) { "" } else { "latest" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn name_without_tag_means_latest() {
        for (image, tag) in [
            ("python:3.12-slim", ""),
            ("python", "latest"),
            ("127.0.0.1:5000/team/tool", "latest"),
            ("127.0.0.1:5000/team/tool:1", ""),
            ("team/tool@sha256:00", ""),
        ] {
            assert_eq!(tag_to_pull(image), tag, "{image}");
        }
    }
}
