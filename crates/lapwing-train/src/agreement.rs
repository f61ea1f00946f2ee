//! What the workers of a run must agree on, and none may decide alone: a mean has the divisor of the whole batch, and if
//! one of them saved, stopped or skipped a step by itself, they would no longer train the same network.
//!
//! One process agrees with itself at no cost.

use lapwing_core::{PeerError, Peers};

/// What is known of a batch before anything is learnt from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BatchFacts {
    /// Its rows.
    pub(crate) rows: u64,
    /// Whether the loss of any row is finite.
    pub(crate) any_finite: bool,
    /// Whether a network has parameters that are not.
    pub(crate) diverged: bool,
}

impl BatchFacts {
    /// Of a batch without rows.
    pub(crate) fn none() -> Self {
        Self { rows: 0, any_finite: false, diverged: false }
    }

    /// What a worker tells the others of its part.
    pub(crate) fn message(self) -> Vec<u8> {
        encode([self.rows, u64::from(self.any_finite), u64::from(self.diverged)])
    }

    /// Adds the part of another worker.
    pub(crate) fn merge(&mut self, rank: usize, message: &[u8]) -> Result<(), PeerError> {
        let [rows, finite, diverged] = decode(rank, message)?;
        self.rows = self.rows.saturating_add(rows);
        self.any_finite |= finite > 0;
        self.diverged |= diverged > 0;
        Ok(())
    }
}

/// What happens after a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct After {
    /// The run ends here: when any worker wants it.
    pub(crate) stop: bool,
    /// The state is saved: when the first worker wants it, as clocks differ.
    pub(crate) save: bool,
}

impl After {
    pub(crate) fn among(self, peers: &dyn Peers) -> Result<Self, PeerError> {
        if peers.count() == 1 {
            return Ok(self);
        }
        let save = self.save && peers.rank() == 0;
        let [stop, save] = sums(peers, [u64::from(self.stop), u64::from(save)])?;
        Ok(Self { stop: stop > 0, save: save > 0 })
    }
}

/// Everybody's numbers, added up.
fn sums<const N: usize>(peers: &dyn Peers, own: [u64; N]) -> Result<[u64; N], PeerError> {
    let mut sums = [0u64; N];
    for (rank, bytes) in peers.gather(&encode(own))?.iter().enumerate() {
        for (sum, number) in sums.iter_mut().zip(decode::<N>(rank, bytes)?) {
            *sum = sum.saturating_add(number);
        }
    }
    Ok(sums)
}

fn encode<const N: usize>(numbers: [u64; N]) -> Vec<u8> {
    numbers.iter().flat_map(|number| number.to_le_bytes()).collect()
}

fn decode<const N: usize>(rank: usize, bytes: &[u8]) -> Result<[u64; N], PeerError> {
    if bytes.len() != 8 * N {
        return Err(PeerError::Length { rank, found: bytes.len(), expected: 8 * N });
    }
    let mut numbers = [0; N];
    for (number, bytes) in numbers.iter_mut().zip(bytes.chunks_exact(8)) {
        *number = bytes.try_into().map_or(0, u64::from_le_bytes);
    }
    Ok(numbers)
}

#[cfg(test)]
mod tests {
    use super::*;
    use lapwing_core::Alone;

    /// A worker whose peers say what they are told to say.
    #[derive(Debug)]
    struct Told {
        rank: usize,
        others: Vec<Vec<u8>>,
    }

    impl Told {
        fn new(rank: usize, others: &[&[u64]]) -> Self {
            let bytes = |numbers: &&[u64]| numbers.iter().flat_map(|n| n.to_le_bytes()).collect();
            Self { rank, others: others.iter().map(bytes).collect() }
        }
    }

    impl Peers for Told {
        fn rank(&self) -> usize {
            self.rank
        }
        fn count(&self) -> usize {
            self.others.len() + 1
        }
        fn gather(&self, own: &[u8]) -> Result<Vec<Vec<u8>>, PeerError> {
            let mut all = self.others.clone();
            all.insert(self.rank, own.to_vec());
            Ok(all)
        }
        fn scatter(&self, _: &[&[f32]]) -> Result<Vec<Vec<f32>>, PeerError> {
            unreachable!()
        }
        fn join(&self, _: &[f32], _: &mut [f32]) -> Result<(), PeerError> {
            unreachable!()
        }
    }

    #[test]
    fn alone_everything_is_as_it_is() {
        let after = After { stop: true, save: true };
        assert_eq!(after.among(&Alone), Ok(after));
    }

    #[test]
    fn rows_add_up_and_one_finite_loss_or_lost_network_is_enough() {
        let facts =
            |rows, any_finite, diverged| BatchFacts { rows, any_finite, diverged }.message();
        let mut whole = BatchFacts::none();
        for (rank, message) in [facts(7, false, false), facts(5, true, false)].iter().enumerate() {
            whole.merge(rank, message).unwrap();
        }
        assert_eq!(whole, BatchFacts { rows: 12, any_finite: true, diverged: false });
        whole.merge(2, &facts(0, false, true)).unwrap();
        assert_eq!(whole, BatchFacts { rows: 12, any_finite: true, diverged: true });
        let cut = whole.merge(3, &facts(1, true, true)[1..]);
        assert_eq!(cut, Err(PeerError::Length { rank: 3, found: 23, expected: 24 }));
    }

    #[test]
    fn anybody_stops_the_run_and_the_first_worker_saves_it() {
        let (yes, no) = (After { stop: false, save: true }, After { stop: false, save: false });
        assert_eq!(yes.among(&Told::new(1, &[&[0, 0]])), Ok(no));
        assert_eq!(yes.among(&Told::new(0, &[&[0, 0]])), Ok(yes));
        assert_eq!(no.among(&Told::new(1, &[&[1, 1]])), Ok(After { stop: true, save: true }));
        assert!(no.among(&Told::new(0, &[&[1]])).is_err());
    }
}
