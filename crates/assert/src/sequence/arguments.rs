//! A check on what a tool was called with, and what came back.

use serde_json::value::RawValue;
use serde_json::{Number, Value};

use super::part::{Part, brief, counted};
use crate::trace::{Head, Step};
use crate::verdict::Verdict;

/// Some call of a tool, or every one, has these members among its arguments, and this in its result.
pub(super) struct Arguments {
    tool: String,
    args: Option<Value>,
    result: Option<Value>,
    all: bool,
    calls: usize,
    matched: bool,
    other: Option<Mismatch>,
}

/// The first call that is not as it should be.
struct Mismatch {
    path: String,
    expected: String,
    actual: String,
}

impl Arguments {
    pub(super) fn new(tool: String, args: Option<Value>, result: Option<Value>, all: bool) -> Arguments {
        Arguments { tool, args, result, all, calls: 0, matched: false, other: None }
    }

    fn mismatch(&self, index: usize, step: &Step<'_>) -> Option<Mismatch> {
        for (member, wanted, found) in
            [("args", &self.args, step.args), ("result", &self.result, step.result)]
        {
            let Some(wanted) = wanted else { continue };
            if !holds(found, wanted) {
                return Some(Mismatch {
                    path: format!("steps[{index}].{member}"),
                    expected: wanted.to_string(),
                    actual: found.map_or("nothing", RawValue::get).chars().take(400).collect(),
                });
            }
        }
        None
    }
}

/// Whether a value that was sent contains another; a call without arguments has an empty object of them.
fn holds(found: Option<&RawValue>, wanted: &Value) -> bool {
    match found {
        None => wanted.as_object().is_some_and(serde_json::Map::is_empty),
        Some(raw) => serde_json::from_str::<Value>(raw.get()).is_ok_and(|found| contains(&found, wanted)),
    }
}

/// Whether a value is another, or is an object that has all its members and maybe more.
fn contains(whole: &Value, part: &Value) -> bool {
    match (whole, part) {
        (Value::Object(whole), Value::Object(part)) => {
            part.iter().all(|(name, part)| whole.get(name).is_some_and(|whole| contains(whole, part)))
        }
        _ => same(whole, part),
    }
}

fn same(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Number(left), Value::Number(right)) => same_number(left, right),
        (Value::Array(left), Value::Array(right)) => {
            left.len() == right.len() && left.iter().zip(right).all(|(left, right)| same(left, right))
        }
        (Value::Object(left), Value::Object(right)) => {
            left.len() == right.len()
                && left.iter().all(|(name, left)| right.get(name).is_some_and(|right| same(left, right)))
        }
        _ => left == right,
    }
}

/// Whether two numbers are the same, however they are written.
pub(crate) fn same_number(left: &Number, right: &Number) -> bool {
    let whole = |number: &Number| number.as_i64().map(i128::from).or_else(|| number.as_u64().map(i128::from));
    match (whole(left), whole(right)) {
        (Some(left), Some(right)) => left == right,
        _ => left
            .as_f64()
            .zip(right.as_f64())
            .is_some_and(|(left, right)| left.partial_cmp(&right).is_some_and(std::cmp::Ordering::is_eq)),
    }
}

impl Part for Arguments {
    fn step(&mut self, index: usize, step: &Step<'_>) {
        if step.name.as_str() != self.tool {
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
                let explanation = if self.all {
                    format!("a call of `{tool}` is not as it should be")
                } else {
                    format!("none of {} of `{tool}` is as it should be", counted(self.calls, "call"))
                };
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn objects_contain_and_everything_else_equals() {
        let whole = json!({"a": {"b": 1, "c": [1, {"d": 2}]}, "e": null, "f": "x"});
        for part in [
            json!({}),
            json!({"a": {}}),
            json!({"a": {"b": 1.0}}),
            json!({"a": {"c": [1.0, {"d": 2}]}, "e": null}),
        ] {
            assert!(contains(&whole, &part), "{part}");
        }
        for part in [
            json!({"g": null}),
            json!({"a": {"c": [1]}}),
            json!({"a": {"c": [1, {}]}}),
            json!({"f": "X"}),
            json!([]),
        ] {
            assert!(!contains(&whole, &part), "{part}");
        }
    }

    #[test]
    fn numbers_are_compared_exactly() {
        let number = |text: &str| serde_json::from_str::<Number>(text).unwrap();
        assert!(same_number(&number("1"), &number("1.0")));
        assert!(same_number(&number("0"), &number("-0.0")));
        assert!(same_number(&number("100"), &number("1e2")));
        assert!(!same_number(&number("9007199254740993"), &number("9007199254740992")));
        assert!(!same_number(&number("-1"), &number("18446744073709551615")));
        assert!(same_number(&number("18446744073709551615"), &number("18446744073709551615")));
    }
}
