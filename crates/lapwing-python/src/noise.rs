//! Noise rates as a Python object.

use lapwing_core::{
    Answer, Labels, LapError, Message, MessageError, MessageProblem, NoiseRate, NoiseRateConfig,
    NoiseSourceState, NoiseState, NoiseSums,
};
use numpy::{PyArray1, PyReadonlyArray1};
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyBytesMethods, PyTuple};

use crate::batch::{Losses, Sources};
use crate::name::Names;
use crate::table::{Table, counts, numbers, texts};

/// Noise rates over arrays: what `lapwing.NoiseRate` and `lapwing.NoiseRateLoss` are made of.
#[pyclass(module = "lapwing._lapwing")]
#[derive(Clone)]
pub(crate) struct Noise {
    noise: NoiseRate<i64>,
    names: Names,
    /// The weights of the local batch between the two halves of a step.
    started: Option<Vec<f64>>,
}

#[derive(Debug, thiserror::Error)]
enum NoiseError {
    #[error(transparent)]
    Lap(#[from] LapError),
    #[error(
        "a batch of {answers} probabilities came with {labels} labels: there must be one label per row"
    )]
    Labels { answers: usize, labels: usize },
    #[error("label {0} is negative, and labels count from 0")]
    Negative(i64),
    #[error("finish() without a start()")]
    NotStarted,
    #[error(transparent)]
    Message(#[from] MessageError),
    #[error("this worker {0}")]
    Unwritable(MessageProblem),
    #[error("the saved state cannot be used: {0}")]
    State(#[from] serde_json::Error),
}

impl From<NoiseError> for PyErr {
    fn from(error: NoiseError) -> Self {
        let message = error.to_string();
        match error {
            NoiseError::NotStarted
            | NoiseError::Message(MessageError {
                problem: MessageProblem::OutOfStep { .. }, ..
            }) => PyRuntimeError::new_err(message),
            _ => PyValueError::new_err(message),
        }
    }
}

#[pymethods]
impl Noise {
    #[new]
    #[pyo3(signature = (*, classes, decay, prior, prior_strength, cap, warmup, frequencies = None))]
    fn new(
        classes: u32,
        decay: f64,
        prior: f64,
        prior_strength: f64,
        cap: f64,
        warmup: u64,
        frequencies: Option<Vec<f64>>,
    ) -> PyResult<Self> {
        let config = NoiseRateConfig { decay, prior, prior_strength, cap, warmup };
        let labels = match &frequencies {
            Some(frequencies) => Labels::given(frequencies),
            None => Labels::counted(classes),
        };
        let noise = labels.and_then(|labels| NoiseRate::new(config, labels));
        let noise = noise.map_err(NoiseError::from)?;
        Ok(Self { noise, names: Names::default(), started: None })
    }

    /// One step: the weight of each row.
    fn weigh<'py>(
        &mut self,
        probabilities: &Bound<'py, PyAny>,
        labels: PyReadonlyArray1<'py, i64>,
        sources: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyArray1<f64>>> {
        let rows = answers(probabilities, labels.as_slice()?)?;
        let sources = Sources::of(sources, &mut self.names)?;
        let weights = self.noise.weigh(&rows, sources.codes()?).map_err(NoiseError::from)?;
        Ok(PyArray1::from_slice(probabilities.py(), weights))
    }

    /// The first half of a step on many workers: what the others must know of the sources and of the
    /// labels of the local batch.
    fn start<'py>(
        &mut self,
        probabilities: &Bound<'py, PyAny>,
        labels: PyReadonlyArray1<'py, i64>,
        sources: &Bound<'py, PyAny>,
    ) -> PyResult<(Bound<'py, PyBytes>, Bound<'py, PyBytes>)> {
        let rows = answers(probabilities, labels.as_slice()?)?;
        let sources = Sources::of(sources, &mut self.names)?;
        let mut weights = Vec::new();
        let sums = self.noise.sums(&rows, sources.codes()?, &mut weights);
        let sums = sums.map_err(NoiseError::from)?;
        self.started = Some(weights);
        // By name, as numbers of names differ from worker to worker.
        let mut named = NoiseSums::<String>::new();
        for (&code, sum) in sums.responsibilities.iter() {
            named.responsibilities.add_sum(&self.names.name(code), sum);
        }
        let (step, py) = (self.noise.step(), probabilities.py());
        let of_sources = Message { step, sums: named.responsibilities }.encode();
        let of_labels = Message { step, sums: sums.model }.encode();
        let written = |part: Result<Vec<u8>, MessageProblem>| {
            part.map(|part| PyBytes::new(py, &part)).map_err(NoiseError::Unwritable)
        };
        Ok((written(of_sources)?, written(of_labels)?))
    }

    /// The second half: takes what every worker said, in the order of their ranks, and returns the
    /// weights of the local rows.
    fn finish<'py>(
        &mut self,
        py: Python<'py>,
        of_sources: Vec<Bound<'py, PyBytes>>,
        of_labels: Vec<Bound<'py, PyBytes>>,
    ) -> PyResult<Bound<'py, PyArray1<f64>>> {
        let weights = self.started.take().ok_or(NoiseError::NotStarted)?;
        let step = self.noise.step();
        let named =
            Message::<String>::merge(&bytes(&of_sources), step).map_err(NoiseError::from)?;
        let model = Message::<u32>::merge(&bytes(&of_labels), step).map_err(NoiseError::from)?;
        let mut merged = NoiseSums::<i64> { model, ..NoiseSums::new() };
        for (name, sum) in named.iter() {
            merged.responsibilities.add_sum(&self.names.code(name), sum);
        }
        self.noise.update(&merged).map_err(NoiseError::from)?;
        Ok(PyArray1::from_vec(py, weights))
    }

    /// Steps made.
    #[getter]
    fn step(&self) -> u64 {
        self.noise.step()
    }

    /// How many sources have been seen.
    fn __len__(&self) -> usize {
        self.noise.sources().len()
    }

    /// The noise rate of this source now; the prior for a source never seen.
    fn rate(&mut self, source: &Bound<'_, PyAny>) -> PyResult<f64> {
        Ok(self.noise.rate(&self.names.code_of(source)?))
    }

    /// m(y) of every class.
    fn frequencies(&self) -> Vec<f64> {
        let labels = self.noise.model();
        (0..labels.classes() as u32).filter_map(|label| labels.frequency(label)).collect()
    }

    /// Where every source stands, in order of first appearance.
    fn sources(&self) -> PyResult<Table> {
        let all = || self.noise.sources();
        Table::new([
            ("source", texts(all().map(|status| self.names.name(*status.source)))),
            ("noise_rate", numbers(all().map(|status| Some(status.rate)))),
            ("weight", numbers(all().map(|status| Some(1.0 - status.rate)))),
            ("rows", counts(all().map(|status| status.rows))),
            ("evidence", numbers(all().map(|status| Some(status.evidence)))),
            ("nonfinite", counts(all().map(|status| status.nonfinite))),
        ])
    }

    /// The sources of the last step in order of first appearance in its batch: name, noise rate.
    fn present(&self) -> Vec<(String, f64)> {
        self.noise.present().map(|(&code, rate)| (self.names.name(code), rate)).collect()
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
        let (py, own) = (slf.py(), slf.borrow());
        let NoiseRateConfig { decay, prior, prior_strength, cap, warmup } = *own.noise.config();
        let classes = own.noise.model().classes();
        let arguments = (classes, decay, prior, prior_strength, cap, warmup, own.state(py)?);
        let restore = py.import("lapwing._lapwing")?.getattr("_restore_noise")?;
        Ok((restore, arguments.into_pyobject(py)?))
    }

    /// All that is known, as JSON.
    fn state<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let state = renamed(self.noise.state(), |code| self.names.name(code));
        Ok(PyBytes::new(py, &serde_json::to_vec(&state).map_err(NoiseError::from)?))
    }

    /// Replaces all that is known by what `state` returned.
    fn load(&mut self, state: &[u8]) -> PyResult<()> {
        let state: NoiseState<String> = serde_json::from_slice(state).map_err(NoiseError::from)?;
        let mut names = Names::default();
        let state = renamed(state, |name| names.code(&name));
        self.noise.load(state).map_err(NoiseError::from)?;
        self.names = names;
        self.started = None;
        Ok(())
    }
}

