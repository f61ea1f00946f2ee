//! Bags of rows of a table: embeddings of the words of a text, say.

use std::sync::Arc;

use burn::tensor::{Device, IndexingUpdateOp, Int, Tensor, TensorData};

use crate::kernels::bag as kernels;
use crate::operation::{Dense, Operation, accelerated, plain, run};

/// Which rows of a table each bag holds. A row may be in a bag more than once, and a bag may be empty.
#[derive(Clone, Debug)]
pub struct Bags {
    /// Row by row, bag after bag.
    items: Arc<[u32]>,
    /// Where each bag begins, and where the last one ends.
    begins: Arc<[usize]>,
}

impl Bags {
    /// Bags of so many of the items, one after another.
    ///
    /// # Panics
    /// When the lengths do not sum up to the number of items.
    pub fn new(items: Vec<u32>, lengths: &[u32]) -> Self {
        let ends = lengths.iter().scan(0, |end, &length| {
            *end += length as usize;
            Some(*end)
        });
        let begins: Arc<[usize]> = [0].into_iter().chain(ends).collect();
        assert_eq!(begins[lengths.len()], items.len(), "every item is in a bag");
        Self { items: items.into(), begins }
    }

    /// How many bags there are.
    pub fn len(&self) -> usize {
        self.begins.len() - 1
    }

    /// Whether there is no bag.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The same number of bags, of which those that are not `kept` are empty.
    pub fn only(&self, kept: &[bool]) -> Self {
        let bags = || self.begins.windows(2).zip(kept).map(|(bag, kept)| (bag[0]..bag[1], *kept));
        let items = bags().filter(|(_, kept)| *kept).flat_map(|(bag, _)| self.items[bag].to_vec());
        let length = |(bag, kept): (std::ops::Range<usize>, bool)| {
            if kept { bag.len() as u32 } else { 0 }
        };
        Self::new(items.collect(), &bags().map(length).collect::<Vec<_>>())
    }

    fn check(&self, rows: usize) {
        let exists = self.items.iter().all(|&item| (item as usize) < rows);
        assert!(exists, "a bag holds rows of a table of {rows} rows");
    }
}

/// The mean of the rows in each bag, zero for an empty one: `[rows, width]` to `[bags, width]`.
///
/// # Panics
/// When a bag holds a row that the table does not have.
pub fn bag_means(table: Tensor<2>, bags: &Bags) -> Tensor<2> {
    let [rows, width] = table.dims();
    bags.check(rows);
    if accelerated(&table) {
        return run(BagMeans { bags: bags.clone() }, [table.into_dispatch()]);
    }
    let device = table.device();
    let sums = Tensor::zeros([bags.len(), width], &device);
    if bags.items.is_empty() {
        return sums;
    }
    let lengths = bags.begins.windows(2).map(|bag| bag[1] - bag[0]);
    let owners = lengths.clone().enumerate().flat_map(|(bag, length)| vec![bag as u32; length]);
    let owners = places(&owners.collect::<Vec<_>>(), &device);
    let shares: Vec<f32> = lengths.map(kernels::share).collect();
    let shares = Tensor::from_data(TensorData::new(shares, [bags.len(), 1]), &device);
    let held = table.select(0, places(&bags.items, &device));
    sums.select_assign(0, owners, held, IndexingUpdateOp::Add) * shares
}

/// A copy of these rows of a table, without gradients.
///
/// # Panics
/// When the table does not have one of them.
pub fn rows_of(table: Tensor<2>, rows: &[u32]) -> Tensor<2> {
    let [count, width] = table.dims();
    assert!(rows.iter().all(|&row| (row as usize) < count), "rows of a table of {count} rows");
    let table = if table.is_autodiff() { table.inner() } else { table };
    if !accelerated(&table) {
        let places = places(rows, &table.device());
        return table.select(0, places);
    }
    let table = Dense::new(plain(table.into_dispatch()));
    let mut found = Vec::with_capacity(rows.len() * width);
    rows.iter().for_each(|&row| found.extend_from_slice(&table[row as usize * width..][..width]));
    Dense::from_vec(found, &[rows.len(), width]).into_tensor()
}

pub(crate) fn places(rows: &[u32], device: &Device) -> Tensor<1, Int> {
    let rows: Vec<i32> = rows.iter().map(|&row| row as i32).collect();
    let shape = [rows.len()];
    Tensor::from_data(TensorData::new(rows, shape), device)
}

#[derive(Debug)]
struct BagMeans {
    bags: Bags,
}

impl Operation<1> for BagMeans {
    /// Rows of the table.
    type Saved = usize;

    fn forward(&self, [table]: [Dense; 1]) -> (Dense, usize) {
        let [rows, width] = table.shape();
        let means = kernels::means(&table, width, &self.bags.items, &self.bags.begins);
        (Dense::from_vec(means, &[self.bags.len(), width]), rows)
    }

    fn backward(&self, rows: usize, dy: Dense, _: [bool; 1]) -> [Option<Dense>; 1] {
        let [_, width] = dy.shape();
        let slopes = kernels::slopes(&dy, width, &self.bags.items, &self.bags.begins, rows);
        [Some(Dense::from_vec(slopes, &[rows, width]))]
    }
}
