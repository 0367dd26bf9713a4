//! Converts OpenMetrics to the text format of Prometheus, version 0.0.4.

use std::collections::HashSet;
use std::fmt::Write as _;

/// In OpenMetrics the description of a counter lacks the suffix `_total` of its samples, which Prometheus' own format
/// requires.
pub(super) fn classic(text: &str) -> String {
    let counters: HashSet<&str> = text
        .lines()
        .filter_map(|line| line.strip_prefix("# TYPE ")?.strip_suffix(" counter"))
        .collect();
    let mut classic = String::with_capacity(text.len() + 1024);
    for line in text.lines() {
        let described = line.strip_prefix("# ").and_then(|line| {
            let (word, rest) = line.split_once(' ')?;
            let (name, rest) = rest.split_once(' ')?;
            counters.contains(name).then_some((word, name, rest))
        });
        let _ = match described {
            Some((word, name, rest)) => writeln!(classic, "# {word} {name}_total {rest}"),
            None => writeln!(classic, "{line}"),
        };
    }
    classic
}
