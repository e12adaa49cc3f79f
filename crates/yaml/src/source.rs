//! Decoding of a source, and positions in it.

use saphyr_parser::Marker;

use crate::Position;
use crate::error::{ErrorKind, Errors};

/// Decodes a source: of bounded size, UTF-8, without a byte order mark, without control characters. (The parser takes NUL for the end:
/// what followed it would be in the file and not in force.)
pub(crate) fn decode<'source>(
    source: &'source [u8],
    limit: usize,
    errors: &mut Errors,
) -> Option<&'source str> {
    match check(source, limit) {
        Ok(text) => Some(text),
        Err((at, kind)) => {
            errors.add(at, kind);
            None
        }
    }
}

fn check(source: &[u8], limit: usize) -> Result<&str, (Position, ErrorKind)> {
    if source.len() > limit {
        return Err((Position::START, ErrorKind::TooLarge { bytes: source.len(), limit }));
    }
    if source.starts_with(&[0xFF, 0xFE]) || source.starts_with(&[0xFE, 0xFF]) {
        return Err((Position::START, ErrorKind::Utf16));
    }
    let source = source.strip_prefix("\u{FEFF}".as_bytes()).unwrap_or(source);
    let text = std::str::from_utf8(source).map_err(|error| {
        let valid = source.get(..error.valid_up_to()).and_then(|bytes| std::str::from_utf8(bytes).ok());
        (end_of(valid.unwrap_or_default()), ErrorKind::NotUtf8)
    })?;
    let forbidden = |character: char| character < ' ' && !matches!(character, '\t' | '\n' | '\r');
    match text.char_indices().find(|(_, character)| forbidden(*character)) {
        Some((index, character)) => {
            Err((end_of(text.get(..index).unwrap_or_default()), ErrorKind::ControlCharacter(character)))
        }
        None => Ok(text),
    }
}

/// Converts a position of the parser, which counts lines from 1 and columns from 0.
pub(crate) fn position(marker: Marker) -> Position {
    Position { line: marker.line(), column: marker.col() + 1 }
}

/// Start of a block scalar's content. The parser gives the first line that is not empty, past the indentation;
/// empty lines before it are content too.
pub(crate) fn block_content(first: Position, content: &str) -> Position {
    let empty = content.len() - content.trim_start_matches('\n').len();
    Position { line: first.line.saturating_sub(empty).max(1), column: first.column }
}

/// The position behind a text, its lines counted as the parser counts them.
fn end_of(text: &str) -> Position {
    let text = text.replace("\r\n", "\n");
    let line = text.matches(['\n', '\r']).count() + 1;
    let last = text.rsplit(['\n', '\r']).next().unwrap_or_default();
    Position { line, column: last.chars().count() + 1 }
}
