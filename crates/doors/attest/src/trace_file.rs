//! Trace from a file: refused if it is not one, or has a misspelt member.

use std::fmt;

use proctor_assert::{Limits, Text, Trace, validate};
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

use proctor_core::printable::shown;

/// Maximum of reported misspelt members.
const MAX_MISTAKES: usize = 20;

/// The members of a trace.
const OF_TRACE: &[&str] =
    &["schema_version", "trace_id", "agent_id", "input", "steps", "output", "metadata", "parent_trace_id"];

/// The members of a step.
const OF_STEP: &[&str] = &[
    "type",
    "name",
    "args",
    "result",
    "metadata",
    "sub_trace",
    "started_at_ms",
    "ended_at_ms",
    "agent_id",
    "agent_role",
    "alias",
];

/// Synonyms of the members of a step.
const OTHER_NAMES: &[(&str, &str)] = &[("tool_name", "name"), ("tool", "name"), ("arguments", "args")];

/// Mistakes in a trace file, each with its place.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", lines.join("\n"))]
pub struct TraceFileError {
    /// The mistakes, one a line.
    pub lines: Vec<String>,
}

impl TraceFileError {
    fn of(line: String) -> TraceFileError {
        TraceFileError { lines: vec![line] }
    }
}

/// Reads a trace, and says where it is wrong.
pub fn read<'a>(file: &str, text: &'a str) -> Result<Trace<'a>, TraceFileError> {
    if text.trim().is_empty() {
        return Err(TraceFileError::of(format!("{file}: the trace is empty")));
    }
    let trace = Trace::parse(text).map_err(|error| {
        if error.is_syntax() && looks_like_yaml(text) {
            return TraceFileError::of(format!("{file}:1:1: a trace is JSON; this looks like YAML"));
        }
        let said = error.to_string();
        let place = format!(" at line {} column {}", error.line(), error.column());
        let problem = said.strip_suffix(&place).unwrap_or(&said);
        TraceFileError::of(format!("{file}:{}:{}: {}", error.line(), error.column(), shown(problem, 400)))
    })?;
    let mut misspelt = misspelt(text);
    if !misspelt.is_empty() {
        let more = misspelt.len().saturating_sub(MAX_MISTAKES);
        misspelt.truncate(MAX_MISTAKES);
        let mut lines: Vec<String> = misspelt.iter().map(|member| member.said(file, text)).collect();
        if more > 0 {
            lines.push(format!("{file}: {more} more members are misspelt"));
        }
        return Err(TraceFileError { lines });
    }
    match validate(&trace, &Limits::STORED) {
        Ok(()) => Ok(trace),
        Err(problem) => {
            Err(TraceFileError::of(format!("{file}: {}: {}", problem.place, shown(&problem.problem, 400))))
        }
    }
}

/// Whether a text that is no JSON begins as YAML does: a member, an item, a comment.
fn looks_like_yaml(text: &str) -> bool {
    let first = text.trim_start().lines().next().unwrap_or_default();
    let begins_like_json = first.starts_with(['{', '[', '"']);
    !begins_like_json && (first.contains(':') || first.starts_with(['-', '#', '%']))
}

/// A member whose name is nearly that of one that assertions read.
struct Misspelt {
    /// Byte offset of its name in the text; none if it is written with escapes.
    at: Option<usize>,
    name: String,
    meant: &'static str,
}

impl Misspelt {
    fn said(&self, file: &str, text: &str) -> String {
        let place = self.at.and_then(|at| text.get(..at)).map_or_else(String::new, |before| {
            let line = before.matches('\n').count() + 1;
            let column = before.chars().rev().take_while(|character| *character != '\n').count();
            // The quote before the name belongs to it.
            format!(":{line}:{column}")
        });
        let name = shown(&self.name, 64);
        format!("{file}{place}: unknown member `{name}`; did you mean `{}`?", self.meant)
    }
}

/// The misspelt members of a trace, its steps, and the traces below it. Other members that are not known are somebody's own.
fn misspelt(text: &str) -> Vec<Misspelt> {
    let mut found = Vec::new();
    let mut looked = Look { text, found: &mut found };
    // It was read before: what this pass cannot read has no members to look at.
    let _ = Object { look: &mut looked, what: What::Trace }
        .deserialize(&mut serde_json::Deserializer::from_str(text));
    found.sort_by_key(|member| member.at);
    found
}

struct Look<'t> {
    text: &'t str,
    found: &'t mut Vec<Misspelt>,
}

#[derive(Clone, Copy)]
enum What {
    Trace,
    Step,
}

struct Object<'l, 't> {
    look: &'l mut Look<'t>,
    what: What,
}

impl<'de> DeserializeSeed<'de> for Object<'_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Object<'_, '_> {
    type Value = ();

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an object")
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<(), A::Error> {
        let known = match self.what {
            What::Trace => OF_TRACE,
            What::Step => OF_STEP,
        };
        let mut there: Vec<&'static str> = Vec::new();
        let mut nearly: Vec<Misspelt> = Vec::new();
        while let Some(name) = members.next_key::<Text<'de>>()? {
            if let Some(known) = known.iter().find(|known| **known == name.as_str()) {
                there.push(known);
            } else if nearly.len() <= MAX_MISTAKES
                && let Some(meant) = meant(&name, self.what, known)
            {
                let at = offset(self.look.text, &name);
                nearly.push(Misspelt { at, name: name.into_owned(), meant });
                members.next_value::<IgnoredAny>()?;
                continue;
            }
            match (self.what, name.as_str()) {
                (What::Trace, "steps") => members.next_value_seed(Steps { look: &mut *self.look })?,
                (What::Step, "sub_trace") => {
                    members.next_value_seed(Object { look: &mut *self.look, what: What::Trace })?;
                }
                _ => {
                    members.next_value::<IgnoredAny>()?;
                }
            }
        }
        // Beside the member itself, one that looks like it is another.
        self.look.found.extend(nearly.into_iter().filter(|member| !there.contains(&member.meant)));
        Ok(())
    }
}

