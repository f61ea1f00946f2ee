//! Ctrl-C and SIGTERM while a network is trained: the first asks to save and stop, the second ends at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;

/// Whether somebody has asked to stop.
pub(crate) struct Interrupt(Arc<AtomicUsize>);

impl Interrupt {
    /// Takes note of signals from now on. Before, they end the program as they end any other: nothing is lost yet.
    pub(crate) fn watch() -> std::io::Result<Self> {
        let (asked, number) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
        for signal in [SIGINT, SIGTERM] {
            // In this order: the first signal finds nothing asked yet.
            flag::register_conditional_shutdown(signal, code(signal), Arc::clone(&asked))?;
            flag::register(signal, Arc::clone(&asked))?;
            flag::register_usize(signal, Arc::clone(&number), signal as usize)?;
        }
        Ok(Self(number))
    }

    /// The signal that came, if one did.
    pub(crate) fn signal(&self) -> Option<i32> {
        match self.0.load(Ordering::Relaxed) {
            0 => None,
            signal => i32::try_from(signal).ok(),
        }
    }
}

/// What shells make of a program that a signal ended.
pub(crate) fn code(signal: i32) -> i32 {
    128 + signal
}
