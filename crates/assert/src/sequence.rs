//! Layer 3, `trace`: order, counts and arguments of the steps of the outermost trace, of whatever kind.

mod arguments;
mod count;
mod exact;
mod forbidden_call;
mod order;
pub(crate) mod part;

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::check::Fold;
use crate::spec::{self, Whole, either};
use crate::text::Text;
use crate::tools::Tools;
use crate::verdict::Verdict;

use arguments::ExpectedValue;
pub(crate) use count::missing_of;
pub(crate) use exact::ExactNumber;
use forbidden_call::ExcludedArgs;
pub(crate) use order::allowed;
use part::{Name, Pair, folded};

/// The members that a spec may have.
pub(crate) const MEMBERS: &[&str] = &[
    "check",
    "tools",
    "tool_names",
    "tool",
    "tool_name",
    "max_repetitions",
    "max",
    "max_steps",
    "value",
    "transitions",
    "args",
    "result",
    "all",
    "case_sensitive",
    "soft",
    "threshold",
];

const CHECKS: &str = "contains_in_order, exact_order, loop_detection, no_duplicates, required_tools, forbidden_tools, \
                      contains, not_contains, no_call, transitions, max_steps, max_calls, argument_match";

#[derive(Deserialize)]
struct Written<'a> {
    #[serde(borrow, default)]
    check: Text<'a>,
    #[serde(borrow, default)]
    tools: Option<Vec<Name<'a>>>,
    #[serde(borrow, default)]
    tool_names: Option<Vec<Name<'a>>>,
    #[serde(borrow, default)]
    tool: Option<Name<'a>>,
    #[serde(borrow, default)]
    tool_name: Option<Name<'a>>,
    #[serde(default)]
    max_repetitions: Option<Whole>,
    #[serde(default)]
    max: Option<Whole>,
    #[serde(default)]
    max_steps: Option<Whole>,
    #[serde(default)]
    value: Option<Whole>,
    #[serde(borrow, default)]
    transitions: Option<Vec<Pair<'a>>>,
    #[serde(borrow, default, deserialize_with = "as_written")]
    args: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "as_written")]
    result: Option<&'a RawValue>,
    #[serde(default)]
    all: Option<bool>,
    #[serde(default)]
    case_sensitive: Option<bool>,
    #[serde(default)]
    soft: Option<bool>,
}

/// Keeps `null` apart from an absent member: it is a value that a call may have.
fn as_written<'de: 'a, 'a, D: serde::Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<&'a RawValue>, D::Error> {
    <&'a RawValue>::deserialize(deserializer).map(Some)
}

/// Compiles a trace spec.
pub(crate) fn compile(spec: Option<&RawValue>, _tools: &Tools) -> Result<Box<dyn Fold>, Verdict> {
    let written: Written<'_> = spec::read(spec)?;
    let soft = written.soft.unwrap_or(false);
    let check = written.check.as_str();
    written.are_names()?;
    written.are_read(check)?;
    match check {
        "" => Err(spec::missing("check", "a trace assertion").evidence(CHECKS, "nothing")),
        "contains_in_order" => Ok(folded(order::Subsequence::new(written.list(check)?), soft)),
        "exact_order" => Ok(folded(order::Run::new(written.list(check)?), soft)),
        "loop_detection" => {
            let most = either(written.max_repetitions, written.max);
            let most = at_least(1, most, "max_repetitions", check)?;
            Ok(folded(count::Calls::new(written.single(check)?, most), soft))
        }
        "max_calls" => {
            let most = at_least(0, either(written.max, written.max_repetitions), "max", check)?;
            Ok(folded(count::Calls::new(written.single(check)?, most), soft))
        }
        "max_steps" => {
            let most = either(written.max_steps, either(written.max, written.value));
            Ok(folded(count::Steps::new(at_least(0, most, "max_steps", check)?), soft))
        }
        "no_duplicates" => Ok(folded(count::Unique::default(), soft)),
        "required_tools" => Ok(folded(count::Required::new(written.list(check)?), soft)),
        "forbidden_tools" => Ok(folded(count::Forbidden::new(written.list(check)?), soft)),
        "contains" => Ok(folded(count::Required::new(written.one_or_more(check)?), soft)),
        "not_contains" => Ok(folded(count::Forbidden::new(written.one_or_more(check)?), soft)),
        "no_call" => Ok(folded(
            forbidden_call::ForbiddenCall::new(written.single(check)?, written.excluded()?, soft),
            soft,
        )),
        "transitions" | "state_transitions" | "follows_transitions" => {
            let pairs = written.transitions.as_deref().filter(|pairs| !pairs.is_empty());
            let pairs = pairs.ok_or_else(|| spec::missing("transitions", check))?;
            Ok(folded(order::Transitions::new(pairs), soft))
        }
        "argument_match" | "args_match" => {
            let (args, result) = (sought(written.args, "args")?, sought(written.result, "result")?);
            if args.is_none() && result.is_none() {
                return Err(spec::missing("args", check));
            }
            if args.as_ref().is_some_and(|args| !args.fits_arguments()) {
                return Err(Verdict::error("the spec cannot be read: `args` is not an object"));
            }
            let all = written.all.unwrap_or(false);
            Ok(folded(arguments::Arguments::new(written.single(check)?, args, result, all), soft))
        }
        other => Err(Verdict::error(format!("`{}` is not a check on traces", part::brief(other)))
            .evidence(CHECKS, part::brief(other))
            .suggest("use one of the checks that are listed as expected")),
    }
}

