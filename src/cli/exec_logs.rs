//! `skillbox exec logs`: print what an execution printed and logged.

use std::ops::Range;

use jiff::Timestamp;

use crate::api::executions::StreamTexts;
use crate::cli::client::Client;
use crate::cli::console::{Console, Format, Rows};
use crate::cli::event_printer::{EventPrinter, ShownEvents};
use crate::cli::exec::find;
use crate::cli::failure::Result;
use crate::cli::id_argument::IdArgument;
use crate::cli::result_view::truncation;
use crate::execution::{LogSource, LogTexts, Logs, PartContent};
use crate::ids::ExecutionId;

#[derive(Debug, clap::Args)]
pub(crate) struct LogsArguments {
    /// ID of the execution, or its first or last digits; by default the newest
    id: Option<IdArgument<ExecutionId>>,
    /// Follow the output until the execution ends
    #[arg(short, long, conflicts_with = "timestamps")]
    follow: bool,
    /// Print each line with its time of arrival, all streams in order of arrival, to standard output
    #[arg(long)]
    timestamps: bool,
    /// With --timestamps, print only this stream: stdout, stderr or log
    #[arg(long, value_parser = source, requires = "timestamps")]
    stream: Option<LogSource>,
}

fn source(text: &str) -> std::result::Result<LogSource, String> {
    let found = LogSource::ALL.into_iter().find(|source| source.as_str() == text);
    found.ok_or_else(|| "one of stdout, stderr, log".to_owned())
}

pub(super) fn logs(arguments: LogsArguments, client: &Client, console: &Console) -> Result<()> {
    let id = find(arguments.id, client, console)?;
    let is_text = console.format_or(Format::Table) == Format::Table;
    if arguments.follow && is_text {
        return follow(client, id, console);
    }
    if arguments.follow {
        client.watch(id, &mut |_| Ok(()))?;
    }
    let logs = client.logs(id, arguments.timestamps)?;
    match arguments.timestamps {
        true if is_text => show_lines(&logs, arguments.stream, console),
        true => {
            let texts = StreamTexts::in_order(&logs, arguments.stream);
            console.data(Format::Json, &texts, |_| Rows::default())
        }
        false => show_logs(&logs, console),
    }
}

/// Prints the output while the program runs.
fn follow(client: &Client, id: ExecutionId, console: &Console) -> Result<()> {
    let mut watcher = EventPrinter::new(console, ShownEvents::Printed);
    client.watch(id, &mut |told| watcher.print(told))?;
    if let Some(envelope) = watcher.envelope {
        cut_short(&envelope.logs, console);
    }
    Ok(())
}

pub(super) fn cut_short(logs: &LogTexts, console: &Console) {
    if let Some(note) = truncation(logs) {
        console.say(note);
    }
    if logs.lines_truncated {
        console.say("log truncated: the program logged more than the limit");
    }
}

/// Prints the streams and, after standard error, the lines of the log; or all as data.
fn show_logs(logs: &Logs, console: &Console) -> Result<()> {
    if console.format_or(Format::Table) != Format::Table {
        return console.data(Format::Json, &LogTexts::from(logs), |_| Rows::default());
    }
    console.bytes(&logs.stdout)?;
    console.talk_bytes(&logs.stderr);
    for line in &logs.lines {
        console.talk_bytes(format!("{line}\n").as_bytes());
    }
    cut_short(&LogTexts::from(logs), console);
    Ok(())
}

/// Prints lines with their times in order of arrival.
fn show_lines(logs: &Logs, only: Option<LogSource>, console: &Console) -> Result<()> {
    console.bytes(&timed_lines(logs, only))?;
    cut_short(&LogTexts::from(logs), console);
    if logs.arrivals.is_empty() && LogSource::ALL.iter().any(|source| logs.count(*source) > 0) {
        console.say("the times are unknown: an earlier release recorded this execution");
    }
    Ok(())
}

