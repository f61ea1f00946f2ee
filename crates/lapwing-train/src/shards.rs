//! A batch in shards, whose gradients are added in a fixed tree: the same bytes whoever computes them.
//!
//! Sums of floats depend on their order. A sum over workers would have other last bits for every number of them, and a
//! source at the threshold would be judged otherwise. So a batch is cut into shards whose number is a setting of the
//! run, every worker takes some that lie side by side, and gradients are added along a binary tree over all shards:
//! ((0 + 1) + (2 + 3)) + ((4 + 5) + …). What a worker adds up by itself are whole branches of that tree; the rest is
//! added by the owners of slices.

use std::collections::BTreeMap;
use std::ops::Range;

use lapwing_core::{Alone, PeerError, Peers};

/// Who trains: the workers, and the shards into which they cut each batch.
#[derive(Clone, Copy, Debug)]
pub struct Workers<'a> {
    /// This worker and the others.
    pub peers: &'a dyn Peers,
    /// Shards of each batch: at least one for every worker. The results depend on it, but not on the number of workers.
    pub shards: usize,
}

impl Workers<'static> {
    /// One process that takes each batch as a whole.
    pub fn alone() -> Self {
        Self { peers: &Alone, shards: 1 }
    }
}

impl Workers<'_> {
    /// Whether one process takes each batch as a whole.
    pub(crate) fn is_one(&self) -> bool {
        self.shards == 1 && self.peers.count() == 1
    }

    /// The shards of a worker.
    fn shards_of(&self, rank: usize) -> Range<usize> {
        let count = self.peers.count();
        rank * self.shards / count..(rank + 1) * self.shards / count
    }

    /// The shards of this worker.
    pub(crate) fn own(&self) -> Range<usize> {
        self.shards_of(self.peers.rank())
    }

    /// Where the rows of a shard are among those of a batch of so many.
    pub(crate) fn rows_of(&self, shard: usize, rows: usize) -> Range<usize> {
        shard * rows / self.shards..(shard + 1) * rows / self.shards
    }

    /// Where this worker's rows are among those of a batch of so many.
    pub(crate) fn own_rows(&self, rows: usize) -> Range<usize> {
        let own = self.own();
        self.rows_of(own.start, rows).start..self.rows_of(own.end, rows).start
    }

    /// What of so many things, which every worker could do, this one does.
    pub(crate) fn share(&self, things: usize) -> Range<usize> {
        let (rank, count) = (self.peers.rank(), self.peers.count());
        rank * things / count..(rank + 1) * things / count
    }

    /// The sum over all shards of vectors of this length, on every worker. `leaf` gives that of one of its own shards.
    ///
    /// # Errors
    /// Where workers cannot talk.
    pub(crate) fn sum(
        &self,
        length: usize,
        mut leaf: impl FnMut(usize) -> Vec<f32>,
    ) -> Result<Vec<f32>, PeerError> {
        let (peers, root) = (self.peers, self.root());
        let branches = |rank| {
            let mut found = Vec::new();
            self.branches(root, &self.shards_of(rank), &mut found);
            found
        };
        let own: Vec<Vec<f32>> = branches(peers.rank())
            .into_iter()
            .map(|branch| {
                let sum =
                    self.add_up(branch, &mut |node| (node.size == 1).then(|| leaf(node.first)));
                sum.unwrap_or_else(|| vec![0.0; length])
            })
            .collect();
        if peers.count() == 1 {
            return Ok(own.into_iter().next().unwrap_or_default());
        }
        // To every worker its slice of each of the branches, one behind the other.
        let slice =
            |rank: usize| rank * length / peers.count()..(rank + 1) * length / peers.count();
        let parts: Vec<Vec<f32>> = (0..peers.count())
            .map(|rank| own.iter().flat_map(|branch| &branch[slice(rank)]).copied().collect())
            .collect();
        let parts: Vec<&[f32]> = parts.iter().map(Vec::as_slice).collect();
        let mine = slice(peers.rank()).len();
        let mut slices = BTreeMap::new();
        for (rank, part) in peers.scatter(&parts)?.into_iter().enumerate() {
            let found = branches(rank);
            if part.len() != found.len() * mine {
                let expected = found.len() * mine;
                return Err(PeerError::Length { rank, found: part.len(), expected });
            }
            let slice = |place: usize| part[place * mine..(place + 1) * mine].to_vec();
            slices.extend(found.into_iter().enumerate().map(|(at, branch)| (branch, slice(at))));
        }
        let sum = self.add_up(root, &mut |node| slices.remove(&node)).unwrap_or_default();
        let mut whole = vec![0.0; length];
        peers.join(&sum, &mut whole)?;
        Ok(whole)
    }

    fn root(&self) -> Node {
        Node { first: 0, size: self.shards.next_power_of_two() }
    }

    /// The largest branches that a worker with these shards can add up by itself, from left to right.
    fn branches(&self, node: Node, own: &Range<usize>, found: &mut Vec<Node>) {
        let shards = node.first..(node.first + node.size).min(self.shards);
        if shards.is_empty() || shards.end <= own.start || shards.start >= own.end {
            return;
        }
        if own.start <= shards.start && shards.end <= own.end {
            return found.push(node);
        }
        node.halves().into_iter().for_each(|half| self.branches(half, own, found));
    }

    /// The sum below a node, of those that are `known` and of whatever is below the others.
    fn add_up(
        &self,
        node: Node,
        known: &mut dyn FnMut(Node) -> Option<Vec<f32>>,
    ) -> Option<Vec<f32>> {
        if node.first >= self.shards {
            return None;
        }
        if let Some(sum) = known(node) {
            return Some(sum);
        }
        if node.size == 1 {
            return None;
        }
        let [left, right] = node.halves();
        let (left, right) = (self.add_up(left, known), self.add_up(right, known));
        match (left, right) {
            (Some(mut left), Some(right)) => {
                left.iter_mut().zip(right).for_each(|(sum, number)| *sum += number);
                Some(left)
            }
            (one, None) | (None, one) => one,
        }
    }
}