/// The members that a check reads, its usual ones first; nothing if there is no such check.
fn members_of(check: &str) -> Option<&'static [&'static str]> {
    Some(match check {
        "contains_in_order" | "exact_order" | "required_tools" | "forbidden_tools" => {
            &["tools", "tool_names"]
        }
        "contains" | "not_contains" => &["tool", "tool_name", "tools", "tool_names"],
        "no_call" => &["tool", "tool_name", "args", "case_sensitive"],
        "loop_detection" => &["tool", "tool_name", "max_repetitions", "max"],
        "max_calls" => &["tool", "tool_name", "max", "max_repetitions"],
        "max_steps" => &["max_steps", "max", "value"],
        "no_duplicates" => &[],
        "transitions" | "state_transitions" | "follows_transitions" => &["transitions"],
        "argument_match" | "args_match" => &["tool", "tool_name", "args", "result", "all"],
        _ => return None,
    })
}

impl Written<'_> {
    /// Whether no name is empty: no step has such a name, so that the check could never apply.
    fn are_names(&self) -> Result<(), Verdict> {
        let singles = [("tool", &self.tool), ("tool_name", &self.tool_name)];
        for (member, name) in singles.into_iter().filter_map(|(member, name)| Some((member, name.as_ref()?)))
        {
            part::not_blank([name], member)?;
        }
        let lists = [("tools", &self.tools), ("tool_names", &self.tool_names)];
        for (member, names) in lists.into_iter().filter_map(|(member, names)| Some((member, names.as_ref()?)))
        {
            part::not_too_many(names.len(), member)?;
            part::not_blank(names, member)?;
        }
        if let Some(pairs) = &self.transitions {
            part::not_too_many(pairs.len(), "transitions")?;
            part::not_blank(pairs.iter().flat_map(|pair| [&pair.from, &pair.to]), "transitions")?;
        }
        Ok(())
    }

    /// Whether the check reads all that is written for some check.
    fn are_read(&self, check: &str) -> Result<(), Verdict> {
        let Some(read) = members_of(check) else { return Ok(()) };
        part::only(
            check,
            read,
            [
                ("tools", self.tools.is_some()),
                ("tool_names", self.tool_names.is_some()),
                ("tool", self.tool.is_some()),
                ("tool_name", self.tool_name.is_some()),
                ("max_repetitions", self.max_repetitions.is_some()),
                ("max", self.max.is_some()),
                ("max_steps", self.max_steps.is_some()),
                ("value", self.value.is_some()),
                ("transitions", self.transitions.is_some()),
                ("args", self.args.is_some()),
                ("result", self.result.is_some()),
                ("all", self.all.is_some()),
                ("case_sensitive", self.case_sensitive.is_some()),
            ],
        )
    }

    /// The tools of a check: at least one.
    fn list(&self, check: &str) -> Result<Vec<String>, Verdict> {
        let named = either(self.tools.as_ref(), self.tool_names.as_ref()).filter(|tools| !tools.is_empty());
        let named = named.ok_or_else(|| spec::missing("tools", check))?;
        Ok(named.iter().map(|name| name.to_string()).collect())
    }

    /// The one tool of a check.
    fn single(&self, check: &str) -> Result<String, Verdict> {
        let named = either(self.tool.as_ref(), self.tool_name.as_ref());
        named.map(|tool| tool.to_string()).ok_or_else(|| spec::missing("tool", check))
    }

    /// The arguments that no call may have; `None`: no call at all is allowed.
    fn excluded(&self) -> Result<Option<ExcludedArgs>, Verdict> {
        let Some(args) = self.args else { return Ok(None) };
        let excluded = ExcludedArgs::read(args, self.case_sensitive.unwrap_or(false)).map_err(|unfit| {
            Verdict::error(format!("`args` of the spec cannot be compared: {unfit}"))
                .suggest("correct `args` of the spec")
        })?;
        if !excluded.names_arguments() {
            return Err(Verdict::error("`args` of no_call is not an object with at least one argument")
                .suggest("name an argument, or leave `args` out to exclude every call of the tool"));
        }
        Ok(Some(excluded))
    }

    /// Reads one tool, a list of tools, or both.
    fn one_or_more(&self, check: &str) -> Result<Vec<String>, Verdict> {
        match (self.single(check), self.list(check)) {
            (Err(problem), Err(_)) => Err(problem),
            (one, more) => Ok(one.into_iter().chain(more.into_iter().flatten()).collect()),
        }
    }
}

fn at_least(least: i64, number: Option<Whole>, member: &str, check: &str) -> Result<usize, Verdict> {
    let number = number.ok_or_else(|| spec::missing(member, check))?.0;
    usize::try_from(number).ok().filter(|_| number >= least).ok_or_else(|| {
        Verdict::error(format!("`{member}` of {check} is {number}, less than {least}"))
            .evidence(format!("at least {least}"), number.to_string())
            .suggest(format!("give {check} a larger `{member}`"))
    })
}

fn sought(raw: Option<&RawValue>, member: &str) -> Result<Option<ExpectedValue>, Verdict> {
    raw.map(ExpectedValue::read).transpose().map_err(|unfit| {
        Verdict::error(format!("`{member}` of the spec cannot be compared: {unfit}"))
            .suggest(format!("correct `{member}` of the spec"))
    })
}

#[cfg(test)]
mod tests;
