//! AugMix (Hendrycks and others 2020) at severity 1, as torchvision does it: a picture mixed with three chains of changes
//! of itself. At that severity shear, shift, rotation, brightness, colour, contrast and sharpness change nothing; what is
//! left are fewer shades, inverted white, and two ways to stretch the contrast.

use crate::{Draws, InputSpec};

/// What the draws are for.
const PURPOSE: u64 = 18;
/// Changes that are drawn from, and those of them that change nothing, which come first.
const CHANGES: u32 = 13;
const IDLE: u32 = 9;
/// Chains that are mixed, and most changes of each.
const CHAINS: usize = 3;
const DEEPEST: u32 = 3;
/// The largest byte.
const WHITE: f32 = 255.0;

/// Changes pictures that lie one after another, of rows by name, as a step sees them: a pure function of seed, step and
/// row. Samples that are no pictures stay as they are.
pub fn augmix(values: &mut [f32], rows: &[u32], spec: InputSpec, seed: u64, step: u64) {
    let InputSpec::Image { channels, .. } = spec else { return };
    for (&row, picture) in rows.iter().zip(values.chunks_exact_mut(spec.size().max(1))) {
        mix(picture, channels, &mut Draws::of(seed, PURPOSE, u64::from(row), step));
    }
}

/// Changes one picture: its values become bytes between its least and its greatest, and come back.
fn mix(picture: &mut [f32], channels: usize, draws: &mut Draws) {
    let least = picture.iter().copied().fold(f32::INFINITY, f32::min);
    let range = picture.iter().copied().fold(f32::NEG_INFINITY, f32::max) - least;
    if !(range > 0.0 && range.is_finite()) {
        return;
    }
    let byte = |value: &f32| ((value - least) / range * WHITE) as u8;
    let bytes: Vec<u8> = picture.iter().map(byte).collect();
    for (value, mixed) in picture.iter_mut().zip(mixed(&bytes, channels, draws)) {
        *value = f32::from(mixed) / WHITE * range + least;
    }
}

/// The mixture of a picture and its chains.
fn mixed(picture: &[u8], channels: usize, draws: &mut Draws) -> Vec<u8> {
    // Beta(1, 1), and Dirichlet(1, 1, 1) by exponential numbers.
    let plain = draws.unit();
    let shares = [(); CHAINS].map(|()| -libm::log(1.0 - draws.unit()));
    let whole: f64 = shares.iter().sum();
    let mut sum: Vec<f32> = picture.iter().map(|&byte| plain as f32 * f32::from(byte)).collect();
    for share in shares {
        let share = ((1.0 - plain) * share / whole) as f32;
        let depth = 1 + draws.below(DEEPEST);
        let mut chain = picture.to_vec();
        for _ in 0..depth {
            change(draws.below(CHANGES), &mut chain, channels);
        }
        sum.iter_mut().zip(&chain).for_each(|(sum, &byte)| *sum += share * f32::from(byte));
    }
    sum.into_iter().map(|value| value as u8).collect()
}

fn change(which: u32, picture: &mut [u8], channels: usize) {
    match which.checked_sub(IDLE) {
        None => {}
        // Four bits.
        Some(0) => picture.iter_mut().for_each(|byte| *byte &= 0xf0),
        // What is as bright as can be is inverted.
        Some(1) => picture.iter_mut().for_each(|byte| *byte = if *byte == 255 { 0 } else { *byte }),
        Some(2) => by_channel(picture, channels, stretched),
        Some(_) => by_channel(picture, channels, equalised),
    }
}

/// Replaces the bytes of each channel by what stands in a table made from how often each occurs.
fn by_channel(picture: &mut [u8], channels: usize, table: fn(&[u32; 256]) -> [u8; 256]) {
    for channel in 0..channels {
        let mut counts = [0; 256];
        let own = || picture.iter().skip(channel).step_by(channels);
        own().for_each(|&byte| counts[usize::from(byte)] += 1);
        let table = table(&counts);
        let own = picture.iter_mut().skip(channel).step_by(channels);
        own.for_each(|byte| *byte = table[usize::from(*byte)]);
    }
}

/// The darkest becomes 0, the brightest 255.
fn stretched(counts: &[u32; 256]) -> [u8; 256] {
    let darkest = counts.iter().position(|&count| count > 0).unwrap_or(0);
    let brightest = counts.iter().rposition(|&count| count > 0).unwrap_or(0);
    let scale = WHITE / (brightest as f32 - darkest as f32);
    std::array::from_fn(|byte| match brightest > darkest {
        true => ((byte as f32 - darkest as f32) * scale).clamp(0.0, WHITE) as u8,
        false => byte as u8,
    })
}

