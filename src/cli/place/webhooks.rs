//! Webhooks, here and on a server.

use ureq::http::Method;

use super::local::listed;
use super::remote::{Call, read_json};
use super::{Listed, Place};
use crate::cli::failure::Result;
use crate::http::{Delivery, List, SigningSecret};
use crate::ids::{DeliveryId, ExecutionId};

impl Place {
    pub(crate) fn signing_secret(&self) -> Result<SigningSecret> {
        match self {
            Self::Here(local) => {
                let signing = local.wait(local.engine().signing_secret(local.caller()))?;
                Ok(SigningSecret::from(&signing))
            }
            Self::There(remote) => read_json(remote.call(&Call::new(Method::GET, "/v1/webhooks/secret"))?),
        }
    }

    pub(crate) fn rotate_signing_secret(&self) -> Result<SigningSecret> {
        match self {
            Self::Here(local) => {
                let signing = local.wait(local.engine().rotate_signing_secret(local.caller()))?;
                Ok(SigningSecret::from(&signing))
            }
            Self::There(remote) => {
                read_json(remote.call(&Call::new(Method::POST, "/v1/webhooks/secret/rotate"))?)
            }
        }
    }

    /// Those of all executions, or of one.
    pub(crate) fn deliveries(&self, of: Option<ExecutionId>, rows: usize) -> Result<Listed<Delivery>> {
        match (self, of) {
            (Self::Here(local), None) => {
                let pages = async |page| local.engine().deliveries(local.caller(), page).await;
                let listed = local.wait(listed(rows, pages))?;
                Ok(listed.map(|delivery| Delivery::from(&delivery)))
            }
            (Self::Here(local), Some(id)) => {
                let found = local.wait(local.engine().delivery_of(local.caller(), id))?;
                Ok(all(found.iter().map(Delivery::from).collect()))
            }
            (Self::There(remote), None) => remote.listed("/v1/webhooks/deliveries", &[], rows),
            (Self::There(remote), Some(id)) => {
                let path = format!("/v1/executions/{id}/deliveries");
                let found: List<Delivery> = read_json(remote.call(&Call::new(Method::GET, &path))?)?;
                Ok(all(found.items))
            }
        }
    }

    pub(crate) fn redeliver(&self, id: DeliveryId) -> Result<Delivery> {
        match self {
            Self::Here(local) => {
                let delivery = local.wait(local.engine().redeliver(local.caller(), id))?;
                Ok(Delivery::from(&delivery))
            }
            Self::There(remote) => {
                let path = format!("/v1/webhooks/deliveries/{id}/redeliver");
                read_json(remote.call(&Call::new(Method::POST, &path))?)
            }
        }
    }
}

fn all<T>(items: Vec<T>) -> Listed<T> {
    Listed { items, more: false }
}
