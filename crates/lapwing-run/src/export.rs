//! A model as ONNX, with its preprocessing: raw columns go in, predictions come out.
//!
//! Every feature is an input of its own, under its name:
//!
//! - numbers are doubles `[rows, 1]`, of which NaN is missing;
//! - levels are texts `[rows, 1]`; an empty one is missing, and so is what the table had for it;
//! - vectors are doubles `[rows, width]`;
//! - texts are their words as [`lapwing_data::words`] finds them, `[rows, words]`, with empty ones behind them where others
//!   have more: ONNX has no operator that finds the words of every script;
//! - pictures are bytes `[rows, side, side, 3]`, red, green and blue: ONNX opens no files;
//! - a channel of series is doubles `[rows, moments]`, with NaN behind those that are shorter. Where every moment has a
//!   column, the input has the names of the first and the last, `FIRST..LAST`.
//!
//! Outputs are `prediction` `[rows]`, a text or a double, and for classes `probabilities` `[rows, classes]`, in the order of
//! `lapwing predict`.

use lapwing_data::{ColumnSchema, Columns, Encoding, Input, Kind, LIMIT, PictureScale};
use lapwing_data::{Schema, SeriesScale, TextEncoder, TokenEncoder};
use lapwing_onnx::{Attribute, Element, Graph};
use lapwing_sample::{InputSpec, TargetSpec};
use lapwing_train::OnnxInput;

use crate::{Learnt, Predictor, RunError};

/// Words of a text that count.
const MOST_WORDS: i64 = 1_000;

impl Predictor {
    /// The model as the bytes of an ONNX file.
    ///
    /// # Errors
    /// Where ONNX cannot express it, or we do not.
    pub fn onnx(&self) -> Result<Vec<u8>, RunError> {
        let graph = &mut Graph::new("lapwing");
        let classes = &self.schema().classes;
        match (self.model(), self.input()) {
            (Learnt::Network(model), input) => {
                let input = given(graph, input)?;
                let refused = |error: lapwing_train::Inexpressible| RunError::Onnx(error.0);
                let outputs = model.onnx(graph, &input).map_err(refused)?;
                match model.spec().task {
                    TargetSpec::Values(_) => values(graph, &model.spec().task, &outputs),
                    TargetSpec::Classes { .. } => {
                        let are = model.spec().architecture.probabilities();
                        let of = if are { outputs } else { softmax(graph, &outputs) };
                        labels(graph, classes, &of);
                    }
                }
            }
            (Learnt::Trees(forest), Input::Columns(columns)) => {
                let x = columns_as_they_are(graph, columns)?;
                let margins = forest.onnx(graph, &x);
                match forest.spec().task {
                    TargetSpec::Values(_) => values(graph, &forest.spec().task, &margins),
                    TargetSpec::Classes { classes: 2 } => {
                        let second = graph.node("Sigmoid", &[&margins]);
                        let one = graph.floats(&[1.0], &[1]);
                        let first = graph.node("Sub", &[&one, &second]);
                        let both = concat(graph, &[first, second]);
                        labels(graph, classes, &both);
                    }
                    TargetSpec::Classes { .. } => {
                        let probabilities = softmax(graph, &margins);
                        labels(graph, classes, &probabilities);
                    }
                }
            }
            (Learnt::Trees(_), _) => {
                return Err(RunError::Onnx("trees are exported for tables".to_owned()));
            }
        }
        let graph = std::mem::replace(graph, Graph::new(""));
        Ok(graph.encode("lapwing", env!("CARGO_PKG_VERSION")))
    }
}

/// What a network is given.
fn given(graph: &mut Graph, input: &Input) -> Result<OnnxInput, RunError> {
    match input {
        Input::Table(encoder) => {
            let schema = encoder.schema();
            let columns = schema.features().zip(encoder.columns());
            let features = features(graph, schema, columns)?;
            let none = || RunError::Onnx("no column tells rows apart".to_owned());
            Ok(OnnxInput::Vectors(features.ok_or_else(none)?))
        }
        Input::Text(encoder) => bags(graph, encoder, input.schema()),
        Input::Tokens(encoder) => tokens(graph, encoder, input),
        Input::Image(scale) => pictures(graph, scale, input),
        Input::Series(scale) => series(graph, scale, input),
        Input::Columns(_) => {
            Err(RunError::Onnx("a network takes no columns as they are".to_owned()))
        }
    }
}

/// Names of inputs are names of columns, but for dates, which ONNX does not read.
fn readable(column: &ColumnSchema) -> Result<&str, RunError> {
    match column.kind {
        Kind::Date => Err(RunError::Onnx(format!(
            "column {:?} holds dates, which ONNX does not read; train with --ignore {:?} to leave it out",
            column.name, column.name
        ))),
        _ => Ok(&column.name),
    }
}

