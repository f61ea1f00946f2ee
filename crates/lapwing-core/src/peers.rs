//! Workers that train together: one process, or many.

use alloc::borrow::Cow;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;
use core::fmt::Debug;
use core::hash::Hash;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::{BatchSums, Lap, LapError, Message, MessageError};

/// The workers of a run, as one of them sees them: whatever carries bytes and numbers between
/// processes (MPI, sockets, threads). [`Alone`] is a run of one process.
///
/// Every worker makes the same calls in the same order, and each call waits for all of them.
/// Numbers are not summed up here: a sum whose order depends on the engine, or on how many workers
/// there are, has other last bits each time. Slices are sent to their owners
/// ([`scatter`](Self::scatter)), who add them up in a fixed tree and tell everybody
/// ([`join`](Self::join)).
pub trait Peers: Debug + Send + Sync {
    /// Which of the workers this is, from 0.
    fn rank(&self) -> usize;

    /// How many there are, at least 1.
    fn count(&self) -> usize;

    /// Everybody's bytes, in the order of the ranks, on everybody.
    ///
    /// # Errors
    /// Where a worker is lost.
    fn gather(&self, own: &[u8]) -> Result<Vec<Vec<u8>>, PeerError>;

    /// Sends part *r* to the worker of rank *r*, and returns the parts sent to this one, in the
    /// order of the ranks.
    ///
    /// # Errors
    /// Where a worker is lost, or there is not one part for each.
    fn scatter(&self, parts: &[&[f32]]) -> Result<Vec<Vec<f32>>, PeerError>;

    /// Everybody's slices one after another, in the order of the ranks, on everybody.
    ///
    /// # Errors
    /// Where a worker is lost, or the slices do not fill `whole`.
    fn join(&self, slice: &[f32], whole: &mut [f32]) -> Result<(), PeerError>;
}

/// Why workers could not talk.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum PeerError {
    /// A worker is gone, or the way to it.
    #[error("worker {rank} cannot be reached: {reason}")]
    Lost {
        /// Its rank.
        rank: usize,
        /// What the engine said.
        reason: String,
    },
    /// Parts that do not fit the workers, or slices that do not fit the whole.
    #[error("{found} given, but {expected} expected, on worker {rank}")]
    Length {
        /// The worker that noticed.
        rank: usize,
        /// How many there were.
        found: usize,
        /// How many there should have been.
        expected: usize,
    },
    /// A message that is not one, or not of this step.
    #[error(transparent)]
    Message(#[from] MessageError),
    /// The rule refused.
    #[error(transparent)]
    Lap(#[from] LapError),
}

/// One process: everything comes back as it was given.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Alone;

impl Peers for Alone {
    fn rank(&self) -> usize {
        0
    }

    fn count(&self) -> usize {
        1
    }

    fn gather(&self, own: &[u8]) -> Result<Vec<Vec<u8>>, PeerError> {
        Ok(vec![own.to_vec()])
    }

    fn scatter(&self, parts: &[&[f32]]) -> Result<Vec<Vec<f32>>, PeerError> {
        match parts {
            [own] => Ok(vec![own.to_vec()]),
            _ => Err(PeerError::Length { rank: 0, found: parts.len(), expected: 1 }),
        }
    }

    fn join(&self, slice: &[f32], whole: &mut [f32]) -> Result<(), PeerError> {
        if slice.len() != whole.len() {
            return Err(PeerError::Length { rank: 0, found: slice.len(), expected: whole.len() });
        }
        whole.copy_from_slice(slice);
        Ok(())
    }
}

impl<K: Hash + Eq + Clone + Serialize + DeserializeOwned> BatchSums<K> {
    /// The sums of the whole batch, of which every worker has summed up a part: what all of them
    /// say, merged in the order of their ranks. All must have made the same number of steps.
    ///
    /// # Errors
    /// Where workers cannot talk, say something that is no message, or are at different steps.
    pub fn among(&self, step: u64, peers: &dyn Peers) -> Result<Cow<'_, Self>, PeerError> {
        if peers.count() == 1 {
            return Ok(Cow::Borrowed(self));
        }
        let own = Message { step, sums: self.clone() }.encode();
        let own = own.map_err(|problem| MessageError { worker: peers.rank(), problem })?;
        Ok(Cow::Owned(Message::merge(&peers.gather(&own)?, step)?))
    }
}

