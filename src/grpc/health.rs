//! `grpc.health.v1.Health`, without a key like `/readyz`.

use std::pin::Pin;
use std::sync::Arc;

use futures::{Stream, stream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::sleep;
use tonic::{Request, Response, Status};

use super::health_proto::health_check_response::ServingStatus;
use super::health_proto::health_server::Health;
use super::health_proto::{HealthCheckRequest, HealthCheckResponse};
use super::status::failed;
use crate::error::{Code, Error};
use crate::http::ApiState;
use crate::limits;

/// The names of services that a client may ask for; the empty one is the server.
const SERVICES: [&str; 3] = ["", "skillbox.v1.ExecutionService", "skillbox.v1.SkillService"];

pub(super) struct HealthChecks {
    state: Arc<ApiState>,
    /// Clients without a key must not take the streams of tenants.
    watchers: Arc<Semaphore>,
}

impl HealthChecks {
    pub(super) fn new(state: Arc<ApiState>) -> Self {
        Self {
            state,
            watchers: Arc::new(Semaphore::new(limits::HEALTH_WATCHERS_MAX)),
        }
    }
}

#[tonic::async_trait]
impl Health for HealthChecks {
    type WatchStream = Pin<Box<dyn Stream<Item = Result<HealthCheckResponse, Status>> + Send>>;

    async fn check(
        &self,
        request: Request<HealthCheckRequest>,
    ) -> Result<Response<HealthCheckResponse>, Status> {
        let service = request.into_inner().service;
        if !SERVICES.contains(&service.as_str()) {
            let services = SERVICES[1..].join("` and `");
            let message = format!("service: unknown; known are `{services}`, and the empty name");
            return Err(failed(Error::new(Code::NotFound, message)));
        }
        let (status, _) = serving(&self.state).await;
        Ok(Response::new(response(status)))
    }

    async fn watch(
        &self,
        request: Request<HealthCheckRequest>,
    ) -> Result<Response<Self::WatchStream>, Status> {
        let permit = Arc::clone(&self.watchers).try_acquire_owned().map_err(|_| {
            failed(Error::new(
                Code::Busy,
                "too many clients watch the health; call `Check` instead",
            ))
        })?;
        let watcher = Watcher {
            state: Arc::clone(&self.state),
            is_known: SERVICES.contains(&request.into_inner().service.as_str()),
            sent: None,
            is_over: false,
            _permit: permit,
        };
        Ok(Response::new(Box::pin(stream::unfold(
            watcher,
            async |mut watcher| {
                let status = watcher.next().await?;
                Some((Ok(response(status)), watcher))
            },
        ))))
    }
}

struct Watcher {
    state: Arc<ApiState>,
    is_known: bool,
    sent: Option<ServingStatus>,
    is_over: bool,
    _permit: OwnedSemaphorePermit,
}

impl Watcher {
    /// The next status that differs from the last one; `None` when the server stops.
    async fn next(&mut self) -> Option<ServingStatus> {
        loop {
            if self.is_over {
                return None;
            }
            let (status, stops) = serving(&self.state).await;
            self.is_over = stops;
            let status = if self.is_known {
                status
            } else {
                ServingStatus::ServiceUnknown
            };
            if self.sent != Some(status) {
                self.sent = Some(status);
                return Some(status);
            }
            if !stops {
                sleep(limits::HEALTH_WATCHED_EVERY).await;
            }
        }
    }
}

/// Whether calls are served, and whether the server stops.
async fn serving(state: &ApiState) -> (ServingStatus, bool) {
    let readiness = state.readiness().await;
    let stops = readiness
        .checks
        .iter()
        .any(|check| check.name == "server" && !check.ok);
    let status = if readiness.ready {
        ServingStatus::Serving
    } else {
        ServingStatus::NotServing
    };
    (status, stops)
}

fn response(status: ServingStatus) -> HealthCheckResponse {
    HealthCheckResponse {
        status: status.into(),
    }
}
