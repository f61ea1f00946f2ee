//! The digest of what is written.

use std::io::{self, Write};

/// Passes on what is written, and knows its BLAKE3 digest: nobody needs to hold all of it for that.
#[derive(Debug)]
pub struct Digested<W> {
    to: W,
    hasher: blake3::Hasher,
}

impl<W: Write> Digested<W> {
    /// Writes to `to`.
    pub fn new(to: W) -> Self {
        Self { to, hasher: blake3::Hasher::new() }
    }

    /// What was written to, and the digest of what was written.
    pub fn finish(self) -> (W, blake3::Hash) {
        (self.to, self.hasher.finalize())
    }
}

impl<W: Write> Write for Digested<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.to.write(bytes)?;
        self.hasher.update(&bytes[..written]);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Takes three bytes at a time.
    struct Slow(Vec<u8>);

    impl Write for Slow {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let taken = bytes.len().min(3);
            self.0.extend(&bytes[..taken]);
            Ok(taken)
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn the_digest_is_that_of_what_arrived() {
        let mut digested = Digested::new(Slow(Vec::new()));
        digested.write_all(b"hello ").unwrap();
        digested.write_all(b"world").unwrap();
        let (Slow(bytes), digest) = digested.finish();
        assert_eq!(bytes, b"hello world");
        assert_eq!(digest, blake3::hash(&bytes));
    }
}
