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
                        let new = done.saturating_sub(before);
                        let left = seconds_left(new, length.saturating_sub(done), self.started)
                            .map_or_else(String::new, |left| format!(", {} left", duration(left)));
                        say!("{what}: {per_cent} %, {message}{left}");
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

/// How long the rest will take by what is new since the start; nothing where that is too little to tell.
fn seconds_left(new: u64, rest: u64, started: Instant) -> Option<u64> {
    let enough = new > 0 && new >= rest / 1000;
    enough.then(|| (started.elapsed().as_secs_f64() * rest as f64 / new as f64) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rest_is_told_once_enough_is_done() {
        let started = Instant::now() - Duration::from_secs(60);
        assert_eq!(seconds_left(1, 2, started), Some(120));
        assert_eq!(seconds_left(0, 2, started), None);
        assert_eq!(seconds_left(1, 1_000_000_000_000, started), None);
    }

    #[test]
    fn durations_are_short() {
        assert_eq!([5, 121, 7800].map(duration), ["5 s", "3 min", "2 h 10 min"]);
    }
}
