//! What was measured, as one table, and the bars of it.

use crate::measure::Row;

/// Rows and bars of all parts.
#[derive(Default)]
pub(crate) struct Judged {
    lines: Vec<String>,
    bars: Vec<(String, f64, Most)>,
}

/// What a bar allows.
#[derive(Clone, Copy)]
pub(crate) enum Most {
    AtMost(f64),
    AtLeast(f64),
}

impl Most {
    fn is_kept(self, value: f64) -> bool {
        match self {
            Self::AtMost(most) => value <= most,
            Self::AtLeast(least) => value >= least,
        }
    }
}

impl Judged {
    /// A line of its own.
    pub(crate) fn line(&mut self, text: String) {
        println!("{text}");
        self.lines.push(text);
    }

    /// The rows of one part, each with its ratio to the first.
    pub(crate) fn rows(&mut self, title: &str, rows: &[Row]) {
        let head = format!(
            "{title:<46} {:>5} {:>9} {:>9} {:>9} {:>9}",
            "n", "p50 ms", "p99 ms", "p50/bare", "p99/bare"
        );
        self.line(String::new());
        self.line(head);
        let Some(first) = rows.first() else { return };
        let bare = first.quantile(0.5);
        for row in rows {
            let (p50, p99) = (row.quantile(0.5), row.quantile(0.99));
            self.line(format!(
                "  {:<44} {:>5} {p50:>9.2} {p99:>9.2} {:>9.2} {:>9.2}",
                row.name,
                row.milliseconds.len(),
                p50 / bare,
                p99 / bare
            ));
        }
    }

    /// One bar.
    pub(crate) fn bar(&mut self, what: String, value: f64, most: Most) {
        self.bars.push((what, value, most));
    }

    pub(crate) fn missed(&self) -> usize {
        let missed = self.bars.iter().filter(|(_, value, most)| !most.is_kept(*value));
        missed.count()
    }

    /// All of it once more, with nothing between, and the bars.
    pub(crate) fn print(&self) {
        println!("\n=== the table");
        for line in &self.lines {
            println!("{line}");
        }
        println!("\n=== the bars");
        for (what, value, most) in &self.bars {
            let (sign, bound) = match most {
                Most::AtMost(most) => ("<=", most),
                Most::AtLeast(least) => (">=", least),
            };
            let verdict = if most.is_kept(*value) { "kept" } else { "MISSED" };
            println!("{what:<72} {value:>8.2} {sign} {bound:<7} {verdict}");
        }
    }
}

/// A quantile of the row with this name; `None` where it was left out.
pub(crate) fn of(rows: &[Row], name: &str, part: f64) -> Option<f64> {
    let row = rows.iter().find(|row| row.name == name)?;
    Some(row.quantile(part))
}
