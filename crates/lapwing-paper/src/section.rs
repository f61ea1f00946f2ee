//! An experiment in RESULTS.md: how much of it was run, its notes, tables and figures.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use crate::cell::{Cell, Form, Selection};
use crate::claim::LEVEL;
use crate::error::PaperError;
use crate::recipe::{FigureKind, Kind, Recipe, Version, recipe};
use crate::search::choice;
use crate::table::{Entry, Results, Statistics, metric_name};

/// Writes the section of an experiment in one form.
pub(crate) fn section(
    text: &mut String,
    results: &Results,
    figures: &[PathBuf],
    out: &Path,
) -> Result<(), PaperError> {
    let Results { recipe, version, form, records, entries } = results;
    let as_text = if *version == Version::Paper { ", as the text says" } else { "" };
    let extent = extent(results)?;
    let shows = capital(&recipe.shows);
    let _ = writeln!(text, "\n## {shows}: {}{as_text} ({extent})\n", recipe.title);
    if let Some(reduced) = reduced(recipe, *form)? {
        let _ = writeln!(text, "{reduced}");
    }
    let seconds: Vec<f64> = records.iter().map(|record| record.seconds).collect();
    if let Some(Statistics { mean, .. }) = Statistics::of(&seconds) {
        let _ = writeln!(text, "{} each: `{}`.", duration(mean), command(results));
    }
    if let Some(beyond) = beyond(entries) {
        let _ = writeln!(text, "{beyond}");
    }
    let failures = records.iter().filter(|record| record.failure.is_some());
    for record in failures {
        let failure = record.failure.as_deref().unwrap_or_default();
        let _ = writeln!(text, "- {} failed: {failure}", record.cell);
    }
    for note in &recipe.notes {
        let _ = writeln!(text, "- {note}");
    }
    for counted in recipe.counts.iter().filter_map(|count| count.words(recipe, records)) {
        let _ = writeln!(text, "- {counted}");
    }
    for chosen in choice(results) {
        let _ = writeln!(text, "- {chosen}");
    }
    // Conclusions of the paper stand in a table of their own.
    if recipe.is_beyond() {
        for claim in &recipe.claims {
            let found = claim.words(recipe, records);
            let _ = writeln!(text, "- {}: {}.", claim.says, found.as_deref().unwrap_or("not run"));
        }
    }
    let _ = writeln!(text);
    tables(text, results);
    for figure in figures.iter().filter(|path| path.extension().is_some_and(|e| e == "png")) {
        let place = figure.strip_prefix(out).unwrap_or(figure).display();
        let _ = writeln!(text, "![{}]({place})\n", recipe.title);
    }
    Ok(())
}

