//! `lapwing corrupt` from the outside.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::fs;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

use assert_cmd::Command;
use tempfile::TempDir;

/// 400 rows of the sources a, b, c and d; the class is the sign of x, the price grows with x.
fn table() -> String {
    let mut text = "x,z,site,label,price\n".to_owned();
    for row in 0..400_i32 {
        let x = f64::from((row * 37) % 101 - 50) / 10.0;
        let site = ["a", "b", "c", "d"][row as usize % 4];
        let label = if x >= 0.0 { "yes" } else { "no" };
        text.push_str(&format!("{x},{},{site},{label},{}\n", row % 7, 100.5 + x));
    }
    text
}

fn written(directory: &TempDir, name: &str, text: &str) -> PathBuf {
    let path = directory.path().join(name);
    fs::write(&path, text).unwrap();
    path
}

fn corrupt(data: &Path, options: &[&str]) -> Command {
    let mut command = Command::cargo_bin("lapwing").unwrap();
    command.arg("corrupt").arg(data).args(["--source", "site"]).args(options);
    command
}

/// Standard output, which must come with exit code 0, and standard error.
fn output(data: &Path, options: &[&str]) -> (String, String) {
    let output = corrupt(data, options).assert().success().get_output().clone();
    (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap())
}

/// Standard error, which must come with exit code 2 and nothing on standard output.
fn refusal(data: &Path, options: &[&str]) -> String {
    let output = corrupt(data, options).assert().code(2).stdout("").get_output().clone();
    String::from_utf8(output.stderr).unwrap()
}

/// Fields of all rows.
fn fields(text: &str) -> Vec<Vec<String>> {
    text.lines().skip(1).map(|line| line.split(',').map(str::to_owned).collect()).collect()
}

/// For every source and column how many values differ.
fn differences(old: &str, new: &str) -> BTreeMap<(String, usize), usize> {
    let (old, new) = (fields(old), fields(new));
    assert_eq!(old.len(), new.len());
    let mut counts = BTreeMap::new();
    for (old, new) in old.iter().zip(&new) {
        for column in (0..old.len()).filter(|&column| old[column] != new[column]) {
            *counts.entry((old[2].clone(), column)).or_default() += 1;
        }
    }
    counts
}

fn at(counts: &BTreeMap<(String, usize), usize>, source: &str, column: usize) -> usize {
    counts.get(&(source.to_owned(), column)).copied().unwrap_or_default()
}

const LABEL: &[&str] = &["--target", "label"];
const PRICE: &[&str] = &["--target", "price"];

