//! Nearest neighbours among all rows of a matrix: exact, by products of blocks and a selection that keeps few.

use std::cmp::Ordering;

use rayon::prelude::*;

use crate::kernels::product::{Matrix, multiply};

/// Rows whose neighbours are looked for together, and rows they are compared with at a time: their products stay in the
/// cache.
const ASKED: usize = 128;
const COMPARED: usize = 1024;
/// Products that are looked at together; most of the time none of them is large enough.
const LOOK: usize = 64;

/// The neighbours of each row, nearest first.
#[derive(Clone, Debug, PartialEq)]
pub struct Neighbours {
    /// How many each row has.
    pub each: usize,
    /// Which, row after row.
    pub rows: Vec<u32>,
    /// Their inner products with the row.
    pub similarities: Vec<f32>,
}

/// For every row of `vectors`, which has `width` columns, the `count` others with the largest inner products; of equal
/// ones those that come first. Fewer where there are not so many. What is not a number is nearest to nobody.
///
/// The bits are the same with any number of threads.
///
/// # Panics
/// When `vectors` does not consist of whole rows, or there are more than 2³² of them.
pub fn nearest(vectors: &[f32], width: usize, count: usize) -> Neighbours {
    let rows = vectors.len() / width.max(1);
    assert_eq!(rows * width, vectors.len(), "whole rows");
    assert!(u32::try_from(rows).is_ok(), "rows that 32 bits can name");
    let each = count.min(rows.saturating_sub(1));
    let mut found =
        Neighbours { each, rows: vec![0; rows * each], similarities: vec![0.0; rows * each] };
    if each == 0 {
        return found;
    }
    let blocks = found
        .rows
        .par_chunks_mut(ASKED * each)
        .zip(found.similarities.par_chunks_mut(ASKED * each))
        .zip(vectors.par_chunks(ASKED * width));
    blocks.enumerate().for_each(|(block, ((names, similarities), asked))| {
        let best = of_block(vectors, width, asked, block * ASKED, each);
        let places = names.iter_mut().zip(similarities);
        for ((name, similarity), (own, row)) in places.zip(best.into_iter().flatten()) {
            (*name, *similarity) = (row, own);
        }
    });
    found
}

/// The best of all rows for those of a block, which begins at `first`.
fn of_block(
    vectors: &[f32],
    width: usize,
    asked: &[f32],
    first: usize,
    each: usize,
) -> Vec<Vec<(f32, u32)>> {
    let rows = asked.len() / width;
    let mut best: Vec<Best> = (0..rows).map(|_| Best::new(each)).collect();
    let mut products = vec![0.0; rows * COMPARED];
    for (block, compared) in vectors.chunks(COMPARED * width).enumerate() {
        let columns = compared.len() / width;
        let (a, b) = (Matrix::new(asked, width), Matrix::new(compared, width).transposed());
        multiply([rows, columns, width], a, b, &mut products, COMPARED);
        for (row, best) in best.iter_mut().enumerate() {
            let own = &products[row * COMPARED..][..columns];
            best.look(own, block * COMPARED, first + row);
        }
    }
    best.into_iter().map(Best::sorted).collect()
}

/// The best so far.
struct Best {
    each: usize,
    /// What a product must exceed: that of the last of the best when they were last counted.
    floor: f32,
    found: Vec<(f32, u32)>,
}

/// Larger products first, then earlier rows. The two zeros are equal, and all of them are numbers.
fn order(a: &(f32, u32), b: &(f32, u32)) -> Ordering {
    b.0.partial_cmp(&a.0).unwrap_or(Ordering::Equal).then(a.1.cmp(&b.1))
}

impl Best {
    fn new(each: usize) -> Self {
        let found = Vec::with_capacity(2 * each + LOOK);
        Self { each, floor: f32::NEG_INFINITY, found }
    }

    /// Looks at the products with rows from `from` on; `own` is not its own neighbour.
    fn look(&mut self, products: &[f32], from: usize, own: usize) {
        for (at, some) in products.chunks(LOOK).enumerate() {
            let full = self.found.len() >= self.each;
            // Without a branch for each of them, so that they are compared many at a time.
            if full && !some.iter().fold(false, |any, &product| any | (product > self.floor)) {
                continue;
            }
            for (product, row) in some.iter().zip(from + at * LOOK..) {
                if row == own {
                    continue;
                }
                // Rows come in their order, so that one of two equals that comes later is behind.
                if *product > self.floor || self.found.len() < self.each {
                    let product = if product.is_nan() { f32::NEG_INFINITY } else { *product };
                    self.found.push((product, row as u32));
                }
            }
            if self.found.len() >= 2 * self.each {
                self.count();
            }
        }
    }

    /// Keeps the best.
    fn count(&mut self) {
        let (_, last, _) = self.found.select_nth_unstable_by(self.each - 1, order);
        self.floor = last.0;
        self.found.truncate(self.each);
    }

    fn sorted(mut self) -> Vec<(f32, u32)> {
        self.found.sort_unstable_by(order);
        self.found.truncate(self.each);
        self.found
    }
}
