//! Statistics of everybody but one.

use alloc::vec;
use alloc::vec::Vec;

use crate::moments::Moments;

/// A binary tree of merged moments with one leaf per source.
///
/// The moments of all sources but one are the merge of the siblings along the path from its leaf
/// to the root. Nothing is ever subtracted, so they are exact even where the one left out holds
/// all the weight. Only the paths of the sources at hand are walked: O(S_b·log S).
///
/// Node 1 is the root, the children of node n are 2n and 2n + 1.
#[derive(Clone, Debug)]
pub(crate) struct Tree {
    nodes: Vec<Moments>,
    /// The nodes above (and including) the chosen leaves, level by level from the leaves to the
    /// root, each level in ascending order and without repetition.
    path: Vec<u32>,
    /// Where each level of the path ends.
    ends: Vec<usize>,
    /// For each node of one level of the path, the moments of all leaves that are not below it;
    /// and the same for the level above.
    outside: Vec<Moments>,
    outside_above: Vec<Moments>,
}

impl Tree {
    pub(crate) fn new() -> Self {
        Self {
            nodes: vec![Moments::NONE; 2],
            path: Vec::new(),
            ends: Vec::new(),
            outside: Vec::new(),
            outside_above: Vec::new(),
        }
    }

    pub(crate) fn leaves(&self) -> usize {
        self.nodes.len() / 2
    }

    /// Makes room for `sources` leaves.
    fn grow(&mut self, sources: usize) {
        let (old, new) = (self.leaves(), sources.next_power_of_two());
        if new <= old {
            return;
        }
        let mut nodes = vec![Moments::NONE; 2 * new];
        nodes[new..new + old].copy_from_slice(&self.nodes[old..]);
        for node in (1..new).rev() {
            nodes[node] = nodes[2 * node].merge(nodes[2 * node + 1]);
        }
        self.nodes = nodes;
    }

    /// Replaces a leaf. What stands above it is out of date until it is chosen and merged. Leaves
    /// never set take no room behind the last one that was.
    pub(crate) fn set(&mut self, source: u32, moments: Moments) {
        self.grow(source as usize + 1);
        let leaf = self.leaves() + source as usize;
        self.nodes[leaf] = moments;
    }

    /// Chooses the sources, in ascending order, that [`merge`](Self::merge) and
    /// [`leave_one_out`](Self::leave_one_out) are about.
    pub(crate) fn choose(&mut self, sources: &[u32]) {
        let first_leaf = self.leaves() as u32;
        self.path.clear();
        self.ends.clear();
        self.path.extend(sources.iter().map(|source| first_leaf + source));
        let mut level = 0..self.path.len();
        while self.path[level.clone()].first().is_some_and(|&node| node > 1) {
            self.ends.push(level.end);
            let mut last = 0;
            for at in level.clone() {
                let parent = self.path[at] / 2;
                if parent != last {
                    self.path.push(parent);
                    last = parent;
                }
            }
            level = level.end..self.path.len();
        }
        self.ends.push(level.end);
    }

    /// Merges anew what stands above the chosen leaves.
    pub(crate) fn merge(&mut self) {
        for &node in &self.path[self.ends[0]..] {
            let node = node as usize;
            self.nodes[node] = self.nodes[2 * node].merge(self.nodes[2 * node + 1]);
        }
    }

    /// Calls back, for each of the chosen sources in ascending order, with its own moments and
    /// those of all others.
    pub(crate) fn leave_one_out(&mut self, mut each: impl FnMut(u32, Moments, Moments)) {
        let Self { nodes, path, ends, outside, outside_above } = self;
        outside.clear();
        outside.push(Moments::NONE);
        for level in (1..ends.len()).rev() {
            core::mem::swap(outside, outside_above);
            outside.clear();
            let parents = &path[ends[level - 1]..ends[level]];
            let children = if level > 1 { ends[level - 2] } else { 0 }..ends[level - 1];
            let mut parent = 0;
            for &child in &path[children] {
                if parents[parent] != child / 2 {
                    parent += 1;
                }
                outside.push(outside_above[parent].merge(nodes[(child ^ 1) as usize]));
            }
        }
        let first_leaf = nodes.len() as u32 / 2;
        for (&leaf, &others) in path[..ends[0]].iter().zip(&*outside) {
            each(leaf - first_leaf, nodes[leaf as usize], others);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mass::Mass;

    fn leaf(source: u32) -> Moments {
        Moments {
            mass: Mass::exp(-f64::from(source * source)),
            mean: f64::from(source) * 1.25 - 3.0,
            variance: f64::from(source % 3),
        }
    }

    #[test]
    fn everybody_but_one_is_the_merge_of_everybody_else() {
        let mut tree = Tree::new();
        for sources in 1..40u32 {
            tree.set(sources - 1, leaf(sources - 1));
            tree.choose(&[sources - 1]);
            tree.merge();
            for every in 1..4 {
                let chosen: Vec<u32> = (0..sources).filter(|s| s % every == 0).collect();
                let mut seen = Vec::new();
                tree.choose(&chosen);
                tree.leave_one_out(|one, own, others| {
                    let direct = (0..sources)
                        .filter(|&other| other != one)
                        .fold(Moments::NONE, |sum, other| sum.merge(leaf(other)));
                    assert_eq!(own.mean, leaf(one).mean);
                    assert!((others.mean - direct.mean).abs() < 1e-12);
                    assert!((others.variance - direct.variance).abs() < 1e-12);
                    assert_eq!(others.mass.is_none(), sources == 1);
                    seen.push(one);
                });
                assert_eq!(seen, chosen);
            }
        }
    }

    #[test]
    fn nothing_is_lost_when_the_one_left_out_holds_all_the_weight() {
        let mut tree = Tree::new();
        let weightless = |mean| Moments { mass: Mass::exp(-1e5), mean, variance: 0.0 };
        tree.set(0, weightless(1.0));
        tree.set(1, Moments { mass: Mass::ONE, mean: 1e9, variance: 1e18 });
        tree.set(2, weightless(3.0));
        tree.choose(&[0, 1, 2]);
        tree.merge();
        tree.choose(&[1]);
        tree.leave_one_out(|_, _, others| {
            assert_eq!((others.mean, others.variance), (2.0, 1.0));
        });
    }

    #[test]
    fn choosing_nobody_does_nothing() {
        let mut tree = Tree::new();
        tree.grow(5);
        tree.choose(&[]);
        tree.merge();
        tree.leave_one_out(|_, _, _| panic!("nobody was chosen"));
    }
}
