//! Named arrays, columns and one text in a safetensors container: the common part of checkpoints and model files.

use std::io::{self, Write};

use safetensors::tensor::{Metadata, TensorInfo};
use safetensors::{Dtype, SafeTensorError, SafeTensors};
use thiserror::Error;

use crate::parameters::Parameter;
use crate::saved::{Column, Numbers};

/// The name of the text. It is an array like the others because the container's header, where it could stand as well,
/// ends at 100 MB.
const TEXT: &str = "state";
/// The name of the bytes.
const BYTES: &str = "bytes";

/// What a container holds.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Arrays {
    pub(crate) text: String,
    pub(crate) parameters: Vec<Parameter>,
    pub(crate) columns: Vec<Column>,
    pub(crate) bytes: Vec<u8>,
}

/// Why a container cannot be read.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ArraysError {
    /// Not a container, or one whose lengths and shapes contradict each other or the file.
    #[error("not a valid safetensors file: {0}")]
    Container(#[from] SafeTensorError),
    /// An array of a type that has no business here.
    #[error("array `{name}` is of type {dtype}, expected {expected}")]
    Type {
        /// Its name.
        name: String,
        /// Its type.
        dtype: String,
        /// What it may be.
        expected: &'static str,
    },
    /// The container could not be written.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// Its header could not be written.
    #[error("the header cannot be written: {0}")]
    Header(#[from] serde_json::Error),
    /// A text that is none.
    #[error("array `{TEXT}` is not UTF-8: {0}")]
    Text(#[from] std::string::FromUtf8Error),
}

impl Arrays {
    /// The parameters, where there must be nothing else.
    pub(crate) fn into_parameters(self) -> Result<Vec<Parameter>, ArraysError> {
        let named = |name: &str, dtype: &str| {
            Err(ArraysError::Type {
                name: name.to_owned(),
                dtype: dtype.to_owned(),
                expected: "F32",
            })
        };
        match self.columns.first() {
            Some(Column { name, numbers: Numbers::Counts(_) }) => named(name, "U64"),
            Some(Column { name, numbers: Numbers::Values(_) }) => named(name, "F64"),
            None if !self.text.is_empty() => named(TEXT, "U8"),
            None if !self.bytes.is_empty() => named(BYTES, "U8"),
            None => Ok(self.parameters),
        }
    }
}

/// An array on its way into a container.
struct Entry<'a> {
    name: &'a str,
    shape: Vec<usize>,
    content: Content<'a>,
}

enum Content<'a> {
    Floats(&'a [f32]),
    Counts(&'a [u64]),
    Values(&'a [f64]),
    Bytes(&'a [u8]),
}

impl Content<'_> {
    fn dtype(&self) -> Dtype {
        match self {
            Content::Floats(_) => Dtype::F32,
            Content::Counts(_) => Dtype::U64,
            Content::Values(_) => Dtype::F64,
            Content::Bytes(_) => Dtype::U8,
        }
    }

    fn size(&self) -> usize {
        match *self {
            Content::Floats(numbers) => size_of_val(numbers),
            Content::Counts(numbers) => size_of_val(numbers),
            Content::Values(numbers) => size_of_val(numbers),
            Content::Bytes(bytes) => bytes.len(),
        }
    }

    fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        match *self {
            Content::Floats(numbers) => write_numbers(numbers, f32::to_le_bytes, out),
            Content::Counts(numbers) => write_numbers(numbers, u64::to_le_bytes, out),
            Content::Values(numbers) => write_numbers(numbers, f64::to_le_bytes, out),
            Content::Bytes(bytes) => out.write_all(bytes),
        }
    }
}

/// Writes numbers as N little-endian bytes each, some thousand at a time.
fn write_numbers<T: Copy, const N: usize>(
    numbers: &[T],
    bytes: fn(T) -> [u8; N],
    out: &mut dyn Write,
) -> io::Result<()> {
    numbers.chunks(4096).try_for_each(|some| {
        out.write_all(&some.iter().flat_map(|&number| bytes(number)).collect::<Vec<u8>>())
    })
}

/// Writes a container, array by array: all of it is never held, as the arrays may fill half of the memory.
pub(crate) fn write(arrays: &Arrays, out: &mut dyn Write) -> Result<(), ArraysError> {
    let list = |name, content, length| Entry { name, shape: vec![length], content };
    let mut entries: Vec<Entry<'_>> = Vec::new();
    for Parameter { name, shape, values } in &arrays.parameters {
        entries.push(Entry { name, shape: shape.clone(), content: Content::Floats(values) });
    }
    for Column { name, numbers } in &arrays.columns {
        entries.push(match numbers {
            Numbers::Counts(counts) => list(name, Content::Counts(counts), counts.len()),
            Numbers::Values(values) => list(name, Content::Values(values), values.len()),
        });
    }
    for (name, bytes) in [(TEXT, arrays.text.as_bytes()), (BYTES, &arrays.bytes)] {
        if !bytes.is_empty() {
            entries.push(list(name, Content::Bytes(bytes), bytes.len()));
        }
    }
    // The order of the safetensors crate: large numbers first, so that all are aligned, then by name.
    entries.sort_by(|a, b| b.content.dtype().cmp(&a.content.dtype()).then(a.name.cmp(b.name)));
    let mut end = 0;
    let mut infos = Vec::with_capacity(entries.len());
    for Entry { name, shape, content } in &entries {
        let begin = end;
        end += content.size();
        let (dtype, shape) = (content.dtype(), shape.clone());
        infos.push(((*name).to_owned(), TensorInfo { dtype, shape, data_offsets: (begin, end) }));
    }
    let mut header = serde_json::to_vec(&Metadata::new(None, infos)?)?;
    header.resize(header.len().next_multiple_of(8), b' ');
    out.write_all(&(header.len() as u64).to_le_bytes())?;
    out.write_all(&header)?;
    entries.iter().try_for_each(|entry| entry.content.write(out))?;
    Ok(())
}

/// The bytes of a container.
pub(crate) fn encode(arrays: &Arrays) -> Result<Vec<u8>, ArraysError> {
    let mut bytes = Vec::new();
    write(arrays, &mut bytes)?;
    Ok(bytes)
}

/// Reads a container. safetensors checks that the header is at most 100 MB of JSON, that every length lies within
/// `bytes`, that arrays neither overlap nor leave holes, and that shapes agree with lengths; nothing is allocated on the
/// file's word alone.
pub(crate) fn decode(bytes: &[u8]) -> Result<Arrays, ArraysError> {
    let mut arrays = Arrays::default();
    for (name, view) in SafeTensors::deserialize(bytes)?.iter() {
        let (data, name) = (view.data(), name.to_owned());
        let column = |numbers| Column { name: name.clone(), numbers };
        match view.dtype() {
            Dtype::F32 => {
                let values = numbers(data, f32::from_le_bytes);
                arrays.parameters.push(Parameter { name, shape: view.shape().to_vec(), values });
            }
            Dtype::U64 => {
                let counts = numbers(data, u64::from_le_bytes);
                arrays.columns.push(column(Numbers::Counts(counts.into())));
            }
            Dtype::F64 => {
                let values = numbers(data, f64::from_le_bytes);
                arrays.columns.push(column(Numbers::Values(values.into())));
            }
            Dtype::U8 if name == TEXT => arrays.text = String::from_utf8(data.to_vec())?,
            Dtype::U8 if name == BYTES => arrays.bytes = data.to_vec(),
            other => {
                let (dtype, expected) = (format!("{other:?}"), "F32, U64 or F64");
                return Err(ArraysError::Type { name, dtype, expected });
            }
        }
    }
    arrays.parameters.sort_by(|a, b| a.name.cmp(&b.name));
    arrays.columns.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(arrays)
}

/// Little-endian numbers of N bytes each.
fn numbers<T, const N: usize>(bytes: &[u8], number: fn([u8; N]) -> T) -> Vec<T> {
    bytes.as_chunks().0.iter().copied().map(number).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn example() -> Arrays {
        let parameter = |name: &str, shape: &[usize], values: &[f32]| Parameter {
            name: name.into(),
            shape: shape.to_vec(),
            values: values.to_vec(),
        };
        Arrays {
            text: "{\"a\": 1}".into(),
            parameters: vec![
                parameter("a", &[2, 2], &[1.0, -0.0, f32::NAN, f32::MIN_POSITIVE / 2.0]),
                parameter("b.0", &[1], &[3.5]),
            ],
            columns: vec![
                Column { name: "c".into(), numbers: Numbers::Counts(vec![0, u64::MAX].into()) },
                Column { name: "d".into(), numbers: Numbers::Values(vec![0.1, -0.0].into()) },
                Column { name: "e".into(), numbers: Numbers::Values(Vec::new().into()) },
            ],
            bytes: vec![1, 2, 3],
        }
    }

    #[test]
    fn what_is_written_is_read_to_the_last_bit_and_writing_repeats() {
        let bytes = encode(&example()).unwrap();
        assert_eq!(bytes, encode(&example()).unwrap());
        let read = decode(&bytes).unwrap();
        let bits = |arrays: &Arrays| -> Vec<u32> {
            arrays.parameters.iter().flat_map(|p| p.values.iter().map(|v| v.to_bits())).collect()
        };
        assert_eq!(bits(&read), bits(&example()));
        assert_eq!((&read.text, &read.bytes), (&example().text, &example().bytes));
        assert_eq!(read.columns, example().columns);
        assert_eq!(decode(&encode(&Arrays::default()).unwrap()).unwrap(), Arrays::default());
    }

    #[test]
    fn the_bytes_are_those_of_the_safetensors_crate() {
        let Arrays { parameters, .. } = example();
        let raw: Vec<Vec<u8>> = parameters
            .iter()
            .map(|p| p.values.iter().flat_map(|v| v.to_le_bytes()).collect())
            .collect();
        let views = parameters.iter().zip(&raw).map(|(p, raw)| {
            let view = safetensors::tensor::TensorView::new(Dtype::F32, p.shape.clone(), raw);
            (p.name.as_str(), view.unwrap())
        });
        let expected = safetensors::serialize(views, None).unwrap();
        assert_eq!(encode(&Arrays { parameters, ..Arrays::default() }).unwrap(), expected);
    }

    #[test]
    fn every_truncation_is_refused() {
        let bytes = encode(&example()).unwrap();
        for length in 0..bytes.len() {
            assert!(decode(&bytes[..length]).is_err(), "{length} of {} bytes", bytes.len());
        }
    }

    #[test]
    fn hostile_headers_are_refused_without_allocating_what_they_claim() {
        let file = |header: &str, body: usize| {
            let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
            bytes.extend_from_slice(header.as_bytes());
            bytes.resize(bytes.len() + body, 0);
            bytes
        };
        let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
        for (header, body) in [
            (r#"{"a":{"dtype":"F32","shape":[4611686018427387904,4],"data_offsets":[0,4]}}"#, 4),
            (r#"{"a":{"dtype":"F32","shape":[18446744073709551615],"data_offsets":[0,4]}}"#, 4),
            (r#"{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,1152921504606846976]}}"#, 4),
            (r#"{"a":{"dtype":"F32","shape":[1],"data_offsets":[4,0]}}"#, 4),
            (r#"{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,4]}}"#, 4),
            (r#"{"a":{"dtype":"F64","shape":[1],"data_offsets":[0,8]}}"#, 8),
            (r#"{"a":{"dtype":"U64","shape":[1],"data_offsets":[0,8]}}"#, 8),
            (r#"{"a":{"dtype":"I64","shape":[1],"data_offsets":[0,8]}}"#, 8),
            (r#"{"bytes":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}"#, 1),
            (r#"{"state":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}"#, 1),
            (
                r#"{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"b":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}"#,
                4,
            ),
            (deep.as_str(), 0),
        ] {
            let read = decode(&file(header, body)).and_then(Arrays::into_parameters);
            assert!(read.is_err(), "{}", &header[..header.len().min(90)]);
        }
        assert!(decode(&u64::MAX.to_le_bytes()).is_err());
    }
}
