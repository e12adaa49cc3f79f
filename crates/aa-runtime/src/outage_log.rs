//! Log lines for recurring failures: one when a failure starts, one when it ends.

use std::sync::atomic::{AtomicBool, Ordering};

/// Logs the transitions of one dependency between working and failing, and nothing in between.
#[derive(Debug, Default)]
pub(crate) struct OutageLog {
    is_failing: AtomicBool,
}

impl OutageLog {
    /// Logs `line` if the previous attempt succeeded.
    pub(crate) fn failed(&self, line: impl FnOnce() -> String) {
        if !self.is_failing.swap(true, Ordering::Relaxed) {
            log::info!("{}", line());
        }
    }

    /// Logs `line` if the previous attempt failed.
    pub(crate) fn recovered(&self, line: &str) {
        // A plain load first: this runs for every query, and a swap would contend for the cache line.
        if self.is_failing.load(Ordering::Relaxed) && self.is_failing.swap(false, Ordering::Relaxed) {
            log::info!("{line}");
        }
    }
}
