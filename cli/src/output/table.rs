//! Results as a table.

use comfy_table::{Cell, Table, presets};

/// The table as text.
pub(crate) fn text<'a>(header: impl IntoIterator<Item = &'a str>, rows: impl IntoIterator<Item = Vec<Cell>>) -> String {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_header(header).add_rows(rows);
    for column in table.column_iter_mut() {
        column.set_padding((0, 3));
    }
    table.lines().map(|line| line.trim_end().to_owned()).collect::<Vec<_>>().join("\n")
}

/// The cell of a value that may not be there.
pub(crate) fn cell(value: Option<impl ToString>) -> Cell {
    Cell::new(value.map_or_else(|| "-".to_owned(), |value| value.to_string()))
}
