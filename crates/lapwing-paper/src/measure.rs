//! What is measured on the test set, on rows that are held out, and while training goes on.

use lapwing_train::negative_log_probability;

/// Numbers by name for the outputs of a network, `[rows, classes]` one after another; `wanted` are the classes whose recall
/// is wanted beside accuracy and loss, and `area` asks for the area under the curve of precision over recall, of two classes.
pub(crate) fn of_classes(
    outputs: &[f32],
    labels: &[u32],
    classes: usize,
    wanted: &[u32],
    area: bool,
) -> Vec<(String, f64)> {
    let rows = outputs.chunks_exact(classes).zip(labels);
    let rows: Vec<Row> = rows.map(|(logits, &label)| Row::of(logits, label)).collect();
    let share = |hit: &dyn Fn(&Row) -> bool, of: &dyn Fn(&Row) -> bool| {
        let of: Vec<&Row> = rows.iter().filter(|row| of(row)).collect();
        100.0 * of.iter().filter(|row| hit(row)).count() as f64 / of.len() as f64
    };
    let loss = rows.iter().map(|row| row.loss).sum::<f64>() / rows.len() as f64;
    let mut numbers = vec![
        ("top-1".to_owned(), share(&|row| row.rank == Some(0), &|_| true)),
        ("top-5".to_owned(), share(&|row| row.rank.is_some_and(|r| r < 5), &|_| true)),
        ("loss".to_owned(), loss),
    ];
    if area && classes == 2 {
        let scores: Vec<(f32, bool)> =
            outputs.chunks_exact(2).zip(labels).map(|(row, &label)| (row[1], label == 1)).collect();
        numbers.extend(area_under_precision_recall(scores).map(|area| ("auc-pr".to_owned(), area)));
    }
    numbers.extend(wanted.iter().map(|&class| {
        let recall = share(&|row| row.rank == Some(0), &|row| row.label == class);
        (format!("recall-{class}"), recall)
    }));
    numbers
}

/// The share of rows whose class comes first, in per cent, each row counting for its weight.
pub(crate) fn accuracy(
    outputs: &[f32],
    labels: &[u32],
    classes: usize,
    weight: impl Fn(usize) -> f64,
) -> f64 {
    let (mut hits, mut all) = (0.0, 0.0);
    for (at, (logits, &label)) in outputs.chunks_exact(classes).zip(labels).enumerate() {
        all += weight(at);
        if Row::of(logits, label).rank == Some(0) {
            hits += weight(at);
        }
    }
    100.0 * hits / all
}

/// The area under the curve of precision over recall through all thresholds, by trapezoids, with the end at recall 0 and
/// precision 1; none where there is no positive. Rows are scores and whether they are positive.
fn area_under_precision_recall(mut rows: Vec<(f32, bool)>) -> Option<f64> {
    let positives = rows.iter().filter(|(_, positive)| *positive).count() as f64;
    if positives == 0.0 {
        return None;
    }
    rows.sort_by(|a, b| b.0.total_cmp(&a.0));
    let (mut hits, mut taken, mut area) = (0.0, 0.0, 0.0);
    let (mut recall, mut precision) = (0.0, 1.0);
    // Rows of equal score are taken together.
    for equal in rows.chunk_by(|a, b| a.0 == b.0) {
        hits += equal.iter().filter(|(_, positive)| *positive).count() as f64;
        taken += equal.len() as f64;
        let (next_recall, next_precision) = (hits / positives, hits / taken);
        area += (next_recall - recall) * (next_precision + precision) / 2.0;
        (recall, precision) = (next_recall, next_precision);
    }
    Some(area)
}

/// The same for predicted values.
pub(crate) fn of_values(predicted: &[f64], values: &[f64]) -> Vec<(String, f64)> {
    let sum: f64 = predicted.iter().zip(values).map(|(ours, theirs)| (ours - theirs).powi(2)).sum();
    vec![("mse".to_owned(), sum / values.len() as f64)]
}

/// The training loss of an epoch as the paper draws it: the mean of weight · loss over the rows that were trained on.
#[derive(Debug, Default)]
pub(crate) struct EpochLoss {
    sum: f64,
    rows: usize,
}

impl EpochLoss {
    /// A step of the epoch. A loss that is not finite counts for nothing, as it does in training.
    pub(crate) fn add(&mut self, losses: &[f32], weights: &[f64]) {
        for (&loss, weight) in losses.iter().zip(weights).filter(|(loss, _)| loss.is_finite()) {
            self.sum += weight * f64::from(loss);
            self.rows += 1;
        }
    }

