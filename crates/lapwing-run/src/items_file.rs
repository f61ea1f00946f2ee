//! `items.csv`: what all answers on an item and the network together make of it.

use std::io::{self, Write};

use lapwing_core::{Answers, Consensus};
use lapwing_sample::{Samples, Targets};
use lapwing_train::Predictions;
use serde::Serialize;

use crate::{Fit, Job, RunError};

/// What the network's word counts for, as a power of its probabilities.
const NETWORK: f64 = 0.25;
/// Rounds in which answers are weighed.
const ROUNDS: usize = 20;
/// Between what the noise rate of a source lies that is assumed at first.
const RATES: (f64, f64) = (0.05, 0.95);

/// An item with the label that all answers on it amount to.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ItemRow {
    /// Its name in the table.
    pub item: String,
    /// The most probable label.
    pub label: String,
    /// Its probability.
    pub probability: f64,
    /// Answers on it, those of blocked sources left out.
    pub answers: u64,
    /// The share of them that is another label.
    pub disagreement: Option<f64>,
}

/// Weighs all answers of the table, with what the finished network says of the items; `None` where no items were named.
pub(crate) fn items(
    job: &Job<'_>,
    fit: &Fit,
    samples: &dyn Samples,
) -> Result<Option<Vec<ItemRow>>, RunError> {
    let dataset = job.dataset();
    let (Some(items), Targets::Classes { labels, classes }) = (&dataset.items, &dataset.target)
    else {
        return Ok(None);
    };
    let (classes, count) = (*classes, items.names.len());
    let guards = job.method().guards();
    let all: Vec<u32> = (0..dataset.len() as u32).collect();
    let Predictions::Classes { probabilities, .. } = fit.model.predict(samples, &all)? else {
        return Ok(None);
    };
    let (mut said, mut rows) = (vec![0.0; count * classes], vec![0.0; count]);
    for (&item, of_row) in items.codes.iter().zip(probabilities.chunks_exact(classes)) {
        let item = item as usize;
        rows[item] += 1.0;
        let own = &mut said[item * classes..(item + 1) * classes];
        own.iter_mut().zip(of_row).for_each(|(sum, &p)| *sum += f64::from(p));
    }
    // The network has learnt the very answers that are weighed with it, and is sure of them: on Music, with half of its
    // word labels had a probability of 0.95 on average, and were right in 83 of 100 cases.
    for (said, rows) in said.chunks_exact_mut(classes).zip(rows) {
        said.iter_mut().for_each(|p| *p = (*p / rows).powf(NETWORK));
    }
    let counted: Vec<usize> =
        (0..dataset.len()).filter(|&row| guards.admits(dataset.sources.codes[row])).collect();
    let of = |list: &[u32]| -> Vec<u32> { counted.iter().map(|&row| list[row]).collect() };
    let (of_items, sources, given) = (of(&items.codes), of(&dataset.sources.codes), of(labels));
    let answers = Answers { items: &of_items, sources: &sources, labels: &given, classes };
    let consensus = Consensus::new(&answers, count, |source| guards.trusts(source))?;
    let rate = |source: u32| (1.0 - fit.sources[source as usize].weight).clamp(RATES.0, RATES.1);
    let first = consensus.first(&said, rate);
    let weighed = consensus.weigh(&said, first, ROUNDS);

    let best = |item: usize| {
        let beliefs = &weighed[item * classes..(item + 1) * classes];
        (1..classes).fold(0, |best, next| if beliefs[next] > beliefs[best] { next } else { best })
    };
    let chosen: Vec<usize> = (0..count).map(best).collect();
    let (mut answered, mut others) = (vec![0_u64; count], vec![0_u64; count]);
    for (&item, &label) in of_items.iter().zip(&given) {
        answered[item as usize] += 1;
        others[item as usize] += u64::from(label as usize != chosen[item as usize]);
    }
    let row = |item: usize| ItemRow {
        item: items.names[item].clone(),
        label: dataset.schema.classes.get(chosen[item]).cloned().unwrap_or_default(),
        probability: weighed[item * classes + chosen[item]],
        answers: answered[item],
        disagreement: (answered[item] > 0).then(|| others[item] as f64 / answered[item] as f64),
    };
    Ok(Some((0..count).map(row).collect()))
}

/// The file.
pub(crate) fn write(items: &[ItemRow], out: &mut dyn Write) -> io::Result<()> {
    let mut writer = csv::WriterBuilder::new().has_headers(false).from_writer(out);
    writer.write_record(["item", "label", "probability", "answers", "disagreement"])?;
    for item in items {
        writer.serialize(item)?;
    }
    writer.flush()
}
