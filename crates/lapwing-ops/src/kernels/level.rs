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

/// A [`Level`] that was asked for, or 0.
static FORCED: AtomicU8 = AtomicU8::new(0);

/// A level that is not to be had.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LevelError {
    /// Not the name of a level.
    Name(String),
    /// The machine has no such instructions.
    Missing(Level),
}

impl std::fmt::Display for LevelError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let names =
            |levels: &[Level]| levels.iter().map(|l| l.name()).collect::<Vec<_>>().join(", ");
        match self {
            Self::Name(name) => {
                write!(f, "no kernels are called {name:?}: expected one of {}", names(&Level::ALL))
            }
            Self::Missing(level) => write!(
                f,
                "this machine has no {} instructions: it has {}",
                level.name(),
                names(&Level::available())
            ),
        }
    }
}

impl std::error::Error for LevelError {}

impl std::str::FromStr for Level {
    type Err = LevelError;

    fn from_str(name: &str) -> Result<Self, LevelError> {
        let found = Self::ALL.into_iter().find(|level| level.name() == name);
        found.ok_or_else(|| LevelError::Name(name.to_owned()))
    }
}

impl Level {
    /// All of them, on whatever machine, the best one first.
    pub const ALL: [Self; 4] = [Self::Avx512, Self::Avx2, Self::Neon, Self::Portable];

    /// The word for it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Portable => "portable",
            Self::Neon => "neon",
            Self::Avx2 => "avx2",
            Self::Avx512 => "avx512",
        }
    }

    /// Whether the machine has every instruction that kernels of this level are compiled with.
    fn is_here(self) -> bool {
        match self {
            Self::Portable => true,
            Self::Neon => cfg!(target_arch = "aarch64"),
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 => is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma"),
            // There are machines, most of them emulated, that have the wider instructions and not the narrower ones.
            #[cfg(target_arch = "x86_64")]
            Self::Avx512 => is_x86_feature_detected!("avx512f") && Self::Avx2.is_here(),
            #[cfg(not(target_arch = "x86_64"))]
            Self::Avx2 | Self::Avx512 => false,
        }
    }

    /// The levels of this machine, the best one first.
    pub fn available() -> Vec<Self> {
        Self::ALL.into_iter().filter(|level| level.is_here()).collect()
    }

    /// Makes kernels use `level` from now on (`None`: the best one), in the whole process. Results differ between levels
    /// in the last bits.
    pub fn force(level: Option<Self>) -> Result<(), LevelError> {
        if let Some(level) = level.filter(|level| !level.is_here()) {
            return Err(LevelError::Missing(level));
        }
        FORCED.store(level.map_or(0, |level| level as u8), Ordering::Relaxed);
        Ok(())
    }

    /// The level to use: never one that the machine does not have.
    pub fn current() -> Self {
        match FORCED.load(Ordering::Relaxed) {
            1 => return Self::Portable,
            2 => return Self::Neon,
            3 => return Self::Avx2,
            4 => return Self::Avx512,
            _ => {}
        }
        Self::ALL.into_iter().find(|level| level.is_here()).unwrap_or(Self::Portable)
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
