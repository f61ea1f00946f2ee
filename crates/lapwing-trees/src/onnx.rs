//! Trees as one operator of ONNX.
//!
//! A level's split by a set of levels becomes a chain of comparisons, each of which leads to the same node where it holds:
//! the way in which LightGBM's trees are exported, too.

use hessboost::tree::RegTree;
use lapwing_onnx::{Attribute, Graph};

use crate::Forest;

/// The attributes of the operator, node after node.
#[derive(Default)]
struct Nodes {
    trees: Vec<i64>,
    ids: Vec<i64>,
    features: Vec<i64>,
    values: Vec<f32>,
    modes: Vec<String>,
    held: Vec<i64>,
    failed: Vec<i64>,
    missing_holds: Vec<i64>,
    leaves: Leaves,
}

#[derive(Default)]
struct Leaves {
    trees: Vec<i64>,
    ids: Vec<i64>,
    outputs: Vec<i64>,
    values: Vec<f32>,
}

/// A comparison of a number of a row.
struct Test {
    feature: u32,
    mode: &'static str,
    value: f32,
    /// Where it leads to if it holds, and otherwise.
    to: [i64; 2],
    /// Whether it holds for what is missing.
    missing: bool,
}

const BELOW: &str = "BRANCH_LT";
const EQUAL: &str = "BRANCH_EQ";
const LEAF: &str = "LEAF";
/// What no level is called.
const NO_LEVEL: f32 = -1.0;

impl Nodes {
    fn push(&mut self, tree: i64, id: i64, test: &Test) {
        self.trees.push(tree);
        self.ids.push(id);
        self.features.push(test.feature.into());
        self.values.push(test.value);
        self.modes.push(test.mode.to_owned());
        self.held.push(test.to[0]);
        self.failed.push(test.to[1]);
        self.missing_holds.push(test.missing.into());
    }

    fn add(&mut self, tree: i64, grown: &RegTree, output: usize, weight: f32) {
        let mut further = grown.nodes().len() as i64;
        for (id, node) in grown.nodes().iter().enumerate() {
            let at = id as i64;
            if node.is_leaf() {
                let (mode, missing) = (LEAF, false);
                self.push(tree, at, &Test { feature: 0, mode, value: 0.0, to: [0, 0], missing });
                self.leaves.trees.push(tree);
                self.leaves.ids.push(at);
                self.leaves.outputs.push(output as i64);
                self.leaves.values.push(node.leaf_value * weight);
                continue;
            }
            let (feature, [left, right]) =
                (node.split_feature, [node.left.into(), node.right.into()]);
            if !node.is_categorical {
                let (mode, value, missing) = (BELOW, node.split_cond, node.default_left);
                self.push(tree, at, &Test { feature, mode, value, to: [left, right], missing });
                continue;
            }
            let levels: Vec<f32> = match grown.split_categories(id) {
                [] => vec![NO_LEVEL],
                levels => levels.iter().map(|&level| level as f32).collect(),
            };
            for (place, &value) in levels.iter().enumerate() {
                let own = if place == 0 { at } else { further + place as i64 - 1 };
                let next = if place + 1 == levels.len() { right } else { further + place as i64 };
                let (mode, missing) = (EQUAL, node.default_left);
                self.push(tree, own, &Test { feature, mode, value, to: [left, next], missing });
            }
            further += levels.len() as i64 - 1;
        }
    }
}

impl Forest {
    /// What they say of rows of numbers `[rows, width]`, in which what is missing is NaN: the name of their margins
    /// `[rows, margins]`.
    pub fn onnx(&self, graph: &mut Graph, x: &str) -> String {
        let trees = self.trees();
        let mut nodes = Nodes::default();
        let grown = trees.trees().iter().zip(trees.tree_outputs()).zip(trees.tree_weights());
        for (tree, ((grown, outputs), weight)) in grown.enumerate() {
            nodes.add(tree as i64, grown, outputs.start, weight);
        }
        let leaves = &nodes.leaves;
        let attributes = [
            ("nodes_treeids", Attribute::Ints(&nodes.trees)),
            ("nodes_nodeids", Attribute::Ints(&nodes.ids)),
            ("nodes_featureids", Attribute::Ints(&nodes.features)),
            ("nodes_values", Attribute::Floats(&nodes.values)),
            ("nodes_modes", Attribute::Texts(&nodes.modes)),
            ("nodes_truenodeids", Attribute::Ints(&nodes.held)),
            ("nodes_falsenodeids", Attribute::Ints(&nodes.failed)),
            ("nodes_missing_value_tracks_true", Attribute::Ints(&nodes.missing_holds)),
            ("target_treeids", Attribute::Ints(&leaves.trees)),
            ("target_nodeids", Attribute::Ints(&leaves.ids)),
            ("target_ids", Attribute::Ints(&leaves.outputs)),
            ("target_weights", Attribute::Floats(&leaves.values)),
            ("base_values", Attribute::Floats(trees.base_scores())),
            ("n_targets", Attribute::Int(trees.n_outputs() as i64)),
        ];
        graph.node_with("TreeEnsembleRegressor", &[x], &attributes)
    }
}
