//! Printed tables.

use std::time::Duration;

/// A Markdown table. Nothing of it is printed before everything is measured: an engine that fails has no numbers.
#[derive(Default)]
pub struct Table {
    rows: Vec<String>,
}

/// A bound that a measure should keep.
pub enum Goal {
    /// Nothing is promised.
    None,
    /// Goal, and whether it was kept.
    Of(&'static str, bool),
}

impl Table {
    /// Adds a row.
    pub fn row(&mut self, what: &str, measured: &str, floor: &str, goal: &Goal) {
        let goal = match goal {
            Goal::None => String::new(),
            Goal::Of(what, kept) => format!("{what}: {}", if *kept { "kept" } else { "**missed**" }),
        };
        self.rows.push(format!("| {what} | {measured} | {floor} | {goal} |"));
    }

    /// Prints everything.
    pub fn print(&self) {
        println!("| what | measured | floor | goal |\n|---|--:|--:|---|\n{}", self.rows.join("\n"));
    }
}

/// A time of a few microseconds.
pub fn micros(time: Duration) -> String {
    format!("{:.1} µs", time.as_secs_f64() * 1e6)
}

/// A time of a few milliseconds.
pub fn millis(time: Duration) -> String {
    format!("{:.2} ms", time.as_secs_f64() * 1e3)
}

/// An amount of memory.
pub fn megabytes(bytes: u64) -> String {
    format!("{:.1} MB", bytes as f64 / 1e6)
}

/// The value that this share of them does not exceed. Sorts them.
pub fn percentile(times: &mut [Duration], share: f64) -> Duration {
    times.sort_unstable();
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a place in a list")]
    let place = (times.len() as f64 * share) as usize;
    times.get(place.min(times.len().saturating_sub(1))).copied().unwrap_or_default()
}

/// The middle one.
pub fn median(times: &mut [Duration]) -> Duration {
    percentile(times, 0.5)
}
