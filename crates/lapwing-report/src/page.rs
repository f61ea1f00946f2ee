//! The page: everything the template needs, as text and numbers ready to be shown.

use std::collections::HashMap;

use lapwing_judge::{SourceRow, Verdict};
use minijinja::value::Serde;
use minijinja::{AutoEscape, Environment, UndefinedBehavior};
use serde::Serialize;

use crate::distribution::{self, Panel};
use crate::exhibit::{EvidenceView, shown_evidence};
use crate::line::{self, Line, Picture, Range, Thin};
use crate::table::{RowView, SourceView};
use crate::{
    DoubtfulRow, EpochMetric, Importance, Report, ReportError, name, number, scale, sentences,
};

const TEMPLATES: [(&str, &str); 4] = [
    ("report.html", include_str!("page/report.html")),
    ("picture.html", include_str!("page/picture.html")),
    ("style.css", include_str!("page/style.css")),
    ("script.js", include_str!("page/script.js")),
];
/// SHA-256 of the style sheet and the script, by which the page's policy allows them. A test says what they should be.
const STYLE_HASH: &str = "7px1N5Of9kwV0e1pfyovRAO+s6cfAjP/kQGWNj0XB+w=";
const SCRIPT_HASH: &str = "X3AFAPfK4X8SBfO3RK6HRVKizANNRr1AqB8Z9A+bySw=";

/// Sources with a colour of their own; there are as many colours that everybody can tell apart.
const COLOURS: usize = 7;
/// Lines drawn in grey behind them.
const CROWD: usize = 60;
/// Rows of the table of sources before all are asked for; the style sheet hides those beyond.
const TABLE: usize = 50;
/// Rows of the table of sources in all, and how many of these are the worst: a browser must be able to open the page.
const MOST_ROWS: usize = 2000;
const WORST_ROWS: usize = 1500;
/// Columns that trees split by.
const COLUMNS: usize = 25;

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
    row_count: String,
    rows_note: Option<String>,
    any_flagged: bool,
    /// How many networks judged labels, and how many; nothing where verdicts rest on losses.
    judged: Option<[String; 2]>,
    doubtful: Vec<RowView>,
    doubtful_texts: bool,
    doubtful_files: bool,
    doubtful_series: bool,
    /// Whether sources were weighed by noise rates.
    noise_rates: bool,
    source_column: String,
    history_length: String,
    /// Nothing where it is infinite.
    leniency: Option<String>,
    depression_strength: String,
    crowd_note: Option<String>,
    weights: Option<Picture>,
    losses: Option<Picture>,
    panels: Vec<Panel>,
    evidence: Vec<EvidenceView>,
    evidence_left_out: Option<String>,
    /// Whether the policy has to allow pictures; they stand in the page itself.
    pictures: bool,
    /// Why the model is this one.
    model: Option<[String; 2]>,
    /// Name, share and length of the bar of columns that trees split by.
    importance: Vec<[String; 3]>,
    curves: Vec<Picture>,
    scores: Vec<[String; 3]>,
    settings: Vec<SettingView>,
    dropped: Vec<(String, String)>,
    dropped_total: String,
    origin: String,
    columns: Vec<[String; 5]>,
}

#[derive(Serialize)]
struct VerdictCount {
    word: &'static str,
    count: String,
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
        ranked.sort_by(|a, b| a.worst_first(b));
        let coloured = coloured(&ranked);
        let class_of: HashMap<&str, &str> =
            coloured.iter().map(|(source, class)| (*source, class.as_str())).collect();
        let class = |source: &str| {
            class_of.get(source).map(|class| (*class).to_owned()).unwrap_or_default()
        };

        let drawn = drawn(report, &ranked, &class);
        let crowd_note = (1..ranked.len()).contains(&drawn.len()).then(|| {
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
                points: trajectory.points.iter().map(|p| (p.step as f64, value(p))).collect(),
            };
            drawn.iter().map(line).collect()
        };

