//! Checks on which agents act, what they output, and which agents they call.

use std::collections::{HashMap, HashSet};

use super::search::Wanted;
use super::walk;
use crate::sequence::part::{Pair, Part, brief, counted, listed};
use crate::sequence::{allowed, missing_of};
use crate::trace::{Head, Step};
use crate::verdict::{Verdict, shortened};

/// Check that each of these agents acts.
pub(super) struct RequiredAgents {
    agents: Vec<String>,
    missing: HashSet<String>,
}

impl RequiredAgents {
    pub(super) fn new(agents: Vec<String>) -> RequiredAgents {
        RequiredAgents { missing: agents.iter().cloned().collect(), agents }
    }
}

impl Part for RequiredAgents {
    fn step(&mut self, index: usize, step: &Step<'_>) {
        if !self.missing.is_empty() {
            walk::traces(index, step, &mut |below, _, _| {
                self.missing.remove(below.head.agent_id.as_str());
            });
        }
    }

    fn finding(&self, _seen: usize, head: &Head<'_>) -> Verdict {
        let mut missing = self.missing.clone();
        missing.remove(head.agent_id.as_str());
        let wanted = listed(self.agents.iter().map(String::as_str));
        if missing.is_empty() {
            return Verdict::pass(format!("acted: {wanted}"));
        }
        let missing = missing_of(&self.agents, &missing);
        Verdict::fail(false, format!("no trace of: {missing}"))
            .at("steps")
            .evidence(format!("traces of: {wanted}"), format!("none of: {missing}"))
            .suggest("see whether the agent was called, and whether its trace says `agent_id`")
    }
}

/// Agents call agents at most so deep.
pub(super) struct Depth {
    most: usize,
    deepest: usize,
    too_deep: Option<String>,
}

impl Depth {
    pub(super) fn new(most: usize) -> Depth {
        Depth { most, deepest: 0, too_deep: None }
    }
}

impl Part for Depth {
    fn step(&mut self, index: usize, step: &Step<'_>) {
        walk::traces(index, step, &mut |_, _, place| {
            let depth = place.depth() + 1;
            self.deepest = self.deepest.max(depth);
            if depth > self.most && self.too_deep.is_none() {
                self.too_deep = Some(format!("{place}.sub_trace"));
            }
        });
    }

    fn finding(&self, _seen: usize, _head: &Head<'_>) -> Verdict {
        let explanation = format!(
            "agents call agents {} deep, at most {} allowed",
            counted(self.deepest, "level"),
            self.most
        );
        match &self.too_deep {
            None => Verdict::pass(explanation),
            Some(place) => Verdict::fail(false, explanation)
                .at(place.as_str())
                .evidence(format!("at most {}", counted(self.most, "level")), counted(self.deepest, "level"))
                .suggest("let the outer agent do the work itself, or allow more"),
        }
    }
}

/// Check that some output of an agent contains a text.
pub(super) struct Output {
    agent: String,
    wanted: Wanted,
    said: bool,
    /// Position of its first action, and its words there.
    first: Option<(String, String)>,
    acted: usize,
}

impl Output {
    pub(super) fn new(agent: String, wanted: Wanted) -> Output {
        Output { agent, wanted, said: false, first: None, acted: 0 }
    }

    fn says(&self, head: &Head<'_>) -> bool {
        head.output.is_some_and(|output| self.wanted.is_in(output.get()))
    }
}

fn shown(head: &Head<'_>) -> String {
    head.output.map_or_else(|| "no output".to_owned(), |output| shortened(output.get().to_owned()))
}

impl Part for Output {
    fn step(&mut self, index: usize, step: &Step<'_>) {
        if self.said {
            return;
        }
        walk::traces(index, step, &mut |below, _, place| {
            if self.said || below.head.agent_id.as_str() != self.agent {
                return;
            }
            self.said = self.says(&below.head);
            self.acted += 1;
            if self.first.is_none() {
                self.first = Some((format!("{place}.sub_trace.output"), shown(&below.head)));
            }
        });
    }

    fn finding(&self, _seen: usize, head: &Head<'_>) -> Verdict {
        let (agent, text) = (brief(&self.agent), brief(self.wanted.text()));
        let outermost = head.agent_id.as_str() == self.agent;
        if self.said || (outermost && self.says(head)) {
            return Verdict::pass(format!("the output of `{agent}` says `{text}`"));
        }
        let first = if outermost { Some(("output".to_owned(), shown(head))) } else { self.first.clone() };
        match first {
            None => no_trace_of(&self.agent),
            Some((place, output)) => {
                let outputs = counted(self.acted + usize::from(outermost), "output");
                Verdict::fail(false, format!("`{text}` is in none of {outputs} of `{agent}`"))
                    .at(place)
                    .evidence(format!("an output with {}", self.wanted.text()), output)
                    .suggest("see what the agent answered instead")
            }
        }
    }
}

