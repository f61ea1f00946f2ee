//! A cell's settings, resolved: what the recipe, the condition, the method and the wish for a smaller run come to.

use lapwing_noise::NoiseKind;
use lapwing_sample::{InputSpec, Task};
use lapwing_train::{
    Architecture, Conv3NetConfig, DataShape, DifficultCnnConfig, Loss, MethodConfig, MlpConfig,
    NetworkKind, OptimiserConfig, ResNet20Config, Schedule, TrainConfig, Wishes,
};
use serde::Serialize;

use crate::cell::{Cell, Form};
use crate::data::DataSet;
use crate::error::PaperError;
use crate::recipe::{
    BatchLabels, Condition, Layout, MethodRecipe, Model, ModelKind, OptimiserKind, Recipe,
    ScheduleKind, Sources, Training,
};

/// Everything that decides on the numbers of a cell, but for its seeds.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Plan {
    pub(crate) data: DataSet,
    pub(crate) same_data: bool,
    /// See the recipe; as all that is new, it is left out of records where it is not used.
    #[serde(skip_serializing_if = "is_false")]
    pub(crate) paired: bool,
    pub(crate) keep: f64,
    /// The share of the kept rows that is not trained on.
    #[serde(skip_serializing_if = "is_none")]
    pub(crate) hold_out: f64,
    pub(crate) sources: Sources,
    pub(crate) noise: &'static str,
    #[serde(skip)]
    pub(crate) noise_kind: NoiseKind,
    /// The noise of each noisy source, where they differ.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) mixed: Vec<&'static str>,
    #[serde(skip)]
    pub(crate) mixed_kinds: Vec<NoiseKind>,
    /// Random labels are of the first so many classes.
    pub(crate) random_classes: Option<u32>,
    pub(crate) batch_labels: BatchLabels,
    pub(crate) model: Model,
    pub(crate) training: Training,
    pub(crate) method: MethodConfig,
    #[serde(skip)]
    pub(crate) limit: Option<usize>,
}

fn is_false(value: &bool) -> bool {
    !value
}

fn is_none(share: &f64) -> bool {
    *share == 0.0
}

impl Plan {
    /// The settings of a cell of a recipe that trains networks.
    pub(crate) fn new(recipe: &Recipe, cell: &Cell, form: Form) -> Result<Self, PaperError> {
        let refuse = |problem: &str| PaperError::Recipe {
            id: recipe.id.clone(),
            problem: problem.to_owned(),
        };
        let (Some(condition), Some(method)) =
            (recipe.condition(&cell.condition), recipe.method(&cell.method))
        else {
            return Err(refuse(&format!("no cell {cell}")));
        };
        let data = recipe.data.ok_or_else(|| refuse("no data set"))?;
        let mut sources = recipe.sources.clone().ok_or_else(|| refuse("no sources"))?;
        let mut model = recipe.model.clone().ok_or_else(|| refuse("no model"))?;
        let mut training = recipe.training.clone().ok_or_else(|| refuse("no training"))?;

        if let Some(count) = method.sources {
            // The same share of them is noisy.
            sources.noisy = count * sources.noisy / sources.count;
            sources.count = count;
        }
        sources.noisy = method.noisy.unwrap_or(sources.noisy);
        sources.chunk = method.chunk.unwrap_or(sources.chunk);
        if !condition.levels.is_empty() {
            sources.levels.clone_from(&condition.levels);
        }
        if !sources.levels.is_empty() {
            sources.noisy = sources.levels.len();
        }
        if !condition.mixed.is_empty() && condition.mixed.len() != sources.noisy {
            return Err(refuse("as many kinds of noise as noisy sources"));
        }
        if let (Some(limit), Layout::Chunks) = (form.limit_train, sources.layout) {
            // With few samples chunks are shorter, so that every source has some.
            sources.chunk = sources.chunk.min((limit / sources.count).max(1));
        }
        model.softmax = method.softmax.unwrap_or(model.softmax);
        model.init = method.init.unwrap_or(model.init);
        model.stem_relu = method.stem_relu.or(model.stem_relu);
        if let Some(width) = form.width {
            if !model.kind.has_width() {
                let what = format!("{} has no network whose width could be chosen", recipe.id);
                return Err(PaperError::Usage(what));
            }
            model.hidden = vec![width];
        }
        training.weight_decay = method.weight_decay.unwrap_or(training.weight_decay);
        training.epochs = form.epochs.or(method.epochs).unwrap_or(training.epochs);
        Ok(Self {
            data,
            same_data: recipe.same_data,
            paired: recipe.paired,
            keep: recipe.keep,
            hold_out: method.hold_out.unwrap_or(recipe.hold_out),
            noise: condition.noise.name(),
            noise_kind: condition.noise,
            mixed: condition.mixed.iter().map(|kind| kind.name()).collect(),
            mixed_kinds: condition.mixed.clone(),
            random_classes: method.random_classes.or(condition.random_classes),
            batch_labels: method.batch_labels,
            method: config(recipe, condition, method).map_err(|problem| refuse(&problem))?,
            sources,
            model,
            training,
            limit: form.limit_train,
        })
    }