fn with<'a>(first: &[&'a str], rest: &[&'a str]) -> Vec<&'a str> {
    [first, rest].concat()
}

#[test]
fn an_exact_flip_changes_exactly_its_share_of_the_chosen_sources_and_nothing_else() {
    let directory = TempDir::new().unwrap();
    let data = written(&directory, "data.csv", &table());
    let options = ["--noise", "exact-flip", "--sources", "b,d", "--level", "0.25"];
    let (new, said) = output(&data, &with(LABEL, &options));
    let counts = differences(&table(), &new);
    assert_eq!(counts, [(("b".into(), 3), 25), (("d".into(), 3), 25)].into());
    assert_eq!(said, "exact-flip: changed 50 of 200 rows (\"b\" 25 of 100, \"d\" 25 of 100)\n");
}

#[test]
fn random_label_is_one_class_per_source_and_class_and_per_sample_is_not() {
    let directory = TempDir::new().unwrap();
    let data = written(&directory, "data.csv", &table());
    let images = |noise: &str, seed: &str| {
        let options = ["--noise", noise, "--sources", "b", "--seed", seed];
        let (new, _) = output(&data, &with(LABEL, &options));
        let mut images: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for (old, new) in fields(&table()).iter().zip(fields(&new)) {
            if old[2] == "b" {
                images.entry(old[3].clone()).or_default().push(new[3].clone());
            } else {
                assert_eq!(*old, new);
            }
        }
        for image in images.values_mut() {
            image.sort_unstable();
            image.dedup();
        }
        images
    };
    let maps: Vec<_> = (0..8).map(|seed| images("random-label", &seed.to_string())).collect();
    assert!(maps.iter().all(|map| map.values().all(|image| image.len() == 1)), "{maps:?}");
    assert!(maps.iter().any(|map| map != &maps[0]), "the seed decides");
    assert!(images("random-label-per-sample", "0").values().all(|image| image.len() == 2));
}

#[test]
fn the_noise_of_a_source_does_not_depend_on_the_other_sources_chosen() {
    let directory = TempDir::new().unwrap();
    let data = written(&directory, "data.csv", &table());
    for noise in ["random-label", "exact-flip", "chunk-label-shuffle", "added-noise"] {
        let rows_of_b = |sources: &str| {
            let options = ["--noise", noise, "--sources", sources, "--level", "0.5"];
            let mut rows = fields(&output(&data, &with(LABEL, &options)).0);
            rows.retain(|row| row[2] == "b");
            rows
        };
        assert_eq!(rows_of_b("b"), rows_of_b("d,b"), "{noise}");
    }
}

#[test]
fn a_level_is_the_share_of_rows_reached() {
    let directory = TempDir::new().unwrap();
    let data = written(&directory, "data.csv", &table());
    let changed = |level: &str| {
        let options = ["--noise", "uniform-target", "--sources", "a,b,c,d", "--level", level];
        let counts = differences(&table(), &output(&data, &with(PRICE, &options)).0);
        assert!(counts.keys().all(|(_, column)| *column == 4));
        counts.values().sum::<usize>()
    };
    assert_eq!((changed("0"), changed("1")), (0, 400));
    // Mean 120, standard deviation 9.
    assert!((75..=165).contains(&changed("0.3")), "{}", changed("0.3"));
}

#[test]
fn uniform_targets_fill_the_range_of_the_target() {
    let directory = TempDir::new().unwrap();
    let data = written(&directory, "data.csv", &table());
    let options = ["--noise", "uniform-target", "--sources", "a,b,c,d"];
    let (new, _) = output(&data, &with(PRICE, &options));
    let prices: Vec<f64> = fields(&new).iter().map(|row| row[4].parse().unwrap()).collect();
    let (low, high) = (95.5, 105.5);
    assert!(prices.iter().all(|price| (low..=high).contains(price)));
    for quarter in 0..4 {
        let start = low + 2.5 * f64::from(quarter);
        let count = prices.iter().filter(|&&price| (start..start + 2.5).contains(&price)).count();
        // Mean 100, standard deviation 9.
        assert!((57..=143).contains(&count), "quarter {quarter}: {count}");
    }
}

#[test]
fn chunk_label_noise_stays_within_its_chunks() {
    let directory = TempDir::new().unwrap();
    let data = written(&directory, "data.csv", &table());
    let chunks = |text: &str| -> Vec<Vec<String>> {
        let labels: Vec<String> = fields(text)
            .into_iter()
            .filter(|row| row[2] == "b")
            .map(|row| row[3].clone())
            .collect();
        labels.chunks(20).map(<[String]>::to_vec).collect()
    };
    let options = |noise| with(LABEL, &["--noise", noise, "--sources", "b", "--chunk", "20"]);
    let old = chunks(&table());

    let (new, _) = output(&data, &options("chunk-label-shuffle"));
    assert_ne!(chunks(&new), old);
    let sorted = |chunks: Vec<Vec<String>>| -> Vec<Vec<String>> {
        chunks
            .into_iter()
            .map(|mut chunk| {
                chunk.sort_unstable();
                chunk
            })
            .collect()
    };
    assert_eq!(sorted(chunks(&new)), sorted(old.clone()), "each chunk keeps its labels");

    let (new, _) = output(&data, &options("chunk-label-flip"));
    assert!(chunks(&new).iter().all(|chunk| chunk.iter().all(|label| *label == chunk[0])));
    assert!(chunks(&new).concat() != vec![chunks(&new)[0][0].clone(); 100], "chunks differ");
}

#[test]
fn noise_of_the_inputs_has_the_scale_of_its_column() {
    let directory = TempDir::new().unwrap();
    let data = written(&directory, "data.csv", &table());
    let column = |text: &str| -> Vec<f64> {
        fields(text).iter().filter(|row| row[2] == "b").map(|row| row[0].parse().unwrap()).collect()
    };
    let std = |values: &[f64]| {
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        (values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / values.len() as f64)
            .sqrt()
    };
    let options = |noise| with(LABEL, &["--noise", noise, "--sources", "b", "--features", "x"]);
    let old = column(&table());

    let (new, _) = output(&data, &options("added-noise"));
    let added: Vec<f64> = column(&new).iter().zip(&old).map(|(new, old)| new - old).collect();
    assert!((std(&added) / std(&old) - 1.0).abs() < 0.36, "{} {}", std(&added), std(&old));
    assert_eq!(differences(&table(), &new), [(("b".into(), 0), 100)].into());

    let (new, _) = output(&data, &options("replace-with-noise"));
    let new = column(&new);
    assert!((std(&new) / std(&old) - 1.0).abs() < 0.36);
    let product = new.iter().zip(&old).map(|(new, old)| new * old).sum::<f64>() / 100.0;
    assert!(product.abs() < 0.5 * std(&old) * std(&old), "nothing of the old is left: {product}");
}

#[test]
fn by_default_all_numeric_features_get_noise() {
    let directory = TempDir::new().unwrap();
    let data = written(&directory, "data.csv", &table());
    let options = with(LABEL, &["--noise", "added-noise", "--sources", "b"]);
    let counts = differences(&table(), &output(&data, &options).0);
    assert_eq!([0, 1, 2, 3, 4].map(|column| at(&counts, "b", column)), [100, 100, 0, 0, 100]);
    assert!(counts.keys().all(|(source, _)| source == "b"));
}

#[test]
fn a_chunk_shuffle_moves_values_between_the_columns_of_a_row() {
    let directory = TempDir::new().unwrap();
    let data = written(&directory, "data.csv", &table());
    let (new, _) = output(&data, &with(LABEL, &["--noise", "chunk-shuffle", "--sources", "b"]));
    let mut moved = 0;
    for (old, new) in fields(&table()).iter().zip(fields(&new)) {
        let values = |row: &[String]| [row[0].clone(), row[1].clone(), row[4].clone()];
        let (mut a, mut b) = (values(old), values(&new));
        moved += usize::from(a != b);
        a.sort_unstable();
        b.sort_unstable();
        assert_eq!(a, b);
        assert_eq!((&old[2], &old[3]), (&new[2], &new[3]));
        assert!(old[2] == "b" || *old == new);
    }
    // Five of six permutations move something: mean 83, standard deviation 4.
    assert!((63..=99).contains(&moved), "{moved}");
}

#[test]
fn the_same_seed_gives_the_same_bytes_and_original_changes_nothing() {
    let directory = TempDir::new().unwrap();
    let data = written(&directory, "data.csv", &table());
    for noise in ["random-label-per-sample", "chunk-label-flip", "exact-flip", "added-noise"] {
        let run = |seed| {
            let options = ["--noise", noise, "--sources", "b,c", "--level", "0.5", "--seed", seed];
            output(&data, &with(LABEL, &options)).0
        };
        assert_eq!(run("1"), run("1"), "{noise}");
        assert_ne!(run("1"), run("2"), "{noise}");
    }
    let (same, said) = output(&data, &with(LABEL, &["--noise", "original", "--sources", "b"]));
    assert_eq!(same, table());
    assert_eq!(said, "original: changed 0 of 100 rows (\"b\" 0 of 100)\n");
}

#[test]
fn rows_without_target_or_source_are_left_alone_and_classes_keep_their_spelling() {
    let directory = TempDir::new().unwrap();
    let text = "x,site,label\n1,a,1.0\n2,a,\n3,,0\n4,a,NA\n5,a,0\n6,b,1\n7,b,0\n8, a ,+1\n";
    let data = written(&directory, "data.csv", text);
    let (new, said) = output(&data, &with(LABEL, &["--noise", "exact-flip", "--sources", "a"]));
    assert_eq!(new, "x,site,label\n1,a,0\n2,a,\n3,,0\n4,a,NA\n5,a,1.0\n6,b,1\n7,b,0\n8, a ,0\n");
    assert!(said.contains("changed 3 of 3 rows"), "{said}");
}

#[test]
fn quoted_fields_and_hostile_names_survive() {
    let directory = TempDir::new().unwrap();
    let text = "x,site,label\n1,\"<b>\"\"q\"\",</b>\",\"a,b\"\n2,é\u{1f426},\"line\nbreak\"\n3,é\u{1f426},\"a,b\"\n";
    let data = written(&directory, "data.csv", text);
    let options = ["--noise", "exact-flip", "--sources", "é\u{1f426}"];
    let (new, _) = output(&data, &with(LABEL, &options));
    let expected = "x,site,label\n1,\"<b>\"\"q\"\",</b>\",\"a,b\"\n2,é\u{1f426},\"a,b\"\n3,é\u{1f426},\"line\nbreak\"\n";
    assert_eq!(new, expected);
}

#[test]
fn compressed_tables_with_tabs_are_read_and_written() {
    let directory = TempDir::new().unwrap();
    let data = directory.path().join("data.tsv.gz");
    let mut gzip =
        flate2::write::GzEncoder::new(fs::File::create(&data).unwrap(), Default::default());
    gzip.write_all(table().replace(',', "\t").as_bytes()).unwrap();
    gzip.finish().unwrap();
    let out = directory.path().join("noisy.tsv.gz");
    let options = ["--noise", "exact-flip", "--sources", "b", "--out", out.to_str().unwrap()];
    let (printed, _) = output(&data, &with(LABEL, &options));
    assert_eq!(printed, "");
    let mut new = String::new();
    flate2::read::GzDecoder::new(fs::File::open(&out).unwrap()).read_to_string(&mut new).unwrap();
    let counts = differences(&table(), &new.replace('\t', ","));
    assert_eq!(counts, [(("b".into(), 3), 100)].into());
}

#[test]
fn a_file_is_replaced_only_when_forced_and_never_half() {
    let directory = TempDir::new().unwrap();
    let data = written(&directory, "data.csv", &table());
    let out = written(&directory, "out.csv", "precious");
    let options = ["--noise", "exact-flip", "--sources", "b", "--out", out.to_str().unwrap()];
    let options = with(LABEL, &options);
    assert!(refusal(&data, &options).contains("--force"));
    assert_eq!(fs::read_to_string(&out).unwrap(), "precious");

    let broken = written(&directory, "broken.csv", &format!("{}1,2,b\n", table()));
    let said = refusal(&broken, &with(&options, &["--force"]));
    assert!(said.contains("line 402") && said.contains("expected 5 fields"), "{said}");
    assert_eq!(fs::read_to_string(&out).unwrap(), "precious");
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 3, "no file is left behind");

    output(&data, &with(&options, &["--force"]));
    assert_eq!(differences(&table(), &fs::read_to_string(&out).unwrap()).len(), 1);
    // Reading and writing the same file works, because it is replaced at the end.
    let same = data.to_str().unwrap();
    let options =
        with(LABEL, &["--noise", "exact-flip", "--sources", "b", "--out", same, "--force"]);
    output(&data, &options);
    assert_eq!(fs::read_to_string(&data).unwrap(), fs::read_to_string(&out).unwrap());
}

