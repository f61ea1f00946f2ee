//! Where no method can know: what the table lacks for a judgement, whatever comes of it.

use std::collections::BTreeMap;

use lapwing_judge::{FEWEST_ROWS, SourceRow, Verdict};
use lapwing_report::Warning;
use lapwing_sample::Targets;

use crate::Job;

/// Names that are told.
const TOLD: usize = 3;

/// Warnings on the rows for training and validation, and on the verdicts.
pub(crate) fn limits(job: &Job<'_>, judged: &[SourceRow]) -> Vec<Warning> {
    let (dataset, split) = (job.dataset(), job.split());
    let rows = || split.train.iter().chain(&split.validation).map(|&row| row as usize);
    let codes = &dataset.sources.codes;
    let name = |source: u32| dataset.sources.names[source as usize].clone();
    let mut counts: BTreeMap<u32, u64> = BTreeMap::new();
    rows().for_each(|row| *counts.entry(codes[row]).or_default() += 1);
    let mut warnings = Vec::new();
    if counts.len() == 2 {
        let sources = counts.keys().map(|&source| name(source)).collect();
        warnings.push(Warning::TwoSources { sources });
    }
    if let Targets::Classes { labels, .. } = &dataset.target
        && counts.len() > 1
    {
        let of_source = only(rows().map(|row| (codes[row], labels[row])));
        let enough = |source: &u32| counts.get(source).is_some_and(|&rows| rows >= FEWEST_ROWS);
        let one_label: Vec<u32> = of_source.into_keys().filter(enough).collect();
        // Where items are known, others answer the same rows.
        if !one_label.is_empty() && dataset.items.is_none() {
            let sources = one_label.iter().take(TOLD).map(|&source| name(source)).collect();
            warnings.push(Warning::OneLabel { sources, count: one_label.len() as u64 });
        }
        let of_class = only(rows().map(|row| (labels[row], codes[row])));
        if !of_class.is_empty() {
            let class = |class: u32| dataset.schema.classes[class as usize].clone();
            let told = of_class.iter().take(TOLD);
            let classes = told.map(|(&label, &source)| (class(label), name(source))).collect();
            warnings.push(Warning::ClassOfOneSource { classes, count: of_class.len() as u64 });
        }
    }
    warnings.extend(most_unreliable(judged));
    let unreliable =
        |row: &&u32| judged[codes[**row as usize] as usize].verdict == Verdict::Unreliable;
    let (bad, of) = (split.test.iter().filter(unreliable).count() as u64, split.test.len() as u64);
    warnings.extend((bad > 0).then_some(Warning::TestedOnUnreliable { rows: bad, of }));
    warnings
}

/// Keys that have always come with the same value, and that value.
fn only(pairs: impl Iterator<Item = (u32, u32)>) -> BTreeMap<u32, u32> {
    let mut seen: BTreeMap<u32, Option<u32>> = BTreeMap::new();
    for (key, value) in pairs {
        let known = seen.entry(key).or_insert(Some(value));
        *known = known.filter(|&known| known == value);
    }
    seen.into_iter().filter_map(|(key, value)| Some((key, value?))).collect()
}

fn most_unreliable(judged: &[SourceRow]) -> Option<Warning> {
    let known = || judged.iter().filter(|source| source.verdict != Verdict::Insufficient);
    let bad = || known().filter(|source| source.verdict == Verdict::Unreliable);
    let (sources, of) = (bad().count() as u64, known().count() as u64);
    let all: u64 = known().map(|source| source.rows).sum();
    let rows = bad().map(|source| source.rows).sum::<u64>() as f64 / all.max(1) as f64;
    (sources > 1 && (2 * sources > of || rows > 0.5)).then_some(Warning::MostUnreliable {
        sources,
        of,
        rows,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_with_one_value_is_told_from_one_with_several() {
        let pairs = [(0, 5), (1, 5), (0, 5), (1, 6), (1, 5), (2, 0)];
        assert_eq!(only(pairs.into_iter()), BTreeMap::from([(0, 5), (2, 0)]));
    }

    #[test]
    fn most_is_more_than_half_of_sources_or_rows_and_more_than_one() {
        let source = |verdict, rows| SourceRow { verdict, rows, ..SourceRow::default() };
        use Verdict::{Insufficient, Reliable, Unreliable};
        let said = |all: &[(Verdict, u64)]| {
            let rows: Vec<SourceRow> = all.iter().map(|&(v, rows)| source(v, rows)).collect();
            most_unreliable(&rows).is_some()
        };
        assert!(said(&[(Unreliable, 10), (Unreliable, 10), (Reliable, 90), (Insufficient, 1)]));
        assert!(said(&[(Unreliable, 50), (Unreliable, 50), (Reliable, 10), (Reliable, 10)]));
        assert!(!said(&[(Unreliable, 10), (Unreliable, 10), (Reliable, 20), (Reliable, 20)]));
        assert!(!said(&[(Unreliable, 90), (Reliable, 10)]));
        assert!(!said(&[]));
    }
}
