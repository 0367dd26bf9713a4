//! Counts of ended executions and their durations, small enough to be stored for each period.

use std::ops::AddAssign;

use serde::Serialize;

use crate::execution::Status;

/// Ended executions by status.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, utoipa::ToSchema)]
pub struct OutcomeCounts {
    pub success: u64,
    pub failed: u64,
    pub timeout: u64,
    pub oom: u64,
    pub cancelled: u64,
    pub denied: u64,
    pub interrupted: u64,
}

impl OutcomeCounts {
    fn of(status: Status) -> Self {
        let mut one = Self::default();
        match status {
            Status::Queued | Status::Running => {}
            Status::Success => one.success = 1,
            Status::Failed => one.failed = 1,
            Status::Timeout => one.timeout = 1,
            Status::Oom => one.oom = 1,
            Status::Cancelled => one.cancelled = 1,
            Status::Denied => one.denied = 1,
            Status::Interrupted => one.interrupted = 1,
        }
        one
    }

    #[must_use]
    pub fn total(&self) -> u64 {
        self.success + self.cancelled + self.failures()
    }

    /// Neither successful nor cancelled by a caller.
    #[must_use]
    pub fn failures(&self) -> u64 {
        self.failed + self.timeout + self.oom + self.denied + self.interrupted
    }
}

impl AddAssign for OutcomeCounts {
    fn add_assign(&mut self, more: Self) {
        self.success += more.success;
        self.failed += more.failed;
        self.timeout += more.timeout;
        self.oom += more.oom;
        self.cancelled += more.cancelled;
        self.denied += more.denied;
        self.interrupted += more.interrupted;
    }
}

/// One ended execution, as it is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CountedEnd {
    pub status: Status,
    /// From acceptance to end.
    pub micros: i64,
    pub cpu_ms: u64,
}

/// Ended executions of one period.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExecutionCounts {
    pub outcomes: OutcomeCounts,
    pub cpu_ms: u64,
    pub durations: Durations,
}

impl ExecutionCounts {
    pub fn add(&mut self, ended: CountedEnd) {
        self.outcomes += OutcomeCounts::of(ended.status);
        self.cpu_ms += ended.cpu_ms;
        self.durations.add(ended.micros);
    }
}

impl AddAssign<&Self> for ExecutionCounts {
    fn add_assign(&mut self, more: &Self) {
        self.outcomes += more.outcomes;
        self.cpu_ms += more.cpu_ms;
        for (bin, count) in more
            .durations
            .bins
            .iter()
            .enumerate()
            .filter(|(_, count)| **count > 0)
        {
            self.durations.add_count(bin, *count);
        }
    }
}

/// A histogram of durations. Its bins grow by a constant factor, so a percentile is within 3 % of the exact one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Durations {
    /// Counts by bin, up to the last one that is not empty.
    bins: Vec<u64>,
}

#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("not a histogram")]
pub struct InvalidHistogram;

/// Each bin is this much wider than the one before it.
const FACTOR: f64 = 1.06;
/// Upper end of the first bin.
const FIRST_MICROS: f64 = 100.0;
/// More than a year.
const LAST_BIN: usize = 480;

impl Durations {
    fn add(&mut self, micros: i64) {
        self.add_count(bin(micros), 1);
    }

    fn add_count(&mut self, bin: usize, count: u64) {
        if self.bins.len() <= bin {
            self.bins.resize(bin + 1, 0);
        }
        self.bins[bin] = self.bins[bin].saturating_add(count);
    }

    /// The duration that this share of all is not longer than, in milliseconds; `None` if there is none.
    #[must_use]
    pub fn percentile_ms(&self, share: f64) -> Option<f64> {
        let total: u64 = self.bins.iter().sum();
        if total == 0 {
            return None;
        }
        #[expect(
            clippy::cast_precision_loss,
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a count of executions, times a share of one"
        )]
        let rank = ((total as f64 * share).ceil() as u64).clamp(1, total);
        let mut below = 0;
        let bin = self.bins.iter().position(|count| {
            below += count;
            below >= rank
        });
        bin.map(middle_ms)
    }

    /// Pairs of bin, counted from the one before, and count; each number in as many bytes as it needs.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut last = 0;
        for (bin, count) in self.bins.iter().enumerate().filter(|(_, count)| **count > 0) {
            put(&mut bytes, (bin - last) as u64);
            put(&mut bytes, *count);
            last = bin;
        }
        bytes
    }

    /// Adds what [`Self::to_bytes`] made of another histogram.
    pub fn add_bytes(&mut self, mut bytes: &[u8]) -> Result<(), InvalidHistogram> {
        let mut last = 0_u64;
        while !bytes.is_empty() {
            last = last.saturating_add(take(&mut bytes)?);
            let bin = usize::try_from(last).ok().filter(|bin| *bin <= LAST_BIN);
            self.add_count(bin.ok_or(InvalidHistogram)?, take(&mut bytes)?);
        }
        Ok(())
    }
}

