//! Where results go.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context;
use lapwing_store::{AtomicFile, sweep};

/// Age from which on a file of ours that nobody writes was left by a killed process.
const STALE: Duration = Duration::from_secs(60);

/// Standard output, whose errors say that it is.
#[derive(Debug)]
pub(crate) struct Stdout(io::Stdout);

/// Standard output.
pub(crate) fn stdout() -> Stdout {
    Stdout(io::stdout())
}

fn named(error: io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("standard output: {error}"))
}

impl Write for Stdout {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes).map_err(named)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush().map_err(named)
    }
}

/// Standard output, a pipe or device that is written to, or a file that appears under its name only when it is complete.
pub(crate) enum Output {
    Stdout(BufWriter<Stdout>),
    Through { file: BufWriter<File>, path: PathBuf },
    File { file: AtomicFile, path: PathBuf },
}

impl Output {
    /// Opens a file, or standard output where there is no path. An existing file is left alone unless `force` is given.
    /// What is no file stays what it is: pipes and terminals are written to, anything else is refused. A link is
    /// followed.
    pub(crate) fn open(path: Option<&Path>, force: bool) -> anyhow::Result<Self> {
        let Some(path) = path else { return Ok(Self::Stdout(BufWriter::new(stdout()))) };
        let failed = || format!("cannot write {}", path.display());
        if let Ok(found) = path.metadata()
            && is_stream(found.file_type())
        {
            let file = File::options().write(true).open(path).with_context(failed)?;
            return Ok(Self::Through { file: BufWriter::new(file), path: path.to_owned() });
        }
        if !force && path.symlink_metadata().is_ok() {
            anyhow::bail!("{} exists already; --force replaces it", path.display());
        }
        let place = match path.symlink_metadata() {
            Ok(found) if found.is_symlink() => path.canonicalize().with_context(failed)?,
            _ => path.to_owned(),
        };
        let file = AtomicFile::create(&place).with_context(failed)?;
        if let Some(directory) = place.parent() {
            let here = directory.as_os_str().is_empty();
            sweep(if here { Path::new(".") } else { directory }, STALE);
        }
        Ok(Self::File { file, path: path.to_owned() })
    }

    /// Ends the output: whatever was written is there now, or an error says why not.
    pub(crate) fn finish(self) -> anyhow::Result<()> {
        match self {
            Self::Stdout(mut stdout) => Ok(stdout.flush()?),
            Self::Through { mut file, path } => {
                file.flush().with_context(|| format!("cannot write {}", path.display()))
            }
            Self::File { file, path } => {
                file.commit().with_context(|| format!("cannot write {}", path.display()))
            }
        }
    }

    fn writer(&mut self) -> &mut dyn Write {
        match self {
            Self::Stdout(stdout) => stdout,
            Self::Through { file, .. } => file,
            Self::File { file, .. } => file,
        }
    }
}

/// Pipes, terminals and the like: what goes in comes out elsewhere.
fn is_stream(kind: std::fs::FileType) -> bool {
    #[cfg(unix)]
    {
        use std::os::unix::fs::FileTypeExt;
        kind.is_fifo() || kind.is_char_device()
    }
    #[cfg(not(unix))]
    {
        let _ = kind;
        false
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.writer().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.writer().flush()
    }
}

/// A count with separators for people.
pub(crate) fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_grouped() {
        assert_eq!([0, 999, 1000, 1_234_567].map(count), ["0", "999", "1,000", "1,234,567"]);
    }
}
