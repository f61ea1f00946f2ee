//! How noisy a sample is thought to be: by the share of noisy samples of its source, or of all sources.

use lapwing_sample::Draws;
use serde::Serialize;

use crate::cell::Cell;
use crate::error::PaperError;
use crate::recipe::Recipe;
use crate::record::Record;

/// Samples of each source.
const SAMPLES: usize = 1_000;

/// What is estimated.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Settings {
    levels: Vec<f64>,
    samples: usize,
    /// The source of the sample.
    source: usize,
    known: bool,
}

/// The settings of a cell: its row is a source, by its place among the rows; its method knows sources, if it is one that
/// weighs them.
pub(crate) fn settings(recipe: &Recipe, cell: &Cell) -> Result<Settings, PaperError> {
    let refuse = |problem: String| PaperError::Recipe { id: recipe.id.clone(), problem };
    let source = recipe.conditions.iter().position(|condition| condition.id == cell.condition);
    let method = recipe.method(&cell.method);
    let levels = recipe.sources.as_ref().map_or(&[][..], |sources| &sources.levels);
    match (source, method) {
        (Some(source), Some(method)) if levels.len() == recipe.conditions.len() => Ok(Settings {
            levels: levels.to_vec(),
            samples: SAMPLES,
            source,
            known: method.kind().map_err(refuse)?.runs_rule(),
        }),
        _ => Err(refuse(format!("nothing to estimate for {cell}"))),
    }
}

/// Draws samples and estimates.
pub(crate) fn run(recipe: &Recipe, cell: &Cell, record: &mut Record) -> Result<(), PaperError> {
    let settings = settings(recipe, cell)?;
    let share = |source: usize, level: f64| {
        let mut draws = Draws::free(cell.data_seed(), source as u64);
        let noisy = (0..settings.samples).filter(|_| draws.unit() < level).count();
        noisy as f64 / settings.samples as f64
    };
    let shares: Vec<f64> =
        settings.levels.iter().enumerate().map(|(source, level)| share(source, *level)).collect();
    let estimate = match settings.known {
        true => shares[settings.source],
        false => shares.iter().sum::<f64>() / shares.len() as f64,
    };
    record.values.insert("estimate".to_owned(), estimate);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cell::{Form, Selection};
    use crate::recipe::{Version, recipe};

    #[test]
    fn sources_tell_clean_from_noisy_samples_and_all_together_do_not() {
        let recipe = recipe("figure-2", Version::Code).unwrap();
        for cell in Selection::default().cells(&recipe).unwrap() {
            let expected = recipe.number(&cell.condition, &cell.method, "estimate").unwrap().mean;
            let mut record = Record::new(cell.clone(), Version::Code, Form::FULL, ().into());
            run(&recipe, &cell, &mut record).unwrap();
            let found = record.metric("estimate").unwrap();
            // Four standard errors of 1,000 draws.
            assert!((found - expected).abs() < 0.064, "{cell}: {found} against {expected}");
            assert!(expected % 1.0 != 0.0 || found == expected, "{cell}: {found}");
        }
    }
}
