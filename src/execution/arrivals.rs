//! When parts of the output and the log arrived, in order. The text itself is stored by stream.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::execution::{LogLine, Logs};
use crate::limits;

/// Where a part of what a program prints comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum LogSource {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
    /// The helper `log`.
    Log,
}

/// A part that arrived at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    pub source: LogSource,
    /// Bytes of a stream, or lines of the log.
    pub count: u64,
    /// With millisecond precision.
    pub at: Timestamp,
}

/// Parts in order of arrival. Parts of one source within a millisecond are one. After [`limits::ARRIVALS_MAX`] parts,
/// the rest of each source is one part.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "Vec<StoredArrival>", try_from = "Vec<StoredArrival>")]
pub struct Arrivals(Vec<Arrival>);

/// LogSource, count, and milliseconds after the part before; the first since 1970.
#[derive(Serialize, Deserialize)]
struct StoredArrival(LogSource, u64, i64);

/// A position while parts are read in order.
#[derive(Clone, Copy, Debug, Default)]
pub struct ArrivalCursor {
    index: usize,
    /// What all parts before `index` have, by source.
    before: [u64; 3],
}

impl LogSource {
    pub const ALL: [Self; 3] = [Self::Stdout, Self::Stderr, Self::Log];

    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Stdout => "stdout",
            Self::Stderr => "stderr",
            Self::Log => "log",
        }
    }
}

impl Arrivals {
    pub(super) const NONE: Self = Self(Vec::new());

    /// Adds a part. Times never decrease.
    pub fn add(&mut self, source: LogSource, count: u64, at: Timestamp) {
        if count == 0 {
            return;
        }
        let at = Timestamp::from_millisecond(at.as_millisecond()).unwrap_or(at);
        let at = self.0.last().map_or(at, |last| last.at.max(at));
        let is_last = |last: &&mut Arrival| last.source == source && last.at == at;
        if let Some(last) = self.0.last_mut().filter(is_last) {
            last.count += count;
            return;
        }
        let rest = self.0.iter_mut().skip(limits::ARRIVALS_MAX);
        match rest.into_iter().find(|rest| rest.source == source) {
            Some(rest) => rest.count += count,
            None => self.0.push(Arrival { source, count, at }),
        }
    }

    /// Adds what `logs` has beyond these parts, as arrived last.
    pub fn complete(&mut self, logs: &Logs, at: Timestamp) {
        for source in LogSource::ALL {
            let known: u64 = self.of(source).map(|part| part.count).sum();
            self.add(source, logs.count(source).saturating_sub(known), at);
        }
    }

    fn of(&self, source: LogSource) -> impl Iterator<Item = &Arrival> {
        self.0.iter().filter(move |part| part.source == source)
    }

    pub fn iter(&self) -> impl Iterator<Item = &Arrival> {
        self.0.iter()
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The first part that a reader has not read completely, and how much of this source follows until another source.
    /// `None` if everything was read.
    pub fn next(&self, cursor: &mut ArrivalCursor, read: [u64; 3]) -> Option<(LogSource, u64)> {
        loop {
            let part = self.0.get(cursor.index)?;
            let source = part.source as usize;
            let left = (cursor.before[source] + part.count).saturating_sub(read[source]);
            if left > 0 {
                let following = self.0[cursor.index + 1..].iter();
                let same = following.take_while(|next| next.source == part.source);
                let same: u64 = same.take(limits::EVENT_BYTES_MAX).map(|next| next.count).sum();
                return Some((part.source, left + same));
            }
            // Only the last part, and those of the rest, can grow.
            let grows = cursor.index + 1 >= self.0.len().min(limits::ARRIVALS_MAX);
            if grows {
                return self.next_of_rest(*cursor, read);
            }
            cursor.before[source] += part.count;
            cursor.index += 1;
        }
    }

    /// As [`next`](Self::next), for the parts that can grow.
    fn next_of_rest(&self, cursor: ArrivalCursor, read: [u64; 3]) -> Option<(LogSource, u64)> {
        let mut before = cursor.before;
        self.0[cursor.index..].iter().find_map(|part| {
            let until = &mut before[part.source as usize];
            *until += part.count;
            let left = until.saturating_sub(read[part.source as usize]);
            (left > 0).then_some((part.source, left))
        })
    }
}

impl Logs {
    /// Recorded bytes of a stream, or lines of the log.
    #[must_use]
    pub fn count(&self, source: LogSource) -> u64 {
        let count = match source {
            LogSource::Stdout => self.stdout.len(),
            LogSource::Stderr => self.stderr.len(),
            LogSource::Log => self.lines.len(),
        };
        count as u64
    }

