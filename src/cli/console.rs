//! Prints data to standard output and messages to standard error. Untrusted text is escaped for terminals.

use std::io::{self, IsTerminal as _, Write as _};

use anstyle::{AnsiColor, Style};
use clap::ValueEnum;
use serde::Serialize;

use crate::cli::exit::Exit;
use crate::cli::failure::{Failure, Result};
use crate::cli::{id_argument, moment, progress, table, terminal_text};

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// Machine-readable.
    Json,
    /// Human-readable.
    Table,
    /// Both.
    Yaml,
    /// Only the output of an execution: a text as it is, else JSON.
    Value,
}

/// The output streams of a command.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Console {
    format: Option<Format>,
    /// Standard output is a terminal that must be protected.
    guarded: bool,
    talk_guarded: bool,
    /// Standard output is a terminal, and no format was asked for.
    for_person: bool,
    /// Width of the terminal that is standard output.
    columns: Option<u16>,
    foreign: ForeignText,
}

const GOOD: Style = AnsiColor::Green.on_default();
const BAD: Style = AnsiColor::Red.on_default().bold();
const DOUBTFUL: Style = AnsiColor::Yellow.on_default();
const HEADING: Style = Style::new().bold();

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mark {
    Good,
    Doubtful,
    Bad,
    Untold,
}

/// Rows under a heading.
#[derive(Debug, Default)]
pub(crate) struct Rows {
    pub(crate) heading: &'static [&'static str],
    pub(crate) rows: Vec<Vec<String>>,
    /// Columns that a narrow terminal does without, the least important first.
    pub(crate) optional: &'static [&'static str],
}

impl Rows {
    /// What is known of one thing: a name and a value per row, whose lines stay. Empty values are left out.
    pub(crate) fn facts(facts: impl IntoIterator<Item = (&'static str, String)>) -> Self {
        let facts = facts.into_iter().filter(|(_, value)| !value.is_empty());
        Self {
            heading: FACTS,
            rows: facts.map(|(name, value)| vec![name.to_owned(), value]).collect(),
            optional: &[],
        }
    }
}

const FACTS: &[&str] = &["what", "value"];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ForeignText {
    Escaped,
    Raw,
}

/// A command that has nothing to print for `--format value`.
pub(crate) fn no_value() -> Failure {
    Failure::new(
        Exit::Usage,
        "--format value prints the output of an execution or a new key: it is for `run`, `skill dev`, `exec show`, `exec wait`, `exec watch`, \
         `exec rerun`, `key create` and `key rotate`",
    )
}

impl Console {
    pub(crate) fn new(format: Option<Format>, foreign: ForeignText) -> Self {
        let guarded = |is_terminal: bool| is_terminal && foreign == ForeignText::Escaped;
        Self {
            format,
            guarded: guarded(io::stdout().is_terminal()),
            talk_guarded: guarded(io::stderr().is_terminal()),
            for_person: format.is_none() && io::stdout().is_terminal(),
            columns: columns(),
            foreign,
        }
    }

    /// `None` for the default of the command.
    pub(crate) fn format(&self) -> Option<Format> {
        self.format
    }

    /// Whether a person reads standard output.
    pub(crate) fn is_for_person(&self) -> bool {
        self.for_person
    }

    pub(crate) fn format_or(&self, default: Format) -> Format {
        self.format.unwrap_or(default)
    }

    /// Prints data in the requested format; `table` formats it for humans.
    pub(crate) fn data<T: Serialize>(
        &self,
        default: Format,
        value: &T,
        table: impl FnOnce(&T) -> Rows,
    ) -> Result<()> {
        match self.format_or(default) {
            Format::Json => self.json(value),
            Format::Yaml => self.yaml(value),
            Format::Table => self.table(&table(value)),
            Format::Value => Err(no_value()),
        }
    }

    pub(crate) fn json<T: Serialize>(&self, value: &T) -> Result<()> {
        let text =
            serde_json::to_string_pretty(value).map_err(|error| Failure::internal("writing JSON", error))?;
        let text = if self.guarded {
            terminal_text::json(&text)
        } else {
            text.as_str().into()
        };
        write_out(format!("{text}\n").as_bytes())
    }

    fn yaml<T: Serialize>(&self, value: &T) -> Result<()> {
        let failed = |error: &dyn std::fmt::Display| Failure::internal("writing YAML", error);
        // Via JSON, because values may contain JSON text.
        let tree = serde_json::to_value(value).map_err(|error| failed(&error))?;
        let text = serde_saphyr::to_string(&tree).map_err(|error| failed(&error))?;
        self.text(&text)
    }

    pub(crate) fn table(&self, rows: &Rows) -> Result<()> {
        let cell = |cell: &String| match self.foreign {
            ForeignText::Escaped if rows.heading == FACTS => terminal_text::lines(cell).into_owned(),
            ForeignText::Escaped => terminal_text::line(cell).into_owned(),
            ForeignText::Raw if rows.heading == FACTS => cell.clone(),
            ForeignText::Raw => cell.replace('\n', " "),
        };
        let cells: Vec<Vec<String>> = rows
            .rows
            .iter()
            .map(|row| row.iter().map(cell).collect())
            .collect();
        let text = table::text(rows, &cells, self.columns);
        let (heading, body) = text.split_once('\n').unwrap_or((&text, ""));
        let mut out = anstream::stdout().lock();
        let body = if body.is_empty() {
            String::new()
        } else {
            format!("{body}\n")
        };
        finish(write!(out, "{HEADING}{heading}{HEADING:#}\n{body}").and_then(|()| out.flush()))
    }

