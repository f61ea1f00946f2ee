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
    /// The last walk that needed a node; a node of an older walk is not on any path of this one.
    walks: Vec<u32>,
    walk: u32,
}

impl Tree {
    pub(crate) fn new() -> Self {
        Self { nodes: vec![Moments::NONE; 2], walks: vec![0; 2], walk: 0 }
    }

    fn leaves(&self) -> usize {
        self.nodes.len() / 2
    }

    /// Makes room for `sources` leaves.
    pub(crate) fn grow(&mut self, sources: usize) {
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
        self.walks = vec![0; 2 * new];
        self.walk = 0;
    }

    /// Replaces leaves. What stands above them is merged anew.
    pub(crate) fn update(&mut self, changed: impl Iterator<Item = (u32, Moments)>) {
        self.start_walk();
        for (source, moments) in changed {
            let leaf = self.leaves() + source as usize;
            self.nodes[leaf] = moments;
            self.mark_path(leaf);
        }
        if self.is_marked(1) {
            self.merge_marked(1);
        }
    }

    /// Chooses the sources to leave out, one at a time.
    pub(crate) fn choose(&mut self, sources: impl Iterator<Item = u32>) {
        self.start_walk();
        for source in sources {
            self.mark_path(self.leaves() + source as usize);
        }
    }

    /// Calls back with the moments of all others for each of the chosen sources.
    pub(crate) fn leave_one_out(&self, mut each: impl FnMut(u32, Moments)) {
        if self.is_marked(1) {
            self.visit_marked(1, Moments::NONE, &mut each);
        }
    }

    fn start_walk(&mut self) {
        if self.walk == u32::MAX {
            self.walks.fill(0);
            self.walk = 0;
        }
        self.walk += 1;
    }

    fn is_marked(&self, node: usize) -> bool {
        self.walks[node] == self.walk
    }

    fn mark_path(&mut self, leaf: usize) {
        let mut node = leaf;
        while node >= 1 && !self.is_marked(node) {
            self.walks[node] = self.walk;
            node /= 2;
        }
    }

    fn merge_marked(&mut self, node: usize) {
        if node >= self.leaves() {
            return;
        }
        let (left, right) = (2 * node, 2 * node + 1);
        if self.is_marked(left) {
            self.merge_marked(left);
        }
        if self.is_marked(right) {
            self.merge_marked(right);
        }
        self.nodes[node] = self.nodes[left].merge(self.nodes[right]);
    }

    fn visit_marked(&self, node: usize, outside: Moments, each: &mut impl FnMut(u32, Moments)) {
        if node >= self.leaves() {
            each((node - self.leaves()) as u32, outside);
            return;
        }
        let (left, right) = (2 * node, 2 * node + 1);
        if self.is_marked(left) {
            self.visit_marked(left, outside.merge(self.nodes[right]), each);
        }
        if self.is_marked(right) {
            self.visit_marked(right, self.nodes[left].merge(outside), each);
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
            tree.grow(sources as usize);
            tree.update([(sources - 1, leaf(sources - 1))].into_iter());
            let mut seen = 0;
            tree.choose(0..sources);
            tree.leave_one_out(|one, others| {
                let direct = (0..sources)
                    .filter(|&other| other != one)
                    .fold(Moments::NONE, |sum, other| sum.merge(leaf(other)));
                assert!((others.mean - direct.mean).abs() < 1e-12);
                assert!((others.variance - direct.variance).abs() < 1e-12);
                assert_eq!(others.mass.is_none(), sources == 1);
                seen += 1;
            });
            assert_eq!(seen, sources);
        }
    }

    #[test]
    fn nothing_is_lost_when_the_one_left_out_holds_all_the_weight() {
        let mut tree = Tree::new();
        tree.grow(3);
        let weightless = |mean| Moments { mass: Mass::exp(-1e5), mean, variance: 0.0 };
        let heavy = Moments { mass: Mass::ONE, mean: 1e9, variance: 1e18 };
        tree.update([(0, weightless(1.0)), (1, heavy), (2, weightless(3.0))].into_iter());
        tree.choose([1].into_iter());
        tree.leave_one_out(|_, others| {
            assert_eq!((others.mean, others.variance), (2.0, 1.0));
        });
    }
}
