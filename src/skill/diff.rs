//! Differences between two versions of a text file, in limited time and size.

use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use similar::{ChangeTag, TextDiff};

/// Lines around a change, as in a unified diff.
const CONTEXT_LINES: usize = 3;

/// Changed lines with some lines around them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Hunk {
    /// First line in the old file, from 1; the line before if it has none.
    pub from_line: usize,
    /// First line in the new file, from 1; the line before if it has none.
    pub to_line: usize,
    /// Each starts with a space (in both), `-` (removed), `+` (added) or `\` (a note).
    pub lines: Vec<String>,
}

/// What is left of the limits of a comparison of many files.
#[derive(Clone, Copy, Debug)]
pub struct DiffBudget {
    deadline: Instant,
    lines: usize,
    bytes: usize,
}

impl DiffBudget {
    #[must_use]
    pub fn new(time: Duration, lines: usize, bytes: usize) -> Self {
        Self {
            deadline: Instant::now() + time,
            lines,
            bytes,
        }
    }

    /// The hunks between two texts; `None` if they exceed what is left. After the deadline hunks are larger than necessary.
    pub fn hunks(&mut self, from: &str, to: &str) -> Option<Vec<Hunk>> {
        let diff = TextDiff::configure().deadline(self.deadline).diff_lines(from, to);
        let mut left = *self;
        let mut hunks = Vec::new();
        for group in diff.grouped_ops(CONTEXT_LINES) {
            let first = group.first()?;
            let mut lines = Vec::new();
            for change in group.iter().flat_map(|op| diff.iter_changes(op)) {
                let mark = match change.tag() {
                    ChangeTag::Equal => ' ',
                    ChangeTag::Delete => '-',
                    ChangeTag::Insert => '+',
                };
                let line = change.value();
                left.bytes = left.bytes.checked_sub(line.len())?;
                left.lines = left.lines.checked_sub(1)?;
                lines.push(format!("{mark}{}", line.strip_suffix('\n').unwrap_or(line)));
                if change.missing_newline() {
                    lines.push("\\ No newline at end of file".to_owned());
                }
            }
            let place = |range: std::ops::Range<usize>, whole: bool| range.start + usize::from(!whole);
            let (old, new) = (first.old_range(), first.new_range());
            hunks.push(Hunk {
                from_line: place(old, from.is_empty()),
                to_line: place(new, to.is_empty()),
                lines,
            });
        }
        *self = left;
        Some(hunks)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn budget(lines: usize, bytes: usize) -> DiffBudget {
        DiffBudget::new(Duration::from_secs(5), lines, bytes)
    }

    fn hunks(from: &str, to: &str) -> Vec<Hunk> {
        budget(1000, 100_000).hunks(from, to).unwrap()
    }

    fn numbered(skipped: usize) -> String {
        (1..=20)
            .filter(|n| *n != skipped)
            .map(|n| format!("{n}\n"))
            .collect()
    }

    #[test]
    fn hunks_have_lines_around_changes() {
        let found = hunks(&numbered(0), &numbered(10));
        assert_eq!(found.len(), 1);
        assert_eq!((found[0].from_line, found[0].to_line), (7, 7));
        assert_eq!(found[0].lines, [" 7", " 8", " 9", "-10", " 11", " 12", " 13"]);
        assert_eq!(hunks("a\n", "a\n"), []);
    }

    #[test]
    fn new_and_empty_files_start_at_line_zero() {
        let found = hunks("", "a\r\nb");
        assert_eq!((found[0].from_line, found[0].to_line), (0, 1));
        assert_eq!(found[0].lines, ["+a\r", "+b", "\\ No newline at end of file"]);
        assert_eq!(
            (hunks("a\n", "")[0].from_line, hunks("a\n", "")[0].to_line),
            (1, 0)
        );
    }

    #[test]
    fn a_final_newline_is_a_change() {
        let found = hunks("a\n", "a");
        assert_eq!(found[0].lines, ["-a", "+a", "\\ No newline at end of file"]);
    }

    #[test]
    fn limits_lines_and_bytes_of_all_files_together() {
        let text: String = (0..100).map(|n| format!("{n}\n")).collect();
        let mut lines = budget(150, 100_000);
        assert!(lines.hunks("", &text).is_some());
        assert!(lines.hunks("", &text).is_none());
        assert!(lines.hunks("", "a\n").is_some(), "a smaller file still fits");
        assert!(budget(1000, 100).hunks("", &text).is_none());
    }

    #[test]
    fn ends_in_time_for_texts_without_common_lines() {
        let of = |seed: u64| -> String {
            (0..40_000_u64)
                .map(|n| format!("{}\n", n * seed % 65_537))
                .collect()
        };
        let began = Instant::now();
        let mut budget = DiffBudget::new(Duration::from_millis(200), 1_000_000, 100_000_000);
        assert!(budget.hunks(&of(31), &of(17)).is_some());
        assert!(began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());
    }
}
