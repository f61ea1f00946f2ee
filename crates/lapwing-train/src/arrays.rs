//! Named arrays and one text in a safetensors container: the common part of checkpoints and model files.

use std::collections::HashMap;

use safetensors::tensor::TensorView;
use safetensors::{Dtype, SafeTensorError, SafeTensors};
use thiserror::Error;

use crate::parameters::Parameter;

/// The key of the text in the container's metadata.
const TEXT: &str = "lapwing";

/// What a container holds.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Arrays {
    pub(crate) text: String,
    pub(crate) parameters: Vec<Parameter>,
    pub(crate) bytes: Vec<u8>,
}

/// Why a container cannot be read.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ArraysError {
    /// Not a container, or one whose lengths and shapes contradict each other or the file.
    #[error("not a valid safetensors file: {0}")]
    Container(#[from] SafeTensorError),
    /// An array that is not of 32-bit floats.
    #[error("array `{name}` is of type {dtype}, expected F32")]
    Type {
        /// Its name.
        name: String,
        /// Its type.
        dtype: String,
    },
}

/// The bytes of a container.
pub(crate) fn encode(arrays: &Arrays) -> Result<Vec<u8>, ArraysError> {
    let raw: Vec<Vec<u8>> = arrays
        .parameters
        .iter()
        .map(|p| p.values.iter().flat_map(|v| v.to_le_bytes()).collect())
        .collect();
    let mut views = Vec::with_capacity(raw.len() + 1);
    for (parameter, raw) in arrays.parameters.iter().zip(&raw) {
        views.push((
            parameter.name.as_str(),
            TensorView::new(Dtype::F32, parameter.shape.clone(), raw)?,
        ));
    }
    if !arrays.bytes.is_empty() {
        views.push(("bytes", TensorView::new(Dtype::U8, vec![arrays.bytes.len()], &arrays.bytes)?));
    }
    let text =
        (!arrays.text.is_empty()).then(|| HashMap::from([(TEXT.to_owned(), arrays.text.clone())]));
    Ok(safetensors::serialize(views, text)?)
}

/// Reads a container. safetensors checks that the header is at most 100 MB of JSON, that every length lies within
/// `bytes`, that arrays neither overlap nor leave holes, and that shapes agree with lengths; nothing is allocated on the
/// file's word alone.
pub(crate) fn decode(bytes: &[u8]) -> Result<Arrays, ArraysError> {
    let (_, metadata) = SafeTensors::read_metadata(bytes)?;
    let text =
        metadata.metadata().as_ref().and_then(|map| map.get(TEXT)).cloned().unwrap_or_default();
    let mut arrays = Arrays { text, ..Arrays::default() };
    for (name, view) in SafeTensors::deserialize(bytes)?.iter() {
        match view.dtype() {
            Dtype::F32 => {
                let values = view
                    .data()
                    .chunks_exact(4)
                    .map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]]));
                arrays.parameters.push(Parameter {
                    name: name.to_owned(),
                    shape: view.shape().to_vec(),
                    values: values.collect(),
                });
            }
            Dtype::U8 if name == "bytes" => arrays.bytes = view.data().to_vec(),
            other => {
                return Err(ArraysError::Type {
                    name: name.to_owned(),
                    dtype: format!("{other:?}"),
                });
            }
        }
    }
    arrays.parameters.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(arrays)
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
        assert_eq!(decode(&encode(&Arrays::default()).unwrap()).unwrap(), Arrays::default());
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
            (
                r#"{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"b":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}"#,
                4,
            ),
            (deep.as_str(), 0),
        ] {
            assert!(decode(&file(header, body)).is_err(), "{}", &header[..header.len().min(90)]);
        }
        assert!(decode(&u64::MAX.to_le_bytes()).is_err());
    }
}