        let listed = listed(&ranked);
        let shown = shown_evidence(report, &ranked);
        let anchors: HashMap<&str, usize> =
            shown.iter().enumerate().map(|(i, (row, _))| (row.source.as_str(), i)).collect();
        let evidence: Vec<EvidenceView> = shown
            .iter()
            .enumerate()
            .map(|(i, (row, evidence))| EvidenceView::new(row, evidence, class(&row.source), i < 3))
            .collect();
        let left_out = report.evidence.len() - evidence.len();
        let doubtful = &report.rows[..report.rows.len().min(DoubtfulRow::SHOWN)];
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
            sources: listed
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
            row_count: number::count(listed.len() as u64),
            rows_note: (listed.len() < ranked.len()).then(|| rows_note(ranked.len())),
            any_flagged: ranked.iter().any(|row| row.verdict.is_flagged()),
            judged: (report.summary.folds > 0).then(|| {
                let networks = number::words(report.summary.folds as usize);
                [networks, number::count(report.summary.judged_rows)]
            }),
            noise_rates: report.summary.method == "noise-rate",
            doubtful: doubtful.iter().map(RowView::new).collect(),
            doubtful_texts: doubtful.iter().any(|row| row.text.is_some()),
            doubtful_files: doubtful.iter().any(|row| row.file.is_some() || row.picture.is_some()),
            doubtful_series: doubtful.iter().any(|row| !row.lines.is_empty()),
            source_column: name::short(&report.summary.source_column),
            history_length: number::count(report.summary.history_length),
            leniency: Some(report.summary.leniency)
                .filter(|leniency| leniency.is_finite())
                .map(number::plain),
            depression_strength: number::plain(report.summary.depression_strength),
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
            pictures: evidence.iter().any(EvidenceView::has_pictures)
                || doubtful.iter().any(|row| row.picture.is_some()),
            evidence,
            evidence_left_out: (left_out > 0).then(|| number::count(left_out as u64)),
            model: Some([&report.summary.model, &report.summary.model_reason])
                .filter(|[_, reason]| !reason.is_empty())
                .map(|words| words.map(|word| name::reveal(word))),
            importance: report.importance.iter().take(COLUMNS).map(importance).collect(),
            curves: curves(&report.epochs, report.summary.best_epoch),
            scores: scores(&report.epochs),
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
            origin: match report.summary.origin.as_str() {
                "" => String::new(),
                origin => name::reveal(origin),
            },
            dropped_total: number::count(
                report.dropped.iter().fold(0, |sum, d| sum.saturating_add(d.rows)),
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
                        if c.note.is_empty() { String::new() } else { name::reveal(&c.note) },
                    ]
                })
                .collect(),
        }
    }
}

/// The sources in the table, worst first: all, or where there are too many the worst and an even choice of the others.
fn listed<'a>(ranked: &[&'a SourceRow]) -> Vec<&'a SourceRow> {
    if ranked.len() <= MOST_ROWS {
        return ranked.to_vec();
    }
    let (worst, others) = ranked.split_at(WORST_ROWS);
    let chosen = MOST_ROWS - WORST_ROWS;
    let sample = (0..chosen).map(|n| others[n * others.len() / chosen]);
    worst.iter().copied().chain(sample).collect()
}

fn rows_note(count: usize) -> String {
    let number = |n: usize| number::count(n as u64);
    format!(
        "Of {} sources the table has the {} worst, and {} of the others, evenly chosen. All of them are in sources.csv.",
        number(count),
        number(WORST_ROWS),
        number(MOST_ROWS - WORST_ROWS)
    )
}

/// Sources with a colour of their own, worst first: all where there are few, otherwise the flagged ones.
fn coloured<'a>(ranked: &[&'a SourceRow]) -> Vec<(&'a str, String)> {
    let few = ranked.len() <= COLOURS;
    let chosen = ranked.iter().filter(|row| few || row.verdict.is_flagged()).take(COLOURS);
    chosen.enumerate().map(|(i, row)| (row.source.as_str(), format!("s{i}"))).collect()
}

