//! The book: every chapter and every link is there, and what it says can be run runs and prints what it says.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod tables;

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;
use std::path::{Path, PathBuf};

use tables::Place;

fn source() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/book/src")
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn chapters() -> Vec<PathBuf> {
    let files = std::fs::read_dir(source()).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<PathBuf> =
        files.filter(|path| path.extension().is_some_and(|kind| kind == "md")).collect();
    files.sort();
    files
}

/// A page as mdBook makes it, with what it includes.
fn page(path: &Path) -> String {
    let text = read(path);
    let Some((before, rest)) = text.split_once("{{#include ") else { return text };
    let (included, after) = rest.split_once("}}").unwrap_or_else(|| panic!("{}", path.display()));
    let included = path.parent().unwrap().join(included);
    assert!(!after.contains("{{#"), "{}: one inclusion a page", path.display());
    format!("{before}{}{after}", read(&included))
}

/// The lines of a page that are no code. Every block of code must end.
fn prose(name: &Path, page: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut open: Option<(usize, String)> = None;
    for (number, line) in page.lines().enumerate() {
        let text = line.trim_start();
        let ticks = text.len() - text.trim_start_matches('`').len();
        match &open {
            // A block ends with as many ticks as it began with, and nothing behind them.
            Some((_, fence)) => {
                if text.trim_end() == *fence {
                    open = None;
                }
            }
            None if ticks >= 3 => open = Some((number + 1, "`".repeat(ticks))),
            None => found.push(line.to_owned()),
        }
    }
    assert_eq!(open, None, "{}: a block of code does not end", name.display());
    found
}

/// Where the links and pictures of lines lead, without what stands in code.
fn targets(lines: &[String]) -> Vec<String> {
    let mut found = Vec::new();
    for line in lines {
        let prose: String = line.split('`').step_by(2).collect();
        for part in prose.split("](").skip(1) {
            found.push(part.split(')').next().unwrap().to_owned());
        }
    }
    found
}

/// What a heading is called in links.
fn anchor(heading: &str) -> String {
    let kept = |c: &char| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_');
    let text: String = heading.to_lowercase().chars().filter(kept).collect();
    text.trim().replace(' ', "-")
}

fn anchors(lines: &[String]) -> BTreeSet<String> {
    let headings = lines.iter().filter(|line| line.starts_with('#'));
    headings.map(|line| anchor(line.trim_start_matches('#'))).collect()
}

#[test]
fn every_chapter_is_in_the_summary_and_every_link_leads_somewhere() {
    let pages: BTreeMap<String, Vec<String>> = chapters()
        .iter()
        .map(|path| (path.file_name().unwrap().to_string_lossy().into_owned(), path))
        .map(|(name, path)| (name, prose(path, &page(path))))
        .collect();
    let summary = targets(&pages["SUMMARY.md"]);
    let listed: BTreeSet<&String> = summary.iter().collect();
    assert_eq!(listed.len(), summary.len(), "a chapter is in the summary once");
    let written: BTreeSet<&String> = pages.keys().filter(|name| *name != "SUMMARY.md").collect();
    assert_eq!(listed, written);
    for (name, lines) in &pages {
        assert!(name == "SUMMARY.md" || lines[0].starts_with("# "), "{name} begins with its title");
        for target in targets(lines) {
            if target.starts_with("https://") {
                continue;
            }
            let (file, part) = target.split_once('#').unwrap_or((&target, ""));
            let file = if file.is_empty() { name } else { file };
            match pages.get(file) {
                Some(lines) => {
                    let there = part.is_empty() || anchors(lines).contains(part);
                    assert!(there, "{name}: {target}");
                }
                // What is not in the book's directory is not in the book.
                None => assert!(
                    part.is_empty() && !file.contains("..") && source().join(file).is_file(),
                    "{name}: {target}"
                ),
            }
        }
    }
}

/// Commands of a chapter that are to be run, each with the lines shown under it.
fn commands(page: &str) -> Vec<(String, Vec<String>)> {
    let mut found: Vec<(String, Vec<String>)> = Vec::new();
    let mut inside = false;
    for line in page.lines() {
        if line.starts_with("```") {
            inside = line == "```console run";
        } else if let Some(command) = line.strip_prefix("$ ").filter(|_| inside) {
            found.push((command.to_owned(), Vec::new()));
        } else if inside {
            found.last_mut().unwrap().1.push(line.to_owned());
        }
    }
    found
}

