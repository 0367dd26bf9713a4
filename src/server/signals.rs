//! The signals that ask a process to end.

use tokio::signal::unix::{Signal, SignalKind, signal};

use super::error::Error;

/// The signals that ask a process to end.
#[derive(Debug)]
pub struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    /// Takes over SIGTERM and SIGINT; from now on they only ask.
    ///
    /// # Errors
    ///
    /// The system does not let us.
    pub fn new() -> Result<Self, Error> {
        Ok(Self {
            terminate: signal(SignalKind::terminate()).map_err(Error::Signals)?,
            interrupt: signal(SignalKind::interrupt()).map_err(Error::Signals)?,
        })
    }

    /// Waits for the next one.
    pub async fn next(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}
