//! What is counted of the use cases, and who may read it.

use std::time::Instant;

use crate::auth::{Caller, Scope};
use crate::engine::{Engine, require};
use crate::error::{Code, Error};
use crate::execution::{NewExecution, Outcome};
use crate::ids::Tenant;
use crate::sandbox::{Completion, Report};
use crate::skill::Language;
use crate::telemetry::{self, CurrentValues, ExecutionCompletion, Metrics};

impl Engine {
    /// What is counted here, for doors to count with.
    #[must_use]
    pub fn metrics(&self) -> &Metrics {
        &self.0.metrics
    }

    /// Everything that is counted, for a caller who may know of all tenants: an administrator of the first.
    pub fn metrics_for(&self, caller: &Caller) -> Result<String, Error> {
        require(caller, &[Scope::Admin])?;
        if *caller.tenant() != Tenant::default_tenant() {
            return Err(Error::new(
                Code::Forbidden,
                "metrics tell of all tenants: only an administrator of tenant `default` may read them",
            ));
        }
        Ok(self.metrics_text())
    }

    /// The same for whoever reaches an address that the operator opened for it.
    #[must_use]
    pub fn metrics_text(&self) -> String {
        let inner = &self.0;
        inner.metrics.text(&CurrentValues {
            running: inner.admission.running() as u64,
            queued: inner.admission.waiting() as u64,
            slots: inner.settings.concurrency as u64,
            warm: inner.sandbox.warm_pool_stats(),
        })
    }

    /// Counts an execution whose end has been recorded.
    pub(super) fn count_end(&self, new: &NewExecution, outcome: &Outcome) {
        let timings = &outcome.timings;
        let ended = ExecutionCompletion {
            status: outcome.status.as_str(),
            backend: new.backend.as_ref().map_or("none", |backend| &backend.name),
            language: new.language.as_str(),
            phases: [
                ("queue", timings.queue_ms),
                ("sandbox", timings.sandbox_ms),
                ("run", timings.run_ms),
                ("collect", timings.collect_ms),
            ],
        };
        self.0.metrics.ended(&ended);
        telemetry::trace_phases(&ended.phases);
    }

    /// Counts a sandbox that did not do what it was made for.
    pub(super) fn count_failure(&self, reason: Option<&'static str>) {
        if let Some(reason) = reason {
            self.0.metrics.sandbox_failed(reason);
        }
    }

    /// Counts an attempt to install packages.
    pub(super) fn count_install<T>(&self, language: Language, began: Instant, result: &Result<T, Error>) {
        let result = result.as_ref().map(drop).map_err(drop);
        self.0
            .metrics
            .installed(language.as_str(), result, began.elapsed());
    }
}

/// What a sandbox failed at, if it did, as it is counted.
pub(super) fn fault_of(report: Result<&Report, ()>) -> Option<&'static str> {
    match report.map(|report| &report.end) {
        Err(()) => Some(telemetry::NO_SANDBOX),
        Ok(Completion::Lost(_)) => Some(telemetry::LOST),
        Ok(Completion::NotStarted(_)) => Some(telemetry::NOT_STARTED),
        Ok(_) => None,
    }
}
