//! Errors of calls to an engine.

use std::fmt;
use std::process::ExitStatus;
use std::sync::Arc;
use std::time::Duration;

use super::messages::EngineError;

/// Bytes of an engine's standard error in an error text.
const EXCERPT: usize = 2000;

/// A call without a result.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ClientError {
    /// The program could not be started.
    #[error("the engine `{program}` cannot be started: {problem}")]
    Start {
        /// The program.
        program: String,
        /// The system's error.
        problem: String,
    },
    /// The engine lacks capabilities that were required.
    #[error(
        "the engine (version `{engine_version}`) lacks required capabilities: {}; use another engine, or configure what it needs for them",
        quoted(missing)
    )]
    Incompatible {
        /// The engine's version.
        engine_version: String,
        /// The missing capabilities.
        missing: Vec<String>,
    },
    /// The engine answered with an error.
    #[error("the engine refused `{method}`: {error}")]
    Refused {
        /// The method.
        method: String,
        /// The engine's error.
        error: EngineError,
    },
    /// The time limit passed. The engine may still work on the request; its late answer will be ignored.
    #[error("`{method}` took longer than {} ms: {stage}{}", after.as_millis(), StderrExcerpt(stderr))]
    Timeout {
        /// The method.
        method: String,
        /// The limit.
        after: Duration,
        /// The stage that the call had reached.
        stage: Stage,
        /// The end of the engine's standard error.
        stderr: String,
    },
    /// The engine exited or closed its streams.
    #[error(transparent)]
    Ended(#[from] EngineEnd),
    /// The engine's answer violates the protocol.
    #[error("the engine's answer to `{method}` breaks the protocol: {problem}")]
    Protocol {
        /// The method.
        method: String,
        /// The violation.
        problem: String,
    },
    /// The answer is longer than the limit.
    #[error("the engine's answer to `{method}` is longer than {max} bytes")]
    AnswerTooLong {
        /// The method.
        method: String,
        /// The limit.
        max: usize,
    },
    /// The request is longer than the limit; nothing was sent.
    #[error("`{method}` is longer than {max} bytes, the most that an engine takes: send a smaller trace")]
    RequestTooLong {
        /// The method.
        method: String,
        /// The limit.
        max: usize,
    },
    /// The parameters cannot be written as JSON; nothing was sent.
    #[error("the parameters of `{method}` cannot be written as JSON: {problem}")]
    Unserializable {
        /// The method.
        method: String,
        /// The encoder's message.
        problem: String,
    },
    /// The engine could not be ended.
    #[error("the engine cannot be ended: {0}")]
    Unstoppable(String),
}

/// The end of an engine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EngineEnd {
    /// The exit status; none if the engine only closed its standard input or output.
    pub status: Option<ExitStatus>,
    /// The end of its standard error.
    pub stderr: Arc<str>,
}

/// The stage of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// Waiting for an earlier call to end.
    Slot,
    /// Waiting for the engine to read the request.
    Write,
    /// Waiting for the answer.
    Answer,
}

impl std::error::Error for EngineEnd {}

impl fmt::Display for EngineEnd {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.status {
            Some(status) => write!(out, "the engine ended ({status})")?,
            None => write!(out, "the engine closed its standard input or output")?,
        }
        StderrExcerpt(&self.stderr).fmt(out)
    }
}

impl fmt::Display for Stage {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Stage::Slot => "too many calls were before it",
            Stage::Write => "the engine did not read it",
            Stage::Answer => "the engine did not answer",
        })
    }
}

/// The end of an engine's standard error, for an error text: whole lines if possible, without control characters.
struct StderrExcerpt<'a>(&'a str);

impl fmt::Display for StderrExcerpt<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = self.0.trim();
        if text.is_empty() {
            return Ok(());
        }
        let start = text.ceil_char_boundary(text.len().saturating_sub(EXCERPT));
        let mut end = text.get(start..).unwrap_or_default();
        if start > 0
            && let Some((_, whole)) = end.split_once('\n')
        {
            end = whole;
        }
        out.write_str("; its last words:")?;
        for line in end.lines() {
            out.write_str("\n  ")?;
            for character in line.chars() {
                let shown = if character.is_control() && character != '\t' { '\u{fffd}' } else { character };
                fmt::Write::write_char(out, shown)?;
            }
        }
        Ok(())
    }
}

fn quoted(names: &[String]) -> String {
    if names.is_empty() {
        return "it does not say which".to_owned();
    }
    names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn last_words_are_short_whole_lines_without_control_characters() {
        let stderr = format!("{}\nlast\u{1b}[31m line\r\n", "x".repeat(5000));
        let text = EngineEnd { status: None, stderr: stderr.into() }.to_string();
        assert_eq!(
            text,
            "the engine closed its standard input or output; its last words:\n  last\u{fffd}[31m line"
        );
        let long = EngineEnd { status: None, stderr: "\u{e4}".repeat(5000).into() }.to_string();
        assert!(long.len() < EXCERPT + 100);
        let silent = EngineEnd { status: None, stderr: " \n".into() }.to_string();
        assert_eq!(silent, "the engine closed its standard input or output");
    }

    #[test]
    fn an_incompatible_engine_is_told_with_what_it_lacks() {
        let missing = vec!["plugins".to_owned(), "simulation".to_owned()];
        let text = ClientError::Incompatible { engine_version: "0.4.0".to_owned(), missing }.to_string();
        assert!(text.contains("lacks required capabilities: `plugins`, `simulation`"), "{text}");
    }
}