/// The inverse of pickling. Frequencies that were given are part of the state.
#[pyfunction]
pub(crate) fn _restore_noise(
    classes: u32,
    decay: f64,
    prior: f64,
    prior_strength: f64,
    cap: f64,
    warmup: u64,
    state: &[u8],
) -> PyResult<Noise> {
    let mut noise = Noise::new(classes, decay, prior, prior_strength, cap, warmup, None)?;
    noise.load(state)?;
    Ok(noise)
}

fn bytes<'a>(parts: &'a [Bound<'_, PyBytes>]) -> Vec<&'a [u8]> {
    parts.iter().map(PyBytesMethods::as_bytes).collect()
}

fn answers(probabilities: &Bound<'_, PyAny>, labels: &[i64]) -> PyResult<Vec<Answer>> {
    let probabilities = Losses::of(probabilities)?.to_f64()?;
    if probabilities.len() != labels.len() {
        let (answers, labels) = (probabilities.len(), labels.len());
        return Err(NoiseError::Labels { answers, labels }.into());
    }
    let answer = |(probability, &label): (f64, &i64)| {
        let label = u64::try_from(label).map_err(|_| NoiseError::Negative(label))?;
        // Beyond 32 bits there is no class: the core says so with as large a number as it can.
        Ok(Answer { probability, label: u32::try_from(label).unwrap_or(u32::MAX) })
    };
    Ok(probabilities.into_iter().zip(labels).map(answer).collect::<Result<_, NoiseError>>()?)
}

/// The same state with other names.
fn renamed<K, L>(state: NoiseState<K>, mut rename: impl FnMut(K) -> L) -> NoiseState<L> {
    let NoiseState { version, step, model, sources } = state;
    let sources = sources.into_iter().map(|known| NoiseSourceState {
        source: rename(known.source),
        noise: known.noise,
        rows: known.rows,
        seen: known.seen,
        nonfinite: known.nonfinite,
    });
    NoiseState { version, step, model, sources: sources.collect() }
}
