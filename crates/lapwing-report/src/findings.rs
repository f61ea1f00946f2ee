//! What to look at first in a flagged source: plain sentences from its evidence.

use crate::{Comparison, Confusion, Evidence, Residuals, SourceRow, WorstRow, name, number};

/// Probability above which the model is called sure.
const SURE: f64 = 0.95;
/// Rows below which no pattern is claimed.
const ENOUGH: u64 = 20;

/// The findings on one source, most telling first. Never empty.
pub(crate) fn findings(row: &SourceRow, evidence: &Evidence) -> Vec<String> {
    let mut out = Vec::new();
    match &evidence.comparison {
        Some(Comparison::Labels(confusion)) => labels(confusion, &mut out),
        Some(Comparison::Targets(residuals)) => targets(residuals, &mut out),
        None => {}
    }
    sure_rows(&evidence.worst_rows, &mut out);
    course(row, &mut out);
    if out.is_empty() {
        out.push(
            "No single pattern stands out: read the worst rows and ask where they came from."
                .to_owned(),
        );
    }
    out
}

fn labels(confusion: &Confusion, out: &mut Vec<String>) {
    let counts = Counts::new(confusion);
    if counts.total == 0 {
        return;
    }
    let agreement = counts.agreed as f64 / counts.total as f64;
    out.push(match confusion.reliable_agreement {
        Some(reliable) => format!(
            "Its labels agree with the model in {} of {} rows, against {} on reliable sources.",
            number::percent(agreement),
            number::count(counts.total),
            number::percent(reliable)
        ),
        None => format!(
            "Its labels agree with the model in {} of {} rows.",
            number::percent(agreement),
            number::count(counts.total)
        ),
    });
    if let Some(pattern) = counts.pattern() {
        out.push(pattern);
    }
    if let Some((given, predicted, n)) = counts.most_frequent_disagreement() {
        out.push(format!(
            "Most frequent disagreement: given {}, the model says {} ({} of {} disagreements).",
            name::quoted(&confusion.classes[given]),
            name::quoted(&confusion.classes[predicted]),
            number::count(n),
            number::count(counts.total - counts.agreed)
        ));
    }
}

/// A confusion with its sums.
struct Counts<'a> {
    confusion: &'a Confusion,
    given: Vec<u64>,
    predicted: Vec<u64>,
    total: u64,
    agreed: u64,
}

/// Counts may come from a file, so their sum must not overflow.
fn sum(counts: impl Iterator<Item = u64>) -> u64 {
    counts.fold(0, u64::saturating_add)
}

impl<'a> Counts<'a> {
    fn new(confusion: &'a Confusion) -> Self {
        let cells = &confusion.counts;
        let given: Vec<u64> = cells.iter().map(|row| sum(row.iter().copied())).collect();
        let predicted: Vec<u64> =
            (0..cells.len()).map(|j| sum(cells.iter().map(|row| row[j]))).collect();
        let agreed = sum((0..cells.len()).map(|i| cells[i][i]));
        Self { confusion, total: sum(given.iter().copied()), given, predicted, agreed }
    }