    /// What the trainer is given, for so many samples of a form and so many classes (1: a value).
    pub(crate) fn config(
        &self,
        seed: u64,
        rows: usize,
        input: InputSpec,
        outputs: usize,
    ) -> Result<TrainConfig, PaperError> {
        let Model { kind, ref hidden, dropout, softmax, init, .. } = self.model;
        let architecture = match kind {
            ModelKind::Mlp => Architecture::Mlp(MlpConfig {
                inputs: input.size(),
                hidden: hidden.clone(),
                outputs,
                dropout,
                squash: None,
                softmax,
                init,
            }),
            ModelKind::Conv3net => Architecture::Conv3Net(Conv3NetConfig { outputs }),
            ModelKind::ResNet20 => {
                Architecture::ResNet20(ResNet20Config { outputs, height: 32, width: 32 })
            }
            ModelKind::DifficultCnn => Architecture::DifficultCnn(DifficultCnnConfig { outputs }),
            named => self.named(named, rows, input, outputs)?,
        };
        let Training { optimiser, learning_rate, momentum, weight_decay, batch, epochs, .. } =
            self.training;
        Ok(TrainConfig {
            seed,
            architecture,
            loss: if outputs == 1 { Loss::SquaredError } else { Loss::CrossEntropy },
            optimiser: match optimiser {
                OptimiserKind::Sgd => OptimiserConfig::Sgd { momentum, weight_decay },
                OptimiserKind::Adam => OptimiserConfig::Adam { weight_decay },
            },
            schedule: match self.training.schedule {
                None | Some(ScheduleKind::Constant) => Schedule::Constant { learning_rate },
                Some(ScheduleKind::EpochCosine { least, ahead }) => {
                    Schedule::EpochCosine { learning_rate, least, epochs, ahead }
                }
                Some(ScheduleKind::Stairs { factor, every }) => {
                    Schedule::Stairs { learning_rate, factor, every, epochs }
                }
            },
            batch_size: batch,
            epochs,
            patience: usize::MAX,
        })
    }

    /// A network that is what its name says, for samples of that form.
    fn named(
        &self,
        kind: ModelKind,
        rows: usize,
        input: InputSpec,
        outputs: usize,
    ) -> Result<Architecture, PaperError> {
        let usage = |error: &dyn std::fmt::Display| PaperError::Usage(error.to_string());
        let name = kind.network().unwrap_or_default();
        let network = Some(name.parse::<NetworkKind>().map_err(|error| usage(&error))?);
        let (task, sources) = (Task::Classification, self.sources.count);
        let shape = DataShape { rows, input, task, outputs, sources };
        let hidden = Some(self.model.hidden.clone()).filter(|hidden| !hidden.is_empty());
        let wishes = Wishes { network, hidden, ..Wishes::default() };
        let mut planned = Architecture::plan(&shape, &wishes).map_err(|error| usage(&error))?;
        // What the authors' networks do, and ours for users' data do not.
        match &mut planned {
            Architecture::PreActResNet18(network) => {
                network.stem_relu = self.model.stem_relu.unwrap_or(network.stem_relu);
            }
            Architecture::Lstm(network) => network.padding = true,
            Architecture::Transformer(network) => {
                (network.padding, network.copies) = (true, true);
            }
            Architecture::ResNet1d(network) => network.flatten = true,
            _ => {}
        }
        Ok(planned)
    }

