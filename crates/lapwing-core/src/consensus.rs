//! What several answers on the same item amount to: one label per item, with its probability.
//!
//! Each item has one true class, of which a network says p(c|x) and every source that answered says
//! something as well. What an answer y of source s is worth is learnt: λ(c, y) is how often s answers
//! y to items of class c, as a multiple of what it would be if it answered without a look at the
//! item:
//!
//! ```text
//! q_i(c) ∝ p(c|x_i) · √ Π over answers (s, y) of λ_s(c, y)
//! λ_s(c, y) = (Σ q_i(c) over its answers y  +  b·λ(c, y)) / (n_s·π(c) + b)
//! ```
//!
//! π(c) is the share of class c among all items and λ without s what all sources together do; b is
//! how many answers that counts for. The count is divided by the number of items of class c that s is
//! *expected* to have answered, not by the number that it did answer: so for a rule that votes for
//! one class or abstains, having voted at all is evidence, where rows of a confusion matrix, which
//! always sum to 1, would say nothing. The root, because people err alike on what is difficult:
//! answers on one item are not as many pieces of evidence as there are answers.

use alloc::vec;
use alloc::vec::Vec;

use crate::LapError;

/// Answers that all sources together count for in what is known of one of them.
const POOLED: f64 = 10.0;
/// Answers that count for nothing in particular, spread over all labels: nothing is impossible.
const SPREAD: f64 = 0.5;
/// How probable it is that an answer which is trusted is wrong.
const TRUSTED_WRONG: f64 = 1e-4;
/// What an answer counts for as evidence; and while it is found out what answers are worth, where with a half or less
/// all beliefs become the same if the network knows nothing and answers are few.
const HALF: f64 = 0.5;
const MEANWHILE: f64 = 0.75;
/// Least probability of a class by the network, so that it can be outvoted.
const LEAST: f64 = 1e-6;

/// Answers on items, one after the other. Lists are as long as there are answers.
#[derive(Clone, Copy, Debug)]
pub struct Answers<'a> {
    /// Which item, counted from 0.
    pub items: &'a [u32],
    /// Who answered, counted from 0.
    pub sources: &'a [u32],
    /// The answer, a class counted from 0.
    pub labels: &'a [u32],
    /// How many classes there are.
    pub classes: usize,
}

/// Answers put in order, to be weighed again and again as a network learns.
#[derive(Clone, Debug)]
pub struct Consensus {
    classes: usize,
    items: usize,
    /// Item and voice of each answer.
    answers: Vec<(u32, u32)>,
    /// What each source says, label by label.
    voices: Vec<Voice>,
    /// Answers of each source.
    counts: Vec<f64>,
}

/// A source that gives a label: as many numbers as there are classes belong to it, and not as many
/// as classes squared for a source that may have given three answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Voice {
    source: u32,
    label: u32,
    trusted: bool,
}

impl Consensus {
    /// `items` is how many there are, with or without answers; answers of sources that are `trusted`
    /// are taken for right unless nearly everything speaks against them.
    ///
    /// # Errors
    /// Where lists differ in length, or an item or a label has no place.
    pub fn new(
        answers: &Answers<'_>,
        items: usize,
        trusted: impl Fn(u32) -> bool,
    ) -> Result<Self, LapError> {
        let Answers { items: of_items, sources, labels, classes } = *answers;
        if of_items.len() != labels.len() || sources.len() != labels.len() {
            let sources = sources.len().min(of_items.len());
            return Err(LapError::Unpaired { losses: labels.len(), sources });
        }
        if let Some(&label) = labels.iter().find(|&&label| label as usize >= classes) {
            return Err(LapError::Label { label: label as usize, classes });
        }
        if let Some(&item) = of_items.iter().find(|&&item| item as usize >= items) {
            return Err(LapError::Parameter {
                parameter: "item",
                value: f64::from(item),
                expected: "below the number of items",
            });
        }
        let voice = |at: usize| {
            let (source, label) = (sources[at], labels[at]);
            Voice { source, label, trusted: trusted(source) }
        };
        let mut voices: Vec<Voice> = (0..labels.len()).map(voice).collect();
        let given = voices.clone();
        voices.sort_unstable();
        voices.dedup();
        let place = |voice: &Voice| voices.binary_search(voice).unwrap_or_default() as u32;
        let answers = of_items.iter().zip(&given).map(|(&item, said)| (item, place(said)));
        let answers: Vec<(u32, u32)> = answers.collect();
        let last = sources.iter().max().map_or(0, |&last| last as usize + 1);
        let mut counts = vec![0.0; last];
        sources.iter().for_each(|&source| counts[source as usize] += 1.0);
        Ok(Self { classes, items, answers, voices, counts })
    }

