//! Blobs of the embedded engine or a server, as streams.

use std::fs::File;
use std::io::Seek as _;

use ureq::Body;
use ureq::http::{Method, Response};

use super::embedded;
use super::remote::{self, ApiCall, FileBody, read_json};
use super::{Client, Listed, RemoteClient};
use crate::api::blobs::{self, BlobInfo};
use crate::cli::exit::Exit;
use crate::cli::failure::{Failure, Result};
use crate::cli::progress::ProgressWriter;
use crate::engine::NewBlob;
use crate::http::{BLOB_CREATED_AT, BLOB_EXPIRES_AT};
use crate::ids::Digest;
use crate::limits;
use crate::store::Saved;

impl Client {
    pub(crate) fn upload_blob(&self, new: NewBlob) -> Result<(BlobInfo, Saved)> {
        match self {
            Self::Embedded(local) => local.call(blobs::add(local.engine(), local.caller(), new)),
            Self::Remote(remote) => remote.upload_blob(new),
        }
    }

    pub(crate) fn blobs(&self, rows: usize) -> Result<Listed<BlobInfo>> {
        match self {
            Self::Embedded(local) => local.list(rows, blobs::list),
            Self::Remote(remote) => remote.listed("/v1/blobs", &[], rows),
        }
    }

    pub(crate) fn blob(&self, id: &Digest) -> Result<BlobInfo> {
        match self {
            Self::Embedded(local) => local.call(blobs::get(local.engine(), local.caller(), id)),
            // The headers suffice; `HEAD` would not return the reason of an error.
            Self::Remote(remote) => info_from_headers(id, &remote.blob(id)?),
        }
    }

    /// The caller must compare the content with the id.
    pub(crate) fn blob_content(&self, id: &Digest, into: &mut File) -> Result<()> {
        let mut into = ProgressWriter::new(into, "downloading");
        match self {
            Self::Embedded(local) => local.wait(async {
                let (blob, object) = blobs::content(local.engine(), local.caller(), id).await?;
                embedded::copy_object(object, 0..blob.size, &mut into).await
            }),
            Self::Remote(remote) => remote::copy(remote.blob(id)?, &mut into, limits::BLOB_BYTES_MAX),
        }
    }

    pub(crate) fn delete_blob(&self, id: &Digest) -> Result<()> {
        match self {
            Self::Embedded(local) => local.call(blobs::delete(local.engine(), local.caller(), id)),
            Self::Remote(remote) => remote.delete(&format!("/v1/blobs/{id}")),
        }
    }
}

impl RemoteClient {
    pub(super) fn upload_blob(&self, new: NewBlob) -> Result<(BlobInfo, Saved)> {
        let NewBlob {
            mut content,
            media_type,
            life,
        } = new;
        let size = content.rewind().and_then(|()| content.metadata());
        let size = size
            .map_err(|error| Failure::internal("reading a blob", error))?
            .len();
        let ttl: Vec<_> = life
            .map(|life| ("ttl", life.as_secs().to_string()))
            .into_iter()
            .collect();
        let call = ApiCall {
            query: &ttl,
            ..ApiCall::new(Method::POST, "/v1/blobs")
        };
        let sent = FileBody {
            content_type: media_type.unwrap_or_else(|| "application/octet-stream".to_owned()),
            size,
            content,
        };
        let answer = self.send_file(&call, sent)?;
        let kept = remote::kept(&answer);
        Ok((read_json(answer)?, kept))
    }

    fn blob(&self, id: &Digest) -> Result<Response<Body>> {
        self.call(&ApiCall {
            accept: "*/*",
            ..ApiCall::new(Method::GET, &format!("/v1/blobs/{id}"))
        })
    }
}

/// The metadata in the headers of a download.
fn info_from_headers(id: &Digest, answer: &Response<Body>) -> Result<BlobInfo> {
    let header = |name: &str| answer.headers().get(name)?.to_str().ok();
    let moment = |name: &str| header(name)?.parse().ok();
    let info = || {
        Some(BlobInfo {
            blob_id: *id,
            size: header("content-length")?.parse().ok()?,
            media_type: header("content-type")?.to_owned(),
            created_at: moment(BLOB_CREATED_AT)?,
            expires_at: moment(BLOB_EXPIRES_AT)?,
        })
    };
    info().ok_or_else(|| {
        Failure::new(
            Exit::Unavailable,
            "the server's response lacks blob metadata; does the server run another version?",
        )
    })
}
