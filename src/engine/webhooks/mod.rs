//! Webhooks: where the end of an execution may be told, what that is signed with, and how far each has come.

mod client;
mod courier;
mod payload;
#[cfg(test)]
mod tests;

#[cfg(feature = "testing")]
use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use crate::auth::{Caller, Scope};
use crate::engine::{Engine, PageRequest, clock, failure, require, rows};
use crate::error::Error;
use crate::execution::NewExecution;
use crate::ids::{DeliveryId, ExecutionId, Tenant};
use crate::limits;
use crate::secret::{Owner, SecretValue, Unsealable};
use crate::store::{self, Delivery, Page, SealedSigning};
use crate::webhook::{CallbackUrl, Policy, SigningSecret};

pub use courier::Courier;

/// What the operator decided about webhooks.
#[derive(Clone, Debug)]
pub struct WebhookSettings {
    /// What may be reached.
    pub policy: Policy,
    /// The authorities that receivers are believed by; the usual ones of the Internet if absent.
    pub ca_bundle: Option<PathBuf>,
    /// Pauses before the second attempt and those after it.
    pub retries: Vec<Duration>,
    /// All that one attempt may take.
    pub attempt_max: Duration,
    /// Where clients reach this server: what a webhook's `url` begins with.
    pub server_url: Option<String>,
    /// Who says where a name leads.
    pub resolver: Resolver,
}

/// Who says where a name leads.
#[derive(Clone, Copy, Debug, Default)]
pub enum Resolver {
    /// This host.
    #[default]
    System,
    /// A test.
    #[cfg(feature = "testing")]
    Scripted(fn(&str) -> Vec<IpAddr>),
}

impl Default for WebhookSettings {
    fn default() -> Self {
        Self {
            policy: Policy::default(),
            ca_bundle: None,
            retries: limits::DELIVERY_RETRIES.to_vec(),
            attempt_max: limits::DELIVERY_ATTEMPT_MAX,
            server_url: None,
            resolver: Resolver::default(),
        }
    }
}

/// What a tenant's webhooks are signed with.
#[derive(Clone, Debug)]
pub struct Signing {
    /// The secret.
    pub secret: SigningSecret,
    /// When it was made.
    pub created_at: Timestamp,
    /// Until when the one before signs too; `None` if there is none.
    pub previous_until: Option<Timestamp>,
}

/// What a signing secret is sealed as: a name that no secret can have.
const SEALED_AS: &str = "webhook signing";

impl Engine {
    /// What webhooks of the caller's tenant are signed with; made if there is none.
    pub async fn signing_secret(&self, caller: &Caller) -> Result<Signing, Error> {
        require(caller, &[Scope::Admin])?;
        let kept = self.sealed_signing(caller.tenant()).await?;
        self.opened(caller.tenant(), kept)
    }

    /// Puts a fresh one in its place; the old one signs too for a day.
    pub async fn rotate_signing_secret(&self, caller: &Caller) -> Result<Signing, Error> {
        require(caller, &[Scope::Admin])?;
        let (tenant, fresh) = (caller.tenant(), self.fresh_signing(caller.tenant())?);
        let overlap = SignedDuration::try_from(limits::SIGNING_SECRET_OVERLAP).unwrap_or(SignedDuration::MAX);
        let until = fresh.created_at.checked_add(overlap).unwrap_or(Timestamp::MAX);
        let rotated = self.0.store.rotate_signing_secret(tenant, fresh, until).await;
        let rotated = rotated.map_err(|error| failure::of_store(error, "signing secret"))?;
        tracing::info!(%tenant, "Rotated the signing secret of tenant {tenant}");
        self.opened(tenant, rotated)
    }

    /// The caller's webhooks, those of the newest execution first.
    pub async fn deliveries(&self, caller: &Caller, page: PageRequest) -> Result<Page<Delivery>, Error> {
        require(caller, &[Scope::Run])?;
        let rows = rows(&page);
        let found = self.0.store.deliveries(caller.tenant(), page.after, rows).await;
        found.map_err(|error| failure::of_store(error, "webhook"))
    }

    /// The webhook of an execution, if it has one.
    pub async fn delivery_of(&self, caller: &Caller, id: ExecutionId) -> Result<Option<Delivery>, Error> {
        require(caller, &[Scope::Run])?;
        let found = self.0.store.delivery_of(caller.tenant(), id).await;
        found.map_err(|error| failure::of_store(error, &format!("execution `{id}`")))
    }

