//! Names that a spreadsheet would take for formulas.

use std::borrow::Cow;

use clap::Args;

/// What becomes of them in CSV.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct Formulas {
    /// Put an apostrophe before names that a spreadsheet would take for formulas: those that begin with = + - @
    #[arg(long)]
    escape_formulas: bool,
}

impl Formulas {
    /// A name as a cell of CSV.
    pub(crate) fn cell(self, name: &str) -> Cow<'_, str> {
        // Spreadsheets pass over a tab or a line break at the start.
        let risky = name.trim_start().starts_with(['=', '+', '-', '@']);
        if self.escape_formulas && risky { Cow::Owned(format!("'{name}")) } else { name.into() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_escaped_only_on_demand_and_only_where_they_are_risky() {
        let (plain, escaped) =
            (Formulas { escape_formulas: false }, Formulas { escape_formulas: true });
        for name in ["=1+1", "+x", "-x", "@x", "\t=x"] {
            assert_eq!(plain.cell(name), name);
            assert_eq!(escaped.cell(name), format!("'{name}"));
        }
        assert_eq!(escaped.cell("a=b"), "a=b");
    }
}