/// A node of the tree over shards: those from `first` on, of which there are at most `size`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Node {
    first: usize,
    size: usize,
}

impl Node {
    fn halves(self) -> [Self; 2] {
        let size = self.size / 2;
        [self.first, self.first + size].map(|first| Self { first, size })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A worker of so many, who talks to nobody.
    #[derive(Debug)]
    struct Silent(usize, usize);

    impl Peers for Silent {
        fn rank(&self) -> usize {
            self.0
        }
        fn count(&self) -> usize {
            self.1
        }
        fn gather(&self, _: &[u8]) -> Result<Vec<Vec<u8>>, PeerError> {
            unreachable!()
        }
        fn scatter(&self, _: &[&[f32]]) -> Result<Vec<Vec<f32>>, PeerError> {
            unreachable!()
        }
        fn join(&self, _: &[f32], _: &mut [f32]) -> Result<(), PeerError> {
            unreachable!()
        }
    }

    #[test]
    fn shards_are_added_in_a_tree_and_not_from_left_to_right() {
        // 2²⁴ + 1 is not a single-precision number.
        let leaves = [16_777_216.0, 1.0, 1.0, 1.0, 1.0];
        let sum = |shards: usize| {
            let workers = Workers { peers: &Alone, shards };
            workers.sum(1, |shard| vec![leaves[shard]]).unwrap()[0]
        };
        assert_eq!(sum(1), 16_777_216.0);
        assert_eq!(sum(3), 16_777_216.0);
        // ((2²⁴ + 1) + (1 + 1)) + 1
        assert_eq!(sum(4), 16_777_218.0);
        assert_eq!(sum(5), 16_777_220.0);
        let from_the_left = leaves.iter().fold(0.0, |sum, leaf| sum + leaf);
        assert_eq!(from_the_left, 16_777_216.0f32);
    }

    proptest! {
        #[test]
        fn every_shard_and_every_row_has_one_owner(
            shards in 1usize..40, count in 1usize..40, rows in 0usize..300,
        ) {
            prop_assume!(count <= shards);
            let (mut owned, mut seen) = (Vec::new(), Vec::new());
            for rank in 0..count {
                let peers = Silent(rank, count);
                let workers = Workers { peers: &peers, shards };
                prop_assert!(!workers.own().is_empty());
                let of_shards: Vec<usize> =
                    workers.own().flat_map(|shard| workers.rows_of(shard, rows)).collect();
                prop_assert_eq!(&of_shards, &workers.own_rows(rows).collect::<Vec<_>>());
                owned.extend(workers.own());
                seen.extend(of_shards);
            }
            prop_assert_eq!(owned, (0..shards).collect::<Vec<_>>());
            prop_assert_eq!(seen, (0..rows).collect::<Vec<_>>());
        }

        #[test]
        fn branches_of_all_workers_add_up_to_the_tree_of_one(
            shards in 1usize..40, count in 1usize..40,
            leaves in prop::collection::vec(-1e6f32..1e6, 40),
        ) {
            prop_assume!(count <= shards);
            let one = Workers { peers: &Alone, shards };
            let expected = one.sum(1, |shard| vec![leaves[shard]]).unwrap();
            let mut sums = BTreeMap::new();
            for rank in 0..count {
                let mut branches = Vec::new();
                let peers = Silent(rank, count);
                let workers = Workers { peers: &peers, shards };
                workers.branches(workers.root(), &workers.own(), &mut branches);
                for branch in branches {
                    let mut leaf = |node: Node| (node.size == 1).then(|| vec![leaves[node.first]]);
                    sums.insert(branch, workers.add_up(branch, &mut leaf).unwrap());
                }
            }
            let found = one.add_up(one.root(), &mut |node| sums.remove(&node)).unwrap();
            prop_assert_eq!(found[0].to_bits(), expected[0].to_bits());
            prop_assert!(sums.is_empty());
        }
    }
}
