//! The body of a run request to a server.

use super::RemoteClient;
use crate::api::CreateExecution;
use crate::cli::failure::{Failure, Result};
use crate::engine::{NewBlob, RunRequest};

impl RemoteClient {
    /// Uploads the blobs of a request and makes its body.
    pub(super) fn body(&self, request: RunRequest) -> Result<CreateExecution> {
        let RunRequest {
            mut spec,
            archive,
            blob_contents,
            ..
        } = request;
        if archive.is_some() {
            return Err(Failure::refused(
                "a server runs only published skills; publish it with `skillbox skill push`",
            ));
        }
        for content in blob_contents {
            let (blob, _) = self.upload_blob(NewBlob {
                content,
                media_type: None,
                life: None,
            })?;
            spec.blobs.push(blob.blob_id);
        }
        CreateExecution::try_from(spec).map_err(|_| {
            Failure::refused("--stdin: a server accepts only UTF-8 text; send other content with --file")
        })
    }
}

pub(super) fn to_json(body: &CreateExecution) -> Result<String> {
    serde_json::to_string(body).map_err(|error| Failure::internal("writing the request", error))
}
