//! What is kept for skills, in both places: secrets and blobs.

use std::io::Read as _;

use serde_json::{Value, json};
use ureq::http::Method;

use super::local::listed;
use super::remote::{Call, Sent, read_json};
use super::{Listed, Local, Remote};
use crate::cli::failure::{Failure, Result};
use crate::cli::progress::Spinner;
use crate::engine::AskedBlob;
use crate::http::{BlobInfo, Secret};
use crate::limits;
use crate::secret::SecretValue;
use crate::skill::SecretName;
use crate::store::Kept;

impl Local {
    pub(crate) fn set_secret(&self, name: &SecretName, value: &SecretValue) -> Result<Kept> {
        Ok(self.wait(self.engine().set_secret(self.caller(), name, value))?)
    }

    pub(crate) fn secrets(&self, rows: usize) -> Result<Listed<Secret>> {
        let pages = async |page| self.engine().secrets(self.caller(), page).await;
        Ok(self
            .wait(listed(rows, pages))?
            .map(|record| Secret::from(&record)))
    }

    pub(crate) fn delete_secret(&self, name: &SecretName) -> Result<()> {
        Ok(self.wait(self.engine().delete_secret(self.caller(), name))?)
    }
}

impl Remote {
    /// The ids of these blobs, which are sent to the server where it has none.
    pub(super) fn kept(&self, asked: &[AskedBlob]) -> Result<Value> {
        let kept = |blob: &AskedBlob| match blob {
            AskedBlob::Kept(id) => Ok(Value::from(id.to_string())),
            AskedBlob::Content(file) => {
                let mut bytes = Vec::new();
                file.take(limits::BLOB_BYTES_MAX + 1)
                    .read_to_end(&mut bytes)
                    .map_err(|error| Failure::internal("reading a blob", error))?;
                let _spinner = Spinner::start("uploading");
                let sent = Sent {
                    content_type: "application/octet-stream".to_owned(),
                    bytes,
                };
                let answer = self.send(&Call::new(Method::POST, "/v1/blobs"), sent)?;
                let kept: BlobInfo = read_json(answer)?;
                Ok(Value::from(kept.blob_id.to_string()))
            }
        };
        asked.iter().map(kept).collect()
    }

    pub(crate) fn set_secret(&self, name: &SecretName, value: &SecretValue) -> Result<Kept> {
        let path = format!("/v1/secrets/{name}");
        let body = json!({ "value": value.reveal() }).to_string();
        let answer = self.send(&Call::new(Method::PUT, &path), Sent::json(body.into_bytes()))?;
        Ok(match answer.status().as_u16() {
            201 => Kept::New,
            _ => Kept::Again,
        })
    }

    pub(crate) fn secrets(&self, rows: usize) -> Result<Listed<Secret>> {
        self.listed("/v1/secrets", &[], rows)
    }

    pub(crate) fn delete_secret(&self, name: &SecretName) -> Result<()> {
        let path = format!("/v1/secrets/{name}");
        self.call(&Call::new(Method::DELETE, &path)).map(drop)
    }
}
