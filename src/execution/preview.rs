//! Previews of large results for a model.

use crate::execution::{JsonText, Logs};
use crate::limits;

/// The start of an output.
pub(super) fn of_output(output: &JsonText) -> String {
    let text = output.as_str();
    let max = limits::OUTPUT_PREVIEW_BYTES_MAX;
    if text.len() <= max {
        return text.to_owned();
    }
    let note = format!("… [cut: {} bytes in all]", text.len());
    format!("{}{note}", &text[..text.floor_char_boundary(max - note.len())])
}

/// The end of both streams, since errors are printed last.
pub(super) fn of_logs(logs: &Logs) -> String {
    let text = [&logs.stdout[..], &logs.stderr].concat();
    let text = String::from_utf8_lossy(&text);
    let max = limits::LOGS_PREVIEW_BYTES_MAX;
    if text.len() <= max {
        return text.into_owned();
    }
    let note = format!(
        "[cut: {} bytes in all] …",
        logs.stdout_total.max(logs.stdout.len() as u64) + logs.stderr_total.max(logs.stderr.len() as u64)
    );
    format!(
        "{note}{}",
        &text[text.ceil_char_boundary(text.len() - (max - note.len()))..]
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_truncated_previews() {
        let small = JsonText::parse(b"{\"n\": 0.10}").unwrap();
        assert_eq!(of_output(&small), "{\"n\": 0.10}");
        let large = JsonText::parse(format!("\"{}\"", "ü".repeat(5000)).as_bytes()).unwrap();
        let preview = of_output(&large);
        assert!(
            preview.len() <= 4096 && preview.ends_with("ü… [cut: 10002 bytes in all]"),
            "{preview}"
        );
        let logs = Logs {
            stdout: "ü".repeat(2000).into_bytes(),
            stderr: b"the end".to_vec(),
            stdout_total: 4000,
            stderr_total: 7,
            ..Logs::default()
        };
        let preview = of_logs(&logs);
        assert!(preview.len() <= 2048, "{}", preview.len());
        assert!(
            preview.starts_with("[cut: 4007 bytes in all] …ü") && preview.ends_with("the end"),
            "{preview}"
        );
        assert_eq!(of_logs(&Logs::default()), "");
    }
}
