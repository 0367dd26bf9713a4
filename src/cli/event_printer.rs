//! Prints the events of an execution as they arrive: output, log and state.

use std::fmt;

use crate::cli::console::Console;
use crate::cli::failure::Result;
use crate::cli::result_view::Seen;
use crate::execution::{Envelope, LogLine, Status, Stream};
use crate::ids::ExecutionId;

/// An event of an execution.
#[derive(Debug)]
pub(crate) enum RunEvent {
    /// Its state, and its position in the queue.
    Status(ExecutionId, Status, Option<usize>),
    Printed(Stream, Vec<u8>),
    Logged(LogLine),
    Result(Box<Envelope>),
}

pub(crate) type OnEvent<'a> = dyn FnMut(RunEvent) -> Result<()> + 'a;

/// Which events are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ShownEvents {
    /// Standard error and log, for `run`.
    Aside,
    /// Standard error, log and state.
    Talk,
    /// Output and log.
    Printed,
    /// Output, log and state.
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

#[derive(Debug)]
pub(crate) struct EventPrinter<'a> {
    console: &'a Console,
    shown: ShownEvents,
    /// Whether standard error ends with a complete line.
    at_line_start: bool,
    /// Whether standard output does.
    at_output_start: bool,
    /// Whether some of the program's standard error was printed.
    has_shown: bool,
    /// The result, once received.
    pub(crate) envelope: Option<Envelope>,
}

impl<'a> EventPrinter<'a> {
    pub(crate) fn new(console: &'a Console, shown: ShownEvents) -> Self {
        Self {
            console,
            shown,
            at_line_start: true,
            at_output_start: true,
            has_shown: false,
            envelope: None,
        }
    }

    pub(crate) fn print(&mut self, told: RunEvent) -> Result<()> {
        match told {
            RunEvent::Status(id, status, position) if self.shown.has_status() && !status.is_final() => {
                let client = position.map_or_else(String::new, |position| {
                    format!(", position {position} in the queue")
                });
                self.say(format!("execution {id} is {status}{client}"));
            }
            RunEvent::Printed(Stream::Stdout, bytes) if self.shown.has_stdout() => {
                self.at_output_start = bytes.ends_with(b"\n");
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

    /// What was printed of the program's output.
    pub(crate) fn seen(&self) -> Seen {
        if self.shown.has_stdout() {
            Seen::Everything
        } else if self.has_shown {
            Seen::StandardError
        } else {
            Seen::Nothing
        }
    }

    /// A result begins on a line of its own.
    pub(crate) fn end_lines(&mut self) -> Result<()> {
        self.end_line();
        if !self.at_output_start {
            self.at_output_start = true;
            self.console.text("\n")?;
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

    /// The program's last line may lack a line break.
    fn end_line(&mut self) {
        if !self.at_line_start {
            self.console.talk_bytes(b"\n");
            self.at_line_start = true;
        }
    }
}
