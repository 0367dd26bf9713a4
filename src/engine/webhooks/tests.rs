//! Pauses between attempts, and errors of responses.

use std::time::Duration;

use hyper::StatusCode;

use super::client::parse_retry_after;
use super::sender::{at_least, pause, status_error};
use crate::limits;

#[test]
fn pauses_follow_the_retry_schedule() {
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
fn parses_retry_after() {
    let now = "1994-11-06T08:49:37Z".parse().unwrap();
    for (text, seconds) in [
        ("0", Some(0)),
        ("120", Some(120)),
        ("99999999999999999999999", Some(u64::MAX)),
        ("Sun, 06 Nov 1994 08:50:37 GMT", Some(60)),
        ("Sun, 06 Nov 1994 08:48:37 GMT", None),
        ("-1", None),
        ("soon", None),
        ("", None),
    ] {
        assert_eq!(
            parse_retry_after(text, now),
            seconds.map(Duration::from_secs),
            "{text}"
        );
    }
}

#[test]
fn retry_after_lengthens_pauses_up_to_one_hour() {
    let seconds = Duration::from_secs;
    for (pause, retry_after, expected) in [
        (5, None, 5),
        (5, Some(0), 5),
        (5, Some(60), 60),
        (5, Some(u64::MAX), 3600),
        (7200, Some(60), 7200),
    ] {
        assert_eq!(
            at_least(seconds(pause), retry_after.map(seconds)),
            seconds(expected)
        );
    }
}

#[test]
fn reports_every_status_except_success() {
    for code in [200, 201, 202, 204, 299] {
        assert_eq!(status_error(StatusCode::from_u16(code).unwrap()), None);
    }
    for code in [100, 101, 301, 302, 307, 308, 400, 404, 410, 429, 500, 503, 999] {
        let error = status_error(StatusCode::from_u16(code).unwrap()).unwrap();
        assert!(error.contains(&code.to_string()), "{error}");
    }
}
