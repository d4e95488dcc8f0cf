//! The table of what runs and where.

use comfy_table::{ContentArrangement, Table, presets};
use rmq_operator::local::Row;

/// Renders the rows under the columns that `kubectl get` also shows.
pub(super) fn render(rows: &[Row]) -> String {
    let mut table = Table::new();
    table
        .load_style(presets::NOTHING)
        .set_content_arrangement(ContentArrangement::Disabled)
        .set_header(Row::HEAD);
    for row in rows {
        table.add_row(row.0.iter());
    }
    for column in table.column_iter_mut() {
        column.set_padding((0, 2));
    }
    table.trim_fmt()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_stand_under_their_heads() {
        let row = [
            "broker",
            "a-0",
            "a",
            "0",
            "127.0.0.1:10911",
            "7",
            "127.0.0.1:10910",
            "Ready",
        ];
        let text = render(&[Row(row.map(str::to_owned))]);
        let starts = |line: &str| -> Vec<usize> {
            let mut at = 0;
            let mut place = |word: &str| {
                at += line[at..].find(word).unwrap();
                at += word.len();
                at - word.len()
            };
            line.split_whitespace().map(&mut place).collect()
        };
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 2);
        assert_eq!(starts(lines[0]), starts(lines[1]), "{text}");
        assert_eq!(starts(lines[0]).len(), Row::HEAD.len());
    }
}