    fn cells(&self) -> impl Iterator<Item = (usize, usize, u64)> + '_ {
        let rows = self.confusion.counts.iter().enumerate();
        rows.flat_map(|(i, row)| row.iter().enumerate().map(move |(j, n)| (i, j, *n)))
    }

    fn most_frequent_disagreement(&self) -> Option<(usize, usize, u64)> {
        let off = self.cells().filter(|(i, j, n)| i != j && *n > 0);
        // Of equals the first, so that the order of classes decides and not the iterator.
        off.reduce(|best, cell| if cell.2 > best.2 { cell } else { best })
    }

    /// What the model says to most rows with this given label.
    fn main_answer(&self, given: usize) -> Option<usize> {
        let row = &self.confusion.counts[given];
        (0..row.len()).find(|&j| row[j] > self.given[given] / 2)
    }

    fn pattern(&self) -> Option<String> {
        if self.total < ENOUGH {
            return None;
        }
        let class = |i: usize| name::quoted(&self.confusion.classes[i]);
        let share = |n: u64, of: u64| n as f64 / of.max(1) as f64;
        let classes = 0..self.given.len();

        if let Some(only) = classes.clone().find(|&i| share(self.given[i], self.total) >= 0.95) {
            let seen = share(self.predicted[only], self.total);
            return (seen < 0.8).then(|| {
                format!(
                    "It gives nearly every row the label {}, which the model sees in only {}: look for a default value, \
                     a filter, or an annotator who did not read.",
                    class(only),
                    number::percent(seen)
                )
            });
        }
        let association = self.association();
        if association < 0.25 {
            return Some(format!(
                "Its labels have next to nothing to do with what the model sees (association {} on a scale from 0 to 1): \
                 they look given at random, or attached to the wrong rows.",
                number::fixed(association, 2)
            ));
        }
        let moved: Vec<(usize, usize)> = classes
            .filter_map(|i| Some((i, self.main_answer(i)?)))
            .filter(|(i, j)| i != j)
            .collect();
        let swap = moved.iter().find(|(i, j)| i < j && moved.contains(&(*j, *i)));
        if let Some(&(i, j)) = swap.filter(|_| moved.len() == 2) {
            let cells = &self.confusion.counts;
            return Some(format!(
                "{} and {} look exchanged: {} of the rows given as one of them are the other to the model. Check how the \
                 labels of this source were coded.",
                class(i),
                class(j),
                number::percent(share(
                    cells[i][j].saturating_add(cells[j][i]),
                    self.given[i].saturating_add(self.given[j])
                )),
            ));
        }
        if moved.len() >= 3 {
            let shown: Vec<String> = moved
                .iter()
                .take(4)
                .map(|(i, j)| format!("{} → {}", class(*i), class(*j)))
                .collect();
            return Some(format!(
                "Its labels look renumbered ({}{}): check the order of the classes and whether they count from 0 or from 1.",
                shown.join(", "),
                if moved.len() > 4 { ", …" } else { "" }
            ));
        }
        let (i, _, n) = self.most_frequent_disagreement()?;
        let wrong = self.total - self.agreed;
        if self.given.len() > 2 && share(n, wrong) >= 0.5 {
            return Some("One pair of classes accounts for most of its disagreements: the rest of its labels may be sound.".to_owned());
        }
        let from_one = self.given[i] - self.confusion.counts[i][i];
        if share(from_one, wrong) >= 0.8 {
            return Some(format!(
                "{} of its disagreements are rows it labels {}: the rest of its labels may be sound.",
                number::percent(share(from_one, wrong)),
                class(i)
            ));
        }
        Some("Its disagreements are spread over the classes, as by carelessness rather than by rule.".to_owned())
    }

    /// Cramér's V: 0 when given and predicted labels are independent, 1 when one determines the other.
    fn association(&self) -> f64 {
        let n = self.total as f64;
        let expected = |i: usize, j: usize| self.given[i] as f64 * self.predicted[j] as f64 / n;
        let cells = self.cells().filter(|(i, j, _)| expected(*i, *j) > 0.0);
        let chi2: f64 = cells
            .map(|(i, j, count)| (count as f64 - expected(i, j)).powi(2) / expected(i, j))
            .sum();
        let used = |sums: &[u64]| sums.iter().filter(|s| **s > 0).count();
        let freedom = used(&self.given).min(used(&self.predicted)).saturating_sub(1);
        if freedom == 0 { 0.0 } else { (chi2 / (n * freedom as f64)).sqrt() }
    }
}

