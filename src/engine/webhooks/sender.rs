//! Sends due webhooks concurrently, with retries and time limits.

use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use hyper::header::{CONNECTION, CONTENT_TYPE, HOST, HeaderValue, USER_AGENT};
use hyper::{Request, StatusCode};
use jiff::{SignedDuration, Timestamp};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

use crate::engine::webhooks::client::WebhookClient;
use crate::engine::webhooks::payload;
use crate::engine::{Engine, Webhooks, clock};
use crate::error::{self, Error};
use crate::limits;
use crate::store::{Attempt, ClaimedDelivery, Delivery, DeliveryClaim, NextStep};
use crate::telemetry;
use crate::webhook::{Message, signatures};

#[derive(Clone)]
pub struct WebhookSender {
    engine: Engine,
    client: WebhookClient,
}

impl std::fmt::Debug for WebhookSender {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("WebhookSender").finish_non_exhaustive()
    }
}

struct AttemptResult {
    status: Option<StatusCode>,
    error: Option<String>,
    retry_after: Option<Duration>,
}

impl AttemptResult {
    fn no_response(error: String) -> Self {
        Self {
            status: None,
            error: Some(error),
            retry_after: None,
        }
    }
}

impl Webhooks<'_> {
    /// Fails if the file of certificate authorities is invalid.
    pub fn sender(self) -> Result<WebhookSender, Error> {
        Ok(WebhookSender {
            client: WebhookClient::new(&self.engine.settings.webhooks)?,
            engine: self.engine.clone(),
        })
    }
}

impl WebhookSender {
    /// Sends due webhooks until `closing`. Running attempts then have a short time; the next process sends the others.
    pub async fn run(self, closing: CancellationToken) {
        let mut sending = JoinSet::new();
        loop {
            let pause = match self.send_due(&mut sending).await {
                Ok(pause) => pause,
                Err(error) => {
                    tracing::warn!(%error, cause = error::causes(&error), "Due webhooks could not be read");
                    limits::DELIVERIES_RETRY_AFTER
                }
            };
            tokio::select! {
                () = closing.cancelled() => break,
                Some(_) = sending.join_next() => {}
                () = self.engine.webhooks_due.notified() => {}
                () = sleep(pause) => {}
            }
        }
        let drained = async { while sending.join_next().await.is_some() {} };
        let _ = timeout(limits::DELIVERIES_DRAIN_MAX, drained).await;
    }

    /// Starts due attempts up to the limit, and returns the pause until the next check.
    async fn send_due(&self, sending: &mut JoinSet<()>) -> Result<Duration, Error> {
        let free = limits::DELIVERIES_AT_ONCE.saturating_sub(sending.len());
        // Each completed attempt checks again.
        if free == 0 {
            return Ok(limits::DELIVERIES_POLL_EVERY);
        }
        let now = clock::now();
        // Twice the time limit of an attempt: after that the process is dead.
        let claimed_for = self.engine.settings.webhooks.attempt_max * 2 + limits::DELIVERIES_RETRY_AFTER;
        let claim = DeliveryClaim {
            now,
            until: later(now, claimed_for),
            rows: u32::try_from(free).unwrap_or(u32::MAX),
            per_tenant: limits::DELIVERIES_OF_TENANT_AT_ONCE,
            per_host: limits::DELIVERIES_TO_HOST_AT_ONCE,
        };
        let store = &self.engine.store;
        for claimed in store.claim_deliveries(claim).await? {
            let sender = self.clone();
            sending.spawn(async move { sender.attempt(claimed).await });
        }
        let next = store.next_delivery().await?;
        let next = next.map(|at| {
            at.duration_since(clock::now())
                .try_into()
                .unwrap_or(Duration::ZERO)
        });
        let next = next.unwrap_or(limits::DELIVERIES_POLL_EVERY);
        // Due webhooks that were not claimed exceed a limit; wait for other attempts to end.
        let soonest = if next.is_zero() {
            limits::DELIVERIES_RETRY_AFTER
        } else {
            next
        };
        Ok(soonest.min(limits::DELIVERIES_POLL_EVERY))
    }

    async fn attempt(&self, claimed: ClaimedDelivery) {
        let result = self.send(&claimed).await;
        let delivery = &claimed.delivery;
        let next = self.next_step(&claimed, &result);
        log(delivery, &result, next);
        self.engine.metrics.webhook_tried(match next {
            NextStep::Delivered => telemetry::DELIVERED,
            NextStep::Gone => telemetry::GONE,
            NextStep::Retry(_) => telemetry::TRIED_AGAIN,
            NextStep::Failed => telemetry::GIVEN_UP,
        });
        let recorded = self.engine.store.record_attempt(Attempt {
            id: delivery.id,
            attempts: delivery.attempts,
            status: result.status.map(|status| status.as_u16()),
            error: result.error,
            next,
        });
        if let Err(error) = recorded.await {
            tracing::warn!(delivery.id = %delivery.id, %error, "Webhook {} will be sent again: the result of an attempt was not recorded", delivery.id);
        }
    }

