//! Tables as people have them: read right, or refused with file, line, column and the way out.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::fs;
use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;

use arrow_array::{ArrayRef, BooleanArray, Float64Array, RecordBatch, StringArray};
use lapwing_data::{
    DataError, Dataset, Dropped, Encoder, EncoderConfig, Kind, LogColumns, LossLog, NewData,
    NewDataOptions, ReadOptions, Reason, Role, TableFile, Warning,
};
use parquet::arrow::ArrowWriter;
use parquet::basic::Compression as Codec;
use parquet::file::properties::WriterProperties;
use tempfile::TempDir;

fn write(dir: &TempDir, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
    let path = dir.path().join(name);
    fs::write(&path, bytes).unwrap();
    path
}

fn read_with(bytes: impl AsRef<[u8]>, options: &ReadOptions) -> Result<Dataset, DataError> {
    let dir = TempDir::new().unwrap();
    Dataset::read(write(&dir, "t.csv", bytes), options)
}

fn read(bytes: impl AsRef<[u8]>) -> Result<Dataset, DataError> {
    read_with(bytes, &ReadOptions::new("y", "s"))
}

/// A table with the source `s`, the target `y` and one further column.
fn column(name: &str, rows: usize, value: impl Fn(usize) -> String) -> String {
    column_between(',', name, rows, value)
}

fn column_between(mark: char, name: &str, rows: usize, value: impl Fn(usize) -> String) -> String {
    (0..rows).fold(format!("s{mark}{name}{mark}y\n"), |text, row| {
        text + &format!("s{}{mark}{}{mark}{}\n", row % 3, value(row), ["no", "yes"][row / 2 % 2])
    })
}

fn number(row: usize) -> String {
    format!("{}.{}", row * 7 % 13, row * 3 % 10)
}

fn kind_and_role(dataset: &Dataset) -> (Kind, Role) {
    (dataset.schema.columns[1].kind, dataset.schema.columns[1].role)
}