    /// Everything in order of arrival, each part with its time. Without a time is what has none: that of executions of
    /// earlier releases.
    pub fn parts(&self) -> impl Iterator<Item = LogPart<'_>> {
        let mut arrivals: Vec<_> = self.arrivals.iter().copied().map(|part| (part, true)).collect();
        for source in LogSource::ALL {
            let known: u64 = self.arrivals.of(source).map(|part| part.count).sum();
            let count = self.count(source).saturating_sub(known);
            let at = Timestamp::default();
            arrivals.push((Arrival { source, count, at }, false));
        }
        let mut read = [0_usize; 3];
        arrivals.into_iter().filter_map(move |(part, is_known)| {
            let all = usize::try_from(self.count(part.source)).unwrap_or(usize::MAX);
            let start = read[part.source as usize];
            let end = all.min(start.saturating_add(usize::try_from(part.count).unwrap_or(usize::MAX)));
            read[part.source as usize] = end;
            let content = match part.source {
                LogSource::Stdout => PartContent::Stdout(&self.stdout[start..end]),
                LogSource::Stderr => PartContent::Stderr(&self.stderr[start..end]),
                LogSource::Log => PartContent::Log(&self.lines[start..end]),
            };
            let time = is_known.then_some(part.at);
            (start < end).then_some(LogPart { time, content })
        })
    }
}

/// A part of what was printed and logged.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LogPart<'a> {
    pub time: Option<Timestamp>,
    pub content: PartContent<'a>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum PartContent<'a> {
    Stdout(&'a [u8]),
    Stderr(&'a [u8]),
    Log(&'a [LogLine]),
}

impl From<Arrivals> for Vec<StoredArrival> {
    fn from(arrivals: Arrivals) -> Self {
        let mut before = 0;
        let stored = arrivals.0.into_iter().map(|part| {
            let at = part.at.as_millisecond();
            let after = at - std::mem::replace(&mut before, at);
            StoredArrival(part.source, part.count, after)
        });
        stored.collect()
    }
}

impl TryFrom<Vec<StoredArrival>> for Arrivals {
    type Error = jiff::Error;

    fn try_from(stored: Vec<StoredArrival>) -> Result<Self, jiff::Error> {
        let mut at = 0_i64;
        let parts = stored.into_iter().map(|StoredArrival(source, count, after)| {
            at = at.saturating_add(after);
            let at = Timestamp::from_millisecond(at)?;
            Ok(Arrival { source, count, at })
        });
        parts.collect::<Result<_, _>>().map(Self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millisecond: i64) -> Timestamp {
        Timestamp::from_millisecond(1_790_000_000_000 + millisecond).unwrap()
    }

    fn logs(arrivals: Arrivals) -> Logs {
        Logs {
            stdout: b"one\ntwo\n".to_vec(),
            stderr: b"warn\n".to_vec(),
            lines: vec![LogLine::default()],
            arrivals,
            ..Logs::default()
        }
    }

    #[test]
    fn returns_parts_in_order_of_arrival() {
        let mut arrivals = Arrivals::default();
        for (source, count, time) in [
            (LogSource::Stdout, 3, 5),
            (LogSource::Stdout, 1, 5),
            (LogSource::Stderr, 5, 7),
            (LogSource::Stdout, 4, 6),
        ] {
            arrivals.add(source, count, at(time));
        }
        arrivals.complete(&logs(Arrivals::default()), at(9));
        let stored = serde_json::to_string(&arrivals).unwrap();
        assert_eq!(
            stored,
            r#"[["stdout",4,1790000000005],["stderr",5,2],["stdout",4,0],["log",1,2]]"#
        );
        assert_eq!(serde_json::from_str::<Arrivals>(&stored).unwrap(), arrivals);
        let logs = logs(arrivals);
        let parts: Vec<_> = logs.parts().map(|part| (part.time, part.content)).collect();
        assert_eq!(
            parts,
            [
                (Some(at(5)), PartContent::Stdout(b"one\n")),
                (Some(at(7)), PartContent::Stderr(b"warn\n")),
                // A clock that was set back.
                (Some(at(7)), PartContent::Stdout(b"two\n")),
                (Some(at(9)), PartContent::Log(&logs.lines)),
            ]
        );
    }

    #[test]
    fn parts_of_earlier_releases_have_no_time() {
        let logs = logs(Arrivals::default());
        let parts: Vec<_> = logs.parts().collect();
        assert_eq!(parts.len(), 3);
        assert!(parts.iter().all(|part| part.time.is_none()));
    }

    #[test]
    fn limits_the_number_of_parts() {
        let mut arrivals = Arrivals::default();
        let mut read = [0; 3];
        let (mut cursor, mut sum) = (ArrivalCursor::default(), 0);
        for n in 0..3 * limits::ARRIVALS_MAX as u64 {
            let source = LogSource::ALL[usize::try_from(n % 3).unwrap()];
            arrivals.add(source, 2, at(i64::try_from(n).unwrap()));
            let (next, left) = arrivals.next(&mut cursor, read).unwrap();
            assert_eq!((next, left), (source, 2), "{n}");
            read[source as usize] += left;
            sum += left;
            assert_eq!(arrivals.next(&mut cursor, read), None);
        }
        assert_eq!(sum, 6 * limits::ARRIVALS_MAX as u64);
        assert_eq!(arrivals.iter().count(), limits::ARRIVALS_MAX + 3);
        assert_eq!(arrivals.iter().map(|part| part.count).sum::<u64>(), sum);
    }
}
