//! Do agents call each other as they should? Speaks of the tree of traces: the outermost, and those below agent calls.

mod agents;
mod flow;
mod report;
mod search;
mod timing;
mod totals;
mod walk;

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::check::Fold;
use crate::sequence::part::{self, Pair, folded};
use crate::spec::{self, Whole, either};
use crate::text::Text;
use crate::verdict::{Status, Verdict};

pub use report::{TreeReport, inspect_tree};
use search::Wanted;
use totals::{Bound, Quantity};

/// The members that a spec may have.
pub(crate) const MEMBERS: &[&str] = &[
    "check",
    "agent_id",
    "agents",
    "max_depth",
    "value",
    "case_sensitive",
    "from_agent",
    "to_agent",
    "field",
    "transitions",
    "operator",
    "op",
    "min",
    "max",
    "agent_a",
    "agent_b",
    "max_ms",
    "groups",
    "tools",
    "tool_names",
    "soft",
    "threshold",
];

const CHECKS: &str = "agent_called, delegation_depth, agent_output_contains, cross_agent_data_flow, follows_transitions, \
                      aggregate_cost, aggregate_tokens, aggregate_latency, agent_ordered_before, agents_overlap, \
                      agent_wall_time_under, ordered_agents, all_tools_called";

#[derive(Deserialize)]
struct Written<'a> {
    #[serde(borrow, default)]
    check: Text<'a>,
    #[serde(borrow, default)]
    agent_id: Option<Text<'a>>,
    #[serde(borrow, default)]
    agents: Option<Vec<Text<'a>>>,
    #[serde(default)]
    max_depth: Option<Whole>,
    // A text for one check, a number for others.
    #[serde(borrow, default)]
    value: Option<&'a RawValue>,
    #[serde(default)]
    case_sensitive: Option<bool>,
    #[serde(borrow, default)]
    from_agent: Option<Text<'a>>,
    #[serde(borrow, default)]
    to_agent: Option<Text<'a>>,
    #[serde(borrow, default)]
    field: Option<Text<'a>>,
    #[serde(borrow, default)]
    transitions: Option<Vec<Pair<'a>>>,
    #[serde(borrow, default)]
    operator: Option<Text<'a>>,
    #[serde(borrow, default)]
    op: Option<Text<'a>>,
    #[serde(default)]
    min: Option<f64>,
    #[serde(default)]
    max: Option<f64>,
    #[serde(borrow, default)]
    agent_a: Option<Text<'a>>,
    #[serde(borrow, default)]
    agent_b: Option<Text<'a>>,
    #[serde(default)]
    max_ms: Option<f64>,
    #[serde(borrow, default)]
    groups: Option<Vec<Vec<Text<'a>>>>,
    #[serde(borrow, default)]
    tools: Option<Vec<Text<'a>>>,
    #[serde(borrow, default)]
    tool_names: Option<Vec<Text<'a>>>,
    #[serde(default)]
    soft: Option<bool>,
}

/// Makes a check of a spec.
pub(crate) fn compile(spec: Option<&RawValue>) -> Result<Box<dyn Fold>, Verdict> {
    let written: Written<'_> = spec::read(spec)?;
    let check = written.check.as_str();
    if check.is_empty() {
        return Err(spec::missing("check", "a trace_tree assertion").evidence(CHECKS, "nothing"));
    }
    written.compile(check).map_err(|problem| match problem {
        Problem::Malformed(verdict) => verdict,
        Problem::Incomplete(mut verdict) => {
            if written.soft.unwrap_or(false) {
                verdict.status = Status::SoftFail;
            }
            verdict
        }
    })
}

/// Why a spec is no check.
enum Problem {
    /// It cannot be read, or names no check that there is.
    Malformed(Verdict),
    /// It lacks something that its check needs. Clients expect that `soft` softens this, unlike in all other layers.
    Incomplete(Verdict),
}