fn parquet(dir: &TempDir, columns: Vec<(&str, ArrayRef)>) -> PathBuf {
    let path = dir.path().join("t.parquet");
    let columns = columns.into_iter().map(|(name, array)| (name, array, true));
    let batch = RecordBatch::try_from_iter_with_nullable(columns).unwrap();
    let properties = WriterProperties::builder().set_compression(Codec::SNAPPY).build();
    let file = fs::File::create(&path).unwrap();
    let mut writer = ArrowWriter::try_new(file, batch.schema(), Some(properties)).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
    path
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

#[cfg(unix)]
#[test]
fn a_pipe_that_each_opening_would_eat_from_is_refused() {
    use std::os::unix::net::UnixListener;
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("socket");
    let _listener = UnixListener::bind(&path).unwrap();
    for path in [path.as_path(), std::path::Path::new("/dev/null")] {
        let error = Dataset::read(path, &ReadOptions::new("y", "s")).unwrap_err();
        assert!(matches!(error, DataError::ReadableOnce { .. }), "{error}");
        assert!(error.to_string().contains("save it to a file first"), "{error}");
        let error = LossLog::open(path, &LogColumns::default()).err().unwrap();
        assert!(matches!(error, DataError::ReadableOnce { .. }), "{error}");
    }
}

#[test]
fn one_stray_text_does_not_turn_a_numeric_column_into_an_ignored_one() {
    let text = column("x", 300, |row| if row == 41 { "oops".to_owned() } else { number(row) });
    let error = read(&text).unwrap_err();
    assert!(
        error.to_string().ends_with(
            "t.csv, line 43, column \"x\": expected a number, as are 299 of its 300 values, found \"oops\""
        ),
        "{error}"
    );
    // Whoever says what it is, is believed.
    let types = |kind| [("x".to_owned(), kind)].into();
    let options = ReadOptions { types: types(Kind::Categorical), ..ReadOptions::new("y", "s") };
    assert_eq!(
        kind_and_role(&read_with(&text, &options).unwrap()),
        (Kind::Categorical, Role::Feature)
    );
    let options = ReadOptions { types: types(Kind::Numeric), ..ReadOptions::new("y", "s") };
    assert!(matches!(read_with(&text, &options), Err(DataError::WrongType { .. })));
    let mut options = ReadOptions::new("y", "s");
    options.missing_tokens.push("oops".to_owned());
    let dataset = read_with(&text, &options).unwrap();
    assert_eq!(
        (dataset.schema.columns[1].kind, dataset.schema.columns[1].missing),
        (Kind::Numeric, 1)
    );
    let options = ReadOptions { ignore: vec!["x".into()], ..ReadOptions::new("y", "s") };
    assert!(matches!(read_with(&text, &options), Err(DataError::NoFeatures { .. })));
}

#[test]
fn all_columns_with_stray_values_are_named_at_once() {
    let rows = (0..100).fold("s,a,b,c,y\n".to_owned(), |text, row| {
        let stray = |at: usize, text: &str| if row == at { text.to_owned() } else { number(row) };
        text + &format!(
            "s{},{},{},{},{}\n",
            row % 3,
            stray(7, "-"),
            number(row),
            stray(9, "n.a."),
            row % 2
        )
    });
    let error = read(rows).unwrap_err().to_string();
    assert!(
        error.contains("line 9, column \"a\"") && error.ends_with("found \"-\"; so it is in c"),
        "{error}"
    );
}

#[test]
fn a_stray_text_in_a_numeric_target_is_no_class() {
    let text = (0..200).fold("x,s,y\n".to_owned(), |text, row| {
        let target = if row == 5 { "pending".to_owned() } else { number(row) };
        text + &format!("{},s{},{target}\n", number(row + 3), row % 3)
    });
    let error = read(text).unwrap_err().to_string();
    assert!(error.contains("line 7, column \"y\"") && error.contains("\"pending\""), "{error}");
}

#[test]
fn a_header_repeated_in_the_middle_is_refused_by_its_line() {
    let table = column("x", 50, number);
    let error = read(format!("{table}{table}")).unwrap_err();
    assert!(
        matches!(&error, DataError::RepeatedHeader { place } if place.line == Some(52)),
        "{error}"
    );
    let log = "step,source,loss\n0,a,1\nstep,source,loss\n1,a,1\n";
    let log = LossLog::from_reader("stream", log.as_bytes(), &LogColumns::default()).unwrap();
    let error = log.each_row(|_| Ok::<(), DataError>(())).unwrap_err();
    assert!(matches!(error, DataError::RepeatedHeader { .. }), "{error}");
}

#[test]
fn a_few_texts_among_codes_are_names_and_a_warning() {
    let text =
        column("x", 300, |row| if row == 41 { "oops".into() } else { (row % 4).to_string() });
    let dataset = read(&text).unwrap();
    assert_eq!(kind_and_role(&dataset), (Kind::Categorical, Role::Feature));
    let [warning @ Warning::TextAmongNumbers { strays: 1, present: 300, .. }] =
        &dataset.warnings[..]
    else {
        panic!("{:?}", dataset.warnings)
    };
    assert!(warning.to_string().contains("\"oops\" in line 43"), "{warning}");
}

#[test]
fn decimal_commas_thousands_currencies_and_per_cent_are_numbers() {
    let value = |row: usize| row as f64 * 1.25 - 40.0;
    let comma = |row: usize| format!("{:.2}", value(row)).replace('.', ",");
    let thousands = |row: usize| {
        let number = 1000.0 + 12.5 * row as f64;
        format!("$ {},{:06.2}", (number / 1000.0).floor(), number % 1000.0)
    };
    type Expected = Box<dyn Fn(usize) -> f64>;
    let cases: [(String, Expected); 3] = [
        (column_between(';', "x", 60, comma), Box::new(value)),
        (column_between('|', "x", 60, thousands), Box::new(|row| 1000.0 + 12.5 * row as f64)),
        (column("x", 60, |row| format!("{row}.5 %")), Box::new(|row| row as f64 + 0.5)),
    ];
    for (text, expected) in cases {
        let dataset = read(&text).unwrap();
        assert_eq!(kind_and_role(&dataset), (Kind::Numeric, Role::Feature), "{text}");
        assert!(!dataset.schema.columns[1].is_written_plainly());
        for row in 0..60_u32 {
            let shown: f64 = dataset.table.display(row, "x").parse().unwrap();
            assert!((shown - expected(row as usize)).abs() < 1e-3, "{shown}");
        }
        // The way of writing belongs to the model: new data is read in the same way.
        let rows: Vec<u32> = (0..60).collect();
        let encoder = Encoder::fit(&dataset, &rows, &EncoderConfig::default());
        let saved = serde_json::to_string(&encoder).unwrap();
        let encoder: Encoder = serde_json::from_str(&saved).unwrap();
        let dir = TempDir::new().unwrap();
        let new = NewData::read(
            write(&dir, "n.csv", &text),
            encoder.schema(),
            &NewDataOptions::default(),
        );
        assert_eq!(new.unwrap().table.display(3, "x"), dataset.table.display(3, "x"));
    }
}

#[test]
fn numbers_that_may_be_thousands_or_decimals_are_refused() {
    let text = column_between(';', "x", 60, |row| format!("{},{:03}", 1 + row % 9, row * 7 % 1000));
    let error = read(text).unwrap_err();
    assert!(
        error.to_string().contains("line 2, column \"x\": \"1,000\" may have thousands"),
        "{error}"
    );
}

#[test]
fn dates_are_read_in_three_forms_and_doubted_in_others() {
    for form in ["2024-03-", "2024/03/"] {
        let dataset = read(column("x", 60, |row| format!("{form}{:02}", 1 + row % 28))).unwrap();
        assert_eq!(kind_and_role(&dataset), (Kind::Date, Role::Feature), "{form}");
    }
    let dataset =
        read(column("x", 60, |row| format!("{:02}.03.2024 10:30", 1 + row % 28))).unwrap();
    assert_eq!(kind_and_role(&dataset), (Kind::Date, Role::Feature));
    let dataset = read(column("x", 60, |row| format!("{:02}/03/2024", 1 + row % 28))).unwrap();
    assert!(
        matches!(&dataset.warnings[..], [Warning::AmbiguousDates { .. }]),
        "{:?}",
        dataset.warnings
    );
    let text = column("x", 60, |row| {
        if row == 9 { "never".into() } else { format!("2024-03-{:02}", 1 + row % 28) }
    });
    let error = read(text).unwrap_err().to_string();
    assert!(
        error.contains("line 11") && error.contains("a date") && error.contains("never"),
        "{error}"
    );
}

#[test]
fn booleans_and_whole_numbers_are_spelt_alike_in_csv_and_parquet() {
    let rows = 60;
    let csv = (0..rows).fold("s,flag,code,y\n".to_owned(), |text, row| {
        let flag = if row % 3 == 0 { "True" } else { "False" };
        text + &format!("s{},{flag},{}.0,{}\n", row % 4, row % 5, ["False", "True"][row / 3 % 2])
    });
    let dir = TempDir::new().unwrap();
    let options = ReadOptions {
        types: [("code".to_owned(), Kind::Categorical)].into(),
        ..ReadOptions::new("y", "s")
    };
    let dataset = Dataset::read(write(&dir, "t.csv", csv), &options).unwrap();
    let all: Vec<u32> = (0..rows as u32).collect();
    let encoder = Encoder::fit(&dataset, &all, &EncoderConfig::default());
    let truth = |value: &dyn Fn(usize) -> bool| -> ArrayRef {
        Arc::new((0..rows).map(|row| Some(value(row))).collect::<BooleanArray>())
    };
    let code = (0..rows).map(|row| (row % 5) as f64);
    let path = parquet(
        &dir,
        vec![
            ("flag", truth(&|row| row % 3 == 0)),
            ("code", Arc::new(Float64Array::from_iter_values(code))),
            ("y", truth(&|row| row / 3 % 2 == 1)),
        ],
    );
    let options = NewDataOptions { target: true, group: None };
    let new = NewData::read(path, encoder.schema(), &options).unwrap();
    assert_eq!(encoder.unseen(&new.table), []);
    assert_eq!(Some(dataset.target.clone()), new.target);
    // Predictions are spelt as the user spells them.
    assert_eq!(dataset.schema.classes, ["False", "True"]);
    for row in 0..rows as u32 {
        for column in ["flag", "code"] {
            assert_eq!(dataset.table.display(row, column), new.table.display(row, column));
        }
    }
}

#[test]
fn levels_that_training_never_saw_are_counted() {
    let dataset = read(column("x", 300, |row| ["red", "blue"][row % 2].into())).unwrap();
    let all: Vec<u32> = (0..300).collect();
    let encoder = Encoder::fit(&dataset, &all, &EncoderConfig::default());
    let dir = TempDir::new().unwrap();
    let new = |text: &str| {
        let path = write(&dir, "n.csv", text);
        let data = NewData::read(path, encoder.schema(), &NewDataOptions::default()).unwrap();
        encoder.unseen(&data.table).iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    assert_eq!(
        new("x\nRed\nblue\ngreen\nNA\n"),
        ["column \"x\": 2 of 4 values were not in training (\"Red\", \"green\")"]
    );
    assert_eq!(new("x\nred\nblue\n"), [] as [&str; 0]);
}

#[test]
fn rare_levels_of_training_are_no_new_ones() {
    let text = column("x", 300, |row| if row == 7 { "once".into() } else { "often".into() });
    let dataset = read(text).unwrap();
    let all: Vec<u32> = (0..300).collect();
    let encoder = Encoder::fit(&dataset, &all, &EncoderConfig::default());
    let dir = TempDir::new().unwrap();
    let path = write(&dir, "n.csv", "x\nonce\nnever\n");
    let data = NewData::read(path, encoder.schema(), &NewDataOptions::default()).unwrap();
    let unseen = encoder.unseen(&data.table);
    assert_eq!((unseen[0].rows, &unseen[0].examples[..]), (1, &["never".to_owned()][..]));
}

#[test]
fn in_a_file_of_one_column_an_empty_line_is_a_missing_value() {
    let dir = TempDir::new().unwrap();
    for text in ["x\n-2\n\n2\n-1.5\n", "x\r\n-2\r\n\r\n2\r\n-1.5\r\n", "\nx\n-2\n\n2\n-1.5"] {
        let file = TableFile::open(write(&dir, "t.csv", text)).unwrap();
        let rows = file.rows(&[1, 2, 3, 4, 5]).unwrap();
        assert_eq!(rows.len(), 4, "{text:?}");
        assert_eq!(
            (&rows[&2][..], &rows[&4][..]),
            (&[String::new()][..], &["-1.5".to_owned()][..])
        );
    }
    // With a second column an empty line holds nothing at all.
    let file = TableFile::open(write(&dir, "t.csv", "x,y\n1,2\n\n3,4\n")).unwrap();
    assert_eq!(file.rows(&[1, 2, 3]).unwrap().len(), 2);
}

#[test]
fn a_parquet_record_has_the_limit_of_a_csv_record() {
    let dir = TempDir::new().unwrap();
    let long = "x".repeat(20 << 20);
    for (rows, texts) in [(6, vec![long.as_str(); 6]), (3, vec!["a", long.as_str(), "b"])] {
        let names = || {
            Arc::new(StringArray::from_iter_values((0..rows).map(|row| format!("v{}", row % 2))))
        };
        let path = parquet(
            &dir,
            vec![("s", names()), ("x", Arc::new(StringArray::from(texts))), ("y", names())],
        );
        assert!(fs::metadata(&path).unwrap().len() < 10 << 20);
        let error = Dataset::read(&path, &ReadOptions::new("y", "s")).unwrap_err();
        let DataError::RecordTooLong { place, .. } = &error else { panic!("{error}") };
        assert_eq!((place.line, place.row), (None, if rows == 6 { 1 } else { 2 }), "{error}");
    }
}

#[test]
fn a_target_beyond_the_limit_is_named_by_line_and_value() {
    let text = (0..60).fold("x,s,y\n".to_owned(), |text, row| {
        let target = if row == 4 { "1e200".to_owned() } else { number(row) };
        text + &format!("{},s{},{target}\n", number(row + 3), row % 3)
    });
    let error = read(text).unwrap_err().to_string();
    assert!(
        error.ends_with("t.csv, line 6, column \"y\": the target 1e200 is beyond ±1e100"),
        "{error}"
    );
}

#[test]
fn a_gzip_file_with_bytes_behind_it_is_not_cut_short() {
    let dir = TempDir::new().unwrap();
    let packed = gzip(column("x", 500, number).as_bytes());
    let options = ReadOptions::new("y", "s");
    let path = write(&dir, "t.csv.gz", [&packed[..], b"tail"].concat());
    let error = Dataset::read(path, &options).unwrap_err();
    assert!(matches!(&error, DataError::Damaged { format: "gzip", .. }), "{error}");
    assert!(error.to_string().contains("behind the end"), "{error}");
    let path = write(&dir, "t.csv.gz", [&packed[..], &[0; 600]].concat());
    assert_eq!(Dataset::read(path, &options).unwrap().len(), 500);
}

#[test]
fn a_flipped_bit_in_a_gzip_file_is_damage_and_not_a_ragged_row() {
    let dir = TempDir::new().unwrap();
    let packed = gzip(column("x", 5000, |row| (row * row % 9973).to_string()).as_bytes());
    let mut ragged = 0;
    for at in (20..packed.len() - 8).step_by(packed.len() / 40) {
        let mut damaged = packed.clone();
        damaged[at] ^= 4;
        let path = write(&dir, "t.csv.gz", damaged);
        let error = Dataset::read(path, &ReadOptions::new("y", "s")).unwrap_err();
        assert!(
            matches!(error, DataError::Damaged { .. } | DataError::Truncated { .. }),
            "at {at}: {error}"
        );
        ragged += 1;
    }
    assert!(ragged > 30);
}

#[test]
fn workbooks_pictures_archives_and_web_pages_are_called_by_their_names() {
    let cases: [(&str, &[u8], &str); 6] = [
        ("t.xlsx", b"PK\x03\x04\x14\0\x06\0", "is an Excel workbook: export it as CSV"),
        ("t.csv", b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", "is a PNG picture"),
        ("t.csv", b"\xff\xfex\0,\0", "is text in UTF-16: save it as UTF-8"),
        ("t.csv", b"<!DOCTYPE html>\n<html>", "is a web page"),
        ("t.csv", b"[{\"x\": 1}]", "is JSON"),
        ("t.zip", b"PK\x03\x04\x14\0\0\0\x08\0", "is a zip archive: unpack it first"),
    ];
    let dir = TempDir::new().unwrap();
    for (name, bytes, expected) in cases {
        let error = TableFile::open(write(&dir, name, bytes)).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
    let error = TableFile::open(write(&dir, "t.csv.gz", gzip(b"{\"x\": 1}\n"))).unwrap_err();
    assert!(error.to_string().contains("is JSON"), "{error}");
}

#[test]
fn columns_that_are_not_used_say_why() {
    let reason = |value: &dyn Fn(usize) -> String| {
        let text = (0..60).fold("s,x,z,y\n".to_owned(), |text, row| {
            text + &format!("s{},{},{},{}\n", row % 3, value(row), number(row), row / 2 % 2)
        });
        read(text).unwrap().schema.columns[1].role
    };
    assert_eq!(reason(&|_| "inf".into()), Role::Ignored(Reason::AllInfinite));
    assert_eq!(
        reason(&|row| if row % 2 == 0 { "NaN" } else { "inf" }.into()),
        Role::Ignored(Reason::AllInfinite)
    );
    assert_eq!(
        reason(&|row| (576_460_752_303_423_488_u64 + row as u64 % 3).to_string()),
        Role::Ignored(Reason::BeyondPrecision)
    );
    assert_eq!(reason(&|_| "7".into()), Role::Ignored(Reason::Constant));
    let error = read("s,y\na,1\nb,0\n").unwrap_err().to_string();
    assert!(error.ends_with("(there is no column beside target and source)"), "{error}");
}

#[test]
fn rows_with_an_infinite_target_are_not_called_rows_without() {
    let dataset = read("x,s,y\n1,a,0.5\n2,b,inf\n3,a,\n4,b,1.5\n5,,2\n6,a,7\n").unwrap();
    assert_eq!(
        dataset.dropped,
        Dropped { target_missing: 1, target_infinite: 1, source_missing: 1, ..Dropped::default() }
    );
    let said = "1 with target missing, 1 with target infinite, 1 with source missing";
    assert_eq!(dataset.dropped.to_string(), said);
}

#[test]
fn sources_are_counted_as_they_are_named() {
    let spelling = ["1", "1.0", "01"];
    let text = (0..60).fold("s,x,y\n".to_owned(), |text, row| {
        text + &format!("{},{},{}\n", spelling[row % 3], number(row), row / 2 % 2)
    });
    let dataset = read(text).unwrap();
    assert_eq!(dataset.sources.names, ["1", "01"]);
    assert_eq!(dataset.schema.columns[0].distinct.count, 2);
}

#[test]
fn a_log_names_sources_as_training_does() {
    let names = |text: &str| -> Result<Vec<String>, DataError> {
        let text = format!("step,source,loss\n{text}");
        let reader = std::io::Cursor::new(text.into_bytes());
        let log = LossLog::from_reader("stream", reader, &LogColumns::default())?;
        let mut names = Vec::new();
        log.each_row(|row| {
            names.push(row.source.to_owned());
            Ok::<(), DataError>(())
        })?;
        Ok(names)
    };
    assert_eq!(names("0, a ,1\n0,2.0,1\n0,True,1\n").unwrap(), ["a", "2", "true"]);
    for missing in ["NA", "", "  ", "None"] {
        let error = names(&format!("0,{missing},1\n")).unwrap_err();
        assert!(error.to_string().contains("expected the name of a source"), "{error}");
    }
    let columns = LogColumns { source: "step".into(), ..LogColumns::default() };
    let log = LossLog::from_reader("stream", "step,loss\n0,1\n".as_bytes(), &columns);
    assert!(matches!(log.err(), Some(DataError::RoleConflict { .. })));
}

#[test]
fn semicolons_bars_and_the_line_of_excel_separate_fields() {
    let dir = TempDir::new().unwrap();
    for text in [
        "\u{feff}sep=;\r\nname;\"price, EUR\";y\r\na;1;2\r\n",
        "name;price, EUR;y\na;1;2\n",
        "name|price, EUR|y\na|1|2\n",
        "name\tprice, EUR\ty\r\na\t1\t2\r\n",
    ] {
        let file = TableFile::open(write(&dir, "t.csv", text)).unwrap();
        assert_eq!(file.columns(), ["name", "price, EUR", "y"], "{text:?}");
        assert_eq!(file.rows(&[1]).unwrap()[&1], ["a", "1", "2"], "{text:?}");
    }
    let error = read("sep=,\ns,x,y\na,1,2\na,1\n").unwrap_err();
    assert!(matches!(error, DataError::Ragged { line: 4, .. }), "{error}");
}

#[test]
fn rewriting_keeps_mark_line_ends_and_header() {
    let dir = TempDir::new().unwrap();
    let text = "\u{feff} a ;;y\r\n1;\"x;y\";2\r\n";
    let path = write(&dir, "t.csv", text);
    let mut copy = Vec::new();
    lapwing_data::rewrite(
        &TableFile::open(&path).unwrap(),
        &mut copy,
        lapwing_data::Compression::None,
        |_, _| Ok::<(), DataError>(()),
    )
    .unwrap();
    assert_eq!(String::from_utf8(copy).unwrap(), text);
}

#[test]
fn a_file_that_changes_between_two_readings_is_refused() {
    let dir = TempDir::new().unwrap();
    let path = write(&dir, "t.csv", column("x", 60, number));
    let file = TableFile::open(&path).unwrap();
    assert!(file.check_that_it_is_unchanged().is_ok());
    fs::write(&path, column("x", 61, number)).unwrap();
    assert!(matches!(file.check_that_it_is_unchanged(), Err(DataError::Changed { .. })));
}
