//! Pictures that are seen a little differently at every step, so that a network does not learn them by heart.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::{Block, Blocks, Draws, Exhibit, InputSpec, SampleError, Samples, Values, View};

/// What the draws are for.
const PURPOSE: u64 = 17;
/// A picture is moved by at most one pixel in so many of its side.
const MARGIN: usize = 8;

/// What becomes of a picture at random.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Change {
    /// Left and right change places, in half of the cases.
    Flip,
    /// The picture is moved by up to an eighth of its side, up or down, left or right; what comes in from outside is zero,
    /// the mean of its channel.
    Crop,
}

impl Change {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::Flip, Self::Crop];

    /// The word in files and flags.
    pub fn name(self) -> &'static str {
        match self {
            Self::Flip => "flip",
            Self::Crop => "crop",
        }
    }
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A word that names no [`Change`].
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{0:?} is no change of pictures; expected flip or crop")]
pub struct UnknownChange(pub String);

impl FromStr for Change {
    type Err = UnknownChange;

    fn from_str(word: &str) -> Result<Self, UnknownChange> {
        let found = Self::ALL.into_iter().find(|change| change.name() == word);
        found.ok_or_else(|| UnknownChange(word.to_owned()))
    }
}

/// Samples whose augmented views are changed; plain views, and samples that are no pictures, are as they were.
pub struct Augmented<'a> {
    samples: &'a dyn Samples,
    flip: bool,
    crop: bool,
}

impl<'a> Augmented<'a> {
    /// These samples with these changes, which may be none.
    pub fn new(samples: &'a dyn Samples, changes: &[Change]) -> Self {
        let has = |change| changes.contains(&change);
        Self { samples, flip: has(Change::Flip), crop: has(Change::Crop) }
    }
}