    /// An id in a table: its end on a terminal, where a person reads it.
    pub(crate) fn id(&self, id: impl std::fmt::Display) -> String {
        if self.columns.is_some() {
            id_argument::short(id)
        } else {
            id.to_string()
        }
    }

    /// A time in a table: how long ago on a terminal, else to the second.
    pub(crate) fn moment(&self, at: jiff::Timestamp) -> String {
        if self.columns.is_some() {
            moment::ago(
                at,
                jiff::Timestamp::try_from(std::time::SystemTime::now()).unwrap_or(at),
            )
        } else {
            moment::exact(at)
        }
    }

    /// Prints text with several lines that may contain untrusted parts.
    pub(crate) fn text(&self, text: &str) -> Result<()> {
        let text = if self.guarded {
            terminal_text::lines(text)
        } else {
            text.into()
        };
        write_out(text.as_bytes())
    }

    /// Prints untrusted bytes; unchanged unless standard output is a terminal.
    pub(crate) fn bytes(&self, bytes: &[u8]) -> Result<()> {
        if !self.guarded {
            return write_out(bytes);
        }
        self.text(&String::from_utf8_lossy(bytes))
    }

    /// As [`Self::bytes`] for continuous output: ends this process when the pipe closes, as `SIGPIPE` would.
    pub(crate) fn bytes_while_read(&self, bytes: &[u8]) -> Result<()> {
        if self.guarded {
            return self.bytes(bytes);
        }
        match put(bytes) {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Exit::Success.at_once(),
            written => finish(written),
        }
    }

    /// Prints untrusted bytes to standard error.
    pub(crate) fn talk_bytes(&self, bytes: &[u8]) {
        let lossy = String::from_utf8_lossy(bytes);
        let shown = terminal_text::lines(&lossy);
        let bytes = if self.talk_guarded {
            shown.as_bytes()
        } else {
            bytes
        };
        // A failed write to standard error cannot be reported.
        let _ = above_spinner(&io::stderr(), bytes, |bytes| io::stderr().lock().write_all(bytes));
    }

    /// Prints a message.
    pub(crate) fn say(&self, text: impl std::fmt::Display) {
        self.talk(Style::new(), "", &text.to_string());
    }

    pub(crate) fn success(&self, text: impl std::fmt::Display) {
        self.talk(GOOD, "✓ ", &text.to_string());
    }

    pub(crate) fn failed(&self, text: impl std::fmt::Display) {
        self.talk(BAD, "✗ ", &text.to_string());
    }

    pub(crate) fn bad(&self, text: impl std::fmt::Display) {
        self.talk(BAD, "error: ", &text.to_string());
    }

    fn talk(&self, style: Style, mark: &str, text: &str) {
        let text = if self.talk_guarded {
            terminal_text::lines(text)
        } else {
            text.into()
        };
        let _ = above_spinner(&io::stderr(), b"\n", |end| {
            let mut stderr = anstream::stderr().lock();
            write!(stderr, "{style}{mark}{style:#}{text}").and_then(|()| stderr.write_all(end))
        });
    }

    /// Prints the result of a check with a coloured mark.
    #[expect(
        clippy::unused_self,
        reason = "all that a command prints goes through its console"
    )]
    pub(crate) fn check(&self, mark: Mark, text: &str) -> Result<()> {
        let (style, sign) = match mark {
            Mark::Good => (GOOD, '✓'),
            Mark::Doubtful => (DOUBTFUL, '!'),
            Mark::Bad => (BAD, '✗'),
            Mark::Untold => (Style::new().dimmed(), '–'),
        };
        let text = terminal_text::lines(text);
        finish(writeln!(
            anstream::stdout().lock(),
            "{style}{sign}{style:#} {text}"
        ))
    }

    #[expect(
        clippy::unused_self,
        reason = "all that a command prints goes through its console"
    )]
    pub(crate) fn heading(&self, text: &str) -> Result<()> {
        let text = terminal_text::lines(text);
        finish(writeln!(anstream::stdout().lock(), "{HEADING}{text}{HEADING:#}"))
    }

    pub(crate) fn draws_progress() -> bool {
        io::stderr().is_terminal()
    }
}

fn write_out(bytes: &[u8]) -> Result<()> {
    finish(put(bytes))
}

fn put(bytes: &[u8]) -> io::Result<()> {
    above_spinner(&io::stdout(), bytes, |bytes| {
        let mut out = io::stdout().lock();
        out.write_all(bytes).and_then(|()| out.flush())
    })
}

/// Prints to a stream that may be the terminal of a spinner.
fn above_spinner<T>(stream: &impl io::IsTerminal, bytes: &[u8], print: impl FnOnce(&[u8]) -> T) -> T {
    if stream.is_terminal() {
        progress::print_above_spinner(bytes, print)
    } else {
        print(bytes)
    }
}

/// A reader that closes the pipe early, such as `head`, is not an error.
fn finish(result: io::Result<()>) -> Result<()> {
    match result {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        other => other.map_err(|error| Failure::internal("writing to standard output", error)),
    }
}
#[cfg(unix)]
fn columns() -> Option<u16> {
    let size = rustix::termios::tcgetwinsize(io::stdout()).ok()?;
    (size.ws_col > 0).then_some(size.ws_col)
}

#[cfg(windows)]
fn columns() -> Option<u16> {
    let (terminal_size::Width(columns), _) = terminal_size::terminal_size_of(io::stdout())?;
    Some(columns)
}
