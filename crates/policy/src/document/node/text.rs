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

/// Where the content of a block scalar begins. The parser gives the first line that is not empty, past the indentation;
/// empty lines before it are content too.
pub(super) fn block_content(first: Position, content: &str) -> Position {
    let empty = content.len() - content.trim_start_matches('\n').len();
    Position { line: first.line.saturating_sub(empty).max(1), column: first.column }
}

/// The place behind a text, its lines counted as the parser counts them.
fn end_of(text: &str) -> Position {
    let text = text.replace("\r\n", "\n");
    let line = text.matches(['\n', '\r']).count() + 1;
    let last = text.rsplit(['\n', '\r']).next().unwrap_or_default();
    Position { line, column: last.chars().count() + 1 }
}