struct Steps<'l, 't> {
    look: &'l mut Look<'t>,
}

impl<'de> DeserializeSeed<'de> for Steps<'_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Steps<'_, '_> {
    type Value = ();

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a list of steps")
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut steps: A) -> Result<(), A::Error> {
        let mut step = || steps.next_element_seed(Object { look: &mut *self.look, what: What::Step });
        while step()?.is_some() {}
        Ok(())
    }
}

/// Byte offset of a name that was borrowed from the text.
fn offset(text: &str, name: &Text<'_>) -> Option<usize> {
    let at = name.as_str().as_ptr().addr().checked_sub(text.as_ptr().addr())?;
    (text.get(at..at + name.len()) == Some(name.as_str())).then_some(at)
}

/// The known member that was meant, if the name is very near: members of other tools must pass.
fn meant(name: &str, what: What, known: &[&'static str]) -> Option<&'static str> {
    // What is longer than every name and a slip is no slip.
    const LONGEST: usize = 32;
    if name.len() > LONGEST {
        return None;
    }
    let word = bare(name);
    if let What::Step = what
        && let Some((_, meant)) = OTHER_NAMES.iter().find(|(other, _)| bare(other) == word)
    {
        return Some(meant);
    }
    if let Some(same) = known.iter().find(|known| bare(known) == word) {
        return Some(same);
    }
    let near = proctor_core::nearest(name, known)?;
    let (word, other) = (name.to_lowercase(), near);
    // A slip changes a letter or two in one place, and seldom the first one: `event_id` is not `agent_id`.
    let before = word.chars().zip(other.chars()).take_while(|(left, right)| left == right).count();
    let after = word.chars().rev().zip(other.chars().rev()).take_while(|(left, right)| left == right).count();
    let (length, other_length) = (word.chars().count(), other.chars().count());
    let same = (before + after).min(length).min(other_length);
    (before > 0 && length.max(other_length) - same <= 2).then_some(near)
}

/// A name without what writers of names differ in: `traceId`, `trace-id`, `trace_id`.
fn bare(name: &str) -> String {
    name.chars().filter(|character| !matches!(character, '_' | '-' | ' ')).collect::<String>().to_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(text: &str) -> Vec<String> {
        read("t.json", text).unwrap_err().lines
    }

    #[test]
    fn misspelt_members_are_refused_with_their_places() {
        let text = "{\n  \"trace_id\": \"t\",\n  \"step\": [],\n  \"outputs\": {\"m\": 1}\n}";
        assert_eq!(
            refused(text),
            [
                "t.json:3:3: unknown member `step`; did you mean `steps`?",
                "t.json:4:3: unknown member `outputs`; did you mean `output`?",
            ]
        );
        let text = r#"{"traceId":"t","steps":[{"type":"tool_call","nmae":"x"},{"type":"tool_call","toolname":"ö","agent":1},
{"type":"agent_call","name":"a","sub_trace":{"trace_id":"u","step":[],"output":{"m":1}}}],"output":{"m":1}}"#;
        assert_eq!(
            refused(text),
            [
                "t.json:1:2: unknown member `traceId`; did you mean `trace_id`?",
                "t.json:1:45: unknown member `nmae`; did you mean `name`?",
                "t.json:1:77: unknown member `toolname`; did you mean `name`?",
                "t.json:2:61: unknown member `step`; did you mean `steps`?",
            ]
        );
        // Written with an escape it stands nowhere in the text.
        assert_eq!(
            refused(r#"{"trace_id":"t","ste\u0070":[],"output":{"m":1}}"#),
            ["t.json: unknown member `step`; did you mean `steps`?"]
        );
        let many = format!(
            r#"{{"trace_id":"t","output":{{"m":1}},"steps":[{}]}}"#,
            vec![r#"{"nmae":1}"#; 50].join(",")
        );
        assert_eq!(refused(&many).len(), MAX_MISTAKES + 1);
    }

    #[test]
    fn what_others_call_their_own_passes() {
        for name in [
            "event_id",
            "parent_id",
            "client_id",
            "span_id",
            "parent_span_id",
            "agent_name",
            "agent_type",
            "agent",
            "status",
            "started_at",
            "tags",
            "id",
            "role",
            "x",
            "",
        ] {
            let text = format!(
                r#"{{"trace_id":"t","{name}":1,"steps":[{{"type":"tool_call","name":"n","{name}":{{"step":1}}}}],"output":{{"outputs":1}}}}"#
            );
            assert!(read("t.json", &text).is_ok(), "{name}");
        }
        // Beside the member itself it is another one.
        assert!(read("t.json", r#"{"trace_id":"t","output":{"m":1},"outputs":[]}"#).is_ok());
    }

    #[test]
    fn other_files_are_called_what_they_are() {
        assert_eq!(refused(" \n"), ["t.json: the trace is empty"]);
        for yaml in
            ["trace_id: t\noutput: {}\n", "---\ntrace_id: t\n", "# a trace\nx: 1\n", "- a\n", "output: 5"]
        {
            assert_eq!(refused(yaml), ["t.json:1:1: a trace is JSON; this looks like YAML"], "{yaml}");
        }
        for other in ["{\"trace_id\": t}", "[1, 2", "hello"] {
            assert!(!refused(other)[0].contains("YAML"), "{other}");
        }
    }
}
