//! The rows of an experiment: images as they came, but for those that noise changed.

use std::sync::Arc;

use lapwing_noise::PixelNoise;
use lapwing_sample::{Block, Exhibit, InputSpec, SampleError, Samples, View};

use crate::data::Images;

/// Stands for an image that is as it came.
const UNCHANGED: u32 = u32::MAX;

/// Some images of a data set, in an order of their own, a few of them changed. Bytes stay bytes until a batch needs
/// them: forty thousand colour images are 115 megabytes, and half a gigabyte as floats.
#[derive(Debug)]
pub(crate) struct Store {
    images: Arc<Images>,
    /// The image of each row.
    picked: Vec<u32>,
    /// The place of each row among the changed ones.
    place: Vec<u32>,
    changed: Vec<f32>,
    /// Noise that is made when a row is asked for, and whether a row has it: as floats all of them would not fit.
    pixel_noise: Option<(PixelNoise, Vec<bool>)>,
    /// Mean and deviation that each channel is measured by.
    scale: Option<[[f32; 2]; 3]>,
}

/// Mean and deviation of the channels of Imagenet, as everybody has them.
const IMAGENET: [[f32; 2]; 3] = [[0.485, 0.229], [0.456, 0.224], [0.406, 0.225]];

impl Store {
    /// Images in the given order.
    pub(crate) fn new(images: Arc<Images>, picked: Vec<u32>) -> Self {
        let place = vec![UNCHANGED; picked.len()];
        Self { images, picked, place, changed: Vec::new(), pixel_noise: None, scale: None }
    }

    /// All images in their own order.
    pub(crate) fn all(images: Arc<Images>) -> Self {
        let picked = (0..images.len() as u32).collect();
        Self::new(images, picked)
    }

    /// With the channels less their mean, divided by their deviation, after all noise.
    pub(crate) fn normalised(self, normalised: bool) -> Self {
        Self { scale: normalised.then_some(IMAGENET), ..self }
    }

    /// Adds noise to the bytes of rows that have not been changed otherwise.
    pub(crate) fn add_pixel_noise(&mut self, noise: PixelNoise, rows: impl Iterator<Item = usize>) {
        let (_, noisy) = self.pixel_noise.get_or_insert((noise, vec![false; self.picked.len()]));
        rows.for_each(|row| noisy[row] = true);
    }

    /// The class of each row.
    pub(crate) fn labels(&self) -> Vec<u32> {
        self.picked.iter().map(|&image| self.images.labels[image as usize]).collect()
    }

    /// Height, width and channels.
    pub(crate) fn shape(&self) -> [usize; 3] {
        self.images.shape
    }

    /// Changes the values of a row.
    pub(crate) fn change(&mut self, row: usize, change: impl FnOnce(&mut [f32])) {
        let width = self.images.width();
        if self.place[row] == UNCHANGED {
            let start = self.changed.len();
            self.place[row] = (start / width) as u32;
            self.changed.resize(start + width, 0.0);
            self.images.copy(self.picked[row] as usize, &mut self.changed[start..]);
        }
        let start = self.place[row] as usize * width;
        change(&mut self.changed[start..start + width]);
    }

    /// Writes a row as the network sees it.
    fn copy(&self, row: usize, out: &mut [f32]) {
        match self.place[row] {
            UNCHANGED => {
                self.images.copy(self.picked[row] as usize, out);
                if let Some((noise, noisy)) = &self.pixel_noise
                    && noisy[row]
                {
                    let byte = |value: &f32| (value * 255.0).round() as u8;
                    let mut bytes: Vec<u8> = out.iter().map(byte).collect();
                    noise.apply(row as u64, &mut bytes);
                    for (value, byte) in out.iter_mut().zip(bytes) {
                        *value = f32::from(byte) / 255.0;
                    }
                }
            }
            place => {
                let start = place as usize * out.len();
                out.copy_from_slice(&self.changed[start..start + out.len()]);
            }
        }
    }
}

impl Samples for Store {
    fn len(&self) -> usize {
        self.picked.len()
    }

    fn spec(&self) -> InputSpec {
        match self.images.shape {
            // A line of pixels without colours is a row of numbers.
            [1, width, 1] => InputSpec::Vector { width },
            [height, width, channels] => InputSpec::Image { height, width, channels },
        }
    }

    fn gather(&self, rows: &[u32], view: View) -> Result<Block, SampleError> {
        if view != View::Plain {
            return Err(SampleError::NoViews);
        }
        self.check_rows(rows)?;
        let width = self.images.width();
        let mut values = vec![0.0; rows.len() * width];
        for (&row, out) in rows.iter().zip(values.chunks_exact_mut(width)) {
            self.copy(row as usize, out);
        }
        if let Some(scale) = self.scale
            && self.images.shape[2] == 3
        {
            for pixel in values.as_chunks_mut::<3>().0 {
                for (value, [mean, deviation]) in pixel.iter_mut().zip(scale) {
                    *value = (*value - mean) / deviation;
                }
            }
        }
        Ok(Block::of(values))
    }

    fn exhibit(&self, row: u32) -> Result<Exhibit, SampleError> {
        self.check_rows(&[row])?;
        let [height, width, channels] = self.images.shape;
        let mut values = vec![0.0; self.images.width()];
        self.copy(row as usize, &mut values);
        let byte = |value: f32| (value.clamp(0.0, 1.0) * 255.0).round() as u8;
        let rgb = values.chunks_exact(channels).flat_map(|pixel| match *pixel {
            [red, green, blue] => [byte(red), byte(green), byte(blue)],
            _ => [byte(pixel[0]); 3],
        });
        Ok(Exhibit::Picture { width: width as u32, height: height as u32, rgb: rgb.collect() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::Pixels;

    #[test]
    fn rows_are_the_picked_images_and_a_change_touches_one_row() {
        let pixels = Pixels::Bytes(vec![0, 51, 102, 153, 204, 255]);
        let images = Images { pixels, labels: vec![7, 8, 9], shape: [1, 2, 1] };
        let mut store = Store::new(Arc::new(images), vec![2, 0, 2]);
        assert_eq!(store.labels(), [9, 7, 9]);
        store.change(2, |values| values[0] += 1.0);
        store.change(2, |values| values[1] = -1.0);
        let found = store.gather(&[0, 1, 2], View::Plain).unwrap();
        assert_eq!(found, Block::of(vec![0.8, 1.0, 0.0, 0.2, 1.8, -1.0]));
        assert!(store.gather(&[3], View::Plain).is_err());
        assert_eq!(store.spec(), InputSpec::Vector { width: 2 });
        store.add_pixel_noise(PixelNoise::new(1), [1].into_iter());
        let noisy = store.gather(&[0, 1], View::Plain).unwrap().into_floats().unwrap();
        let mut bytes = [0, 51];
        PixelNoise::new(1).apply(1, &mut bytes);
        let found = noisy.iter().map(|value| (value * 255.0).round() as u8).collect::<Vec<_>>();
        assert_eq!(found, [204, 255, bytes[0], bytes[1]]);
        let rgb = vec![255, 255, 255, 0, 0, 0];
        assert_eq!(store.exhibit(2).unwrap(), Exhibit::Picture { width: 2, height: 1, rgb });
    }
}
