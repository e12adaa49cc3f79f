//! The check on a tool call's arguments and result.

use serde_json::value::RawValue;

use super::exact::{Exact, Incomparable};
use super::part::{Part, brief, counted};
use crate::trace::{Head, Step};
use crate::verdict::Verdict;

/// Check that some or every call of a tool has these argument members and this result.
pub(super) struct Arguments {
    tool: String,
    args: Option<ExpectedValue>,
    result: Option<ExpectedValue>,
    all: bool,
    calls: usize,
    matched: bool,
    other: Option<Mismatch>,
}

/// An expected value, parsed and as written.
pub(super) struct ExpectedValue {
    value: Exact,
    text: String,
}

impl ExpectedValue {
    pub(super) fn read(raw: &RawValue) -> Result<ExpectedValue, Incomparable> {
        Ok(ExpectedValue { value: Exact::read(raw.get())?, text: raw.get().to_owned() })
    }

    /// Whether it can be among arguments: they have names, or there are none.
    pub(super) fn fits_arguments(&self) -> bool {
        matches!(self.value, Exact::Members(_) | Exact::Null)
    }

    /// Whether a call without arguments has it.
    fn is_no_arguments(&self) -> bool {
        matches!(&self.value, Exact::Members(members) if members.is_empty())
    }
}

/// The first call that is not as it should be.
struct Mismatch {
    path: String,
    expected: String,
    actual: String,
    /// Cause for which the sent arguments cannot be compared at all.
    unfit: Option<Incomparable>,
}

impl Arguments {
    pub(super) fn new(
        tool: String,
        args: Option<ExpectedValue>,
        result: Option<ExpectedValue>,
        all: bool,
    ) -> Arguments {
        Arguments { tool, args, result, all, calls: 0, matched: false, other: None }
    }

    fn mismatch(&self, index: usize, step: &Step<'_>) -> Option<Mismatch> {
        for (member, sought, found) in
            [("args", &self.args, step.args), ("result", &self.result, step.result)]
        {
            let Some(sought) = sought else { continue };
            let held = match found.map(|found| Exact::read(found.get())) {
                // What is absent is `null`; a call without arguments also has an empty object of them.
                None => {
                    Ok(Exact::Null.contains(&sought.value) || member == "args" && sought.is_no_arguments())
                }
                Some(read) => read.map(|found| found.contains(&sought.value)),
            };
            if !matches!(held, Ok(true)) {
                return Some(Mismatch {
                    path: format!("steps[{index}].{member}"),
                    expected: sought.text.clone(),
                    actual: found.map_or("nothing", RawValue::get).chars().take(400).collect(),
                    unfit: held.err(),
                });
            }
        }
        None
    }
}

impl Part for Arguments {
    fn step(&mut self, index: usize, step: &Step<'_>) {
        if !step.is_named(&self.tool) {
            return;
        }
        self.calls += 1;
        let decided = if self.all { self.other.is_some() } else { self.matched };
        if decided {
            return;
        }
        match self.mismatch(index, step) {
            None => self.matched = true,
            Some(mismatch) => self.other = self.other.take().or(Some(mismatch)),
        }
    }

    fn finding(&self, _seen: usize, _head: &Head<'_>) -> Verdict {
        let tool = brief(&self.tool);
        let failed = |explanation: String| {
            Verdict::fail(false, explanation)
                .suggest("see what the agent passed, and whether it had what it needed")
        };
        match &self.other {
            _ if self.calls == 0 => failed(format!("`{tool}` was not called"))
                .at("steps")
                .evidence(format!("a call of {tool}"), "no such step"),
            Some(mismatch) if self.all || !self.matched => {
                let mut explanation = if self.all {
                    format!("a call of `{tool}` is not as it should be")
                } else {
                    format!("none of {} of `{tool}` is as it should be", counted(self.calls, "call"))
                };
                if let Some(unfit) = &mismatch.unfit {
                    explanation = format!("{explanation}; {} cannot be compared: {unfit}", mismatch.path);
                }
                failed(explanation)
                    .at(mismatch.path.as_str())
                    .evidence(mismatch.expected.as_str(), mismatch.actual.as_str())
            }
            _ if self.all => {
                Verdict::pass(format!("{} of `{tool}`, each as it should be", counted(self.calls, "call")))
            }
            _ => Verdict::pass(format!("a call of `{tool}` is as it should be")),
        }
    }
}
