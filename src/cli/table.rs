//! Lays out tables: a terminal limits the width, elsewhere a row is one line.

use comfy_table::{ColumnConstraint, ContentArrangement, Table, presets};

use crate::cli::console::Rows;

/// Wider cells may be broken into lines, narrower ones may not: ids, states and times stay whole.
const WHOLE_CELL_MAX: usize = 24;

/// The table, of which `columns` columns are visible. Columns that do not fit are dropped in the order of
/// [`Rows::optional`].
pub(crate) fn text(rows: &Rows, cells: &[Vec<String>], columns: Option<u16>) -> String {
    let mut shown: Vec<usize> = (0..rows.heading.len()).collect();
    let Some(columns) = columns else {
        return table(rows, cells, &shown).trim_fmt();
    };
    for optional in rows.optional {
        if least_width(rows, cells, &shown) <= usize::from(columns) {
            break;
        }
        shown.retain(|&column| rows.heading[column] != *optional);
    }
    let mut table = table(rows, cells, &shown);
    table
        .set_width(columns)
        .set_content_arrangement(ContentArrangement::Dynamic);
    let fits = least_width(rows, cells, &shown) <= usize::from(columns);
    for (place, &column) in shown.iter().enumerate() {
        let is_whole = place == 0 || (fits && width(rows, cells, column) <= WHOLE_CELL_MAX);
        if let Some(column) = table.column_mut(place).filter(|_| is_whole) {
            column.set_constraint(ColumnConstraint::ContentWidth);
        }
    }
    table.trim_fmt()
}

fn table(rows: &Rows, cells: &[Vec<String>], shown: &[usize]) -> Table {
    let mut table = Table::new();
    table
        .load_style(presets::NOTHING)
        .set_header(shown.iter().map(|&column| rows.heading[column].to_uppercase()));
    for row in cells {
        table.add_row(shown.iter().map(|&column| row[column].as_str()));
    }
    for column in table.column_iter_mut() {
        column.set_padding((0, 2));
    }
    table
}

fn least_width(rows: &Rows, cells: &[Vec<String>], shown: &[usize]) -> usize {
    let widths = shown.iter().map(|&column| {
        let width = width(rows, cells, column);
        if column == 0 {
            width
        } else {
            width.min(WHOLE_CELL_MAX)
        }
    });
    widths.map(|width| width + 2).sum::<usize>().saturating_sub(2)
}

fn width(rows: &Rows, cells: &[Vec<String>], column: usize) -> usize {
    let texts = cells.iter().map(|row| row[column].as_str());
    let lines = texts.chain([rows.heading[column]]).flat_map(str::lines);
    lines.map(|line| line.chars().count()).max().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(columns: Option<u16>) -> String {
        let cells = vec![vec![
            "0000ccab".to_owned(),
            "success".to_owned(),
            "text-summary".to_owned(),
            "2 min ago".to_owned(),
        ]];
        let rows = Rows {
            heading: &["execution", "status", "skill", "created"],
            optional: &["skill", "created"],
            ..Rows::default()
        };
        text(&rows, &cells, columns)
    }

    #[test]
    fn narrow_terminal_drops_columns_and_breaks_no_cell() {
        let whole = "EXECUTION  STATUS   SKILL         CREATED\n0000ccab   success  text-summary  2 min ago";
        assert_eq!(shown(None), whole);
        assert_eq!(shown(Some(80)), whole);
        let narrow = "EXECUTION  STATUS   CREATED\n0000ccab   success  2 min ago";
        assert_eq!(shown(Some(40)), narrow);
        assert_eq!(shown(Some(30)), narrow);
        assert_eq!(shown(Some(20)), "EXECUTION  STATUS\n0000ccab   success");
    }
}
