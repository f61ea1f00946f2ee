//! Small tables made for tests, and the program run on them.

#![allow(dead_code, reason = "each test file uses its part")]

use std::fmt::Write;
use std::path::{Path, PathBuf};

use assert_cmd::Command;
use assert_cmd::assert::Assert;

/// A directory that goes away with its tables.
pub struct Place(tempfile::TempDir);

impl Place {
    pub fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path(name);
        std::fs::write(&path, text).unwrap();
        path
    }

    pub fn read(&self, name: &str) -> Vec<u8> {
        let path = self.path(name);
        std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    }

    pub fn text(&self, name: &str) -> String {
        String::from_utf8(self.read(name)).unwrap()
    }

    /// `lapwing` with these words, started in the directory.
    pub fn lapwing(&self, words: &str) -> Command {
        let mut command = Command::cargo_bin("lapwing").unwrap();
        command.current_dir(self.0.path()).args(words.split_whitespace());
        command
    }

    /// Runs it and expects exit code 2, a message that holds all of `parts`, and no new file.
    pub fn refuses(&self, words: &str, parts: &[&str]) -> Assert {
        let before = self.files();
        let assert = self.lapwing(words).assert().code(2);
        let message = String::from_utf8(assert.get_output().stderr.clone()).unwrap();
        for part in parts {
            assert!(message.contains(part), "{part:?} is not in:\n{message}");
        }
        assert!(!message.contains("panicked"), "{message}");
        assert!(assert.get_output().stdout.is_empty());
        assert_eq!(self.files(), before, "{message}");
        assert
    }

    fn files(&self) -> Vec<PathBuf> {
        let mut found = Vec::new();
        let mut open = vec![self.0.path().to_owned()];
        while let Some(directory) = open.pop() {
            for entry in std::fs::read_dir(directory).unwrap() {
                let path = entry.unwrap().path();
                // Left by a killed process, it means nothing and goes with the next lock.
                if path.ends_with(".lapwing-lock") {
                    continue;
                }
                if path.is_dir() {
                    open.push(path.clone());
                }
                found.push(path);
            }
        }
        found.sort();
        found
    }
}

/// `lapwing` with these words, to be started in a directory and left to itself.
pub fn start(place: &Place, words: &str) -> std::process::Command {
    let mut command = std::process::Command::new(assert_cmd::cargo::cargo_bin!("lapwing"));
    command.args(words.split_whitespace()).current_dir(place.path(""));
    command.stdout(std::process::Stdio::null());
    command
}

/// Starts a run that writes checkpoints, and kills it after its second one.
pub fn killed(place: &Place, words: &str, run: &str) {
    let words = format!("{words} --out {run} --checkpoint-every 0");
    let mut child = start(place, &words).stderr(std::process::Stdio::null()).spawn().unwrap();
    let second = place.path(run).join("checkpoint/checkpoint.previous.safetensors");
    while !second.exists() {
        assert!(child.try_wait().unwrap().is_none(), "it ended before its second checkpoint");
        std::thread::sleep(std::time::Duration::from_millis(2));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    // Between its two renames it leaves the one before, and no last one.
    let last = second.with_file_name("checkpoint.safetensors");
    if !last.exists() {
        std::fs::copy(&second, last).unwrap();
    }
}

/// Numbers in [0, 1) that are the same every time.
pub struct Numbers(u64);

impl Numbers {
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((z ^ (z >> 31)) >> 11) as f64 / (1u64 << 53) as f64
    }
}

/// Columns a, b, ward and ill: ill where a + b > 1. The last ward of the given names says the contrary.
pub fn wards(rows: usize, names: &[&str], seed: u64) -> String {
    let mut numbers = Numbers::new(seed);
    let mut text = "a,b,ward,ill\n".to_owned();
    for row in 0..rows {
        let (a, b) = (numbers.next(), numbers.next());
        let ward = row % names.len();
        let ill = (a + b > 1.0) != (ward + 1 == names.len() && names.len() > 1);
        let name = names[ward].replace('"', "\"\"");
        let ill = if ill { "yes" } else { "no" };
        writeln!(text, "{a:.4},{b:.4},\"{name}\",{ill}").unwrap();
    }
    text
}

/// Columns a, b, ward and dose: dose = 3·a − b. The last of five wards gives any number.
pub fn doses(rows: usize, seed: u64) -> String {
    let mut numbers = Numbers::new(seed);
    let mut text = "a,b,ward,dose\n".to_owned();
    for row in 0..rows {
        let (a, b, any) = (numbers.next(), numbers.next(), numbers.next());
        let dose = if row % 5 == 4 { 4.0 * any - 1.0 } else { 3.0 * a - b };
        writeln!(text, "{a:.4},{b:.4},w{},{dose:.4}", row % 5).unwrap();
    }
    text
}

pub const WARDS: [&str; 5] = ["north", "south", "east", "west", "attic"];

pub fn file(run: &Path, name: &str) -> Vec<u8> {
    std::fs::read(run.join(name)).unwrap()
}
