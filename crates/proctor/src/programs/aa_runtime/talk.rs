//! What the program says on standard error, which nobody may be reading.

use std::sync::atomic::{AtomicBool, Ordering};

/// Says one line, without ever waiting for a reader.
pub fn say(line: &str) {
    crate::log::raw(&format!("aa-runtime: {line}"));
}

/// Says that something stopped working, and that it works again, each once.
#[derive(Debug, Default)]
pub struct Trouble {
    is_there: AtomicBool,
}

impl Trouble {
    /// It does not work.
    pub fn began(&self, line: impl FnOnce() -> String) {
        if !self.is_there.swap(true, Ordering::Relaxed) {
            say(&line());
        }
    }

    /// It works.
    pub fn ended(&self, line: &str) {
        // Read first: this is asked for every query.
        if self.is_there.load(Ordering::Relaxed) && self.is_there.swap(false, Ordering::Relaxed) {
            say(line);
        }
    }
}
