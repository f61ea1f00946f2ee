//! What is said before, during and after training; `train` and `demo` share it.

use std::ops::ControlFlow;

use lapwing_data::{Dataset, Role};
use lapwing_run::{Job, MethodName, Prepared, Watch};
use lapwing_train::Resumed;

use crate::output::count;
use crate::progress::Progress;
use crate::table::{TextTable, printable};
use crate::verdicts::short;

/// Plain features listed one by one.
const LISTED: usize = 24;

/// Everything that was inferred, on stderr, so that it can be overridden.
pub(crate) fn describe(prepared: &Prepared, job: &Job<'_>) {
    let dataset = &prepared.dataset;
    describe_columns(dataset);
    if dataset.dropped.total() > 0 {
        eprintln!("{} rows dropped: {}", count(dataset.dropped.total()), dataset.dropped);
    }
    if let Some(dropped) =
        prepared.test.as_ref().map(|test| test.dropped.total()).filter(|&n| n > 0)
    {
        eprintln!("{} rows of the test file dropped: no target", count(dropped));
    }
    eprintln!(
        "{} rows to train on, {} to validate on, {} to test on; {} sources; {} {}",
        count(prepared.split.train.len() as u64),
        count(prepared.split.validation.len() as u64),
        count(prepared.test_rows() as u64),
        count(dataset.sources.names.len() as u64),
        dataset.schema.task,
        match dataset.schema.classes.len() {
            0 => String::new(),
            classes => format!("of {classes} classes"),
        }
    );
    let (plan, settings) = (&job.plan, &job.settings);
    eprintln!(
        "network {}, at most {} epochs of {} steps ({} rows each), learning rate {}",
        plan.architecture,
        plan.epochs,
        count(plan.steps / plan.epochs.max(1) as u64),
        plan.batch_size,
        plan.learning_rate,
    );
    match settings.method() {
        MethodName::Standard => eprintln!("method standard: all sources count the same"),
        MethodName::Arfl => eprintln!(
            "method arfl: sources are trained on apart and averaged; one whose loss is {} above the others counts for nothing",
            settings.tolerance.unwrap_or_default()
        ),
        MethodName::LabelSmoothing => eprintln!(
            "method label-smoothing: {} of every label goes to all classes; all sources count the same",
            settings.smoothing.unwrap_or_default()
        ),
        MethodName::CoTeaching => eprintln!(
            "method co-teaching: two networks leave out the {} of each batch with the highest losses",
            settings.forget_rate.unwrap_or_default()
        ),
        MethodName::Cdr => eprintln!(
            "method cdr: the {} of the parameters that matter least do not learn",
            settings.noise_rate.unwrap_or_default()
        ),
        MethodName::Idpa => eprintln!(
            "method idpa: as many epochs again, in which labels are corrected by what the network says"
        ),
        MethodName::Lap => eprintln!(
            "method lap: history {}, leniency {}, strength {} (half weight at C = {}); histories fill in about {} steps",
            settings.rule().history_length,
            settings.rule().leniency,
            short(plan.depression_strength),
            count((176.27 / plan.depression_strength).min(1e15) as u64),
            count(plan.window_steps),
        ),
    }
    for warning in &dataset.warnings {
        eprintln!("warning: {warning}");
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
    eprint!("{}", table.render());
    if features > LISTED {
        eprintln!("… and {} more features", count((features - LISTED) as u64));
    }
}

/// A bar, or lines, while a network is trained.
pub(crate) struct TrainingProgress {
    progress: Progress,
    quiet: bool,
    sources: usize,
}

impl TrainingProgress {
    pub(crate) fn new(what: &'static str, job: &Job<'_>, quiet: bool) -> Self {
        let sources = job.dataset().sources.names.len();
        Self { progress: Progress::new(what, Some(job.plan.steps), quiet), quiet, sources }
    }

    pub(crate) fn finish(&self) {
        self.progress.finish();
    }
}

impl Watch for TrainingProgress {
    fn step(&mut self, run: &lapwing_run::Progress<'_>) -> ControlFlow<()> {
        let sources = self.sources;
        self.progress.set(run.step, || {
            let mut message = format!("epoch {}, loss {}", run.epoch + 1, short(run.loss));
            if let Some(loss) = run.last_epoch.and_then(|epoch| epoch.valid_loss) {
                message.push_str(&format!(", validation {}", short(loss)));
            }
            message.push_str(&format!(", {} of {sources} sources down", run.lowered));
            message
        });
        ControlFlow::Continue(())
    }

    fn resumed(&mut self, resumed: &Resumed) {
        match resumed {
            Resumed::Fallback { step, damaged } => eprintln!(
                "warning: {}; going on from the checkpoint before, at step {}",
                lapwing_report::reveal(&damaged.to_string()),
                count(*step)
            ),
            Resumed::At { step } if !self.quiet => eprintln!("going on from step {}", count(*step)),
            Resumed::Fresh if !self.quiet => {
                eprintln!("no checkpoint yet: starting at the first step");
            }
            _ => {}
        }
    }
}
