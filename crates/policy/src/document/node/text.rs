//! Bytes to text, and places in it.

use saphyr_parser::Marker;

use super::MAX_SOURCE_BYTES;
use crate::document::Position;
use crate::document::problems::Problems;

/// The source as text: of bounded size, UTF-8, without a byte order mark, without control characters. (The parser takes
/// NUL for the end: what followed it would be in the file and not in force.)
pub(super) fn decode<'source>(source: &'source [u8], problems: &mut Problems) -> Option<&'source str> {
    let start = Position { line: 1, column: 1 };
    if source.len() > MAX_SOURCE_BYTES {
        let message = format!(
            "the source has {} bytes; a policy document may have at most {MAX_SOURCE_BYTES}, split it into several",
            source.len()
        );
        problems.add(start, message);
        return None;
    }
    if source.starts_with(&[0xFF, 0xFE]) || source.starts_with(&[0xFE, 0xFF]) {
        problems.add(start, "the source looks like UTF-16; save it as UTF-8");
        return None;
    }
    let source = source.strip_prefix("\u{FEFF}".as_bytes()).unwrap_or(source);
    let text = match std::str::from_utf8(source) {
        Ok(text) => text,
        Err(error) => {
            let valid = source.get(..error.valid_up_to()).and_then(|bytes| std::str::from_utf8(bytes).ok());
            let at = end_of(valid.unwrap_or_default());
            problems.add(at, "the source is not valid UTF-8 from here on; save it as UTF-8");
            return None;
        }
    };
    let forbidden = |character: char| character < ' ' && !matches!(character, '\t' | '\n' | '\r');
    if let Some((before, character)) = text
        .char_indices()
        .find(|(_, character)| forbidden(*character))
        .map(|(index, character)| (text.get(..index), character))
    {
        let at = end_of(before.unwrap_or_default());
        problems
            .add(at, format!("control character U+{:04X} in the source; remove it", u32::from(character)));
        return None;
    }
    Some(text)
}

/// The parser counts lines from 1 and columns from 0.
pub(super) fn position(marker: Marker) -> Position {
    Position { line: marker.line(), column: marker.col() + 1 }
}

/// The lines of a source, as the parser counts them.
pub(super) struct Lines<'source> {
    lines: Vec<&'source str>,
}

impl<'source> Lines<'source> {
    pub(super) fn of(source: &'source str) -> Lines<'source> {
        let mut lines = Vec::new();
        let mut rest = source;
        while let Some(end) = rest.find(['\n', '\r']) {
            let (line, after) = rest.split_at_checked(end).unwrap_or((rest, ""));
            lines.push(line);
            rest = after.strip_prefix("\r\n").or_else(|| after.get(1..)).unwrap_or_default();
        }
        lines.push(rest);
        Lines { lines }
    }

    /// Where the content of a block scalar begins: the line after its header, past the indentation. With leading empty
    /// lines that is an empty line, which is then also the first line of the content.
    pub(super) fn block_content(&self, header: Position, content: &str) -> Position {
        let is_blank = |line: &&&str| line.trim_start_matches(' ').is_empty();
        let first = self
            .lines
            .iter()
            .skip(header.line)
            .find(|line| !is_blank(line))
            .map_or(0, |line| leading_spaces(line));
        let kept =
            content.lines().find(|line| !line.trim_start_matches(' ').is_empty()).map_or(0, leading_spaces);
        Position { line: header.line + 1, column: first.saturating_sub(kept) + 1 }
    }
}

fn leading_spaces(line: &str) -> usize {
    line.len() - line.trim_start_matches(' ').len()
}

fn end_of(text: &str) -> Position {
    let lines = Lines::of(text).lines;
    Position { line: lines.len(), column: lines.last().map_or(0, |line| line.chars().count()) + 1 }
}