    async fn send(&self, claimed: &ClaimedDelivery) -> AttemptResult {
        let delivery = &claimed.delivery;
        let request = match self.request(claimed).await {
            Ok(request) => request,
            Err(error) => {
                tracing::error!(delivery.id = %delivery.id, %error, cause = error::causes(&error), "Webhook {} could not be created", delivery.id);
                return AttemptResult::no_response(error.to_string());
            }
        };
        match self.client.send(&delivery.url, request).await {
            Ok(response) => AttemptResult {
                status: Some(response.status),
                error: status_error(response.status),
                retry_after: response.retry_after,
            },
            Err(error) => {
                tracing::debug!(delivery.id = %delivery.id, cause = error::causes(&error), "{error}");
                AttemptResult::no_response(error.to_string())
            }
        }
    }

    async fn request(&self, claimed: &ClaimedDelivery) -> Result<Request<Full<Bytes>>, Error> {
        let ClaimedDelivery {
            delivery, execution, ..
        } = claimed;
        let server_url = self.engine.settings.webhooks.server_url.as_deref();
        let body = payload::body(execution, server_url).map_err(Error::internal)?;
        let secrets = self
            .engine
            .webhooks()
            .valid_signing_secrets(&delivery.tenant)
            .await?;
        let (id, seconds) = (delivery.id.to_string(), clock::now().as_second());
        let message = Message {
            id: &id,
            seconds,
            body: &body,
        };
        let signature = signatures(&secrets, message);
        let request = Request::post(delivery.url.target())
            .header(HOST, delivery.url.authority())
            .header(CONTENT_TYPE, HeaderValue::from_static("application/json"))
            .header(
                USER_AGENT,
                HeaderValue::from_static(concat!("skillbox/", env!("CARGO_PKG_VERSION"))),
            )
            .header(CONNECTION, HeaderValue::from_static("close"))
            .header("webhook-id", &id)
            .header("webhook-timestamp", seconds)
            .header("webhook-signature", signature);
        request.body(Full::from(body)).map_err(Error::internal)
    }

    fn next_step(&self, claimed: &ClaimedDelivery, result: &AttemptResult) -> NextStep {
        match result.status {
            Some(status) if status.is_success() => NextStep::Delivered,
            Some(StatusCode::GONE) => NextStep::Gone,
            Some(_) | None => {
                let mut random = [0; 4];
                // Without random numbers retries are not spread, which is acceptable.
                let _ = getrandom::fill(&mut random);
                let retries = &self.engine.settings.webhooks.retries;
                let pause = pause(retries, claimed.number, u32::from_le_bytes(random));
                pause.map_or(NextStep::Failed, |pause| {
                    NextStep::Retry(later(clock::now(), at_least(pause, result.retry_after)))
                })
            }
        }
    }
}

/// The pause after attempt `number`, ± 10 %; `None` after the last one.
pub(super) fn pause(retries: &[Duration], number: u32, random: u32) -> Option<Duration> {
    let place = usize::try_from(number.saturating_sub(1)).ok()?;
    let share = 0.9 + 0.2 * f64::from(random) / f64::from(u32::MAX);
    retries.get(place).map(|pause| pause.mul_f64(share))
}

/// The pause, or a longer `Retry-After` up to its limit.
pub(super) fn at_least(pause: Duration, retry_after: Option<Duration>) -> Duration {
    pause.max(
        retry_after
            .unwrap_or_default()
            .min(limits::DELIVERY_RETRY_AFTER_MAX),
    )
}

fn later(at: Timestamp, by: Duration) -> Timestamp {
    let by = SignedDuration::try_from(by).unwrap_or(SignedDuration::MAX);
    clock::kept(at.checked_add(by).unwrap_or(Timestamp::MAX))
}

pub(super) fn status_error(status: StatusCode) -> Option<String> {
    let code = status.as_u16();
    if status.is_success() {
        None
    } else if status == StatusCode::GONE {
        Some("the receiver answered 410: it rejects all further attempts".to_owned())
    } else if status.is_redirection() {
        Some(format!(
            "the receiver answered {code}; redirects are not followed, use the final URL"
        ))
    } else {
        Some(format!("the receiver answered {code}"))
    }
}

/// Logs only the host of the URL, because the rest may contain a token.
fn log(delivery: &Delivery, result: &AttemptResult, next: NextStep) {
    let (id, host) = (delivery.id, delivery.url.host());
    let why = result.error.as_deref().unwrap_or_default();
    match next {
        NextStep::Delivered => {
            tracing::info!(delivery.id = %id, execution.id = %delivery.execution, host, attempts = delivery.attempts, "Delivered webhook {id}");
        }
        NextStep::Retry(at) => {
            tracing::info!(delivery.id = %id, execution.id = %delivery.execution, host, attempts = delivery.attempts, why, next_at = %at, "Webhook {id} will be retried");
        }
        NextStep::Gone | NextStep::Failed => {
            tracing::warn!(delivery.id = %id, execution.id = %delivery.execution, host, attempts = delivery.attempts, why, "Gave up webhook {id}");
        }
    }
}
