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
    /// Whether `output.structured` means the whole output where the trace has no such member.
    whole_output: bool,
}

#[derive(Debug, Clone)]
enum Location {
    /// A path below the output.
    Output { members: Vec<String> },
    /// A path below one member of steps.
    Steps { which: Which, member: StepMember, members: Vec<String>, seen: Option<Option<String>> },
}

/// The steps of a path.
#[derive(Debug, Clone)]
enum Which {
    /// Those of the outermost trace with this name.
    Named(String),
    /// All, those of sub-traces too.
    Every,
}

/// The member of a step that a path begins with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum StepMember {
    Args,
    Result,
    /// Names, arguments and result together.
    Whole,
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
    /// Reads a path: `output`, `output.a.b`, `steps[?name=='N'].args`, `.result`, `steps[*]` for every step, and members of these.
    pub(crate) fn parse(path: &str) -> Result<Target, Verdict> {
        let place = read_place(path).ok_or_else(|| {
            Verdict::error(format!("`{path}` is not a target")).at(path).suggest(
                "use `output`, `output.NAME`, `steps[?name=='TOOL'].args`, `steps[?name=='TOOL'].result`, or `steps[*]` for every step",
            )
        })?;
        Ok(Target { path: path.to_owned(), place, whole_output: false })
    }

    /// Reads a path that leads to one value: a score is of one text.
    pub(crate) fn parse_single(path: &str) -> Result<Target, Verdict> {
        let target = Target::parse(path)?;
        if target.is_every_step() {
            return Err(Verdict::error(format!("`{path}` is many values, and a score is of one text"))
                .at(path)
                .suggest("name one step, for example `steps[?name=='TOOL'].result`"));
        }
        Ok(target)
    }

    /// Lets `output.structured` mean the whole output where the trace has no such member. Only for checks that an unrelated output
    /// does not satisfy by itself.
    #[must_use]
    pub(crate) fn or_whole_output(mut self, allowed: bool) -> Target {
        self.whole_output = allowed;
        self
    }

    /// The path as it was written.
    pub(crate) fn path(&self) -> &str {
        &self.path
    }

    /// Whether it leads into steps.
    pub(crate) fn is_in_steps(&self) -> bool {
        matches!(self.place, Location::Steps { .. })
    }

    /// Whether it leads into every step: then a check holds for each value there.
    pub(crate) fn is_every_step(&self) -> bool {
        matches!(self.place, Location::Steps { which: Which::Every, .. })
    }

    /// A remark for the explanation when a fallback was used instead of the path itself.
    pub(crate) fn remark(&self, head: &Head<'_>) -> &'static str {
        match (&self.place, head.output) {
            (Location::Output { members }, Some(output)) if self.falls_back(members, output.get()) => {
                " (there is no `output.structured`: the whole output was looked at)"
            }
            _ => "",
        }
    }

    /// Folds the next step: the first that matches is kept.
    pub(crate) fn step(&mut self, step: &Step<'_>) {
        if let Location::Steps { which: Which::Named(name), member, seen, .. } = &mut self.place
            && seen.is_none()
            && step.is_named(name)
        {
            *seen = Some(member.raw(step).map(|raw| raw.get().to_owned()));
        }
    }

    /// Resolves the path in a trace with this head and the steps seen so far; of several steps it is the first. A duplicate member
    /// name on the way, or in the value, is an error: parsers disagree on which one counts.
    pub(crate) fn resolve<'h>(&'h self, head: &'h Head<'_>) -> Result<Resolved<'h>, Verdict> {
        match &self.place {
            Location::Output { members } => {
                let output =
                    head.output.map(RawValue::get).ok_or_else(|| self.absent("the trace has no output"))?;
                let members = if self.falls_back(members, output) { &[] } else { members.as_slice() };
                descend(&self.path, output, members).map(|value| Resolved::Value(Cow::Borrowed(value)))
            }
            Location::Steps { which: Which::Every, .. } => Err(self.absent("it is many values")),
            Location::Steps { which: Which::Named(name), member, members, seen } => match seen {
                None => Err(self.absent_everywhere()),
                Some(value) => in_named(&self.path, name, *member, members, value.as_deref()),
            },
        }
    }

    /// Whether it leads into this step of the outermost trace.
    pub(crate) fn matches(&self, step: &Step<'_>) -> bool {
        match &self.place {
            Location::Output { .. } => false,
            Location::Steps { which: Which::Every, .. } => true,
            Location::Steps { which: Which::Named(name), .. } => step.is_named(name),
        }
    }

    /// The path below one step: `steps[3].args.a`.
    pub(crate) fn path_in(&self, step: &dyn std::fmt::Display) -> String {
        let rest = match &self.place {
            Location::Steps { which: Which::Named(_), .. } => self.path.split_once("']"),
            _ => self.path.split_once("[*]"),
        };
        format!("{step}{}", rest.map_or("", |(_, rest)| rest))
    }

    /// Resolves the path in one step; `None` if that step has no such value, and need not have one.
    pub(crate) fn in_step<'s>(&self, path: &str, step: &Step<'s>) -> Option<Result<Resolved<'s>, Verdict>> {
        let Location::Steps { which, member, members, .. } = &self.place else { return None };
        match which {
            Which::Named(name) => {
                let value = member.raw(step).map(RawValue::get);
                Some(in_named(path, name, *member, members, value))
            }
            Which::Every if *member == StepMember::Whole => {
                let whole = whole_text(step);
                Some(match raw::duplicate(&whole) {
                    Some(twice) => Err(ambiguous(path, &twice)),
                    None => Ok(Resolved::Value(Cow::Owned(whole))),
                })
            }
            Which::Every => {
                let value = member.raw(step).map(RawValue::get)?;
                let found = descend_if_there(path, value, members).transpose()?;
                Some(found.map(|value| Resolved::Value(Cow::Borrowed(value))))
            }
        }
    }

    /// A target that no step has.
    pub(crate) fn absent_everywhere(&self) -> Verdict {
        match &self.place {
            Location::Steps { which: Which::Named(name), .. } => {
                self.absent(&format!("no step is named `{name}`"))
            }
            _ => self.absent("no step has such a value"),
        }
    }

    /// Whether `output.structured` means the whole output, because the trace has no such member; the protocol's own example does so.
    fn falls_back(&self, members: &[String], output: &str) -> bool {
        self.whole_output
            && matches!(members, [only] if only == "structured")
            && matches!(raw::sole_member(output, "structured"), Ok(None))
    }

    /// A target that is not in the trace fails hard, whatever the assertion says of it.
    fn absent(&self, why: &str) -> Verdict {
        absent_at(&self.path, why)
    }
}

