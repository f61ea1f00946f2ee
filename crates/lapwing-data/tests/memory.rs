//! Rows on disk are the rows of the file, each once, whatever their order.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use std::fmt::Write;

use lapwing_data::{
    BLOCK, CacheError, DataError, Dataset, Disk, InputKind, Memory, ReadOptions, Targets, Task,
};
use lapwing_sample::View;

/// Two categories, a number and many small ones; every hundredth target is missing.
fn table(rows: u32, columns: u32) -> String {
    let mut text = String::from("site,label,colour,size");
    (0..columns).for_each(|column| write!(text, ",c{column}").unwrap());
    for row in 0..rows {
        let label = if row % 100 == 99 { "" } else { ["no", "yes"][row as usize % 2] };
        let colour = ["red", "", "blue"][row as usize % 3];
        write!(text, "\nsite {},{label},{colour},{}", row / 1000, row as f32 / 8.0).unwrap();
        (0..columns).for_each(|column| write!(text, ",{}", (row * 7 + column) % 10).unwrap());
    }
    text + "\n"
}

#[test]
fn a_table_on_disk_has_the_rows_of_the_file_and_one_that_may_not_is_refused_with_its_size() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("table.csv");
    std::fs::write(&path, table(10_000, 20)).unwrap();
    let options = ReadOptions::new("label", "site");
    let memory = |limit, seed| {
        let disk = Some(Disk { place: place.path().to_owned(), seed, keep: None });
        Memory { limit, program: 0, disk }
    };
    let within = |memory: &Memory| Dataset::read_within(&path, &options, Some(memory));
    let whole = Dataset::read(&path, &options).unwrap();
    assert!(!whole.is_on_disk() && !within(&memory(1 << 30, 1)).unwrap().is_on_disk());

    let on_disk = within(&memory(1_100_000, 1)).unwrap();
    assert!(on_disk.is_on_disk());
    assert_eq!(on_disk.len(), whole.len());
    assert_eq!(on_disk.sources.names, whole.sources.names);
    assert_eq!(on_disk.schema.classes, whole.schema.classes);
    let all: Vec<u32> = (0..on_disk.len() as u32).collect();
    let held = on_disk.held(&all);
    assert_eq!(held.len(), BLOCK.min(all.len()), "a block at least is in memory");

    // Where each row of the file is in memory.
    let mut places = std::collections::BTreeMap::new();
    all.iter().for_each(|&row| assert!(places.insert(whole.table.row_number(row), row).is_none()));
    let input = InputKind::Table.fit(&on_disk, held).unwrap();
    let (there, here) = (on_disk.bind(&input).unwrap(), whole.bind(&input).unwrap());
    let before: Vec<u32> =
        all.iter().map(|&row| places[&on_disk.row_number(row).unwrap()]).collect();
    let mut sorted = before.clone();
    sorted.sort_unstable();
    assert_eq!(sorted, all, "each row once");
    assert_ne!(before, all);
    let (Targets::Classes { labels: a, .. }, Targets::Classes { labels: b, .. }) =
        (&on_disk.target, &whole.target)
    else {
        panic!("classes")
    };
    for (row, &before) in before.iter().enumerate() {
        assert_eq!(a[row], b[before as usize]);
        assert_eq!(on_disk.sources.codes[row], whole.sources.codes[before as usize]);
    }
    // Rows from everywhere, some of them twice.
    let some: Vec<u32> = (0..300).map(|at| at * 7_919 % all.len() as u32).chain([5, 5]).collect();
    let same: Vec<u32> = some.iter().map(|&row| before[row as usize]).collect();
    assert_eq!(there.gather(&some, View::Plain).unwrap(), here.gather(&same, View::Plain).unwrap());
    assert_eq!(there.exhibit(9_000).unwrap(), here.exhibit(before[9_000]).unwrap());
    assert!(there.gather(&[all.len() as u32], View::Plain).is_err());
    assert!(there.blocks().is_some_and(|blocks| blocks.rows == BLOCK) && here.blocks().is_none());

    let again = within(&memory(1_100_000, 1)).unwrap();
    assert_eq!(again.sources.codes, on_disk.sources.codes);
    let other = within(&memory(1_100_000, 2)).unwrap();
    assert_ne!(other.sources.codes, on_disk.sources.codes);

    let error = within(&Memory { limit: 1_100_000, program: 0, disk: None }).unwrap_err();
    assert!(matches!(error, DataError::TooLarge { rows: 9_900, on_disk: false, .. }), "{error}");
    let said = error.to_string();
    assert!(said.contains("9900 rows need about 2.3 MB of memory, and there are 1.1 MB"), "{said}");
}

