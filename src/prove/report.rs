//! The report of a proof.

use serde::Serialize;

use super::PROMISES;
use super::verdict::{Finding, Verdict};

/// One backend, attacked.
#[derive(Clone, Debug, Serialize)]
pub struct Proof {
    /// `docker` or `native`.
    pub backend: String,
    /// What it is made of: the engine and its runtime, or this kernel and the user.
    pub form: String,
    /// The promises that are not kept in full here.
    pub degraded: Vec<String>,
    /// How often each verdict was given.
    pub total: Tally,
    /// Each promise.
    pub promises: Vec<PromiseTally>,
    /// Each probe, by promise.
    pub findings: Vec<Finding>,
    /// Attacks that started from a sandbox that had waited.
    pub waited: usize,
    /// How long all of it took, in seconds.
    pub seconds: f64,
}

/// How often each verdict was given.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Tally {
    /// Held.
    pub kept: usize,
    /// Not kept in full, and accepted.
    pub degraded: usize,
    /// Did not hold.
    pub breach: usize,
    /// Could not be said.
    pub skipped: usize,
}

/// How often each verdict was given on one promise.
#[derive(Clone, Debug, Serialize)]
pub struct PromiseTally {
    /// `P1` to `P16`.
    pub promise: &'static str,
    /// What is promised, in a few words.
    pub says: &'static str,
    /// By what this host keeps it, where that depends on the host.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mechanism: Option<String>,
    /// The verdicts.
    #[serde(flatten)]
    pub tally: Tally,
}

impl Tally {
    /// Counts verdicts.
    pub fn of<'a>(findings: impl IntoIterator<Item = &'a Finding>) -> Self {
        let mut tally = Self::default();
        for finding in findings {
            match finding.verdict {
                Verdict::Kept => tally.kept += 1,
                Verdict::Degraded => tally.degraded += 1,
                Verdict::Breach => tally.breach += 1,
                Verdict::Skipped => tally.skipped += 1,
            }
        }
        tally
    }

    /// Both together.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self {
            kept: self.kept + other.kept,
            degraded: self.degraded + other.degraded,
            breach: self.breach + other.breach,
            skipped: self.skipped + other.skipped,
        }
    }

    /// The one word for all of it: the worst, and `Skipped` where nothing could be said at all.
    #[must_use]
    pub fn verdict(self) -> Verdict {
        if self.breach > 0 {
            Verdict::Breach
        } else if self.degraded > 0 {
            Verdict::Degraded
        } else if self.kept > 0 {
            Verdict::Kept
        } else {
            Verdict::Skipped
        }
    }
}

/// The promises that are not kept in full: what the host says of itself, and what the probes have found.
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

/// Sorts findings by promise, then as the data has them, and counts them.
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
