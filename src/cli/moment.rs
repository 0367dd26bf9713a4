//! Times as people read them.

use jiff::Timestamp;

/// To the second, to save width.
pub(crate) fn exact(at: Timestamp) -> String {
    at.strftime("%Y-%m-%d %H:%M:%SZ").to_string()
}

/// `2 min ago`, `in 6 d`; the day itself if it is more than a month away.
pub(crate) fn ago(at: Timestamp, now: Timestamp) -> String {
    let seconds = now.as_second() - at.as_second();
    let span = match seconds.abs() {
        0 => return "now".to_owned(),
        seconds @ ..60 => format!("{seconds} s"),
        seconds @ ..3600 => format!("{} min", seconds / 60),
        seconds @ ..86_400 => format!("{} h", seconds / 3600),
        seconds @ ..2_592_000 => format!("{} d", seconds / 86_400),
        _ => return at.strftime("%Y-%m-%d").to_string(),
    };
    if seconds > 0 {
        format!("{span} ago")
    } else {
        format!("in {span}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn says_how_long_ago() {
        let now: Timestamp = "2026-11-23T12:00:00Z".parse().unwrap();
        let said = |text: &str| ago(text.parse().unwrap(), now);
        assert_eq!(said("2026-11-23T12:00:00Z"), "now");
        assert_eq!(said("2026-11-23T11:59:01Z"), "59 s ago");
        assert_eq!(said("2026-11-23T11:57:59Z"), "2 min ago");
        assert_eq!(said("2026-11-22T12:00:01Z"), "23 h ago");
        assert_eq!(said("2026-10-30T12:00:00Z"), "24 d ago");
        assert_eq!(said("2026-01-02T12:00:00Z"), "2026-01-02");
        assert_eq!(said("2026-11-29T13:00:00Z"), "in 6 d");
    }
}
