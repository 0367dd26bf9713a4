//! The result of an execution: as data, as its bare output, or for a person who saw the program's output arrive.

use crate::cli::console::{Console, Format, Rows};
use crate::cli::failure::Result;
use crate::cli::result_files;
use crate::execution::{Envelope, LogTexts, Status};
use crate::limits;

/// Lines of a failed program's standard error that are printed: Node.js prints the error above ten lines of stack.
const LAST_LINES: usize = 20;

/// What a terminal already shows of the program's output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Seen {
    Nothing,
    StandardError,
    Everything,
}

/// Prints the result to standard output. A person reads the output of the program instead of the whole record.
pub(crate) fn show(envelope: &Envelope, seen: Seen, console: &Console) -> Result<()> {
    match console.format() {
        Some(Format::Value) => value(envelope, console),
        None if console.is_for_person() => {
            if seen != Seen::Everything {
                console.text(&envelope.logs.stdout)?;
                if seen == Seen::Nothing {
                    console.talk_bytes(envelope.logs.stderr.as_bytes());
                }
            }
            results(envelope, console)?;
            output(envelope, console)
        }
        _ => console.data(Format::Json, envelope, rows),
    }
}

/// The output alone: a text as it is, everything else as JSON; without output the text of the main result.
fn value(envelope: &Envelope, console: &Console) -> Result<()> {
    let Some(output) = &envelope.output else {
        return match result_files::main_text(envelope) {
            Some(text) => console.text(&format!("{text}\n")),
            None => Ok(()),
        };
    };
    match serde_json::from_str::<String>(output.as_str()) {
        Ok(text) => console.text(&format!("{text}\n")),
        Err(_) => console.text(&format!("{}\n", output.as_str())),
    }
}

fn results(envelope: &Envelope, console: &Console) -> Result<()> {
    for text in result_files::texts(envelope) {
        console.text(&format!("{}\n", text.trim_end()))?;
    }
    Ok(())
}

fn output(envelope: &Envelope, console: &Console) -> Result<()> {
    let Some(output) = &envelope.output else {
        return Ok(());
    };
    match serde_json::from_str::<String>(output.as_str()) {
        Ok(text) => console.text(&format!("{}\n", text.trim_end())),
        Err(_) => console.text(&format!("{}\n", indented(output.as_str()))),
    }
}

/// The same JSON with a line per member; unchanged where reading it would alter a number or the order.
fn indented(json: &str) -> String {
    let visible = |text: &str| text.split_ascii_whitespace().collect::<String>();
    let indented = serde_json::from_str::<serde_json::Value>(json)
        .and_then(|value| serde_json::to_string_pretty(&value))
        .ok()
        .filter(|indented| visible(indented) == visible(json));
    indented.unwrap_or_else(|| json.to_owned())
}

/// Prints the outcome in one line, and hints for the next command.
pub(crate) fn summarize(envelope: &Envelope, seen: Seen, console: &Console) {
    let mut notes = notes(envelope);
    notes.extend(unsaved_files(envelope));
    report(envelope, seen, notes, console);
}

/// The same for files that `--out` saves.
pub(crate) fn summarize_saved(envelope: &Envelope, seen: Seen, console: &Console) {
    report(envelope, seen, notes(envelope), console);
}

fn report(envelope: &Envelope, seen: Seen, notes: Vec<String>, console: &Console) {
    if !console.is_for_person() {
        if envelope.status != Status::Success {
            explain_failure(envelope, seen, console);
        }
        return;
    }
    for line in notes {
        console.say(line);
    }
    if envelope.status == Status::Success {
        console.success(how(envelope));
    } else {
        match unseen_reason(envelope) {
            "" => console.failed(how(envelope)),
            reason => console.failed(format!("{}: {reason}", how(envelope))),
        }
    }
}

/// The reason of a failure without what the line says already: the last line of standard error, or the outcome.
fn unseen_reason(envelope: &Envelope) -> &str {
    let Some(error) = &envelope.error else {
        return "no reason recorded";
    };
    let reason = error.message.as_str();
    let outcome = match envelope.status {
        Status::Oom => "out of memory: ",
        Status::Interrupted => "interrupted ",
        _ => "",
    };
    if let Some(rest) = reason.strip_prefix(outcome).filter(|_| !outcome.is_empty()) {
        return rest;
    }
    let shown = envelope.logs.stderr.trim_end();
    if shown.ends_with(reason) {
        return "";
    }
    let last = shown.lines().next_back().unwrap_or_default();
    let hint = reason.strip_prefix(last).and_then(|rest| rest.strip_prefix("; "));
    hint.filter(|_| !last.is_empty()).unwrap_or(reason)
}

/// `success in 121 ms · native · text-summary 1.0.0`, or `python` for code.
fn how(envelope: &Envelope) -> String {
    let status = match envelope.status {
        Status::Oom => "out of memory",
        Status::Timeout => "timed out",
        other => other.as_str(),
    };
    let mut parts = vec![status.to_owned()];
    if let Some(duration) = envelope.duration_ms {
        parts[0] = format!("{status} in {}", milliseconds(duration));
    }
    parts.extend(envelope.backend.as_ref().map(|backend| {
        if envelope.degraded.is_empty() {
            backend.clone()
        } else {
            format!("{backend} (best-effort memory and CPU limits)")
        }
    }));
    let program = match (&envelope.skill, &envelope.version) {
        (Some(skill), Some(version)) => Some(format!("{skill} {version}")),
        (Some(skill), None) => Some(skill.to_string()),
        (None, _) => envelope.language.map(|language| language.to_string()),
    };
    parts.extend(program);
    parts.join(" · ")
}

