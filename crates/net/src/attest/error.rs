//! What can go wrong between a caller and an engine.

use std::fmt;
use std::process::ExitStatus;
use std::sync::Arc;
use std::time::Duration;

use super::messages::EngineError;

/// How much of an engine's last words stands in an error text.
const EXCERPT: usize = 2000;

/// Why a call has no result.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ClientError {
    /// The program could not be started.
    #[error("the engine `{program}` cannot be started: {problem}")]
    Start {
        /// Which program.
        program: String,
        /// What the system says.
        problem: String,
    },
    /// The engine lacks capabilities that were required.
    #[error(
        "the engine (version `{engine_version}`) lacks required capabilities: {}; use another engine, or configure what it needs for them",
        quoted(missing)
    )]
    Incompatible {
        /// What the engine says about itself.
        engine_version: String,
        /// What it lacks.
        missing: Vec<String>,
    },
    /// The engine answered with an error.
    #[error("the engine refused `{method}`: {error}")]
    Refused {
        /// The method that was called.
        method: String,
        /// What the engine says.
        error: EngineError,
    },
    /// It took too long. The engine may still work on it; its late answer will be left out.
    #[error("`{method}` took longer than {} ms: {stage}{}", after.as_millis(), LastWords(stderr))]
    Timeout {
        /// The method that was called.
        method: String,
        /// The limit.
        after: Duration,
        /// What was waited for when the time was over.
        stage: Stage,
        /// What the engine wrote last to its standard error.
        stderr: String,
    },
    /// The engine ended, or cannot be talked to any more.
    #[error(transparent)]
    Ended(#[from] EngineEnd),
    /// The engine's answer breaks the protocol.
    #[error("the engine's answer to `{method}` breaks the protocol: {problem}")]
    Protocol {
        /// The method that was called.
        method: String,
        /// In which way.
        problem: String,
    },
    /// The answer is longer than the limit.
    #[error("the engine's answer to `{method}` is longer than {max} bytes")]
    AnswerTooLong {
        /// The method that was called.
        method: String,
        /// The limit.
        max: usize,
    },
    /// The request is longer than an engine takes; nothing was sent.
    #[error("`{method}` is longer than {max} bytes, the most that an engine takes: send a smaller trace")]
    RequestTooLong {
        /// The method that was called.
        method: String,
        /// The limit.
        max: usize,
    },
    /// The parameters cannot be written as JSON; nothing was sent.
    #[error("the parameters of `{method}` cannot be written as JSON: {problem}")]
    Unserializable {
        /// The method that was called.
        method: String,
        /// Why.
        problem: String,
    },
    /// The system does not let us end the engine.
    #[error("the engine cannot be ended: {0}")]
    Unstoppable(String),
}

/// How an engine ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EngineEnd {
    /// Its exit status; none if it only closed its standard input or output.
    pub status: Option<ExitStatus>,
    /// What it wrote last to its standard error.
    pub stderr: Arc<str>,
}

/// What a call was waiting for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// For one of the calls before it to end.
    Slot,
    /// For the engine to read the request.
    Write,
    /// For the answer.
    Answer,
}

impl std::error::Error for EngineEnd {}

impl fmt::Display for EngineEnd {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.status {
            Some(status) => write!(out, "the engine ended ({status})")?,
            None => write!(out, "the engine closed its standard input or output")?,
        }
        LastWords(&self.stderr).fmt(out)
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

/// The end of what an engine wrote, for an error text: whole lines if possible, and nothing that steers a terminal.
struct LastWords<'a>(&'a str);

impl fmt::Display for LastWords<'_> {
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
