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
    /// Whether blank lines behind the header are records of one empty field; they are then passed on as `""`.
    blank_lines: bool,
    after_carriage_return: bool,
    has_header: bool,
    /// What is to be passed on, where that is not what was read.
    pending: VecDeque<u8>,
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
            blank_lines: false,
            after_carriage_return: false,
            has_header: false,
            pending: VecDeque::new(),
        }
    }

    /// Counts lines from this one on.
    pub(crate) fn counting_from(mut self, line: u64) -> Self {
        (self.line, self.record_line, self.quote_line) = (line, line, line);
        self
    }

    /// The parser skips blank lines; in a file of one column each is a missing value, and the rows behind it would be
    /// numbered wrongly.
    pub(crate) fn with_blank_lines_as_records(mut self, blank_lines: bool) -> Self {
        self.blank_lines = blank_lines;
        self
    }

    /// The line on which the next record starts, to be asked once for every record, the header included. (The parser
    /// itself gives the line after the record before, whether or not it is blank.)
    pub(crate) fn next_start(&mut self) -> u64 {
        self.starts.pop_front().unwrap_or(self.record_line)
    }

    fn follow(&mut self, bytes: &[u8]) -> Result<(), Objection> {
        for &byte in bytes {
            self.record_bytes += 1;
            // Most bytes: beyond quote, line end, tab and comma, and no delimiter, inside a plain field.
            if self.state == State::Plain && byte > b',' && byte != self.delimiter {
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
                        self.has_header = true;
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

impl<R: Read> RecordGuard<R> {
    /// Reads more and puts an empty field on every blank line behind the header.
    fn fill_blank_lines(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.inner.read(buffer)?;
        if count == 0 && self.state == State::Quoted {
            return Err(io::Error::other(Objection::UnclosedQuote { line: self.quote_line }));
        }
        for &byte in &buffer[..count] {
            let ends_line = byte == b'\r' || (byte == b'\n' && !self.after_carriage_return);
            if self.has_header && self.state == State::RecordStart && ends_line {
                self.starts.push_back(self.line);
                self.pending.extend(b"\"\"");
            }
            self.after_carriage_return = byte == b'\r' && self.state != State::Quoted;
            self.follow(&[byte]).map_err(io::Error::other)?;
            self.pending.push_back(byte);
        }
        Ok(count)
    }
}

impl<R: Read> Read for RecordGuard<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.blank_lines {
            while self.pending.is_empty() && self.fill_blank_lines(buffer)? > 0 {}
            return self.pending.read(buffer);
        }
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
    fn in_a_file_of_one_column_blank_lines_behind_the_header_are_empty_fields() {
        let read = |text: &str| {
            let mut seen = String::new();
            let guard = RecordGuard::new(text.as_bytes(), b',').with_blank_lines_as_records(true);
            let mut guard = guard;
            guard.read_to_string(&mut seen).unwrap();
            (seen, guard.starts.iter().copied().collect::<Vec<_>>())
        };
        assert_eq!(read("\nx\n1\n\n2\n"), ("\nx\n1\n\"\"\n2\n".to_owned(), vec![2, 3, 4, 5]));
        assert_eq!(
            read("x\r\n\r\n1\r\n\r\n"),
            ("x\r\n\"\"\r\n1\r\n\"\"\r\n".to_owned(), vec![1, 2, 3, 4])
        );
        assert_eq!(read("x\n\"a\n\nb\"\n").0, "x\n\"a\n\nb\"\n");
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
