//! The page: everything the template needs, as text and numbers ready to be shown.

use std::collections::HashMap;

use minijinja::value::Serde;
use minijinja::{AutoEscape, Environment, UndefinedBehavior};
use serde::Serialize;

use crate::confusion::Matrix;
use crate::distribution::{self, Panel, ResidualPicture};
use crate::line::{self, Line, Picture, Range, Thin};
use crate::source::worst_first;
use crate::{
    Comparison, EpochMetric, Evidence, Report, ReportError, Ruling, SourceRow, Verdict, findings,
    name, number, sentences,
};

const TEMPLATES: [(&str, &str); 4] = [
    ("report.html", include_str!("page/report.html")),
    ("picture.html", include_str!("page/picture.html")),
    ("style.css", include_str!("page/style.css")),
    ("script.js", include_str!("page/script.js")),
];
/// SHA-256 of the style sheet and the script, by which the page's policy allows them. A test says what they should be.
const STYLE_HASH: &str = "c6Cwidn5SxpbLccHktCxZEv04u2NAYfHunMOJ5Y/TGA=";
const SCRIPT_HASH: &str = "X3AFAPfK4X8SBfO3RK6HRVKizANNRr1AqB8Z9A+bySw=";

/// Sources with a colour of their own; there are as many colours that everybody can tell apart.
const COLOURS: usize = 7;
/// Lines drawn in grey behind them.
const CROWD: usize = 60;
/// Rows of the table of sources before "show all".
const TABLE: usize = 50;
/// Flagged sources whose evidence is shown.
const EVIDENCE: usize = 20;
/// Worst rows shown per source.
const WORST_ROWS: usize = 12;
/// Features shown per row.
const FEATURES: usize = 6;

#[derive(Serialize)]
struct Page<'a> {
    style_hash: &'a str,
    script_hash: &'a str,
    title: String,
    facts: Vec<String>,
    sentences: [String; 2],
    warnings: Vec<String>,
    verdicts: Vec<VerdictCount>,
    sources: Vec<SourceView>,
    table_limit: usize,
    source_count: String,
    any_flagged: bool,
    source_column: String,
    history_length: String,
    leniency: String,
    crowd_note: Option<String>,
    weights: Option<Picture>,
    losses: Option<Picture>,
    panels: Vec<Panel>,
    evidence: Vec<EvidenceView>,
    evidence_left_out: Option<String>,
    curves: Vec<Picture>,
    settings: Vec<SettingView>,
    dropped: Vec<(String, String)>,
    dropped_total: String,
    columns: Vec<[String; 5]>,
}

#[derive(Serialize)]
struct VerdictCount {
    word: &'static str,
    count: String,
}

/// A cell of the table: what is shown, and what it is sorted by (nothing when there is no value).
#[derive(Serialize)]
struct Cell {
    text: String,
    key: Option<f64>,
}

impl Cell {
    fn count(n: u64) -> Self {
        Self {
            text: number::count(n),
            key: Some(n as f64),
        }
    }

    fn of(value: Option<f64>, text: impl Fn(f64) -> String) -> Self {
        let key = value.filter(|v| v.is_finite());
        Self {
            text: value.map_or_else(|| number::NONE.to_owned(), text),
            key,
        }
    }
}

#[derive(Serialize)]
struct SourceView {
    class: String,
    name: String,
    /// In full where `name` had to be shortened.
    full: Option<String>,
    /// Number of its evidence on the page.
    anchor: Option<usize>,
    verdict: &'static str,
    verdict_key: u8,
    ruling: Option<&'static str>,
    /// Width of the weight's bar.
    bar: String,
    weight: Cell,
    unreliability: Cell,
    rows: Cell,
    batches: Cell,
    mean_loss: Cell,
    reference: Cell,
    share_above: Cell,
    label_error: Cell,
    label_error_interval: String,
    nonfinite: Cell,
    departure: Cell,
}

#[derive(Serialize)]
struct EvidenceView {
    class: String,
    name: String,
    full: Option<String>,
    verdict: &'static str,
    weight: String,
    open: bool,
    findings: Vec<String>,
    features: Vec<String>,
    rows: Vec<RowView>,
    probabilities: bool,
    matrix: Option<Matrix>,
    residuals: Option<ResidualPicture>,
}

#[derive(Serialize)]
struct RowView {
    row: String,
    given: String,
    predicted: String,
    probability: String,
    loss: String,
    features: Vec<String>,
}

#[derive(Serialize)]
struct SettingView {
    key: String,
    value: String,
    chosen: bool,
}

