//! From a table file to encoded rows ready for a network.
//!
//! ```text
//! file ─ Dataset::read ─▶ Schema + Table + Targets + Sources ─ Split::new ─▶ rows ─ InputKind::fit ─▶ Input
//! new file ─ NewData::read(…, input.schema()) ─▶ Table ─ input.bind ─▶ Samples
//! stream ─ NewRows::each_part ─▶ one Table after another ─ input.bind ─▶ Samples
//! ```
//!
//! A table is held once, in columns of four bytes per value; rows are encoded batch by batch as they are asked for.

mod aspect;
mod cache;
mod columnar;
mod dataset;
mod date;
mod distinct;
mod error;
mod file;
mod folder;
mod foreign;
mod gallery;
mod guard;
mod gzip;
mod input;
mod items;
mod kept;
mod log;
mod memory;
mod new_data;
mod new_rows;
mod number_text;
mod numeral;
mod picture;
mod profile;
mod records;
mod rewrite;
mod route;
mod schema;
mod series;
mod shelter;
mod split;
mod survey;
mod table;
mod target;
mod text;
mod texts;
mod time;
mod value;
mod warning;
mod words;

pub use aspect::{Aspect, WideChannel};
pub use cache::{BLOCK, CacheError};
pub use columnar::rewrite_parquet;
pub use csv::StringRecord;
pub use dataset::{Dataset, Dropped, PictureOptions, ReadOptions, Sources};
pub use distinct::Distinct;
pub use error::{DataError, Place, Stray};
pub use file::TableFile;
pub use input::{
    Columns, EncodedRows, Encoder, EncoderConfig, Encoding, Input, InputKind, LIMIT, PictureScale,
    SeriesScale, TextEncoder, TokenEncoder, Unseen,
};
pub use items::Items;
pub use lapwing_sample::{Targets, Task, UNSEEN_CLASS};
pub use log::{LogColumns, LogRow, LossLog};
pub use memory::{Disk, Memory};
pub use new_data::{NewData, NewDataOptions};
pub use new_rows::{NewRows, Part};
pub use number_text::number_text;
pub use picture::{PictureError, read_pictures};
pub use rewrite::{Form, rewrite};
pub use schema::{ColumnSchema, Kind, Reason, Role, Schema, UnknownKind};
pub use split::{Split, SplitConfig};
pub use table::{BEYOND, Column, MAX_LEVELS, MISSING, Table};
pub use text::Compression;
pub use time::Times;
pub use value::MISSING_TOKENS;
pub use warning::Warning;
pub use words::words;
