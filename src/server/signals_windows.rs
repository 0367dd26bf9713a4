//! Console events that request shutdown on Windows.

use tokio::signal::windows::{CtrlBreak, CtrlC, CtrlClose, CtrlShutdown};
use tokio::signal::windows::{ctrl_break, ctrl_c, ctrl_close, ctrl_shutdown};

use super::error::Error;

/// Windows ends the process a few seconds after the last two events. The next start cleans up.
#[derive(Debug)]
pub struct Signals {
    interrupt: CtrlC,
    terminate: CtrlBreak,
    close: CtrlClose,
    shutdown: CtrlShutdown,
}

impl Signals {
    /// Handles Ctrl-C, Ctrl-Break, closing the console and shutdown from now on.
    pub fn new() -> Result<Self, Error> {
        Ok(Self {
            interrupt: ctrl_c().map_err(Error::Signals)?,
            terminate: ctrl_break().map_err(Error::Signals)?,
            close: ctrl_close().map_err(Error::Signals)?,
            shutdown: ctrl_shutdown().map_err(Error::Signals)?,
        })
    }

    pub async fn next(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
            _ = self.close.recv() => {}
            _ = self.shutdown.recv() => {}
        }
    }
}
