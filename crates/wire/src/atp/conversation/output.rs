//! Standard output: one JSON text, or lines of which one is the response.

use proctor_core::json::{Json, JsonProblem};

use super::{Conversation, ConversationProblem, Source};
use crate::atp::limits::MAX_MESSAGE;
use crate::atp::read::{ReadError, parse_json};

/// Lines that could be the response. Two are enough to know that there is not only one.
#[derive(Default)]
struct Candidates {
    found: Vec<Json>,
}

impl Candidates {
    fn add(&mut self, json: Json) {
        if self.found.len() < 2 {
            self.found.push(json);
        }
    }
}

pub(super) fn feed(conversation: &mut Conversation, output: &[u8]) {
    let text = output.trim_ascii();
    if text.first() != Some(&b'{') || text.len() > MAX_MESSAGE {
        feed_lines(conversation, text);
        return;
    }
    match parse_json(text) {
        Ok(json) => {
            // Nothing else was written, so this must be the response, unless it says otherwise.
            let source = if json.get("event_type").is_some() { Source::Event } else { Source::Response };
            conversation.feed_json(source, json, text.len());
        }
        Err(error) => {
            feed_lines(conversation, text);
            // One text over many lines is explained by its own error, not by that of its last line.
            if let ReadError::Json(error) = error
                && error.problem != JsonProblem::TrailingText
            {
                conversation.syntax_error = Some(error);
            }
        }
    }
}

fn feed_lines(conversation: &mut Conversation, text: &[u8]) {
    // Structured log lines have a `status` too: a line with a task id outweighs those without.
    let mut with_task = Candidates::default();
    let mut without_task = Candidates::default();
    for line in text.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii) {
        if line.first() != Some(&b'{') {
            if line.len() > MAX_MESSAGE {
                conversation.feed_too_large(line.len() as u64);
            }
            continue;
        }
        match parse_json(line) {
            Ok(json) if json.get("event_type").is_some() => {
                conversation.feed_json(Source::StderrLine, json, line.len());
            }
            Ok(json) if json.get("status").is_some() => {
                let candidates =
                    if json.get("task_id").is_some() { &mut with_task } else { &mut without_task };
                candidates.add(json);
            }
            Ok(_) | Err(ReadError::Invalid(_)) => {}
            Err(ReadError::Json(error)) => {
                if matches!(error.problem, JsonProblem::TooDeep | JsonProblem::TooManyValues) {
                    conversation.refuse(ConversationProblem::NotJson(error.clone()));
                }
                conversation.syntax_error = Some(error);
            }
            Err(ReadError::TooLarge { bytes }) => {
                conversation.feed_too_large(bytes);
            }
        }
    }
    let chosen = if with_task.found.is_empty() { without_task } else { with_task };
    for json in chosen.found {
        conversation.take_response(json);
    }
}