    /// Has a webhook sent once more, now, with all its attempts before it.
    pub async fn redeliver(&self, caller: &Caller, id: DeliveryId) -> Result<Delivery, Error> {
        require(caller, &[Scope::Run])?;
        let delivery = self.0.store.redeliver(caller.tenant(), id, clock::now()).await;
        let delivery = delivery.map_err(|error| failure::of_store(error, &format!("webhook `{id}`")))?;
        self.0.webhooks_due.notify_one();
        Ok(delivery)
    }

    /// Where the end of an execution is to be told: checked as far as it can be before its name is resolved.
    pub(super) fn accept_callback(&self, text: Option<&str>) -> Result<Option<CallbackUrl>, Error> {
        let Some(text) = text else { return Ok(None) };
        let refused = |why: String| Error::invalid(format!("callback_url {why}"));
        let url = text.parse::<CallbackUrl>();
        let url = url.map_err(|error| refused(error.to_string()))?;
        let judged = self.0.settings.webhooks.policy.judge(&url);
        judged.map_err(|error| refused(error.to_string()))?;
        Ok(Some(url))
    }

    /// Wakes whoever sends webhooks, where this execution, which has ended, has one.
    pub(super) fn webhook_is_due(&self, ended: &NewExecution) {
        if ended.callback_url.is_some() {
            self.0.webhooks_due.notify_one();
        }
    }

    /// What signs now: the secret, and the one before as long as it does.
    async fn signing_with(&self, tenant: &Tenant) -> Result<Vec<SigningSecret>, Error> {
        let kept = self.sealed_signing(tenant).await?;
        let previous = kept.previous.as_ref().filter(|(_, until)| *until > clock::now());
        let mut secrets = vec![
            self.unseal_signing(tenant, &kept.sealed)
                .map_err(|error| closed(&error))?,
        ];
        // One that does not open any more is no reason to send nothing.
        secrets.extend(previous.and_then(|(sealed, _)| self.unseal_signing(tenant, sealed).ok()));
        Ok(secrets)
    }

    async fn sealed_signing(&self, tenant: &Tenant) -> Result<SealedSigning, Error> {
        let kept = match self.0.store.signing_secret(tenant).await {
            Err(store::Error::NotFound) => {
                let fresh = self.fresh_signing(tenant)?;
                self.0.store.keep_signing_secret(tenant, fresh).await
            }
            kept => kept,
        };
        kept.map_err(|error| failure::of_store(error, "signing secret"))
    }

    fn fresh_signing(&self, tenant: &Tenant) -> Result<SealedSigning, Error> {
        let no_random = |error: getrandom::Error| Error::internal(error.to_string());
        let value = SecretValue::new(SigningSecret::generate().map_err(no_random)?.reveal());
        let value = value.map_err(Error::internal)?;
        let name = SEALED_AS;
        let sealed = self.0.master_key.seal(Owner { tenant, name }, &value);
        Ok(SealedSigning {
            sealed: sealed.map_err(no_random)?,
            created_at: clock::now(),
            previous: None,
        })
    }

    fn opened(&self, tenant: &Tenant, kept: SealedSigning) -> Result<Signing, Error> {
        let secret = self.unseal_signing(tenant, &kept.sealed);
        let until = kept.previous.map(|(_, until)| until);
        Ok(Signing {
            secret: secret.map_err(|error| closed(&error))?,
            created_at: kept.created_at,
            previous_until: until.filter(|until| *until > clock::now()),
        })
    }

    fn unseal_signing(&self, tenant: &Tenant, sealed: &[u8]) -> Result<SigningSecret, Unsealable> {
        let name = SEALED_AS;
        let value = self.0.master_key.open(Owner { tenant, name }, sealed)?;
        value.reveal().parse().map_err(|_| Unsealable::Damaged)
    }
}

fn closed(error: &Unsealable) -> Error {
    let why = match error {
        Unsealable::OtherKey => "was sealed with another master key",
        Unsealable::Damaged => "is damaged",
    };
    let message = format!("the signing secret {why}; rotate it, and give receivers the new one");
    Error::new(crate::error::Code::Conflict, message)
}
