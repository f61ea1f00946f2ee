//! The rule as a Python object.

use lapwing_core::{
    BatchSums, DISCRETE_AMOUNT, HistoryReading, Lap, LapConfig, LapError, Message, MessageError,
    MessageProblem, SourceState, State, Ties, Weighting,
};
use lapwing_judge::SourceRow;
use numpy::{PyArray1, PyArrayMethods};
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyBytesMethods, PyTuple};

use crate::batch::{Losses, Sources};
use crate::name::Names;
use crate::sources::source_table;
use crate::table::Table;

/// Loss Adapted Plasticity over arrays: what `lapwing.Lap` and `lapwing.LossAdaptedPlasticity` are
/// made of.
#[pyclass(module = "lapwing._lapwing")]
#[derive(Clone)]
pub(crate) struct Rule {
    pub(crate) lap: Lap<i64>,
    pub(crate) names: Names,
    started: Option<Started>,
}

/// The local batch between the two halves of a step.
#[derive(Clone)]
struct Started {
    codes: Vec<i64>,
    finite: Vec<bool>,
}

#[derive(Debug, thiserror::Error)]
enum RuleError {
    #[error(transparent)]
    Lap(#[from] LapError),
    #[error("{what} is {found:?}, but must be one of {expected}")]
    Choice { what: &'static str, found: String, expected: &'static str },
    #[error("finish() without a start()")]
    NotStarted,
    #[error(transparent)]
    Message(#[from] MessageError),
    #[error("this worker {0}")]
    Unwritable(MessageProblem),
    #[error("the saved state cannot be used: {0}")]
    State(#[from] serde_json::Error),
}

impl From<RuleError> for PyErr {
    fn from(error: RuleError) -> Self {
        let message = error.to_string();
        match error {
            RuleError::NotStarted
            | RuleError::Message(MessageError {
                problem: MessageProblem::OutOfStep { .. }, ..
            }) => PyRuntimeError::new_err(message),
            _ => PyValueError::new_err(message),
        }
    }
}

#[pymethods]
impl Rule {
    #[new]
    #[pyo3(signature = (*, history_length, leniency, depression_strength, discrete_amount, warmup, ties, weighting, reading))]
    #[allow(clippy::too_many_arguments)] // They are those of the rule.
    fn new(
        history_length: usize,
        leniency: f64,
        depression_strength: f64,
        discrete_amount: f64,
        warmup: u64,
        ties: &str,
        weighting: &str,
        reading: &str,
    ) -> PyResult<Self> {
        if !(discrete_amount >= 0.0 && discrete_amount.is_finite()) {
            let (parameter, expected) = ("discrete_amount", "finite and at least 0");
            let error = LapError::Parameter { parameter, value: discrete_amount, expected };
            return Err(RuleError::from(error).into());
        }
        let config = LapConfig {
            history_length,
            leniency,
            // Only the product of the two counts; times 1 where the amount is the usual one.
            depression_strength: depression_strength * (discrete_amount / DISCRETE_AMOUNT),
            warmup,
            ties: read_ties(ties)?,
            weighting: read_weighting(weighting)?,
            reading: read_reading(reading)?,
        };
        let lap = Lap::new(config).map_err(RuleError::from)?;
        Ok(Self { lap, names: Names::default(), started: None })
    }

    /// One step: the weight of each sample, in the precision of the losses, and whether all losses
    /// are finite.
    fn weigh<'py>(
        &mut self,
        losses: &Bound<'py, PyAny>,
        sources: &Bound<'py, PyAny>,
    ) -> PyResult<(Bound<'py, PyAny>, bool)> {
        let py = losses.py();
        let sources = Sources::of(sources, &mut self.names)?;
        let codes = sources.codes()?;
        Ok(match Losses::of(losses)? {
            Losses::Single(losses) => {
                let losses = losses.as_slice()?;
                let weights = self.lap.weigh(losses, codes).map_err(RuleError::from)?;
                let single = PyArray1::<f32>::zeros(py, weights.len(), false);
                for (to, from) in single.try_readwrite()?.as_slice_mut()?.iter_mut().zip(weights) {
                    *to = *from as f32;
                }
                (single.into_any(), losses.iter().all(|loss| loss.is_finite()))
            }
            Losses::Double(losses) => {
                let losses = losses.as_slice()?;
                let weights = self.lap.weigh(losses, codes).map_err(RuleError::from)?;
                let weights = PyArray1::from_slice(py, weights);
                (weights.into_any(), losses.iter().all(|loss| loss.is_finite()))
            }
        })
    }

    /// The first half of a step on many workers: what the others must know of the local batch.
    fn start<'py>(
        &mut self,
        losses: &Bound<'py, PyAny>,
        sources: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let losses_of_batch = Losses::of(losses)?.to_f64()?;
        let codes = Sources::of(sources, &mut self.names)?.codes()?.to_vec();
        if losses_of_batch.len() != codes.len() {
            let (losses, sources) = (losses_of_batch.len(), codes.len());
            return Err(RuleError::from(LapError::Unpaired { losses, sources }).into());
        }
        let mut sums = BatchSums::<i64>::new();
        for (code, &loss) in codes.iter().zip(&losses_of_batch) {
            sums.add(code, loss);
        }
        let finite = losses_of_batch.iter().map(|loss| loss.is_finite()).collect();
        self.started = Some(Started { codes, finite });
        // By name, as numbers of names differ from worker to worker.
        let mut named = BatchSums::<String>::new();
        sums.iter().for_each(|(&code, sum)| named.add_sum(&self.names.name(code), sum));
        let part = Message { step: self.lap.step(), sums: named };
        let part = part.encode().map_err(RuleError::Unwritable)?;
        Ok(PyBytes::new(losses.py(), &part))
    }

    /// The second half: takes what every worker said, in the order of their ranks, and returns the
    /// weights of the local samples and whether all local losses are finite.
    fn finish<'py>(
        &mut self,
        py: Python<'py>,
        parts: Vec<Bound<'py, PyBytes>>,
    ) -> PyResult<(Bound<'py, PyArray1<f64>>, bool)> {
        let Started { codes, finite } = self.started.take().ok_or(RuleError::NotStarted)?;
        let parts: Vec<&[u8]> = parts.iter().map(PyBytesMethods::as_bytes).collect();
        let named = Message::<String>::merge(&parts, self.lap.step()).map_err(RuleError::from)?;
        let mut merged = BatchSums::<i64>::new();
        for (name, sum) in named.iter() {
            merged.add_sum(&self.names.code(name), sum);
        }
        self.lap.update(&merged).map_err(RuleError::from)?;
        let weight =
            |(code, &finite): (&i64, &bool)| if finite { self.lap.weight(code) } else { 0.0 };
        let weights: Vec<f64> = codes.iter().zip(&finite).map(weight).collect();
        Ok((PyArray1::from_vec(py, weights), finite.iter().all(|&finite| finite)))
    }

