//! Where results go.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use anyhow::Context;
use tempfile::NamedTempFile;

/// Standard output, or a file that appears under its name only when it is complete.
pub(crate) enum Output {
    Stdout(BufWriter<io::Stdout>),
    File { file: BufWriter<NamedTempFile>, path: PathBuf },
}

impl Output {
    /// Opens a file, or standard output where there is no path. An existing file is left alone
    /// unless `force` is given.
    pub(crate) fn open(path: Option<&Path>, force: bool) -> anyhow::Result<Self> {
        let Some(path) = path else { return Ok(Self::Stdout(BufWriter::new(io::stdout()))) };
        if !force && path.symlink_metadata().is_ok() {
            anyhow::bail!("{} exists already; --force replaces it", path.display());
        }
        let directory = match path.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent,
            _ => Path::new("."),
        };
        let file = temporary(directory)
            .with_context(|| format!("cannot write to the directory {}", directory.display()))?;
        Ok(Self::File { file: BufWriter::new(file), path: path.to_owned() })
    }

    /// Ends the output: whatever was written is there now, or an error says why not.
    pub(crate) fn finish(self) -> anyhow::Result<()> {
        match self {
            Self::Stdout(mut stdout) => Ok(stdout.flush()?),
            Self::File { file, path } => {
                let failed = || format!("cannot write {}", path.display());
                let file = file
                    .into_inner()
                    .map_err(io::IntoInnerError::into_error)
                    .with_context(failed)?;
                file.as_file().sync_all().with_context(failed)?;
                file.persist(&path).with_context(failed)?;
                sync_directory(&path);
                Ok(())
            }
        }
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Stdout(stdout) => stdout.write(bytes),
            Self::File { file, .. } => file.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Stdout(stdout) => stdout.flush(),
            Self::File { file, .. } => file.flush(),
        }
    }
}

/// A temporary file with the permissions of an ordinary new one.
fn temporary(directory: &Path) -> io::Result<NamedTempFile> {
    let mut builder = tempfile::Builder::new();
    builder.prefix(".lapwing-");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        builder.permissions(std::fs::Permissions::from_mode(0o666));
    }
    builder.tempfile_in(directory)
}

/// Makes a rename last through a power cut, where the system lets us.
fn sync_directory(path: &Path) {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    if let Ok(directory) = File::open(parent.unwrap_or(Path::new("."))) {
        let _ = directory.sync_all();
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
