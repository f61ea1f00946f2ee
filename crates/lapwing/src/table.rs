//! Tables for people: columns aligned, numbers to the right.

/// Longest cell.
const WIDEST: usize = 48;

/// A table that grows row by row.
pub(crate) struct TextTable {
    header: Vec<&'static str>,
    /// Whether a column is aligned to the right.
    right: Vec<bool>,
    rows: Vec<Vec<String>>,
}

impl TextTable {
    /// A column whose name starts with `>` is aligned to the right.
    pub(crate) fn new(header: &[&'static str]) -> Self {
        Self {
            header: header.iter().map(|name| name.trim_start_matches('>')).collect(),
            right: header.iter().map(|name| name.starts_with('>')).collect(),
            rows: Vec::new(),
        }
    }

    /// Cells may hold names from data; what a terminal would act on is spelt out.
    pub(crate) fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.rows.push(cells.into_iter().map(|cell| printable(&cell)).collect());
    }

    /// A row whose cells are shown in full, however long: reasons are cut off before their point otherwise.
    pub(crate) fn row_in_full(&mut self, cells: impl IntoIterator<Item = String>) {
        self.rows.push(cells.into_iter().map(|cell| revealed(&cell)).collect());
    }

    pub(crate) fn render(&self) -> String {
        let width = |column: usize| {
            let cells = self.rows.iter().filter_map(|row| row.get(column));
            cells
                .map(|cell| cell.chars().count())
                .chain([self.header[column].chars().count()])
                .max()
                .unwrap_or(0)
        };
        let widths: Vec<usize> = (0..self.header.len()).map(width).collect();
        let line = |cells: &mut dyn Iterator<Item = &str>| {
            let mut text = String::new();
            for (column, cell) in cells.enumerate() {
                let gap = " ".repeat(widths[column].saturating_sub(cell.chars().count()));
                let cell = match self.right[column] {
                    true => format!("{gap}{cell}"),
                    false => format!("{cell}{gap}"),
                };
                text.push_str(if column > 0 { "  " } else { "" });
                text.push_str(&cell);
            }
            text.trim_end().to_owned() + "\n"
        };
        let mut text = line(&mut self.header.iter().copied());
        for row in &self.rows {
            text.push_str(&line(&mut row.iter().map(String::as_str)));
        }
        text
    }
}

/// What a terminal would act on spelt out.
fn revealed(text: &str) -> String {
    if text.is_empty() { String::new() } else { lapwing_report::reveal(text) }
}

/// A name from data, safe to print to a terminal and of bounded length.
pub(crate) fn printable(name: &str) -> String {
    let text = revealed(name);
    match text.char_indices().nth(WIDEST) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_aligned_and_control_characters_are_spelt_out() {
        let mut table = TextTable::new(&["source", ">rows"]);
        table.row(["a\u{1b}[31m".to_owned(), "5".to_owned()]);
        table.row(["ä".to_owned(), "1,000".to_owned()]);
        assert_eq!(
            table.render(),
            "source          rows\na⟨U+001B⟩[31m      5\nä              1,000\n"
        );
    }
}
