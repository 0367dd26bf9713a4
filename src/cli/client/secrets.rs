//! What is kept for skills, in both places: secrets, and the blobs of a run.

use serde_json::{Value, json};
use ureq::http::Method;

use super::embedded::listed;
use super::remote::{ApiCall, RequestBody};
use super::{EmbeddedClient, Listed, RemoteClient};
use crate::cli::failure::{Failure, Result};
use crate::engine::{AskedBlob, NewBlob};
use crate::http::Secret;
use crate::secret::SecretValue;
use crate::skill::SecretName;
use crate::store::Kept;

impl EmbeddedClient {
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

impl RemoteClient {
    /// The ids of these blobs, which are sent to the server where it has none.
    pub(super) fn upload_blobs(&self, asked: &[AskedBlob]) -> Result<Value> {
        let kept = |blob: &AskedBlob| match blob {
            AskedBlob::Kept(id) => Ok(Value::from(id.to_string())),
            AskedBlob::Content(file) => {
                let content = file.try_clone();
                let (kept, _) = self.upload_blob(NewBlob {
                    content: content.map_err(|error| Failure::internal("reading a blob", error))?,
                    media_type: None,
                    life: None,
                })?;
                Ok(Value::from(kept.blob_id.to_string()))
            }
        };
        asked.iter().map(kept).collect()
    }

    pub(crate) fn set_secret(&self, name: &SecretName, value: &SecretValue) -> Result<Kept> {
        let path = format!("/v1/secrets/{name}");
        let body = json!({ "value": value.reveal() }).to_string();
        let answer = self.send(
            &ApiCall::new(Method::PUT, &path),
            RequestBody::json(body.into_bytes()),
        )?;
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
        self.call(&ApiCall::new(Method::DELETE, &path)).map(drop)
    }
}