#[test]
fn an_unknown_kind_is_answered_with_the_kinds_there_are() {
    let directory = TempDir::new().unwrap();
    let data = written(&directory, "data.csv", &table());
    let said = refusal(&data, &with(LABEL, &["--noise", "salt", "--sources", "b"]));
    assert!(said.contains("random-label") && said.contains("uniform-target"), "{said}");
}

#[test]
fn an_unknown_source_is_answered_with_the_sources_there_are() {
    let directory = TempDir::new().unwrap();
    let data = written(&directory, "data.csv", &table());
    let said = refusal(&data, &with(LABEL, &["--noise", "random-label", "--sources", "b,B"]));
    assert!(said.contains("\"B\"") && said.contains("the sources are \"b\", \"a\""), "{said}");
}

#[test]
fn levels_outside_zero_to_one_are_refused() {
    let directory = TempDir::new().unwrap();
    let data = written(&directory, "data.csv", &table());
    for level in ["1.5", "-0.1", "NaN", "much"] {
        let options = ["--noise", "random-label", "--sources", "b", "--level", level];
        let said = refusal(&data, &with(LABEL, &options));
        assert!(said.contains("between 0 and 1"), "{said}");
    }
}

#[test]
fn a_kind_that_does_not_fit_says_what_does() {
    let directory = TempDir::new().unwrap();
    let data = written(&directory, "data.csv", &table());
    let refused = |target: &[&'static str], options: &[&'static str]| {
        refusal(&data, &with(&with(target, &["--sources", "b"]), options))
    };
    assert!(refused(PRICE, &["--noise", "random-label"]).contains("uniform-target"));
    assert!(refused(LABEL, &["--noise", "uniform-target"]).contains("random-label"));
    assert!(refused(LABEL, &["--noise", "batch-label-flip"]).contains("chunk-label-flip"));
    assert!(refused(LABEL, &["--noise", "batch-label-shuffle"]).contains("chunk-label-shuffle"));
    assert!(refused(LABEL, &["--noise", "human-labels"]).contains("people"));
    let said = refused(LABEL, &["--noise", "exact-flip", "--features", "x"]);
    assert!(said.contains("--features"), "{said}");
    let said = refused(PRICE, &["--noise", "added-noise", "--features", "label"]);
    assert!(said.contains("\"label\" is categorical"), "{said}");
    let said = refused(LABEL, &["--noise", "chunk-shuffle", "--features", "x"]);
    assert!(said.contains("needs 2 numeric"), "{said}");
    let said = refused(LABEL, &["--noise", "uniform-target", "--task", "regression"]);
    assert!(said.contains("row 1, column \"label\": expected a number, found \"no\""), "{said}");
    let said = refused(LABEL, &["--noise", "added-noise", "--features", "y"]);
    assert!(said.contains("no column \"y\""), "{said}");
}

