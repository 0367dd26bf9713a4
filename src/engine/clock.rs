//! The time as it is kept: what is answered at once equals what is answered later.

use jiff::Timestamp;

/// Now, as it is kept.
pub(super) fn now() -> Timestamp {
    kept(Timestamp::now())
}

/// `time` as the store gives it back: in whole microseconds.
pub(super) fn kept(time: Timestamp) -> Timestamp {
    let whole = || Timestamp::from_second(time.as_second()).expect("the seconds of a timestamp are one");
    // The last second that there is cannot be read back with a fraction.
    Timestamp::from_microsecond(time.as_microsecond()).unwrap_or_else(|_| whole())
}

/// `milliseconds` to the microsecond: a longer fraction is not read back as it was written.
pub(super) fn kept_milliseconds(milliseconds: f64) -> f64 {
    (milliseconds * 1000.0).round() / 1000.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kept_time_stays_as_it_is() {
        let time: Timestamp = "2026-01-02T03:04:05.123456789Z".parse().unwrap();
        assert_eq!(kept(time).to_string(), "2026-01-02T03:04:05.123456Z");
        for edge in [Timestamp::MIN, Timestamp::MAX] {
            let read_back = Timestamp::from_microsecond(kept(edge).as_microsecond());
            assert_eq!(read_back.unwrap(), kept(edge));
        }
        assert_eq!(now().subsec_nanosecond() % 1000, 0);
    }

    #[test]
    fn a_kept_duration_reads_back_as_it_was_written() {
        for nanoseconds in (0..10_000_000_u32).step_by(997) {
            let kept = kept_milliseconds(f64::from(nanoseconds) / 1e6);
            let text = serde_json::to_string(&kept).unwrap();
            assert_eq!(
                serde_json::from_str::<f64>(&text).unwrap().to_bits(),
                kept.to_bits(),
                "{text}"
            );
        }
    }
}
