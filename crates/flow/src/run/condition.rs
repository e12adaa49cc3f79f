//! Conditions of triggers, on the masked standard output of the parent.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicIsize, Ordering};
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::time::Duration;

use proctor_wire::agentcli::validate::condition::compile;

/// Time limit of a regular expression: its engine backtracks.
const TIME: Duration = Duration::from_millis(500);

/// Longest text that a regular expression is tried on; longer output is cut.
const MAX_TEXT: usize = 64 << 10;

/// Stack of the thread of a regular expression; deep nesting recurses.
const STACK: usize = 8 << 20;

/// Searches that ran out of time and still use a thread, at most. They cannot be interrupted, and end with the process at the latest.
const MAX_ABANDONED: isize = 2;

static ABANDONED: AtomicIsize = AtomicIsize::new(0);

/// Condition that could not be decided.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConditionError {
    /// The condition is neither `contains:` nor `regex:`.
    #[error("the condition begins neither with `contains:` nor with `regex:`")]
    Unknown,
    /// The regular expression does not compile.
    #[error("the regular expression cannot be read: {0}")]
    Pattern(String),
    /// The search took too long.
    #[error("the regular expression took longer than {} ms: write it without nested repetition", TIME.as_millis())]
    TooSlow,
    /// Too many earlier searches still run.
    #[error("too many slow regular expressions are still running")]
    TooMany,
    /// The search ended without a result.
    #[error("the regular expression failed inside")]
    Failed,
}

/// Whether a condition holds for a text. Blocks for at most half a second.
pub fn holds(condition: &str, text: &str) -> Result<bool, ConditionError> {
    if let Some(part) = condition.strip_prefix("contains:") {
        return Ok(text.contains(part));
    }
    let pattern = condition.strip_prefix("regex:").ok_or(ConditionError::Unknown)?;
    if ABANDONED.load(Ordering::SeqCst) >= MAX_ABANDONED {
        return Err(ConditionError::TooMany);
    }
    let text = text.get(..text.floor_char_boundary(MAX_TEXT)).unwrap_or_default().to_owned();
    let (pattern, is_settled) = (pattern.to_owned(), Arc::new(AtomicBool::new(false)));
    let (sender, receiver) = sync_channel(1);
    let ours = Arc::clone(&is_settled);
    let search = move || {
        let found = compile(&pattern)
            .map_err(|error| ConditionError::Pattern(error.to_string()))
            .map(|regex| regex.find(&text).is_some());
        // The flag tells the second of the two threads that the first has given up, or has ended.
        if ours.swap(true, Ordering::SeqCst) {
            ABANDONED.fetch_sub(1, Ordering::SeqCst);
        }
        let _ = sender.send(found);
    };
    let thread = std::thread::Builder::new().name("condition".to_owned()).stack_size(STACK);
    thread.spawn(search).map_err(|_| ConditionError::Failed)?;
    match receiver.recv_timeout(TIME) {
        Ok(found) => found,
        Err(RecvTimeoutError::Timeout) => {
            if !is_settled.swap(true, Ordering::SeqCst) {
                ABANDONED.fetch_add(1, Ordering::SeqCst);
            }
            Err(ConditionError::TooSlow)
        }
        // The thread panicked.
        Err(RecvTimeoutError::Disconnected) => Err(ConditionError::Failed),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Instant;

    #[test]
    fn conditions_match_as_in_javascript() {
        for (condition, text, expected) in [
            ("contains:b c", "a b c d", true),
            ("contains:B", "abc", false),
            ("regex:^b", "a\nb", false),
            (r"regex:(\w)\1", "hello", true),
            (r"regex:(?<=v)\d+(?!x)", "v12", true),
            (r"regex:\bend$", "the end", true),
        ] {
            assert_eq!(holds(condition, text), Ok(expected), "{condition}");
        }
        assert!(matches!(holds("regex:(", ""), Err(ConditionError::Pattern(_))));
        assert_eq!(holds("glob:*", ""), Err(ConditionError::Unknown));
        // Nesting that would exhaust the stack is refused before the compiler recurses.
        let deep = format!("regex:{}{}", "(".repeat(100_000), ")".repeat(100_000));
        assert!(matches!(holds(&deep, ""), Err(ConditionError::Pattern(_))));
    }

    #[test]
    fn catastrophic_expressions_end_in_time_and_are_bounded_in_number() {
        let text = "a".repeat(40);
        for expected in [ConditionError::TooSlow, ConditionError::TooSlow, ConditionError::TooMany] {
            let begun = Instant::now();
            assert_eq!(holds("regex:^(a+)+$b", &text), Err(expected));
            assert!(begun.elapsed() < Duration::from_secs(2));
        }
        assert_eq!(holds("contains:a", &text), Ok(true), "other conditions are still decided");
    }
}