fn milliseconds(duration: u64) -> String {
    match duration {
        ..10_000 => format!("{duration} ms"),
        _ => format!(
            "{:.1} s",
            f64::from(u32::try_from(duration).unwrap_or(u32::MAX)) / 1000.0
        ),
    }
}

fn notes(envelope: &Envelope) -> Vec<String> {
    let mut notes = envelope.limits.map(|limits| limits.cuts()).unwrap_or_default();
    // The reason of the failure says it.
    if matches!(envelope.status, Status::Oom | Status::Timeout) {
        notes.clear();
    }
    notes.extend(truncation(&envelope.logs).map(ToOwned::to_owned));
    notes
}

/// Why printed text is missing. A sandbox that is killed loses the guest's count; then nothing printed counts as lost.
pub(crate) fn truncation(logs: &LogTexts) -> Option<&'static str> {
    // Masked secrets may have shortened what is stored.
    const FULL: u64 = limits::LOG_BYTES_MAX / 2;
    let longest = logs.stdout.len().max(logs.stderr.len()) as u64;
    match (logs.truncated, longest) {
        (false, _) | (true, 0) => None,
        (true, FULL..) => Some("output truncated: the program printed more than the limit"),
        (true, _) => Some("output may be incomplete: the sandbox was killed"),
    }
}

fn unsaved_files(envelope: &Envelope) -> Option<String> {
    let files = envelope.files.first().map(|first| match envelope.files.len() {
        1 => format!("file {} ({} bytes)", first.path, first.size),
        count => format!(
            "{count} files, the first is {} ({} bytes)",
            first.path, first.size
        ),
    });
    let parts: Vec<_> = [files, result_files::unprinted(envelope)]
        .into_iter()
        .flatten()
        .collect();
    (!parts.is_empty()).then(|| {
        let id = envelope.execution_id;
        format!(
            "{}; save with `skillbox exec files {id} --out DIR`",
            parts.join(", ")
        )
    })
}

/// Prints why an execution failed.
fn explain_failure(envelope: &Envelope, seen: Seen, console: &Console) {
    let lines: Vec<_> = envelope.logs.stderr.lines().collect();
    let told = match seen {
        Seen::Nothing => lines.len().saturating_sub(LAST_LINES),
        Seen::StandardError | Seen::Everything => lines.len(),
    };
    for line in &lines[told..] {
        console.say(line);
    }
    let reason = envelope
        .error
        .as_ref()
        .map_or("no reason recorded", |error| error.message.as_str());
    console.bad(format!("execution {}: {reason}", outcome(envelope.status)));
}

/// The outcome in words; the reason distinguishes a time limit, memory and other failures.
pub(crate) const fn outcome(status: Status) -> &'static str {
    match status {
        Status::Queued => "queued",
        Status::Running => "running",
        Status::Success => "succeeded",
        Status::Failed | Status::Timeout | Status::Oom => "failed",
        Status::Cancelled => "cancelled",
        Status::Denied => "denied",
        Status::Interrupted => "interrupted",
    }
}

pub(crate) fn rows(envelope: &Envelope) -> Rows {
    let optional = |text: Option<String>| text.unwrap_or_default();
    let files = envelope
        .files
        .iter()
        .map(|file| format!("{} ({} bytes)", file.path, file.size))
        .collect::<Vec<_>>();
    let blobs = envelope.output_blobs.iter();
    let blobs: Vec<_> = blobs
        .map(|blob| format!("{} ({} bytes)", blob.blob_id, blob.size))
        .collect();
    let rows = [
        ("execution", envelope.execution_id.to_string()),
        ("status", envelope.status.to_string()),
        (
            "skill",
            optional(envelope.skill.as_ref().map(ToString::to_string)),
        ),
        (
            "version",
            optional(envelope.version.as_ref().map(ToString::to_string)),
        ),
        ("sandbox", sandbox(envelope)),
        (
            "exit code",
            optional(envelope.exit_code.map(|code| code.to_string())),
        ),
        (
            "error",
            optional(envelope.error.as_ref().map(|error| error.message.clone())),
        ),
        (
            "output",
            optional(envelope.output.as_ref().map(|output| one_line(output.as_str()))),
        ),
        ("stdout", envelope.logs.stdout.trim_end().to_owned()),
        ("stderr", envelope.logs.stderr.trim_end().to_owned()),
        ("files", files.join(", ")),
        ("blobs", blobs.join(", ")),
        (
            "duration",
            optional(envelope.duration_ms.map(|duration| format!("{duration} ms"))),
        ),
    ];
    Rows::facts(rows)
}

fn sandbox(envelope: &Envelope) -> String {
    let backend = envelope.backend.as_deref().unwrap_or("-");
    match &envelope.degraded[..] {
        [] => backend.to_owned(),
        promises => format!("{backend}, degraded: {}", promises.join(", ")),
    }
}

fn one_line(json: &str) -> String {
    serde_json::from_str::<serde_json::Value>(json)
        .map_or_else(|_| json.to_owned(), |value| value.to_string())
}

#[cfg(test)]
mod tests {
    use super::indented;

    #[test]
    fn indents_only_what_stays_the_same() {
        assert_eq!(
            indented(r#"{"b":[1, 2.50],"a":" x "}"#),
            r#"{"b":[1, 2.50],"a":" x "}"#
        );
        assert_eq!(
            indented(r#"{"b":1,"a":" x "}"#),
            "{\n  \"b\": 1,\n  \"a\": \" x \"\n}"
        );
        let large = "{\"n\":123456789012345678901234567890}";
        assert_eq!(indented(large), large);
    }
}
