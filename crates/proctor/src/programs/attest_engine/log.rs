//! The engine's log: lines of JSON on standard error, without waiting for a reader.

use std::str::FromStr;

use proctor_core::json::Json;
use proctor_core::time::Clock;

use proctor_system::SystemClock;

/// Severity of a log line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Details for finding defects.
    Debug,
    /// Normal events.
    Info,
    /// Possible problems.
    Warn,
    /// Errors.
    Error,
}

impl FromStr for Level {
    type Err = ();

    fn from_str(text: &str) -> Result<Level, ()> {
        Ok(match text {
            "debug" => Level::Debug,
            "info" => Level::Info,
            "warn" => Level::Warn,
            "error" => Level::Error,
            _ => return Err(()),
        })
    }
}

/// Writes what is important enough.
pub struct Log {
    least: Level,
}

impl Log {
    /// Leaves out what is less important.
    pub fn new(least: Level) -> Log {
        Log { least }
    }

    /// Whether a line of this level is written.
    pub fn shows(&self, level: Level) -> bool {
        level >= self.least
    }

    /// Writes a line, without ever waiting for a reader.
    pub fn write(&self, level: Level, message: &str) {
        if !self.shows(level) {
            return;
        }
        let word = match level {
            Level::Debug => "DEBUG",
            Level::Info => "INFO",
            Level::Warn => "WARN",
            Level::Error => "ERROR",
        };
        let line = Json::object()
            .with("time", SystemClock.now().to_string())
            .with("level", word)
            .with("msg", message);
        crate::logging::raw(&line.to_string());
    }
}
