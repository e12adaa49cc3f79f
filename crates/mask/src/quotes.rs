//! Strings of JSON documents, one on each line of a stream.

/// Place in a line that may be a JSON document.
#[derive(Debug, Default)]
pub(super) struct Quotes {
    pub(super) is_in_string: bool,
    pub(super) is_escaped: bool,
}

impl Quotes {
    pub(super) fn pass(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            match byte {
                b'\n' => *self = Quotes::default(),
                _ if self.is_escaped => self.is_escaped = false,
                b'\\' => self.is_escaped = self.is_in_string,
                b'"' => self.is_in_string = !self.is_in_string,
                _ => {}
            }
        }
    }
}

pub(super) fn is_of_number(byte: u8) -> bool {
    byte.is_ascii_digit() || matches!(byte, b'-' | b'+' | b'.' | b'e' | b'E')
}
