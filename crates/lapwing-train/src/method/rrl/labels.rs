//! Labels that are cleaned by neighbours, and the prototypes of classes.

use lapwing_ops::nearest;
use serde::Deserialize;

use crate::error::TrainError;
use crate::method::MethodError;
use crate::parameters::{Parameter, find};
use crate::saved::Saved;

/// How labels are cleaned.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cleaning {
    /// Neighbours that are asked.
    pub(super) neighbours: usize,
    /// How fast their word loses weight with distance.
    pub(super) temperature: f64,
    /// A label stays that has more than this probability.
    pub(super) low: f64,
    /// A row is sure of its label from this probability on.
    pub(super) high: f64,
}

impl Default for Cleaning {
    fn default() -> Self {
        Self { neighbours: 200, temperature: super::losses::TEMPERATURE, low: 0.1, high: 0.9 }
    }
}

/// What is believed of the rows, by place, and where classes lie among their embeddings.
#[derive(Clone, Debug)]
pub(super) struct Labels {
    classes: usize,
    width: usize,
    /// Whether labels have been cleaned; before, they are those given.
    cleaned: bool,
    /// The probability of each class, row after row.
    soft: Vec<f32>,
    /// The most probable class of each row, and whether it is surely that; made from `soft`.
    hard: Vec<(u32, bool)>,
    /// The mean embedding of each class, of length 1; zeros for a class that never had any.
    prototypes: Vec<f32>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Head {
    cleaned: bool,
}

impl Labels {
    pub(super) fn new(rows: usize, classes: usize, width: usize) -> Self {
        Self {
            classes,
            width,
            cleaned: false,
            soft: vec![0.0; rows * classes],
            hard: vec![(0, false); rows],
            prototypes: vec![0.0; classes * width],
        }
    }

    pub(super) fn classes(&self) -> usize {
        self.classes
    }

    /// The prototypes, class after class.
    pub(super) fn prototypes(&self) -> &[f32] {
        &self.prototypes
    }

    /// The cleaned label at a place and whether it is sure; nothing before labels are cleaned.
    pub(super) fn cleaned(&self, place: usize) -> Option<(u32, bool)> {
        self.cleaned.then(|| self.hard[place])
    }

    /// Prototypes of the labels as given.
    pub(super) fn take(&mut self, embeddings: &[f32], given: &[u32]) {
        self.place(embeddings, |row| Some(given[row]));
    }

    /// Cleans labels by what the network says (`probabilities`, row after row) and what is believed of neighbours, and
    /// prototypes of those that are sure.
    pub(super) fn clean(
        &mut self,
        cleaning: &Cleaning,
        embeddings: &[f32],
        probabilities: &[f32],
        given: &[u32],
    ) {
        let classes = self.classes;
        let keep = |soft: &mut [f32], label: u32| {
            if f64::from(soft[label as usize]) > cleaning.low {
                soft.fill(0.0);
                soft[label as usize] = 1.0;
            }
        };
        if !self.cleaned {
            self.soft.copy_from_slice(probabilities);
            let rows = self.soft.chunks_exact_mut(classes).zip(given);
            rows.for_each(|(soft, &label)| keep(soft, label));
            self.cleaned = true;
        }
        let found = nearest(embeddings, self.width, cleaning.neighbours);
        let mut soft = Vec::with_capacity(self.soft.len());
        for (row, said) in probabilities.chunks_exact(classes).enumerate() {
            let place = row * found.each..(row + 1) * found.each;
            let mut votes = vec![0.0; classes];
            for (&neighbour, &similarity) in
                found.rows[place.clone()].iter().zip(&found.similarities[place])
            {
                let weight = (f64::from(similarity) / cleaning.temperature).exp();
                let believed = &self.soft[neighbour as usize * classes..][..classes];
                votes
                    .iter_mut()
                    .zip(believed)
                    .for_each(|(vote, &p)| *vote += weight * f64::from(p));
            }
            let whole: f64 = votes.iter().sum();
            let begin = soft.len();
            soft.extend(votes.iter().zip(said).map(|(vote, &said)| match whole > 0.0 {
                true => (0.5 * (vote / whole + f64::from(said))) as f32,
                false => said,
            }));
            keep(&mut soft[begin..], given[row]);
        }
        self.soft = soft;
        self.decide(cleaning.high);
        let hard = self.hard.clone();
        self.place(embeddings, |row| hard[row].1.then_some(hard[row].0));
    }

