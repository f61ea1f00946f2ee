//! Inputs: what of a table goes into a network. One file and one line each.
//!
//! An input's file holds its preprocessing: fitted on training rows and on nothing else, written into the model's
//! description, and bound to a table, whose rows then are samples.

mod pixels;
mod registry;
mod table_rows;
mod vocabulary;

use lapwing_sample::{InputSpec, Samples};
use serde::{Serialize, Serializer};

use crate::dataset::Dataset;
use crate::error::DataError;
use crate::schema::{Kind, Schema};
use crate::table::Table;

pub use self::image::PictureScale;
pub use columns::Columns;
pub use series::SeriesScale;
pub use table::{Encoder, EncoderConfig, Encoding, Unseen};
pub use table_rows::{EncodedRows, LIMIT};
pub use text::TextEncoder;
pub use tokens::TokenEncoder;

registry::inputs! {
    columns: Columns(Columns),
    table: Table(Encoder),
    text: Text(TextEncoder),
    image: Image(PictureScale),
    series: Series(SeriesScale),
    tokens: Tokens(TokenEncoder),
}

impl InputKind {
    /// The one for the features of a table.
    pub fn of(schema: &Schema) -> Self {
        let holds = |kind| schema.features().any(|column| column.kind == kind);
        match () {
            () if holds(Kind::Image) => Self::Image,
            () if !schema.series.is_empty() => Self::Series,
            () if holds(Kind::Text) => Self::Text,
            () => Self::Table,
        }
    }
}

/// What the preprocessing of an input knows.
pub(crate) trait Preprocessing: Sized {
    /// What it is called in files.
    const NAME: &'static str;

    /// Fits on these rows, and on nothing else.
    fn fit(dataset: &Dataset, rows: &[u32]) -> Result<Self, DataError>;

    /// The columns with which a table has to be read for it.
    fn schema(&self) -> &Schema;

    /// What a sample looks like.
    fn spec(&self) -> InputSpec;

    /// Which numbers of a sample are codes of levels that have no order.
    fn categorical(&self) -> Vec<bool> {
        vec![false; self.spec().size()]
    }

    /// How many numbers of a sample come from each feature, in their order.
    fn numbers(&self) -> Vec<usize> {
        vec![1; self.schema().features().count()]
    }

    /// Values in a table that training never saw, and that say nothing therefore.
    fn unseen(&self, table: &Table) -> Vec<Unseen> {
        let _ = table;
        Vec::new()
    }

    /// Finds in a table what it needs; the rows of the table are samples then.
    fn bind<'a>(&'a self, table: &'a Table) -> Result<Box<dyn Samples + 'a>, DataError>;
}
