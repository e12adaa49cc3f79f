//! Retries of tasks that failed (`reliability.max_retries`).
//!
//! Each attempt is a run of its own: decided, recorded, with an identifier of its own. A refusal ends the attempts, and so does a
//! cancelled run; a run that succeeded without the evidence that it should have is not run again.

use std::time::Duration;

use proctor_core::json::Json;

use super::read::{integer, member};
use super::refusal::Refusal;
use super::result::Execution;

/// Delay before the first retry; each further one doubles it.
const FIRST_DELAY: Duration = Duration::from_secs(30);

/// Longest delay.
const MAX_DELAY: Duration = Duration::from_secs(24 * 60 * 60);

/// Attempts that results list; earlier ones are on record.
const MAX_LISTED: usize = 100;

/// Number of an attempt, from 1, and the run that it repeats.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Attempt {
    pub(super) number: u64,
    pub(super) retry_of: Option<String>,
}

/// Attempts of one task so far.
#[derive(Debug)]
pub(super) struct Attempts {
    max_retries: u64,
    ended: u64,
    listed: Vec<Json>,
    last: Option<Box<Execution>>,
}

/// Continuation after an attempt.
#[derive(Debug)]
pub(super) enum Next {
    /// Another attempt after this delay.
    Retry(Duration),
    /// No further attempt: the result of all.
    Done(Result<Execution, Refusal>),
}

impl Attempts {
    /// No attempts yet of a task as it is written.
    pub(super) fn of(task: &Json) -> Attempts {
        let max_retries = member(task, "reliability").and_then(|block| integer(block, "max_retries"));
        Attempts { max_retries: max_retries.unwrap_or(0), ended: 0, listed: Vec::new(), last: None }
    }

    /// The attempt that comes next.
    pub(super) fn upcoming(&self) -> Attempt {
        let retry_of = self.last.as_ref().map(|execution| execution.execution_id.clone());
        Attempt { number: self.ended.saturating_add(1), retry_of }
    }

    /// Takes the end of the upcoming attempt.
    pub(super) fn ended(&mut self, end: Result<Execution, Refusal>) -> Next {
        let retries = self.ended;
        self.ended = self.ended.saturating_add(1);
        self.list(&end);
        match end {
            Ok(execution) if execution.may_retry && retries < self.max_retries => {
                self.last = Some(Box::new(execution));
                Next::Retry(delay(self.ended))
            }
            Ok(execution) => Next::Done(Ok(self.finished(execution))),
            Err(refusal) => Next::Done(self.give_up().ok_or(refusal)),
        }
    }

    /// Result of the attempts so far, where no further one is made; none before the first has ended.
    pub(super) fn give_up(&mut self) -> Option<Execution> {
        let last = self.last.take()?;
        Some(self.finished(*last))
    }

    fn finished(&mut self, mut execution: Execution) -> Execution {
        if self.listed.len() > 1 {
            execution.json.push("attempts", std::mem::take(&mut self.listed));
        }
        execution
    }

    fn list(&mut self, end: &Result<Execution, Refusal>) {
        let entry = Json::object().with("attempt", self.ended);
        let entry = match end {
            Ok(execution) => {
                let result = execution.json.get("result");
                let of = |name: &str| result.and_then(|result| result.get(name)).cloned();
                entry
                    .with("execution_id", execution.execution_id.as_str())
                    .with("ok", execution.is_ok)
                    .with("exit_code", of("exit_code"))
                    .with("timed_out", of("timed_out"))
                    .with("code", execution.code.map(proctor_wire::agentcli::error::Code::word))
            }
            Err(refusal) => entry
                .with("execution_id", refusal.execution_id.as_deref())
                .with("ok", false)
                .with("code", refusal.failure.code.word())
                .with("error", refusal.failure.message.as_str())
                .with("approval_id", refusal.approval.as_ref().map(|approval| approval.id.to_string())),
        };
        if self.listed.len() == MAX_LISTED {
            self.listed.remove(0);
        }
        self.listed.push(entry);
    }
}

/// Delay after the attempt of this number: 30 s, doubled for each attempt after the first.
fn delay(attempt: u64) -> Duration {
    let doublings = u32::try_from(attempt.saturating_sub(1)).unwrap_or(u32::MAX);
    let factor = 1_u32.checked_shl(doublings).filter(|factor| *factor != 0);
    factor.map_or(MAX_DELAY, |factor| FIRST_DELAY.saturating_mul(factor).min(MAX_DELAY))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_double_up_to_a_day() {
        let seconds = [1, 2, 3, 4, 5, 12, 13, 33, 34, u64::MAX].map(|attempt| delay(attempt).as_secs());
        assert_eq!(seconds, [30, 60, 120, 240, 480, 61_440, 86_400, 86_400, 86_400, 86_400]);
    }
}
