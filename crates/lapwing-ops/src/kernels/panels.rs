//! Matrices in the order in which tiles read them.

/// A matrix cut into panels of columns, two registers wide (the last one half as wide if that is enough), filled up with zeros.
pub(crate) struct Panels {
    values: Vec<f32>,
    depth: usize,
    columns: usize,
    lanes: usize,
}

/// One of [`Panels`].
#[derive(Clone, Copy)]
pub(crate) struct Panel<'a> {
    pub(crate) values: &'a [f32],
    /// The first column.
    pub(crate) from: usize,
    /// Columns that are no filling.
    pub(crate) columns: usize,
    /// Columns with filling.
    pub(crate) width: usize,
}

impl Panels {
    /// The matrix with `depth` rows and `columns` columns and `value(row, column)` in it, for registers of `lanes`.
    pub(crate) fn new(
        depth: usize,
        columns: usize,
        lanes: usize,
        value: impl Fn(usize, usize) -> f32,
    ) -> Self {
        let mut values = vec![0.0; depth * columns.next_multiple_of(lanes)];
        for from in (0..columns).step_by(2 * lanes) {
            let width = (columns - from).next_multiple_of(lanes).min(2 * lanes);
            let panel = &mut values[from * depth..][..width * depth];
            for (row, panel) in panel.chunks_exact_mut(width).enumerate() {
                for (column, cell) in (from..columns).zip(panel) {
                    *cell = value(row, column);
                }
            }
        }
        Self { values, depth, columns, lanes }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = Panel<'_>> {
        (0..self.columns).step_by(2 * self.lanes).map(|from| {
            let left = self.columns - from;
            let width = left.next_multiple_of(self.lanes).min(2 * self.lanes);
            let values = &self.values[from * self.depth..][..width * self.depth];
            Panel { values, from, columns: left.min(width), width }
        })
    }
}
