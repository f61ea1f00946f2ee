//! `rows.csv`: the rows whose labels were judged by networks that had not seen them, worst first.

use std::io::{self, Write};

use lapwing_data::{DataError, Dataset, Kind};
use lapwing_report::DoubtfulRow;
use lapwing_sample::Targets;

use crate::JudgedLabels;

const COLUMNS: [&str; 7] = [
    "row",
    "source",
    "label",
    "wrong",
    "label_probability",
    "suggestion",
    "suggestion_probability",
];

/// Characters of a text that stand in the file.
const SHOWN: usize = 200;

/// What is known of the label at a place.
pub(crate) fn row(
    dataset: &Dataset,
    labels: &JudgedLabels,
    place: u32,
) -> Result<DoubtfulRow, DataError> {
    let row = labels.rows[place as usize];
    let noise = labels.noise.rows[place as usize];
    let class =
        |class: u32| dataset.schema.classes.get(class as usize).cloned().unwrap_or_default();
    Ok(DoubtfulRow {
        row: dataset.row_number(row)?,
        source: dataset.sources.names[dataset.sources.codes[row as usize] as usize].clone(),
        label: match &dataset.target {
            Targets::Classes { labels, .. } => class(labels[row as usize]),
            Targets::Values(_) => String::new(),
        },
        wrong: noise.wrong,
        label_probability: noise.label,
        suggestion: class(noise.suggestion.0),
        suggestion_probability: noise.suggestion.1,
        text: text(dataset, row),
        file: shown(dataset, row, Kind::Image),
        ..Default::default()
    })
}

/// What a row holds in its columns of a kind, where there are such.
fn shown(dataset: &Dataset, row: u32, kind: Kind) -> Option<String> {
    let columns = dataset.schema.features().filter(|column| column.kind == kind);
    let cells = columns.map(|column| dataset.table.display(row, &column.name));
    cells.reduce(|before, cell| format!("{before}\n{cell}"))
}

/// The beginning of the text of a row, where there is text.
fn text(dataset: &Dataset, row: u32) -> Option<String> {
    let shown = shown(dataset, row, Kind::Text)?;
    Some(match shown.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}…", &shown[..end]),
        None => shown,
    })
}

/// The file; nothing but its header where no label was judged.
pub(crate) fn write(
    dataset: &Dataset,
    labels: Option<&JudgedLabels>,
    out: &mut dyn Write,
) -> io::Result<()> {
    let mut writer = csv::WriterBuilder::new().has_headers(false).from_writer(out);
    let any = |kind| dataset.schema.features().any(|column| column.kind == kind);
    let text = any(Kind::Text).then_some("text");
    writer
        .write_record(COLUMNS.into_iter().chain(text).chain(any(Kind::Image).then_some("file")))?;
    if let Some(labels) = labels {
        for place in labels.worst_first() {
            writer.serialize(row(dataset, labels, place).map_err(io::Error::other)?)?;
        }
    }
    writer.flush()
}

/// The first rows that are chosen.
pub(crate) fn decode(
    bytes: &[u8],
    most: usize,
    chosen: impl Fn(&DoubtfulRow) -> bool,
) -> Result<Vec<DoubtfulRow>, csv::Error> {
    let mut reader = csv::Reader::from_reader(bytes);
    let rows = reader.deserialize::<DoubtfulRow>();
    rows.filter(|row| row.as_ref().map_or(true, &chosen)).take(most).collect()
}