fn targets(residuals: &Residuals, out: &mut Vec<String>) {
    let n = residuals.own.total();
    let finite = |x: Option<f64>| x.filter(|x| x.is_finite());
    let (Some(mean), Some(std)) = (finite(residuals.mean), finite(residuals.std)) else {
        return;
    };
    let reliable = finite(residuals.reliable_mean).zip(finite(residuals.reliable_std));
    out.push(match reliable {
        Some((reliable_mean, reliable_std)) => format!(
            "Its targets differ from the model's predictions by {} ± {} (mean and standard deviation over {} rows), \
             against {} ± {} on reliable sources.",
            beside(mean, std),
            number::value(std),
            number::count(n),
            beside(reliable_mean, reliable_std),
            number::value(reliable_std)
        ),
        None => format!("Its targets differ from the model's predictions by {} ± {}.", beside(mean, std), number::value(std)),
    });
    if n < ENOUGH {
        return;
    }
    let correlation = finite(residuals.correlation);
    let slope = finite(residuals.slope);
    let pattern = match correlation.zip(slope) {
        Some((r, _)) if r < -0.3 => Some(format!(
            "Its targets fall where the predictions rise (correlation {}): look for a flipped sign or a scale that runs the \
             other way.",
            number::fixed(r, 2)
        )),
        Some((r, _)) if r < 0.2 => Some(format!(
            "Its targets have next to nothing to do with the predictions (correlation {}): they look drawn at random, or \
             attached to the wrong rows.",
            number::fixed(r, 2)
        )),
        Some((r, slope)) if r > 0.5 && !(0.6..1.7).contains(&slope) => Some(format!(
            "Its targets move with the predictions (correlation {}), but {} times as far: look for another unit or scale.",
            number::fixed(r, 2),
            number::value(slope)
        )),
        _ => None,
    };
    if let Some(pattern) = pattern {
        // It explains any shift as well.
        out.push(pattern);
        return;
    }
    if let Some((reliable_mean, reliable_std)) = reliable {
        let shift = mean - reliable_mean;
        let noise = 3.0 * std / (n as f64).sqrt();
        if shift.abs() > noise.max(0.5 * reliable_std) {
            out.push(format!(
                "On average its targets lie {} {} what reliable sources report for such rows: look for an offset, such as \
                 another unit, baseline or calibration.",
                number::value(shift.abs()),
                if shift > 0.0 { "above" } else { "below" }
            ));
        } else if std > 1.5 * reliable_std && reliable_std > 0.0 {
            out.push(format!(
                "Its residuals spread {} times as wide as those of reliable sources.",
                number::fixed(std / reliable_std, 1)
            ));
        }
    }
}

/// A mean beside its standard deviation: zero where the difference is rounding.
fn beside(mean: f64, std: f64) -> String {
    number::value(if mean.abs() < 1e-3 * std { 0.0 } else { mean })
}

fn sure_rows(rows: &[WorstRow], out: &mut Vec<String>) {
    let sure: Vec<String> = rows
        .iter()
        .filter(|row| row.given != row.predicted && row.probability.is_some_and(|p| p >= SURE))
        .map(|row| row.row.to_string())
        .take(5)
        .collect();
    if !sure.is_empty() {
        out.push(format!(
            "Check {} {} by hand: the model is at least {} sure of another label there.",
            if sure.len() == 1 { "row" } else { "rows" },
            name::join(&sure),
            number::percent(SURE)
        ));
    }
}