impl From<Verdict> for Problem {
    fn from(verdict: Verdict) -> Problem {
        Problem::Incomplete(verdict)
    }
}

impl Written<'_> {
    fn compile(&self, check: &str) -> Result<Box<dyn Fold>, Problem> {
        let soft = self.soft.unwrap_or(false);
        Ok(match check {
            "agent_called" => folded(agents::Called::new(self.agents_called()?), soft),
            "delegation_depth" => folded(agents::Depth::new(self.depth()?), soft),
            "agent_output_contains" => {
                let agent = name(self.agent_id.as_ref(), "agent_id", check)?;
                let wanted = Wanted::new(&self.text(check)?, self.case_sensitive.unwrap_or(false));
                folded(agents::Output::new(agent, wanted), soft)
            }
            "cross_agent_data_flow" => {
                let from = name(self.from_agent.as_ref(), "from_agent", check)?;
                let to = name(self.to_agent.as_ref(), "to_agent", check)?;
                folded(flow::Flow::new(from, to, name(self.field.as_ref(), "field", check)?), soft)
            }
            "follows_transitions" => {
                let pairs = self.transitions.as_deref().filter(|pairs| !pairs.is_empty());
                let pairs = pairs.ok_or_else(|| spec::missing("transitions", check))?;
                folded(agents::Transitions::new(pairs), soft)
            }
            "aggregate_cost" => folded(totals::Total::new(Quantity::Cost, self.bound(check)?), soft),
            "aggregate_tokens" => folded(totals::Total::new(Quantity::Tokens, self.bound(check)?), soft),
            "aggregate_latency" => folded(totals::Total::new(Quantity::Latency, self.bound(check)?), soft),
            "agent_ordered_before" => {
                let (first, second) = self.two_agents(check)?;
                folded(timing::Ordered::new(vec![vec![first], vec![second]]), soft)
            }
            "agents_overlap" => {
                let (first, second) = self.two_agents(check)?;
                folded(timing::Overlap::new(first, second), soft)
            }
            "agent_wall_time_under" => {
                let agent = name(self.agent_id.as_ref(), "agent_id", check)?;
                let most = self.max_ms.ok_or_else(|| spec::missing("max_ms", check))?;
                if most <= 0.0 {
                    return Err(out_of_range("max_ms", check, &most.to_string()).into());
                }
                folded(timing::WallTime::new(agent, most), soft)
            }
            "ordered_agents" => folded(timing::Ordered::new(self.groups()?), soft),
            "all_tools_called" => {
                let tools =
                    either(self.tools.as_ref(), self.tool_names.as_ref()).filter(|tools| !tools.is_empty());
                folded(agents::Tools::new(owned(tools.ok_or_else(|| spec::missing("tools", check))?)), soft)
            }
            other => {
                let unknown =
                    Verdict::error(format!("`{}` is not a check on trees of traces", part::brief(other)))
                        .evidence(CHECKS, part::brief(other))
                        .suggest("use one of the checks that are listed as expected");
                return Err(Problem::Malformed(unknown));
            }
        })
    }

    fn agents_called(&self) -> Result<Vec<String>, Verdict> {
        match (self.agent_id.as_ref().filter(|id| !id.is_empty()), self.agents.as_deref()) {
            (Some(agent), _) => Ok(vec![agent.as_str().to_owned()]),
            (None, Some(agents)) if named(agents) => Ok(owned(agents)),
            _ => Err(spec::missing("agent_id", "agent_called")),
        }
    }

    fn depth(&self) -> Result<usize, Verdict> {
        let most = self.max_depth.ok_or_else(|| spec::missing("max_depth", "delegation_depth"))?.0;
        usize::try_from(most)
            .ok()
            .filter(|most| *most > 0)
            .ok_or_else(|| out_of_range("max_depth", "delegation_depth", &most.to_string()))
    }

    fn text(&self, check: &str) -> Result<String, Problem> {
        let raw = self.value.ok_or_else(|| spec::missing("value", check))?;
        let text: Text<'_> = serde_json::from_str(raw.get()).map_err(|_| {
            Problem::Malformed(Verdict::error("the spec cannot be read: `value` is not a string"))
        })?;
        if text.is_empty() { Err(spec::missing("value", check).into()) } else { Ok(text.into_owned()) }
    }

    fn bound(&self, check: &str) -> Result<Bound, Problem> {
        let value = match self.value {
            None => 0.0,
            Some(raw) => serde_json::from_str::<f64>(raw.get()).map_err(|_| {
                Problem::Malformed(Verdict::error("the spec cannot be read: `value` is not a number"))
            })?,
        };
        let operator =
            either(self.operator.as_deref(), self.op.as_deref()).filter(|operator| !operator.is_empty());
        match operator.ok_or_else(|| spec::missing("operator", check))? {
            "lt" => Ok(Bound::Less(value)),
            "lte" => Ok(Bound::AtMost(value)),
            "gt" => Ok(Bound::More(value)),
            "gte" => Ok(Bound::AtLeast(value)),
            "eq" => Ok(Bound::Equal(value)),
            "between" => {
                let least = self.min.ok_or_else(|| spec::missing("min", "the operator between"))?;
                let most = self.max.ok_or_else(|| spec::missing("max", "the operator between"))?;
                Ok(Bound::Between(least, most))
            }
            other => Err(Verdict::error(format!("`{}` is not an operator", part::brief(other)))
                .evidence("lt, lte, gt, gte, eq, between", part::brief(other))
                .suggest("use one of the operators that are listed as expected")
                .into()),
        }
    }

    fn two_agents(&self, check: &str) -> Result<(String, String), Verdict> {
        match (&self.agent_a, &self.agent_b, self.agents.as_deref()) {
            (None, None, Some([first, second])) if !first.is_empty() && !second.is_empty() => {
                Ok((first.as_str().to_owned(), second.as_str().to_owned()))
            }
            (first, second, _) => {
                Ok((name(first.as_ref(), "agent_a", check)?, name(second.as_ref(), "agent_b", check)?))
            }
        }
    }

    fn groups(&self) -> Result<Vec<Vec<String>>, Verdict> {
        let groups: Vec<Vec<String>> = match (&self.groups, &self.agents) {
            (Some(groups), _) if groups.iter().all(|group| named(group)) => {
                groups.iter().map(|group| owned(group)).collect()
            }
            (None, Some(agents)) if named(agents) => {
                owned(agents).into_iter().map(|agent| vec![agent]).collect()
            }
            (None, _) => return Err(spec::missing("groups", "ordered_agents")),
            (Some(_), _) => return Err(out_of_range("groups", "ordered_agents", "a group without agents")),
        };
        if groups.len() < 2 {
            return Err(out_of_range("groups", "ordered_agents", "fewer than two groups"));
        }
        Ok(groups)
    }
}

fn name(text: Option<&Text<'_>>, member: &str, check: &str) -> Result<String, Verdict> {
    text.filter(|text| !text.is_empty())
        .map(|text| text.as_str().to_owned())
        .ok_or_else(|| spec::missing(member, check))
}

/// Whether there is a name, and none is empty.
fn named(names: &[Text<'_>]) -> bool {
    !names.is_empty() && names.iter().all(|name| !name.is_empty())
}

fn owned(names: &[Text<'_>]) -> Vec<String> {
    names.iter().map(|name| name.as_str().to_owned()).collect()
}

fn out_of_range(member: &str, check: &str, found: &str) -> Verdict {
    let needed = match member {
        "groups" => "at least two groups, each with at least one agent",
        _ => "more than 0",
    };
    Verdict::error(format!("`{member}` of {check} cannot be used: {found}"))
        .evidence(needed, found)
        .suggest(format!("give {check} a `{member}` that can be kept"))
}

#[cfg(test)]
mod tests;
