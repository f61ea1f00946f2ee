//! Inputs whose pieces change places.

use lapwing_sample::Draws;

use crate::draws::Purpose;
use crate::error::NoiseError;

/// Pieces per axis.
const PIECES: usize = 10;

/// Chunk Shuffle: every axis is cut into ten pieces, and the pieces of a sample change places. Fixed per sample.
#[derive(Clone, Copy, Debug)]
pub struct ChunkShuffle {
    seed: u64,
}

impl ChunkShuffle {
    /// Noise of a seed.
    pub fn new(seed: u64) -> Self {
        Self { seed }
    }

    /// Shuffles a flat vector: the pieces keep their size and their inner order.
    pub fn flat<T: Copy>(&self, index: u64, values: &mut [T]) {
        let from = self.origins(&mut self.draws(index), values.len());
        let old = values.to_vec();
        for (value, from) in values.iter_mut().zip(from) {
            *value = old[from];
        }
    }

    /// Shuffles an image stored channel by channel, row by row. Rows and columns change places independently of each
    /// other, in the same way in all channels.
    pub fn image<T: Copy>(
        &self,
        index: u64,
        values: &mut [T],
        [channels, height, width]: [usize; 3],
    ) -> Result<(), NoiseError> {
        if values.len() != channels * height * width {
            return Err(NoiseError::Shape { channels, height, width, found: values.len() });
        }
        if values.is_empty() {
            return Ok(());
        }
        let mut draws = self.draws(index);
        let rows = self.origins(&mut draws, height);
        let columns = self.origins(&mut draws, width);
        let old = values.to_vec();
        let planes = values.chunks_exact_mut(height * width).zip(old.chunks_exact(height * width));
        for (plane, old) in planes {
            for (line, &row) in plane.chunks_exact_mut(width).zip(&rows) {
                for (value, &column) in line.iter_mut().zip(&columns) {
                    *value = old[row * width + column];
                }
            }
        }
        Ok(())
    }

    fn draws(&self, index: u64) -> Draws {
        Draws::of(self.seed, Purpose::ChunkShuffle, 0, index)
    }

    /// For every new position the old one that moves there.
    fn origins(&self, draws: &mut Draws, length: usize) -> Vec<usize> {
        let bounds = bounds(length);
        let mut order: [usize; PIECES] = std::array::from_fn(|piece| piece);
        draws.shuffle(&mut order);
        order.into_iter().flat_map(|piece| bounds[piece]..bounds[piece + 1]).collect()
    }
}

/// Where the pieces of an axis begin and end: `numpy.linspace(0, length, 11)`, truncated.
fn bounds(length: usize) -> [usize; PIECES + 1] {
    let step = length as f64 / PIECES as f64;
    std::array::from_fn(|at| if at == PIECES { length } else { (at as f64 * step) as usize })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_are_those_of_truncated_linspace() {
        // numpy.linspace(0, L, 11).astype(int) for L = 32, 784.
        assert_eq!(bounds(32), [0, 3, 6, 9, 12, 16, 19, 22, 25, 28, 32]);
        assert_eq!(bounds(784), [0, 78, 156, 235, 313, 392, 470, 548, 627, 705, 784]);
        assert_eq!(bounds(3), [0, 0, 0, 0, 1, 1, 1, 2, 2, 2, 3]);
    }

    #[test]
    fn pieces_move_whole_and_nothing_is_lost() {
        for length in [0, 1, 3, 10, 32, 784] {
            let mut values: Vec<usize> = (0..length).collect();
            ChunkShuffle::new(1).flat(5, &mut values);
            let starts = bounds(length);
            for pair in values.windows(2) {
                let inside = pair[1] == pair[0] + 1;
                assert!(inside || starts.contains(&pair[1]), "{pair:?} of {length}");
            }
            let mut sorted = values.clone();
            sorted.sort_unstable();
            assert_eq!(sorted, (0..length).collect::<Vec<_>>());
        }
    }

    #[test]
    fn each_sample_has_a_permutation_of_its_own_which_is_the_same_every_time() {
        let shuffled = |seed, index| {
            let mut values: Vec<u16> = (0..784).collect();
            ChunkShuffle::new(seed).flat(index, &mut values);
            values
        };
        assert_eq!(shuffled(1, 2), shuffled(1, 2));
        assert_ne!(shuffled(1, 2), shuffled(1, 3));
        assert_ne!(shuffled(1, 2), shuffled(2, 2));
    }

    #[test]
    fn an_image_is_shuffled_by_rows_and_by_columns_alike_in_all_channels() {
        let mut image: Vec<usize> = (0..3 * 32 * 32).collect();
        ChunkShuffle::new(3).image(8, &mut image, [3, 32, 32]).unwrap();
        let rows: Vec<usize> = (0..32).map(|row| image[row * 32] / 32).collect();
        let columns: Vec<usize> = (0..32).map(|column| image[column] % 32).collect();
        for (at, &value) in image.iter().enumerate() {
            let (channel, row, column) = (at / 1024, at / 32 % 32, at % 32);
            assert_eq!(value, channel * 1024 + rows[row] * 32 + columns[column]);
        }
        assert_ne!(rows, columns, "rows and columns are permuted independently");
        let identity: Vec<usize> = (0..32).collect();
        assert!(rows != identity && columns != identity);
    }

    #[test]
    fn every_piece_comes_to_every_place_equally_often() {
        let mut counts = [[0_u32; PIECES]; PIECES];
        for index in 0..10_000 {
            let mut values: Vec<usize> = (0..PIECES).collect();
            ChunkShuffle::new(0).flat(index, &mut values);
            for (place, piece) in values.into_iter().enumerate() {
                counts[place][piece] += 1;
            }
        }
        // Mean 1,000, standard deviation 30.
        assert!(counts.as_flattened().iter().all(|n| (850..=1150).contains(n)), "{counts:?}");
    }

    #[test]
    fn a_shape_that_does_not_match_is_refused() {
        let mut values = [0.0; 11];
        let refused = ChunkShuffle::new(0).image(0, &mut values, [1, 3, 4]);
        assert!(matches!(refused, Err(NoiseError::Shape { found: 11, .. })));
    }
}