/// Columns become numbers as [`lapwing_data::Encoder`] makes them; nothing where there is none.
fn features<'a>(
    graph: &mut Graph,
    schema: &Schema,
    columns: impl Iterator<Item = (&'a ColumnSchema, &'a Encoding)>,
) -> Result<Option<String>, RunError> {
    let mut parts = Vec::new();
    for (column, encoding) in columns {
        let name = readable(column)?;
        match encoding {
            Encoding::Number { scale, low, high, indicator } => {
                let x = graph.input(name, Element::Double, &[Some(1)]);
                let missing = graph.node("IsNaN", &[&x]);
                let standardised = |value: f64| (value - scale.mean) / scale.std;
                let low = low.map_or(-LIMIT, standardised).max(-LIMIT);
                let high = high.map_or(LIMIT, standardised).min(LIMIT);
                let x = standardise(graph, &x, &[scale.mean], &[1.0 / scale.std], [low, high]);
                let zero = graph.doubles(&[0.0], &[1]);
                let x = graph.node("Where", &[&missing, &zero, &x]);
                parts.push(graph.cast(&x, Element::Float));
                if *indicator {
                    parts.push(graph.cast(&missing, Element::Float));
                }
            }
            Encoding::Vector { scales } => {
                let x = graph.input(name, Element::Double, &[Some(scales.len())]);
                let means: Vec<f64> = scales.iter().map(|scale| scale.mean).collect();
                let factors: Vec<f64> = scales.iter().map(|scale| 1.0 / scale.std).collect();
                let x = standardise(graph, &x, &means, &factors, [-LIMIT, LIMIT]);
                parts.push(graph.cast(&x, Element::Float));
            }
            Encoding::Levels { levels, other, missing, shares, .. } => {
                let text = graph.input(name, Element::Text, &[Some(1)]);
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
                let number = level_numbers(graph, &text, schema, levels, others, absent);
                let table = graph.floats(&rows, &[width + 1, width]);
                let found = graph.node("Gather", &[&table, &number]);
                let shape = graph.ints(&[-1, width as i64], &[2]);
                parts.push(graph.node("Reshape", &[&found, &shape]));
            }
        }
    }
    Ok((!parts.is_empty()).then(|| concat(graph, &parts)))
}

/// The place of each level, of other ones, and of what stands for a missing one.
fn level_numbers(
    graph: &mut Graph,
    text: &str,
    schema: &Schema,
    levels: &[String],
    others: i64,
    absent: i64,
) -> String {
    let tokens = schema.missing_tokens.iter().cloned();
    let mut absences: Vec<String> = tokens.chain([String::new()]).collect();
    absences.sort();
    absences.dedup();
    absences.retain(|token| levels.binary_search(token).is_err());
    let numbers = (0..levels.len() as i64).chain(absences.iter().map(|_| absent));
    let numbers: Vec<i64> = numbers.collect();
    let texts: Vec<String> = levels.iter().cloned().chain(absences).collect();
    graph.numbers_of(text, &texts, &numbers, others)
}

/// Columns as trees see them: numbers less their offset, levels by their place, NaN for what is missing.
fn columns_as_they_are(graph: &mut Graph, columns: &Columns) -> Result<String, RunError> {
    let encoder = columns.encoder();
    let schema = encoder.schema();
    let mut parts = Vec::new();
    for (column, encoding) in schema.features().zip(encoder.columns()) {
        let name = readable(column)?;
        parts.push(match encoding {
            Encoding::Number { .. } => {
                let x = graph.input(name, Element::Double, &[Some(1)]);
                let offset = graph.doubles(&[column.offset()], &[1]);
                let x = graph.node("Sub", &[&x, &offset]);
                bounded(graph, &x)
            }
            Encoding::Vector { scales } => {
                let x = graph.input(name, Element::Double, &[Some(scales.len())]);
                bounded(graph, &x)
            }
            Encoding::Levels { levels, other, .. } => {
                let text = graph.input(name, Element::Text, &[Some(1)]);
                // Behind the places stands what is missing.
                let mut places: Vec<f32> = (0..=levels.len()).map(|place| place as f32).collect();
                places.push(f32::NAN);
                let absent = levels.len() as i64 + 1;
                let others = if *other { levels.len() as i64 } else { absent };
                let number = level_numbers(graph, &text, schema, levels, others, absent);
                let table = graph.floats(&places, &[places.len()]);
                graph.node("Gather", &[&table, &number])
            }
        });
    }
    Ok(concat(graph, &parts))
}

