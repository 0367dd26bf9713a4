//! Blobs: uploaded, listed, downloaded and deleted.

use serde::{Deserialize, Serialize};

use super::{List, RUN, require};
use crate::auth::Caller;
use crate::blob::Object;
use crate::engine::{Engine, NewBlob, PageRequest};
use crate::error::Error;
use crate::ids::Digest;
use crate::store::{BlobRecord, Saved};

/// A blob, without its content.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct BlobInfo {
    /// Digest of the content.
    #[schema(value_type = String, format = "digest", example = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855")]
    pub blob_id: Digest,
    /// Size in bytes.
    pub size: u64,
    /// Type that was given at the first upload.
    #[schema(example = "text/csv")]
    pub media_type: String,
    /// Time of the first upload.
    #[schema(value_type = String, format = DateTime)]
    pub created_at: jiff::Timestamp,
    /// Time from which it no longer exists.
    #[schema(value_type = String, format = DateTime)]
    pub expires_at: jiff::Timestamp,
}

/// Stores a blob. Content that is already stored only lives longer.
pub async fn add(engine: &Engine, caller: &Caller, new: NewBlob) -> Result<(BlobInfo, Saved), Error> {
    require(caller, RUN)?;
    let (record, saved) = engine.blobs().add(caller.tenant(), new).await?;
    Ok((BlobInfo::from(&record), saved))
}

/// Newest first.
pub async fn list(engine: &Engine, caller: &Caller, page: PageRequest) -> Result<List<BlobInfo>, Error> {
    require(caller, RUN)?;
    Ok(List::of(&engine.blobs().list(caller.tenant(), page).await?))
}

pub async fn get(engine: &Engine, caller: &Caller, id: &Digest) -> Result<BlobInfo, Error> {
    require(caller, RUN)?;
    Ok(BlobInfo::from(&engine.blobs().get(caller.tenant(), id).await?))
}

pub async fn content(engine: &Engine, caller: &Caller, id: &Digest) -> Result<(BlobInfo, Object), Error> {
    require(caller, RUN)?;
    let (record, object) = engine.blobs().content(caller.tenant(), id).await?;
    Ok((BlobInfo::from(&record), object))
}

/// Programs that have the blob keep it until they end.
pub async fn delete(engine: &Engine, caller: &Caller, id: &Digest) -> Result<(), Error> {
    require(caller, RUN)?;
    engine.blobs().delete(caller.tenant(), id).await
}

impl From<&BlobRecord> for BlobInfo {
    fn from(record: &BlobRecord) -> Self {
        Self {
            blob_id: record.digest,
            size: record.size,
            media_type: record.media_type.clone(),
            created_at: record.created_at,
            expires_at: record.expires_at,
        }
    }
}
