//! The response in a standard output that may hold other lines.

use bytes::Bytes;
use proctor_net::lines::Line;

use super::super::error::start_of;
use super::{MAX_MESSAGE, OutputError, shape};

/// Lines that are kept of an output that is too long to be kept as a whole: a second response is an error, which a third does not
/// change.
const KEPT: usize = 2;
/// Bytes of the output in an error.
const START: usize = 500;

/// The output so far, while it may be one message; then only those of its lines that may be the response.
#[derive(Debug)]
pub(super) struct Output {
    /// None once it was longer than [`MAX_MESSAGE`].
    whole: Option<Vec<u8>>,
    candidates: Vec<Bytes>,
    /// The start of an output that is not kept.
    start: Vec<u8>,
    has_overlong: bool,
}

impl Default for Output {
    fn default() -> Output {
        Output { whole: Some(Vec::new()), candidates: Vec::new(), start: Vec::new(), has_overlong: false }
    }
}

impl Output {
    pub(super) fn push(&mut self, line: &Line) {
        match (line, &mut self.whole) {
            (Line::TooLong(_), _) => {
                self.has_overlong = true;
                self.give_up_whole();
            }
            (Line::Text(line), Some(whole)) if whole.len() + line.len() < MAX_MESSAGE => {
                whole.extend_from_slice(line);
                whole.push(b'\n');
            }
            (Line::Text(line), _) => {
                self.give_up_whole();
                self.consider(line);
            }
        }
    }

    /// The whole output if it is one object or a line of it may be the response. Which one it is, is a rule of the protocol.
    pub(super) fn finish(mut self) -> Result<Bytes, OutputError> {
        let mut syntax = None;
        if let Some(whole) = self.whole.take() {
            let mut lines = whole.split(|byte| *byte == b'\n');
            if shape::is_object(&whole) || lines.any(shape::is_response) {
                let mut text = Bytes::from(whole);
                text.truncate(text.trim_ascii_end().len());
                return Ok(text);
            }
            syntax = shape::syntax_error(&whole);
            self.start = whole;
        }
        if !self.candidates.is_empty() {
            return Ok(Bytes::from(self.candidates.join(&b'\n')));
        }
        if self.has_overlong {
            return Err(OutputError::TooLong);
        }
        match start_of(self.start.trim_ascii(), START) {
            start if start.is_empty() => Err(OutputError::Empty),
            start => Err(OutputError::NoResponse { start, syntax }),
        }
    }

    fn give_up_whole(&mut self) {
        let Some(whole) = self.whole.take() else { return };
        for line in whole.split(|byte| *byte == b'\n') {
            self.consider(line);
        }
        // One byte more than is shown, so that the cut is marked.
        self.start = whole.trim_ascii().iter().take(START + 1).copied().collect();
    }

    fn consider(&mut self, line: &[u8]) {
        if self.candidates.len() < KEPT && shape::is_response(line) {
            self.candidates.push(Bytes::copy_from_slice(line));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn output(lines: &[&str]) -> Result<String, OutputError> {
        let mut output = Output::default();
        for line in lines {
            output.push(&Line::Text(Bytes::copy_from_slice(line.as_bytes())));
        }
        Ok(String::from_utf8(output.finish()?.to_vec()).unwrap())
    }

    const RESPONSE: &str = r#"{"task_id":"t","status":"completed"}"#;

    #[test]
    fn an_output_with_a_response_is_kept_as_it_is() {
        for lines in [
            &[RESPONSE][..],
            &["", RESPONSE],
            &["{", "  \"status\": \"failed\"", "}"],
            &["loading", RESPONSE, "bye"],
            &[RESPONSE, RESPONSE],
            // An object that is the whole output is judged by its reader, with the path of what is missing.
            &["{}"],
        ] {
            assert_eq!(output(lines), Ok(lines.join("\n")));
        }
    }

    #[test]
    fn an_output_without_a_response_says_what_it_is() {
        assert_eq!(output(&[]), Err(OutputError::Empty));
        assert_eq!(output(&["", "  "]), Err(OutputError::Empty));
        assert_eq!(output(&["42"]), Err(OutputError::NoResponse { start: "42".to_owned(), syntax: None }));
        let Err(error) = output(&["{\"cost_usd\": NaN}"]) else { panic!() };
        assert_eq!(
            error.to_string(),
            "the agent wrote no response on standard output, but `{\"cost_usd\": NaN}`, which is not valid JSON: expected value at line 1 column 14"
        );
        let long = "x".repeat(2 * START);
        let Err(OutputError::NoResponse { start, .. }) = output(&[&long]) else { panic!() };
        assert_eq!(start, format!("{}…", "x".repeat(START)));
    }

    #[test]
    fn memory_is_bounded_and_a_response_after_a_flood_is_found() {
        let mut output = Output::default();
        let line = Bytes::from(vec![b'x'; 1 << 20]);
        for _ in 0..40 {
            output.push(&Line::Text(line.clone()));
        }
        assert!(output.whole.is_none());
        output.push(&Line::TooLong(1 << 30));
        for _ in 0..10 {
            output.push(&Line::Text(Bytes::from_static(RESPONSE.as_bytes())));
        }
        assert_eq!(output.finish().unwrap(), format!("{RESPONSE}\n{RESPONSE}"));
        let mut output = Output::default();
        output.push(&Line::TooLong(1 << 30));
        assert_eq!(output.finish(), Err(OutputError::TooLong));
    }
}