/// The trajectories to draw: those with a colour first, then an even choice of the others.
fn drawn<'a>(
    report: &'a Report,
    ranked: &[&'a SourceRow],
    class: &impl Fn(&str) -> String,
) -> Vec<(&'a SourceRow, &'a crate::Trajectory, String)> {
    let by_name: HashMap<&str, _> =
        report.trajectories.iter().map(|t| (t.source.as_str(), t)).collect();
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
    if !s.model.is_empty() {
        facts.push(format!("model {}", name::short(&s.model)));
    }
    if s.steps > 0 {
        let plural = |n: u64, word: &str| {
            let ending = if n == 1 { "" } else { "s" };
            format!("{} {word}{ending}", number::count(n))
        };
        let epochs = match s.rounds {
            true => format!(", then {}", plural(s.epochs, "round")),
            false => format!(" in {}", plural(s.epochs, "epoch")),
        };
        facts.push(format!("{}{epochs}", plural(s.steps, "step")));
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
    Verdict::ALL
        .into_iter()
        .map(|verdict| (verdict, report.sources.iter().filter(|s| s.verdict == verdict).count()))
        .filter(|(_, n)| *n > 0)
        .map(|(verdict, n)| VerdictCount { word: verdict.word(), count: number::count(n as u64) })
        .collect()
}

fn importance(column: &Importance) -> [String; 3] {
    let share = if column.share.is_finite() { column.share.clamp(0.0, 1.0) } else { 0.0 };
    [name::short(&column.name), number::percent(column.share), scale::at(share)]
}

/// One picture per metric, one line per split, both in order of appearance; losses first.
fn curves(epochs: &[EpochMetric], best: Option<u64>) -> Vec<Picture> {
    let mut metrics = distinct(epochs.iter().map(|e| e.metric.as_str()));
    metrics.sort_by_key(|metric| *metric != "loss");
    let splits = distinct(epochs.iter().map(|e| e.split.as_str()));
    let picture = |metric: &&str| {
        if !is_curve(epochs, metric) {
            return None;
        }
        let lines = splits.iter().take(COLOURS).enumerate().map(|(i, split)| {
            let own = epochs.iter().filter(|e| e.metric == *metric && e.split == *split);
            let mut points: Vec<(f64, Option<f64>)> =
                own.map(|e| (e.epoch as f64, e.value)).collect();
            points.sort_by(|a, b| a.0.total_cmp(&b.0));
            let end = points.iter().rev().find_map(|p| p.1).unwrap_or(f64::NAN);
            let title =
                format!("{}: {} at the end", name::short(split), number::metric(metric, end));
            Line { class: format!("c{i}"), label: name::label(split), title, points }
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

/// Whether a metric was measured at more than one epoch of some split.
fn is_curve(epochs: &[EpochMetric], metric: &str) -> bool {
    let own = || epochs.iter().filter(|e| e.metric == metric);
    own().any(|a| own().any(|b| a.split == b.split && a.epoch != b.epoch))
}

/// What was measured once, of the parameters that were kept: split, metric, value.
fn scores(epochs: &[EpochMetric]) -> Vec<[String; 3]> {
    let metrics = distinct(epochs.iter().map(|e| e.metric.as_str()));
    let once: Vec<&str> = metrics.into_iter().filter(|metric| !is_curve(epochs, metric)).collect();
    let row = |e: &EpochMetric| {
        let words = number::metric_words(&e.metric).0;
        let value = number::metric(&e.metric, e.value.unwrap_or(f64::NAN));
        [name::short(&e.split), name::short(words), value]
    };
    epochs.iter().filter(|e| once.contains(&e.metric.as_str())).map(row).collect()
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
        assert_eq!(hash_of_inline(&page, "style"), STYLE_HASH, "set STYLE_HASH to the left value");
        assert_eq!(
            hash_of_inline(&page, "script"),
            SCRIPT_HASH,
            "set SCRIPT_HASH to the left value"
        );
    }
}