impl Samples for Augmented<'_> {
    fn len(&self) -> usize {
        self.samples.len()
    }

    fn spec(&self) -> InputSpec {
        self.samples.spec()
    }

    fn blocks(&self) -> Option<Blocks> {
        self.samples.blocks()
    }

    fn augments(&self) -> bool {
        let image = matches!(self.spec(), InputSpec::Image { .. });
        (image && (self.flip || self.crop)) || self.samples.augments()
    }

    fn gather(&self, rows: &[u32], view: View) -> Result<Block, SampleError> {
        let (View::Augmented { seed, step, copy }, InputSpec::Image { height, width, channels }) =
            (view, self.spec())
        else {
            return self.samples.gather(rows, view);
        };
        let mut block = self.samples.gather(rows, View::Plain)?;
        block.check(self.spec(), rows.len())?;
        let Values::Floats(values) = &mut block.values else { return Ok(block) };
        let size = height * width * channels;
        let mut from = Vec::with_capacity(size);
        for (&row, picture) in rows.iter().zip(values.chunks_exact_mut(size.max(1))) {
            let number = u64::from(row) | u64::from(copy) << 32;
            let mut draws = Draws::of(seed, PURPOSE, number, step);
            // Drawn in any case, so that one change does not alter what is drawn for the other.
            let flip = draws.below(2) == 1;
            let mut shift = |side: usize| {
                let most = side.div_ceil(MARGIN) as u32;
                i64::from(draws.below(2 * most + 1)) - i64::from(most)
            };
            let (down, right) = (shift(height), shift(width));
            let (flip, down, right) = match (self.flip, self.crop) {
                (flips, true) => (flips && flip, down, right),
                (flips, false) => (flips && flip, 0, 0),
            };
            if !flip && down == 0 && right == 0 {
                continue;
            }
            from.clear();
            from.extend_from_slice(picture);
            for (at, pixel) in picture.chunks_exact_mut(channels).enumerate() {
                let (row, column) = ((at / width) as i64 - down, (at % width) as i64 - right);
                let inside =
                    (0..height as i64).contains(&row) && (0..width as i64).contains(&column);
                if !inside {
                    pixel.fill(0.0);
                    continue;
                }
                let column = if flip { width - 1 - column as usize } else { column as usize };
                pixel.copy_from_slice(
                    &from[(row as usize * width + column) * channels..][..channels],
                );
            }
        }
        Ok(block)
    }

    fn exhibit(&self, row: u32) -> Result<Exhibit, SampleError> {
        self.samples.exhibit(row)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Pictures of 8 × 8 with two channels, in which every number tells row, place and channel.
    struct Numbered;

    const SIDE: usize = 8;

    impl Samples for Numbered {
        fn len(&self) -> usize {
            1000
        }
        fn spec(&self) -> InputSpec {
            InputSpec::Image { height: SIDE, width: SIDE, channels: 2 }
        }
        fn gather(&self, rows: &[u32], view: View) -> Result<Block, SampleError> {
            assert_eq!(view, View::Plain);
            let size = self.spec().size();
            let picture = |&row: &u32| (1..=size).map(move |at| (row as usize * 1000 + at) as f32);
            Ok(Block::of(rows.iter().flat_map(picture).collect()))
        }
        fn exhibit(&self, _: u32) -> Result<Exhibit, SampleError> {
            Ok(Exhibit::Text(String::new()))
        }
    }

    fn view(step: u64) -> View {
        View::Augmented { seed: 5, step, copy: 0 }
    }

    fn gathered(samples: &Augmented<'_>, rows: &[u32], view: View) -> Vec<f32> {
        samples.gather(rows, view).unwrap().into_floats().unwrap()
    }

    #[test]
    fn a_view_depends_on_seed_step_and_row_and_on_nothing_else() {
        let samples = Augmented::new(&Numbered, &Change::ALL);
        assert!(samples.augments());
        let both = gathered(&samples, &[3, 7], view(9));
        let size = both.len() / 2;
        assert_eq!(both[..size], gathered(&samples, &[3], view(9)));
        assert_eq!(both[size..], gathered(&samples, &[7], view(9)));
        let differs = |other| {
            (0..50)
                .any(|row| gathered(&samples, &[row], other) != gathered(&samples, &[row], view(9)))
        };
        assert!(differs(view(10)) && !differs(view(9)));
        assert!(differs(View::Augmented { seed: 6, step: 9, copy: 0 }));
        assert!(differs(View::Augmented { seed: 5, step: 9, copy: 1 }));
        assert_eq!(gathered(&samples, &[3], View::Plain)[0], 3001.0);
    }

    #[test]
    fn half_of_the_pictures_are_flipped_whole() {
        let samples = Augmented::new(&Numbered, &[Change::Flip]);
        let rows: Vec<u32> = (0..1000).collect();
        let plain = gathered(&samples, &rows, View::Plain);
        let seen = gathered(&samples, &rows, view(1));
        let size = samples.spec().size();
        let mut flipped = 0;
        for (plain, seen) in plain.chunks(size).zip(seen.chunks(size)) {
            if plain == seen {
                continue;
            }
            flipped += 1;
            for (plain, seen) in plain.chunks(2 * SIDE).zip(seen.chunks(2 * SIDE)) {
                let mirrored: Vec<&[f32]> = plain.chunks(2).rev().collect();
                assert_eq!(mirrored.concat(), seen);
            }
        }
        assert!((450..=550).contains(&flipped), "{flipped}");
    }

    #[test]
    fn a_crop_moves_by_at_most_an_eighth_and_fills_with_zeros() {
        let samples = Augmented::new(&Numbered, &[Change::Crop]);
        let mut moved = std::collections::BTreeMap::new();
        for row in 0..300 {
            let seen = gathered(&samples, &[row], view(2));
            let plain = gathered(&samples, &[row], View::Plain);
            let oracle = |down: i64, right: i64| {
                let mut picture = vec![0.0; plain.len()];
                for y in 0..8_i64 {
                    for x in 0..8_i64 {
                        let (from_y, from_x) = (y - down, x - right);
                        if (0..8).contains(&from_y) && (0..8).contains(&from_x) {
                            for c in 0..2 {
                                picture[(y * 8 + x) as usize * 2 + c] =
                                    plain[(from_y * 8 + from_x) as usize * 2 + c];
                            }
                        }
                    }
                }
                picture
            };
            let places = (-1..=1).flat_map(|down| (-1..=1).map(move |right| (down, right)));
            let place = places.into_iter().find(|&(down, right)| oracle(down, right) == seen);
            *moved.entry(place.unwrap()).or_insert(0) += 1;
        }
        assert_eq!(moved.len(), 9);
        assert!(moved.values().all(|&count| count > 15), "{moved:?}");
    }

    #[test]
    fn without_changes_or_pictures_nothing_changes() {
        assert!(!Augmented::new(&Numbered, &[]).augments());
        let rows = crate::Matrix::new(vec![0.0, 1.0, 2.0, 3.0], 2).unwrap();
        let samples = Augmented::new(&rows, &Change::ALL);
        assert!(!samples.augments());
        assert!(matches!(samples.gather(&[0], view(1)), Err(SampleError::NoViews)));
        assert_eq!("flip".parse(), Ok(Change::Flip));
        assert!("turn".parse::<Change>().is_err());
    }
}
