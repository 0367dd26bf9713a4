//! The console events that ask a process to end on Windows.

use tokio::signal::windows::{CtrlBreak, CtrlC, CtrlClose, CtrlShutdown};
use tokio::signal::windows::{ctrl_break, ctrl_c, ctrl_close, ctrl_shutdown};

use super::error::Error;

/// The events that ask a process to end. After the last two Windows ends it by force in a few seconds; what is then left
/// behind the next start clears.
#[derive(Debug)]
pub struct Signals {
    interrupt: CtrlC,
    terminate: CtrlBreak,
    close: CtrlClose,
    shutdown: CtrlShutdown,
}

impl Signals {
    /// Takes over Ctrl-C, Ctrl-Break, the console's closing and the system's shutdown; from now on they only ask.
    ///
    /// # Errors
    ///
    /// The system does not let us.
    pub fn new() -> Result<Self, Error> {
        Ok(Self {
            interrupt: ctrl_c().map_err(Error::Signals)?,
            terminate: ctrl_break().map_err(Error::Signals)?,
            close: ctrl_close().map_err(Error::Signals)?,
            shutdown: ctrl_shutdown().map_err(Error::Signals)?,
        })
    }

    /// Waits for the next one.
    pub async fn next(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
            _ = self.close.recv() => {}
            _ = self.shutdown.recv() => {}
        }
    }
}
