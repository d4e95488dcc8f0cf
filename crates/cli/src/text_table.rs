//! Tables for people: heads in capitals, columns aligned, no lines.
//!
//! **Invariant:** an empty cell is a dash, so that every row has as many words as there are heads
//! where cells have no spaces.

use comfy_table::{ContentArrangement, Table, presets};
use rmq_operator::local::Columns;

/// Renders rows under their heads.
pub(crate) fn render<Row>(head: &[&str], rows: impl IntoIterator<Item = Row>) -> String
where
    Row: IntoIterator,
    Row::Item: AsRef<str>,
{
    let mut table = Table::new();
    table
        .load_style(presets::NOTHING)
        .set_content_arrangement(ContentArrangement::Disabled)
        .set_header(head);
    for row in rows {
        table.add_row(row.into_iter().map(|cell| match cell.as_ref() {
            "" => "-".to_owned(),
            text => text.to_owned(),
        }));
    }
    for column in table.column_iter_mut() {
        column.set_padding((0, 2));
    }
    table.trim_fmt()
}

/// Renders what `kubectl get` would show.
pub(crate) fn of_columns(columns: &Columns) -> String {
    let head: Vec<&str> = columns.head.iter().map(String::as_str).collect();
    render(&head, &columns.rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_stand_under_their_heads_and_empty_cells_are_dashes() {
        let rows = [["a", ""], ["long name", "2"]];
        assert_eq!(
            render(&["NAME", "N"], rows),
            "NAME       N\na          -\nlong name  2"
        );
    }
}
