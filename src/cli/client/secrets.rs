//! Secrets, managed by the embedded engine or a server.

use serde_json::json;
use ureq::http::Method;

use super::remote::{ApiCall, RequestBody, kept};
use super::{Client, Listed};
use crate::cli::failure::Result;
use crate::http::Secret;
use crate::secret::SecretValue;
use crate::skill::SecretName;
use crate::store::Saved;

impl Client {
    pub(crate) fn set_secret(&self, name: &SecretName, value: &SecretValue) -> Result<Saved> {
        match self {
            Self::Embedded(local) => {
                Ok(local.wait(local.engine().set_secret(local.caller(), name, value))?)
            }
            Self::Remote(remote) => {
                let path = format!("/v1/secrets/{name}");
                let body = RequestBody::json(&json!({ "value": value.reveal() }));
                let answer = remote.send(&ApiCall::new(Method::PUT, &path), body)?;
                Ok(kept(&answer))
            }
        }
    }

    pub(crate) fn secrets(&self, rows: usize) -> Result<Listed<Secret>> {
        match self {
            Self::Embedded(local) => local.list(rows, async |page| {
                local.engine().secrets(local.caller(), page).await
            }),
            Self::Remote(remote) => remote.listed("/v1/secrets", &[], rows),
        }
    }

    pub(crate) fn delete_secret(&self, name: &SecretName) -> Result<()> {
        match self {
            Self::Embedded(local) => Ok(local.wait(local.engine().delete_secret(local.caller(), name))?),
            Self::Remote(remote) => remote.delete(&format!("/v1/secrets/{name}")),
        }
    }
}