    /// How many items there are.
    pub fn items(&self) -> usize {
        self.items
    }

    /// How many classes there are.
    pub fn classes(&self) -> usize {
        self.classes
    }

    /// What one would think before anything is known of the sources: the network's word, and for each
    /// answer that it is the truth but for `rate` of its source, with which it is drawn from all
    /// answers.
    ///
    /// `probabilities` are the network's, item after item; those that are no numbers say nothing.
    pub fn first(&self, probabilities: &[f64], rate: impl Fn(u32) -> f64) -> Vec<f64> {
        let mut frequency = vec![0.0; self.classes];
        for &(_, voice) in &self.answers {
            frequency[self.voices[voice as usize].label as usize] += 1.0;
        }
        let all = (self.answers.len() as f64).max(1.0);
        let mut logarithms = Vec::with_capacity(self.voices.len() * self.classes);
        for voice in &self.voices {
            let rate = if voice.trusted { TRUSTED_WRONG } else { rate(voice.source) };
            let noise = rate * frequency[voice.label as usize] / all;
            for class in 0..self.classes {
                let truth = if class == voice.label as usize { 1.0 - rate } else { 0.0 };
                logarithms.push(libm::log((truth + noise).max(LEAST)));
            }
        }
        self.weighed(probabilities, &logarithms)
    }

    /// The probability of every class of each item, item after item, by the network and by all
    /// answers: so many rounds of expectation and maximisation from `beliefs`, which are
    /// [`first`](Self::first) or what an earlier call gave.
    pub fn weigh(&self, probabilities: &[f64], beliefs: Vec<f64>, rounds: usize) -> Vec<f64> {
        let mut beliefs = beliefs;
        for _ in 1..rounds {
            beliefs = self.weighed(probabilities, &self.voices(&beliefs, MEANWHILE));
        }
        self.weighed(probabilities, &self.voices(&beliefs, HALF))
    }

    /// What every voice adds to the logarithm of each class.
    fn voices(&self, beliefs: &[f64], power: f64) -> Vec<f64> {
        let classes = self.classes;
        let mut shares = vec![0.0; classes];
        for item in beliefs.chunks_exact(classes) {
            shares.iter_mut().zip(item).for_each(|(share, belief)| *share += belief);
        }
        let items = (self.items as f64).max(1.0);
        shares.iter_mut().for_each(|share| *share /= items);
        let mut counts = vec![0.0; self.voices.len() * classes];
        for &(item, voice) in &self.answers {
            let (item, voice) = (item as usize * classes, voice as usize * classes);
            let own = &mut counts[voice..voice + classes];
            let beliefs = &beliefs[item..item + classes];
            own.iter_mut().zip(beliefs).for_each(|(count, belief)| *count += belief);
        }
        let mut pooled = vec![0.0; classes * classes];
        for (voice, own) in self.voices.iter().zip(counts.chunks_exact(classes)) {
            let label = voice.label as usize * classes;
            let of_label = &mut pooled[label..label + classes];
            of_label.iter_mut().zip(own).for_each(|(sum, count)| *sum += count);
        }
        let all = self.answers.len() as f64;
        let even = SPREAD / classes as f64;
        for (voice, own) in self.voices.iter().zip(counts.chunks_exact_mut(classes)) {
            let label = voice.label as usize;
            let answers = self.counts[voice.source as usize];
            for (class, count) in own.iter_mut().enumerate() {
                *count = if voice.trusted {
                    let wrong = TRUSTED_WRONG / (classes as f64 - 1.0).max(1.0);
                    libm::log(if class == label { 1.0 - TRUSTED_WRONG } else { wrong })
                } else {
                    let usual = pooled[label * classes + class] / (all * shares[class]).max(LEAST);
                    let expected = answers * shares[class] + POOLED + SPREAD;
                    power * libm::log((*count + POOLED * usual + even) / expected)
                };
            }
        }
        counts
    }

