//! A run whose labels are judged by networks that have not seen them, before training or behind it.

use lapwing_data::Items;
use lapwing_sample::{Augmented, InputSpec};

use super::{Checkpoints, Fit, Job, Watch, data};
use crate::{FoldRun, Folds, JudgedLabels, LabelledRows, RunError, Unjudged};

impl Job<'_> {
    /// Who is to judge which labels.
    ///
    /// # Errors
    /// Where they are not to be judged.
    pub fn folds(&self) -> Result<Folds, Unjudged> {
        let networks = self.settings.folds.unwrap_or(0);
        let (guards, seed) = (self.method.guards(), self.settings.seed());
        let labelled = LabelledRows {
            targets: &self.dataset.target,
            sources: &self.dataset.sources.codes,
            train: &self.split.train,
            valid: &self.split.validation,
        };
        Folds::new(networks, self.plan.steps, &labelled, guards, seed)
    }

    /// Whether labels are judged before training, which then knows the noise rates of sources. A network that has learnt its
    /// texts, series or pictures by heart believes every label; those of tables find the rates out on their way.
    pub fn judges_first(&self) -> bool {
        let learns_rates = self.method.kind().name() == "noise-rate";
        let items = self.dataset.items.as_ref().is_some_and(Items::any_answered_twice);
        let by_heart = !matches!(self.input.spec(), InputSpec::Vector { .. });
        learns_rates && !items && by_heart && self.trees.is_none() && self.folds().is_ok()
    }

    /// Has labels judged by networks that have not seen them, where that is asked for and possible and has not been done;
    /// `None` where it was interrupted.
    pub fn judge(
        &self,
        fit: Fit,
        checkpoints: Option<&Checkpoints>,
        watch: &mut dyn Watch,
    ) -> Result<Option<Fit>, RunError> {
        if !matches!(fit.labels, Err(Unjudged::NotAsked)) {
            return Ok(Some(fit));
        }
        let judged = self.judge_labels(checkpoints, watch)?;
        Ok(judged.map(|labels| Fit { labels, ..fit }))
    }

    pub(super) fn judge_labels(
        &self,
        checkpoints: Option<&Checkpoints>,
        watch: &mut dyn Watch,
    ) -> Result<Option<Result<JudgedLabels, Unjudged>>, RunError> {
        let folds = match self.folds() {
            Ok(folds) => folds,
            Err(why) => return Ok(Some(Err(why))),
        };
        let input = self.trees.as_ref().map_or(&self.input, |(_, networks)| networks);
        let bound = self.dataset.bind(input)?;
        let bound = Augmented::new(&*bound, self.changes());
        let data = data(self.dataset, self.split, &bound);
        let run = FoldRun {
            data,
            sources: self.dataset.sources.names.len(),
            config: &self.config,
            method: &self.method,
            validation: self.settings.validation_fraction.unwrap_or(0.0),
            device: self.device,
            workers: self.workers,
        };
        folds.run(&run, checkpoints, watch)
    }
}