    fn decide(&mut self, high: f64) {
        let decide = |soft: &[f32]| {
            let mut best = 0;
            for (class, p) in soft.iter().enumerate() {
                if *p > soft[best] {
                    best = class;
                }
            }
            (best as u32, f64::from(soft[best]) > high)
        };
        self.hard = self.soft.chunks_exact(self.classes).map(decide).collect();
    }

    /// Prototypes of the rows that have a class; one without rows stays as it was.
    fn place(&mut self, embeddings: &[f32], class: impl Fn(usize) -> Option<u32>) {
        let mut sums = vec![0.0f64; self.prototypes.len()];
        for (row, embedding) in embeddings.chunks_exact(self.width).enumerate() {
            if let Some(class) = class(row) {
                let sum = &mut sums[class as usize * self.width..][..self.width];
                sum.iter_mut().zip(embedding).for_each(|(sum, &x)| *sum += f64::from(x));
            }
        }
        let prototypes = self.prototypes.chunks_exact_mut(self.width);
        for (prototype, sum) in prototypes.zip(sums.chunks_exact(self.width)) {
            let length = sum.iter().map(|x| x * x).sum::<f64>().sqrt();
            if length > 0.0 {
                prototype.iter_mut().zip(sum).for_each(|(p, x)| *p = (x / length) as f32);
            }
        }
    }

    pub(super) fn save(&self) -> Saved {
        let array = |name: &str, width: usize, values: &Vec<f32>| Parameter {
            name: name.to_owned(),
            shape: vec![values.len() / width, width],
            values: values.clone(),
        };
        let arrays = vec![
            array("soft", self.classes, &self.soft),
            array("prototypes", self.width, &self.prototypes),
        ];
        Saved { state: serde_json::json!({"cleaned": self.cleaned}), arrays, ..Saved::default() }
    }

