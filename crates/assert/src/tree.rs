//! Layer 7, `trace_tree`: checks on the traces of agents that call each other.

mod agents;
mod flow;
mod report;
mod search;
mod timing;
mod totals;
pub(crate) mod walk;

use std::collections::HashMap;

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::check::Fold;
use crate::sequence::part::{self, Name, Pair, folded};
use crate::spec::{self, Whole, either};
use crate::text::Text;
use crate::verdict::Verdict;

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
    agent_id: Option<Name<'a>>,
    #[serde(borrow, default)]
    agents: Option<Vec<Name<'a>>>,
    #[serde(default)]
    max_depth: Option<Whole>,
    // A text for one check, a number for others.
    #[serde(borrow, default)]
    value: Option<&'a RawValue>,
    #[serde(default)]
    case_sensitive: Option<bool>,
    #[serde(borrow, default)]
    from_agent: Option<Name<'a>>,
    #[serde(borrow, default)]
    to_agent: Option<Name<'a>>,
    #[serde(borrow, default)]
    field: Option<Name<'a>>,
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
    agent_a: Option<Name<'a>>,
    #[serde(borrow, default)]
    agent_b: Option<Name<'a>>,
    #[serde(default)]
    max_ms: Option<f64>,
    #[serde(borrow, default)]
    groups: Option<Vec<Vec<Name<'a>>>>,
    #[serde(borrow, default)]
    tools: Option<Vec<Name<'a>>>,
    #[serde(borrow, default)]
    tool_names: Option<Vec<Name<'a>>>,
    #[serde(default)]
    soft: Option<bool>,
}

/// Compiles a trace tree spec.
pub(crate) fn compile(spec: Option<&RawValue>) -> Result<Box<dyn Fold>, Verdict> {
    let written: Written<'_> = spec::read(spec)?;
    let check = written.check.as_str();
    if check.is_empty() {
        return Err(spec::missing("check", "a trace_tree assertion").evidence(CHECKS, "nothing"));
    }
    written.are_names()?;
    written.are_read(check)?;
    written.compile(check)
}

/// The members that a check reads, its usual ones first; nothing if there is no such check.
fn members_of(check: &str, between: bool) -> Option<&'static [&'static str]> {
    Some(match check {
        "agent_called" => &["agent_id", "agents"],
        "delegation_depth" => &["max_depth"],
        "agent_output_contains" => &["agent_id", "value", "case_sensitive"],
        "cross_agent_data_flow" => &["from_agent", "to_agent", "field"],
        "follows_transitions" => &["transitions"],
        "aggregate_cost" | "aggregate_tokens" | "aggregate_latency" if between => {
            &["operator", "op", "min", "max"]
        }
        "aggregate_cost" | "aggregate_tokens" | "aggregate_latency" => &["operator", "op", "value"],
        "agent_ordered_before" | "agents_overlap" => &["agent_a", "agent_b", "agents"],
        "agent_wall_time_under" => &["agent_id", "max_ms"],
        "ordered_agents" => &["groups", "agents"],
        "all_tools_called" => &["tools", "tool_names"],
        _ => return None,
    })
}

