//! A vector register of f32, the same operations for every instruction set.
#![allow(unsafe_code, reason = "vector instructions")]

/// Some f32 side by side.
///
/// # Safety
/// Every function needs the instructions of the implementing type; those with a pointer need [`Lanes::COUNT`] (or as many
/// as they say) f32 behind it, in memory of any alignment.
pub(crate) trait Lanes: Copy {
    /// How many f32.
    const COUNT: usize;
    /// How many registers the machine has.
    const REGISTERS: usize;

    unsafe fn load(from: *const f32) -> Self;
    /// One f32 in every lane.
    unsafe fn spread(from: *const f32) -> Self;
    unsafe fn store(self, to: *mut f32);
    /// `self * factor + sum`
    unsafe fn fused(self, factor: Self, sum: Self) -> Self;
    unsafe fn plus(self, other: Self) -> Self;
    unsafe fn minus(self, other: Self) -> Self;
    /// The larger one; `self` where it is not a number.
    unsafe fn at_least(self, floor: Self) -> Self;

    /// Stores the first `count` lanes.
    #[inline(always)]
    unsafe fn store_first(self, to: *mut f32, count: usize) {
        let mut all = [0.0; 16];
        // SAFETY: no register has more than 16 lanes, and the caller has room for `count` of them.
        unsafe {
            self.store(all.as_mut_ptr());
            std::ptr::copy_nonoverlapping(all.as_ptr(), to, count);
        }
    }
}

/// Four f32 without special instructions.
#[derive(Clone, Copy)]
pub(crate) struct Portable([f32; 4]);

impl Lanes for Portable {
    const COUNT: usize = 4;
    const REGISTERS: usize = 16;

    #[inline(always)]
    unsafe fn load(from: *const f32) -> Self {
        // SAFETY: four f32 are there.
        Self(unsafe { from.cast::<[f32; 4]>().read_unaligned() })
    }
    #[inline(always)]
    unsafe fn spread(from: *const f32) -> Self {
        // SAFETY: one f32 is there.
        Self([unsafe { *from }; 4])
    }
    #[inline(always)]
    unsafe fn store(self, to: *mut f32) {
        // SAFETY: there is room for four f32.
        unsafe { to.cast::<[f32; 4]>().write_unaligned(self.0) }
    }
    #[inline(always)]
    unsafe fn fused(self, factor: Self, sum: Self) -> Self {
        Self(std::array::from_fn(|lane| self.0[lane] * factor.0[lane] + sum.0[lane]))
    }
    #[inline(always)]
    unsafe fn plus(self, other: Self) -> Self {
        Self(std::array::from_fn(|lane| self.0[lane] + other.0[lane]))
    }
    #[inline(always)]
    unsafe fn minus(self, other: Self) -> Self {
        Self(std::array::from_fn(|lane| self.0[lane] - other.0[lane]))
    }
    #[inline(always)]
    unsafe fn at_least(self, floor: Self) -> Self {
        Self(std::array::from_fn(|lane| {
            if self.0[lane] < floor.0[lane] { floor.0[lane] } else { self.0[lane] }
        }))
    }
}

/// The instructions behind each operation differ in their names alone.
macro_rules! lanes {
    (
        $name:ident, $register:ty, $count:literal, $registers:literal,
        $load:ident, $spread:ident, $store:ident, |$a:ident, $b:ident, $c:ident| $fused:expr,
        $plus:ident, $minus:ident, $max:ident
    ) => {
        #[derive(Clone, Copy)]
        pub(crate) struct $name($register);

        impl Lanes for $name {
            const COUNT: usize = $count;
            const REGISTERS: usize = $registers;

            #[inline(always)]
            unsafe fn load(from: *const f32) -> Self {
                // SAFETY: the caller's.
                Self(unsafe { $load(from) })
            }
            #[inline(always)]
            unsafe fn spread(from: *const f32) -> Self {
                // SAFETY: the caller's.
                Self(unsafe { $spread(*from) })
            }
            #[inline(always)]
            unsafe fn store(self, to: *mut f32) {
                // SAFETY: the caller's.
                unsafe { $store(to, self.0) }
            }
            #[inline(always)]
            unsafe fn fused(self, factor: Self, sum: Self) -> Self {
                let ($a, $b, $c) = (self.0, factor.0, sum.0);
                // SAFETY: the caller's.
                Self(unsafe { $fused })
            }
            #[inline(always)]
            unsafe fn plus(self, other: Self) -> Self {
                // SAFETY: the caller's.
                Self(unsafe { $plus(self.0, other.0) })
            }
            #[inline(always)]
            unsafe fn minus(self, other: Self) -> Self {
                // SAFETY: the caller's.
                Self(unsafe { $minus(self.0, other.0) })
            }
            #[inline(always)]
            unsafe fn at_least(self, floor: Self) -> Self {
                // SAFETY: the caller's. x86 gives the second operand if either is not a number, ARM that one.
                Self(unsafe { $max(floor.0, self.0) })
            }
        }
    };
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::Lanes;
    use std::arch::x86_64::*;

    lanes!(
        Avx2,
        __m256,
        8,
        16,
        _mm256_loadu_ps,
        _mm256_set1_ps,
        _mm256_storeu_ps,
        |a, b, c| _mm256_fmadd_ps(a, b, c),
        _mm256_add_ps,
        _mm256_sub_ps,
        _mm256_max_ps
    );
    lanes!(
        Avx512,
        __m512,
        16,
        32,
        _mm512_loadu_ps,
        _mm512_set1_ps,
        _mm512_storeu_ps,
        |a, b, c| _mm512_fmadd_ps(a, b, c),
        _mm512_add_ps,
        _mm512_sub_ps,
        _mm512_max_ps
    );
}
#[cfg(target_arch = "x86_64")]
pub(crate) use x86::{Avx2, Avx512};

#[cfg(target_arch = "aarch64")]
mod arm {
    use super::Lanes;
    use std::arch::aarch64::*;

    lanes!(
        Neon,
        float32x4_t,
        4,
        32,
        vld1q_f32,
        vdupq_n_f32,
        vst1q_f32,
        |a, b, c| vfmaq_f32(c, a, b),
        vaddq_f32,
        vsubq_f32,
        vmaxq_f32
    );
}
#[cfg(target_arch = "aarch64")]
pub(crate) use arm::Neon;