/// A line arrives with its first byte.
struct Line {
    time: Option<Timestamp>,
    source: LogSource,
    /// In its stream, or among the lines of the log.
    range: Range<usize>,
}

fn timed_lines(logs: &Logs, only: Option<LogSource>) -> Vec<u8> {
    let mut text = Vec::new();
    for line in lines(logs) {
        if only.is_some_and(|only| only != line.source) {
            continue;
        }
        match line.time {
            Some(time) => text.extend(format!("{time:.3} ").bytes()),
            None => text.extend(b"- "),
        }
        if only.is_none() {
            text.extend(format!("{:<6} ", line.source.as_str()).bytes());
        }
        match line.source {
            LogSource::Stdout => text.extend(&logs.stdout[line.range]),
            LogSource::Stderr => text.extend(&logs.stderr[line.range]),
            LogSource::Log => text.extend(logs.lines[line.range.start].untimed().bytes()),
        }
        if text.last() != Some(&b'\n') {
            text.push(b'\n');
        }
    }
    text
}

fn lines(logs: &Logs) -> Vec<Line> {
    let mut lines: Vec<Line> = Vec::new();
    // Of each source, how much was read, and its line that has not ended.
    let (mut read, mut open) = ([0; 3], [None; 3]);
    for part in logs.parts() {
        let (source, bytes) = match part.content {
            PartContent::Stdout(bytes) => (LogSource::Stdout, bytes),
            PartContent::Stderr(bytes) => (LogSource::Stderr, bytes),
            PartContent::Log(logged) => {
                let start = read[LogSource::Log as usize];
                read[LogSource::Log as usize] += logged.len();
                lines.extend((start..start + logged.len()).map(|index| Line {
                    time: part.time,
                    source: LogSource::Log,
                    range: index..index + 1,
                }));
                continue;
            }
        };
        let (read, open) = (&mut read[source as usize], &mut open[source as usize]);
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            let end = *read + piece.len();
            let index = open.take().unwrap_or(lines.len());
            match lines.get_mut(index) {
                Some(begun) => begun.range.end = end,
                None => lines.push(Line {
                    time: part.time,
                    source,
                    range: *read..end,
                }),
            }
            *read = end;
            *open = (!piece.ends_with(b"\n")).then_some(index);
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::execution::{Arrivals, LogLine};

    #[test]
    fn prints_lines_in_order_of_their_first_byte() {
        let mut arrivals = Arrivals::default();
        let at = |millisecond: i64| Timestamp::from_millisecond(1_790_000_000_000 + millisecond).unwrap();
        for (source, count, time) in [
            (LogSource::Stdout, 2, 0),
            (LogSource::Stderr, 5, 20),
            (LogSource::Stdout, 8, 1_300),
            (LogSource::Log, 1, 1_400),
        ] {
            arrivals.add(source, count, at(time));
        }
        let mut logs = Logs {
            stdout: b"one\ntwo\n\xffx".to_vec(),
            stderr: b"warn\n".to_vec(),
            lines: vec![LogLine {
                message: "noted".to_owned(),
                time: Some(at(0)),
                ..LogLine::default()
            }],
            arrivals,
            ..Logs::default()
        };
        let expected = b"\
2026-09-21T14:13:20.000Z stdout one
2026-09-21T14:13:20.020Z stderr warn
2026-09-21T14:13:21.300Z stdout two
2026-09-21T14:13:21.300Z stdout \xffx
2026-09-21T14:13:21.400Z log    INFO noted
";
        let shown = timed_lines(&logs, None);
        assert_eq!(shown, expected, "{}", String::from_utf8_lossy(&shown));
        let received = StreamTexts::in_order(&logs, None).into_logs().unwrap();
        assert_eq!(received, logs);
        let shown = timed_lines(&logs, Some(LogSource::Stderr));
        assert_eq!(shown, b"2026-09-21T14:13:20.020Z warn\n");
        logs.arrivals = Arrivals::default();
        assert!(timed_lines(&logs, None).starts_with(b"- stdout one\n- stdout two\n"));
    }
}