pub(crate) fn render(report: &Report) -> Result<String, ReportError> {
    let mut environment = Environment::new();
    environment.set_auto_escape_callback(|_| AutoEscape::Html);
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    for (name, source) in TEMPLATES {
        environment.add_template(name, source)?;
    }
    let page = Serde(Page::new(report));
    Ok(environment.get_template("report.html")?.render(page)?)
}

impl Page<'_> {
    fn new(report: &Report) -> Self {
        let mut ranked: Vec<&SourceRow> = report.sources.iter().collect();
        ranked.sort_by(|a, b| worst_first(a, b));
        let coloured = coloured(&ranked);
        let class_of: HashMap<&str, &str> = coloured
            .iter()
            .map(|(source, class)| (*source, class.as_str()))
            .collect();
        let class = |source: &str| {
            class_of
                .get(source)
                .map(|class| (*class).to_owned())
                .unwrap_or_default()
        };

        let drawn = drawn(report, &ranked, &class);
        let crowd_note = (drawn.len() < ranked.len()).then(|| {
            format!(
                "{} of {} sources are drawn: the flagged ones first, the others in grey.",
                number::count(drawn.len() as u64),
                number::count(ranked.len() as u64)
            )
        });
        let lines = |value: fn(&crate::Point) -> Option<f64>| -> Vec<Line> {
            let line = |(row, trajectory, class): &(&SourceRow, &crate::Trajectory, String)| Line {
                class: class.clone(),
                label: name::label(&row.source),
                title: format!(
                    "{}: {}, weight {}",
                    name::short(&row.source),
                    row.verdict.word(),
                    number::fixed(row.weight, 2)
                ),
                points: trajectory
                    .points
                    .iter()
                    .map(|p| (p.step as f64, value(p)))
                    .collect(),
            };
            drawn.iter().map(line).collect()
        };

        let shown = shown_evidence(report, &ranked);
        let anchors: HashMap<&str, usize> = shown
            .iter()
            .enumerate()
            .map(|(i, (row, _))| (row.source.as_str(), i))
            .collect();
        let evidence: Vec<EvidenceView> = shown
            .iter()
            .enumerate()
            .map(|(i, (row, evidence))| EvidenceView::new(row, evidence, class(&row.source), i < 3))
            .collect();
        let left_out = report.evidence.len() - evidence.len();
        Self {
            style_hash: STYLE_HASH,
            script_hash: SCRIPT_HASH,
            title: name::short(if report.summary.title.is_empty() {
                "Report"
            } else {
                &report.summary.title
            }),
            facts: facts(report),
            sentences: sentences::summary(report),
            warnings: report.warnings.iter().map(ToString::to_string).collect(),
            verdicts: verdicts(report),
            sources: ranked
                .iter()
                .map(|row| {
                    SourceView::new(
                        row,
                        class(&row.source),
                        anchors.get(row.source.as_str()).copied(),
                    )
                })
                .collect(),
            table_limit: TABLE,
            source_count: number::count(ranked.len() as u64),
            any_flagged: ranked.iter().any(|row| row.verdict.is_flagged()),
            source_column: name::short(&report.summary.source_column),
            history_length: number::count(report.summary.history_length),
            leniency: number::plain(report.summary.leniency),
            crowd_note,
            weights: line::draw(
                "Weight of each source over the steps of training".to_owned(),
                ("step", "weight"),
                lines(|p| Some(p.weight)),
                Thin::Last,
                Range::Share,
            ),
            losses: line::draw(
                "Loss of each source over the steps of training".to_owned(),
                ("step", "loss"),
                lines(|p| p.loss),
                Thin::Mean,
                Range::Values,
            ),
            panels: distribution::panels(&report.phases, &coloured),
            evidence,
            evidence_left_out: (left_out > 0).then(|| number::count(left_out as u64)),
            curves: curves(&report.epochs, report.summary.best_epoch),
            settings: report
                .configuration
                .iter()
                .map(|s| SettingView {
                    key: name::short(&s.key),
                    value: name::reveal(&s.value),
                    chosen: s.chosen,
                })
                .collect(),
            dropped: report
                .dropped
                .iter()
                .map(|d| (name::short(&d.reason), number::count(d.rows)))
                .collect(),
            dropped_total: number::count(
                report
                    .dropped
                    .iter()
                    .fold(0, |sum, d| sum.saturating_add(d.rows)),
            ),
            columns: report
                .schema
                .iter()
                .map(|c| {
                    [
                        name::short(&c.name),
                        name::short(&c.role),
                        name::short(&c.kind),
                        number::count(c.missing),
                        if c.note.is_empty() {
                            String::new()
                        } else {
                            name::reveal(&c.note)
                        },
                    ]
                })
                .collect(),
        }
    }
}