/// With a capital letter, as a heading begins.
fn capital(words: &str) -> String {
    let mut letters = words.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

/// The tables: of the kind that suits the experiment.
fn tables(text: &mut String, results: &Results) {
    let Results { recipe, entries, .. } = results;
    let alone = recipe.paper.numbers.is_empty();
    let row = |entry: &Entry| entry.condition_name.clone();
    // One column per source says more than five tables.
    if recipe.figure == Some(FigureKind::Weights) {
        return matrix(text, "setting", entries, alone, row, |entry| metric_name(&entry.metric));
    }
    let mut metrics: Vec<&str> = Vec::new();
    for entry in entries.iter().filter(|entry| entry.ours.is_some()) {
        if !metrics.contains(&entry.metric.as_str()) {
            metrics.push(&entry.metric);
        }
    }
    for metric in metrics {
        let of_metric = entries.iter().filter(|entry| entry.metric == metric);
        let name = metric_name(metric);
        if recipe.grid.is_none() {
            let of_metric: Vec<Entry> = of_metric.cloned().collect();
            matrix(text, &name, &of_metric, alone, row, |entry| entry.method_name.clone());
            continue;
        }
        // A row of 48 points says less than a table of them.
        let part = |entry: &Entry, at: usize| {
            let (row, column) = entry.condition_name.rsplit_once(", ").unwrap_or_default();
            [row, column][at].to_owned()
        };
        for method in &recipe.methods {
            let of_method = of_metric.clone().filter(|entry| entry.method == method.id);
            let of_method: Vec<Entry> = of_method.cloned().collect();
            if of_method.iter().any(|entry| entry.ours.is_some()) {
                let corner = format!("{name}: {}", method.name);
                matrix(text, &corner, &of_method, alone, |e| part(e, 0), |e| part(e, 1));
            }
        }
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
    if form.excerpt {
        words.push_str(" --excerpt");
    }
    if let Some(rows) = form.limit_train {
        let _ = write!(words, " --limit-train {rows}");
    }
    if let Some(epochs) = form.epochs {
        let _ = write!(words, " --epochs {epochs}");
    }
    if let Some(width) = form.width {
        let _ = write!(words, " --width {width}");
    }
    if let Some(length) = form.length {
        let _ = write!(words, " --length {length}");
    }
    if *version == Version::Paper {
        words.push_str(" --as paper");
    }
    words
}

/// A table of entries by `row` and `column`. Those of which nothing was run are left out; the paper's stand below ours, unless
/// ours are `alone`.
fn matrix(
    text: &mut String,
    corner: &str,
    entries: &[Entry],
    alone: bool,
    row: impl Fn(&Entry) -> String,
    column: impl Fn(&Entry) -> String,
) {
    let (mut rows, mut columns): (Vec<String>, Vec<String>) = (Vec::new(), Vec::new());
    for entry in entries.iter().filter(|entry| entry.ours.is_some() || entry.failures > 0) {
        if !rows.contains(&row(entry)) {
            rows.push(row(entry));
        }
        if !columns.contains(&column(entry)) {
            columns.push(column(entry));
        }
    }
    let _ = writeln!(text, "| {corner} | {} |", columns.join(" | "));
    let _ = writeln!(text, "|---|{}", "---|".repeat(columns.len()));
    for of_row in rows {
        let _ = write!(text, "| {of_row} |");
        for name in &columns {
            let entry = entries.iter().find(|e| row(e) == of_row && column(e) == *name);
            let cell = entry.map_or_else(|| "–".to_owned(), |entry| cell(entry, alone));
            let _ = write!(text, " {cell} |");
        }
        let _ = writeln!(text);
    }
    let _ = writeln!(text);
}

/// Ours, and unless it is alone the paper's and their difference.
fn cell(entry: &Entry, alone: bool) -> String {
    let ours = entry
        .ours
        .as_ref()
        .map_or_else(|| "–".to_owned(), |s| format!("**{}**", shown(s, &entry.metric)));
    let paper = entry.paper.as_ref().map_or_else(|| "–".to_owned(), |s| shown(s, &entry.metric));
    let difference = entry.difference.map_or_else(String::new, |welch| format!("<br>{welch}"));
    let failures = match entry.failures {
        0 => String::new(),
        failures => format!(", {failures} failed"),
    };
    match alone {
        true => format!("{ours}{failures}"),
        false => format!("{ours}{failures}<br>{paper}{difference}"),
    }
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

/// How much of an experiment was run: `35 of 245 runs`, or rows of a table that is derived.
fn extent(results: &Results) -> Result<String, PaperError> {
    let Results { recipe: own, version, form, records, entries } = results;
    let reduced = if *form == Form::FULL { "" } else { "reduced, " };
    if own.kind != Kind::Derived {
        let all = Selection::default().cells(own)?.len();
        return Ok(format!("{reduced}{} of {all} runs", records.len()));
    }
    let (mut all, mut some) = (0, 0);
    for id in &own.from {
        let source = recipe(id, *version)?;
        all += source.conditions.len();
        let run = |condition: &str| {
            let mut of_row =
                entries.iter().filter(|e| e.experiment == *id && e.condition == condition);
            of_row.any(|entry| entry.ours.is_some())
        };
        some += source.conditions.iter().filter(|condition| run(&condition.id)).count();
    }
    Ok(format!("{reduced}{some} of {all} rows"))
}

/// How an experiment was made smaller, in a sentence; nothing, if it was not.
fn reduced(own: &Recipe, form: Form) -> Result<Option<String>, PaperError> {
    let epochs = |recipe: &Recipe| recipe.training.as_ref().map(|training| training.epochs);
    // What is derived has the epochs of what it is derived from.
    let of_first = own.from.first().map(|id| recipe(id, Version::Code)).transpose()?;
    let all = epochs(own).or_else(|| epochs(&of_first?)).unwrap_or(0);
    let less = [
        form.excerpt.then(|| "a part of the data set".to_owned()),
        form.limit_train.map(|rows| format!("{rows} samples to train on")),
        form.epochs.map(|few| format!("{few} epochs instead of {all}")),
        form.width.map(|width| format!("{width} channels in the first stage instead of 64")),
        form.length.map(|length| format!("the first {length} moments of every sequence")),
    ];
    let less: Vec<String> = less.into_iter().flatten().collect();
    Ok((!less.is_empty()).then(|| format!("**Reduced**: {}.", less.join(", "))))
}

/// How many differences are larger than chance makes them, beside how many chance would make so.
fn beyond(entries: &[Entry]) -> Option<String> {
    let compared: Vec<f64> =
        entries.iter().filter_map(|entry| Some(entry.difference?.probability())).collect();
    let few = compared.iter().filter(|probability| **probability < LEVEL).count();
    let (all, expected) = (compared.len(), LEVEL * compared.len() as f64);
    (all > 0).then(|| {
        format!(
            "Of {all} numbers that are compared with the paper's, {few} differ by more than chance makes them in 95 of 100; by chance it would be about {expected:.1}."
        )
    })
}

/// `40 s`, `3.9 h`.
pub(crate) fn duration(seconds: f64) -> String {
    const HOUR: f64 = 3_600.0;
    match seconds {
        s if s < 10.0 => format!("{s:.1} s"),
        s if s < 120.0 => format!("{s:.0} s"),
        s if s < HOUR => format!("{:.0} min", s / 60.0),
        s if s < 48.0 * HOUR => format!("{:.1} h", s / HOUR),
        s => format!("{:.0} days", s / (24.0 * HOUR)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Records;

    fn results(id: &str, form: Form) -> Results {
        let nowhere = Records::new(Path::new("nowhere"));
        Results::gather(&recipe(id, Version::Code).unwrap(), Version::Code, form, &nowhere).unwrap()
    }

    #[test]
    fn numbers_are_short_and_signed() {
        let shown = |mean, std, runs, metric| shown(&Statistics { mean, std, runs }, metric);
        assert_eq!(shown(83.524, Some(0.21), 5, "max-top-1"), "83.52 ± 0.21 (5)");
        assert_eq!(shown(-3.79081, Some(0.126), 2, "gain"), "−3.79 ± 0.13 (2)");
        assert_eq!(shown(0.43941, Some(0.0222), 5, "min-mse"), "0.4394 ± 0.0222 (5)");
        assert_eq!(shown(1475.0, None, 1, "unreliability-3"), "1475 (1)");
    }

    #[test]
    fn a_part_is_not_called_the_whole() {
        assert_eq!(extent(&results("california", Form::FULL)).unwrap(), "0 of 20 runs");
        let gains = results("percentage-difference", Form::FULL);
        assert_eq!(extent(&gains).unwrap(), "0 of 21 rows");
        let few = Form { epochs: Some(5), ..Form::FULL };
        assert_eq!(extent(&results("california", few)).unwrap(), "reduced, 0 of 20 runs");
        let said = |id: &str, form| reduced(&recipe(id, Version::Code).unwrap(), form).unwrap();
        assert_eq!(said("california", Form::FULL), None);
        let california = said("california", few).unwrap();
        assert_eq!(california, "**Reduced**: 5 epochs instead of 200.");
        let gains = said("percentage-difference", few).unwrap();
        assert_eq!(gains, "**Reduced**: 5 epochs instead of 40.");
    }

    #[test]
    fn hours_are_hours() {
        let words = [5.04, 40.0, 600.0, 7_200.0, 864_000.0].map(duration);
        assert_eq!(words, ["5.0 s", "40 s", "10 min", "2.0 h", "10 days"]);
    }
}
