//! What is said before, during and after training; `train` and `demo` share it.

use std::ops::ControlFlow;
use std::path::Path;

use lapwing_data::{Column, Dataset, Role, Unseen, Warning};
use lapwing_run::{Candidates, Job, Prepared, Unjudged, Watch};
use lapwing_train::Resumed;

use crate::interrupt::Interrupt;
use crate::output::count;
use crate::progress::Progress;
use crate::say::{counted, say, word};
use crate::table::{TextTable, printable};
use crate::verdicts::short;

/// Plain features listed one by one.
const LISTED: usize = 24;

/// Everything that was inferred, on stderr, so that it can be overridden.
pub(crate) fn describe(prepared: &Prepared, candidates: &Candidates<'_>) {
    let dataset = &prepared.dataset;
    describe_columns(dataset);
    if dataset.dropped.total() > 0 {
        say!("{} dropped: {}", counted(dataset.dropped.total(), "row"), dataset.dropped);
    }
    if let Some(dropped) =
        prepared.test.as_ref().map(|test| test.dropped.total()).filter(|&n| n > 0)
    {
        say!("{} of the test file dropped: no target", counted(dropped, "row"));
    }
    for (side, bytes, held) in dataset.table.columns().iter().filter_map(Column::pictures) {
        let megabytes = bytes.div_ceil(1_000_000);
        match held {
            true => say!("pictures of {side} × {side} pixels, {megabytes} MB in memory"),
            false => say!(
                "pictures of {side} × {side} pixels, {megabytes} MB in all: read from their files batch by batch \
                 (--image-memory)"
            ),
        }
    }
    if let Some((bytes, found)) = dataset.on_disk() {
        say!(
            "rows are on disk, {} MB{}",
            count(bytes.div_ceil(1_000_000)),
            if found { ": found there, and not read again" } else { "" }
        );
    }
    describe_rows(prepared);
    match candidates {
        Candidates::One(job) => {
            describe_choice(job);
            describe_training(job);
        }
        Candidates::Both(both) => {
            let (network, trees) = (both.network.model(), both.trees.model());
            say!(
                "trying both {network} and {trees}: the better one on validation rows is kept (--model names one)"
            );
            describe_training(&both.network);
            describe_training(&both.trees);
        }
    }
}

/// Why it is this model, where nobody asked for it.
pub(crate) fn describe_choice(job: &Job<'_>) {
    if let Some(reason) = &job.settings.model_reason {
        say!("model {}: {reason}", job.model());
    }
}

/// How many rows there are for what, and how they will be trained on.
pub(crate) fn describe_plan(prepared: &Prepared, job: &Job<'_>) {
    describe_rows(prepared);
    describe_training(job);
}

fn describe_rows(prepared: &Prepared) {
    let dataset = &prepared.dataset;
    say!(
        "{} to train on, {} to validate on, {} to test on; {}; {} {}",
        counted(prepared.split.train.len() as u64, "row"),
        count(prepared.split.validation.len() as u64),
        count(prepared.test_rows() as u64),
        counted(dataset.sources.names.len() as u64, "source"),
        dataset.schema.task,
        match dataset.schema.classes.len() {
            0 => String::new(),
            classes => format!("of {classes} classes"),
        }
    );
}

fn describe_training(job: &Job<'_>) {
    let plan = &job.plan;
    let epochs = || counted(plan.epochs as u64, "epoch");
    match job.trees() {
        Some(trees) => say!(
            "trees of at most {} leaves, {}at most {}, learning rate {}",
            trees.leaves,
            match trees.rehearsal {
                0 => String::new(),
                rounds => format!(
                    "{} to learn whom to believe, then anew ",
                    counted(rounds as u64, "round")
                ),
            },
            counted(trees.rounds as u64, "round"),
            trees.learning_rate,
        ),
        None => say!(
            "network {}, at most {} of {} ({} each), learning rate {}",
            plan.architecture,
            epochs(),
            counted(plan.steps / plan.epochs.max(1) as u64, "step"),
            counted(plan.batch_size as u64, "row"),
            plan.learning_rate,
        ),
    }
    let (kind, sentence) = (job.method().kind(), job.method().sentence());
    // Who else needs histories are the verdicts on losses.
    let histories = match (kind.runs_rule() || job.folds().is_err(), job.trees()) {
        (true, None) => format!("; histories fill in about {}", counted(plan.window_steps, "step")),
        (true, Some(trees)) => {
            format!("; histories fill in {}", counted(trees.rule.history_length as u64, "round"))
        }
        (false, _) => String::new(),
    };
    say!("method {}: {sentence}{histories}", kind.name());
}

/// Who will judge the labels, and what it costs.
pub(crate) fn describe_folds(job: &Job<'_>) {
    match job.folds() {
        Ok(folds) => {
            let drawn = match folds.judged() == folds.rows() {
                true => String::new(),
                false => format!(", drawn from {},", count(folds.rows() as u64)),
            };
            let (networks, steps) = (folds.networks(), count(folds.steps_each()));
            let rows = count(folds.judged() as u64);
            match job.judges_first() {
                true => say!(
                    "before that, judging labels by {networks} networks of {steps} steps: each of {rows} rows{drawn} by \
                     one that has not seen it; training goes by the noise rates that they find (--no-folds leaves this \
                     out)"
                ),
                false => say!(
                    "then judging labels by {networks} more networks of {steps} steps: each of {rows} rows{drawn} by one \
                     that has not seen it (--no-folds leaves this out)"
                ),
            }
        }
        Err(why @ Unjudged::FewRows(_)) => {
            say!("labels are not judged by further networks: {why}");
        }
        Err(_) => {}
    }
}

