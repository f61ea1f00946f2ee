//! The book: every chapter and every link is there, and what it says can be run runs and prints what it says.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod tables;

use std::collections::BTreeSet;
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

/// Where the links and pictures of a page lead, without what stands in code.
fn targets(page: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut code = false;
    for line in page.lines() {
        if line.trim_start().starts_with("```") {
            code = !code;
        }
        if code {
            continue;
        }
        let prose: String = line.split('`').step_by(2).collect();
        for part in prose.split("](").skip(1) {
            found.push(part.split(')').next().unwrap().to_owned());
        }
        if let Some((_, rest)) = line.split_once("{{#include ") {
            found.push(rest.split("}}").next().unwrap().to_owned());
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

#[test]
fn every_chapter_is_in_the_summary_and_every_link_leads_somewhere() {
    let listed: BTreeSet<String> =
        targets(&read(&source().join("SUMMARY.md"))).into_iter().collect();
    let written: BTreeSet<String> = chapters()
        .iter()
        .map(|path| path.file_name().unwrap().to_string_lossy().into_owned())
        .filter(|name| name != "SUMMARY.md")
        .collect();
    assert_eq!(listed, written);
    for chapter in chapters() {
        for target in targets(&read(&chapter)) {
            if target.starts_with("https://") {
                continue;
            }
            let (file, part) = target.split_once('#').unwrap_or((&target, ""));
            let path = if file.is_empty() { chapter.clone() } else { source().join(file) };
            assert!(path.exists(), "{}: {target}", chapter.display());
            if !part.is_empty() {
                let page = read(&path);
                let mut headings = page.lines().filter(|line| line.starts_with('#'));
                let there = headings.any(|line| anchor(line.trim_start_matches('#')) == part);
                assert!(there, "{}: {target}", chapter.display());
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

#[test]
fn what_the_book_runs_runs_and_prints_what_it_shows() {
    let mut ran = 0;
    for chapter in chapters() {
        let place = Place::new();
        for (command, shown) in commands(&read(&chapter)) {
            let words = command.strip_prefix("lapwing ").unwrap_or_else(|| panic!("{command}"));
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