#[test]
fn names_that_promise_another_format_are_refused() {
    let directory = TempDir::new().unwrap();
    let data = written(&directory, "data.csv", &table());
    let options = |out| with(LABEL, &["--noise", "exact-flip", "--sources", "b", "--out", out]);
    assert!(refusal(&data, &options("x.parquet")).contains(".csv"));
    assert!(refusal(&data, &options("x.tsv.zst")).contains("tabs"));
    let parquet = write_parquet(&directory);
    assert!(refusal(&parquet, &options("x.tsv")).contains(".csv"));
    assert!(refusal(&parquet, &options("x.parquet.gz")).contains("compressed within"));
    let said = refusal(&data, &["--noise", "exact-flip", "--sources", "b"]);
    assert!(said.contains("--target COLUMN is needed"), "{said}");
}

/// The table above and a list of numbers in each row, in row groups of 150 rows; x is missing in every fifth.
fn write_parquet(directory: &TempDir) -> PathBuf {
    use arrow_array::types::Float32Type;
    use arrow_array::{ArrayRef, Float64Array, Int32Array, ListArray, RecordBatch, StringArray};
    use std::sync::Arc;
    let rows = fields(&table());
    let column = |at: usize| rows.iter().map(move |row| row[at].as_str());
    let number = |at: usize| column(at).map(|text| text.parse().ok());
    let x = number(0).enumerate().map(|(row, x): (usize, Option<f64>)| x.filter(|_| row % 5 != 4));
    let lists = (0..400).map(|row| Some((0..row % 6 + 1).map(|at| Some(at as f32))));
    let columns: [(&str, ArrayRef); 6] = [
        ("x", Arc::new(Float64Array::from_iter(x))),
        ("z", Arc::new(Int32Array::from_iter_values(column(1).map(|z| z.parse().unwrap())))),
        ("site", Arc::new(StringArray::from_iter_values(column(2)))),
        ("label", Arc::new(StringArray::from_iter_values(column(3)))),
        ("price", Arc::new(Float64Array::from_iter(number(4)))),
        ("wave", Arc::new(ListArray::from_iter_primitive::<Float32Type, _, _>(lists))),
    ];
    let batch = RecordBatch::try_from_iter(columns).unwrap();
    let path = directory.path().join("data.parquet");
    let properties = parquet::file::properties::WriterProperties::builder()
        .set_max_row_group_row_count(Some(150))
        .build();
    let mut writer = parquet::arrow::ArrowWriter::try_new(
        fs::File::create(&path).unwrap(),
        batch.schema(),
        Some(properties),
    )
    .unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
    path
}

