//! Replay of a recording: each call gets the reply that the same call got when it was recorded.

use std::collections::{HashMap, VecDeque};
use std::io::{self, BufRead};
use std::sync::{Mutex, PoisonError};

use proctor_core::digest::Digest;
use proctor_core::json::{Json, JsonError};
use proctor_core::{canonical, quoted};
use proctor_net::lines::{self, Line};
use proctor_wire::atp::limits::{MAX_MESSAGE, MAX_VALUES};
use proctor_wire::atp::tool::Reply;
use proctor_wire::atp::{ErrorCode, ReadError};

use super::{CallFuture, ToolBackend, ToolInfo, ToolResult, from_reply};
use crate::run::SecretCutter;

/// Longest line: an input and an output of the protocol's longest messages.
const MAX_LINE: usize = 2 * MAX_MESSAGE + 64 * 1024;
/// Values of one line, for the same reason as in messages.
const MAX_LINE_VALUES: usize = 2 * MAX_VALUES;
/// Bytes of all lines: bounds the memory of a replay.
const MAX_BYTES: usize = 256 * 1024 * 1024;

/// A recording that is replayed to one run. A call that is not in it, or is made more often than in it, fails.
pub struct Replay {
    replies: Mutex<HashMap<Digest, VecDeque<ToolResult>>>,
    tools: Vec<ToolInfo>,
    cut_secrets: SecretCutter,
}

/// Error of reading a recording.
#[derive(Debug, thiserror::Error)]
pub enum ReplayError {
    /// The file cannot be read.
    #[error("the recording cannot be read: {0}")]
    Io(#[from] io::Error),
    /// A line is not JSON.
    #[error("line {line} of the recording is not JSON: {error}")]
    Json {
        /// Number of the line, from 1.
        line: usize,
        /// Description of the mistake.
        error: JsonError,
    },
    /// A line is not a recorded call.
    #[error("line {line} of the recording is no call: it has the members `tool`, `input` and `reply`")]
    NotACall {
        /// Number of the line, from 1.
        line: usize,
    },
    /// The reply of a line is not one of the protocol.
    #[error("line {line} of the recording has an invalid reply: {error}")]
    Reply {
        /// Number of the line, from 1.
        line: usize,
        /// Description of the mistake.
        error: ReadError,
    },
    /// The recording is too long.
    #[error(
        "line {line} of the recording is over the limit of {MAX_LINE} bytes a line and {MAX_BYTES} in all"
    )]
    TooLong {
        /// Number of the line, from 1.
        line: usize,
    },
}

impl Replay {
    /// Reads a recording. `cut_secrets` is applied to the input of each call before it is looked up, as it was when it was recorded.
    pub fn read(mut input: impl BufRead, cut_secrets: SecretCutter) -> Result<Replay, ReplayError> {
        let mut replies: HashMap<Digest, VecDeque<ToolResult>> = HashMap::new();
        let mut tools: Vec<ToolInfo> = Vec::new();
        let (mut number, mut bytes) = (0usize, 0usize);
        while let Some(line) = lines::read(&mut input, MAX_LINE)? {
            number += 1;
            let Line::Text(text) = line else { return Err(ReplayError::TooLong { line: number }) };
            bytes = bytes.saturating_add(text.len());
            if bytes > MAX_BYTES {
                return Err(ReplayError::TooLong { line: number });
            }
            if text.iter().all(u8::is_ascii_whitespace) {
                continue;
            }
            let (tool, key, result) = read_line(&text, number)?;
            replies.entry(key).or_default().push_back(result);
            if !tools.iter().any(|info| info.name == tool) {
                tools.push(ToolInfo { name: tool, description: None });
            }
        }
        Ok(Replay { replies: Mutex::new(replies), tools, cut_secrets })
    }

    fn next(&self, tool: &str, input: &Json) -> ToolResult {
        let key = key(tool, &(self.cut_secrets)(input.clone()));
        let mut replies = self.replies.lock().unwrap_or_else(PoisonError::into_inner);
        match replies.get_mut(&key).map(VecDeque::pop_front) {
            Some(Some(result)) => result,
            Some(None) => ToolResult::failed(
                format!("this call of {} was made less often in the recording", quoted(tool)),
                ErrorCode::ToolError,
            ),
            None if self.tools.iter().any(|info| info.name == tool) => ToolResult::failed(
                format!("the recording has no call of {} with this input", quoted(tool)),
                ErrorCode::ToolError,
            ),
            None => ToolResult::UnknownTool,
        }
    }
}

impl ToolBackend for Replay {
    fn call<'a>(&'a self, tool: &'a str, input: &'a Json) -> CallFuture<'a> {
        Box::pin(std::future::ready(self.next(tool, input)))
    }

    fn tools(&self) -> Vec<ToolInfo> {
        self.tools.clone()
    }
}

fn read_line(text: &[u8], line: usize) -> Result<(String, Digest, ToolResult), ReplayError> {
    let json =
        Json::parse_bounded(text, MAX_LINE_VALUES).map_err(|error| ReplayError::Json { line, error })?;
    let member = |name: &str| json.get(name).ok_or(ReplayError::NotACall { line });
    let tool = member("tool")?.as_str().ok_or(ReplayError::NotACall { line })?;
    let reply = Reply::read(member("reply")?.to_string().as_bytes());
    let reply = reply.map_err(|error| ReplayError::Reply { line, error })?;
    Ok((tool.to_owned(), key(tool, member("input")?), from_reply(reply)))
}

/// What a call is found by: its tool and its input, whatever the order of members.
fn key(tool: &str, input: &Json) -> Digest {
    Digest::of(canonical::claimed(&Json::Array(vec![tool.into(), input.clone()])).as_bytes())
}

#[cfg(test)]
mod tests;
