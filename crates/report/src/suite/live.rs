//! The live line of a suite run, as text and control sequences for a terminal. Nothing here touches one.

use std::time::Duration;

use proctor_core::printable::shown;
use proctor_runner::results::{Counts, TestResult};
use proctor_runner::scoring::Verdict;
use unicode_width::UnicodeWidthStr as _;

/// Characters of a running test's name.
const NAME: usize = 60;

/// Bytes of lines that wait to be printed: a terminal that is stopped must not fill the memory.
const MAX_WAITING: usize = 1 << 20;

/// Erases from the cursor to the end of the row.
const ERASE: &str = "\u{1b}[K";

/// State of a suite run, shown on the last row of a terminal, with lines of text printed above it.
///
/// ```
/// use std::time::Duration;
///
/// let mut live = proctor_report::LiveLine::new(2);
/// live.started("hello", "Says hello", (1, 1));
/// assert_eq!(live.line(80, Duration::from_secs(7)), "0/2 tests, 0 passed, 0 failed, 0:07: Says hello");
/// ```
#[derive(Debug, Default)]
pub struct LiveLine {
    total: usize,
    counts: Counts,
    running: Vec<Running>,
    is_interrupted: bool,
    above: String,
    dropped: usize,
    drawn: String,
}

/// A test that runs: its name, and the number of its run among all of them.
#[derive(Debug)]
struct Running {
    id: String,
    name: String,
    run: (u32, u32),
}

impl LiveLine {
    /// Live line of a suite run that has not begun.
    pub fn new(total: usize) -> LiveLine {
        LiveLine { total, ..LiveLine::default() }
    }

    /// Shows that a run of a test has begun: its number, and the number of all runs of this test.
    pub fn started(&mut self, id: &str, name: &str, run: (u32, u32)) {
        match self.running.iter_mut().find(|running| running.id == id) {
            Some(running) => running.run = run,
            None => self.running.push(Running { id: id.to_owned(), name: shown(name, NAME), run }),
        }
    }

    /// Counts a test that has ended.
    pub fn ended(&mut self, test: &TestResult) {
        self.running.retain(|running| running.id != test.id);
        let number = match test.verdict {
            Some(Verdict::Passed) => &mut self.counts.passed,
            Some(Verdict::Failed) => &mut self.counts.failed,
            Some(Verdict::Error) => &mut self.counts.errors,
            None => &mut self.counts.not_run,
        };
        *number += 1;
    }

    /// Says from now on that the user interrupted.
    pub fn interrupt(&mut self) {
        self.is_interrupted = true;
    }

    /// Queues a line of text, which the next frame prints above the live line.
    pub fn print_above(&mut self, line: &str) {
        if self.above.len() + line.len() > MAX_WAITING {
            self.dropped += 1;
            return;
        }
        self.above.push_str(line);
        self.above.push('\n');
    }

    /// Output that brings the terminal up to date; empty if nothing has changed.
    pub fn frame(&mut self, columns: usize, elapsed: Duration) -> String {
        let line = self.line(columns, elapsed);
        let above = self.take_above();
        if above.is_empty() && line == self.drawn {
            return String::new();
        }
        // Unless something is printed above, the old line is written over and only its rest erased: erasing all of it first would flicker.
        let frame = match above.as_str() {
            "" => format!("\r{line}{ERASE}"),
            above => format!("\r{ERASE}{above}{line}{ERASE}"),
        };
        self.drawn = line;
        frame
    }

    /// Output that prints what is queued and removes the live line.
    pub fn end(mut self) -> String {
        let above = self.take_above();
        if self.drawn.is_empty() { above } else { format!("\r{ERASE}{above}") }
    }

    /// Text of the live line: at least one column narrower than the terminal, so that it never wraps.
    pub fn line(&self, columns: usize, elapsed: Duration) -> String {
        let Counts { passed, failed, errors, not_run } = self.counts;
        let ended = passed + failed + errors + not_run;
        let mut line = format!("{ended}/{} tests, {passed} passed, {failed} failed", self.total);
        let error_word = if errors == 1 { "error" } else { "errors" };
        for (number, word) in [(errors, error_word), (not_run, "not run")] {
            if number > 0 {
                line.push_str(&format!(", {number} {word}"));
            }
        }
        line.push_str(&format!(", {}", clock(elapsed)));
        if self.is_interrupted {
            line.push_str(", stopping");
        }
        for (index, Running { name, run: (number, total), .. }) in self.running.iter().enumerate() {
            let run = if *total > 1 { format!(" ({number} of {total})") } else { String::new() };
            line.push_str(if index == 0 { ": " } else { ", " });
            line.push_str(&format!("{name}{run}"));
        }
        fitted(&line, columns.saturating_sub(1))
    }

    fn take_above(&mut self) -> String {
        let mut above = std::mem::take(&mut self.above);
        let dropped = std::mem::take(&mut self.dropped);
        if dropped > 0 {
            above.push_str(&format!("{dropped} more lines are not shown here\n"));
        }
        above
    }
}

/// Minutes and seconds, and hours if there are some.
fn clock(elapsed: Duration) -> String {
    let (minutes, seconds) = (elapsed.as_secs() / 60, elapsed.as_secs() % 60);
    match minutes / 60 {
        0 => format!("{minutes}:{seconds:02}"),
        hours => format!("{hours}:{:02}:{seconds:02}", minutes % 60),
    }
}

/// A text cut to a number of columns. Characters of ambiguous width count as wide: a line that is too short does no harm.
fn fitted(text: &str, columns: usize) -> String {
    const CUT: &str = "…";
    if text.width_cjk() <= columns {
        return text.to_owned();
    }
    let Some(columns) = columns.checked_sub(CUT.width_cjk()) else { return String::new() };
    let mut out = String::new();
    for character in text.chars() {
        out.push(character);
        // The width of the whole: a selector can make the character before it wide.
        if out.width_cjk() > columns {
            out.pop();
            break;
        }
    }
    out + CUT
}

#[cfg(test)]
mod tests;
