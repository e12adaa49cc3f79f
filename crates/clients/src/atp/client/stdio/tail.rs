//! The last lines of a log.

use std::collections::VecDeque;

use super::super::error::start_of;

/// Lines that are kept.
const LINES: usize = 20;
/// Bytes of a line that are kept.
const LINE: usize = 2 * 1024;

/// The last [`LINES`] lines, each cut to [`LINE`] bytes.
#[derive(Debug, Default)]
pub(super) struct Tail(VecDeque<Box<[u8]>>);

impl Tail {
    pub(super) fn push(&mut self, line: &[u8]) {
        if self.0.len() == LINES {
            self.0.pop_front();
        }
        // One byte more than is shown, so that the cut is marked.
        self.0.push_back(line.get(..=LINE).unwrap_or(line).into());
    }

    pub(super) fn lines(&self) -> Vec<String> {
        self.0.iter().map(|line| start_of(line, LINE)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_lines_are_kept_and_cut() {
        let mut tail = Tail::default();
        for number in 0..100 {
            tail.push(format!("line {number}").as_bytes());
        }
        tail.push(&vec![b'x'; 1 << 20]);
        let lines = tail.lines();
        assert_eq!((lines.len(), lines[0].as_str()), (LINES, "line 81"));
        assert_eq!(lines[LINES - 1].len(), LINE + "…".len());
    }
}