fn read_parquet(path: &Path) -> arrow_array::RecordBatch {
    let file = fs::File::open(path).unwrap();
    let reader = parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder::try_new(file);
    reader.unwrap().with_batch_size(1000).build().unwrap().next().unwrap().unwrap()
}

#[test]
fn parquet_was_refused_with_advice_that_could_not_be_followed() {
    use arrow_array::cast::AsArray;
    let directory = TempDir::new().unwrap();
    let data = write_parquet(&directory);
    let out = directory.path().join("noisy.parquet");
    let options = ["--noise", "exact-flip", "--sources", "b,d", "--level", "0.25"];
    let to_file = with(&with(LABEL, &options), &["--out", out.to_str().unwrap()]);
    let (_, said) = output(&data, &to_file);
    assert_eq!(said, "exact-flip: changed 50 of 200 rows (\"b\" 25 of 100, \"d\" 25 of 100)\n");
    let (old, new) = (read_parquet(&data), read_parquet(&out));
    assert_eq!(old.schema(), new.schema());
    for column in [0, 1, 2, 4, 5] {
        assert_eq!(old.column(column), new.column(column));
    }
    let texts = |batch: &arrow_array::RecordBatch, column: usize| -> Vec<String> {
        let texts = batch.column(column).as_string::<i32>();
        texts.iter().map(|text| text.unwrap().to_owned()).collect()
    };
    let (labels, sites) = (texts(&new, 3), texts(&new, 2));
    let changed = |site: &str| {
        let labels = texts(&old, 3).into_iter().zip(&labels).zip(&sites);
        labels.filter(|((old, new), of)| of.as_str() == site && old != *new).count()
    };
    assert_eq!(["a", "b", "c", "d"].map(changed), [0, 25, 0, 25]);
    // The noise is that of the same table as CSV.
    let csv = written(&directory, "data.csv", &table());
    let of_csv: Vec<String> = fields(&output(&csv, &with(LABEL, &options)).0)
        .into_iter()
        .map(|row| row[3].clone())
        .collect();
    assert_eq!(labels, of_csv);
    // Without a file it goes to standard output, byte by byte the same.
    let printed = corrupt(&data, &with(LABEL, &options)).assert().success().get_output().clone();
    assert_eq!(printed.stdout, fs::read(&out).unwrap());
    assert!(refusal(&data, &to_file).contains("--force"));
}

