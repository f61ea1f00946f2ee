//! What workers tell each other between the two halves of a step.

use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::hash::Hash;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::{BatchSums, LARGEST_LOSS, SourceSum};

/// The version of the [`Message`] that this version of the crate writes and reads.
pub const MESSAGE_VERSION: u8 = 1;

/// What one worker tells the others of its part of a batch.
///
/// ```text
/// version (1 byte) ‖ step ‖ number of sources ‖ for each: source, sum (2 × f64), finite, nonfinite
/// ```
///
/// Whole numbers are variable-length and f64 little-endian ([postcard]'s encoding): 19 bytes for a
/// source with a short number and a name of one byte. Bytes may come from anywhere: what is cut
/// short, too long, of another version, names a source twice or holds sums that no losses have is
/// refused.
///
/// [postcard]: https://postcard.jamesmunns.com
///
/// ```
/// use lapwing_core::{BatchSums, Message};
/// let mut sums = BatchSums::<String>::new();
/// sums.add("ward 1", 0.5);
/// let bytes = Message { step: 7, sums }.encode().unwrap();
/// let merged = Message::<String>::merge(&[bytes.clone(), bytes], 7)?;
/// assert_eq!(merged.iter().next().unwrap().1.finite(), 2);
/// # Ok::<(), lapwing_core::MessageError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Message<K> {
    /// Steps that the worker has made. All must be at the same one.
    pub step: u64,
    /// What its part of the batch says of each source.
    pub sums: BatchSums<K>,
}

/// Why a message cannot be written or used.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("worker {worker} {problem}")]
pub struct MessageError {
    /// Whose message it is.
    pub worker: usize,
    /// What is wrong with it.
    pub problem: MessageProblem,
}

/// What is wrong with a message.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum MessageProblem {
    /// Written by another version.
    #[error("sent a message of version {0}, and this one reads version {MESSAGE_VERSION}")]
    Version(u8),
    /// Not a message.
    #[error("sent a message that cannot be read: {0}")]
    Unreadable(String),
    /// Names that cannot be written.
    #[error("has a message that cannot be written: {0}")]
    Unwritable(String),
    /// Bytes behind the end.
    #[error("sent a message that goes on for {0} bytes behind its end")]
    TooLong(usize),
    /// A source that occurs twice.
    #[error("sent a message whose source number {0} occurs before")]
    Twice(usize),
    /// Sums that no losses have.
    #[error("sent a message whose source number {0} has sums that no losses have")]
    Sums(usize),
    /// Another step.
    #[error(
        "is at step {found}, but this one is at step {step}: every worker must call the rule once \
         per step and start from the same state"
    )]
    OutOfStep {
        /// Its step.
        found: u64,
        /// The step of whoever reads it.
        step: u64,
    },
}

#[derive(Serialize, Deserialize)]
struct Wire<K> {
    step: u64,
    sums: Vec<(K, SourceSum)>,
}

impl<K: Hash + Eq> Message<K> {
    /// The message as bytes.
    ///
    /// # Errors
    /// Where a name refuses to be written.
    pub fn encode(&self) -> Result<Vec<u8>, MessageProblem>
    where
        K: Clone + Serialize,
    {
        let sums = self.sums.iter().map(|(source, sum)| (source.clone(), *sum)).collect();
        let wire = Wire { step: self.step, sums };
        postcard::to_allocvec(&(MESSAGE_VERSION, wire))
            .map_err(|error| MessageProblem::Unwritable(error.to_string()))
    }

    /// Reads the bytes of one worker.
    ///
    /// # Errors
    /// Where they are no message of this version.
    pub fn decode(bytes: &[u8]) -> Result<Self, MessageProblem>
    where
        K: Clone + DeserializeOwned,
    {
        // Before anything else is read: another version may mean something else by it.
        match bytes.first() {
            Some(&version) if version != MESSAGE_VERSION => {
                return Err(MessageProblem::Version(version));
            }
            _ => {}
        }
        let ((_, Wire { step, sums: list }), rest) =
            postcard::take_from_bytes::<(u8, Wire<K>)>(bytes)
                .map_err(|error| MessageProblem::Unreadable(error.to_string()))?;
        if !rest.is_empty() {
            return Err(MessageProblem::TooLong(rest.len()));
        }
        let mut sums = BatchSums::new();
        for (at, (source, sum)) in list.iter().enumerate() {
            if !sum.is_possible() {
                return Err(MessageProblem::Sums(at));
            }
            sums.add_sum(source, sum);
            if sums.len() <= at {
                return Err(MessageProblem::Twice(at));
            }
        }
        Ok(Self { step, sums })
    }

    /// What all workers say together, merged in the order of their ranks.
    ///
    /// # Errors
    /// Where one of them is no message, or of another step than `step`.
    pub fn merge<B: AsRef<[u8]>>(messages: &[B], step: u64) -> Result<BatchSums<K>, MessageError>
    where
        K: Clone + DeserializeOwned,
    {
        let mut merged = BatchSums::new();
        for (worker, bytes) in messages.iter().enumerate() {
            let refuse = |problem| MessageError { worker, problem };
            let message = Self::decode(bytes.as_ref()).map_err(refuse)?;
            if message.step != step {
                return Err(refuse(MessageProblem::OutOfStep { found: message.step, step }));
            }
            merged.merge(&message.sums);
        }
        Ok(merged)
    }
}

