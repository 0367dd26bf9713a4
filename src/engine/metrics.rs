//! Metrics of the use cases.

use std::time::Instant;

use crate::engine::Engine;
use crate::error::Error;
use crate::execution::{NewExecution, Outcome};
use crate::sandbox::{Completion, Report};
use crate::skill::Language;
use crate::telemetry::{self, CurrentValues, ExecutionCompletion, Metrics};

impl Engine {
    /// The metrics of this process, to which transports add theirs.
    #[must_use]
    pub fn metrics(&self) -> &Metrics {
        &self.metrics
    }

    /// All metrics in Prometheus' text format.
    #[must_use]
    pub fn metrics_text(&self) -> String {
        self.metrics.text(&CurrentValues {
            running: self.admission.running() as u64,
            queued: self.admission.waiting() as u64,
            slots: self.settings.concurrency as u64,
            warm: self.sandbox.warm_pool_stats(),
        })
    }

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
        self.metrics.ended(&ended);
        self.count_warm(new, outcome);
        telemetry::trace_phases(&ended.phases);
    }

    pub(super) fn count_failure(&self, reason: Option<&'static str>) {
        if let Some(reason) = reason {
            self.metrics.sandbox_failed(reason);
        }
    }

    pub(super) fn count_install<T>(&self, language: Language, began: Instant, result: &Result<T, Error>) {
        let result = result.as_ref().map(drop).map_err(drop);
        self.metrics.installed(language.as_str(), result, began.elapsed());
    }
}

/// The failure that is counted for this report.
pub(super) fn fault_of(report: Result<&Report, ()>) -> Option<&'static str> {
    match report.map(|report| &report.end) {
        Err(()) => Some(telemetry::NO_SANDBOX),
        Ok(Completion::Lost(_) | Completion::EngineLost(_) | Completion::NotStored) => Some(telemetry::LOST),
        Ok(Completion::NotStarted(_)) => Some(telemetry::NOT_STARTED),
        Ok(_) => None,
    }
}
