//! Protocol buffers, as far as they are needed: numbers, bytes, and messages within messages.

/// A message that is being written. Fields may come in any order, and are written where they are not the default.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Message(Vec<u8>);

const VARINT: u64 = 0;
const LENGTH: u64 = 2;
const FOUR_BYTES: u64 = 5;

impl Message {
    pub(crate) fn into_bytes(self) -> Vec<u8> {
        self.0
    }

    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }

    fn key(&mut self, field: u64, wire: u64) {
        self.varint(field << 3 | wire);
    }

    /// A negative number takes ten bytes, as the format has it.
    pub(crate) fn int(mut self, field: u64, value: i64) -> Self {
        self.key(field, VARINT);
        self.varint(value as u64);
        self
    }

    pub(crate) fn float(mut self, field: u64, value: f32) -> Self {
        self.key(field, FOUR_BYTES);
        self.0.extend(value.to_le_bytes());
        self
    }

    pub(crate) fn bytes(mut self, field: u64, bytes: &[u8]) -> Self {
        self.key(field, LENGTH);
        self.varint(bytes.len() as u64);
        self.0.extend(bytes);
        self
    }

    pub(crate) fn text(self, field: u64, text: &str) -> Self {
        self.bytes(field, text.as_bytes())
    }

    pub(crate) fn message(self, field: u64, message: Self) -> Self {
        self.bytes(field, &message.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_those_of_the_specification() {
        // The examples of the encoding's own documentation: field 1 is 150; field 2 is "testing"; field 3 holds the first.
        let first = Message::default().int(1, 150);
        assert_eq!(first.0, [0x08, 0x96, 0x01]);
        let second = Message::default().text(2, "testing");
        assert_eq!(second.0, [0x12, 0x07, 0x74, 0x65, 0x73, 0x74, 0x69, 0x6e, 0x67]);
        assert_eq!(Message::default().message(3, first).0, [0x1a, 0x03, 0x08, 0x96, 0x01]);
        assert_eq!(Message::default().int(1, -2).0.len(), 11);
        assert_eq!(Message::default().float(2, 1.0).0, [0x15, 0, 0, 0x80, 0x3f]);
        assert_eq!(Message::default().int(20, 1).0, [0xa0, 0x01, 0x01]);
    }
}
