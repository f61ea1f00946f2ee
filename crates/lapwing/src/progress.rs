//! Progress on stderr: a bar on a terminal, a plain line now and then elsewhere.

use std::io::{self, IsTerminal};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::say::say;

const BETWEEN_LINES: Duration = Duration::from_secs(10);

/// Shows how far a long piece of work has come.
pub(crate) struct Progress {
    bar: ProgressBar,
    /// What the work is called, where progress is shown as lines.
    lines: Option<&'static str>,
    length: Option<u64>,
    started: Instant,
    /// Work that was done before, by an earlier process.
    before: Option<u64>,
    last_line: Instant,
}

impl Progress {
    /// `length` is the amount of work, in whatever unit, where it is known.
    pub(crate) fn new(what: &'static str, length: Option<u64>, quiet: bool) -> Self {
        let terminal = io::stderr().is_terminal();
        let target = match quiet || !terminal {
            true => ProgressDrawTarget::hidden(),
            false => ProgressDrawTarget::stderr(),
        };
        let style = match length {
            Some(_) => "{prefix} {wide_bar:.cyan/dim} {percent:>3} %  {msg}  {eta} left ",
            None => "{prefix} {spinner}  {msg}  {elapsed} ",
        };
        let bar = ProgressBar::with_draw_target(length, target).with_prefix(what);
        bar.set_style(
            ProgressStyle::with_template(style).unwrap_or_else(|_| ProgressStyle::default_bar()),
        );
        let lines = (!quiet && !terminal).then_some(what);
        let started = Instant::now();
        Self { bar, lines, length, started, before: None, last_line: started }
    }

    /// Says how much has been done, and a word on it. Cheap enough for every few thousand rows.
    pub(crate) fn set(&mut self, done: u64, message: impl FnOnce() -> String) {
        let before = *self.before.get_or_insert_with(|| {
            self.bar.set_position(done.saturating_sub(1));
            self.bar.reset_eta();
            done.saturating_sub(1)
        });
        match self.lines {
            None if self.bar.is_hidden() => {}
            None => {
                self.bar.set_position(done);
                self.bar.set_message(message());
            }
            Some(what) if self.last_line.elapsed() >= BETWEEN_LINES => {
                self.last_line = Instant::now();
                let message = message();
                match self.length.filter(|&length| length > 0) {
                    Some(length) => {
                        let per_cent = done.min(length) * 100 / length;
                        let rate = done.saturating_sub(before) as f64
                            / self.started.elapsed().as_secs_f64();
                        let left = (length.saturating_sub(done) as f64 / rate.max(1e-9)).min(1e9);
                        say!("{what}: {per_cent} %, {message}, {} left", duration(left as u64));
                    }
                    None => say!("{what}: {message}"),
                }
            }
            Some(_) => {}
        }
    }

    /// Says something beside the bar.
    pub(crate) fn say(&self, message: &str) {
        self.bar.suspend(|| say!("{message}"));
    }

    /// Takes the bar away.
    pub(crate) fn finish(&self) {
        self.bar.finish_and_clear();
    }
}

/// `5 s`, `3 min`, `2 h 10 min`.
pub(crate) fn duration(seconds: u64) -> String {
    match seconds {
        0..100 => format!("{seconds} s"),
        100..6000 => format!("{} min", seconds.div_ceil(60)),
        _ => format!("{} h {} min", seconds / 3600, seconds % 3600 / 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_short() {
        assert_eq!([5, 121, 7800].map(duration), ["5 s", "3 min", "2 h 10 min"]);
    }
}