    /// Multiplications for one sample in one epoch, in thousands, about: a measure of the work, for progress.
    pub(crate) fn work(&self, inputs: usize) -> u64 {
        self.method.kind().networks() as u64 * thousands(&self.model, inputs)
    }

    /// Epochs in all, those included that do not count.
    pub(crate) fn epochs(&self) -> u64 {
        self.method.kind().epochs(self.training.epochs) as u64
    }
}

/// Multiplications of a forward pass, in thousands.
fn thousands(model: &Model, inputs: usize) -> u64 {
    let of_width = |full: u64| {
        let width = model.hidden.first().copied().unwrap_or(64) as u64;
        (full * width * width / (64 * 64)).max(1)
    };
    match model.kind {
        ModelKind::Mlp => {
            let sizes = [&[inputs], &model.hidden[..], &[10]].concat();
            let products: usize = sizes.windows(2).map(|pair| pair[0] * pair[1]).sum();
            (products / 1000).max(1) as u64
        }
        ModelKind::Conv3net => 4_550,
        ModelKind::ResNet20 => 40_550,
        ModelKind::DifficultCnn => 12_000,
        ModelKind::ResNet18 => of_width(149_000),
        ModelKind::ResNet50 => of_width(334_000),
        ModelKind::PreActResNet18 => of_width(555_000),
        ModelKind::Lstm => 940_000,
        ModelKind::Transformer => 350_000,
        ModelKind::ResNet1d => 18_400,
    }
}

