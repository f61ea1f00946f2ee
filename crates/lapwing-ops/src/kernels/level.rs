//! Which vector instructions kernels use, found out when they run.

use std::sync::atomic::{AtomicU8, Ordering};

/// A set of vector instructions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Level {
    /// What every machine of the architecture has.
    Portable = 1,
    /// 128 bits, ARM.
    Neon = 2,
    /// 256 bits with fused multiplication and addition.
    Avx2 = 3,
    /// 512 bits.
    Avx512 = 4,
}

/// A [`Level`] asked for by a test, or 0.
static FORCED: AtomicU8 = AtomicU8::new(0);

impl Level {
    /// The levels of this machine, the best one first.
    pub fn available() -> Vec<Self> {
        let mut levels = Vec::new();
        #[cfg(target_arch = "x86_64")]
        {
            if is_x86_feature_detected!("avx512f") {
                levels.push(Self::Avx512);
            }
            if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
                levels.push(Self::Avx2);
            }
        }
        #[cfg(target_arch = "aarch64")]
        levels.push(Self::Neon);
        levels.push(Self::Portable);
        levels
    }

    /// Makes kernels use `level` from now on (`None`: the best one), in the whole process.
    ///
    /// # Panics
    /// When the machine does not have it.
    pub fn force(level: Option<Self>) {
        assert!(level.is_none_or(|level| Self::available().contains(&level)));
        FORCED.store(level.map_or(0, |level| level as u8), Ordering::Relaxed);
    }

    /// The level to use: never one that the machine does not have.
    pub(crate) fn current() -> Self {
        match FORCED.load(Ordering::Relaxed) {
            1 => return Self::Portable,
            2 => return Self::Neon,
            3 => return Self::Avx2,
            4 => return Self::Avx512,
            _ => {}
        }
        #[cfg(target_arch = "x86_64")]
        {
            if is_x86_feature_detected!("avx512f") {
                return Self::Avx512;
            }
            if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
                return Self::Avx2;
            }
        }
        if cfg!(target_arch = "aarch64") { Self::Neon } else { Self::Portable }
    }

    /// How many f32 a register has.
    pub(crate) fn lanes(self) -> usize {
        match self {
            Self::Avx512 => 16,
            Self::Avx2 => 8,
            Self::Portable | Self::Neon => 4,
        }
    }
}

/// A function of plain loops, compiled once per [`Level`] so that the compiler vectorises it for each, and called at the
/// current one.
macro_rules! vectorised {
    ($(#[$meta:meta])* $vis:vis fn $name:ident($($arg:ident: $kind:ty),* $(,)?) $body:block) => {
        $(#[$meta])*
        #[allow(clippy::too_many_arguments, reason = "the parameters of the formula")]
        $vis fn $name($($arg: $kind),*) {
            #[inline(always)]
            fn body($($arg: $kind),*) $body

            #[cfg(target_arch = "x86_64")]
            #[target_feature(enable = "avx2,fma")]
            fn avx2($($arg: $kind),*) {
                body($($arg),*);
            }

            #[cfg(target_arch = "x86_64")]
            #[target_feature(enable = "avx512f,avx2,fma")]
            fn avx512($($arg: $kind),*) {
                body($($arg),*);
            }

            match $crate::kernels::level::Level::current() {
                #[cfg(target_arch = "x86_64")]
                // SAFETY: the machine has these instructions, or this would not be the current level.
                $crate::kernels::level::Level::Avx2 => unsafe { avx2($($arg),*) },
                #[cfg(target_arch = "x86_64")]
                // SAFETY: as above.
                $crate::kernels::level::Level::Avx512 => unsafe { avx512($($arg),*) },
                _ => body($($arg),*),
            }
        }
    };
}
pub(crate) use vectorised;

/// Calls `$function::<L>(..)` with the lanes `L` of a level that the machine has, compiled for its instructions. The
/// function is unsafe only in that it needs them.
macro_rules! with_lanes {
    ($level:expr, $function:ident($($arg:ident: $kind:ty),* $(,)?)) => {{
        #[cfg(target_arch = "x86_64")]
        #[allow(clippy::too_many_arguments, reason = "those of the function")]
        #[target_feature(enable = "avx2,fma")]
        fn avx2($($arg: $kind),*) {
            // SAFETY: the instructions are enabled.
            unsafe { $function::<$crate::kernels::lanes::Avx2>($($arg),*) }
        }

        #[cfg(target_arch = "x86_64")]
        #[allow(clippy::too_many_arguments, reason = "those of the function")]
        #[target_feature(enable = "avx512f")]
        fn avx512($($arg: $kind),*) {
            // SAFETY: the instructions are enabled.
            unsafe { $function::<$crate::kernels::lanes::Avx512>($($arg),*) }
        }

        match $level {
            #[cfg(target_arch = "x86_64")]
            // SAFETY: the machine has these instructions, or this would not be a level of it.
            $crate::kernels::level::Level::Avx512 => unsafe { avx512($($arg),*) },
            #[cfg(target_arch = "x86_64")]
            // SAFETY: as above.
            $crate::kernels::level::Level::Avx2 => unsafe { avx2($($arg),*) },
            #[cfg(target_arch = "aarch64")]
            // SAFETY: every machine of this architecture has these instructions.
            $crate::kernels::level::Level::Neon => unsafe {
                $function::<$crate::kernels::lanes::Neon>($($arg),*);
            },
            // SAFETY: no special instructions.
            _ => unsafe { $function::<$crate::kernels::lanes::Portable>($($arg),*) },
        }
    }};
}
pub(crate) use with_lanes;
