//! Pauses and complaints.

use std::time::Duration;

use hyper::StatusCode;

use super::courier::{complaint, pause};
use crate::limits;

#[test]
fn pauses_grow_and_end() {
    let all = limits::DELIVERY_RETRIES;
    let whole = |number| pause(&all, number, u32::MAX / 2).map(|pause| pause.as_secs_f64().round());
    let seconds: Vec<_> = (1..=8).map(whole).collect();
    let expected = [5, 60, 300, 1800, 7200, 18_000, 36_000].map(|seconds: u32| Some(f64::from(seconds)));
    assert_eq!(seconds[..7], expected);
    assert_eq!(seconds[7], None);
    assert_eq!(pause(&[], 1, 0), None);
    let ten = [Duration::from_secs(10)];
    assert_eq!(pause(&ten, 1, 0), Some(Duration::from_secs(9)));
    assert_eq!(pause(&ten, 1, u32::MAX), Some(Duration::from_secs(11)));
}

#[test]
fn only_a_success_is_one() {
    for code in [200, 201, 202, 204, 299] {
        assert_eq!(complaint(StatusCode::from_u16(code).unwrap()), None);
    }
    for code in [100, 101, 301, 302, 307, 308, 400, 404, 410, 429, 500, 503, 999] {
        let complaint = complaint(StatusCode::from_u16(code).unwrap()).unwrap();
        assert!(complaint.contains(&code.to_string()), "{complaint}");
    }
}
