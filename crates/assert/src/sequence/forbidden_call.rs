//! The check that no call of a tool has these arguments.

use serde_json::value::RawValue;

use super::exact::{Exact, Incomparable};
use super::part::{Part, brief};
use crate::trace::{Head, Step};
use crate::tree::walk;
use crate::verdict::{Verdict, cut};

/// Fails if a step, of sub-traces too, calls the tool with arguments that have what is excluded.
pub(super) struct ForbiddenCall {
    tool: String,
    args: Option<ExcludedArgs>,
    soft: bool,
    calls: usize,
    /// The first call that has the excluded arguments: its path, and the arguments.
    found: Option<(String, String)>,
    /// The first call whose arguments cannot be compared: its path, and the cause.
    unfit: Option<(String, String)>,
}

/// Excluded arguments, parsed and as written.
pub(super) struct ExcludedArgs {
    args: Exact,
    text: String,
    case_sensitive: bool,
}

impl ExcludedArgs {
    pub(super) fn read(raw: &RawValue, case_sensitive: bool) -> Result<ExcludedArgs, Incomparable> {
        let args = Exact::read(raw.get())?;
        let args = if case_sensitive { args } else { args.lowered() };
        Ok(ExcludedArgs { args, text: raw.get().to_owned(), case_sensitive })
    }

    /// Whether it names at least one argument.
    pub(super) fn names_arguments(&self) -> bool {
        matches!(&self.args, Exact::Members(members) if !members.is_empty())
    }

    /// Whether these arguments have what is excluded; an error if that cannot be said.
    fn is_in(&self, args: Option<&RawValue>) -> Result<bool, String> {
        let Some(raw) = args.map(RawValue::get).filter(|raw| *raw != "null") else { return Ok(false) };
        let found = Exact::read(raw).map_err(|unfit| unfit.to_string())?;
        if !matches!(found, Exact::Members(_)) {
            return Err("they are no object with names".to_owned());
        }
        let found = if self.case_sensitive { found } else { found.lowered() };
        Ok(found.mentions(&self.args))
    }
}

impl ForbiddenCall {
    pub(super) fn new(tool: String, args: Option<ExcludedArgs>, soft: bool) -> ForbiddenCall {
        ForbiddenCall { tool, args, soft, calls: 0, found: None, unfit: None }
    }

    fn note(&mut self, step: &Step<'_>, place: &walk::StepPath<'_>) {
        if !step.is_named(&self.tool) {
            return;
        }
        self.calls = self.calls.saturating_add(1);
        if self.found.is_some() {
            return;
        }
        let shown =
            || step.args.map_or_else(|| "no arguments".to_owned(), |args| cut(args.get(), 400).into_owned());
        match self.args.as_ref().map_or(Ok(true), |args| args.is_in(step.args)) {
            Ok(true) => self.found = Some((place.to_string(), shown())),
            Err(why) if self.unfit.is_none() => self.unfit = Some((place.to_string(), why)),
            Ok(false) | Err(_) => {}
        }
    }
}

impl Part for ForbiddenCall {
    fn step(&mut self, index: usize, step: &Step<'_>) {
        walk::steps(index, step, &mut |step, _, place| self.note(step, place));
    }

    fn finding(&self, _seen: usize, _head: &Head<'_>) -> Verdict {
        let tool = brief(&self.tool);
        let excluded = self.args.as_ref().map(|args| cut(&args.text, 400));
        let with = if excluded.is_some() { " with arguments that it must not have" } else { "" };
        // A failure that is only soft does not hide a call that could not be decided.
        if let Some((place, why)) = self.unfit.as_ref().filter(|_| self.found.is_none() || self.soft) {
            return Verdict::error(format!(
                "{place}, a call of `{tool}`, cannot be decided: its arguments cannot be compared: {why}"
            ))
            .at(format!("{place}.args"))
            .suggest("have the agent's trace carry arguments as an object");
        }
        if let Some((place, shown)) = &self.found {
            let expected = match &excluded {
                Some(args) => format!("no call of {tool} with {args}"),
                None => format!("no call of {tool}"),
            };
            let member = if excluded.is_some() { ".args" } else { "" };
            return Verdict::fail(false, format!("{place} calls `{tool}`{with}"))
                .at(format!("{place}{member}"))
                .evidence(expected, shown.as_str())
                .suggest("find out why the agent made this call");
        }
        match (self.calls, excluded) {
            (0, _) => Verdict::pass(format!("`{tool}` was not called")),
            (calls, _) => {
                Verdict::pass(format!("none of the calls of `{tool}` ({calls}) has these arguments"))
            }
        }
    }
}
