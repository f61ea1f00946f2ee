//! A model as ONNX, with its preprocessing: raw columns go in, predictions come out.
//!
//! Every feature is an input of its own, under its name: numbers as doubles `[rows, 1]` (NaN is missing), levels as texts
//! `[rows, 1]` (an empty one is missing, and so is what the table had for it), vectors as doubles `[rows, width]`. Outputs
//! are `prediction` `[rows]`, a text or a double, and for classes `probabilities` `[rows, classes]`, in the order of
//! `lapwing predict`.

use lapwing_data::{Encoder, Encoding, Input, Kind, LIMIT};
use lapwing_onnx::{Attribute, Element, Graph};
use lapwing_sample::TargetSpec;
use lapwing_train::{Architecture, Model};

use crate::{Learnt, Predictor, RunError};

impl Predictor {
    /// The model as the bytes of an ONNX file.
    ///
    /// # Errors
    /// Where ONNX cannot express it, or we do not.
    pub fn onnx(&self) -> Result<Vec<u8>, RunError> {
        let (model, encoder) = match (self.model(), self.input()) {
            (Learnt::Network(model), Input::Table(encoder)) => (model, encoder),
            (Learnt::Trees(_), _) => return Err(RunError::Onnx(
                "trees are not exported: model.ubj is XGBoost's own file, from which there are converters".to_owned(),
            )),
            (Learnt::Network(_), Input::Text(_)) => return Err(RunError::Onnx(
                "ONNX has no operator that finds the words of a text in every script".to_owned(),
            )),
            (Learnt::Network(model), _) => {
                let network = model.spec().architecture.kind();
                return Err(RunError::Onnx(format!("{network} is not exported: mlp and linear on tables are")));
            }
        };
        let mut graph = Graph::new("lapwing");
        let x = features(&mut graph, encoder)?;
        let outputs = network(&mut graph, model, x)?;
        predictions(&mut graph, model, &encoder.schema().classes, &outputs);
        Ok(graph.encode("lapwing", env!("CARGO_PKG_VERSION")))
    }
}

/// Columns become numbers as [`Encoder`] makes them.
fn features(graph: &mut Graph, encoder: &Encoder) -> Result<String, RunError> {
    let mut parts = Vec::new();
    for (column, encoding) in encoder.schema().features().zip(encoder.columns()) {
        let name = &column.name;
        if column.kind == Kind::Date {
            return Err(RunError::Onnx(format!(
                "column {name:?} holds dates, which ONNX does not read"
            )));
        }
        match encoding {
            Encoding::Number { scale, low, high, indicator } => {
                let x = graph.input(name, Element::Double, Some(1));
                let missing = graph.node("IsNaN", &[&x]);
                let standardised = |value: f64| (value - scale.mean) / scale.std;
                let low = low.map_or(-LIMIT, standardised).max(-LIMIT);
                let high = high.map_or(LIMIT, standardised).min(LIMIT);
                let x = standardise(graph, &x, &[scale.mean], &[1.0 / scale.std], low, high);
                let zero = graph.doubles(&[0.0], &[1]);
                let x = graph.node("Where", &[&missing, &zero, &x]);
                parts.push(graph.cast(&x, Element::Float));
                if *indicator {
                    parts.push(graph.cast(&missing, Element::Float));
                }
            }
            Encoding::Vector { scales } => {
                let x = graph.input(name, Element::Double, Some(scales.len()));
                let means: Vec<f64> = scales.iter().map(|scale| scale.mean).collect();
                let factors: Vec<f64> = scales.iter().map(|scale| 1.0 / scale.std).collect();
                let x = standardise(graph, &x, &means, &factors, -LIMIT, LIMIT);
                parts.push(graph.cast(&x, Element::Float));
            }
            Encoding::Levels { levels, other, missing, shares, .. } => {
                let text = graph.input(name, Element::Text, Some(1));
                if shares.is_empty() {
                    continue;
                }
                // A row of features for each level, for others and for missing values, and behind them the one that says
                // nothing.
                let width = shares.len();
                let neutral = width as i64;
                let place = |there: bool, at: usize| if there { at as i64 } else { neutral };
                let others = place(*other, levels.len());
                let absent = place(*missing, levels.len() + usize::from(*other));
                let mut rows: Vec<f32> = Vec::with_capacity((width + 1) * width);
                for at in 0..width {
                    rows.extend((0..width).map(|feature| f32::from(u8::from(feature == at))));
                }
                rows.extend(shares);
                let tokens = encoder.schema().missing_tokens.iter().cloned();
                let mut absences: Vec<String> = tokens.chain([String::new()]).collect();
                absences.sort();
                absences.dedup();
                absences.retain(|token| levels.binary_search(token).is_err());
                let numbers = (0..levels.len() as i64).chain(absences.iter().map(|_| absent));
                let numbers: Vec<i64> = numbers.collect();
                let texts: Vec<String> = levels.iter().cloned().chain(absences).collect();
                let number = graph.numbers_of(&text, &texts, &numbers, others);
                let table = graph.floats(&rows, &[width + 1, width]);
                let found = graph.node("Gather", &[&table, &number]);
                let shape = graph.ints(&[-1, width as i64], &[2]);
                parts.push(graph.node("Reshape", &[&found, &shape]));
            }
        }
    }
    let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
    Ok(graph.node_with("Concat", &parts, &[("axis", Attribute::Int(1))]))
}

