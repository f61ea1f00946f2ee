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

/// Does something for each place up to `$count`, of which there are at most twelve. Written out: sums in a loop that the
/// compiler unrolls late stay in memory.
macro_rules! each {
    ($place:ident < $count:ident, $work:block) => {
        each!($place < $count, $work, 0 1 2 3 4 5 6 7 8 9 10 11)
    };
    ($place:ident < $count:ident, $work:block, $($at:literal)+) => {
        $(if $at < $count {
            let $place = $at;
            $work
        })+
    };
}
pub(crate) use each;

/// # Safety
/// As [`strip`] for `M` rows.
#[inline(always)]
unsafe fn tile<L: Lanes, const M: usize, const V: usize>(at: &Operands) {
    const { assert!(M <= 12 && V <= 2) };
    // SAFETY: every access is one of the formula's, which the caller vouches for.
    unsafe {
        // No closures here: one that is not inlined would lose the instructions.
        let mut sums = [[L::load(at.init); V]; M];
        each!(m < M, {
            sums[m][0] = L::load(at.init.add(m * at.init_m));
            if V > 1 {
                sums[m][1] = L::load(at.init.add(m * at.init_m + L::COUNT));
            }
        });
        for r in 0..at.rows {
            let mut a = at.a.add(r * at.a_r);
            let mut b = at.b.add(r * at.b_r);
            for _ in 0..at.depth {
                let first = L::load(b);
                let second = if V > 1 { L::load(b.add(L::COUNT)) } else { first };
                each!(m < M, {
                    let factor = L::spread(a.add(m * at.a_m));
                    sums[m][0] = factor.fused(first, sums[m][0]);
                    if V > 1 {
                        sums[m][1] = factor.fused(second, sums[m][1]);
                    }
                });
                // The last step may leave the buffer, so it is no `add`.
                a = a.wrapping_add(at.a_k);
                b = b.wrapping_add(at.b_k);
            }
        }
        let floor = L::spread(&at.floor);
        each!(m < M, {
            let c = at.c.add(m * at.c_m);
            put(sums[m][0].at_least(floor), c, at.columns);
            if V > 1 && at.columns > L::COUNT {
                put(sums[m][1].at_least(floor), c.add(L::COUNT), at.columns - L::COUNT);
            }
        });
    }
}

/// Stores so many of the lanes, or all.
///
/// # Safety
/// As [`Lanes::store_first`], for no more lanes than there are.
#[inline(always)]
unsafe fn put<L: Lanes>(lanes: L, to: *mut f32, columns: usize) {
    // SAFETY: the caller's.
    unsafe {
        if columns >= L::COUNT {
            lanes.store(to);
        } else if columns > 0 {
            lanes.store_first(to, columns);
        }
    }
}