/// Everything of a table that a run could see.
fn seen(dataset: &Dataset) -> String {
    let rows: Vec<u32> = (0..dataset.len() as u32).collect();
    let input = InputKind::Table.fit(dataset, dataset.held(&rows)).unwrap();
    let gathered = dataset.bind(&input).unwrap().gather(&rows, View::Plain).unwrap();
    let numbers: Vec<u64> = rows.iter().map(|&row| dataset.row_number(row).unwrap()).collect();
    let Dataset { schema, target, sources, items, times, dropped, warnings, .. } = dataset;
    let shown = dataset.table.display(7, "colour");
    format!(
        "{numbers:?}{schema:?}{target:?}{sources:?}{items:?}{times:?}{dropped:?}{warnings:?}{shown}{gathered:?}"
    )
}

#[test]
fn rows_that_were_kept_are_taken_again_where_table_and_reading_are_the_same_and_else_made_anew() {
    let place = tempfile::tempdir().unwrap();
    let (path, keep) = (place.path().join("table.csv"), place.path().join("rows"));
    let text = table(10_000, 20);
    std::fs::write(&path, &text).unwrap();
    let memory = |seed| {
        let disk = Disk { place: place.path().to_owned(), seed, keep: Some(keep.clone()) };
        Memory { limit: 1_200_000, program: 0, disk: Some(disk) }
    };
    let plain = ReadOptions::new("label", "site");
    let timed = ReadOptions { time: Some("size".into()), ..plain.clone() };
    let read = |options: &ReadOptions, seed| {
        let dataset = Dataset::read_within(&path, options, Some(&memory(seed))).unwrap();
        (seen(&dataset), dataset.on_disk().unwrap().1)
    };
    let (first, found) = read(&timed, 1);
    assert!(!found);
    assert_eq!(read(&timed, 1), (first.clone(), true));
    // The task that was inferred may be asked for, and no other.
    let asked = |task| ReadOptions { task: Some(task), ..timed.clone() };
    assert_eq!(read(&asked(Task::Classification), 1), (first.clone(), true));
    let regression = Dataset::read_within(&path, &asked(Task::Regression), Some(&memory(1)));
    assert!(regression.is_err(), "labels are no numbers");
    // Another order, and another table.
    assert!(!read(&timed, 2).1);
    assert!(!read(&timed, 1).1);
    std::fs::write(&path, text.replacen("site 0", "site 5", 1)).unwrap();
    let other = read(&timed, 1);
    assert!(!other.1 && other.0 != first);
    std::fs::write(&path, &text).unwrap();
    assert_eq!(read(&timed, 1), (first.clone(), false));
    // Damaged, wherever it is, it is not believed.
    let bytes = std::fs::read(&keep).unwrap();
    for at in [100, bytes.len() - 30_000, bytes.len() - 50, bytes.len() - 20] {
        let mut damaged = bytes.clone();
        damaged[at] ^= 1;
        std::fs::write(&keep, &damaged).unwrap();
        assert_eq!(read(&timed, 1), (first.clone(), false), "byte {at}");
    }
    assert_eq!(std::fs::read(&keep).unwrap(), bytes);
    assert!(!read(&plain, 1).1, "read in another way");
    // No file of somebody else's is replaced.
    std::fs::write(
        &keep,
        "my only copy of something that is longer than what stands at the end of ours",
    )
    .unwrap();
    let refused = Dataset::read_within(&path, &plain, Some(&memory(1))).unwrap_err();
    assert!(matches!(refused, DataError::Cache(CacheError::Foreign(_))), "{refused}");
    assert!(std::fs::read(&keep).unwrap().starts_with(b"my only copy"));
    std::fs::remove_file(&keep).unwrap();
    // A pipe, too, instead of waiting for somebody who writes.
    if cfg!(unix) {
        assert!(std::process::Command::new("mkfifo").arg(&keep).status().unwrap().success());
        let refused = Dataset::read_within(&path, &plain, Some(&memory(1))).unwrap_err();
        assert!(matches!(refused, DataError::Cache(CacheError::Foreign(_))), "{refused}");
        std::fs::remove_file(&keep).unwrap();
    }
    // What fits is in memory, and nothing is kept.
    let roomy = Memory { limit: 1 << 30, ..memory(1) };
    assert!(Dataset::read_within(&path, &plain, Some(&roomy)).unwrap().on_disk().is_none());
    assert!(!keep.exists());
}
