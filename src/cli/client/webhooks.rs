//! Webhooks, here and on a server.

use ureq::http::Method;

use super::{Client, Listed};
use crate::cli::failure::Result;
use crate::http::{Delivery, List, SigningSecret};
use crate::ids::{DeliveryId, ExecutionId};

impl Client {
    pub(crate) fn signing_secret(&self) -> Result<SigningSecret> {
        match self {
            Self::Embedded(local) => {
                let signing = local.wait(local.engine().signing_secret(local.caller()))?;
                Ok(SigningSecret::from(&signing))
            }
            Self::Remote(remote) => remote.get("/v1/webhooks/secret"),
        }
    }

    pub(crate) fn rotate_signing_secret(&self) -> Result<SigningSecret> {
        match self {
            Self::Embedded(local) => {
                let signing = local.wait(local.engine().rotate_signing_secret(local.caller()))?;
                Ok(SigningSecret::from(&signing))
            }
            Self::Remote(remote) => remote.request_json(Method::POST, "/v1/webhooks/secret/rotate"),
        }
    }

    /// Those of all executions, or of one.
    pub(crate) fn deliveries(&self, of: Option<ExecutionId>, rows: usize) -> Result<Listed<Delivery>> {
        match (self, of) {
            (Self::Embedded(local), None) => {
                let pages = async |page| local.engine().deliveries(local.caller(), page).await;
                local.list(rows, pages)
            }
            (Self::Embedded(local), Some(id)) => {
                let found = local.wait(local.engine().delivery_of(local.caller(), id))?;
                Ok(all(found.iter().map(Delivery::from).collect()))
            }
            (Self::Remote(remote), None) => remote.listed("/v1/webhooks/deliveries", &[], rows),
            (Self::Remote(remote), Some(id)) => {
                let path = format!("/v1/executions/{id}/deliveries");
                let found: List<Delivery> = remote.get(&path)?;
                Ok(all(found.items))
            }
        }
    }

    pub(crate) fn redeliver(&self, id: DeliveryId) -> Result<Delivery> {
        match self {
            Self::Embedded(local) => {
                let delivery = local.wait(local.engine().redeliver(local.caller(), id))?;
                Ok(Delivery::from(&delivery))
            }
            Self::Remote(remote) => {
                let path = format!("/v1/webhooks/deliveries/{id}/redeliver");
                remote.request_json(Method::POST, &path)
            }
        }
    }
}

fn all<T>(items: Vec<T>) -> Listed<T> {
    Listed { items, more: false }
}
