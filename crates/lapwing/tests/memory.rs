//! Tables that do not fit into the memory that they may have.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod tables;

use std::fmt::Write;
use std::time::Duration;

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

#[test]
fn killed_and_resumed_from_disk_it_ends_in_the_same_bytes_with_rows_kept_or_dealt_again() {
    let place = Place::new();
    place.write("wide.csv", &wide(40_000, 110));
    let words = "train wide.csv --target label --source site --method lap --hidden 8 --epochs 1 \
                 --batch-size 512 --no-folds --memory-limit 85MB";
    let done = place.lapwing(&format!("{words} --out whole")).assert().success();
    let said = String::from_utf8_lossy(&done.get_output().stderr).into_owned();
    assert!(said.contains("rows are on disk, ") && !said.contains("not read again"), "{said}");
    let kept = format!("{words} --cache rows.cache");
    for (run, words) in [("dealt", words), ("kept", &kept)] {
        killed(&place, words, run);
        let done = place.lapwing(&format!("train --resume {run}")).assert().success();
        let said = String::from_utf8_lossy(&done.get_output().stderr).into_owned();
        assert!(said.contains("going on from step"), "{said}");
        assert_eq!(said.contains("not read again"), run == "kept", "{said}");
        for name in ["model.safetensors", "sources.csv", "metrics.csv", "trajectory.parquet"] {
            let bytes = |run: &str| place.read(&format!("{run}/{name}"));
            assert!(bytes(run) == bytes("whole"), "{run}/{name}");
        }
    }
    assert!(place.path("rows.cache").exists());
    place.refuses(
        "train wide.csv --target label --source site --cache rows.cache",
        &["there is no memory limit"],
    );
    place.refuses(&format!("{words} --cache wide.csv"), &["wide.csv is there", "not replaced"]);
}
