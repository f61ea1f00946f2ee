//! The rows of an experiment: images as they came, but for those that noise changed.

use std::sync::Arc;

use lapwing_train::Rows;

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
}

impl Store {
    /// Images in the given order.
    pub(crate) fn new(images: Arc<Images>, picked: Vec<u32>) -> Self {
        let place = vec![UNCHANGED; picked.len()];
        Self { images, picked, place, changed: Vec::new() }
    }

    /// All images in their own order.
    pub(crate) fn all(images: Arc<Images>) -> Self {
        let picked = (0..images.len() as u32).collect();
        Self::new(images, picked)
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
        let width = self.width();
        if self.place[row] == UNCHANGED {
            let start = self.changed.len();
            self.place[row] = (start / width) as u32;
            self.changed.resize(start + width, 0.0);
            self.images.copy(self.picked[row] as usize, &mut self.changed[start..]);
        }
        let start = self.place[row] as usize * width;
        change(&mut self.changed[start..start + width]);
    }
}

impl Rows for Store {
    fn len(&self) -> usize {
        self.picked.len()
    }

    fn width(&self) -> usize {
        self.images.width()
    }

    fn gather(&self, rows: &[u32], out: &mut [f32]) {
        let width = self.width();
        for (&row, out) in rows.iter().zip(out.chunks_exact_mut(width)) {
            match self.place[row as usize] {
                UNCHANGED => self.images.copy(self.picked[row as usize] as usize, out),
                place => {
                    let start = place as usize * width;
                    out.copy_from_slice(&self.changed[start..start + width]);
                }
            }
        }
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
        let mut out = [0.0; 6];
        store.gather(&[0, 1, 2], &mut out);
        assert_eq!(out, [0.8, 1.0, 0.0, 0.2, 1.8, -1.0]);
    }
}
