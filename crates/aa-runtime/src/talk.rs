//! Log lines about trouble that comes and goes.

use std::sync::atomic::{AtomicBool, Ordering};

/// Logs one line.
pub(crate) fn say(line: &str) {
    log::info!("{line}");
}

/// Says that something stopped working, and that it works again, each once.
#[derive(Debug, Default)]
pub(crate) struct Trouble {
    is_there: AtomicBool,
}

impl Trouble {
    /// It does not work.
    pub(crate) fn began(&self, line: impl FnOnce() -> String) {
        if !self.is_there.swap(true, Ordering::Relaxed) {
            say(&line());
        }
    }

    /// It works.
    pub(crate) fn ended(&self, line: &str) {
        // Read first: this is asked for every query.
        if self.is_there.load(Ordering::Relaxed) && self.is_there.swap(false, Ordering::Relaxed) {
            say(line);
        }
    }
}
