//! The one inner loop of convolutions and matrix products: a tile of results held in registers.
#![allow(
    unsafe_code,
    reason = "results stay in registers only with vector instructions and plain pointers"
)]

use super::lanes::Lanes;

/// Operands of a strip of tiles. With `m` rows of results and columns side by side,
///
/// `c[m·c_m + j] = max(floor, init[m·init_m + j] + Σ_r Σ_k a[m·a_m + r·a_r + k·a_k] · b[r·b_r + k·b_k + j])`
///
/// for `r < rows`, `k < depth`, added up in that order.
#[derive(Clone, Copy)]
pub(crate) struct Operands {
    pub(crate) a: *const f32,
    pub(crate) a_m: usize,
    pub(crate) a_r: usize,
    pub(crate) a_k: usize,
    pub(crate) b: *const f32,
    pub(crate) b_r: usize,
    pub(crate) b_k: usize,
    pub(crate) rows: usize,
    pub(crate) depth: usize,
    pub(crate) init: *const f32,
    pub(crate) init_m: usize,
    pub(crate) c: *mut f32,
    pub(crate) c_m: usize,
    /// Columns to store, at most those of the strip. All of them are read from `b` and `init`.
    pub(crate) columns: usize,
    pub(crate) floor: f32,
}

/// Columns of a wide strip, two registers.
pub(crate) const fn wide<L: Lanes>() -> usize {
    2 * L::COUNT
}

/// `m` rows of results, `V` registers wide.
///
/// # Safety
/// The instructions of `L` must be there; everything that the formula of [`Operands`] reads or writes must be memory of
/// the caller, and nobody else may touch what it writes.
#[inline(always)]
pub(crate) unsafe fn strip<L: Lanes, const V: usize>(mut m: usize, mut at: Operands) {
    macro_rules! rows {
        ($count:literal) => {{
            // SAFETY: the caller's; these rows are among the `m` promised.
            unsafe {
                tile::<L, $count, V>(&at);
            }
            // Behind the last row there may be nothing, so these are no `add`.
            at.a = at.a.wrapping_add($count * at.a_m);
            at.init = at.init.wrapping_add($count * at.init_m);
            at.c = at.c.wrapping_add($count * at.c_m);
            m -= $count;
        }};
    }
    // As many accumulators as registers allow, with room for `b` and one factor of `a`.
    if L::REGISTERS >= 32 {
        while m >= 20 || m == 12 {
            rows!(12);
        }
        while m >= 8 {
            rows!(8);
        }
    } else if V == 1 {
        while m >= 12 {
            rows!(12);
        }
    }
    // Fewer than four rows wait for their own sums, so what is left over is shared out: 11 is 6 + 5, 13 is 5 + 4 + 4.
    while (m >= 10 && m != 13) || m == 6 {
        rows!(6);
    }
    if matches!(m, 5 | 9 | 13) {
        rows!(5);
    }
    while m >= 4 {
        rows!(4);
    }
    // SAFETY: the caller's; these are the rows left of the `m` promised.
    unsafe {
        match m {
            3 => tile::<L, 3, V>(&at),
            2 => tile::<L, 2, V>(&at),
            1 => tile::<L, 1, V>(&at),
            _ => {}
        }
    }
}

/// # Safety
/// As [`strip`] for `M` rows.
#[inline(always)]
unsafe fn tile<L: Lanes, const M: usize, const V: usize>(at: &Operands) {
    // SAFETY: every access is one of the formula's, which the caller vouches for.
    unsafe {
        // No closures here: one that is not inlined would lose the instructions.
        let mut sums = [[L::load(at.init); V]; M];
        for (m, sums) in sums.iter_mut().enumerate() {
            for (v, sum) in sums.iter_mut().enumerate() {
                *sum = L::load(at.init.add(m * at.init_m + v * L::COUNT));
            }
        }
        for r in 0..at.rows {
            let mut a = at.a.add(r * at.a_r);
            let mut b = at.b.add(r * at.b_r);
            for _ in 0..at.depth {
                let mut factors = [L::load(b); V];
                for (v, factor) in factors.iter_mut().enumerate().skip(1) {
                    *factor = L::load(b.add(v * L::COUNT));
                }
                for (m, sums) in sums.iter_mut().enumerate() {
                    let factor = L::spread(a.add(m * at.a_m));
                    for (sum, b) in sums.iter_mut().zip(factors) {
                        *sum = factor.fused(b, *sum);
                    }
                }
                // The last step may leave the buffer, so it is no `add`.
                a = a.wrapping_add(at.a_k);
                b = b.wrapping_add(at.b_k);
            }
        }
        let floor = L::spread(&at.floor);
        for (m, sums) in sums.iter().enumerate() {
            let c = at.c.add(m * at.c_m);
            for (v, sum) in sums.iter().enumerate() {
                let from = v * L::COUNT;
                let sum = sum.at_least(floor);
                if from + L::COUNT <= at.columns {
                    sum.store(c.add(from));
                } else if from < at.columns {
                    sum.store_first(c.add(from), at.columns - from);
                }
            }
        }
    }
}
