//! The report of a proof.

use serde::Serialize;

use super::verdict::{Finding, Verdict};
use crate::sandbox::PROMISES;

/// Results of one backend.
#[derive(Clone, Debug, Serialize)]
pub struct Proof {
    /// `docker` or `native`.
    pub backend: String,
    /// The engine and its runtime, or this kernel and the user.
    pub form: String,
    /// Promises that are only partly kept here.
    pub degraded: Vec<String>,
    /// Number of each verdict.
    pub total: Tally,
    /// By promise.
    pub promises: Vec<PromiseTally>,
    /// By promise.
    pub findings: Vec<Finding>,
    /// Attacks that ran in a warm sandbox.
    pub waited: usize,
    /// Duration in seconds.
    pub seconds: f64,
}

/// Number of each verdict.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Tally {
    /// Kept.
    pub kept: usize,
    /// Only partly kept, as accepted.
    pub degraded: usize,
    /// Not known, because this host is too slow.
    pub inconclusive: usize,
    /// Not kept.
    pub breach: usize,
    /// Not checked.
    pub skipped: usize,
}

/// Verdicts on one promise.
#[derive(Clone, Debug, Serialize)]
pub struct PromiseTally {
    /// `P1` to `P16`.
    pub promise: &'static str,
    /// Title of the promise.
    pub says: &'static str,
    /// Mechanism of this host, if it depends on the host.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mechanism: Option<String>,
    #[serde(flatten)]
    pub tally: Tally,
}

impl Tally {
    pub fn of<'a>(findings: impl IntoIterator<Item = &'a Finding>) -> Self {
        let mut tally = Self::default();
        for finding in findings {
            match finding.verdict {
                Verdict::Kept => tally.kept += 1,
                Verdict::Degraded => tally.degraded += 1,
                Verdict::Inconclusive => tally.inconclusive += 1,
                Verdict::Breach => tally.breach += 1,
                Verdict::Skipped => tally.skipped += 1,
            }
        }
        tally
    }

    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self {
            kept: self.kept + other.kept,
            degraded: self.degraded + other.degraded,
            inconclusive: self.inconclusive + other.inconclusive,
            breach: self.breach + other.breach,
            skipped: self.skipped + other.skipped,
        }
    }

    /// The worst verdict; `Skipped` if none was given.
    #[must_use]
    pub fn verdict(self) -> Verdict {
        if self.breach > 0 {
            Verdict::Breach
        } else if self.inconclusive > 0 {
            Verdict::Inconclusive
        } else if self.degraded > 0 {
            Verdict::Degraded
        } else if self.kept > 0 {
            Verdict::Kept
        } else {
            Verdict::Skipped
        }
    }
}

/// Promises that are only partly kept, according to the host and to the probes.
pub(super) fn degraded(by_host: &[String], found: &[PromiseTally]) -> Vec<String> {
    let of_found = |promise: &str| {
        found
            .iter()
            .any(|tally| tally.promise == promise && tally.tally.degraded > 0)
    };
    let names = PROMISES.iter().map(|(promise, _)| (*promise).to_owned());
    names
        .filter(|promise| by_host.contains(promise) || of_found(promise))
        .collect()
}

/// Sorts findings by promise, then by the order of the data, and counts them.
pub(super) fn by_promise(
    findings: &mut [Finding],
    mechanisms: &[(&'static str, String)],
) -> Vec<PromiseTally> {
    let rank = |promise: &str| PROMISES.iter().position(|(known, _)| *known == promise);
    findings.sort_by(|a, b| (rank(&a.promise), &a.id).cmp(&(rank(&b.promise), &b.id)));
    let tallies = PROMISES.iter().map(|(promise, says)| PromiseTally {
        promise,
        says,
        mechanism: mechanisms
            .iter()
            .find(|(known, _)| known == promise)
            .map(|(_, by)| by.clone()),
        tally: Tally::of(findings.iter().filter(|finding| finding.promise == *promise)),
    });
    tallies
        .filter(|promise| promise.tally != Tally::default())
        .collect()
}