/// A line without its numbers, which depend on the machine in the last digits, and without its spaces.
fn form(line: &str) -> String {
    let mut text = String::new();
    for c in line.chars().filter(|c| !c.is_whitespace()) {
        let number =
            c.is_ascii_digit() || (text.ends_with('#') && matches!(c, '.' | ',' | 'e' | '-' | '–'));
        if number && text.ends_with('#') {
            continue;
        }
        text.push(if number { '#' } else { c });
    }
    text
}

/// What somebody has who stands in the repository: the examples of the book, and what `docs/book/pictures.py` makes.
fn examples(place: &Place) {
    let here = source().join("../examples");
    std::fs::create_dir_all(place.path("docs/book/examples")).unwrap();
    for entry in std::fs::read_dir(here).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        std::fs::copy(&path, place.path(&format!("docs/book/examples/{name}"))).unwrap();
    }
    let digits = Path::new(env!("CARGO_MANIFEST_DIR")).join("../lapwing-run/digits/digits.csv.gz");
    let mut text = String::new();
    let file = std::fs::File::open(digits).unwrap();
    flate2::read::GzDecoder::new(file).read_to_string(&mut text).unwrap();
    let row = |line: &str| line.split(',').map(|cell| cell.parse().unwrap()).collect();
    let rows: Vec<Vec<u32>> = text.lines().take(600).map(row).collect();
    std::fs::create_dir(place.path("digits")).unwrap();
    let mut table = "file,digit,clinic\n".to_owned();
    for (at, row) in rows.iter().enumerate() {
        let rgb: Vec<u8> = row[..64].iter().flat_map(|&x| [(16 * x).min(255) as u8; 3]).collect();
        let png = lapwing_sample::png(8, 8, &rgb).unwrap();
        std::fs::write(place.path(&format!("digits/{at}.png")), png).unwrap();
        let (clinic, from) = (at % 5, if at % 5 == 4 { 7 * at % 600 } else { at });
        let clinic = ["a", "b", "c", "d", "e"][clinic];
        table += &format!("digits/{at}.png,{},{clinic}\n", rows[from][64]);
    }
    place.write("digits.csv", &table);
}

/// Blocks that are marked `text file=NAME`, which somebody is to write.
fn written(page: &str) -> Vec<(String, String)> {
    let mut found: Vec<(String, String)> = Vec::new();
    let mut inside = false;
    for line in page.lines() {
        if line.starts_with("```") {
            let name = line.strip_prefix("```text file=");
            inside = name.is_some();
            found.extend(name.map(|name| (name.to_owned(), String::new())));
        } else if let (true, Some((_, text))) = (inside, found.last_mut()) {
            *text += &format!("{line}\n");
        }
    }
    found
}

#[test]
fn what_the_book_runs_runs_and_prints_what_it_shows() {
    let mut ran = 0;
    for chapter in chapters() {
        let (place, text) = (Place::new(), read(&chapter));
        if text.contains("docs/book/") {
            examples(&place);
        }
        for (name, text) in written(&text) {
            place.write(&name, &text);
        }
        for (command, shown) in commands(&text) {
            let words = command.strip_prefix("lapwing ").unwrap_or_else(|| panic!("{command}"));
            // As a shell would have it.
            let words = &words.replace('\'', "");
            let done = place.lapwing(words).assert().success();
            let output = done.get_output();
            let out = [&output.stdout[..], &output.stderr[..]].concat();
            let out = String::from_utf8(out).unwrap();
            let printed: BTreeSet<String> = out.lines().map(form).collect();
            for line in shown.iter().filter(|line| !line.is_empty() && *line != "…") {
                let (name, form) = (chapter.display(), form(line));
                assert!(
                    printed.contains(&form),
                    "{name}: `{command}` prints no such line: {line}\n{out}"
                );
            }
            ran += 1;
        }
    }
    assert!(ran >= 4, "{ran} commands");
}
