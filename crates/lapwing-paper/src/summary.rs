//! RESULTS.md: ours beside the paper's, from records alone.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::cell::{Cell, Form, Selection};
use crate::error::PaperError;
use crate::figure::figure;
use crate::recipe::{FigureKind, Kind, Recipe, Version, recipes};
use crate::record::Records;
use crate::table::{Entry, Results, Statistics, metric_name};

/// Writes `RESULTS.md`, `results.json` and the figures of all experiments that were run; gives the paths of what was
/// written.
pub fn summary(out: &Path) -> Result<Vec<PathBuf>, PaperError> {
    let records = Records::new(out);
    let (mut text, mut numbers, mut written) = (HEAD.to_owned(), Vec::new(), Vec::new());
    let mut missing = Vec::new();
    for version in [Version::Code, Version::Paper] {
        for recipe in recipes(version)? {
            let mut any = false;
            for form in forms(&recipe, version, &records)? {
                let results = Results::gather(&recipe, version, form, &records)?;
                if results.is_empty() {
                    continue;
                }
                any = true;
                let figures = write_figures(&results, out)?;
                section(&mut text, &results, &figures, out);
                numbers.extend(results.entries.iter().filter_map(|entry| number(&results, entry)));
                written.extend(figures);
            }
            if !any && version == Version::Code {
                missing.push(format!("`{}` ({})", recipe.id, recipe.shows));
            }
        }
    }
    if !missing.is_empty() {
        let _ = write!(text, "\n## Not run\n\n{}.\n", missing.join(", "));
    }
    let json = serde_json::to_string_pretty(&serde_json::json!({ "results": numbers }));
    let json = json.map_err(|error| PaperError::Usage(error.to_string()))? + "\n";
    for (name, content) in [("RESULTS.md", text), ("results.json", json)] {
        written.push(write(out, name, content.as_bytes())?);
    }
    Ok(written)
}

const HEAD: &str = "\
# The paper's experiments, run again

Every number of ours comes from a record of a real run below `records/`; this page is made from them by
`lapwing paper summary`. A cell shows our mean ± sample standard deviation (number of runs), then the paper's, then
the difference in standard errors, √(s²/n + s′²/n′); where one side is a single run, the spread of the other stands in.
Smaller runs are not compared. A dash means that there is no such number. Where the paper's text and its authors' code differ, the code is followed,
unless the heading says otherwise.
";

/// The forms to tell of: those in which the experiment, or what it is derived from, was run.
fn forms(recipe: &Recipe, version: Version, records: &Records) -> Result<Vec<Form>, PaperError> {
    if recipe.kind != Kind::Derived {
        return records.forms(&recipe.id, version);
    }
    let mut forms = Vec::new();
    for id in &recipe.from {
        forms.extend(records.forms(id, version)?);
    }
    forms.sort();
    forms.dedup();
    Ok(forms)
}

fn section(text: &mut String, results: &Results, figures: &[PathBuf], out: &Path) {
    let Results { recipe, version, form, records, entries } = results;
    let as_text = if *version == Version::Paper { ", as the text says" } else { "" };
    let _ = writeln!(text, "\n## {}: {}{as_text}\n", recipe.shows, recipe.title);
    let _ = writeln!(text, "{}", extent(recipe, *form, records.len()));
    let seconds: Vec<f64> = records.iter().map(|record| record.seconds).collect();
    if let Some(Statistics { mean, runs, .. }) = Statistics::of(&seconds) {
        let _ = writeln!(text, "{runs} runs, {} each: `{}`.", duration(mean), command(results));
    }
    let failures = records.iter().filter(|record| record.failure.is_some());
    for record in failures {
        let failure = record.failure.as_deref().unwrap_or_default();
        let _ = writeln!(text, "- {} failed: {failure}", record.cell);
    }
    for note in &recipe.notes {
        let _ = writeln!(text, "- {note}");
    }
    let _ = writeln!(text);
    match recipe.figure {
        // One column per source says more than five tables.
        Some(FigureKind::Weights) => {
            let name = |entry: &Entry| metric_name(&entry.metric);
            matrix(text, "setting", entries, name);
        }
        _ => {
            let mut metrics: Vec<&str> = Vec::new();
            for entry in entries {
                if !metrics.contains(&entry.metric.as_str()) {
                    metrics.push(&entry.metric);
                }
            }
            for metric in metrics {
                let of_metric: Vec<Entry> =
                    entries.iter().filter(|entry| entry.metric == metric).cloned().collect();
                if of_metric.iter().any(|entry| entry.ours.is_some()) {
                    matrix(text, &metric_name(metric), &of_metric, |e| e.method_name.clone());
                }
            }
        }
    }
    for figure in figures.iter().filter(|path| path.extension().is_some_and(|e| e == "png")) {
        let place = figure.strip_prefix(out).unwrap_or(figure).display();
        let _ = writeln!(text, "![{}]({place})\n", recipe.title);
    }
}

