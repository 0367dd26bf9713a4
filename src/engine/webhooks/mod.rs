//! Webhooks: callback URLs, signing secrets and deliveries.

mod client;
mod payload;
mod sender;
#[cfg(test)]
mod tests;

use std::path::PathBuf;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use crate::egress::{Resolver, WebhookPolicy};
use crate::engine::{PageRequest, Webhooks, clock, rows};
use crate::error::Error;
use crate::execution::NewExecution;
use crate::ids::{DeliveryId, ExecutionId, Tenant};
use crate::limits;
use crate::secret::{Owner, SecretValue, Unsealable};
use crate::store::{self, Delivery, Page, SealedSigningSecret};
use crate::webhook::{CallbackUrl, InvalidCallback, SigningSecret};

pub use sender::WebhookSender;

#[derive(Clone, Debug)]
pub struct WebhookSettings {
    pub policy: WebhookPolicy,
    /// Certificate authorities of receivers; the built-in ones if absent.
    pub ca_bundle: Option<PathBuf>,
    /// Pauses before each further attempt.
    pub retries: Vec<Duration>,
    /// Time limit of one attempt.
    pub attempt_max: Duration,
    /// Base of the `url` in payloads.
    pub server_url: Option<String>,
    pub resolver: Resolver,
}

impl Default for WebhookSettings {
    fn default() -> Self {
        Self {
            policy: WebhookPolicy::default(),
            ca_bundle: None,
            retries: limits::DELIVERY_RETRIES.to_vec(),
            attempt_max: limits::DELIVERY_ATTEMPT_MAX,
            server_url: None,
            resolver: Resolver::default(),
        }
    }
}

/// The current signing secret of a tenant.
#[derive(Clone, Debug)]
pub struct Signing {
    pub secret: SigningSecret,
    pub created_at: Timestamp,
    /// The previous secret signs too until then.
    pub previous_until: Option<Timestamp>,
}

/// A name that no user's secret can have.
const SIGNING_SECRET_NAME: &str = "webhook signing";

impl Webhooks<'_> {
    /// Created if it does not exist.
    pub async fn signing_secret(self, tenant: &Tenant) -> Result<Signing, Error> {
        let stored = self.sealed_signing(tenant).await?;
        self.open_signing(tenant, stored)
    }

    /// Replaces the secret. The previous one signs too for a day.
    pub async fn rotate_signing_secret(self, tenant: &Tenant) -> Result<Signing, Error> {
        let (tenant, fresh) = (tenant, self.fresh_signing(tenant)?);
        let overlap = SignedDuration::try_from(limits::SIGNING_SECRET_OVERLAP).unwrap_or(SignedDuration::MAX);
        let until = fresh.created_at.checked_add(overlap).unwrap_or(Timestamp::MAX);
        let rotated = self
            .engine
            .store
            .rotate_signing_secret(tenant, fresh, until)
            .await?;
        tracing::info!(%tenant, "Rotated the signing secret of tenant {tenant}");
        self.open_signing(tenant, rotated)
    }

    /// The tenant's deliveries, newest execution first.
    pub async fn list(self, tenant: &Tenant, page: PageRequest) -> Result<Page<Delivery>, Error> {
        let rows = rows(&page);
        Ok(self.engine.store.deliveries(tenant, page.after, rows).await?)
    }

    pub async fn of_execution(self, tenant: &Tenant, id: ExecutionId) -> Result<Option<Delivery>, Error> {
        Ok(self.engine.store.execution_delivery(tenant, id).await?)
    }

    /// Sends a webhook again now, with all of its retries.
    pub async fn redeliver(self, tenant: &Tenant, id: DeliveryId) -> Result<Delivery, Error> {
        let delivery = self.engine.store.redeliver(tenant, id, clock::now()).await?;
        self.engine.webhooks_due.notify_one();
        Ok(delivery)
    }

    /// Parses and checks a callback URL, without resolving its host.
    pub(super) fn parse_callback(self, text: Option<&str>) -> Result<Option<CallbackUrl>, Error> {
        let Some(text) = text else { return Ok(None) };
        let invalid = |why: String| Error::invalid(format!("callback_url: {why}"));
        let url: CallbackUrl = text
            .parse()
            .map_err(|error: InvalidCallback| invalid(error.to_string()))?;
        let policy = &self.engine.settings.webhooks.policy;
        policy.check(&url).map_err(|error| invalid(error.to_string()))?;
        Ok(Some(url))
    }

    /// Wakes the sender if this completed execution has a webhook.
    pub(super) fn notify_sender(self, ended: &NewExecution) {
        if ended.callback_url.is_some() {
            self.engine.webhooks_due.notify_one();
        }
    }

    /// The current secret, and the previous one while it is valid.
    async fn valid_signing_secrets(self, tenant: &Tenant) -> Result<Vec<SigningSecret>, Error> {
        let stored = self.sealed_signing(tenant).await?;
        let previous = stored
            .previous
            .as_ref()
            .filter(|(_, until)| *until > clock::now());
        let mut secrets = vec![
            self.unseal_signing(tenant, &stored.sealed)
                .map_err(|error| unsealable(&error))?,
        ];
        // A previous secret that cannot be decrypted must not stop deliveries.
        secrets.extend(previous.and_then(|(sealed, _)| self.unseal_signing(tenant, sealed).ok()));
        Ok(secrets)
    }

    async fn sealed_signing(self, tenant: &Tenant) -> Result<SealedSigningSecret, Error> {
        let stored = match self.engine.store.signing_secret(tenant).await {
            Err(store::Error::NotFound(_)) => {
                let fresh = self.fresh_signing(tenant)?;
                self.engine.store.init_signing_secret(tenant, fresh).await
            }
            stored => stored,
        };
        Ok(stored?)
    }

    fn fresh_signing(self, tenant: &Tenant) -> Result<SealedSigningSecret, Error> {
        let no_random = |error: getrandom::Error| Error::internal(error.to_string());
        let value = SecretValue::new(SigningSecret::generate().map_err(no_random)?.reveal());
        let value = value.map_err(Error::internal)?;
        let name = SIGNING_SECRET_NAME;
        let sealed = self.engine.master_key.seal(Owner { tenant, name }, &value);
        Ok(SealedSigningSecret {
            sealed: sealed.map_err(no_random)?,
            created_at: clock::now(),
            previous: None,
        })
    }

    fn open_signing(self, tenant: &Tenant, stored: SealedSigningSecret) -> Result<Signing, Error> {
        let secret = self.unseal_signing(tenant, &stored.sealed);
        let until = stored.previous.map(|(_, until)| until);
        Ok(Signing {
            secret: secret.map_err(|error| unsealable(&error))?,
            created_at: stored.created_at,
            previous_until: until.filter(|until| *until > clock::now()),
        })
    }

    fn unseal_signing(self, tenant: &Tenant, sealed: &[u8]) -> Result<SigningSecret, Unsealable> {
        let name = SIGNING_SECRET_NAME;
        let value = self.engine.master_key.open(Owner { tenant, name }, sealed)?;
        value.reveal().parse().map_err(|_| Unsealable::Damaged)
    }
}

fn unsealable(error: &Unsealable) -> Error {
    let why = match error {
        Unsealable::OtherKey => "was encrypted with another master key",
        Unsealable::Damaged => "is damaged",
    };
    let message = format!("the signing secret {why}; rotate it and give the new one to receivers");
    Error::new(crate::error::Code::Conflict, message)
}
