//! Losses of made-up sources, their pooled mean, and the threshold above which a source is accused.

use lapwing_sample::{Draws, Spread};
use serde::Serialize;

use crate::cell::Cell;
use crate::error::PaperError;
use crate::recipe::Recipe;
use crate::record::Record;

/// Bins of the histograms.
pub(crate) const BINS: usize = 120;

/// What is drawn.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Settings {
    means: Vec<f64>,
    deviation: f64,
    counts: Vec<usize>,
    leniency: f64,
}

/// The settings of a cell.
pub(crate) fn settings(recipe: &Recipe, cell: &Cell) -> Result<Settings, PaperError> {
    let refuse = || PaperError::Recipe {
        id: recipe.id.clone(),
        problem: format!("nothing to draw for {cell}"),
    };
    let condition = recipe.condition(&cell.condition).ok_or_else(refuse)?;
    let method = recipe.method(&cell.method).ok_or_else(refuse)?;
    if condition.means.is_empty() || condition.means.len() != condition.counts.len() {
        return Err(refuse());
    }
    Ok(Settings {
        means: condition.means.clone(),
        deviation: condition.deviation,
        counts: condition.counts.clone(),
        leniency: recipe.rule(condition, method).leniency,
    })
}

/// Draws the losses of a cell.
pub(crate) fn run(recipe: &Recipe, cell: &Cell, record: &mut Record) -> Result<(), PaperError> {
    let settings = settings(recipe, cell)?;
    let losses: Vec<Vec<f64>> = settings
        .means
        .iter()
        .zip(&settings.counts)
        .enumerate()
        .map(|(source, (mean, &count))| {
            let mut draws = Draws::free(cell.data_seed(), source as u64);
            (0..count).map(|_| mean + settings.deviation * draws.two_normals().0).collect()
        })
        .collect();
    let spread = Spread::of(losses.iter().flatten().copied());
    let (mean, std) = spread.map_or((0.0, 0.0), |spread| (spread.mean, spread.std()));
    let low = losses.iter().flatten().copied().fold(f64::INFINITY, f64::min);
    let high = losses.iter().flatten().copied().fold(f64::NEG_INFINITY, f64::max);
    let bin = |loss: f64| (((loss - low) / (high - low) * BINS as f64) as usize).min(BINS - 1);
    record.histogram = losses
        .iter()
        .map(|losses| {
            let mut bins = vec![0; BINS];
            losses.iter().for_each(|&loss| bins[bin(loss)] += 1);
            bins
        })
        .collect();
    for (name, value) in [
        ("pooled-mean", mean),
        ("pooled-sd", std),
        ("threshold", mean + settings.leniency * std),
        ("lowest", low),
        ("highest", high),
    ] {
        record.values.insert(name.to_owned(), value);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cell::{Form, Selection};
    use crate::recipe::{Version, recipe};

    #[test]
    fn pooled_numbers_are_those_that_follow_from_the_notebook() {
        let recipe = recipe("figure-3", Version::Code).unwrap();
        for cell in Selection::default().cells(&recipe).unwrap() {
            let condition = cell.condition.clone();
            let mut record = Record::new(cell.clone(), Version::Code, Form::FULL, ().into());
            run(&recipe, &cell, &mut record).unwrap();
            for name in ["pooled-mean", "pooled-sd", "threshold"] {
                let paper = recipe.number(&condition, "pooled", name).unwrap().mean;
                let ours = record.metric(name).unwrap();
                // Standard errors of 49,000 draws are below 0.006.
                assert!((ours - paper).abs() < 0.03, "{condition} {name}: {ours} against {paper}");
            }
            let counted: u32 = record.histogram.iter().flatten().sum();
            let drawn: usize = recipe.condition(&condition).unwrap().counts.iter().sum();
            assert_eq!(counted as usize, drawn);
        }
    }
}
