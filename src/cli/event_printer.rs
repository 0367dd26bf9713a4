//! What an execution tells, shown while it tells it: its output, its log, and where it stands.

use std::fmt;

use crate::cli::console::Console;
use crate::cli::failure::Result;
use crate::execution::{Envelope, LogLine, Status, Stream};
use crate::ids::ExecutionId;

/// Something that an execution tells.
#[derive(Debug)]
pub(crate) enum RunEvent {
    /// Where it stands, and how many are before it.
    Status(ExecutionId, Status, Option<usize>),
    /// What it printed.
    Printed(Stream, Vec<u8>),
    /// What it logged.
    Logged(LogLine),
    /// How it ended.
    Result(Box<Envelope>),
}

/// Takes what is told.
pub(crate) type OnEvent<'a> = dyn FnMut(RunEvent) -> Result<()> + 'a;

/// Which parts of it are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ShownEvents {
    /// Its standard error and its log: of what `run` waits for.
    Aside,
    /// The same, and where it stands.
    Talk,
    /// What it prints and logs.
    Printed,
    /// All.
    All,
}

impl ShownEvents {
    fn has_status(self) -> bool {
        matches!(self, Self::Talk | Self::All)
    }

    fn has_stdout(self) -> bool {
        matches!(self, Self::Printed | Self::All)
    }
}

/// Shows an execution.
#[derive(Debug)]
pub(crate) struct EventPrinter<'a> {
    console: &'a Console,
    shown: ShownEvents,
    /// Whether what stands last on standard error is a whole line.
    at_line_start: bool,
    /// Whether anything of the program's standard error was shown.
    pub(crate) has_shown: bool,
    /// How it ended, once that was told.
    pub(crate) envelope: Option<Envelope>,
}

impl<'a> EventPrinter<'a> {
    pub(crate) fn new(console: &'a Console, shown: ShownEvents) -> Self {
        Self {
            console,
            shown,
            at_line_start: true,
            has_shown: false,
            envelope: None,
        }
    }

    /// Shows what is told.
    pub(crate) fn print(&mut self, told: RunEvent) -> Result<()> {
        match told {
            RunEvent::Status(id, status, position) if self.shown.has_status() && !status.is_final() => {
                let client =
                    position.map_or_else(String::new, |position| format!(", number {position} in line"));
                self.say(format!("execution {id} is {status}{client}"));
            }
            RunEvent::Printed(Stream::Stdout, bytes) if self.shown.has_stdout() => {
                self.console.bytes_while_read(&bytes)?;
            }
            RunEvent::Printed(Stream::Stderr, bytes) => {
                self.at_line_start = bytes.ends_with(b"\n");
                self.has_shown = true;
                self.console.talk_bytes(&bytes);
            }
            RunEvent::Logged(line) => self.talk_line(line),
            RunEvent::Result(envelope) => {
                self.end_line();
                self.envelope = Some(*envelope);
            }
            RunEvent::Status(..) | RunEvent::Printed(Stream::Stdout, _) => {}
        }
        Ok(())
    }

    fn say(&mut self, text: impl fmt::Display) {
        self.end_line();
        self.console.say(text);
    }

    fn talk_line(&mut self, line: impl fmt::Display) {
        self.end_line();
        self.console.talk_bytes(format!("{line}\n").as_bytes());
    }

    /// A program need not end its last line.
    fn end_line(&mut self) {
        if !self.at_line_start {
            self.console.talk_bytes(b"\n");
            self.at_line_start = true;
        }
    }
}
