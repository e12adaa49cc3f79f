//! The check that data of one agent reached another.

use std::collections::BTreeSet;

use serde_json::value::RawValue;

use super::agents::no_trace_of;
use super::search::Needle;
use super::walk;
use crate::raw::{self, normalised};
use crate::sequence::part::{Part, brief};
use crate::trace::{Head, Step};
use crate::verdict::{Verdict, shortened};

/// Limit of searched bytes: about a second of work.
const WORK: u64 = 1 << 30;

/// A member of some output of one agent is in some input of another.
pub(super) struct Flow {
    from: String,
    to: String,
    field: String,
    /// The state so far, without the outermost trace.
    met: FlowState,
    values: BTreeSet<Needle>,
    inputs: BTreeSet<String>,
    work: Work,
}

/// The texts seen of the two agents.
#[derive(Clone, Default)]
struct FlowState {
    from: bool,
    to: bool,
    /// First position of the member, and its value.
    value: Option<(String, String)>,
    /// Whether the source ever had a value.
    full_value: bool,
    /// Position of the other agent's first action, and its input there.
    input: Option<(String, String)>,
    flowed: bool,
}

/// Remaining search budget.
#[derive(Clone, Copy)]
struct Work {
    left: u64,
    exhausted: bool,
}

impl Work {
    fn search(&mut self, needle: &Needle, input: &str) -> bool {
        // Even an empty input costs something.
        match self.left.checked_sub(input.len() as u64 + 16) {
            Some(left) if !self.exhausted => {
                self.left = left;
                needle.is_in(input)
            }
            _ => {
                self.exhausted = true;
                false
            }
        }
    }
}

impl Flow {
    pub(super) fn new(from: String, to: String, field: String) -> Flow {
        Flow {
            from,
            to,
            field,
            met: FlowState::default(),
            values: BTreeSet::new(),
            inputs: BTreeSet::new(),
            work: Work { left: WORK, exhausted: false },
        }
    }

    /// Notes one trace; what it adds to the values and the inputs is returned.
    fn meet(
        &self,
        met: &mut FlowState,
        head: &Head<'_>,
        place: &dyn std::fmt::Display,
    ) -> (Option<Needle>, Option<String>) {
        let (mut value, mut input) = (None, None);
        if head.agent_id.as_str() == self.from {
            met.from = true;
            if let Some(found) = head.output.and_then(|output| raw::member(output.get(), &self.field)) {
                value = Needle::of(found.get());
                // A value that says something is better evidence than one that does not.
                if met.value.is_none() || (value.is_some() && !met.full_value) {
                    met.value =
                        Some((format!("{place}output.{}", self.field), shortened(found.get().to_owned())));
                }
                met.full_value |= value.is_some();
            }
        }
        if head.agent_id.as_str() == self.to {
            met.to = true;
            let text = head.input.map_or("nothing", RawValue::get);
            if met.input.is_none() {
                met.input = Some((format!("{place}input"), shortened(text.to_owned())));
            }
            input = head.input.map(|input| normalised(input.get()));
        }
        (value, input)
    }

    /// Whether a value or an input makes a pair with one that was there before, or both with each other.
    fn flows(&self, work: &mut Work, value: Option<&Needle>, input: Option<&str>) -> bool {
        let mut pair = |needle: &Needle, input: &str| work.search(needle, input);
        value.zip(input).is_some_and(|(value, input)| pair(value, input))
            || value.is_some_and(|value| self.inputs.iter().any(|input| pair(value, input)))
            || input.is_some_and(|input| self.values.iter().any(|value| pair(value, input)))
    }

    fn note(&mut self, head: &Head<'_>, place: &walk::StepPath<'_>) {
        if self.met.flowed || self.work.exhausted {
            return;
        }
        let mut met = std::mem::take(&mut self.met);
        let (value, input) = self.meet(&mut met, head, &format_args!("{place}.sub_trace."));
        // What was there before was compared before.
        let value = value.filter(|value| !self.values.contains(value));
        let input = input.filter(|input| !self.inputs.contains(input));
        let mut work = self.work;
        met.flowed = self.flows(&mut work, value.as_ref(), input.as_deref());
        (self.met, self.work) = (met, work);
        if self.met.flowed || self.work.exhausted {
            self.values = BTreeSet::new();
            self.inputs = BTreeSet::new();
        } else {
            self.values.extend(value);
            self.inputs.extend(input);
        }
    }
}

impl Part for Flow {
    fn step(&mut self, index: usize, step: &Step<'_>) {
        walk::traces(index, step, &mut |below, _, place| self.note(&below.head, place));
    }

    fn finding(&self, _seen: usize, head: &Head<'_>) -> Verdict {
        let (mut met, mut work) = (self.met.clone(), self.work);
        if !met.flowed && !work.exhausted {
            let (value, input) = self.meet(&mut met, head, &"");
            met.flowed = self.flows(&mut work, value.as_ref(), input.as_deref());
        }
        let (from, to, field) = (brief(&self.from), brief(&self.to), brief(&self.field));
        let failed = |explanation: String| {
            Verdict::fail(false, explanation)
                .suggest("see what the first agent answered, and what the second was given")
        };
        if met.flowed {
            return Verdict::pass(format!("`{field}` of `{from}` is in the input of `{to}`"));
        }
        if work.exhausted {
            return Verdict::error(format!("`{from}` and `{to}` act too often to compare all they say"))
                .at("steps")
                .evidence("fewer or smaller inputs and outputs", "more than can be searched")
                .suggest("assert on a smaller part of the trace");
        }
        if !met.from {
            return no_trace_of(&self.from);
        }
        if !met.to {
            return no_trace_of(&self.to);
        }
        let Some((value_at, value)) = met.value else {
            return failed(format!("no output of `{from}` has a member `{field}`"))
                .at("steps")
                .evidence(format!("an output of {from} with {field}"), "no such member");
        };
        if !met.full_value {
            return failed(format!("`{field}` of `{from}` is empty: nothing can flow"))
                .at(value_at)
                .evidence("a value that says something", value);
        }
        let (input_at, input) = met.input.unwrap_or_default();
        failed(format!("`{field}` of `{from}` is not in the input of `{to}`"))
            .at(input_at)
            .evidence(format!("an input with {value}"), input)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::Trace;
    use crate::verdict::Status;

    #[test]
    fn work_is_bounded_and_what_is_not_searched_is_not_decided() {
        let trace = Trace::parse(
            r#"{"steps": [
                {"type": "agent_call", "name": "a", "sub_trace": {"agent_id": "a", "output": {"k": "v"}}},
                {"type": "agent_call", "name": "b", "sub_trace": {"agent_id": "b", "input": "with v"}}]}"#,
        )
        .unwrap();
        let judged = |left: u64| {
            let mut flow = Flow::new("a".to_owned(), "b".to_owned(), "k".to_owned());
            flow.work.left = left;
            for (index, step) in trace.steps.iter().enumerate() {
                flow.step(index, step);
            }
            flow.finding(2, &trace.head).status
        };
        assert_eq!(judged(WORK), Status::Pass);
        assert_eq!(judged(10), Status::Error);
    }
}
