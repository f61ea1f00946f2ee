//! Batches that are summed up part by part, so that it leaves no trace how many workers share the parts.

use alloc::vec::Vec;
use core::hash::Hash;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::{BatchSums, Message, MessageError, NoiseSums, PeerError, Peers};

/// Everybody's messages, in the order of the ranks and, of each worker, in the order given: several
/// messages of each in one exchange. Workers may have different numbers of them.
///
/// # Errors
/// Where a worker is lost, or sends something else.
pub fn gather_messages<B: AsRef<[u8]>>(
    peers: &dyn Peers,
    own: &[B],
) -> Result<Vec<(usize, Vec<u8>)>, PeerError> {
    let mut bytes = Vec::new();
    for message in own.iter().map(AsRef::as_ref) {
        bytes.extend((message.len() as u64).to_le_bytes());
        bytes.extend(message);
    }
    let mut messages = Vec::new();
    for (rank, bytes) in peers.gather(&bytes)?.iter().enumerate() {
        let mut rest = &bytes[..];
        while !rest.is_empty() {
            let cut = |expected| PeerError::Length { rank, found: rest.len(), expected };
            let (head, body) = rest.split_first_chunk().ok_or_else(|| cut(8))?;
            let length = usize::try_from(u64::from_le_bytes(*head)).unwrap_or(usize::MAX);
            let (message, behind) = body.split_at_checked(length).ok_or_else(|| cut(length))?;
            messages.push((rank, message.to_vec()));
            rest = behind;
        }
    }
    Ok(messages)
}

impl<K: Hash + Eq + Clone + Serialize + DeserializeOwned> BatchSums<K> {
    /// One message per part of a batch, for [`gather_messages`].
    ///
    /// # Errors
    /// Where a name refuses to be written.
    pub fn messages(parts: Vec<Self>, step: u64, rank: usize) -> Result<Vec<Vec<u8>>, PeerError> {
        let encode = |sums| {
            let refuse = |problem| MessageError { worker: rank, problem };
            Message { step, sums }.encode().map_err(refuse)
        };
        Ok(parts.into_iter().map(encode).collect::<Result<_, _>>()?)
    }

    /// Adds the part of a batch that the worker `rank` tells of in its message.
    ///
    /// # Errors
    /// Where it is no message, or of another step than `step`.
    pub fn merge_message(
        &mut self,
        (rank, bytes): &(usize, Vec<u8>),
        step: u64,
    ) -> Result<(), PeerError> {
        let part = Message::merge(&[bytes], step);
        let part = part.map_err(|error| MessageError { worker: *rank, ..error })?;
        self.merge(&part);
        Ok(())
    }
}

impl<K: Hash + Eq + Clone + Serialize + DeserializeOwned> NoiseSums<K> {
    /// The sums of the whole batch, which is cut into parts that do not depend on the number of
    /// workers: these ones' own, in order, those of lower ranks before and of higher ranks behind.
    ///
    /// # Errors
    /// Those of [`gather_messages`], and where workers are at different steps.
    pub fn of_parts(mut own: Vec<Self>, step: u64, peers: &dyn Peers) -> Result<Self, PeerError> {
        if peers.count() == 1 && own.len() == 1 {
            return Ok(own.remove(0));
        }
        let mut messages = Vec::with_capacity(2 * own.len());
        for NoiseSums { responsibilities, model } in own {
            messages.extend(BatchSums::messages(vec_of(responsibilities), step, peers.rank())?);
            messages.extend(BatchSums::messages(vec_of(model), step, peers.rank())?);
        }
        let mut whole = Self::new();
        for pair in gather_messages(peers, &messages)?.chunks(2) {
            let [responsibilities, model] = pair else {
                return Err(PeerError::Length { rank: pair[0].0, found: 1, expected: 2 });
            };
            whole.responsibilities.merge_message(responsibilities, step)?;
            whole.model.merge_message(model, step)?;
        }
        Ok(whole)
    }
}

fn vec_of<T>(one: T) -> Vec<T> {
    core::iter::once(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Alone;
    use std::vec;

    #[test]
    fn messages_come_back_one_by_one_and_what_is_cut_is_refused() {
        let messages = gather_messages(&Alone, &[&b"one"[..], b"", b"three"]).unwrap();
        let expected = [(0, b"one".to_vec()), (0, vec![]), (0, b"three".to_vec())];
        assert_eq!(messages, expected);

        #[derive(Debug)]
        struct Cut(usize);
        impl Peers for Cut {
            fn rank(&self) -> usize {
                0
            }
            fn count(&self) -> usize {
                1
            }
            fn gather(&self, own: &[u8]) -> Result<Vec<Vec<u8>>, PeerError> {
                Ok(vec![own[..own.len() - self.0].to_vec()])
            }
            fn scatter(&self, _: &[&[f32]]) -> Result<Vec<Vec<f32>>, PeerError> {
                unreachable!()
            }
            fn join(&self, _: &[f32], _: &mut [f32]) -> Result<(), PeerError> {
                unreachable!()
            }
        }
        for cut in [1, 3, 5, 9, 10] {
            let cut = gather_messages(&Cut(cut), &[b"three"]);
            assert!(matches!(cut, Err(PeerError::Length { rank: 0, .. })), "{cut:?}");
        }
    }

    #[test]
    fn a_batch_in_parts_has_the_means_of_the_whole() {
        let rows = [("a", 0.1), ("b", 7.0), ("a", f64::NAN), ("c", 1e-9), ("b", 0.3), ("a", 5.5)];
        let sums = |rows: &[(&str, f64)]| {
            let mut sums = BatchSums::<std::string::String>::new();
            rows.iter().for_each(|(source, loss)| sums.add(*source, *loss));
            sums
        };
        let parts = vec![sums(&rows[..2]), sums(&[]), sums(&rows[2..])];
        let messages = BatchSums::messages(parts, 4, 0).unwrap();
        let mut whole = BatchSums::new();
        for message in gather_messages(&Alone, &messages).unwrap() {
            whole.merge_message(&message, 4).unwrap();
            assert!(whole.clone().merge_message(&message, 5).is_err());
        }
        let facts = |sums: &BatchSums<std::string::String>| -> Vec<_> {
            let fact = |(source, sum): (&std::string::String, &crate::SourceSum)| {
                (source.clone(), sum.mean(), sum.finite(), sum.nonfinite())
            };
            sums.iter().map(fact).collect()
        };
        assert_eq!(facts(&whole), facts(&sums(&rows)));
    }
}
