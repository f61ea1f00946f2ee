//! The evidence on one flagged source, as it is shown.

use std::collections::HashMap;

use lapwing_judge::{Comparison, Evidence, Finding, SourceRow, Word};
use serde::Serialize;

use crate::confusion::Matrix;
use crate::distribution::{self, ResidualPicture};
use crate::phrase::phrases;
use crate::spark::Spark;
use crate::{Report, name, number, reason};

/// Sources whose evidence is shown.
const EVIDENCE: usize = 20;
/// Worst rows shown per source.
const WORST_ROWS: usize = 12;
/// Features shown per row.
const FEATURES: usize = 6;

#[derive(Serialize)]
pub(crate) struct EvidenceView {
    class: String,
    name: String,
    full: Option<String>,
    verdict: &'static str,
    weight: String,
    open: bool,
    reason: String,
    findings: Vec<FindingView>,
    features: Vec<String>,
    rows: Vec<RowView>,
    pictures: bool,
    texts: bool,
    sparks: bool,
    probabilities: bool,
    matrix: Option<Matrix>,
    residuals: Option<ResidualPicture>,
}

/// What was found, and rows that show it.
#[derive(Serialize)]
struct FindingView {
    sentence: String,
    rows: Option<String>,
}

impl FindingView {
    fn all(findings: &[Finding]) -> Vec<Self> {
        let rows = findings.iter().map(|finding| {
            let said = finding.words().iter().any(|word| matches!(word, Word::Rows(_)));
            let names: Vec<String> = finding.rows.iter().map(ToString::to_string).collect();
            let word = if names.len() == 1 { "row" } else { "rows" };
            (!said && !names.is_empty()).then(|| format!("{word} {}", name::join(&names)))
        });
        let rows = rows.chain(std::iter::repeat(None));
        let sentences = phrases(findings).into_iter().zip(rows);
        sentences.map(|(sentence, rows)| Self { sentence, rows }).collect()
    }
}

#[derive(Serialize)]
struct RowView {
    row: String,
    given: String,
    predicted: String,
    probability: String,
    loss: String,
    features: Vec<String>,
    picture: Option<String>,
    text: Option<String>,
    spark: Option<Spark>,
}

/// The evidence there is room for, on the worst sources first.
pub(crate) fn shown_evidence<'a>(
    report: &'a Report,
    ranked: &[&'a SourceRow],
) -> Vec<(&'a SourceRow, &'a Evidence)> {
    let by_name: HashMap<&str, &Evidence> =
        report.evidence.iter().map(|e| (e.source.as_str(), e)).collect();
    ranked
        .iter()
        .filter_map(|row| Some((*row, *by_name.get(row.source.as_str())?)))
        .take(EVIDENCE)
        .collect()
}

impl EvidenceView {
    pub(crate) fn has_pictures(&self) -> bool {
        self.pictures
    }

    pub(crate) fn new(row: &SourceRow, evidence: &Evidence, class: String, open: bool) -> Self {
        let name = name::short(&row.source);
        let (matrix, residuals) = match &evidence.comparison {
            Some(Comparison::Labels(confusion)) => (Matrix::new(confusion), None),
            Some(Comparison::Targets { own, reliable }) => {
                (None, distribution::residuals(own, reliable.as_ref()))
            }
            None => (None, None),
        };
        let rows = evidence.worst_rows.iter().take(WORST_ROWS);
        Self {
            class,
            full: name::in_full(&row.source, &name),
            name,
            verdict: row.verdict.word(),
            weight: number::fixed(row.weight, 2),
            open,
            reason: reason(row),
            findings: FindingView::all(&row.findings),
            features: evidence.features.iter().take(FEATURES).map(|f| name::short(f)).collect(),
            probabilities: rows.clone().any(|row| row.probability.is_some()),
            pictures: rows.clone().any(|row| row.picture.is_some()),
            texts: rows.clone().any(|row| row.text.is_some()),
            sparks: rows.clone().any(|row| !row.lines.is_empty()),
            rows: rows
                .map(|row| RowView {
                    row: row.row.to_string(),
                    given: name::short(&row.given),
                    predicted: name::short(&row.predicted),
                    probability: row
                        .probability
                        .map_or_else(|| number::NONE.to_owned(), number::probability),
                    loss: row.loss.map_or_else(|| number::NONE.to_owned(), number::value),
                    features: row.features.iter().take(FEATURES).map(|f| name::short(f)).collect(),
                    picture: row.picture.clone(),
                    text: row.text.as_deref().map(name::passage),
                    spark: Spark::new(&row.lines, &row.typical),
                })
                .collect(),
            matrix,
            residuals,
        }
    }
}
