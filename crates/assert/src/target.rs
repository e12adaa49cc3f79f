//! Targets: paths into a trace.

use std::borrow::Cow;

use serde_json::value::RawValue;

use crate::raw::{self, DuplicateName};
use crate::trace::{Head, Step};
use crate::verdict::Verdict;

/// The default target of content, similarity and judge assertions.
pub(crate) const USUAL: &str = "output.message";

/// A path into a trace, and what was seen of it so far.
#[derive(Debug, Clone)]
pub(crate) struct Target {
    path: String,
    place: Location,
}

#[derive(Debug, Clone)]
enum Location {
    /// A path below the output.
    Output { members: Vec<String> },
    /// A path below one member of the first step of a name.
    Step { name: String, result: bool, members: Vec<String>, seen: Option<Option<String>> },
}

/// A resolved target.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Resolved<'h> {
    /// The text of a JSON value.
    Value(Cow<'h, str>),
    /// The step is there, but says nothing.
    Empty,
}

impl Target {
    /// Reads a path: `output`, `output.a.b`, `steps[?name=='N'].args`, `.result`, and members of these.
    pub(crate) fn parse(path: &str) -> Result<Target, Verdict> {
        let place = read_place(path).ok_or_else(|| {
            Verdict::error(format!("`{path}` is not a target")).at(path).suggest(
                "use `output`, `output.NAME`, `steps[?name=='TOOL'].args` or `steps[?name=='TOOL'].result`",
            )
        })?;
        Ok(Target { path: path.to_owned(), place })
    }

    /// The path as it was written.
    pub(crate) fn path(&self) -> &str {
        &self.path
    }

    /// A remark for the explanation when a fallback was used instead of the path itself.
    pub(crate) fn remark(&self, head: &Head<'_>) -> &'static str {
        match (&self.place, head.output) {
            (Location::Output { members }, Some(output)) if falls_back(members, output.get()) => {
                " (there is no `output.structured`: the whole output was looked at)"
            }
            _ => "",
        }
    }

    /// Folds the next step.
    pub(crate) fn step(&mut self, step: &Step<'_>) {
        if let Location::Step { name, result, seen, .. } = &mut self.place
            && seen.is_none()
            && step.is_named(name)
        {
            let member = if *result { step.result } else { step.args };
            *seen = Some(member.map(|raw| raw.get().to_owned()));
        }
    }

    /// Resolves the path in a trace with this head and the steps seen so far. A duplicate member name on the way, or in the
    /// value, is an error: parsers disagree on which one counts.
    pub(crate) fn resolve<'h>(&'h self, head: &'h Head<'_>) -> Result<Resolved<'h>, Verdict> {
        match &self.place {
            Location::Output { members } => {
                let output =
                    head.output.map(RawValue::get).ok_or_else(|| self.absent("the trace has no output"))?;
                let members = match members.split_first() {
                    Some((_, rest)) if falls_back(members, output) => rest,
                    _ => members,
                };
                self.descend(output, members).map(|value| Resolved::Value(Cow::Borrowed(value)))
            }
            Location::Step { name, result, members, seen } => match seen {
                None => Err(self.absent(&format!("no step is named `{name}`"))),
                Some(Some(value)) => {
                    self.descend(value, members).map(|value| Resolved::Value(Cow::Borrowed(value)))
                }
                Some(None) if members.is_empty() => Ok(Resolved::Empty),
                Some(None) => {
                    let member = if *result { "result" } else { "args" };
                    Err(self.absent(&format!("step `{name}` has no {member}")))
                }
            },
        }
    }

    fn descend<'v>(&self, value: &'v str, members: &[String]) -> Result<&'v str, Verdict> {
        let mut here = value;
        for name in members {
            here = raw::sole_member(here, name)
                .map_err(|twice| self.ambiguous(&twice))?
                .map(RawValue::get)
                .ok_or_else(|| self.absent(&format!("there is no member `{name}`")))?;
        }
        match raw::duplicate(here) {
            Some(twice) => Err(self.ambiguous(&twice)),
            None => Ok(here),
        }
    }

    fn ambiguous(&self, twice: &DuplicateName) -> Verdict {
        ambiguous(&self.path, twice)
    }

    /// A target that is not in the trace fails hard, whatever the assertion says of it.
    fn absent(&self, why: &str) -> Verdict {
        Verdict::fail(false, format!("`{}` is not in the trace: {why}", self.path))
            .at(self.path.as_str())
            .evidence(format!("a value at {}", self.path), why)
            .suggest("check the target's spelling, and that the agent's trace carries it")
    }
}

/// A value in which a member stands twice cannot be judged: readers disagree about what it says.
pub(crate) fn ambiguous(path: &str, twice: &DuplicateName) -> Verdict {
    Verdict::error(format!("`{path}` {twice}"))
        .at(path)
        .suggest("have the agent's trace carry each member once")
}

impl Resolved<'_> {
    /// The value as plain text: a string's own value, nothing for `null`, otherwise its JSON.
    pub(crate) fn plain(&self) -> Cow<'_, str> {
        match self {
            Resolved::Value(value) => raw::plain(value),
            Resolved::Empty => Cow::Borrowed(""),
        }
    }

    /// The JSON without needless space and escapes, if the value is not a string; what it says there does not depend on its writer.
    pub(crate) fn normalised(&self) -> Option<String> {
        match self {
            Resolved::Value(value) if raw::has_parts(value) => Some(raw::normalised(value)),
            _ => None,
        }
    }

    /// The decoded strings in the value, if it is an object or a list.
    pub(crate) fn strings(&self) -> Vec<Cow<'_, str>> {
        match self {
            Resolved::Value(value) if raw::has_parts(value) => raw::strings(value).collect(),
            _ => Vec::new(),
        }
    }
}

