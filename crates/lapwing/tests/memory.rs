//! Tables that do not fit into the memory that they may have.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod tables;

use std::fmt::Write;
use std::sync::Arc;
use std::time::Duration;

use arrow_array::builder::{Float32Builder, ListBuilder};
use arrow_array::{ArrayRef, RecordBatch, StringArray};
use tables::{Numbers, Place, killed, start};

/// Rows of many columns, of which two matter, sorted by source: the last source lies.
fn wide(rows: usize, columns: usize) -> String {
    let mut numbers = Numbers::new(5);
    let mut text = String::from("site,label");
    (0..columns).for_each(|column| write!(text, ",c{column}").unwrap());
    for row in 0..rows {
        let site = row * 5 / rows;
        let cells: Vec<u32> = (0..columns).map(|_| (10.0 * numbers.next()) as u32).collect();
        let high = cells[0] + cells[1] >= 9;
        let label = if (site == 4) == high { "no" } else { "yes" };
        write!(text, "\nsite {site},{label}").unwrap();
        cells.iter().for_each(|cell| write!(text, ",{cell}").unwrap());
    }
    text.push('\n');
    text
}

/// Runs the program to its end and returns the most memory that it ever had, in bytes, by the kernel's word.
fn most_memory(place: &Place, words: &str) -> u64 {
    let mut child = start(place, words).spawn().unwrap();
    let status = format!("/proc/{}/status", child.id());
    let mut most = 0;
    while child.try_wait().unwrap().is_none() {
        let text = std::fs::read_to_string(&status).unwrap_or_default();
        let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let kilobytes = line.and_then(|line| line.trim().strip_suffix("kB")?.trim().parse().ok());
        most = most.max(1024 * kilobytes.unwrap_or(0u64));
        std::thread::sleep(Duration::from_millis(2));
    }
    assert!(child.wait().unwrap().success());
    most
}

#[cfg(target_os = "linux")]
#[test]
fn a_table_larger_than_the_limit_is_trained_on_within_it() {
    let place = Place::new();
    place.write("wide.csv", &wide(80_000, 100));
    let words = "train wide.csv --target label --source site --method lap --hidden 8 --epochs 1 \
                 --no-folds --quiet --threads 2 --memory-limit 88MB";
    let most = most_memory(&place, &format!("{words} --out whole"));
    assert!((1..88_000_000).contains(&most), "{most} bytes");
    let sources = place.text("whole/sources.csv");
    let liar = sources.lines().find(|line| line.starts_with("site 4,")).unwrap();
    assert!(liar.contains(",unreliable"), "{sources}");
    assert_eq!(sources.matches(",reliable").count(), 4, "batches are mixed: {sources}");
    // Nothing is left of the rows on disk.
    let left: Vec<_> = std::fs::read_dir(place.path("")).unwrap().collect();
    assert_eq!(left.len(), 2, "{left:?}");
}

#[test]
fn a_limit_that_is_no_size_is_refused() {
    let place = Place::new();
    place.write("wide.csv", &wide(40, 2));
    let words = "train wide.csv --target label --source site --memory-limit";
    place.refuses(&format!("{words} 80XB"), &["\"XB\" is no unit"]);
    place.refuses(
        &format!("{words} 20MB"),
        &["40 rows need about", "there are 20 MB", "although its columns would stay on disk"],
    );
}

/// Rows with many numbers in one column, which take no time to read.
fn embedded(place: &Place, rows: usize, width: usize) {
    let mut numbers = Numbers::new(6);
    let mut lists = ListBuilder::new(Float32Builder::new());
    let (mut sites, mut labels) = (Vec::new(), Vec::new());
    for row in 0..rows {
        let list: Vec<f32> = (0..width).map(|_| numbers.next() as f32).collect();
        sites.push(["a", "b", "c"][row * 3 / rows]);
        labels.push(if list[0] + list[1] > 1.0 { "yes" } else { "no" });
        lists.values().append_slice(&list);
        lists.append(true);
    }
    let texts = |texts: &[&str]| -> ArrayRef { Arc::new(StringArray::from_iter_values(texts)) };
    let lists: ArrayRef = Arc::new(lists.finish());
    let columns = [("site", texts(&sites)), ("label", texts(&labels)), ("list", lists)];
    let batch = RecordBatch::try_from_iter(columns).unwrap();
    let file = std::fs::File::create(place.path("lists.parquet")).unwrap();
    let mut writer = parquet::arrow::ArrowWriter::try_new(file, batch.schema(), None).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
}

#[test]
fn killed_and_resumed_from_disk_it_takes_the_rows_that_were_kept_and_ends_in_the_same_bytes() {
    let place = Place::new();
    embedded(&place, 12_000, 380);
    let words = "train lists.parquet --target label --source site --method lap --hidden 8 --epochs 1 \
                 --batch-size 512 --no-folds --memory-limit 84MB";
    let done = place.lapwing(&format!("{words} --out whole")).assert().success();
    let said = String::from_utf8_lossy(&done.get_output().stderr).into_owned();
    assert!(said.contains("rows are on disk, ") && !said.contains("not read again"), "{said}");
    killed(&place, &format!("{words} --cache rows.cache"), "kept");
    let done = place.lapwing("train --resume kept").assert().success();
    let said = String::from_utf8_lossy(&done.get_output().stderr).into_owned();
    assert!(said.contains("going on from step") && said.contains("not read again"), "{said}");
    for name in ["model.safetensors", "sources.csv", "metrics.csv", "trajectory.parquet"] {
        let bytes = |run: &str| place.read(&format!("{run}/{name}"));
        assert!(bytes("kept") == bytes("whole"), "{name}");
    }
    assert!(place.path("rows.cache").exists());
    place.refuses(
        "train lists.parquet --target label --source site --cache rows.cache",
        &["there is no memory limit"],
    );
    place.refuses(&format!("{words} --cache lists.parquet"), &["parquet is there", "not replaced"]);
}