/// (x − mean) · factor, within bounds.
fn standardise(
    graph: &mut Graph,
    x: &str,
    means: &[f64],
    factors: &[f64],
    low: f64,
    high: f64,
) -> String {
    let means = graph.doubles(means, &[1, means.len()]);
    let factors = graph.doubles(factors, &[1, factors.len()]);
    let (low, high) = (graph.doubles(&[low], &[]), graph.doubles(&[high], &[]));
    let x = graph.node("Sub", &[x, &means]);
    let x = graph.node("Mul", &[&x, &factors]);
    graph.node("Clip", &[&x, &low, &high])
}

/// The layers.
fn network(graph: &mut Graph, model: &Model, mut x: String) -> Result<String, RunError> {
    let parameters = model.parameters();
    let layer = |graph: &mut Graph, x: &str, name: &str| -> Result<String, RunError> {
        let mut array = |part: &str| {
            let name = format!("{name}.{part}");
            let found = parameters.iter().find(|(known, ..)| *known == name);
            let (_, shape, values) =
                found.ok_or_else(|| RunError::Onnx(format!("{name} is not there")))?;
            Ok::<String, RunError>(graph.floats(values, shape))
        };
        let (weight, bias) = (array("weight")?, array("bias")?);
        Ok(graph.node("Gemm", &[x, &weight, &bias]))
    };
    match &model.spec().architecture {
        Architecture::Linear(_) => layer(graph, &x, "layer"),
        Architecture::Mlp(config) => {
            if let Some(squash) = config.squash {
                let (width, one) = (graph.floats(&[squash], &[1]), graph.floats(&[1.0], &[1]));
                let share = graph.node("Div", &[&x, &width]);
                let square = graph.node("Mul", &[&share, &share]);
                let sum = graph.node("Add", &[&square, &one]);
                let root = graph.node("Sqrt", &[&sum]);
                x = graph.node("Div", &[&x, &root]);
            }
            for depth in 0..config.hidden.len() {
                let linear = layer(graph, &x, &format!("layers.{depth}"))?;
                x = graph.node("Relu", &[&linear]);
            }
            layer(graph, &x, &format!("layers.{}", config.hidden.len()))
        }
        other => Err(RunError::Onnx(format!(
            "{} is not exported: mlp and linear on tables are",
            other.kind()
        ))),
    }
}

/// What the outputs mean.
fn predictions(graph: &mut Graph, model: &Model, classes: &[String], outputs: &str) {
    match model.spec().task {
        TargetSpec::Values(scale) => {
            let x = graph.cast(outputs, Element::Double);
            let (mean, std) =
                (graph.doubles(&[scale.mean], &[1]), graph.doubles(&[scale.std], &[1]));
            let x = graph.node("Mul", &[&x, &std]);
            let x = graph.node("Add", &[&x, &mean]);
            let shape = graph.ints(&[-1], &[1]);
            let x = graph.node("Reshape", &[&x, &shape]);
            graph.output(&x, "prediction", Element::Double, None);
        }
        TargetSpec::Classes { .. } => {
            let axis = [("axis", Attribute::Int(1))];
            let probabilities = match model.spec().architecture.probabilities() {
                true => outputs.to_owned(),
                false => graph.node_with("Softmax", &[outputs], &axis),
            };
            let flat = [("axis", Attribute::Int(1)), ("keepdims", Attribute::Int(0))];
            let best = graph.node_with("ArgMax", &[&probabilities], &flat);
            let names = graph.texts(classes, &[classes.len()]);
            let label = graph.node("Gather", &[&names, &best]);
            graph.output(&label, "prediction", Element::Text, None);
            graph.output(&probabilities, "probabilities", Element::Float, Some(classes.len()));
        }
    }
}
