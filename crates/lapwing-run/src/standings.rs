//! Where sources stand at the end of a run, and what is known of each of them then.

use lapwing_core::{Lap, SourceStatus};
use lapwing_judge::{Ruling, SourceRow};

use crate::Job;

/// Where sources stand at the end of a run, when the run itself is gone.
pub(crate) struct Standings {
    weights: Vec<f64>,
    seen: Vec<SourceStatus<u32>>,
}

impl Standings {
    /// The weight of every source, and what the rule knows of those that it has seen.
    pub(crate) fn new(weights: Vec<f64>, lap: Option<&Lap<u32>>) -> Self {
        let seen = lap.map_or_else(Vec::new, |lap| {
            lap.sources().map(|status| status.named(*status.source)).collect()
        });
        Self { weights, seen }
    }
}

impl Job<'_> {
    /// What is known of every source: its weight, and what the rule has seen of it.
    pub(crate) fn facts(&self, standings: Standings) -> Vec<SourceRow> {
        let guards = self.method().guards();
        let ruling = |source: u32| {
            let rulings = [(&guards.blocked, Ruling::Blocked), (&guards.trusted, Ruling::Trusted)];
            rulings.into_iter().find(|(named, _)| named.contains(&source)).map(|(_, ruling)| ruling)
        };
        let mut facts: Vec<SourceRow> = (0..)
            .zip(&self.dataset().sources.names)
            .zip(standings.weights)
            .map(|((source, name), weight)| SourceRow {
                source: name.clone(),
                weight,
                rule_weight: 1.0,
                ruling: ruling(source),
                ..SourceRow::default()
            })
            .collect();
        for &row in &self.split().train {
            facts[self.dataset().sources.codes[row as usize] as usize].rows += 1;
        }
        for status in standings.seen {
            let known = &mut facts[status.source as usize];
            *known = SourceRow {
                rows: known.rows,
                ruling: known.ruling,
                weight: known.weight,
                // Where another method weighs, the rule has looked on without a say.
                rule_weight: self.method().rule_weight(status.unreliability),
                ..SourceRow::seen(std::mem::take(&mut known.source), &status)
            };
        }
        facts
    }
}
