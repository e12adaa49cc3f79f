//! Recordings of tool calls: JSON Lines, one call a line.
//!
//! A line is `{"tool": NAME, "input": VALUE, "reply": REPLY}`, where the reply is that of the protocol (`status`, `output`, `error`,
//! `error_code`, `error_details`). Secrets are cut before a line is written. Calls of tools that do not exist are not written.

use std::io::{self, Write};
use std::sync::{Arc, Mutex, PoisonError};

use proctor_core::json::Json;
use proctor_wire::atp::tool::{Call, CallShape, Reply};

use super::{ToolResult, to_reply};
use crate::run::SecretCutter;

/// A writer of tool calls and their results, shared by runs.
pub struct Recorder {
    output: Arc<Mutex<Box<dyn Write + Send>>>,
    cut_secrets: SecretCutter,
}

impl Recorder {
    /// Writes to `output`, whose access rights are up to the caller, what `cut_secrets` leaves of each call.
    pub fn new(output: Box<dyn Write + Send>, cut_secrets: SecretCutter) -> Recorder {
        Recorder { output: Arc::new(Mutex::new(output)), cut_secrets }
    }

    /// Writes one call.
    pub(super) async fn record(&self, tool: &str, input: &Json, result: &ToolResult) -> io::Result<()> {
        let Some(reply) = to_reply(result) else { return Ok(()) };
        let line = (self.cut_secrets)(line(tool, input, &reply));
        let output = Arc::clone(&self.output);
        let written = tokio::task::spawn_blocking(move || {
            let mut output = output.lock().unwrap_or_else(PoisonError::into_inner);
            // One write for the whole line: lines of several calls do not mix, and half a line is the last one.
            output.write_all(format!("{line}\n").as_bytes())?;
            output.flush()
        });
        written.await.unwrap_or_else(|error| Err(io::Error::other(error)))
    }
}

fn line(tool: &str, input: &Json, reply: &Reply) -> Json {
    let call = Call { tool: tool.to_owned(), input: None, task_id: None, shape: CallShape::Document };
    Json::object().with("tool", tool).with("input", input.clone()).with("reply", reply.to_json(&call))
}
