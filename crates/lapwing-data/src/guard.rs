//! A reader that watches the quoting of the text that passes through it.
//!
//! The CSV parser accepts an unclosed quote and then takes the rest of the file for one field. This guard follows the
//! same grammar one byte at a time and fails as soon as a record cannot be sane, so memory stays bounded and the error
//! names the line on which the trouble starts.

use std::collections::VecDeque;
use std::fmt;
use std::io::{self, Read};

/// Longest record in bytes.
pub(crate) const MAX_RECORD_BYTES: usize = 16 << 20;
/// Most fields in a record.
pub(crate) const MAX_COLUMNS: usize = 100_000;

/// What the guard objects to; travels inside an [`io::Error`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Objection {
    UnclosedQuote { line: u64 },
    TextAfterQuote { line: u64, opened: u64 },
    RecordTooLong { line: u64 },
    TooManyColumns { line: u64 },
}

impl fmt::Display for Objection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self:?}")
    }
}

impl std::error::Error for Objection {}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// At the first byte of a record; blank lines do not leave it.
    RecordStart,
    FieldStart,
    Plain,
    Quoted,
    /// After a quote inside a quoted field: its end, or the first half of a doubled quote.
    QuoteInQuoted,
}

/// See the module.
pub(crate) struct RecordGuard<R> {
    inner: R,
    delimiter: u8,
    state: State,
    line: u64,
    record_line: u64,
    quote_line: u64,
    record_bytes: usize,
    fields: usize,
    /// The lines on which records start that have passed and not been asked about.
    starts: VecDeque<u64>,
}

impl<R: Read> RecordGuard<R> {
    pub(crate) fn new(inner: R, delimiter: u8) -> Self {
        Self {
            inner,
            delimiter,
            state: State::RecordStart,
            line: 1,
            record_line: 1,
            quote_line: 1,
            record_bytes: 0,
            fields: 1,
            starts: VecDeque::new(),
        }
    }

    /// The line on which the next record starts, to be asked once for every record, the header included. (The parser
    /// itself gives the line after the record before, whether or not it is blank.)
    pub(crate) fn next_start(&mut self) -> u64 {
        self.starts.pop_front().unwrap_or(self.record_line)
    }

    fn follow(&mut self, bytes: &[u8]) -> Result<(), Objection> {
        for &byte in bytes {
            self.record_bytes += 1;
            // Most bytes: beyond quote, line end, tab and comma, and no semicolon, inside a plain field.
            if self.state == State::Plain && byte > b',' && byte != b';' {
                continue;
            }
            self.state = match (self.state, byte) {
                (State::Quoted, b'"') => State::QuoteInQuoted,
                (State::Quoted, _) => State::Quoted,
                (State::QuoteInQuoted, b'"') => State::Quoted,
                (_, b'\n' | b'\r') => {
                    self.check_length()?;
                    self.record_bytes = 0;
                    self.fields = 1;
                    State::RecordStart
                }
                (state, _) => {
                    if state == State::RecordStart {
                        self.record_line = self.line;
                        self.starts.push_back(self.line);
                    }
                    if byte == self.delimiter {
                        self.fields += 1;
                        if self.fields > MAX_COLUMNS {
                            return Err(Objection::TooManyColumns { line: self.record_line });
                        }
                        State::FieldStart
                    } else if state == State::QuoteInQuoted {
                        return Err(Objection::TextAfterQuote {
                            line: self.line,
                            opened: self.quote_line,
                        });
                    } else if byte == b'"' && state != State::Plain {
                        self.quote_line = self.line;
                        State::Quoted
                    } else {
                        State::Plain
                    }
                }
            };
            self.line += u64::from(byte == b'\n');
        }
        self.check_length()
    }

    fn check_length(&self) -> Result<(), Objection> {
        if self.record_bytes > MAX_RECORD_BYTES {
            return Err(Objection::RecordTooLong { line: self.record_line });
        }
        Ok(())
    }
}

impl<R: Read> Read for RecordGuard<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.inner.read(buffer)?;
        if count == 0 && !buffer.is_empty() && self.state == State::Quoted {
            return Err(io::Error::other(Objection::UnclosedQuote { line: self.quote_line }));
        }
        self.follow(&buffer[..count]).map_err(io::Error::other)?;
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<(), Objection> {
        let mut sink = Vec::new();
        match RecordGuard::new(text.as_bytes(), b',').read_to_end(&mut sink) {
            Ok(_) => Ok(()),
            Err(error) => Err(*error.get_ref().unwrap().downcast_ref().unwrap()),
        }
    }

    #[test]
    fn good_quoting_passes() {
        for text in [
            "",
            "a,b\n1,2",
            "\"a\",\"b\"\n",
            "\"a\"\"b\",c\r\n",
            "\"multi\nline\",2\n",
            "5\" pipe,x\n",
            "\"\",\"\"\n",
            "a\rb\r",
        ] {
            assert_eq!(read(text), Ok(()), "{text:?}");
        }
    }

    #[test]
    fn an_unclosed_quote_is_named_by_the_line_it_opens_on() {
        assert_eq!(read("a,b\n1,\"2\n3,4\n"), Err(Objection::UnclosedQuote { line: 2 }));
    }

    #[test]
    fn text_after_a_closing_quote_is_refused() {
        let text = "a,b\n\"x,1\n\"y\",2\n";
        assert_eq!(read(text), Err(Objection::TextAfterQuote { line: 3, opened: 2 }));
    }

    #[test]
    fn a_record_without_end_is_refused_before_it_is_swallowed() {
        let text = format!("a,b\n1,\"{}", "x".repeat(MAX_RECORD_BYTES + 1));
        assert_eq!(read(&text), Err(Objection::RecordTooLong { line: 2 }));
    }

    #[test]
    fn a_record_of_too_many_fields_is_refused() {
        let text = format!("\n\n{}", ",".repeat(MAX_COLUMNS));
        assert_eq!(read(&text), Err(Objection::TooManyColumns { line: 3 }));
        assert_eq!(read(&",".repeat(MAX_COLUMNS - 1)), Ok(()));
    }
}
