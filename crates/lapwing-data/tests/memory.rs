//! Rows on disk are the rows of the file, each once, whatever their order.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use std::fmt::Write;

use lapwing_data::{BLOCK, DataError, Dataset, Disk, InputKind, Memory, ReadOptions, Targets};
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
        let disk = Some(Disk { place: place.path().to_owned(), seed });
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
    assert!(said.contains("9900 rows need about 1.3 MB of memory, and there are 1.1 MB"), "{said}");
}