    /// The mean, if there is one; the next epoch begins with nothing.
    pub(crate) fn take(&mut self) -> Option<f64> {
        let Self { sum, rows } = std::mem::take(self);
        (rows > 0).then(|| sum / rows as f64)
    }
}

struct Row {
    label: u32,
    /// How many classes come before the right one; none where its output is not a number.
    rank: Option<usize>,
    /// The cross-entropy.
    loss: f64,
}

impl Row {
    fn of(logits: &[f32], label: u32) -> Self {
        let right = logits[label as usize];
        let before = |(class, &logit): (usize, &f32)| {
            logit > right || (logit == right && class < label as usize)
        };
        let rank =
            (!right.is_nan()).then(|| logits.iter().enumerate().filter(|&it| before(it)).count());
        Self { label, rank, loss: negative_log_probability(logits, label as usize) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accuracy_counts_ranks_and_loss_is_cross_entropy() {
        let classes = 6;
        let outputs = [
            [5.0, 4.0, 3.0, 2.0, 1.0, 0.0],
            [5.0, 4.0, 3.0, 2.0, 1.0, 0.0],
            [5.0, 4.0, 3.0, 2.0, 1.0, 0.0],
            [1.0, 1.0, 1.0, 1.0, 1.0, f32::NAN],
        ];
        let numbers = of_classes(&outputs.concat(), &[0, 4, 5, 5], classes, &[5], false);
        assert_eq!(numbers[0], ("top-1".to_owned(), 25.0));
        assert_eq!(numbers[1], ("top-5".to_owned(), 50.0));
        assert_eq!(numbers[3], ("recall-5".to_owned(), 0.0));
        // Rows 0 and 3 of four, of which only the first comes first.
        let weighted =
            |weight: fn(usize) -> f64| accuracy(&outputs.concat(), &[0, 4, 5, 5], classes, weight);
        assert_eq!(weighted(|_| 1.0), 25.0);
        assert_eq!(weighted(|at| [3.0, 1.0, 0.0, 0.0][at]), 75.0);
        let equal = of_classes(&[0.0, 0.0], &[1], 2, &[], false);
        let loss = equal[2].1;
        assert!((loss - std::f64::consts::LN_2).abs() < 1e-12);
        // Equal outputs do not all count as the first.
        assert_eq!(equal[0].1, 0.0);
    }

    #[test]
    fn the_area_is_that_under_all_thresholds() {
        // Recall and precision from the highest threshold on: (0, 1), (¼, 1), (¼, ½), (½, ⅔), (¾, ¾), (1, ⅔), …
        let labels = [0, 1, 1, 0, 1, 0, 1, 0];
        let scores = [0.1, 0.4, 0.35, 0.8, 0.7, 0.35, 0.9, 0.2];
        let outputs: Vec<f32> = scores.iter().flat_map(|&score| [7.0, score]).collect();
        let found = of_classes(&outputs, &labels, 2, &[], true);
        let area = found.iter().find(|(name, _)| name == "auc-pr").unwrap().1;
        assert!((area - 0.75).abs() < 1e-9, "{area}");
        let perfect = of_classes(&[0.0, 1.0, 0.0, -1.0], &[1, 0], 2, &[], true);
        assert_eq!(perfect.last().unwrap(), &("auc-pr".to_owned(), 1.0));
        assert!(
            of_classes(&[0.0, 1.0], &[0], 2, &[], true).iter().all(|(name, _)| name != "auc-pr")
        );
    }

    #[test]
    fn the_loss_of_an_epoch_is_weighed_and_begins_anew() {
        let mut loss = EpochLoss::default();
        assert_eq!(loss.take(), None);
        loss.add(&[1.0, 3.0, f32::NAN], &[1.0, 0.5, 1.0]);
        loss.add(&[f32::INFINITY, 4.0], &[0.0, 0.0]);
        assert_eq!(loss.take(), Some(2.5 / 3.0));
        loss.add(&[2.0], &[1.0]);
        assert_eq!(loss.take(), Some(2.0));
    }

    #[test]
    fn values_have_a_mean_squared_error() {
        assert_eq!(of_values(&[3.0, 2.0], &[1.0, 2.0]), [("mse".to_owned(), 2.0)]);
    }
}