impl<K: Hash + Eq + Clone + Serialize + DeserializeOwned> Lap<K> {
    /// One step with the part of a batch that this worker holds. All workers end in the same state,
    /// that of one worker with the whole batch.
    ///
    /// # Errors
    /// Those of [`BatchSums::among`] and of [`update`](Self::update). Nothing has changed then.
    pub fn update_among(&mut self, own: &BatchSums<K>, peers: &dyn Peers) -> Result<(), PeerError> {
        let whole = own.among(self.step(), peers)?;
        Ok(self.update(&whole)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::LapConfig;
    use std::sync::{Arc, Barrier, Mutex};
    use std::thread;

    #[test]
    fn alone_everything_comes_back_as_it_was_given() {
        assert_eq!((Alone.rank(), Alone.count()), (0, 1));
        assert_eq!(Alone.gather(b"me").unwrap(), [b"me"]);
        assert_eq!(Alone.scatter(&[&[1.0, 2.0]]).unwrap(), [[1.0, 2.0]]);
        assert!(matches!(Alone.scatter(&[]), Err(PeerError::Length { found: 0, expected: 1, .. })));
        let mut whole = [0.0; 2];
        Alone.join(&[3.0, 4.0], &mut whole).unwrap();
        assert_eq!(whole, [3.0, 4.0]);
        assert!(Alone.join(&[3.0], &mut whole).is_err());
    }

    /// Workers that are threads of one process.
    #[derive(Debug)]
    struct Threads {
        rank: usize,
        said: Arc<Mutex<Vec<Vec<u8>>>>,
        barrier: Arc<Barrier>,
    }

    impl Peers for Threads {
        fn rank(&self) -> usize {
            self.rank
        }
        fn count(&self) -> usize {
            self.said.lock().unwrap().len()
        }
        fn gather(&self, own: &[u8]) -> Result<Vec<Vec<u8>>, PeerError> {
            self.said.lock().unwrap()[self.rank] = own.to_vec();
            self.barrier.wait();
            let all = self.said.lock().unwrap().clone();
            self.barrier.wait();
            Ok(all)
        }
        fn scatter(&self, _: &[&[f32]]) -> Result<Vec<Vec<f32>>, PeerError> {
            unreachable!()
        }
        fn join(&self, _: &[f32], _: &mut [f32]) -> Result<(), PeerError> {
            unreachable!()
        }
    }

    /// Three sources, the last of which is bad; every worker has rows of some of them.
    fn batch(step: usize) -> Vec<(u32, f64)> {
        let jitter = 0.01 * (step % 7) as f64;
        vec![(0, 0.2 + jitter), (1, 0.3 - jitter), (2, 2.0), (0, 0.25), (2, f64::NAN), (1, 0.1)]
    }

    fn sums(rows: &[(u32, f64)]) -> BatchSums<u32> {
        let mut sums = BatchSums::new();
        rows.iter().for_each(|(source, loss)| sums.add(source, *loss));
        sums
    }

    #[test]
    fn many_workers_end_in_the_state_of_one() {
        let config = LapConfig { history_length: 4, ..LapConfig::default() };
        let mut one = Lap::<u32>::new(config).unwrap();
        for step in 0..60 {
            one.update_among(&sums(&batch(step)), &Alone).unwrap();
        }
        assert!(one.unreliability(&2) > 0);
        for count in [2, 3] {
            let (said, barrier) =
                (Arc::new(Mutex::new(vec![Vec::new(); count])), Arc::new(Barrier::new(count)));
            let worker = |rank| {
                let peers = Threads { rank, said: said.clone(), barrier: barrier.clone() };
                move || {
                    let mut lap = Lap::<u32>::new(config).unwrap();
                    for step in 0..60 {
                        let rows = batch(step);
                        let size = rows.len() / count;
                        let own = &rows[rank * size..(rank + 1) * size];
                        lap.update_among(&sums(own), &peers).unwrap();
                    }
                    lap.state()
                }
            };
            let workers: Vec<_> = (0..count).map(|rank| thread::spawn(worker(rank))).collect();
            for worker in workers {
                assert_eq!(worker.join().unwrap(), one.state());
            }
        }
    }
}
