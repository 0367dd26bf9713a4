//! Webhooks of the embedded engine or a server.

use ureq::http::Method;

use super::{Client, Listed};
use crate::api::List;
use crate::api::webhooks::{self, DeliveryInfo, SigningSecretInfo};
use crate::cli::failure::Result;
use crate::ids::{DeliveryId, ExecutionId};

impl Client {
    pub(crate) fn signing_secret(&self) -> Result<SigningSecretInfo> {
        match self {
            Self::Embedded(local) => local.call(webhooks::signing_secret(local.engine(), local.caller())),
            Self::Remote(remote) => remote.get("/v1/webhooks/secret"),
        }
    }

    pub(crate) fn rotate_signing_secret(&self) -> Result<SigningSecretInfo> {
        match self {
            Self::Embedded(local) => {
                local.call(webhooks::rotate_signing_secret(local.engine(), local.caller()))
            }
            Self::Remote(remote) => remote.request_json(Method::POST, "/v1/webhooks/secret/rotate"),
        }
    }

    /// Deliveries of all executions, or of one.
    pub(crate) fn deliveries(&self, of: Option<ExecutionId>, rows: usize) -> Result<Listed<DeliveryInfo>> {
        match (self, of) {
            (Self::Embedded(local), None) => local.list(rows, webhooks::list),
            (Self::Embedded(local), Some(id)) => {
                let found = webhooks::of_execution(local.engine(), local.caller(), id);
                local.call(found).map(all)
            }
            (Self::Remote(remote), None) => remote.listed("/v1/webhooks/deliveries", &[], rows),
            (Self::Remote(remote), Some(id)) => {
                let path = format!("/v1/executions/{id}/deliveries");
                remote.get(&path).map(all)
            }
        }
    }

    pub(crate) fn redeliver(&self, id: DeliveryId) -> Result<DeliveryInfo> {
        match self {
            Self::Embedded(local) => local.call(webhooks::redeliver(local.engine(), local.caller(), id)),
            Self::Remote(remote) => {
                let path = format!("/v1/webhooks/deliveries/{id}/redeliver");
                remote.request_json(Method::POST, &path)
            }
        }
    }
}

fn all<T>(list: List<T>) -> Listed<T> {
    Listed {
        items: list.items,
        more: false,
    }
}