/// All shades become equally frequent, as far as whole numbers go.
fn equalised(counts: &[u32; 256]) -> [u8; 256] {
    let all: u32 = counts.iter().sum();
    let last = counts.iter().rev().find(|&&count| count > 0).copied().unwrap_or(0);
    let step = (all - last) / 255;
    let mut below = 0;
    std::array::from_fn(|byte| {
        if step == 0 {
            return byte as u8;
        }
        let shade = if byte == 0 { 0 } else { (below + step / 2) / step };
        below += counts[byte];
        shade.min(255) as u8
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn changed(which: u32, picture: &[u8], channels: usize) -> Vec<u8> {
        let mut picture = picture.to_vec();
        change(which, &mut picture, channels);
        picture
    }

    // import torch
    // def autocontrast(x):                                    # torchvision.transforms._functional_tensor.autocontrast
    //     low, high = x.min(), x.max(); s = 255.0 / (high - low).float()
    //     return ((x - low) * s).clamp(0, 255).to(torch.uint8)
    // def equalize(x):                                        # …_scale_channel
    //     h = torch.bincount(x.long(), minlength=256); n = h[h != 0]; s = n[:-1].sum() // 255
    //     if s == 0: return x
    //     t = ((h.cumsum(0) + s // 2) // s); t = torch.nn.functional.pad(t, [1, 0])[:-1].clamp(0, 255)
    //     return t[x.long()].to(torch.uint8)
    // x = torch.tensor([10, 10, 20, 60, 200, 13], dtype=torch.uint8); print(autocontrast(x).tolist())
    // y = torch.tensor([(i * i // 7) % 97 + 40 for i in range(1024)], dtype=torch.uint8)
    // print(equalize(y)[:12].tolist(), equalize(y).long().sum().item(), equalize(x).tolist())
    #[test]
    fn what_changes_anything_is_torchvisions() {
        let x = [10, 10, 20, 60, 200, 13];
        assert_eq!(changed(IDLE, &x, 1), [0, 0, 16, 48, 192, 0]);
        assert_eq!(changed(IDLE + 1, &[254, 255, 0], 1), [254, 0, 0]);
        assert_eq!(changed(IDLE + 2, &x, 1), [0, 0, 13, 67, 255, 4]);
        assert_eq!(changed(IDLE + 2, &[7, 7, 7], 1), [7, 7, 7]);
        let y: Vec<u8> = (0..1024).map(|i| ((i * i / 7) % 97 + 40) as u8).collect();
        let equal = changed(IDLE + 3, &y, 1);
        assert_eq!(equal[..12], [0, 0, 0, 7, 13, 17, 23, 30, 35, 42, 57, 69]);
        assert_eq!(equal.iter().map(|&byte| u32::from(byte)).sum::<u32>(), 161_790);
        assert_eq!(changed(IDLE + 3, &x, 1), x, "too few pixels to tell");
        assert!((0..IDLE).all(|idle| changed(idle, &x, 1) == x));
        // Channels are stretched by themselves.
        assert_eq!(changed(IDLE + 2, &[0, 100, 50, 101], 2), [0, 0, 255, 255]);
    }

    #[test]
    fn a_picture_stays_in_its_range_and_is_drawn_by_seed_step_and_row() {
        let spec = InputSpec::Image { height: 8, width: 8, channels: 3 };
        let picture = |row: u32| -> Vec<f32> {
            (0..192).map(|i| -1.5 + ((i * 37 + row as usize * 11) % 101) as f32 / 40.0).collect()
        };
        let seen = |rows: &[u32], seed, step| {
            let mut values: Vec<f32> = rows.iter().flat_map(|&row| picture(row)).collect();
            augmix(&mut values, rows, spec, seed, step);
            values
        };
        let both = seen(&[4, 9], 1, 2);
        assert_eq!(both[192..], seen(&[9], 1, 2), "the others of a batch do not matter");
        let mut moved = 0;
        for step in 0..40 {
            let (before, after) = (picture(4), seen(&[4], 1, step));
            let range = |values: &[f32]| {
                let least = values.iter().copied().fold(f32::INFINITY, f32::min);
                (least, values.iter().copied().fold(f32::NEG_INFINITY, f32::max))
            };
            let ((low, high), (least, most)) = (range(&before), range(&after));
            assert!(least >= low - 1e-6 && most <= high + 1e-6, "step {step}");
            // Bytes are cut off, so that a picture that nothing happens to moves by up to two of them.
            let far = before.iter().zip(&after).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
            moved += usize::from(far > 3.0 * (high - low) / 255.0);
        }
        // A chain has two changes on average, nine of thirteen of which are idle: about nine in ten pictures move.
        assert!((25..40).contains(&moved), "{moved}");
        assert_ne!(seen(&[4], 1, 2), seen(&[4], 2, 2));
        let mut flat = vec![0.25; 192];
        augmix(&mut flat, &[0], spec, 1, 1);
        assert_eq!(flat, [0.25; 192]);
        let mut vector = vec![0.5, 1.5];
        augmix(&mut vector, &[0], InputSpec::Vector { width: 2 }, 1, 1);
        assert_eq!(vector, [0.5, 1.5]);
    }
}
