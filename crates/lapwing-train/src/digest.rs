//! What data a run is of, in a few bytes: a checkpoint goes on only with the data it began with.

use lapwing_sample::{Data, SampleError, Targets, Values, View};

/// Rows gathered at a time.
const CHUNK: usize = 1024;

/// Of the samples of all rows that are trained or validated on.
pub(crate) fn of_samples(data: &Data<'_>) -> Result<blake3::Hash, SampleError> {
    let mut hasher = blake3::Hasher::new();
    let mut bytes = Vec::new();
    for rows in data.train.chunks(CHUNK).chain(data.valid.chunks(CHUNK)) {
        let block = data.samples.gather(rows, View::Plain)?;
        bytes.clear();
        match &block.values {
            Values::Floats(values) => bytes.extend(values.iter().flat_map(|v| v.to_le_bytes())),
            Values::Tokens(tokens) => bytes.extend(tokens.iter().flat_map(|t| t.to_le_bytes())),
            Values::Texts { tokens, numbers } => {
                bytes.extend(tokens.iter().flat_map(|t| t.to_le_bytes()));
                bytes.extend(numbers.iter().flat_map(|v| v.to_le_bytes()));
            }
        }
        bytes.extend(block.lengths.iter().flatten().flat_map(|length| length.to_le_bytes()));
        hasher.update(&bytes);
    }
    Ok(hasher.finalize())
}

/// Of everything but the samples: targets, sources, which rows train, and the noise of batches.
pub(crate) fn of_the_rest(data: &Data<'_>) -> blake3::Hash {
    let mut hasher = blake3::Hasher::new();
    part(&mut hasher, 1, std::iter::once(data.samples.len().to_le_bytes()));
    let spec = data.samples.spec().to_string().into_bytes();
    part(&mut hasher, spec.len(), spec.into_iter().map(|byte| [byte]));
    for numbers in [data.sources, data.train, data.valid] {
        part(&mut hasher, numbers.len(), numbers.iter().map(|number| number.to_le_bytes()));
    }
    match data.targets {
        Targets::Classes { labels, classes } => {
            part(&mut hasher, 1, std::iter::once(classes.to_le_bytes()));
            part(&mut hasher, labels.len(), labels.iter().map(|label| label.to_le_bytes()));
        }
        Targets::Values(values) => {
            part(&mut hasher, values.len(), values.iter().map(|value| value.to_le_bytes()));
        }
    }
    if data.samples.augments() {
        part(&mut hasher, 9, "augmented".bytes().map(|byte| [byte]));
    }
    if let Some(relabel) = data.relabel {
        let identity = relabel.identity();
        part(&mut hasher, identity.len(), identity.into_iter().map(|byte| [byte]));
    }
    if let Some(items) = data.items {
        part(&mut hasher, 5, "items".bytes().map(|byte| [byte]));
        part(&mut hasher, items.len(), items.iter().map(|item| item.to_le_bytes()));
    }
    hasher.finalize()
}

/// Adds so many things of N bytes. Every part says how long it is, so that no byte can move from one to the next.
fn part<const N: usize>(
    hasher: &mut blake3::Hasher,
    count: usize,
    things: impl Iterator<Item = [u8; N]>,
) {
    hasher.update(&((count * N) as u64).to_le_bytes());
    let mut bytes = Vec::with_capacity(N * CHUNK);
    for thing in things {
        bytes.extend(thing);
        if bytes.len() == N * CHUNK {
            hasher.update(&bytes);
            bytes.clear();
        }
    }
    hasher.update(&bytes);
}

#[cfg(test)]
mod tests {
    use super::*;
    use lapwing_sample::{Matrix, Relabel};

    struct Noise(u8);

    impl Relabel for Noise {
        fn relabel(&self, _: u64, _: &[u32], labels: &mut [u32]) {
            labels.fill(0);
        }
        fn identity(&self) -> Vec<u8> {
            vec![self.0]
        }
    }

    #[test]
    fn whatever_changes_the_run_changes_the_digest() {
        let samples = Matrix::new(vec![0.0, 1.0, 2.0, 3.0], 2).unwrap();
        let (labels, others) = (
            Targets::Classes { labels: vec![0, 1], classes: 2 },
            Targets::Classes { labels: vec![1, 1], classes: 2 },
        );
        let values = Targets::Values(vec![1.0, 2.0]);
        let close = Targets::Values(vec![1.0, 2.0f64.next_up()]);
        let data = Data {
            samples: &samples,
            targets: &labels,
            sources: &[0, 1],
            train: &[0],
            valid: &[1],
            relabel: None,
            items: None,
        };
        let digests = [
            data,
            Data { targets: &others, ..data },
            Data { targets: &values, ..data },
            Data { targets: &close, ..data },
            Data { sources: &[1, 1], ..data },
            Data { train: &[0, 1], valid: &[], ..data },
            Data { train: &[1], valid: &[0], ..data },
            Data { relabel: Some(&Noise(1)), ..data },
            Data { relabel: Some(&Noise(2)), ..data },
            Data { items: Some(&[0, 0]), ..data },
            Data { items: Some(&[0, 1]), ..data },
        ]
        .map(|data| of_the_rest(&data));
        for (at, digest) in digests.iter().enumerate() {
            assert_eq!(digests.iter().position(|other| other == digest), Some(at));
        }
        let other = Matrix::new(vec![0.0, 1.0, 2.0, -3.0], 2).unwrap();
        let digest = |samples| of_samples(&Data { samples, ..data }).unwrap();
        assert_eq!(digest(&samples), digest(&samples));
        assert_ne!(digest(&samples), digest(&other));
    }
}