/// As floats, infinite ones as large as can be.
fn bounded(graph: &mut Graph, x: &str) -> String {
    let missing = graph.node("IsNaN", &[x]);
    let limit = f64::from(f32::MAX);
    let (low, high) = (graph.doubles(&[-limit], &[]), graph.doubles(&[limit], &[]));
    let clipped = graph.node("Clip", &[x, &low, &high]);
    let x = graph.node("Where", &[&missing, x, &clipped]);
    graph.cast(&x, Element::Float)
}

/// (x − mean) · factor, within bounds.
fn standardise(
    graph: &mut Graph,
    x: &str,
    means: &[f64],
    factors: &[f64],
    [low, high]: [f64; 2],
) -> String {
    let means = graph.doubles(means, &[1, means.len()]);
    let factors = graph.doubles(factors, &[1, factors.len()]);
    let (low, high) = (graph.doubles(&[low], &[]), graph.doubles(&[high], &[]));
    let x = graph.node("Sub", &[x, &means]);
    let x = graph.node("Mul", &[&x, &factors]);
    graph.node("Clip", &[&x, &low, &high])
}

fn texts(schema: &Schema) -> impl Iterator<Item = &ColumnSchema> {
    schema.features().filter(|column| column.kind == Kind::Text)
}

/// The first of them along the second axis, and from which to which.
fn cut(graph: &mut Graph, x: &str, from: i64, to: i64, axis: i64) -> String {
    let bounds = [from, to, axis].map(|bound| graph.ints(&[bound], &[1]));
    graph.node("Slice", &[x, &bounds[0], &bounds[1], &bounds[2]])
}

/// The numbers of words in a column of texts, of which unknown ones have a number, and so has nothing.
fn words(
    graph: &mut Graph,
    column: &ColumnSchema,
    known: &[String],
    first: i64,
    [unknown, nothing]: [i64; 2],
    most: i64,
) -> String {
    let given = graph.input(&column.name, Element::Text, &[None]);
    let given = cut(graph, &given, 0, most, 1);
    let names: Vec<String> = known.iter().cloned().chain([String::new()]).collect();
    let numbers: Vec<i64> = (first..).take(known.len()).chain([nothing]).collect();
    graph.numbers_of(&given, &names, &numbers, unknown)
}

/// Bags of words and word pairs, and numbers beside them.
fn bags(graph: &mut Graph, encoder: &TextEncoder, schema: &Schema) -> Result<OnnxInput, RunError> {
    let (known, pairs) = (encoder.words(), encoder.pairs());
    let nothing = (1 + known.len() + pairs.len()) as i64;
    // Two words that follow each other, in one number.
    let key = |[one, other]: [i64; 2]| one * (nothing + 1) + other;
    let keys: Vec<i64> =
        pairs.iter().map(|pair| key(pair.map(|place| i64::from(place) + 1))).collect();
    let numbers: Vec<i64> = (1 + known.len() as i64..nothing).collect();
    let mut parts = Vec::new();
    for column in texts(schema) {
        let found = words(graph, column, known, 1, [0, nothing], MOST_WORDS);
        if !keys.is_empty() {
            let one = cut(graph, &found, 0, -1, 1);
            let other = cut(graph, &found, 1, i64::MAX, 1);
            let factor = graph.ints(&[nothing + 1], &[1]);
            let one = graph.node("Mul", &[&one, &factor]);
            let both = graph.node("Add", &[&one, &other]);
            parts.push(graph.numbers_of_numbers(&both, &keys, &numbers, nothing));
        }
        parts.push(found);
    }
    let words = concat(graph, &parts);
    let numbers = features(graph, schema, encoder.encodings())?;
    Ok(OnnxInput::Texts { words, numbers })
}

/// Words in their order.
fn tokens(graph: &mut Graph, encoder: &TokenEncoder, input: &Input) -> Result<OnnxInput, RunError> {
    let InputSpec::Tokens { longest, .. } = input.spec() else {
        return Err(RunError::Onnx("texts are read word by word".to_owned()));
    };
    let columns: Vec<&ColumnSchema> = texts(input.schema()).collect();
    let &[column] = &columns[..] else {
        return Err(RunError::Onnx(
            "of several columns of text only a bag of words (--model bag) is exported".to_owned(),
        ));
    };
    let words = words(graph, column, encoder.words(), 2, [1, 0], longest as i64);
    let (zero, one) = (graph.ints(&[0], &[1]), graph.ints(&[1], &[1]));
    let there = graph.node("Greater", &[&words, &zero]);
    let lengths = lengths(graph, &there, &one);
    Ok(OnnxInput::Tokens { words, lengths })
}

/// How many truths `[rows, n]` hold in each row, at least one, `[rows, 1]`.
fn lengths(graph: &mut Graph, there: &str, one: &str) -> String {
    let there = graph.cast(there, Element::Int64);
    let count = graph.node("ReduceSum", &[&there, one]);
    graph.node("Max", &[&count, one])
}