fn in_named<'v>(
    path: &str,
    name: &str,
    member: StepMember,
    members: &[String],
    value: Option<&'v str>,
) -> Result<Resolved<'v>, Verdict> {
    match value {
        Some(value) => descend(path, value, members).map(|value| Resolved::Value(Cow::Borrowed(value))),
        None if members.is_empty() => Ok(Resolved::Empty),
        None => Err(absent_at(path, &format!("step `{name}` has no {}", member.word()))),
    }
}

fn absent_at(path: &str, why: &str) -> Verdict {
    Verdict::fail(false, format!("`{path}` is not in the trace: {why}"))
        .at(path)
        .evidence(format!("a value at {path}"), why)
        .suggest("check the target's spelling, and that the agent's trace carries it")
}

fn descend<'v>(path: &str, value: &'v str, members: &[String]) -> Result<&'v str, Verdict> {
    let mut here = value;
    for name in members {
        here = raw::sole_member(here, name)
            .map_err(|twice| ambiguous(path, &twice))?
            .map(RawValue::get)
            .ok_or_else(|| absent_at(path, &format!("there is no member `{name}`")))?;
    }
    match raw::duplicate(here) {
        Some(twice) => Err(ambiguous(path, &twice)),
        None => Ok(here),
    }
}

/// The value below an object that may lack it. Where a member of something else is meant, nothing can be said.
fn descend_if_there<'v>(path: &str, value: &'v str, members: &[String]) -> Result<Option<&'v str>, Verdict> {
    let mut here = value;
    for name in members {
        let text = here.trim_start();
        if text.starts_with("null") {
            return Ok(None);
        }
        if !text.starts_with('{') {
            return Err(Verdict::error(format!(
                "`{path}` cannot be looked up: `{name}` is a member of no object"
            ))
            .at(path)
            .suggest("use a shorter target, such as `steps[*].args`"));
        }
        match raw::sole_member(here, name).map_err(|twice| ambiguous(path, &twice))? {
            Some(found) => here = found.get(),
            None => return Ok(None),
        }
    }
    match raw::duplicate(here) {
        Some(twice) => Err(ambiguous(path, &twice)),
        None => Ok(Some(here)),
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

impl StepMember {
    fn raw<'s>(self, step: &Step<'s>) -> Option<&'s RawValue> {
        match self {
            StepMember::Args => step.args,
            StepMember::Result => step.result,
            StepMember::Whole => None,
        }
    }

    fn word(self) -> &'static str {
        match self {
            StepMember::Args => "args",
            StepMember::Result => "result",
            StepMember::Whole => "value",
        }
    }
}

