//! What a program that failed by itself printed last: there it says why.

use std::borrow::Cow;

use crate::execution::Failure;

/// At most the last `bytes` of standard error; `None` if something else ended the program.
pub(super) fn last_words<'a>(failure: &Failure, stderr: &'a [u8], bytes: usize) -> Option<Cow<'a, str>> {
    let failed_by_itself = matches!(failure.code.as_str(), "exit_code" | "exception");
    failed_by_itself.then(|| String::from_utf8_lossy(&stderr[stderr.len().saturating_sub(bytes)..]))
}