#[test]
fn numbers_of_parquet_get_noise_and_whole_ones_stay_whole() {
    use arrow_array::Array;
    use arrow_array::cast::AsArray;
    use arrow_array::types::{Float64Type, Int32Type};
    let directory = TempDir::new().unwrap();
    let data = write_parquet(&directory);
    let out = directory.path().join("noisy.parquet");
    for noise in ["added-noise", "replace-with-noise", "chunk-shuffle"] {
        let options =
            ["--noise", noise, "--sources", "b", "--out", out.to_str().unwrap(), "--force"];
        let (_, said) = output(&data, &with(LABEL, &options));
        let (old, new) = (read_parquet(&data), read_parquet(&out));
        assert_eq!(old.schema(), new.schema());
        for column in [2, 3, 5] {
            assert_eq!(old.column(column), new.column(column), "{noise}");
        }
        assert_eq!(old.column(0).nulls(), new.column(0).nulls(), "{noise}");
        let double = |batch: &arrow_array::RecordBatch| {
            batch.column(0).as_primitive::<Float64Type>().iter().collect::<Vec<_>>()
        };
        let whole = |batch: &arrow_array::RecordBatch| {
            batch.column(1).as_primitive::<Int32Type>().values().to_vec()
        };
        let differ = |row: usize| {
            double(&old)[row] != double(&new)[row] || whole(&old)[row] != whole(&new)[row]
        };
        assert!((0..400).filter(|row| row % 4 != 1).all(|row| !differ(row)), "{noise}");
        assert!((0..400).filter(|&row| differ(row)).count() > 50, "{noise}: {said}");
    }
    let price = with(PRICE, &["--noise", "uniform-target", "--sources", "b"]);
    let options = with(&price, &["--out", out.to_str().unwrap(), "--force"]);
    assert!(output(&data, &options).1.contains("changed 100 of 100 rows"));
    let z =
        ["--target", "z", "--task", "regression", "--noise", "uniform-target", "--sources", "b"];
    let (_, said) = output(&data, &with(&z, &["--out", out.to_str().unwrap(), "--force"]));
    let column = |path: &Path| read_parquet(path).column(1).clone();
    let (old, new) = (column(&data), column(&out));
    let values = new.as_primitive::<Int32Type>().values();
    assert!(values.iter().all(|z| (0..=6).contains(z)));
    let changed = old.as_primitive::<Int32Type>().values().iter().zip(values);
    let changed = changed.filter(|(old, new)| old != new).count();
    assert!(said.contains(&format!("changed {changed} of 100 rows")), "{changed}: {said}");
}

