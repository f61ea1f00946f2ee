//! Images with classes.

/// Images of one size, and the class of each.
#[derive(Clone, Debug)]
pub struct Images {
    /// The values, image after image, each row by row, pixel by pixel, the channels of a pixel together.
    pub pixels: Pixels,
    /// The class of each image.
    pub labels: Vec<u32>,
    /// Height, width, channels.
    pub shape: [usize; 3],
}

/// Values of images as they are kept.
#[derive(Clone, Debug)]
pub enum Pixels {
    /// As in the files; 255 stands for 1.
    Bytes(Vec<u8>),
    /// As the network sees them.
    Floats(Vec<f32>),
}

impl Images {
    /// Values per image.
    pub fn width(&self) -> usize {
        self.shape.iter().product()
    }

    /// Number of images.
    pub fn len(&self) -> usize {
        self.labels.len()
    }

    /// Whether there is no image.
    pub fn is_empty(&self) -> bool {
        self.labels.is_empty()
    }

    /// Writes an image as the network sees it: bytes divided by 255.
    pub fn copy(&self, image: usize, out: &mut [f32]) {
        let width = self.width();
        match &self.pixels {
            Pixels::Bytes(bytes) => {
                let from = &bytes[image * width..(image + 1) * width];
                for (value, &byte) in out.iter_mut().zip(from) {
                    *value = f32::from(byte) / 255.0;
                }
            }
            Pixels::Floats(values) => {
                out.copy_from_slice(&values[image * width..(image + 1) * width]);
            }
        }
    }
}