/// Sources with a colour of their own, worst first: all where there are few, otherwise the flagged ones.
fn coloured<'a>(ranked: &[&'a SourceRow]) -> Vec<(&'a str, String)> {
    let few = ranked.len() <= COLOURS;
    let chosen = ranked
        .iter()
        .filter(|row| few || row.verdict.is_flagged())
        .take(COLOURS);
    chosen
        .enumerate()
        .map(|(i, row)| (row.source.as_str(), format!("s{i}")))
        .collect()
}

/// The trajectories to draw: those with a colour first, then an even choice of the others.
fn drawn<'a>(
    report: &'a Report,
    ranked: &[&'a SourceRow],
    class: &impl Fn(&str) -> String,
) -> Vec<(&'a SourceRow, &'a crate::Trajectory, String)> {
    let by_name: HashMap<&str, _> = report
        .trajectories
        .iter()
        .map(|t| (t.source.as_str(), t))
        .collect();
    let found = ranked
        .iter()
        .filter_map(|row| Some((*row, *by_name.get(row.source.as_str())?, class(&row.source))));
    let (mut drawn, crowd): (Vec<_>, Vec<_>) = found.partition(|(_, _, class)| !class.is_empty());
    let every = crowd.len().div_ceil(CROWD).max(1);
    drawn.extend(crowd.into_iter().step_by(every));
    drawn
}

fn facts(report: &Report) -> Vec<String> {
    let s = &report.summary;
    let mut facts = Vec::new();
    if !s.target.is_empty() {
        facts.push(format!("target {}", name::quoted(&s.target)));
    }
    if !s.source_column.is_empty() {
        facts.push(format!("sources by {}", name::quoted(&s.source_column)));
    }
    if !s.method.is_empty() {
        facts.push(format!("method {}", name::short(&s.method)));
    }
    if s.steps > 0 {
        facts.push(format!(
            "{} steps in {} epochs",
            number::count(s.steps),
            number::count(s.epochs)
        ));
    }
    facts.extend(s.seed.map(|seed| format!("seed {seed}")));
    if !s.created.is_empty() {
        facts.push(name::short(&s.created));
    }
    if !s.version.is_empty() {
        facts.push(format!("lapwing {}", name::short(&s.version)));
    }
    facts
}

fn verdicts(report: &Report) -> Vec<VerdictCount> {
    [
        Verdict::Unreliable,
        Verdict::Suspect,
        Verdict::Insufficient,
        Verdict::Reliable,
    ]
    .into_iter()
    .map(|verdict| {
        (
            verdict,
            report
                .sources
                .iter()
                .filter(|s| s.verdict == verdict)
                .count(),
        )
    })
    .filter(|(_, n)| *n > 0)
    .map(|(verdict, n)| VerdictCount {
        word: verdict.word(),
        count: number::count(n as u64),
    })
    .collect()
}

/// The name in full, without what cannot be seen, where the short form leaves something out.
fn in_full(source: &str, short: &str) -> Option<String> {
    Some(name::reveal(source)).filter(|full| full != short)
}

impl SourceView {
    fn new(row: &SourceRow, class: String, anchor: Option<usize>) -> Self {
        let name = name::short(&row.source);
        let reference = Cell::of(row.reference_loss, |mean| match row.reference_std {
            Some(std) => format!("{} ± {}", number::value(mean), number::value(std)),
            None => number::value(mean),
        });
        let interval = row
            .label_error
            .map(|e| number::percent_range(e.low, e.high));
        Self {
            class,
            full: in_full(&row.source, &name),
            name,
            anchor,
            verdict: row.verdict.word(),
            verdict_key: row.verdict as u8,
            ruling: row.ruling.map(|ruling| match ruling {
                Ruling::Trusted => "trusted",
                Ruling::Blocked => "blocked",
            }),
            bar: crate::scale::at(if row.weight.is_finite() {
                row.weight.clamp(0.0, 1.0)
            } else {
                0.0
            }),
            weight: Cell::of(Some(row.weight), |w| number::fixed(w, 2)),
            unreliability: Cell::of(Some(row.unreliability), number::level),
            rows: Cell::count(row.rows),
            batches: Cell::count(row.batches),
            mean_loss: Cell::of(row.mean_loss, number::value),
            reference,
            share_above: Cell::of(row.share_above, number::percent),
            label_error: Cell::of(row.label_error.map(|e| e.estimate), number::percent),
            label_error_interval: interval.unwrap_or_default(),
            nonfinite: Cell::count(row.nonfinite),
            departure: Cell::of(row.first_departure_step.map(|s| s as f64), |s| {
                number::fixed(s, 0)
            }),
        }
    }
}