/// Pictures in the size of training, channel by channel.
fn pictures(graph: &mut Graph, scale: &PictureScale, input: &Input) -> Result<OnnxInput, RunError> {
    let (InputSpec::Image { height, width, channels }, Some(column)) =
        (input.spec(), input.schema().features().next())
    else {
        return Err(RunError::Onnx("there is no picture".to_owned()));
    };
    let row = [Some(height), Some(width), Some(channels)];
    let x = graph.input(&column.name, Element::Byte, &row);
    let x = graph.cast(&x, Element::Float);
    let single = |of: fn(&lapwing_sample::Scale) -> f64| -> Vec<f32> {
        scale.channels().iter().map(|scale| of(scale) as f32).collect()
    };
    let means = graph.floats(&single(|scale| scale.mean), &[channels]);
    let deviations = graph.floats(&single(|scale| scale.std), &[channels]);
    let x = graph.node("Sub", &[&x, &means]);
    let x = graph.node("Div", &[&x, &deviations]);
    let axes = [("perm", Attribute::Ints(&[0, 3, 1, 2]))];
    Ok(OnnxInput::Images(graph.node_with("Transpose", &[&x], &axes)))
}

/// Series of the length of training, channel by channel.
fn series(graph: &mut Graph, scale: &SeriesScale, input: &Input) -> Result<OnnxInput, RunError> {
    let InputSpec::Series { longest, .. } = input.spec() else {
        return Err(RunError::Onnx("there are no series".to_owned()));
    };
    let one = graph.ints(&[1], &[1]);
    let pads = graph.ints(&[0, 0, 0, longest as i64], &[4]);
    let (mut parts, mut long) = (Vec::new(), None);
    for (columns, scale) in input.schema().series.iter().zip(scale.channels()) {
        let name = match &columns[..] {
            [] => return Err(RunError::Onnx("a channel has no columns".to_owned())),
            [name] => name.clone(),
            [first, .., last] => format!("{first}..{last}"),
        };
        let x = graph.input(&name, Element::Double, &[None]);
        let x = cut(graph, &x, 0, longest as i64, 1);
        let missing = graph.node("IsNaN", &[&x]);
        if long.is_none() {
            let there = graph.node("Not", &[&missing]);
            long = Some(lengths(graph, &there, &one));
        }
        let x = standardise(graph, &x, &[scale.mean], &[1.0 / scale.std], [-LIMIT, LIMIT]);
        let zero = graph.doubles(&[0.0], &[1]);
        let x = graph.node("Where", &[&missing, &zero, &x]);
        let x = graph.cast(&x, Element::Float);
        let x = graph.node("Pad", &[&x, &pads]);
        let x = cut(graph, &x, 0, longest as i64, 1);
        parts.push(graph.node("Unsqueeze", &[&x, &one]));
    }
    let lengths = long.ok_or_else(|| RunError::Onnx("there are no channels".to_owned()))?;
    Ok(OnnxInput::Series { values: concat(graph, &parts), lengths })
}

/// Side by side, along the second axis.
fn concat(graph: &mut Graph, parts: &[String]) -> String {
    let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
    graph.node_with("Concat", &parts, &[("axis", Attribute::Int(1))])
}

fn softmax(graph: &mut Graph, x: &str) -> String {
    graph.node_with("Softmax", &[x], &[("axis", Attribute::Int(1))])
}

/// Outputs that are values in standard deviations.
fn values(graph: &mut Graph, task: &TargetSpec, outputs: &str) {
    let TargetSpec::Values(scale) = task else { return };
    let x = graph.cast(outputs, Element::Double);
    let (mean, std) = (graph.doubles(&[scale.mean], &[1]), graph.doubles(&[scale.std], &[1]));
    let x = graph.node("Mul", &[&x, &std]);
    let x = graph.node("Add", &[&x, &mean]);
    let shape = graph.ints(&[-1], &[1]);
    let x = graph.node("Reshape", &[&x, &shape]);
    graph.output(&x, "prediction", Element::Double, &[]);
}

/// Outputs that are probabilities of classes.
fn labels(graph: &mut Graph, classes: &[String], probabilities: &str) {
    let flat = [("axis", Attribute::Int(1)), ("keepdims", Attribute::Int(0))];
    let best = graph.node_with("ArgMax", &[probabilities], &flat);
    let names = graph.texts(classes, &[classes.len()]);
    let label = graph.node("Gather", &[&names, &best]);
    graph.output(&label, "prediction", Element::Text, &[]);
    graph.output(probabilities, "probabilities", Element::Float, &[Some(classes.len())]);
}