    /// Steps made.
    #[getter]
    fn step(&self) -> u64 {
        self.lap.step()
    }

    /// How many sources have been seen.
    fn __len__(&self) -> usize {
        self.lap.sources().len()
    }

    /// What samples of this source weigh now; 1 for a source never seen.
    fn weight(&mut self, source: &Bound<'_, PyAny>) -> PyResult<f64> {
        Ok(self.lap.weight(&self.names.code_of(source)?))
    }

    /// C of this source now; 0 for a source never seen.
    fn unreliability(&mut self, source: &Bound<'_, PyAny>) -> PyResult<u64> {
        Ok(self.lap.unreliability(&self.names.code_of(source)?))
    }

    /// Where every source stands, in order of first appearance.
    fn sources(&self) -> PyResult<Table> {
        source_table(&SourceRow::all(&self.lap, |&code| self.names.name(code)))
    }

    /// The sources of the last step in order of first appearance in its batch: name, mean of the
    /// finite losses or None, unreliability, weight.
    fn present(&self) -> Vec<(String, Option<f64>, u64, f64)> {
        let tell = |source: lapwing_core::Present<'_, i64>| {
            let name = self.names.name(*source.source);
            (name, source.loss, source.unreliability, source.weight)
        };
        self.lap.present().map(tell).collect()
    }

    /// All that is known, as JSON.
    fn state<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let state = renamed(self.lap.state(), |code| self.names.name(code));
        Ok(PyBytes::new(py, &serde_json::to_vec(&state).map_err(RuleError::from)?))
    }

    /// Replaces all that is known by what `state` returned; of a prior only the unreliability.
    #[pyo3(signature = (state, *, prior = false))]
    fn load(&mut self, state: &[u8], prior: bool) -> PyResult<()> {
        let state: State<String> = serde_json::from_slice(state).map_err(RuleError::from)?;
        let state = if prior { state.into_prior() } else { state };
        let mut names = Names::default();
        let state = renamed(state, |name| names.code(&name));
        self.lap.load(state).map_err(RuleError::from)?;
        self.names = names;
        self.started = None;
        Ok(())
    }

    fn __copy__(&self) -> Self {
        self.clone()
    }

    fn __deepcopy__(&self, _memo: &Bound<'_, PyAny>) -> Self {
        self.clone()
    }

    fn __reduce__<'py>(
        slf: &Bound<'py, Self>,
    ) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyTuple>)> {
        let (py, rule) = (slf.py(), slf.borrow());
        let config = rule.lap.config();
        let ties = match config.ties {
            Ties::Paper => "paper",
            Ties::Package => "package",
        };
        let weighting = match config.weighting {
            Weighting::Exponential => "exponential",
            Weighting::Cut => "cut",
            _ => "tanh-squared",
        };
        let reading = match config.reading {
            HistoryReading::Mean => "mean",
            HistoryReading::Evidence => "evidence",
        };
        let arguments = (
            config.history_length,
            config.leniency,
            config.depression_strength,
            config.warmup,
            ties,
            weighting,
            rule.state(py)?,
            reading,
        );
        let restore = py.import("lapwing._lapwing")?.getattr("_restore")?;
        Ok((restore, arguments.into_pyobject(py)?))
    }
}