/// The evidence there is room for, on the worst sources first.
fn shown_evidence<'a>(
    report: &'a Report,
    ranked: &[&'a SourceRow],
) -> Vec<(&'a SourceRow, &'a Evidence)> {
    let by_name: HashMap<&str, &Evidence> = report
        .evidence
        .iter()
        .map(|e| (e.source.as_str(), e))
        .collect();
    ranked
        .iter()
        .filter_map(|row| Some((*row, *by_name.get(row.source.as_str())?)))
        .take(EVIDENCE)
        .collect()
}

impl EvidenceView {
    fn new(row: &SourceRow, evidence: &Evidence, class: String, open: bool) -> Self {
        let name = name::short(&row.source);
        let (matrix, residuals) = match &evidence.comparison {
            Some(Comparison::Labels(confusion)) => (Matrix::new(confusion), None),
            Some(Comparison::Targets(residuals)) => (None, distribution::residuals(residuals)),
            None => (None, None),
        };
        let rows = evidence.worst_rows.iter().take(WORST_ROWS);
        Self {
            class,
            full: in_full(&row.source, &name),
            name,
            verdict: row.verdict.word(),
            weight: number::fixed(row.weight, 2),
            open,
            findings: findings::findings(row, evidence),
            features: evidence
                .features
                .iter()
                .take(FEATURES)
                .map(|f| name::short(f))
                .collect(),
            probabilities: rows.clone().any(|row| row.probability.is_some()),
            rows: rows
                .map(|row| RowView {
                    row: row.row.to_string(),
                    given: name::short(&row.given),
                    predicted: name::short(&row.predicted),
                    probability: row
                        .probability
                        .map_or_else(|| number::NONE.to_owned(), number::probability),
                    loss: row
                        .loss
                        .map_or_else(|| number::NONE.to_owned(), number::value),
                    features: row
                        .features
                        .iter()
                        .take(FEATURES)
                        .map(|f| name::short(f))
                        .collect(),
                })
                .collect(),
            matrix,
            residuals,
        }
    }
}

/// One picture per metric, one line per split, both in order of appearance; losses first.
fn curves(epochs: &[EpochMetric], best: Option<u64>) -> Vec<Picture> {
    let mut metrics = distinct(epochs.iter().map(|e| e.metric.as_str()));
    metrics.sort_by_key(|metric| *metric != "loss");
    let splits = distinct(epochs.iter().map(|e| e.split.as_str()));
    let picture = |metric: &&str| {
        let lines = splits.iter().take(COLOURS).enumerate().map(|(i, split)| {
            let own = epochs
                .iter()
                .filter(|e| e.metric == *metric && e.split == *split);
            let mut points: Vec<(f64, Option<f64>)> =
                own.map(|e| (e.epoch as f64, e.value)).collect();
            points.sort_by(|a, b| a.0.total_cmp(&b.0));
            let end = points.iter().rev().find_map(|p| p.1).unwrap_or(f64::NAN);
            let title = format!(
                "{}: {} at the end",
                name::short(split),
                number::metric(metric, end)
            );
            Line {
                class: format!("c{i}"),
                label: name::label(split),
                title,
                points,
            }
        });
        let words = name::short(number::metric_words(metric).0);
        let drawn = line::draw(
            format!("{words} per epoch"),
            ("epoch", &words),
            lines.collect(),
            Thin::Last,
            Range::Values,
        )?;
        Some(drawn.with_rule(best.map(|epoch| epoch as f64), "kept"))
    };
    metrics.iter().take(COLOURS).filter_map(picture).collect()
}

fn distinct<'a>(names: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let mut seen = Vec::new();
    for name in names {
        if !seen.contains(&name) {
            seen.push(name);
        }
    }
    seen
}

#[cfg(test)]
mod tests {
    use base64::Engine;
    use base64::engine::general_purpose::STANDARD;
    use sha2::{Digest, Sha256};

    use super::*;

    fn hash_of_inline(page: &str, element: &str) -> String {
        let (_, rest) = page.split_once(&format!("<{element}>")).unwrap();
        let (inline, _) = rest.split_once(&format!("</{element}>")).unwrap();
        STANDARD.encode(Sha256::digest(inline))
    }

    #[test]
    fn the_policy_names_the_hashes_of_style_and_script() {
        let page = render(&Report::default()).unwrap();
        assert_eq!(
            hash_of_inline(&page, "style"),
            STYLE_HASH,
            "set STYLE_HASH to the left value"
        );
        assert_eq!(
            hash_of_inline(&page, "script"),
            SCRIPT_HASH,
            "set SCRIPT_HASH to the left value"
        );
    }
}
