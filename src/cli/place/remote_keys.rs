//! A server's API keys.

use serde_json::json;
use ureq::http::Method;

use super::remote::{Call, Sent, read_json};
use super::{KeyWanted, Listed, Remote};
use crate::cli::failure::Result;
use crate::http::{FreshKey, Key};
use crate::ids::KeyId;

impl Remote {
    pub(crate) fn create_key(&self, wanted: KeyWanted) -> Result<FreshKey> {
        let mut body = json!({ "name": wanted.name, "scopes": wanted.scopes });
        if let Some(tenant) = wanted.tenant {
            body["tenant"] = tenant.to_string().into();
        }
        if let Some(at) = wanted.expires_at {
            body["expires_at"] = at.to_string().into();
        }
        read_json(self.send(
            &Call::new(Method::POST, "/v1/keys"),
            Sent::json(body.to_string().into_bytes()),
        )?)
    }

    pub(crate) fn keys(&self, rows: usize) -> Result<Listed<Key>> {
        self.listed("/v1/keys", &[], rows)
    }

    pub(crate) fn revoke_key(&self, id: KeyId) -> Result<Key> {
        self.json(&Call::new(Method::DELETE, &format!("/v1/keys/{id}")))
    }

    pub(crate) fn rotate_key(&self, id: KeyId) -> Result<FreshKey> {
        self.json(&Call::new(Method::POST, &format!("/v1/keys/{id}/rotate")))
    }
}
