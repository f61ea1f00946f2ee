//! The verdicts on a terminal, and as JSON.

use lapwing_judge::{Finding, Interval, SourceNoise, SourceRow, Verdict};
use lapwing_run::Metrics;
use serde::ser::{Error, SerializeSeq};
use serde::{Serialize, Serializer};
use serde_json::{Value, json};

use crate::output::count;
use crate::say::counted;
use crate::table::{TextTable, printable};

/// Sources in the order in which they are read.
pub(crate) fn worst_first(sources: &[SourceRow]) -> Vec<&SourceRow> {
    let mut sources: Vec<&SourceRow> = sources.iter().collect();
    sources.sort_by(|a, b| a.worst_first(b));
    sources
}

/// Sources shown on a terminal; whoever wants more has `sources.csv` and `--json`.
const MOST_SHOWN: usize = 100;
/// Sources whose verdict is explained below the table.
const MOST_REASONS: usize = 20;

/// A table of sources: noise rate and disagreement where labels were judged, else the losses, with estimated label
/// errors where there are any; the first ones, where there are many.
pub(crate) fn table(sources: &[&SourceRow]) -> String {
    let judged = sources.iter().any(|source| source.noise.is_some());
    let mut text = if judged { noise_table(sources) } else { loss_table(sources) };
    if sources.len() > MOST_SHOWN {
        let more = count((sources.len() - MOST_SHOWN) as u64);
        text.push_str(&format!("… and {more} more; all of them are in sources.csv\n"));
    }
    text
}

fn loss_table(sources: &[&SourceRow]) -> String {
    let estimated = sources.iter().any(|source| source.label_error.is_some());
    let mut header =
        vec!["verdict", "source", ">rows", ">weight", ">unreliability", ">loss", ">others"];
    if estimated {
        header.push(">label errors");
    }
    let mut table = TextTable::new(&header);
    let loss = |loss: Option<f64>| loss.map_or_else(|| "–".to_owned(), short);
    for source in sources.iter().take(MOST_SHOWN) {
        let mut cells = vec![
            source.verdict.word().to_owned(),
            source.source.clone(),
            count(source.rows),
            short(source.weight),
            count(source.unreliability),
            loss(source.mean_loss),
            loss(source.reference_loss),
        ];
        if estimated {
            cells.push(source.label_error.as_ref().map_or_else(|| "–".to_owned(), interval));
        }
        table.row(cells);
    }
    table.render()
}

fn noise_table(sources: &[&SourceRow]) -> String {
    let mut table = TextTable::new(&[
        "verdict",
        "source",
        ">rows",
        ">weight",
        ">noise rate",
        ">disagreement",
        ">doubt",
        ">class mix",
    ]);
    for source in sources.iter().take(MOST_SHOWN) {
        let share = |value: fn(&SourceNoise) -> f64| match &source.noise {
            Some(noise) => format!("{:.0} %", 100.0 * value(noise)),
            None => "–".to_owned(),
        };
        table.row([
            source.verdict.word().to_owned(),
            source.source.clone(),
            count(source.rows),
            short(source.weight),
            source.noise.map_or_else(|| "–".to_owned(), |noise| interval(&noise.noise_rate)),
            share(|noise| noise.disagreement),
            share(|noise| noise.doubt),
            share(|noise| noise.class_mix),
        ]);
    }
    table.render()
}

/// Why the first sources that are not reliable have their verdict, a line each.
pub(crate) fn reasons(sources: &[&SourceRow]) -> String {
    let told =
        |source: &&&SourceRow| !matches!(source.verdict, Verdict::Reliable | Verdict::Insufficient);
    let line = |source: &&SourceRow| {
        let reason = lapwing_report::reason(source).replace('\u{202f}', " ");
        format!("  {}: {reason}\n", printable(&source.source))
    };
    sources.iter().filter(told).take(MOST_REASONS).map(line).collect()
}

/// Faults that need no line: they only describe what the reasons say, or are told elsewhere.
pub(crate) const DESCRIPTIONS: [&str; 6] = [
    "disagreement",
    "frequent-disagreement",
    "scattered-disagreements",
    "residual-spread",
    "sure-rows",
    "departure",
];

