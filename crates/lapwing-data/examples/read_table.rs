//! Reads a table, fits the preprocessing and encodes every row once, in batches; prints time and peak memory.
//!
//! ```sh
//! cargo run --release -p lapwing-data --example read_table -- make table.csv 1000000 20   # writes a table to try it on
//! cargo run --release -p lapwing-data --example read_table -- table.csv target source
//! ```
#![allow(clippy::print_stdout)]

use std::error::Error;
use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::time::Instant;

use lapwing_data::{Dataset, Encoder, EncoderConfig, ReadOptions, Split, SplitConfig};
use lapwing_sample::{Draws, Samples, View};

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["make", path, rows, columns] => make(path, rows.parse()?, columns.parse()?),
        [path, target, source] => read(path, target, source),
        _ => Err("expected: make FILE ROWS COLUMNS, or FILE TARGET SOURCE".into()),
    }
}

fn make(path: &str, rows: u32, columns: u32) -> Result<(), Box<dyn Error>> {
    let mut draws = Draws::seeded(0);
    let mut out = BufWriter::new(File::create(path)?);
    let names: Vec<String> = (0..columns).map(|column| format!("x{column}")).collect();
    writeln!(out, "{},source,target", names.join(","))?;
    for row in 0..rows {
        for _ in 0..columns {
            write!(out, "{:.6},", draws.unit() * 200.0 - 100.0)?;
        }
        writeln!(out, "site-{},{}", row % 50, u8::from(draws.unit() < 0.3))?;
    }
    Ok(out.flush()?)
}

fn read(path: &str, target: &str, source: &str) -> Result<(), Box<dyn Error>> {
    let start = Instant::now();
    let dataset = Dataset::read(path, &ReadOptions::new(target, source))?;
    for column in &dataset.schema.columns {
        let (kind, role, distinct) = (column.kind, column.role, column.distinct);
        let about = if distinct.exact { "" } else { "~" };
        let note = column.note.as_deref().unwrap_or_default();
        println!(
            "{:<24} {kind:<12} {role:<36} missing {:<8} distinct {about}{:<10} {note}",
            column.name, column.missing, distinct.count
        );
    }
    for warning in &dataset.warnings {
        println!("warning: {warning}");
    }
    println!(
        "{}: {} rows, {} sources, dropped: {}",
        dataset.schema.task,
        dataset.len(),
        dataset.sources.names.len(),
        dataset.dropped
    );
    report("read", start);

    let start = Instant::now();
    let split = Split::new(&dataset.target, &SplitConfig::default())?;
    let encoder = Encoder::fit(&dataset, &split.train, &EncoderConfig::default());
    report("split and fitted", start);

    let start = Instant::now();
    let rows = encoder.bind(&dataset.table)?;
    let mut sum = 0.0;
    for indices in split.train.chunks(512) {
        let batch = rows.gather(indices, View::Plain)?.into_floats().unwrap_or_default();
        sum += batch.into_iter().map(f64::from).sum::<f64>();
    }
    println!(
        "{} training rows of width {}, mean {:.3e}",
        split.train.len(),
        encoder.width(),
        sum / (split.train.len() * encoder.width()) as f64
    );
    report("encoded", start);
    Ok(())
}

fn report(what: &str, start: Instant) {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let peak =
        status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap_or("unknown").trim();
    println!("{what} in {:.2} s, peak memory {peak}", start.elapsed().as_secs_f64());
}