fn course(row: &SourceRow, out: &mut Vec<String>) {
    let above = row.share_above.filter(|s| s.is_finite()).map(|share| {
        format!("its loss was above the threshold in {} of its steps", number::percent(share))
    });
    match (row.first_departure_step, above) {
        (Some(step), Some(above)) => out.push(format!(
            "It first departed from the others at step {}; {above}.",
            number::count(step)
        )),
        (Some(step), None) => {
            out.push(format!("It first departed from the others at step {}.", number::count(step)));
        }
        (None, Some(above)) => out.push(format!("I{}.", &above[1..])),
        (None, None) => {}
    }
    if row.nonfinite > 0 {
        out.push(format!(
            "{} of its losses were not finite: look for missing, infinite or absurdly large values.",
            number::count(row.nonfinite)
        ));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn confused(counts: &[&[u64]]) -> String {
        let classes =
            ["A", "B", "C", "D"][..counts.len()].iter().map(|c| (*c).to_owned()).collect();
        let counts = counts.iter().map(|row| row.to_vec()).collect();
        let confusion = Confusion { classes, counts, reliable_agreement: Some(0.91) };
        let evidence =
            Evidence { comparison: Some(Comparison::Labels(confusion)), ..Default::default() };
        findings(&SourceRow::default(), &evidence).join(" ")
    }

    #[test]
    fn agreement_is_compared_with_reliable_sources_and_the_main_disagreement_named() {
        let text = confused(&[&[5, 45, 0], &[20, 20, 0], &[0, 5, 5]]);
        assert!(
            text.contains(
                "agree with the model in 30\u{202F}% of 100 rows, against 91\u{202F}% on reliable"
            ),
            "{text}"
        );
        assert!(text.contains("given “A”, the model says “B” (45 of 70 disagreements)"), "{text}");
    }

    #[test]
    fn two_exchanged_classes_are_recognised() {
        let text = confused(&[&[5, 45, 0], &[40, 5, 5], &[0, 0, 50]]);
        assert!(text.contains("“A” and “B” look exchanged: 85\u{202F}%"), "{text}");
    }

    #[test]
    fn renumbered_classes_are_recognised() {
        let text = confused(&[&[0, 30, 0], &[0, 1, 29], &[30, 0, 0]]);
        assert!(text.contains("renumbered (“A” → “B”, “B” → “C”, “C” → “A”)"), "{text}");
    }

    #[test]
    fn random_labels_are_recognised() {
        assert!(confused(&[&[26, 24], &[25, 25]]).contains("given at random"));
        assert!(confused(&[&[24, 26], &[26, 24]]).contains("given at random"));
    }

    #[test]
    fn a_single_label_for_everything_is_recognised() {
        let text = confused(&[&[50, 50], &[0, 0]]);
        assert!(
            text.contains(
                "nearly every row the label “A”, which the model sees in only 50\u{202F}%"
            ),
            "{text}"
        );
    }

    #[test]
    fn one_bad_pair_among_sound_labels_is_recognised() {
        let text = confused(&[&[80, 20, 0], &[1, 99, 0], &[0, 1, 99]]);
        assert!(text.contains("One pair of classes accounts for most"), "{text}");
    }

    #[test]
    fn few_rows_claim_no_pattern() {
        let text = confused(&[&[0, 3], &[3, 0]]);
        assert!(!text.contains("exchanged"), "{text}");
    }

    /// Checked by hand: chi² of [[30, 10], [10, 30]] is 20, n = 80, so V = sqrt(20 / 80).
    #[test]
    fn association_is_cramers_v() {
        let confusion = Confusion {
            classes: vec!["A".into(), "B".into()],
            counts: vec![vec![30, 10], vec![10, 30]],
            ..Default::default()
        };
        assert!((Counts::new(&confusion).association() - 0.5).abs() < 1e-12);
    }

    fn regressed(given: impl Fn(f64) -> f64) -> String {
        // A fixed zigzag stands for noise.
        let noise = |i: i32| f64::from(i % 5 - 2) * 0.1;
        let pairs: Vec<(f64, f64)> = (0..100)
            .map(|i| (given(f64::from(i) / 10.0) + noise(i), f64::from(i) / 10.0))
            .collect();
        let reliable: Vec<f64> = (0..100).map(noise).collect();
        let evidence = Evidence {
            comparison: Some(Comparison::Targets(Residuals::of(&pairs, &reliable))),
            ..Default::default()
        };
        findings(&SourceRow::default(), &evidence).join(" ")
    }

    #[test]
    fn regression_targets_that_are_shifted_scaled_flipped_or_random_are_recognised() {
        let shifted = regressed(|x| x + 3.0);
        assert!(
            shifted.contains("lie 3.000 above") && !shifted.contains("unit or scale"),
            "{shifted}"
        );
        let scaled = regressed(|x| 2.54 * x);
        assert!(scaled.contains("2.542 times as far") && !scaled.contains("offset"), "{scaled}");
        let flipped = regressed(|x| -x);
        assert!(flipped.contains("flipped sign"), "{flipped}");
        let random = regressed(|x| (x * 1000.0).sin() * 5.0);
        assert!(random.contains("drawn at random"), "{random}");
    }

    #[test]
    fn rows_the_model_is_sure_of_come_with_their_numbers() {
        let row = |row, probability| WorstRow {
            row,
            given: "A".into(),
            predicted: "B".into(),
            probability: Some(probability),
            ..Default::default()
        };
        let evidence = Evidence {
            worst_rows: vec![row(17, 0.99), row(1203, 0.96), row(5, 0.6)],
            ..Default::default()
        };
        let text = findings(&SourceRow::default(), &evidence).join(" ");
        assert!(text.contains("Check rows 17 and 1203 by hand"), "{text}");
    }

    #[test]
    fn without_evidence_there_is_still_advice() {
        assert_eq!(findings(&SourceRow::default(), &Evidence::default()).len(), 1);
    }

    #[test]
    fn the_course_of_training_is_told() {
        let row = SourceRow {
            share_above: Some(0.96),
            first_departure_step: Some(120),
            nonfinite: 3,
            ..Default::default()
        };
        let text = findings(&row, &Evidence::default()).join(" ");
        assert!(text.contains("first departed from the others at step 120; its loss was above the threshold in 96\u{202F}%"), "{text}");
        assert!(text.contains("3 of its losses were not finite"), "{text}");
    }
}