/// What may be wrong with the table, which is said to those who asked for no remarks, too.
pub(crate) fn warn(dataset: &Dataset) {
    for warning in &dataset.warnings {
        match warning {
            Warning::TextNotUsed { column } => {
                say!("warning: {warning}; --text {} would use it", word(Path::new(column)));
            }
            Warning::ItemsFound { .. } => say!(
                "warning: {warning} (--no-items takes each row for itself, --item COLUMN names the items)"
            ),
            warning => say!("warning: {warning}"),
        }
    }
}

/// Values of a table that training never saw: said to those who asked for no remarks, too.
pub(crate) fn warn_of_unseen(unseen: &[Unseen]) {
    for column in unseen {
        say!("warning: {}", lapwing_report::reveal(&column.to_string()));
    }
}

fn describe_columns(dataset: &Dataset) {
    let mut table = TextTable::new(&["column", "type", "role", ">missing", ">distinct", "note"]);
    let mut features = 0;
    for column in &dataset.schema.columns {
        if column.role == Role::Feature && column.note.is_none() {
            features += 1;
            if features > LISTED {
                continue;
            }
        }
        let about = if column.distinct.exact { "" } else { "~" };
        table.row_in_full([
            printable(&column.name),
            column.kind.to_string(),
            column.role.to_string(),
            count(column.missing),
            format!("{about}{}", count(column.distinct.count)),
            column.note.clone().unwrap_or_default(),
        ]);
    }
    say!("{}", table.render().trim_end());
    if features > LISTED {
        say!("… and {} more features", count((features - LISTED) as u64));
    }
}

/// A bar, or lines, while a network is trained.
pub(crate) struct TrainingProgress<'a> {
    progress: Progress,
    quiet: bool,
    /// Whether epochs are rounds.
    trees: bool,
    sources: usize,
    interrupt: Option<&'a Interrupt>,
    step: u64,
    /// Whether labels are judged.
    judging: bool,
}

impl<'a> TrainingProgress<'a> {
    pub(crate) fn new(what: &'static str, job: &Job<'_>, quiet: bool) -> Self {
        let sources = job.dataset().sources.names.len();
        let progress = Progress::new(what, Some(job.steps()), quiet);
        let trees = job.trees().is_some();
        Self { progress, quiet, trees, sources, interrupt: None, step: 0, judging: false }
    }

    /// While labels are judged.
    pub(crate) fn judging(job: &Job<'_>, quiet: bool) -> Self {
        let steps = job.folds().map_or(0, |folds| folds.steps());
        Self {
            progress: Progress::new("judge", Some(steps), quiet),
            judging: true,
            ..Self::new("judge", job, true)
        }
    }

    /// Stops when it is asked to.
    pub(crate) fn until(self, interrupt: &'a Interrupt) -> Self {
        Self { interrupt: Some(interrupt), ..self }
    }

    /// How far it has come, in words behind "stopped".
    pub(crate) fn when(&self) -> String {
        match self.judging {
            true => "while labels were judged".to_owned(),
            false => format!("after {}", counted(self.step, "step")),
        }
    }

    pub(crate) fn finish(&self) {
        self.progress.finish();
    }
}

impl Watch for TrainingProgress<'_> {
    fn judging(&mut self, job: &Job<'_>) {
        let (interrupt, quiet) = (self.interrupt, self.quiet);
        *self = Self { interrupt, quiet, ..Self::judging(job, quiet) };
    }

    fn training(&mut self, job: &Job<'_>) {
        self.progress.finish();
        let interrupt = self.interrupt;
        *self = Self { interrupt, ..Self::new(job.model().name(), job, self.quiet) };
    }

    fn step(&mut self, run: &lapwing_run::Progress<'_>) -> ControlFlow<()> {
        let (sources, trees) = (self.sources, self.trees);
        self.step = run.step;
        self.progress.set(run.step, || {
            if let Some(fold) = run.fold {
                return format!("network {}, loss {}", fold + 1, short(run.loss));
            }
            let epoch = if trees { "round" } else { "epoch" };
            let mut message = format!("{epoch} {}, loss {}", run.epoch + 1, short(run.loss));
            if let Some(loss) = run.last_epoch.and_then(|epoch| epoch.valid_loss) {
                message.push_str(&format!(", validation {}", short(loss)));
            }
            message.push_str(&format!(", {} of {sources} sources down", run.lowered));
            message
        });
        match self.interrupt.and_then(Interrupt::signal) {
            Some(_) => ControlFlow::Break(()),
            None => ControlFlow::Continue(()),
        }
    }

    fn resumed(&mut self, resumed: &Resumed) {
        match resumed {
            Resumed::Fallback { step, damaged } => say!(
                "warning: {damaged}; going on from the checkpoint before, at step {}",
                count(*step)
            ),
            Resumed::At { step } if !self.quiet => say!("going on from step {}", count(*step)),
            Resumed::Fresh if !self.quiet && self.trees => {
                say!(
                    "trees are grown again from the first round: there are no checkpoints of them"
                );
            }
            Resumed::Fresh if !self.quiet => {
                say!("no checkpoint yet: starting at the first step");
            }
            _ => {}
        }
    }
}
