//! What is kept for skills, in both places: secrets, and the blobs of a run.

use serde_json::json;
use ureq::http::Method;

use super::embedded::listed;
use super::remote::{ApiCall, RequestBody};
use super::{EmbeddedClient, Listed, RemoteClient};
use crate::cli::failure::Result;
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