/// What is wrong with the first sources in which something was found, a line each.
pub(crate) fn findings(sources: &[&SourceRow]) -> String {
    let told = |source: &&SourceRow| {
        let faults = source.findings.iter();
        faults.filter(|f| !DESCRIPTIONS.contains(&f.fault.word())).cloned().collect::<Vec<_>>()
    };
    let found = sources.iter().map(|source| (source, told(source)));
    let lines = found.filter(|(_, told)| !told.is_empty()).take(MOST_REASONS);
    let line = |(source, told): (&&SourceRow, Vec<Finding>)| {
        let name = printable(&source.source);
        let line = |finding: &Finding| {
            let sentence = lapwing_report::phrase(finding).replace('\u{202f}', " ");
            format!("  {name}: {sentence}\n")
        };
        told.iter().map(line).collect::<String>()
    };
    lines.map(line).collect()
}

/// What the verdicts come to, in a line.
pub(crate) fn tally(sources: &[&SourceRow]) -> String {
    let of = |verdict: Verdict| sources.iter().filter(|s| s.verdict == verdict).count();
    let words = Verdict::ALL
        .into_iter()
        .filter(|verdict| of(*verdict) > 0)
        .map(|verdict| format!("{} {}", count(of(verdict) as u64), verdict.word()))
        .collect::<Vec<_>>();
    format!("{}: {}", counted(sources.len() as u64, "source"), words.join(", "))
}

/// One source as a JSON object: the columns of `sources.csv`, the reasons for the verdict and their sentence, the estimate
/// of wrong labels where there is one, and the findings, each with its sentence.
pub(crate) fn object(source: &SourceRow) -> anyhow::Result<Value> {
    let mut object = serde_json::to_value(source)?;
    if let Some(fields) = object.as_object_mut() {
        fields.remove("noise");
        for column in SourceRow::COLUMNS {
            if !fields.contains_key(column) {
                fields.insert(column.to_owned(), serde_json::to_value(source.cell(column))?);
            }
        }
        fields.insert("sentence".to_owned(), json!(lapwing_report::reason(source)));
    }
    let listed = object.get_mut("findings").and_then(Value::as_array_mut);
    for (value, finding) in listed.into_iter().flatten().zip(&source.findings) {
        value["sentence"] = json!(lapwing_report::phrase(finding));
    }
    Ok(object)
}

/// Sources as a JSON array of [objects](object), made one at a time: there may be a million.
pub(crate) struct Objects<'a>(pub(crate) &'a [&'a SourceRow]);

impl Serialize for Objects<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut array = serializer.serialize_seq(Some(self.0.len()))?;
        for source in self.0 {
            array.serialize_element(&object(source).map_err(S::Error::custom)?)?;
        }
        array.end()
    }
}

/// Metrics in a line: `accuracy 0.9755, …`.
pub(crate) fn metrics(metrics: &Metrics) -> String {
    let named = metrics.named().into_iter();
    named
        .filter_map(|(name, value)| Some(format!("{} {}", name.replace('_', " "), short(value?))))
        .collect::<Vec<_>>()
        .join(", ")
}

/// Metrics as a JSON object.
pub(crate) fn metrics_object(metrics: &Metrics) -> Value {
    let fields = metrics.named().into_iter().map(|(name, value)| (name.to_owned(), json!(value)));
    let mut object: serde_json::Map<String, Value> =
        [("rows".to_owned(), json!(metrics.rows()))].into_iter().collect();
    object.extend(fields);
    Value::Object(object)
}

/// Four figures that matter.
pub(crate) fn short(value: f64) -> String {
    match value.abs() {
        0.0 => "0".to_owned(),
        size if !size.is_finite() => value.to_string(),
        size if !(1e-4..1e7).contains(&size) => format!("{value:.1e}"),
        size if size >= 1000.0 => format!("{value:.0}"),
        size if size >= 10.0 => format!("{value:.2}"),
        _ => format!("{value:.4}"),
    }
}

fn interval(interval: &Interval) -> String {
    let per_cent = |share: f64| format!("{:.0}", 100.0 * share);
    let Interval { estimate, low, high } = interval;
    format!("{} % ({}–{})", per_cent(*estimate), per_cent(*low), per_cent(*high))
}