fn config(
    recipe: &Recipe,
    condition: &Condition,
    method: &MethodRecipe,
) -> Result<MethodConfig, String> {
    let kind = method.kind()?;
    let mut config = MethodConfig::new(kind);
    for (&name, &value) in &method.parameters {
        let untold = name == "noise-rate" && method.noise_rate_zero.contains(&condition.id);
        let value = if untold { 0.0 } else { value };
        config = config.with(name, value).map_err(|error| error.to_string())?;
    }
    // The others are not judged: it would cost time, and nobody asks.
    Ok(if kind.runs_rule() { config.judged_by(recipe.rule(condition, method)) } else { config })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cell::Selection;
    use crate::recipe::{Kind, Version, recipe, recipes};
    use lapwing_train::{Init, LstmConfig, ResNet1dConfig, TransformerConfig};

    fn plan(id: &str, condition: &str, method: &str, form: Form) -> Plan {
        let cell = Cell {
            experiment: id.to_owned(),
            condition: condition.to_owned(),
            method: method.to_owned(),
            run: 0,
        };
        Plan::new(&recipe(id, Version::Code).unwrap(), &cell, form).unwrap()
    }

    #[test]
    fn every_cell_of_every_recipe_has_a_plan_in_both_versions() {
        for version in [Version::Code, Version::Paper] {
            for recipe in recipes(version).unwrap() {
                for cell in Selection::default().cells(&recipe).unwrap() {
                    if recipe.kind == Kind::Training {
                        Plan::new(&recipe, &cell, Form::FULL).unwrap();
                    }
                }
            }
        }
    }

    #[test]
    fn methods_change_what_their_scripts_changed() {
        let id = "table-1-fashion-mnist";
        let cdr = plan(id, "random-label", "cdr", Form::FULL);
        let noise_rate =
            |plan: &Plan| serde_json::to_value(&plan.method).unwrap()["noise_rate"].clone();
        assert_eq!(noise_rate(&cdr), 0.6);
        assert_eq!(cdr.training.weight_decay, 1e-4);
        let cdr = plan(id, "batch-label-flip", "cdr", Form::FULL);
        assert_eq!(noise_rate(&cdr), 0.0);
        let arfl = plan(id, "random-label", "arfl", Form::FULL);
        assert!(!arfl.model.softmax && arfl.batch_labels == BatchLabels::Chunk);
        assert_eq!((arfl.model.init, cdr.model.init), (Init::Keras, Init::Torch));
        let arfl = plan("table-1-cifar-100", "random-label", "arfl", Form::FULL);
        assert_eq!((arfl.sources.noisy, arfl.training.epochs), (2, 25));
        let many = plan("many-sources", "random-label", "lap-1250", Form::FULL);
        assert_eq!((many.sources.count, many.sources.noisy, many.sources.chunk), (1250, 500, 128));
        assert_eq!(plan("cifar-10n", "noisy-3", "lap", Form::FULL).sources.noisy, 3);
    }

    #[test]
    fn the_arms_of_table_2_differ_in_the_code_and_not_in_the_text() {
        let cell = |method: &str| Cell {
            experiment: "table-2-rrl".to_owned(),
            condition: "batch-label-flip".to_owned(),
            method: method.to_owned(),
            run: 0,
        };
        let form = Form { width: Some(8), ..Form::FULL };
        let input = InputSpec::Image { height: 32, width: 32, channels: 3 };
        for (version, modified) in [(Version::Code, true), (Version::Paper, false)] {
            let recipe = recipe("table-2-rrl", version).unwrap();
            for (method, is_modified) in
                [("rrl", false), ("rrl-modified", true), ("rrl-lap", modified)]
            {
                let plan = Plan::new(&recipe, &cell(method), form).unwrap();
                let told = serde_json::to_value(&plan.method).unwrap();
                assert_eq!(told["modified"], is_modified, "{method}");
                assert_eq!(told["warmup_batches"], if is_modified { 100 } else { 101 });
                assert_eq!(plan.batch_labels, BatchLabels::Chunk);
                let config = plan.config(1, 100, input, 10).unwrap();
                let Architecture::PreActResNet18(network) = config.architecture else {
                    unreachable!()
                };
                assert_eq!((network.width, network.stem_relu), (8, !is_modified));
                // The rate of the last epoch is the least.
                let last = config.schedule.rate(99, 100);
                assert!((last - 2e-4).abs() < 1e-12 && config.schedule.highest() == 0.02);
            }
        }
    }

    #[test]
    fn sequences_are_learnt_by_the_networks_of_the_paper() {
        let network = |id: &str, condition: &str, input, outputs| {
            let plan = plan(id, condition, "standard", Form::FULL);
            plan.config(1, 100, input, outputs).unwrap().architecture
        };
        let texts = InputSpec::Tokens { longest: 256, vocabulary: 1000 };
        let lstm = network("imdb", "random-label", texts, 2);
        assert_eq!(lstm, Architecture::Lstm(LstmConfig::paper(1000, 2)));
        // 3.68 million, and 256 for each word.
        assert_eq!(lstm.parameters(), 3_679_234 + 256 * 1000);

        let comments = InputSpec::Tokens { longest: 128, vocabulary: 1000 };
        let transformer = network("goemotions", "random-label", comments, 28);
        assert_eq!(transformer, Architecture::Transformer(TransformerConfig::paper(1000, 28)));
        assert_eq!(transformer.parameters(), 2_637_340 + 256 * 1000);

        let hearts = InputSpec::Series { longest: 1000, channels: 12 };
        let resnet = network("ptb-xl", "noisy-4", hearts, 2);
        assert_eq!(resnet, Architecture::ResNet1d(ResNet1dConfig::paper(2)));
        assert_eq!(resnet.parameters(), 291_962);
    }

    #[test]
    fn residual_networks_are_narrower_in_a_smaller_run_and_others_refuse() {
        let form = Form { width: Some(8), ..Form::FULL };
        let input = InputSpec::Image { height: 64, width: 64, channels: 3 };
        let (narrow, full) = (
            plan("tiny-imagenet", "original", "lap", form),
            plan("tiny-imagenet", "original", "lap", Form::FULL),
        );
        let width = |plan: &Plan| match plan.config(1, 100, input, 200).unwrap().architecture {
            Architecture::ResNet50(network) => network.width,
            other => unreachable!("{other:?}"),
        };
        assert_eq!([width(&narrow), width(&full)], [8, 64]);
        assert_eq!(full.work(12_288) / narrow.work(12_288), 64);

        let other = recipe("california", Version::Code).unwrap();
        let cells = Selection::default().cells(&other).unwrap();
        let said = Plan::new(&other, &cells[0], form).unwrap_err().to_string();
        assert!(said.contains("width"), "{said}");
    }

    #[test]
    fn a_smaller_run_has_fewer_epochs_and_shorter_chunks() {
        let form = Form { limit_train: Some(100), epochs: Some(2), ..Form::FULL };
        let plan = plan("table-1-fashion-mnist", "original", "idpa", form);
        assert_eq!((plan.training.epochs, plan.epochs(), plan.sources.chunk), (2, 4, 10));
    }
}