/// The inverse of pickling. What was pickled before there was a reading has none.
#[pyfunction]
#[pyo3(signature = (history_length, leniency, depression_strength, warmup, ties, weighting, state, reading="mean"))]
#[allow(clippy::too_many_arguments)] // They are those of the rule.
pub(crate) fn _restore(
    history_length: usize,
    leniency: f64,
    depression_strength: f64,
    warmup: u64,
    ties: &str,
    weighting: &str,
    state: &[u8],
    reading: &str,
) -> PyResult<Rule> {
    let mut rule = Rule::new(
        history_length,
        leniency,
        depression_strength,
        DISCRETE_AMOUNT,
        warmup,
        ties,
        weighting,
        reading,
    )?;
    rule.load(state, false)?;
    Ok(rule)
}

/// The rate at which the rule accuses clean sources.
#[pyfunction]
#[pyo3(signature = (leniency, *, sources, history_length))]
pub(crate) fn false_alarm_rate(
    leniency: f64,
    sources: usize,
    history_length: usize,
) -> PyResult<f64> {
    Ok(lapwing_core::false_alarm_rate(leniency, sources, history_length)
        .map_err(RuleError::from)?)
}

/// The leniency that accuses clean sources at this rate.
#[pyfunction]
#[pyo3(signature = (probability, *, sources, history_length))]
pub(crate) fn leniency_for_false_alarm(
    probability: f64,
    sources: usize,
    history_length: usize,
) -> PyResult<f64> {
    let found = lapwing_core::leniency_for_false_alarm(probability, sources, history_length);
    Ok(found.map_err(RuleError::from)?)
}

/// The same state with other names.
fn renamed<K, L>(state: State<K>, mut rename: impl FnMut(K) -> L) -> State<L> {
    let State { version, history_length, step, sources } = state;
    let sources = sources.into_iter().map(|known| SourceState {
        source: rename(known.source),
        unreliability: known.unreliability,
        window: known.window,
        cursor: known.cursor,
        rows: known.rows,
        batches: known.batches,
        nonfinite: known.nonfinite,
        judged: known.judged,
        above: known.above,
        first_departure_step: known.first_departure_step,
    });
    State { version, history_length, step, sources: sources.collect() }
}

fn read_ties(ties: &str) -> Result<Ties, RuleError> {
    match ties {
        "paper" => Ok(Ties::Paper),
        "package" => Ok(Ties::Package),
        _ => Err(choice("ties", ties, "'paper', 'package'")),
    }
}

fn read_weighting(weighting: &str) -> Result<Weighting, RuleError> {
    match weighting {
        "tanh-squared" => Ok(Weighting::TanhSquared),
        "exponential" => Ok(Weighting::Exponential),
        "cut" => Ok(Weighting::Cut),
        _ => Err(choice("weighting", weighting, "'tanh-squared', 'exponential', 'cut'")),
    }
}

fn read_reading(reading: &str) -> Result<HistoryReading, RuleError> {
    match reading {
        "mean" => Ok(HistoryReading::Mean),
        "evidence" => Ok(HistoryReading::Evidence),
        _ => Err(choice("reading", reading, "'mean', 'evidence'")),
    }
}

fn choice(what: &'static str, found: &str, expected: &'static str) -> RuleError {
    RuleError::Choice { what, found: found.to_owned(), expected }
}
