//! Colour images made grey and smaller, as torchvision does it.

/// A colour image `[side, side, 3]` of bytes to a grey one `[to, to]` in [0, 1].
pub(super) fn small_and_grey(image: &[u8], side: usize, to: usize) -> Vec<f32> {
    let grey: Vec<f64> = image
        .chunks_exact(3)
        .map(|pixel| {
            let [red, green, blue] = [0, 1, 2].map(|c| f64::from(pixel[c]) / 255.0);
            0.2989 * red + 0.587 * green + 0.114 * blue
        })
        .collect();
    let shares = shares(side, to);
    let mut narrow = vec![0.0; side * to];
    for (row, out) in grey.chunks_exact(side).zip(narrow.chunks_exact_mut(to)) {
        for (value, (start, shares)) in out.iter_mut().zip(&shares) {
            *value = shares.iter().zip(&row[*start..]).map(|(share, x)| share * x).sum();
        }
    }
    let mut small = Vec::with_capacity(to * to);
    for (start, shares) in &shares {
        for column in 0..to {
            let rows = shares.iter().enumerate();
            let sum: f64 = rows.map(|(at, share)| share * narrow[(start + at) * to + column]).sum();
            small.push(sum as f32);
        }
    }
    small
}

/// For each place of the smaller line: where its part of the larger one starts, and the shares of the values in it. The
/// shares fall linearly from the middle of the place (bilinear interpolation that widens with the scale).
fn shares(from: usize, to: usize) -> Vec<(usize, Vec<f64>)> {
    let scale = from as f64 / to as f64;
    (0..to)
        .map(|at| {
            let middle = (at as f64 + 0.5) * scale;
            let start = ((middle - scale + 0.5).max(0.0)) as usize;
            let end = ((middle + scale + 0.5) as usize).min(from);
            let share =
                |place: usize| (1.0 - ((place as f64 - middle + 0.5) / scale).abs()).max(0.0);
            let sum: f64 = (start..end).map(share).sum();
            (start, (start..end).map(|place| share(place) / sum).collect())
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_add_up_and_a_constant_stays() {
        for (start, shares) in shares(32, 28) {
            assert!((shares.iter().sum::<f64>() - 1.0).abs() < 1e-12);
            assert!(start + shares.len() <= 32);
        }
        let white = small_and_grey(&[255; 32 * 32 * 3], 32, 28);
        assert_eq!(white.len(), 784);
        assert!(white.iter().all(|&value| (value - 0.9999).abs() < 1e-6));
    }

    // import torch, torchvision.transforms.functional as F   (without torchvision: the same call of PyTorch)
    // x = ((torch.arange(32*32*3) * 37) % 256).to(torch.uint8).reshape(32, 32, 3).permute(2, 0, 1) / 255
    // g = (0.2989 * x[0] + 0.587 * x[1] + 0.114 * x[2])[None, None]
    // s = torch.nn.functional.interpolate(g, (28, 28), mode="bilinear", antialias=True)[0, 0]
    // print(s[0, :3], s[13, 20], s[27, 27])
    #[test]
    fn values_are_those_of_pytorch() {
        let image: Vec<u8> = (0..32 * 32 * 3).map(|at| (at * 37 % 256) as u8).collect();
        let small = small_and_grey(&image, 32, 28);
        let ours = [small[0], small[1], small[2], small[13 * 28 + 20], small[27 * 28 + 27]];
        for (ours, theirs) in ours.into_iter().zip(GOLDEN) {
            assert!((ours - theirs).abs() < 2e-6, "{ours} against {theirs}");
        }
    }

    const GOLDEN: [f32; 5] = [0.211_560_47, 0.485_292_2, 0.376_685_05, 0.351_789_92, 0.635_197_3];
}
