//! Time as the store returns it, so that the first answer equals later ones.

use std::time::Duration;

use jiff::Timestamp;

/// Now, in the store's precision.
pub(super) fn now() -> Timestamp {
    kept(Timestamp::now())
}

/// Zero if the clock was set back.
pub(super) fn since(time: Timestamp) -> Duration {
    Duration::try_from(Timestamp::now().duration_since(time)).unwrap_or_default()
}

/// `time` in the store's precision of microseconds.
pub(super) fn kept(time: Timestamp) -> Timestamp {
    let whole = || Timestamp::from_second(time.as_second()).expect("the seconds of a timestamp are one");
    // The last second of the range cannot be read back with a fraction.
    Timestamp::from_microsecond(time.as_microsecond()).unwrap_or_else(|_| whole())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stored_time_reads_back_unchanged() {
        let time: Timestamp = "2026-01-02T03:04:05.123456789Z".parse().unwrap();
        assert_eq!(kept(time).to_string(), "2026-01-02T03:04:05.123456Z");
        for edge in [Timestamp::MIN, Timestamp::MAX] {
            let read_back = Timestamp::from_microsecond(kept(edge).as_microsecond());
            assert_eq!(read_back.unwrap(), kept(edge));
        }
        assert_eq!(now().subsec_nanosecond() % 1000, 0);
    }
}