impl SourceSum {
    /// Whether there are losses with this sum. Neither NaN nor an infinite sum can come of finite
    /// losses, nor any sum of none.
    fn is_possible(&self) -> bool {
        let largest = LARGEST_LOSS * self.finite() as f64;
        self.total().is_finite() && self.total().abs() <= largest * (1.0 + 1e-9)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;
    use proptest::prelude::*;

    fn message(step: u64, rows: &[(&str, f64)]) -> Message<String> {
        let mut sums = BatchSums::new();
        rows.iter().for_each(|(source, loss)| sums.add(*source, *loss));
        Message { step, sums }
    }

    fn decode(bytes: &[u8]) -> Result<Message<String>, MessageProblem> {
        Message::decode(bytes)
    }

    fn listed(sums: &BatchSums<String>) -> Vec<(String, SourceSum)> {
        sums.iter().map(|(source, sum)| (source.clone(), *sum)).collect()
    }

    /// Bytes of a message with this list, whatever it holds.
    fn forged(list: Vec<(&str, SourceSum)>) -> Vec<u8> {
        postcard::to_allocvec(&(MESSAGE_VERSION, Wire { step: 3, sums: list })).unwrap()
    }

    #[test]
    fn the_bytes_of_version_1_stay_as_they_are() {
        let bytes = message(300, &[("a", 1.5), ("b", f64::NAN), ("a", 0.25)]).encode().unwrap();
        let mut expected = vec![1, 0xAC, 0x02, 2, 1, b'a'];
        expected.extend(1.75f64.to_le_bytes());
        expected.extend(0f64.to_le_bytes());
        expected.extend([2, 0, 1, b'b']);
        expected.extend([0; 16]);
        expected.extend([0, 1]);
        assert_eq!(bytes, expected);
    }

    #[test]
    fn what_is_cut_short_too_long_or_of_another_version_is_refused() {
        let bytes = message(3, &[("a", 1.5), ("b", f64::INFINITY)]).encode().unwrap();
        for length in 0..bytes.len() {
            let problem = decode(&bytes[..length]).unwrap_err();
            assert!(matches!(problem, MessageProblem::Unreadable(_)), "{length}: {problem}");
        }
        let longer = [&bytes[..], &[0, 0]].concat();
        assert_eq!(decode(&longer).unwrap_err(), MessageProblem::TooLong(2));
        let newer = [&[9], &bytes[1..]].concat();
        assert_eq!(decode(&newer).unwrap_err(), MessageProblem::Version(9));
    }

    #[test]
    fn a_list_longer_than_memory_is_refused_before_it_is_allocated() {
        // Version 1, step 0, and 2⁶⁰ sources of which there is not one.
        let mut bytes = vec![1, 0];
        bytes.extend([0xFF; 8]);
        bytes.push(0x0F);
        assert!(matches!(decode(&bytes), Err(MessageProblem::Unreadable(_))));
        // A name of 2⁶⁰ bytes.
        let mut bytes = vec![1, 0, 1];
        bytes.extend([0xFF; 8]);
        bytes.push(0x0F);
        assert!(matches!(decode(&bytes), Err(MessageProblem::Unreadable(_))));
        // A name that is no text.
        assert!(matches!(decode(&[1, 0, 1, 1, 0xFF]), Err(MessageProblem::Unreadable(_))));
    }

    #[test]
    fn a_source_named_twice_and_sums_that_no_losses_have_are_refused() {
        let mut good = SourceSum::default();
        good.add(0.5);
        assert_eq!(decode(&forged(vec![("a", good), ("b", good)])).unwrap().sums.len(), 2);
        let twice = forged(vec![("a", good), ("b", good), ("a", good)]);
        assert_eq!(decode(&twice).unwrap_err(), MessageProblem::Twice(2));
        for (high, low, finite) in [
            (f64::NAN, 0.0, 1u64),
            (f64::INFINITY, 0.0, 1),
            (0.0, f64::NAN, 1),
            (0.5, 0.0, 0),
            (1e300, 0.0, 1),
        ] {
            let sum = postcard::to_allocvec(&(high, low, finite, 0u64)).unwrap();
            let sum: SourceSum = postcard::from_bytes(&sum).unwrap();
            let problem = decode(&forged(vec![("a", good), ("b", sum)])).unwrap_err();
            assert_eq!(problem, MessageProblem::Sums(1), "{high} {low} {finite}");
        }
    }

    #[test]
    fn workers_at_different_steps_are_named() {
        let messages = [4, 5].map(|step| message(step, &[("a", 1.0)]).encode().unwrap());
        let error = Message::<String>::merge(&messages, 4).unwrap_err();
        assert_eq!(error.problem, MessageProblem::OutOfStep { found: 5, step: 4 });
        let said = error.to_string();
        assert!(said.contains("worker 1") && said.contains("step 5"), "{said}");
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_back(
            step: u64,
            rows in prop::collection::vec((".{0,5}", prop::num::f64::ANY), 0..40),
        ) {
            let rows: Vec<(&str, f64)> = rows.iter().map(|(name, loss)| (&**name, *loss)).collect();
            let written = message(step, &rows);
            let read = decode(&written.encode().unwrap()).unwrap();
            prop_assert_eq!(read.step, step);
            prop_assert_eq!(listed(&read.sums), listed(&written.sums));
        }

        #[test]
        fn no_bytes_harm_anybody(
            bytes in prop::collection::vec(any::<u8>(), 0..200),
            at in any::<prop::sample::Index>(),
            byte: u8,
        ) {
            let _ = decode(&bytes);
            let _ = decode(&[&[MESSAGE_VERSION], &bytes[..]].concat());
            let mut changed = message(3, &[("ward 1", 0.5), ("ward 2", f64::NAN)]).encode().unwrap();
            let at = at.index(changed.len());
            changed[at] = byte;
            if let Ok(read) = decode(&changed) {
                let mut lap = crate::Lap::<String>::new(crate::LapConfig::default()).unwrap();
                lap.update(&read.sums).unwrap();
                prop_assert!(lap.sources().all(|source| source.weight.is_finite()));
            }
        }
    }
}
