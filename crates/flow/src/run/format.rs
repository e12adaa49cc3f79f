//! Format that a task declares for its output (`output.format`).
//!
//! The check reads the captured output after masking, which is what conditions, results and files have.

use proctor_core::json::{Json, JsonError};

use super::capture::{Captured, MAX_CAPTURED};
use super::read::{member, text};

/// Values in one JSON document, at most: about 50 MB of memory.
const MAX_VALUES: usize = 1_000_000;

/// Declared format of standard output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Format {
    /// One JSON document.
    Json,
    /// A JSON document on each line that is not blank.
    Ndjson,
    /// UTF-8 text.
    Text,
}

/// Output that is not of the declared format.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum FormatError {
    #[error("the output is not JSON, as `output.format` says: {0}")]
    Json(JsonError),
    #[error("line {line} of the output is not JSON, as `output.format` says: {problem}")]
    Line { line: usize, problem: JsonError },
    #[error("the output is not UTF-8 text, as `output.format` says")]
    Text,
    #[error("the output is longer than {MAX_CAPTURED} bytes or incomplete: its format cannot be checked")]
    Incomplete,
}

impl Format {
    /// Reads the format of a task; `None` if it declares none.
    pub(super) fn of(task: &Json) -> Option<Format> {
        match member(task, "output").and_then(|output| text(output, "format"))? {
            "json" => Some(Format::Json),
            "ndjson" => Some(Format::Ndjson),
            _ => Some(Format::Text),
        }
    }

    /// Checks a captured stream.
    pub(super) fn check(self, captured: &Captured) -> Result<(), FormatError> {
        if !captured.is_whole() {
            return Err(FormatError::Incomplete);
        }
        let bytes = captured.bytes.as_slice();
        match self {
            Format::Text => std::str::from_utf8(bytes).map(drop).map_err(|_| FormatError::Text),
            Format::Json => Json::parse_bounded(bytes, MAX_VALUES).map(drop).map_err(FormatError::Json),
            Format::Ndjson => {
                for (index, line) in bytes.split(|byte| *byte == b'\n').enumerate() {
                    if line.iter().all(u8::is_ascii_whitespace) {
                        continue;
                    }
                    Json::parse_bounded(line, MAX_VALUES)
                        .map_err(|problem| FormatError::Line { line: index + 1, problem })?;
                }
                Ok(())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(format: &str, output: &[u8]) -> Result<(), FormatError> {
        let task = Json::object().with("output", Json::object().with("format", format));
        let mut captured = Captured::default();
        captured.add(output);
        Format::of(&task).unwrap().check(&captured)
    }

    #[test]
    fn output_is_of_the_format_or_not() {
        for (format, output) in [
            ("json", &b"{\"a\": [1, 2]}\n"[..]),
            ("json", b" \"text\" "),
            ("ndjson", b"{\"a\":1}\n\n[2]\r\n3"),
            ("ndjson", b""),
            ("text", "Grüße".as_bytes()),
            ("text", b""),
        ] {
            assert_eq!(check(format, output), Ok(()), "{format} {output:?}");
        }
        for (format, output) in [
            ("json", &b""[..]),
            ("json", b"{\"a\":1}{\"a\":2}"),
            ("json", b"{\"a\":1,\"a\":2}"),
            ("json", b"done: {}"),
            ("ndjson", b"{\"a\":1}\nnot json\n"),
            ("text", b"\xff\xfe"),
        ] {
            assert!(check(format, output).is_err(), "{format} {output:?}");
        }
        let error = check("ndjson", b"1\n\n{").unwrap_err();
        assert!(error.to_string().starts_with("line 3 of the output"), "{error}");
        assert_eq!(Format::of(&Json::object()), None);
    }

    #[test]
    fn output_that_was_cut_passes_for_no_format() {
        for format in ["json", "ndjson", "text"] {
            assert_eq!(check(format, &vec![b'1'; MAX_CAPTURED + 1]), Err(FormatError::Incomplete));
        }
    }
}
