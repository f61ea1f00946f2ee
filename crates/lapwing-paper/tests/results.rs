//! docs/results is what the records in it say, and nothing else.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use std::path::Path;

use lapwing_paper::{merge, summary};

#[test]
fn the_page_of_results_is_made_from_the_records_beside_it() {
    let kept = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/results"));
    let made = tempfile::tempdir().unwrap();
    assert!(merge(made.path(), &[kept]).unwrap() > 0);
    summary(made.path()).unwrap();
    let page = |root: &Path| std::fs::read_to_string(root.join("RESULTS.md")).unwrap();
    let (kept_page, made_page) = (page(kept), page(made.path()));
    let differ = kept_page.lines().zip(made_page.lines()).find(|(old, new)| old != new);
    assert!(
        kept_page == made_page,
        "run `lapwing paper summary --out docs/results`; the first lines that differ: {differ:?}"
    );
    let figures = made_page.lines().filter_map(|line| line.strip_prefix("![")?.split_once("]("));
    for (_, place) in figures {
        let place = place.trim_end_matches(')');
        assert!(kept.join(place).is_file(), "{place} is shown and not there");
    }
    // A record that no recipe of now counts says nothing, and only looks as if it did.
    let counted = |text: &str| -> usize {
        let rows = text.lines().filter(|line| line.starts_with("| `"));
        let cells = rows.map(|line| line.split('|').map(str::trim).collect::<Vec<_>>());
        cells.map(|c| number(c[3].split(' ').next()) + number(Some(c[4]))).sum()
    };
    assert_eq!(counted(&made_page), records(&kept.join("records")), "records that do not count");
}

fn number(text: Option<&str>) -> usize {
    text.unwrap_or_default().parse().unwrap()
}

/// Files of records below a folder.
fn records(folder: &Path) -> usize {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries.map(|path| if path.is_dir() { records(&path) } else { 1 }).sum()
}