/// An agent that a check needs did not act.
pub(super) fn no_trace_of(agent: &str) -> Verdict {
    let agent = brief(agent);
    Verdict::fail(false, format!("there is no trace of `{agent}`"))
        .at("steps")
        .evidence(format!("a trace of {agent}"), "no such trace")
        .suggest("see whether the agent was called, and whether its trace says `agent_id`")
}

/// Agents call only agents that they may call.
pub(super) struct Transitions {
    allowed: HashMap<String, HashSet<String>>,
    listed: String,
    /// Agents that the outermost agent called, and the first step that did; its own name is known last.
    called: Vec<(String, usize)>,
    known: HashSet<String>,
    /// The first call further below that is not listed: by a step below this one of the outermost trace.
    wrong: Option<(usize, String, String, String)>,
}

impl Transitions {
    pub(super) fn new(pairs: &[Pair<'_>]) -> Transitions {
        let (allowed, listed) = allowed(pairs);
        Transitions { allowed, listed, called: Vec::new(), known: HashSet::new(), wrong: None }
    }
}

fn may_call(allowed: &HashMap<String, HashSet<String>>, from: &str, to: &str) -> bool {
    allowed.get(from).is_some_and(|agents| agents.contains(to))
}

impl Part for Transitions {
    fn step(&mut self, index: usize, step: &Step<'_>) {
        // All that comes after the first wrong call is of no interest.
        if self.wrong.is_some() {
            return;
        }
        walk::traces(index, step, &mut |below, above, place| {
            let to = below.head.agent_id.as_str();
            match above {
                None if !self.known.contains(to) => {
                    self.known.insert(to.to_owned());
                    self.called.push((to.to_owned(), index));
                }
                None => {}
                Some(above) => {
                    let from = above.agent_id.as_str();
                    if self.wrong.is_none() && !may_call(&self.allowed, from, to) {
                        self.wrong = Some((index, place.to_string(), from.to_owned(), to.to_owned()));
                    }
                }
            }
        });
    }

    fn finding(&self, _seen: usize, head: &Head<'_>) -> Verdict {
        let from = head.agent_id.as_str();
        let outermost = self.called.iter().find(|(to, _)| !may_call(&self.allowed, from, to));
        // A call comes before what lies below it.
        let outermost =
            outermost.filter(|(_, index)| self.wrong.as_ref().is_none_or(|wrong| *index <= wrong.0));
        let (place, from, to) = match (outermost, &self.wrong) {
            (None, None) => return Verdict::pass("agents call only agents that are listed for them"),
            (Some((to, index)), _) => (format!("steps[{index}]"), from, to.as_str()),
            (None, Some((_, place, from, to))) => (place.clone(), from.as_str(), to.as_str()),
        };
        let (from, to) = (brief(from), brief(to));
        Verdict::fail(false, format!("`{from}` called `{to}`, which is not listed"))
            .at(place)
            .evidence(self.listed.as_str(), format!("{from} → {to}"))
            .suggest("list the call if it is meant, or see why the agent made it")
    }
}

/// Check that each of these tools is called by some agent.
pub(super) struct Tools {
    tools: Vec<String>,
    missing: HashSet<String>,
}

impl Tools {
    pub(super) fn new(tools: Vec<String>) -> Tools {
        Tools { missing: tools.iter().cloned().collect(), tools }
    }
}

impl Part for Tools {
    fn step(&mut self, index: usize, step: &Step<'_>) {
        if !self.missing.is_empty() {
            walk::steps(index, step, &mut |step, _, _| {
                self.missing.remove(step.name.as_str());
                self.missing.remove(step.alias.as_str());
            });
        }
    }

    fn finding(&self, _seen: usize, _head: &Head<'_>) -> Verdict {
        let wanted = listed(self.tools.iter().map(String::as_str));
        if self.missing.is_empty() {
            return Verdict::pass(format!("called by some agent: {wanted}"));
        }
        let missing = missing_of(&self.tools, &self.missing);
        Verdict::fail(false, format!("called by no agent: {missing}"))
            .at("steps")
            .evidence(wanted, format!("not called: {missing}"))
            .suggest("see whether an agent knows the tool, and the spelling of its name")
    }
}
