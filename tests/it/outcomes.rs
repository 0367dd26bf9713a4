//! Parts of outcomes, for assertions.

use skillbox::execution::{Execution, Outcome, Status};

/// The output as a value.
pub(crate) fn output(outcome: &Outcome) -> serde_json::Value {
    let text = outcome
        .output
        .as_ref()
        .unwrap_or_else(|| panic!("no output: {:?} {}", outcome.error, stderr(outcome)));
    serde_json::from_str(text.as_str()).unwrap()
}

/// What ended well; its error and what it printed if it did not.
pub(crate) fn succeeded(execution: Execution) -> Outcome {
    let outcome = execution.outcome.unwrap();
    let (error, said) = (&outcome.error, stderr(&outcome));
    assert_eq!(outcome.status, Status::Success, "{error:?} {said}");
    outcome
}

/// Standard output as text.
pub(crate) fn stdout(outcome: &Outcome) -> String {
    String::from_utf8_lossy(&outcome.logs.stdout).into_owned()
}

/// Standard error as text.
pub(crate) fn stderr(outcome: &Outcome) -> String {
    String::from_utf8_lossy(&outcome.logs.stderr).into_owned()
}