/// Whether `output.structured` means the whole output, because the trace has no such member; the protocol's own example does so.
fn falls_back(members: &[String], output: &str) -> bool {
    members
        .first()
        .is_some_and(|first| first == "structured" && matches!(raw::sole_member(output, first), Ok(None)))
}

fn read_place(path: &str) -> Option<Location> {
    if let Some(rest) = path.strip_prefix("output") {
        return Some(Location::Output { members: read_members(rest)? });
    }
    let (name, rest) = path.strip_prefix("steps[?name=='")?.split_once("'].")?;
    if name.is_empty() || name.contains('\'') {
        return None;
    }
    let (result, rest) = match (rest.strip_prefix("args"), rest.strip_prefix("result")) {
        (Some(rest), _) => (false, rest),
        (_, Some(rest)) => (true, rest),
        _ => return None,
    };
    Some(Location::Step { name: name.to_owned(), result, members: read_members(rest)?, seen: None })
}

/// `.a.b` as its names; nothing is fine, an empty name is not.
fn read_members(rest: &str) -> Option<Vec<String>> {
    if rest.is_empty() {
        return Some(Vec::new());
    }
    let names: Vec<String> = rest.strip_prefix('.')?.split('.').map(str::to_owned).collect();
    names.iter().all(|name| !name.is_empty()).then_some(names)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::Trace;

    const TRACE: &str = r#"{"trace_id":"t","output":{"message":"hi","a":{"b":[1, 2]}},"steps":[
        {"type":"tool_call","name":"x","args":{"k":{"l":5}}},{"type":"tool_call","name":"x","args":{"k":6},"result":7}]}"#;

    fn look(path: &str) -> Result<String, String> {
        let trace = Trace::parse(TRACE).unwrap();
        let mut target = Target::parse(path).map_err(|verdict| verdict.explanation)?;
        for step in &trace.steps {
            target.step(step);
        }
        match target.resolve(&trace.head) {
            Ok(Resolved::Value(value)) => Ok(value.into_owned()),
            Ok(Resolved::Empty) => Ok("(empty)".to_owned()),
            Err(verdict) => Err(verdict.explanation),
        }
    }

    #[test]
    fn paths_lead_where_they_say() {
        assert_eq!(look("output.message").unwrap(), r#""hi""#);
        assert_eq!(look("output.a.b").unwrap(), "[1, 2]");
        assert_eq!(look("steps[?name=='x'].args.k.l").unwrap(), "5");
        assert_eq!(look("steps[?name=='x'].result").unwrap(), "(empty)");
        assert_eq!(look("output.structured.a.b").unwrap(), "[1, 2]");
    }

    #[test]
    fn a_step_is_found_by_its_other_name() {
        let text =
            r#"{"trace_id":"t","steps":[{"type":"tool_call","name":"shell","alias":"bash","args":1}]}"#;
        let trace = Trace::parse(text).unwrap();
        for name in ["shell", "bash"] {
            let mut target = Target::parse(&format!("steps[?name=='{name}'].args")).unwrap();
            target.step(&trace.steps[0]);
            assert_eq!(target.resolve(&trace.head).unwrap().plain(), "1", "{name}");
        }
    }

    #[test]
    fn what_is_not_there_is_said() {
        assert!(look("output.c").unwrap_err().contains("no member `c`"));
        assert!(look("output.message.x").unwrap_err().contains("no member `x`"));
        assert!(look("steps[?name=='y'].args").unwrap_err().contains("no step is named `y`"));
        assert!(look("steps[?name=='x'].result.z").unwrap_err().contains("has no result"));
        for path in [
            "metadata.cost_usd",
            "input",
            "steps[0]",
            "output..a",
            "outputs",
            "steps[?name==\"x\"].args",
            "steps[?name=='x'].other",
            "steps[?name==''].args",
            "",
        ] {
            assert!(look(path).unwrap_err().contains("is not a target"), "{path}");
        }
    }

    #[test]
    fn a_member_that_stands_twice_is_no_answer() {
        const TRACE: &str = r#"{"trace_id":"t","output":{"a":1,"a":2,"b":{"c":[{"d":1,"d":1}]},"structured":{"x":1},"structured":{},"e":{"f":1}}}"#;
        let trace = Trace::parse(TRACE).unwrap();
        for (path, name) in [
            ("output", "a"),
            ("output.a", "a"),
            ("output.b", "d"),
            ("output.b.c", "d"),
            ("output.structured", "structured"),
            ("output.structured.x", "structured"),
        ] {
            let verdict = Target::parse(path).unwrap().resolve(&trace.head).unwrap_err();
            assert_eq!(verdict.status, crate::verdict::Status::Error, "{path}");
            let said = format!("`{path}` has the member `{name}` twice: which one is meant?");
            assert_eq!(verdict.explanation, said);
        }
        assert!(Target::parse("output.e").unwrap().resolve(&trace.head).is_ok(), "not on the way, not in it");
    }
}
