//! Secrets, managed by the embedded engine or a server.

use serde_json::json;
use ureq::http::Method;

use super::remote::{ApiCall, RequestBody, kept};
use super::{Client, Listed};
use crate::api::secrets::{self, SecretInfo};
use crate::cli::failure::Result;
use crate::secret::SecretValue;
use crate::skill::SecretName;
use crate::store::Saved;

impl Client {
    pub(crate) fn set_secret(&self, name: &SecretName, value: &SecretValue) -> Result<Saved> {
        match self {
            Self::Embedded(local) => local.call(secrets::set(local.engine(), local.caller(), name, value)),
            Self::Remote(remote) => {
                let path = format!("/v1/secrets/{name}");
                let body = RequestBody::json(&json!({ "value": value.reveal() }));
                let answer = remote.send(&ApiCall::new(Method::PUT, &path), body)?;
                Ok(kept(&answer))
            }
        }
    }

    pub(crate) fn secrets(&self, rows: usize) -> Result<Listed<SecretInfo>> {
        match self {
            Self::Embedded(local) => local.list(rows, secrets::list),
            Self::Remote(remote) => remote.listed("/v1/secrets", &[], rows),
        }
    }

    pub(crate) fn delete_secret(&self, name: &SecretName) -> Result<()> {
        match self {
            Self::Embedded(local) => local.call(secrets::delete(local.engine(), local.caller(), name)),
            Self::Remote(remote) => remote.delete(&format!("/v1/secrets/{name}")),
        }
    }
}