/// What to type for the same runs.
fn command(results: &Results) -> String {
    let Results { recipe, version, form, records, .. } = results;
    let mut words = format!("lapwing paper {}", recipe.id);
    let mut choose = |flag: &str, all: Vec<&str>, run: fn(&Cell) -> &str| {
        let chosen = |id: &&str| records.iter().any(|record| run(&record.cell) == *id);
        let some: Vec<&str> = all.iter().copied().filter(chosen).collect();
        if some.len() < all.len() {
            let _ = write!(words, " {flag} {}", some.join(","));
        }
    };
    let conditions = recipe.conditions.iter().map(|condition| condition.id.as_str()).collect();
    choose("--noise", conditions, |cell| &cell.condition);
    let methods = recipe.methods.iter().map(|method| method.id.as_str()).collect();
    choose("--methods", methods, |cell| &cell.method);
    let runs = records.iter().map(|record| record.cell.run + 1).max().unwrap_or(0);
    if runs != recipe.runs {
        let _ = write!(words, " --runs {runs}");
    }
    if let Some(rows) = form.limit_train {
        let _ = write!(words, " --limit-train {rows}");
    }
    if let Some(epochs) = form.epochs {
        let _ = write!(words, " --epochs {epochs}");
    }
    if *version == Version::Paper {
        words.push_str(" --as paper");
    }
    words
}

/// A table of entries, rows by condition, columns by `column`. Those of which nothing was run are left out.
fn matrix(text: &mut String, corner: &str, entries: &[Entry], column: impl Fn(&Entry) -> String) {
    let (mut rows, mut columns): (Vec<&str>, Vec<String>) = (Vec::new(), Vec::new());
    for entry in entries.iter().filter(|entry| entry.ours.is_some() || entry.failures > 0) {
        if !rows.contains(&entry.condition_name.as_str()) {
            rows.push(&entry.condition_name);
        }
        if !columns.contains(&column(entry)) {
            columns.push(column(entry));
        }
    }
    let _ = writeln!(text, "| {corner} | {} |", columns.join(" | "));
    let _ = writeln!(text, "|---|{}", "---|".repeat(columns.len()));
    for row in rows {
        let _ = write!(text, "| {row} |");
        for name in &columns {
            let entry = entries.iter().find(|e| e.condition_name == row && column(e) == *name);
            let _ = write!(text, " {} |", entry.map_or_else(|| "–".to_owned(), cell));
        }
        let _ = writeln!(text);
    }
    let _ = writeln!(text);
}

/// Ours, the paper's, and their difference.
fn cell(entry: &Entry) -> String {
    let ours = entry
        .ours
        .as_ref()
        .map_or_else(|| "–".to_owned(), |s| format!("**{}**", shown(s, &entry.metric)));
    let paper = entry.paper.as_ref().map_or_else(|| "–".to_owned(), |s| shown(s, &entry.metric));
    let difference =
        entry.difference.map_or_else(String::new, |number| format!("<br>{}", signed(number)));
    let failures = match entry.failures {
        0 => String::new(),
        failures => format!(", {failures} failed"),
    };
    format!("{ours}{failures}<br>{paper}{difference}")
}

/// `83.52 ± 0.21 (5)`: shares in per cent with two decimals, others with as many as their size needs.
pub fn shown(statistics: &Statistics, metric: &str) -> String {
    let Statistics { mean, std, runs } = statistics;
    let per_cent = ["gain", "top-", "recall-"].iter().any(|part| metric.contains(part));
    let decimals = match mean.abs() {
        _ if per_cent => 2,
        _ if mean.fract() == 0.0 && std.is_none() => 0,
        size if size >= 1000.0 => 0,
        size if size >= 10.0 => 2,
        _ => 4,
    };
    let text = match std {
        Some(std) => format!("{mean:.decimals$} ± {std:.decimals$} ({runs})"),
        None => format!("{mean:.decimals$} ({runs})"),
    };
    text.replace('-', "−")
}

/// `+1.2` or `−0.4`, with a real minus sign.
pub fn signed(difference: f64) -> String {
    let sign = if difference < 0.0 { '−' } else { '+' };
    format!("{sign}{:.1}", difference.abs())
}