    pub(super) fn load(&mut self, saved: &Saved) -> Result<(), TrainError> {
        let Head { cleaned } = Head::deserialize(saved.state()).map_err(MethodError::from)?;
        let (rows, classes, width) = (self.hard.len(), self.classes, self.width);
        self.cleaned = cleaned;
        self.soft = find(&saved.arrays, "soft", &[rows, classes])?.values.clone();
        self.prototypes = find(&saved.arrays, "prototypes", &[classes, width])?.values.clone();
        self.decide(Cleaning::default().high);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two clusters of ten rows at right angles, in two classes; row 3 has the label of the others, row 20 lies between
    /// and has a label of its own.
    fn world() -> (Vec<f32>, Vec<u32>) {
        let mut embeddings = Vec::new();
        let mut given = Vec::new();
        for row in 0..20 {
            let angle = if row < 10 { 0.0 } else { std::f32::consts::FRAC_PI_2 };
            let angle = angle + 0.01 * (row % 10) as f32;
            embeddings.extend([angle.cos(), angle.sin()]);
            given.push(u32::from(row >= 10));
        }
        embeddings.extend([std::f32::consts::FRAC_1_SQRT_2; 2]);
        given.push(2);
        given[3] = 1;
        (embeddings, given)
    }

    fn cleaning() -> Cleaning {
        Cleaning { neighbours: 6, temperature: 0.05, ..Cleaning::default() }
    }

    /// What a network says that has learnt the clusters and does not know the row between.
    fn said() -> Vec<f32> {
        let one = |row: usize| match row {
            0..10 => [0.97, 0.02, 0.01],
            10..20 => [0.02, 0.97, 0.01],
            _ => [0.5, 0.45, 0.05],
        };
        (0..21).flat_map(one).collect()
    }

    #[test]
    fn a_flipped_label_among_clean_ones_is_corrected_and_an_outlier_loses_its_place() {
        let (embeddings, given) = world();
        let mut labels = Labels::new(21, 3, 2);
        labels.take(&embeddings, &given);
        assert_eq!(labels.cleaned(3), None);
        let first = labels.prototypes().to_vec();
        labels.clean(&cleaning(), &embeddings, &said(), &given);
        for row in (0..20).filter(|&row| row != 3) {
            assert_eq!(labels.cleaned(row), Some((given[row], true)), "row {row}");
        }
        assert_eq!(labels.cleaned(3), Some((0, true)));
        assert!(matches!(labels.cleaned(20), Some((_, false))), "{:?}", labels.cleaned(20));
        // Row 3 was of class 1 and drew its prototype aside; one that lost its only row stays where it was.
        let angle = |prototypes: &[f32]| prototypes[3].atan2(prototypes[2]);
        let middle = std::f32::consts::FRAC_PI_2 + 0.045;
        assert!(
            angle(&first) < middle - 0.05 && (angle(labels.prototypes()) - middle).abs() < 1e-3
        );
        assert_eq!(labels.prototypes()[4..], first[4..]);
        let length = |p: &[f32]| p.iter().map(|x| x * x).sum::<f32>();
        assert!((length(&labels.prototypes()[..2]) - 1.0).abs() < 1e-6);
    }

    #[test]
    fn cleaning_is_the_formula() {
        let (embeddings, given) = world();
        let mut labels = Labels::new(21, 3, 2);
        let said = said();
        let rows = |values: &[f32]| -> Vec<Vec<f64>> {
            values.chunks(3).map(|row| row.iter().map(|x| f64::from(*x)).collect()).collect()
        };
        let one_hot = |label: u32| (0..3).map(|c| f64::from(u8::from(c == label))).collect();
        // Slow: every row by a sort of all the others, in double precision.
        let mut believed: Vec<Vec<f64>> = rows(&said);
        for (soft, &label) in believed.iter_mut().zip(&given) {
            if soft[label as usize] > 0.1 {
                *soft = one_hot(label);
            }
        }
        for round in 0..3 {
            labels.clean(&cleaning(), &embeddings, &said, &given);
            let z: Vec<&[f32]> = embeddings.chunks(2).collect();
            let dot = |a: usize, b: usize| f64::from(z[a][0] * z[b][0] + z[a][1] * z[b][1]);
            let mut next = Vec::new();
            for row in 0..21 {
                let mut others: Vec<usize> = (0..21).filter(|&other| other != row).collect();
                others.sort_by(|&a, &b| dot(row, b).total_cmp(&dot(row, a)).then(a.cmp(&b)));
                let mut votes = [0.0; 3];
                for &other in &others[..6] {
                    let weight = (dot(row, other) / 0.05).exp();
                    (0..3).for_each(|c| votes[c] += weight * believed[other][c]);
                }
                let whole: f64 = votes.iter().sum();
                let said = rows(&said)[row].clone();
                let mut soft: Vec<f64> =
                    (0..3).map(|c| 0.5 * (votes[c] / whole + said[c])).collect();
                if soft[given[row] as usize] > 0.1 {
                    soft = one_hot(given[row]);
                }
                next.push(soft);
            }
            believed = next;
            for (ours, theirs) in labels.soft.iter().zip(believed.concat()) {
                assert!((f64::from(*ours) - theirs).abs() < 1e-5, "round {round}: {ours} {theirs}");
            }
        }
    }

    #[test]
    fn what_is_saved_is_loaded_and_other_shapes_are_refused() {
        let (embeddings, given) = world();
        let mut labels = Labels::new(21, 3, 2);
        labels.clean(&cleaning(), &embeddings, &said(), &given);
        let mut other = Labels::new(21, 3, 2);
        other.load(&labels.save()).unwrap();
        assert_eq!((&other.soft, &other.hard), (&labels.soft, &labels.hard));
        assert_eq!(other.prototypes(), labels.prototypes());
        assert!(Labels::new(20, 3, 2).load(&labels.save()).is_err());
        assert!(other.load(&Saved::default()).is_err());
    }
}
