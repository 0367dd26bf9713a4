//! API keys, managed by the embedded engine or a server.

use serde_json::json;
use ureq::http::Method;

use super::{Client, Listed};
use crate::cli::failure::Result;
use crate::engine::NewKey;
use crate::http::{FreshKey, Key};
use crate::ids::KeyId;

impl Client {
    pub(crate) fn create_key(&self, new: NewKey) -> Result<FreshKey> {
        match self {
            Self::Embedded(local) => {
                let (record, key) = local.wait(local.engine().create_key(local.caller(), new))?;
                Ok(FreshKey::new(&record, &key))
            }
            Self::Remote(remote) => {
                let mut body = json!({ "name": new.name, "scopes": new.scopes });
                if let Some(tenant) = new.tenant {
                    body["tenant"] = tenant.to_string().into();
                }
                if let Some(at) = new.expires_at {
                    body["expires_at"] = at.to_string().into();
                }
                remote.post("/v1/keys", &body)
            }
        }
    }

    pub(crate) fn keys(&self, rows: usize) -> Result<Listed<Key>> {
        match self {
            Self::Embedded(local) => {
                local.list(rows, async |page| local.engine().keys(local.caller(), page).await)
            }
            Self::Remote(remote) => remote.listed("/v1/keys", &[], rows),
        }
    }

    pub(crate) fn revoke_key(&self, id: KeyId) -> Result<Key> {
        match self {
            Self::Embedded(local) => {
                let record = local.wait(local.engine().revoke_key(local.caller(), id))?;
                Ok(Key::from(&record))
            }
            Self::Remote(remote) => remote.request_json(Method::DELETE, &format!("/v1/keys/{id}")),
        }
    }

    pub(crate) fn rotate_key(&self, id: KeyId) -> Result<FreshKey> {
        match self {
            Self::Embedded(local) => {
                let (record, key) = local.wait(local.engine().rotate_key(local.caller(), id))?;
                Ok(FreshKey::new(&record, &key))
            }
            Self::Remote(remote) => remote.request_json(Method::POST, &format!("/v1/keys/{id}/rotate")),
        }
    }
}