/// A step as one JSON list, so that the names of our own members are not searched: its names, its arguments, its result.
fn whole_text(step: &Step<'_>) -> String {
    let quoted = |text: &str| serde_json::to_string(text).unwrap_or_default();
    let mut parts = vec![quoted(&step.name)];
    if !step.alias.is_empty() {
        parts.push(quoted(&step.alias));
    }
    parts.extend([step.args, step.result].into_iter().flatten().map(|raw| raw.get().to_owned()));
    format!("[{}]", parts.join(","))
}

fn read_place(path: &str) -> Option<Location> {
    if let Some(rest) = path.strip_prefix("output") {
        return Some(Location::Output { members: read_members(rest)? });
    }
    let (which, rest) = match path.strip_prefix("steps[*]") {
        Some(rest) => (Which::Every, rest),
        None => {
            let (name, rest) = path.strip_prefix("steps[?name=='")?.split_once("']")?;
            if name.is_empty() || name.contains('\'') {
                return None;
            }
            (Which::Named(name.to_owned()), rest)
        }
    };
    let (member, rest) = match (rest.strip_prefix(".args"), rest.strip_prefix(".result")) {
        (Some(rest), _) => (StepMember::Args, rest),
        (_, Some(rest)) => (StepMember::Result, rest),
        _ if rest.is_empty() && matches!(which, Which::Every) => (StepMember::Whole, rest),
        _ => return None,
    };
    Some(Location::Steps { which, member, members: read_members(rest)?, seen: None })
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
        assert!(look("output.structured").unwrap_err().contains("no member `structured`"));
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
    fn only_a_check_that_asks_for_it_takes_the_whole_output() {
        let trace = Trace::parse(TRACE).unwrap();
        let resolved = |path: &str| {
            let target = Target::parse(path).unwrap().or_whole_output(true);
            target.resolve(&trace.head).is_ok()
        };
        assert!(resolved("output.structured"));
        assert!(!resolved("output.structured.a"), "of the whole output only, not of its members");
        assert!(!resolved("output.other"));
    }

    #[test]
    fn a_path_names_the_step_that_it_is_about() {
        for (path, expected) in [
            ("steps[*]", "steps[3]"),
            ("steps[*].args.k", "steps[3].args.k"),
            ("steps[?name=='a]b'].result", "steps[3].result"),
        ] {
            assert_eq!(Target::parse(path).unwrap().path_in(&"steps[3]"), expected);
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
            "steps[*].name",
            "steps[*].length",
            "steps[*].args.",
            "steps[?name=='x']",
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