#[test]
fn what_cannot_be_done_to_parquet_is_said_and_leaves_nothing_behind() {
    let directory = TempDir::new().unwrap();
    let data = write_parquet(&directory);
    let csv = directory.path().join("noisy.csv");
    let labels = ["--noise", "exact-flip", "--sources", "b", "--out", csv.to_str().unwrap()];
    let said = refusal(&data, &with(LABEL, &labels));
    assert!(said.contains("\"wave\" is a list of numbers, which CSV does not have"), "{said}");
    let inputs = ["--noise", "added-noise", "--sources", "b", "--features", "wave"];
    let said = refusal(&data, &with(LABEL, &inputs));
    assert!(
        said.contains("changes single numbers") && said.contains("\"wave\" is vector"),
        "{said}"
    );
    let words = ["--noise", "token-permutation", "--sources", "b", "--features", "z"];
    let said = refusal(&data, &with(LABEL, &words));
    assert!(said.contains("changes texts, and the column \"z\" holds none"), "{said}");
    let mut damaged = fs::read(&data).unwrap();
    damaged[4..40].fill(0xff);
    fs::write(&data, damaged).unwrap();
    let out = directory.path().join("noisy.parquet");
    let labels = ["--noise", "exact-flip", "--sources", "b", "--out", out.to_str().unwrap()];
    assert!(refusal(&data, &with(LABEL, &labels)).contains("data.parquet"));
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1, "nothing is left behind");
}

/// 40 pictures of 8 × 8 pixels of two classes, from the sources a and b.
fn write_folder(directory: &TempDir) -> PathBuf {
    let folder = directory.path().join("photos");
    let mut list = "file,source\n".to_owned();
    for at in 0..40_u8 {
        let class = ["dark", "light, too"][usize::from(at % 2)];
        fs::create_dir_all(folder.join(class)).unwrap();
        let png = lapwing_sample::png(8, 8, &[at * 5; 192]).unwrap();
        fs::write(folder.join(class).join(format!("{at}.png")), png).unwrap();
        list += &format!("\"{class}/{at}.png\",{}\n", ["a", "b"][usize::from(at / 2 % 2)]);
    }
    fs::write(folder.join("sources.csv"), list).unwrap();
    folder
}

fn corrupt_folder(folder: &Path, options: &[&str]) -> assert_cmd::assert::Assert {
    let mut command = Command::cargo_bin("lapwing").unwrap();
    command.arg("corrupt").arg(folder).args(options).current_dir(folder.parent().unwrap()).assert()
}

#[test]
fn a_folder_of_class_folders_becomes_a_table_whose_paths_lead_to_its_pictures() {
    let directory = TempDir::new().unwrap();
    let folder = write_folder(&directory);
    fs::create_dir_all(directory.path().join("tables/noisy")).unwrap();
    let out = directory.path().join("tables/noisy/photos.csv");
    let options = ["--noise", "exact-flip", "--sources", "b", "--level", "0.5"];
    let to_file = with(&options, &["--out", out.to_str().unwrap()]);
    let said = corrupt_folder(&folder, &to_file).success().get_output().stderr.clone();
    let said = String::from_utf8(said).unwrap();
    assert!(said.contains("changed 10 of 20 rows (\"b\" 10 of 20)"), "{said}");
    assert!(said.contains("--image file --target class --source source"), "{said}");
    let text = fs::read_to_string(&out).unwrap();
    let mut reader = csv::Reader::from_reader(text.as_bytes());
    assert_eq!(reader.headers().unwrap(), vec!["file", "class", "source"]);
    let rows: Vec<csv::StringRecord> = reader.records().map(Result::unwrap).collect();
    assert_eq!(rows.len(), 40);
    let mut wrong = 0;
    for row in &rows {
        assert!(row[0].starts_with("../../photos/"), "{row:?}");
        assert!(out.parent().unwrap().join(&row[0]).is_file(), "{row:?}");
        let is_wrong = !row[0].contains(&format!("photos/{}/", &row[1]));
        assert!(!is_wrong || &row[2] == "b", "{row:?}");
        wrong += usize::from(is_wrong);
    }
    assert_eq!(wrong, 10);
    // On standard output paths are those from here.
    let printed = corrupt_folder(&folder, &options).success().get_output().stdout.clone();
    assert_eq!(String::from_utf8(printed).unwrap(), text.replace("../../photos", "photos"));
    let words = "train tables/noisy/photos.csv --image file --target class --source source --epochs 1 --no-folds -q";
    let mut train = Command::cargo_bin("lapwing").unwrap();
    train.args(words.split(' ')).args(["--out", "run"]).current_dir(directory.path());
    train.assert().success();
}

