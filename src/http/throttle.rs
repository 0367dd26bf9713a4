//! Rate limits clients that guess keys, without affecting clients with valid keys (T-10).

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::limits;

/// Wrong keys by source and minute. Only wrong keys are counted and rejected: a caller with a valid key behind the
/// same proxy is not affected.
#[derive(Debug, Default)]
pub(crate) struct Throttle(Mutex<HashMap<IpAddr, Window>>);

#[derive(Clone, Copy, Debug)]
struct Window {
    opened_at: Instant,
    wrong: u32,
}

const WINDOW: Duration = Duration::from_secs(60);

impl Throttle {
    /// Counts a wrong key; the error is the time to wait.
    pub(crate) fn wrong_key(&self, source: IpAddr, now: Instant) -> Result<(), Duration> {
        let mut windows = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let age = |window: &Window| now.saturating_duration_since(window.opened_at);
        if windows.len() >= limits::WRONG_KEY_SOURCES_MAX {
            windows.retain(|_, window| age(window) < WINDOW);
        }
        let source = if windows.len() < limits::WRONG_KEY_SOURCES_MAX {
            network(source)
        } else {
            // The table is full: new sources share one entry.
            IpAddr::V6(Ipv6Addr::UNSPECIFIED)
        };
        let fresh = Window {
            opened_at: now,
            wrong: 0,
        };
        let window = windows.entry(source).or_insert(fresh);
        if age(window) >= WINDOW {
            *window = fresh;
        }
        window.wrong = window.wrong.saturating_add(1);
        if window.wrong <= limits::WRONG_KEYS_PER_MINUTE_MAX {
            Ok(())
        } else {
            Err(WINDOW.saturating_sub(age(window)))
        }
    }
}

/// An IPv6 /64 network is one source, since a customer has 2^64 addresses.
fn network(source: IpAddr) -> IpAddr {
    match source.to_canonical() {
        IpAddr::V4(ip) => IpAddr::V4(ip),
        IpAddr::V6(ip) => IpAddr::V6(Ipv6Addr::from_bits(ip.to_bits() >> 64 << 64)),
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    fn ip(last: u32) -> IpAddr {
        IpAddr::V4(Ipv4Addr::from_bits(0x0a00_0000 + last))
    }

    fn rejected(throttle: &Throttle, source: IpAddr, now: Instant) -> u32 {
        (0..1000)
            .map(|_| u32::from(throttle.wrong_key(source, now).is_err()))
            .sum()
    }

    /// T-10.
    #[test]
    fn rejects_most_of_a_thousand_wrong_keys_per_minute() {
        let throttle = Throttle::default();
        let start = Instant::now();
        let expected = 1000 - limits::WRONG_KEYS_PER_MINUTE_MAX;
        assert_eq!(rejected(&throttle, ip(1), start), expected);
        assert!(throttle.wrong_key(ip(2), start).is_ok(), "another source");
        let wait = throttle.wrong_key(ip(1), start + Duration::from_secs(50));
        assert_eq!(wait, Err(Duration::from_secs(10)));
        assert!(
            throttle.wrong_key(ip(1), start + WINDOW).is_ok(),
            "a minute later"
        );
    }

    #[test]
    fn counts_an_ipv6_network_as_one_source() {
        let throttle = Throttle::default();
        let now = Instant::now();
        rejected(&throttle, "2001:db8::1".parse().unwrap(), now);
        assert!(
            throttle
                .wrong_key("2001:db8::ffff:2".parse().unwrap(), now)
                .is_err()
        );
        assert!(
            throttle
                .wrong_key("2001:db8:0:1::1".parse().unwrap(), now)
                .is_ok()
        );
    }

    #[test]
    fn limits_the_table_and_removes_old_entries() {
        let throttle = Throttle::default();
        let start = Instant::now();
        let many = u32::try_from(limits::WRONG_KEY_SOURCES_MAX).unwrap() * 2;
        for source in 0..many {
            let _ = throttle.wrong_key(ip(source), start);
        }
        let held = throttle.0.lock().unwrap().len();
        assert_eq!(held, limits::WRONG_KEY_SOURCES_MAX + 1);
        assert!(throttle.wrong_key(ip(1), start + WINDOW).is_ok());
        assert_eq!(throttle.0.lock().unwrap().len(), 1);
    }
}