/// In what form an experiment was run and how much of it, in a sentence.
fn extent(recipe: &Recipe, form: Form, runs: usize) -> String {
    let epochs = recipe.training.as_ref().map_or(0, |training| training.epochs);
    let all = Selection::default().cells(recipe).map_or(0, |cells| cells.len());
    match (form.limit_train, form.epochs) {
        (None, None) if runs < all => format!("Runs of full length, {runs} of {all}."),
        (None, None) => "In full.".to_owned(),
        (Some(rows), None) => format!("**Reduced**: {rows} samples to train on."),
        (None, Some(few)) => format!("**Reduced**: {few} epochs instead of {epochs}."),
        (Some(rows), Some(few)) => {
            format!("**Reduced**: {rows} samples to train on, {few} epochs instead of {epochs}.")
        }
    }
}

fn duration(seconds: f64) -> String {
    match seconds {
        s if s < 10.0 => format!("{s:.1} s"),
        s if s < 120.0 => format!("{s:.0} s"),
        s => format!("{:.0} min", s / 60.0),
    }
}

/// A number as in the list of the paper's results.
#[derive(Debug, Serialize)]
struct Number {
    experiment: String,
    noise: String,
    method: String,
    metric: String,
    mean: f64,
    std: Option<f64>,
    n_runs: usize,
    version: &'static str,
    form: Form,
    paper_mean: Option<f64>,
    paper_std: Option<f64>,
    standard_errors: Option<f64>,
}

fn number(results: &Results, entry: &Entry) -> Option<Number> {
    let ours = entry.ours?;
    Some(Number {
        experiment: results.recipe.id.clone(),
        noise: entry.condition_name.clone(),
        method: entry.method_name.clone(),
        metric: entry.metric.clone(),
        mean: ours.mean,
        std: ours.std,
        n_runs: ours.runs,
        version: results.version.word(),
        form: results.form,
        paper_mean: entry.paper.map(|paper| paper.mean),
        paper_std: entry.paper.and_then(|paper| paper.std),
        standard_errors: entry.difference,
    })
}

/// Draws the figure of an experiment, as SVG and PNG.
pub fn write_figures(results: &Results, out: &Path) -> Result<Vec<PathBuf>, PaperError> {
    let Some(figure) = figure(&results.recipe, &results.records) else { return Ok(Vec::new()) };
    let name = match crate::cell::folder(results.form, results.version).as_str() {
        "full" => figure.name,
        other => format!("{}-{other}", figure.name),
    };
    let png = figure
        .picture
        .png()
        .map_err(|problem| PaperError::Figure { name: name.clone(), problem })?;
    Ok(vec![
        write(out, &format!("{name}.svg"), figure.picture.svg().as_bytes())?,
        write(out, &format!("{name}.png"), &png)?,
    ])
}

fn write(out: &Path, name: &str, content: &[u8]) -> Result<PathBuf, PaperError> {
    let path = out.join(name);
    let failed = |error| PaperError::File { path: path.clone(), error };
    std::fs::create_dir_all(out).map_err(failed)?;
    lapwing_store::replace(&path, &[content])?;
    Ok(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short_and_signed() {
        let shown = |mean, std, runs, metric| shown(&Statistics { mean, std, runs }, metric);
        assert_eq!(shown(83.524, Some(0.21), 5, "max-top-1"), "83.52 ± 0.21 (5)");
        assert_eq!(shown(-3.79081, Some(0.126), 2, "gain"), "−3.79 ± 0.13 (2)");
        assert_eq!(shown(0.43941, Some(0.0222), 5, "min-mse"), "0.4394 ± 0.0222 (5)");
        assert_eq!(shown(1475.0, None, 1, "unreliability-3"), "1475 (1)");
        assert_eq!([1.26, -0.44].map(signed), ["+1.3", "−0.4"]);
    }

    #[test]
    fn a_part_is_not_called_the_whole() {
        let recipe = crate::recipe::recipe("california", Version::Code).unwrap();
        assert_eq!(extent(&recipe, Form::FULL, 20), "In full.");
        assert_eq!(extent(&recipe, Form::FULL, 4), "Runs of full length, 4 of 20.");
        let few = Form { epochs: Some(5), ..Form::FULL };
        assert_eq!(extent(&recipe, few, 20), "**Reduced**: 5 epochs instead of 200.");
    }

    #[test]
    fn nothing_run_nothing_claimed() {
        let dir = tempfile::tempdir().unwrap();
        let written = summary(dir.path()).unwrap();
        assert_eq!(written.len(), 2);
        let text = std::fs::read_to_string(dir.path().join("RESULTS.md")).unwrap();
        assert!(text.contains("Not run") && !text.contains("| "), "{text}");
    }
}