/// A negative duration, after the clock was set back, is none.
fn bin(micros: i64) -> usize {
    #[expect(clippy::cast_precision_loss, reason = "less than a thousand years")]
    let factor = micros.max(0) as f64 / FIRST_MICROS;
    if factor <= 1.0 {
        return 0;
    }
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "limited, and not negative"
    )]
    let bin = (factor.ln() / FACTOR.ln()).ceil() as usize;
    bin.min(LAST_BIN)
}

/// The value whose largest relative distance from others in this bin is least, to the microsecond.
fn middle_ms(bin: usize) -> f64 {
    let upper = FIRST_MICROS * FACTOR.powi(i32::try_from(bin).unwrap_or(i32::MAX));
    (upper * 2.0 / (1.0 + FACTOR)).round() / 1000.0
}

fn put(bytes: &mut Vec<u8>, mut number: u64) {
    loop {
        let [low, ..] = number.to_le_bytes();
        number >>= 7;
        if number == 0 {
            return bytes.push(low & 0x7f);
        }
        bytes.push(low | 0x80);
    }
}

fn take(bytes: &mut &[u8]) -> Result<u64, InvalidHistogram> {
    let mut number = 0_u64;
    for shift in (0..u64::BITS).step_by(7) {
        let (byte, rest) = bytes.split_first().ok_or(InvalidHistogram)?;
        *bytes = rest;
        number |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Ok(number);
        }
    }
    Err(InvalidHistogram)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ended(status: Status, micros: i64) -> CountedEnd {
        CountedEnd {
            status,
            micros,
            cpu_ms: 2,
        }
    }

    #[test]
    fn percentiles_are_close_to_exact_ones() {
        // Three times as long as the one before it, within a factor of a million.
        let micros: Vec<i64> = (0..10_000_i64).map(|n| 150 + (n * n * 37) % 90_000_000).collect();
        let mut durations = Durations::default();
        micros.iter().for_each(|micros| durations.add(*micros));
        let mut sorted = micros;
        sorted.sort_unstable();
        for (share, exact) in [(0.5, sorted[4999]), (0.95, sorted[9499]), (0.99, sorted[9899])] {
            let exact = exact as f64 / 1000.0;
            let found = durations.percentile_ms(share).unwrap();
            assert!((found / exact - 1.0).abs() < 0.03, "{share}: {found} for {exact}");
        }
        assert_eq!(Durations::default().percentile_ms(0.5), None);
    }

    #[test]
    fn one_duration_is_every_percentile() {
        for micros in [1_000, 12_345, 1_000_000, 600_000_000] {
            let mut durations = Durations::default();
            durations.add(micros);
            for share in [0.01, 0.5, 0.99] {
                let found = durations.percentile_ms(share).unwrap() * 1000.0;
                assert!(
                    (found / micros as f64 - 1.0).abs() <= 0.03,
                    "{found} for {micros}"
                );
            }
        }
    }

    #[test]
    fn extreme_durations_have_a_bin() {
        let mut durations = Durations::default();
        for micros in [i64::MIN, -1, 0, 1, i64::MAX] {
            durations.add(micros);
        }
        assert_eq!((durations.bins[0], durations.bins[LAST_BIN]), (4, 1));
        assert_eq!(durations.bins.len(), LAST_BIN + 1);
    }

    #[test]
    fn histogram_reads_back_unchanged() {
        let mut durations = Durations::default();
        for n in 0..2000 {
            durations.add(n * n * n);
        }
        durations.add_count(LAST_BIN, 1 << 60);
        let bytes = durations.to_bytes();
        let read = |bytes: &[u8]| {
            let mut read = Durations::default();
            read.add_bytes(bytes).map(|()| read)
        };
        assert_eq!(read(&bytes), Ok(durations));
        assert_eq!(read(&[]), Ok(Durations::default()));
        for wrong in [&[1][..], &[0x80], &[0xff, 0x7f, 1], &[0xff; 20]] {
            assert_eq!(read(wrong), Err(InvalidHistogram), "{wrong:?}");
        }
    }

    #[test]
    fn sums_are_those_of_all_executions() {
        let (mut first, mut second) = (ExecutionCounts::default(), ExecutionCounts::default());
        first.add(ended(Status::Success, 1000));
        first.add(ended(Status::Failed, 2000));
        second.add(ended(Status::Timeout, 1000));
        second.add(ended(Status::Cancelled, 1000));
        first += &second;
        assert_eq!((first.outcomes.total(), first.outcomes.failures()), (4, 2));
        assert_eq!(first.cpu_ms, 8);
        assert_eq!(first.durations.bins.iter().sum::<u64>(), 4);
    }
}
