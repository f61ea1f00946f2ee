//! Settings of the whole process.

use std::sync::atomic::{AtomicBool, Ordering};

static STOCK: AtomicBool = AtomicBool::new(false);

/// Makes every function of this crate use Burn's own operations (or its kernels again), in the whole process: for
/// comparisons and tests.
pub fn use_stock(stock: bool) {
    STOCK.store(stock, Ordering::Relaxed);
}

/// Whether kernels are switched off.
pub(crate) fn stock() -> bool {
    STOCK.load(Ordering::Relaxed)
}

/// Settles what makes training fast and is the process's to decide. Programs call it once, before their first tensor.
///
/// Training frees and asks for the same large blocks at every step; the C library would give them back to the system each
/// time, and the system would clear them again. With glibc, they are kept, in one heap for all threads: those that it
/// makes for single threads hold 64 MB and are given back whatever it is told.
#[allow(unsafe_code, reason = "a call into the C library")]
pub fn tune_process() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: `mallopt` takes two integers, may be called at any time, and reports a refusal by its result, which only
    // means that the default stays.
    unsafe {
        libc::mallopt(libc::M_ARENA_MAX, 1);
        libc::mallopt(libc::M_MMAP_MAX, 0);
        libc::mallopt(libc::M_TRIM_THRESHOLD, i32::MAX);
        libc::mallopt(libc::M_TOP_PAD, 16 << 20);
    }
}

/// Gives memory back to the system that is kept for nobody: for the moment between two pieces of work that need different
/// blocks. Where sources are many, what is left of one piece would otherwise lie beside the next.
#[allow(unsafe_code, reason = "a call into the C library")]
pub fn release_memory() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: `malloc_trim` takes an integer, may be called at any time, and gives back free pages alone.
    unsafe {
        libc::malloc_trim(0);
    }
}
