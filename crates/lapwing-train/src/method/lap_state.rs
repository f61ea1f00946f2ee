//! The state of the rule in columns, one number per source: a million sources take gigabytes as JSON.

use lapwing_core::{Lap, STATE_VERSION, SourceState};
use serde::{Deserialize, Serialize};

use super::MethodError;
use crate::saved::Saved;

/// What [`SourceState`] holds beside its losses. A departure is the step plus one, 0 where there was none.
const COUNTS: [&str; 10] = [
    "source",
    "unreliability",
    "losses_held",
    "cursor",
    "rows",
    "batches",
    "nonfinite",
    "judged",
    "above",
    "first_departure",
];
/// The histories one after the other.
const LOSSES: &str = "losses";

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Head {
    version: u32,
    history_length: usize,
    step: u64,
}

pub(super) fn save(lap: &Lap<u32>) -> Result<Saved, MethodError> {
    let history_length = lap.config().history_length;
    let head = Head { version: STATE_VERSION, history_length, step: lap.step() };
    let sources = lap.source_states();
    let mut counts = COUNTS.map(|_| Vec::with_capacity(sources.len()));
    let held = lap.sources().map(|source| source.batches.min(history_length as u64));
    let mut losses = Vec::with_capacity(held.sum::<u64>() as usize);
    for known in sources {
        let departure = known.first_departure_step.map_or(0, |step| step.saturating_add(1));
        let numbers = [
            known.source.into(),
            known.unreliability,
            known.window.len() as u64,
            known.cursor as u64,
            known.rows,
            known.batches,
            known.nonfinite,
            known.judged,
            known.above,
            departure,
        ];
        counts.iter_mut().zip(numbers).for_each(|(column, number)| column.push(number));
        losses.extend(known.window);
    }
    let saved = Saved::of(serde_json::to_value(head)?).with_values(LOSSES, losses);
    Ok(COUNTS
        .iter()
        .zip(counts)
        .fold(saved, |saved, (name, column)| saved.with_counts(name, column)))
}

pub(super) fn load(lap: &mut Lap<u32>, saved: &Saved) -> Result<(), MethodError> {
    let Head { version, history_length, step } = Head::deserialize(saved.state())?;
    if version != STATE_VERSION {
        let why = format!("it is of version {version}, not {STATE_VERSION}");
        return Err(lapwing_core::LapError::State(why).into());
    }
    let mut columns = [&[][..]; COUNTS.len()];
    for (column, name) in columns.iter_mut().zip(COUNTS) {
        *column = saved.counts(name)?;
    }
    let [sources, unreliability, held, cursor, rows, batches, nonfinite, judged, above, departure] =
        columns;
    let mut losses = saved.values(LOSSES)?;
    let all = held.iter().try_fold(0u64, |sum, &held| sum.checked_add(held));
    let fit = columns.iter().all(|column| column.len() == sources.len())
        && all == Some(losses.len() as u64)
        && sources.iter().all(|&source| u32::try_from(source).is_ok());
    if !fit {
        return Err(MethodError::Columns);
    }
    let known = (0..sources.len()).map(|at| {
        let (window, rest) = losses.split_at(held[at] as usize);
        losses = rest;
        SourceState {
            source: sources[at] as u32,
            unreliability: unreliability[at],
            window: window.to_vec(),
            cursor: usize::try_from(cursor[at]).unwrap_or(usize::MAX),
            rows: rows[at],
            batches: batches[at],
            nonfinite: nonfinite[at],
            judged: judged[at],
            above: above[at],
            first_departure_step: departure[at].checked_sub(1),
        }
    });
    Ok(lap.load_sources(history_length, step, known)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::saved::{Column, Numbers};
    use lapwing_core::LapConfig;

    fn lap() -> Lap<u32> {
        Lap::new(LapConfig { history_length: 3, ..LapConfig::default() }).unwrap()
    }

    fn saved() -> (Lap<u32>, Saved) {
        let mut one = lap();
        for step in 0..17 {
            let wild = if step % 3 == 0 { f64::NAN } else { 9.0 };
            one.weigh(&[0.1 * f64::from(step), 0.3, wild], [7, 2, 5].iter()).unwrap();
        }
        one.weigh(&[0.5], [u32::MAX].iter()).unwrap();
        let saved = save(&one).unwrap();
        (one, saved)
    }

    #[test]
    fn what_is_saved_is_loaded_to_the_last_bit() {
        let (one, saved) = saved();
        let mut two = lap();
        load(&mut two, &saved).unwrap();
        assert_eq!(two.state(), one.state());
        assert!(one.state().sources.iter().any(|source| source.first_departure_step.is_some()));
    }

    #[test]
    fn columns_that_are_missing_cut_or_forged_are_refused() {
        let (_, saved) = saved();
        for at in 0..saved.columns.len() {
            let mut less = saved.clone();
            less.columns.remove(at);
            assert!(matches!(load(&mut lap(), &less), Err(MethodError::Column(_))));
            let mut cut = saved.clone();
            cut.columns[at].numbers = match &saved.columns[at].numbers {
                Numbers::Counts(counts) => Numbers::Counts(counts[1..].to_vec().into()),
                Numbers::Values(values) => Numbers::Values(values[1..].to_vec().into()),
            };
            assert!(load(&mut lap(), &cut).is_err(), "{}", cut.columns[at].name);
        }
        for (name, number) in
            [("source", u64::MAX), ("source", 2), ("losses_held", u64::MAX), ("cursor", u64::MAX)]
        {
            let mut forged = saved.clone();
            for Column { name: own, numbers } in &mut forged.columns {
                if let (true, Numbers::Counts(counts)) = (own == name, numbers) {
                    std::sync::Arc::make_mut(counts)[0] = number;
                }
            }
            assert!(load(&mut lap(), &forged).is_err(), "{name} {number}");
        }
    }
}
