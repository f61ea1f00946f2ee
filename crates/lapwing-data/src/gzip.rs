//! gzip, member by member.

use std::io::{self, BufRead, Read};

use flate2::bufread::GzDecoder;

/// All members of a gzip file, one after the other.
///
/// Zeros behind the last member are the padding of tapes and block devices. Anything else is no part of the file: to skip
/// it would hide that two files were joined in the wrong way, and to decode it looks like a file that is cut short.
pub(crate) struct Gzip<R: BufRead> {
    member: Option<GzDecoder<R>>,
}

impl<R: BufRead> Gzip<R> {
    pub(crate) fn new(inner: R) -> Self {
        Self { member: Some(GzDecoder::new(inner)) }
    }
}

impl<R: BufRead> Read for Gzip<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while let Some(member) = &mut self.member {
            let count = member.read(buffer)?;
            if count > 0 || buffer.is_empty() {
                return Ok(count);
            }
            let Some(mut inner) = self.member.take().map(GzDecoder::into_inner) else { break };
            skip_zeros(&mut inner)?;
            match inner.fill_buf()?.first() {
                None => break,
                Some(0x1f) => self.member = Some(GzDecoder::new(inner)),
                Some(_) => {
                    return Err(io::Error::new(
                        io::ErrorKind::InvalidData,
                        "there are further bytes behind the end of the compressed data",
                    ));
                }
            }
        }
        Ok(0)
    }
}

fn skip_zeros(inner: &mut impl BufRead) -> io::Result<()> {
    loop {
        let bytes = inner.fill_buf()?;
        let zeros = bytes.iter().take_while(|byte| **byte == 0).count();
        let all = !bytes.is_empty() && zeros == bytes.len();
        inner.consume(zeros);
        if !all {
            return Ok(());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn packed(text: &str) -> Vec<u8> {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(text.as_bytes()).unwrap();
        encoder.finish().unwrap()
    }

    fn read(bytes: &[u8]) -> io::Result<String> {
        let mut text = String::new();
        Gzip::new(bytes).read_to_string(&mut text).map(|_| text)
    }

    #[test]
    fn members_are_read_in_turn_and_padding_is_skipped() {
        let mut bytes = [packed("a,b\n"), packed("1,2\n")].concat();
        assert_eq!(read(&bytes).unwrap(), "a,b\n1,2\n");
        bytes.resize(bytes.len() + 1000, 0);
        assert_eq!(read(&bytes).unwrap(), "a,b\n1,2\n");
    }

    #[test]
    fn bytes_behind_the_end_are_not_taken_for_a_file_that_is_cut_short() {
        let error = read(&[packed("a,b\n"), b"tail".to_vec()].concat()).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidData);
        assert!(error.to_string().contains("behind the end"), "{error}");
    }
}
