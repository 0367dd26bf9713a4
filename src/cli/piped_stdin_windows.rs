//! Standard input that no option reads. Windows pipes cannot be polled, so it is left alone.

use bytes::Bytes;

use crate::cli::failure::Result;

/// What standard input has for the program.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum PipedStdin {
    #[expect(dead_code, reason = "only Unix reads it")]
    Content(Bytes),
    Nothing,
    #[expect(dead_code, reason = "only Unix polls it")]
    Silent,
}

#[expect(clippy::unnecessary_wraps, reason = "reading fails on Unix")]
pub(crate) fn read() -> Result<PipedStdin> {
    Ok(PipedStdin::Nothing)
}
