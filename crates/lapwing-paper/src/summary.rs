//! RESULTS.md: ours beside the paper's, from records alone.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::cell::{Form, Selection};
use crate::error::PaperError;
use crate::figure::figure;
use crate::recipe::{Kind, Recipe, Version, recipes};
use crate::record::Records;
use crate::section::{duration, section};
use crate::table::{Entry, Results};

pub use crate::section::shown;

/// Writes `RESULTS.md`, `results.json` and the figures of all experiments that were run; gives the paths of what was
/// written.
pub fn summary(out: &Path) -> Result<Vec<PathBuf>, PaperError> {
    let records = Records::new(out);
    let (mut numbers, mut written) = (Vec::new(), Vec::new());
    let (mut claims, mut extents, mut sections) = (String::new(), String::new(), String::new());
    let mut open: Vec<String> = Vec::new();
    for version in [Version::Code, Version::Paper] {
        for recipe in recipes(version)? {
            let full = Results::gather(&recipe, version, Form::FULL, &records)?;
            if version == Version::Code && !recipe.is_beyond() {
                open.extend(conclusions(&mut claims, &full));
            }
            let mut runs = Runs::default();
            for form in forms(&recipe, version, &records)? {
                let results = Results::gather(&recipe, version, form, &records)?;
                if results.is_empty() {
                    continue;
                }
                runs.add(&results);
                let figures = write_figures(&results, out)?;
                section(&mut sections, &results, &figures, out)?;
                numbers.extend(results.entries.iter().filter_map(|entry| number(&results, entry)));
                written.extend(figures);
            }
            if recipe.kind != Kind::Derived && (version == Version::Code || runs.all > 0) {
                runs.tell(&mut extents, &full)?;
            }
        }
    }
    if !open.is_empty() {
        let _ = write!(claims, "\nNothing was run that would answer these: {}.\n", open.join("; "));
    }
    let text = [HEAD, CLAIMS, &claims, EXTENTS, &extents, &sections].concat();
    let json = serde_json::to_string_pretty(&serde_json::json!({ "results": numbers }));
    let json = json.map_err(|error| PaperError::Usage(error.to_string()))? + "\n";
    for (name, content) in [("RESULTS.md", text), ("results.json", json)] {
        written.push(write(out, name, content.as_bytes())?);
    }
    Ok(written)
}

const HEAD: &str = "\
# The paper's experiments, run again

Every number of ours comes from a record of a real run below `records/`; this page is made from them, and from nothing else,
by `lapwing paper summary`. A cell shows our mean ± sample standard deviation (number of runs), then the paper's, then
Welch's t of the difference with its degrees of freedom, where both sides have three runs or more. Smaller runs are not
compared. A dash means that there is no such number. Where the paper's text and its authors' code differ, the code is
followed, unless the heading says otherwise.
";

const CLAIMS: &str = "
## Which of the paper's conclusions hold here?

By our runs alone, paired by their number, since runs of one number share their data. A conclusion *holds* where Student's t of
the pairs has its sign at 5 % (two-sided), *does not hold* where it has the other sign, and is *not shown* where it has neither.
That two are equal holds where the difference is within the margin named, by two one-sided tests at 5 %.

| conclusion | from | here |
|---|---|---|
";

const EXTENTS: &str = "
## How much was run

Hours are those of the runs on a machine with two processors that did other work, too; what is left is reckoned from them, or
from a run on two cores, where one was made.

| experiment | shows | runs of full length | smaller runs | hours | what is left takes |
|---|---|---|---|---|---|
";

/// Writes the lines of an experiment's conclusions; gives those that nothing was run for.
fn conclusions(text: &mut String, results: &Results) -> Vec<String> {
    let Results { recipe, records, .. } = results;
    let mut open = Vec::new();
    for claim in &recipe.claims {
        match claim.words(recipe, records) {
            Some(found) => {
                let _ = writeln!(text, "| {} | {} | {found} |", claim.says, recipe.shows);
            }
            None => open.push(format!("{} ({})", claim.says, recipe.shows)),
        }
    }
    open
}

/// What was run of an experiment, in all forms.
#[derive(Default)]
struct Runs {
    all: usize,
    smaller: usize,
    seconds: f64,
}

impl Runs {
    fn add(&mut self, results: &Results) {
        self.all += results.records.len();
        if results.form != Form::FULL {
            self.smaller += results.records.len();
        }
        self.seconds += results.records.iter().map(|record| record.seconds).sum::<f64>();
    }

    /// The line of an experiment.
    fn tell(&self, text: &mut String, full: &Results) -> Result<(), PaperError> {
        let Results { recipe, version, records, .. } = full;
        let cells = Selection::default().cells(recipe)?.len();
        let left = match (cells.saturating_sub(records.len()), full.seconds_each()) {
            (0, _) => "–".to_owned(),
            (_, None) => "not measured".to_owned(),
            (left, Some(seconds)) => duration(left as f64 * seconds),
        };
        let as_text = if *version == Version::Paper { " `--as paper`" } else { "" };
        let _ = writeln!(
            text,
            "| `{}`{as_text} | {} | {} of {cells} | {} | {:.2} | {left} |",
            recipe.id,
            recipe.shows,
            records.len(),
            self.smaller,
            self.seconds / 3_600.0,
        );
        Ok(())
    }
}

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
    welch_t: Option<f64>,
    degrees_of_freedom: Option<f64>,
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
        welch_t: entry.difference.map(|welch| welch.t),
        degrees_of_freedom: entry.difference.map(|welch| welch.degrees),
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
    fn nothing_run_nothing_claimed() {
        let dir = tempfile::tempdir().unwrap();
        let written = summary(dir.path()).unwrap();
        assert_eq!(written.len(), 2);
        let text = std::fs::read_to_string(dir.path().join("RESULTS.md")).unwrap();
        assert!(text.contains("| 0 of 20 | 0 | 0.00 |"), "{text}");
        assert!(text.contains("Nothing was run that would answer these: A source"), "{text}");
        assert_eq!(text.matches('±').count(), 1, "{text}");
        assert!(!text.contains("holds**") && !text.contains("\n## Table"), "{text}");
    }
}
