//! Somebody who notices that nobody answers: a network that goes silent ends nothing by itself.

use std::io::Write;
use std::process;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// Watches over the exchanges of a process.
pub(crate) struct Watchdog {
    /// Since when the process waits for others, if it does.
    since: Arc<Mutex<Option<Instant>>>,
}

impl Watchdog {
    /// Ends the process, with its name, when it has waited for longer than `patience`. The launcher ends the others.
    pub(crate) fn start(name: String, patience: Duration) -> Self {
        let since = Arc::new(Mutex::new(None));
        let watched = Arc::clone(&since);
        let pause = (patience / 4).clamp(Duration::from_millis(50), Duration::from_secs(5));
        thread::spawn(move || {
            loop {
                thread::sleep(pause);
                let since: Option<Instant> =
                    *watched.lock().unwrap_or_else(PoisonError::into_inner);
                if since.is_some_and(|since| since.elapsed() > patience) {
                    tell(&format!(
                        "error: {name} has waited for {} seconds, and not all of the others answer: the network is \
                         silent, or one of them hangs; `lapwing train --resume` goes on from the last checkpoint",
                        patience.as_secs()
                    ));
                    // Nothing of MPI: it may be what hangs.
                    process::abort();
                }
            }
        });
        Self { since }
    }

    /// Watches until the result is dropped.
    pub(crate) fn watch(&self) -> impl Drop + '_ {
        struct Watched<'a>(&'a Mutex<Option<Instant>>);
        impl Drop for Watched<'_> {
            fn drop(&mut self) {
                *self.0.lock().unwrap_or_else(PoisonError::into_inner) = None;
            }
        }
        *self.since.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
        Watched(&self.since)
    }
}

/// Says something on stderr, whether or not anybody listens.
pub(crate) fn tell(message: &str) {
    let _ = std::io::stderr().write_all(format!("{message}\n").as_bytes());
}
