//! Time limits that a busy machine may miss once: attempts, and a line in the log for each that failed.

use std::io::Write as _;

/// Tries what may take no more than `most` ms: a machine that is busy with other tests may be late once, a fault is late each time.
pub(crate) async fn in_time(most: f64, attempt: impl AsyncFn() -> f64) {
    let mut took = Vec::new();
    while took.len() < 3 {
        let ms = attempt().await;
        if ms <= most {
            print_forgiven(&took);
            return;
        }
        took.push(format!("{ms:.0} ms of at most {most}"));
    }
    panic!("it took {took:?}");
}

/// Prints the failed attempts of a test that passed. They go to the descriptor, because libtest hides what passing tests print.
pub(crate) fn print_forgiven(attempts: &[String]) {
    let test = std::thread::current();
    for attempt in attempts {
        let line = format!(
            "forgiven: {} tried again: {attempt}\n",
            test.name().unwrap_or("?")
        );
        let _ = std::io::stderr().write_all(line.as_bytes());
    }
}
