//! Lines of bounded length from a byte stream.

use std::io::{self, BufRead};

/// The longest line that is read whole.
pub const MAX_LINE: usize = 4 << 20;

/// A line, without its end.
#[derive(Debug, PartialEq, Eq)]
pub enum Line {
    /// As it came; it may be anything but a newline.
    Whole(Vec<u8>),
    /// Longer than [`MAX_LINE`]: its length. It was skipped, not kept.
    TooLong(u64),
}

/// The next line; `None` at the end. A last line without a newline counts.
pub fn next(input: &mut impl BufRead) -> io::Result<Option<Line>> {
    next_within(input, MAX_LINE)
}

/// The next line, if it has at most so many bytes.
pub fn next_within(input: &mut impl BufRead, longest: usize) -> io::Result<Option<Line>> {
    let mut line = Vec::new();
    let mut length = 0u64;
    loop {
        let buffer = match input.fill_buf() {
            Ok(buffer) => buffer,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        if buffer.is_empty() {
            return Ok((length > 0).then(|| finish(line, length, longest)));
        }
        let end = buffer.iter().position(|byte| *byte == b'\n');
        let part = buffer.get(..end.unwrap_or(buffer.len())).unwrap_or_default();
        length += part.len() as u64;
        if length <= longest as u64 {
            line.extend_from_slice(part);
        } else {
            line = Vec::new();
        }
        let used = part.len() + usize::from(end.is_some());
        input.consume(used);
        if end.is_some() {
            return Ok(Some(finish(line, length, longest)));
        }
    }
}

fn finish(line: Vec<u8>, length: u64, longest: usize) -> Line {
    if length <= longest as u64 { Line::Whole(line) } else { Line::TooLong(length) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_lines_are_skipped_and_the_next_is_read() {
        let mut text = vec![b'x'; MAX_LINE + 1];
        text.extend_from_slice(b"\nshort\n\nlast");
        let mut input = io::BufReader::with_capacity(7, text.as_slice());
        assert_eq!(next(&mut input).unwrap(), Some(Line::TooLong(MAX_LINE as u64 + 1)));
        assert_eq!(next(&mut input).unwrap(), Some(Line::Whole(b"short".to_vec())));
        assert_eq!(next(&mut input).unwrap(), Some(Line::Whole(Vec::new())));
        assert_eq!(next(&mut input).unwrap(), Some(Line::Whole(b"last".to_vec())));
        assert_eq!(next(&mut input).unwrap(), None);
    }
}