    /// q of every item, given the logarithms of what each voice says.
    fn weighed(&self, probabilities: &[f64], logarithms: &[f64]) -> Vec<f64> {
        let classes = self.classes;
        let usable = |p: f64| if p.is_nan() { LEAST } else { p.clamp(LEAST, 1.0) };
        let mut sums: Vec<f64> = probabilities.iter().map(|&p| libm::log(usable(p))).collect();
        sums.resize(self.items * classes, 0.0);
        for &(item, voice) in &self.answers {
            let (item, voice) = (item as usize * classes, voice as usize * classes);
            let said = &logarithms[voice..voice + classes];
            sums[item..item + classes].iter_mut().zip(said).for_each(|(sum, said)| *sum += said);
        }
        for item in sums.chunks_exact_mut(classes) {
            let largest = item.iter().fold(f64::NEG_INFINITY, |largest, &sum| largest.max(sum));
            item.iter_mut().for_each(|sum| *sum = libm::exp(*sum - largest));
            let total: f64 = item.iter().sum();
            item.iter_mut().for_each(|sum| *sum /= total);
        }
        sums
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROUNDS: usize = 20;

    /// Weighs answers of which the network knows nothing.
    fn weigh(answers: &Answers<'_>, items: usize, probabilities: &[f64]) -> Vec<f64> {
        let consensus = Consensus::new(answers, items, |_| false).unwrap();
        let first = consensus.first(probabilities, |_| 0.1);
        consensus.weigh(probabilities, first, ROUNDS)
    }

    #[test]
    fn two_who_agree_outvote_one_who_answers_at_random() {
        let (mut items, mut sources, mut labels) = (std::vec![], std::vec![], std::vec![]);
        for item in 0..60_u32 {
            let truth = item % 3;
            for (source, label) in [(0, truth), (1, truth), (2, item * 7 / 3 % 3)] {
                items.push(item);
                sources.push(source);
                labels.push(label);
            }
        }
        let answers = Answers { items: &items, sources: &sources, labels: &labels, classes: 3 };
        let found = weigh(&answers, 60, &[1.0 / 3.0; 180]);
        for (item, q) in found.chunks_exact(3).enumerate() {
            assert!(q[item % 3] > 0.7, "item {item}: {q:?}");
            assert!((q.iter().sum::<f64>() - 1.0).abs() < 1e-12);
        }
    }

    /// Items of two classes; the network is right in most cases, source 0 votes for class 1 only.
    #[test]
    fn that_a_rule_votes_at_all_is_evidence() {
        let items: Vec<u32> = (0..40).filter(|item| item % 2 == 1 || item % 20 == 0).collect();
        let (sources, labels) = (vec![0; items.len()], vec![1; items.len()]);
        let answers = Answers { items: &items, sources: &sources, labels: &labels, classes: 2 };
        let network = |item: u32| if item % 2 == 1 { [0.3, 0.7] } else { [0.9, 0.1] };
        let mut probabilities: Vec<f64> = (0..40).flat_map(network).collect();
        // Of this one the network knows nothing, and the rule votes for it.
        probabilities[2..4].copy_from_slice(&[0.5, 0.5]);
        let found = weigh(&answers, 40, &probabilities);
        assert!(found[3] > 0.6, "{:?}", &found[2..4]);
        // The rule did not vote for this one: it stays with what the network says.
        assert!((found[4] - 0.9).abs() < 1e-9, "{:?}", &found[4..6]);
    }

    /// The formula of the module, with confusion as a whole cube and no logarithm.
    #[test]
    fn a_round_is_the_formula() {
        let items = [0, 0, 0, 1, 1, 2, 3, 3];
        let sources = [0, 1, 2, 0, 2, 1, 0, 1];
        let labels = [0, 0, 2, 1, 1, 2, 2, 0];
        let (classes, count) = (3, 4);
        let answers = Answers { items: &items, sources: &sources, labels: &labels, classes };
        let probabilities: Vec<f64> = (0..12).map(|at| 0.1 + f64::from(at * 5 % 7)).collect();
        let probabilities: Vec<f64> = probabilities
            .chunks_exact(3)
            .flat_map(|row| {
                let sum: f64 = row.iter().sum();
                row.iter().map(move |p| p / sum).collect::<Vec<_>>()
            })
            .collect();
        let consensus = Consensus::new(&answers, count, |_| false).unwrap();
        let q = consensus.first(&probabilities, |_| 0.1);
        let found = consensus.weigh(&probabilities, q.clone(), 1);
        let share = |c: usize| (0..count).map(|i| q[i * 3 + c]).sum::<f64>() / count as f64;
        let sum = |s: Option<u32>, c: usize, y: u32| -> f64 {
            let own = (0..8).filter(|&at| labels[at] == y && s.is_none_or(|s| sources[at] == s));
            own.map(|at| q[items[at] as usize * 3 + c]).sum()
        };
        let answered = |s: u32| sources.iter().filter(|&&other| other == s).count() as f64;
        for item in 0..count {
            let mut expected = [0.0; 3];
            for (c, expected) in expected.iter_mut().enumerate() {
                *expected = probabilities[item * 3 + c];
                for at in (0..8).filter(|&at| items[at] as usize == item) {
                    let (s, y) = (sources[at], labels[at]);
                    let usual = sum(None, c, y) / (8.0 * share(c));
                    let count = sum(Some(s), c, y) + POOLED * usual + SPREAD / 3.0;
                    *expected *= (count / (answered(s) * share(c) + POOLED + SPREAD)).sqrt();
                }
            }
            let total: f64 = expected.iter().sum();
            for (c, expected) in expected.iter().enumerate() {
                let found = found[item * 3 + c];
                assert!((found - expected / total).abs() < 1e-12, "item {item} class {c}");
            }
        }
    }

    #[test]
    fn the_order_of_answers_and_the_names_of_sources_do_not_matter() {
        let items = [0, 0, 1, 1, 2, 2];
        let sources = [0, 1, 0, 1, 0, 1];
        let labels = [0, 0, 1, 0, 1, 1];
        let network = [0.6, 0.4, 0.5, 0.5, 0.2, 0.8];
        let answers = Answers { items: &items, sources: &sources, labels: &labels, classes: 2 };
        let one = weigh(&answers, 3, &network);
        let back = |list: &[u32]| -> Vec<u32> { list.iter().rev().copied().collect() };
        let (items, labels) = (back(&items), back(&labels));
        let sources: Vec<u32> = sources.iter().rev().map(|source| 7 - source).collect();
        let answers = Answers { items: &items, sources: &sources, labels: &labels, classes: 2 };
        for (a, b) in one.iter().zip(weigh(&answers, 3, &network)) {
            assert!((a - b).abs() < 1e-12);
        }
    }

    #[test]
    fn who_is_trusted_is_believed_and_what_is_no_number_says_nothing() {
        let items: Vec<u32> = (0..120).map(|at| at / 4).collect();
        let sources: Vec<u32> = (0..120).map(|at| at % 4).collect();
        // The first says the contrary of what the three others say.
        let labels: Vec<u32> = (0..120).map(|at| (at / 4 + u32::from(at % 4 == 0)) % 2).collect();
        let answers = Answers { items: &items, sources: &sources, labels: &labels, classes: 2 };
        let network = [f64::NAN; 60];
        for (trusts, right) in [(true, 1), (false, 0)] {
            let consensus = Consensus::new(&answers, 30, |source| trusts && source == 0).unwrap();
            let found = consensus.weigh(&network, consensus.first(&network, |_| 0.1), ROUNDS);
            for (item, q) in found.chunks_exact(2).enumerate() {
                assert!(q[(item + right) % 2] > 0.7, "item {item}: {q:?}");
            }
        }
    }

    #[test]
    fn what_has_no_place_is_refused() {
        let refuse = |items: &[u32], sources: &[u32], labels: &[u32]| {
            let answers = Answers { items, sources, labels, classes: 2 };
            Consensus::new(&answers, 2, |_| false).is_err()
        };
        assert!(!refuse(&[0, 1], &[0, 9], &[0, 1]));
        assert!(refuse(&[0], &[0, 1], &[0, 1]) && refuse(&[0, 1], &[0], &[0, 1]));
        assert!(refuse(&[0, 2], &[0, 1], &[0, 1]) && refuse(&[0, 1], &[0, 1], &[0, 2]));
    }
}
