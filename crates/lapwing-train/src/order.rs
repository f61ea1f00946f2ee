//! The order of an epoch where rows lie in blocks on a disk.

use lapwing_sample::{Blocks, Draws};

/// Rows, given in ascending order, in an order in which whole blocks can be read: blocks in random order, so many
/// together, and the rows of these mixed (after CorgiPile, Xu and others 2022). It is as good as a shuffle of all rows
/// where rows were dealt to blocks at random.
pub(crate) fn mixed(rows: &[u32], blocks: Blocks, draws: &mut Draws) -> Vec<u32> {
    let mut of_blocks: Vec<&[u32]> =
        rows.chunk_by(|a, b| *a as usize / blocks.rows == *b as usize / blocks.rows).collect();
    draws.shuffle(&mut of_blocks);
    let mut order = Vec::with_capacity(rows.len());
    for together in of_blocks.chunks(blocks.together.max(1)) {
        let begin = order.len();
        together.iter().for_each(|rows| order.extend_from_slice(rows));
        draws.shuffle(&mut order[begin..]);
    }
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_few_blocks_are_mixed_and_none_is_lost() {
        let rows: Vec<u32> = (0..1_000).filter(|row| row % 7 != 0).collect();
        let blocks = Blocks { rows: 100, together: 3 };
        let order = mixed(&rows, blocks, &mut Draws::seeded(1));
        let mut sorted = order.clone();
        sorted.sort_unstable();
        assert_eq!(sorted, rows);
        // Blocks of the first group, of which no row comes later.
        let of = |rows: &[u32]| {
            rows.iter().map(|row| row / 100).collect::<std::collections::BTreeSet<_>>()
        };
        let first = of(&order[..200]);
        assert_eq!(first.len(), 3);
        assert!(of(&order[280..]).is_disjoint(&first));
        assert_ne!(mixed(&rows, blocks, &mut Draws::seeded(2)), order);
    }
}
