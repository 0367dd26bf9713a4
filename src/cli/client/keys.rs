//! API keys, managed by the embedded engine or a server.

use serde_json::json;
use ureq::http::Method;

use super::{Client, Listed};
use crate::api::keys::{self, CreateKey, FreshKey, KeyInfo};
use crate::cli::failure::Result;
use crate::ids::KeyId;

impl Client {
    pub(crate) fn create_key(&self, new: CreateKey) -> Result<FreshKey> {
        match self {
            Self::Embedded(local) => local.call(keys::create(local.engine(), local.caller(), new)),
            Self::Remote(remote) => remote.post("/v1/keys", &json!(new)),
        }
    }

    pub(crate) fn keys(&self, rows: usize) -> Result<Listed<KeyInfo>> {
        match self {
            Self::Embedded(local) => local.list(rows, keys::list),
            Self::Remote(remote) => remote.listed("/v1/keys", &[], rows),
        }
    }

    pub(crate) fn revoke_key(&self, id: KeyId) -> Result<KeyInfo> {
        match self {
            Self::Embedded(local) => local.call(keys::revoke(local.engine(), local.caller(), id)),
            Self::Remote(remote) => remote.request_json(Method::DELETE, &format!("/v1/keys/{id}")),
        }
    }

    pub(crate) fn rotate_key(&self, id: KeyId) -> Result<FreshKey> {
        match self {
            Self::Embedded(local) => local.call(keys::rotate(local.engine(), local.caller(), id)),
            Self::Remote(remote) => remote.request_json(Method::POST, &format!("/v1/keys/{id}/rotate")),
        }
    }
}