#[test]
fn the_pictures_and_the_list_of_a_folder_are_never_written_to() {
    let directory = TempDir::new().unwrap();
    let folder = write_folder(&directory);
    let list = fs::read(folder.join("sources.csv")).unwrap();
    let refused = |options: &[&str]| {
        let output = corrupt_folder(&folder, options).code(2).stdout("").get_output().clone();
        String::from_utf8(output.stderr).unwrap()
    };
    let labels = ["--noise", "exact-flip", "--sources", "b", "--force", "--out"];
    for file in ["photos/sources.csv", "photos/dark/0.png"] {
        let said = refused(&with(&labels, &[file]));
        assert!(said.contains("is one of the files that"), "{said}");
    }
    assert!(refused(&with(&labels, &["photos"])).contains("photos"));
    assert!(refused(&with(&labels, &["x.parquet"])).contains(".csv"));
    assert!(refused(&with(&labels, &["x.tsv"])).contains(".csv"));
    for noise in ["added-noise", "chunk-shuffle", "token-permutation"] {
        let said = refused(&["--noise", noise, "--sources", "b", "--out", "x.csv"]);
        assert!(said.contains("are pictures") && said.contains("random-label"), "{said}");
    }
    assert_eq!(fs::read(folder.join("sources.csv")).unwrap(), list);
    fs::remove_file(folder.join("sources.csv")).unwrap();
    let said = refused(&with(&labels, &["x.csv"]));
    assert!(said.contains("no column \"source\"") && said.contains("a sources.csv"), "{said}");
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1, "nothing is left behind");
}

#[test]
fn series_that_end_early_had_gaps_after_noise() {
    let directory = TempDir::new().unwrap();
    let mut text = (0..12).fold(String::new(), |text, at| format!("{text}e_{at},"));
    text += "site,label\n";
    for row in 0..120_usize {
        for at in 0..12 {
            let value = (at < 6 + row % 7).then(|| format!("{}.25", (row * 5 + at * 3) % 40));
            text += &format!("{},", value.unwrap_or_default());
        }
        text += &format!("{},{}\n", ["a", "b", "c"][row % 3], ["yes", "no"][row / 3 % 2]);
    }
    let data = written(&directory, "data.csv", &text);
    let out = directory.path().join("noisy.csv");
    for noise in ["replace-with-noise", "chunk-shuffle"] {
        let options =
            ["--noise", noise, "--sources", "b", "--out", out.to_str().unwrap(), "--force"];
        output(&data, &with(LABEL, &options));
        let words = "train noisy.csv --target label --source site --series e_* --epochs 1 --no-folds -q --out";
        let mut train = Command::cargo_bin("lapwing").unwrap();
        train.args(words.split(' ')).arg(noise).current_dir(directory.path()).assert().success();
    }
}

#[test]
fn help_names_the_kinds_and_shows_examples() {
    let output =
        Command::cargo_bin("lapwing").unwrap().args(["corrupt", "--help"]).output().unwrap();
    let help = String::from_utf8(output.stdout).unwrap();
    for word in ["exact-flip", "uniform-target", "Examples:", "standard deviation", "--level"] {
        assert!(help.contains(word), "{word}");
    }
    assert!(!help.contains("human-labels"), "what a table cannot have is not offered");
}