impl Written<'_> {
    /// Whether no name is empty. Only in transitions it may be: that is how an agent without a name is written.
    fn are_names(&self) -> Result<(), Verdict> {
        let singles = [
            ("agent_id", &self.agent_id),
            ("from_agent", &self.from_agent),
            ("to_agent", &self.to_agent),
            ("field", &self.field),
            ("agent_a", &self.agent_a),
            ("agent_b", &self.agent_b),
        ];
        let empty = singles.into_iter().find(|(_, name)| name.as_ref().is_some_and(|name| name.is_empty()));
        if let Some((member, _)) = empty {
            return Err(part::nameless(member));
        }
        let lists = [("agents", &self.agents), ("tools", &self.tools), ("tool_names", &self.tool_names)];
        let groups = self.groups.iter().flatten().map(|group| ("groups", group));
        let lists = lists.into_iter().filter_map(|(member, names)| Some((member, names.as_ref()?)));
        for (member, names) in lists.chain(groups) {
            part::not_too_many(names.len(), member)?;
            if names.iter().any(|name| name.is_empty()) {
                return Err(part::nameless(member));
            }
        }
        let grouped = self.groups.iter().flatten().map(|group| group.len().max(1));
        part::not_too_many(grouped.fold(0, usize::saturating_add), "groups")?;
        part::not_too_many(self.transitions.as_ref().map_or(0, Vec::len), "transitions")
    }

    /// Whether the check reads all that is written for some check.
    fn are_read(&self, check: &str) -> Result<(), Verdict> {
        let between = self.operator() == Some("between");
        let Some(read) = members_of(check, between) else { return Ok(()) };
        let with_operator = format!("{check} with the operator {}", self.operator().unwrap_or(""));
        let speaker = if read.contains(&"op") && self.operator().is_some() { &with_operator } else { check };
        part::only(
            speaker,
            read,
            [
                ("agent_id", self.agent_id.is_some()),
                ("agents", self.agents.is_some()),
                ("max_depth", self.max_depth.is_some()),
                ("value", self.value.is_some()),
                ("case_sensitive", self.case_sensitive.is_some()),
                ("from_agent", self.from_agent.is_some()),
                ("to_agent", self.to_agent.is_some()),
                ("field", self.field.is_some()),
                ("transitions", self.transitions.is_some()),
                ("operator", self.operator.is_some()),
                ("op", self.op.is_some()),
                ("min", self.min.is_some()),
                ("max", self.max.is_some()),
                ("agent_a", self.agent_a.is_some()),
                ("agent_b", self.agent_b.is_some()),
                ("max_ms", self.max_ms.is_some()),
                ("groups", self.groups.is_some()),
                ("tools", self.tools.is_some()),
                ("tool_names", self.tool_names.is_some()),
            ],
        )
    }

    fn operator(&self) -> Option<&str> {
        either(self.operator.as_deref(), self.op.as_deref())
    }

    fn compile(&self, check: &str) -> Result<Box<dyn Fold>, Verdict> {
        let soft = self.soft.unwrap_or(false);
        Ok(match check {
            "agent_called" => folded(agents::RequiredAgents::new(self.agents_called()?), soft),
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
                    return Err(out_of_range("max_ms", check, &most.to_string()));
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
                return Err(Verdict::error(format!(
                    "`{}` is not a check on trees of traces",
                    part::brief(other)
                ))
                .evidence(CHECKS, part::brief(other))
                .suggest("use one of the checks that are listed as expected"));
            }
        })
    }

    /// Reads one agent, a list of agents, or both.
    fn agents_called(&self) -> Result<Vec<String>, Verdict> {
        let agents: Vec<String> =
            self.agent_id.iter().chain(self.agents.iter().flatten()).map(|agent| agent.to_string()).collect();
        if agents.is_empty() { Err(spec::missing("agent_id", "agent_called")) } else { Ok(agents) }
    }

    fn depth(&self) -> Result<usize, Verdict> {
        let most = self.max_depth.ok_or_else(|| spec::missing("max_depth", "delegation_depth"))?.0;
        usize::try_from(most)
            .ok()
            .filter(|most| *most > 0)
            .ok_or_else(|| out_of_range("max_depth", "delegation_depth", &most.to_string()))
    }

    fn text(&self, check: &str) -> Result<String, Verdict> {
        let raw = self.value.ok_or_else(|| spec::missing("value", check))?;
        let text: Text<'_> = serde_json::from_str(raw.get())
            .map_err(|_| Verdict::error("the spec cannot be read: `value` is not a string"))?;
        if text.is_empty() { Err(spec::missing("value", check)) } else { Ok(text.into_owned()) }
    }

    fn bound(&self, check: &str) -> Result<Bound, Verdict> {
        let operator = self.operator().filter(|operator| !operator.is_empty());
        let operator = operator.ok_or_else(|| spec::missing("operator", check))?;
        let value = match self.value {
            None if operator == "between" => 0.0,
            None => return Err(spec::missing("value", check)),
            Some(raw) => serde_json::from_str::<f64>(raw.get())
                .map_err(|_| Verdict::error("the spec cannot be read: `value` is not a number"))?,
        };
        match operator {
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
                .suggest("use one of the operators that are listed as expected")),
        }
    }

    fn two_agents(&self, check: &str) -> Result<(String, String), Verdict> {
        let (first, second) = match (&self.agent_a, &self.agent_b, self.agents.as_deref()) {
            (None, None, Some([first, second])) => (first.to_string(), second.to_string()),
            (first, second, _) => {
                (name(first.as_ref(), "agent_a", check)?, name(second.as_ref(), "agent_b", check)?)
            }
        };
        if first == second {
            return Err(Verdict::error(format!(
                "{check} is about one agent only: `{}`",
                part::brief(&first)
            ))
            .evidence("two agents", "the same one twice")
            .suggest("name two agents that differ"));
        }
        Ok((first, second))
    }

    fn groups(&self) -> Result<Vec<Vec<String>>, Verdict> {
        let groups: Vec<Vec<String>> = match (&self.groups, &self.agents) {
            (Some(groups), _) => groups.iter().map(|group| owned(group)).collect(),
            (None, Some(agents)) => owned(agents).into_iter().map(|agent| vec![agent]).collect(),
            (None, None) => return Err(spec::missing("groups", "ordered_agents")),
        };
        if groups.len() < 2 {
            return Err(out_of_range("groups", "ordered_agents", "fewer than two groups"));
        }
        let mut known = HashMap::new();
        for (index, group) in groups.iter().enumerate() {
            if group.is_empty() {
                return Err(out_of_range("groups", "ordered_agents", "a group without agents"));
            }
            for agent in group {
                if *known.entry(agent).or_insert(index) != index {
                    let found = format!("`{}` is in two groups", part::brief(agent));
                    return Err(out_of_range("groups", "ordered_agents", &found));
                }
            }
        }
        Ok(groups)
    }
}

fn name(text: Option<&Name<'_>>, member: &str, check: &str) -> Result<String, Verdict> {
    text.map(|text| text.to_string()).ok_or_else(|| spec::missing(member, check))
}

fn owned(names: &[Name<'_>]) -> Vec<String> {
    names.iter().map(|name| name.to_string()).collect()
}

fn out_of_range(member: &str, check: &str, found: &str) -> Verdict {
    let needed = match member {
        "groups" => "at least two groups, each with at least one agent, no agent in two",
        _ => "more than 0",
    };
    Verdict::error(format!("`{member}` of {check} cannot be used: {found}"))
        .evidence(needed, found)
        .suggest(format!("give {check} a `{member}` that can be kept"))
}

#[cfg(test)]
mod tests;
