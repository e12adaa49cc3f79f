//! Checks on the presence and number of steps.

use std::collections::HashSet;

use super::part::{NamePreview, Part, brief, counted, listed, names_of};
use crate::trace::{Head, Step};
use crate::verdict::Verdict;

/// A tool is called at most so many times.
pub(super) struct Calls {
    tool: String,
    most: usize,
    count: usize,
    first_too_many: Option<usize>,
}

impl Calls {
    pub(super) fn new(tool: String, most: usize) -> Calls {
        Calls { tool, most, count: 0, first_too_many: None }
    }
}

impl Part for Calls {
    fn step(&mut self, index: usize, step: &Step<'_>) {
        if step.is_named(&self.tool) {
            self.count += 1;
            if self.count > self.most && self.first_too_many.is_none() {
                self.first_too_many = Some(index);
            }
        }
    }

    fn finding(&self, _seen: usize, _head: &Head<'_>) -> Verdict {
        let (tool, calls) = (brief(&self.tool), counted(self.count, "call"));
        match self.first_too_many {
            None => Verdict::pass(format!("{calls} of `{tool}`, at most {} allowed", self.most)),
            Some(index) => {
                Verdict::fail(false, format!("{calls} of `{tool}`, at most {} allowed", self.most))
                    .at(format!("steps[{index}]"))
                    .evidence(format!("at most {} of {tool}", counted(self.most, "call")), calls)
                    .suggest("see why the agent repeats the call: often its result is not what it hoped for")
            }
        }
    }
}

/// Check of the maximum number of steps.
pub(super) struct Steps {
    most: usize,
}

impl Steps {
    pub(super) fn new(most: usize) -> Steps {
        Steps { most }
    }
}

impl Part for Steps {
    fn step(&mut self, _index: usize, _step: &Step<'_>) {}

    fn finding(&self, seen: usize, _head: &Head<'_>) -> Verdict {
        let explanation = format!("{}, at most {} allowed", counted(seen, "step"), self.most);
        if seen <= self.most {
            return Verdict::pass(explanation);
        }
        Verdict::fail(false, explanation)
            .at(format!("steps[{}]", self.most))
            .evidence(format!("at most {}", counted(self.most, "step")), counted(seen, "step"))
            .suggest("see which steps the agent could do without, or allow more")
    }
}

/// No name occurs twice.
#[derive(Default)]
pub(super) struct Unique {
    seen: HashSet<String>,
    twice: Option<(usize, String)>,
}

impl Part for Unique {
    fn step(&mut self, index: usize, step: &Step<'_>) {
        if self.twice.is_some() {
            return;
        }
        if self.seen.contains(step.name.as_str()) {
            self.twice = Some((index, names_of(step).into_owned()));
            self.seen = HashSet::new();
        } else {
            self.seen.insert(step.name.as_str().to_owned());
        }
    }

    fn finding(&self, seen: usize, _head: &Head<'_>) -> Verdict {
        match &self.twice {
            None => Verdict::pass(format!("{}, each with a name of its own", counted(seen, "step"))),
            Some((index, name)) => Verdict::fail(false, format!("`{name}` occurs more than once"))
                .at(format!("steps[{index}]"))
                .evidence("every name once", format!("{name} again at steps[{index}]"))
                .suggest("if the tool may be called again, use loop_detection with a limit"),
        }
    }
}

/// Check that each of these tools is called.
pub(super) struct Required {
    tools: Vec<String>,
    missing: HashSet<String>,
    names: NamePreview,
}

impl Required {
    pub(super) fn new(tools: Vec<String>) -> Required {
        Required { missing: tools.iter().cloned().collect(), tools, names: NamePreview::default() }
    }
}

impl Part for Required {
    fn step(&mut self, _index: usize, step: &Step<'_>) {
        self.missing.remove(step.name.as_str());
        self.missing.remove(step.alias.as_str());
        self.names.note_step(step);
    }

    fn finding(&self, _seen: usize, _head: &Head<'_>) -> Verdict {
        let wanted = listed(self.tools.iter().map(String::as_str));
        if self.missing.is_empty() {
            return Verdict::pass(format!("called: {wanted}"));
        }
        Verdict::fail(false, format!("not called: {}", missing_of(&self.tools, &self.missing)))
            .at("steps")
            .evidence(wanted, self.names.to_string())
            .suggest("see whether the agent knows the tool, and the spelling of its name")
    }
}

/// Missing names of a list, without duplicates, in the order of the list.
pub(crate) fn missing_of(all: &[String], missing: &HashSet<String>) -> String {
    let mut told = HashSet::new();
    listed(all.iter().map(String::as_str).filter(|name| missing.contains(*name) && told.insert(*name)))
}

/// Check that none of these tools is called.
pub(super) struct Forbidden {
    tools: Vec<String>,
    lookup: HashSet<String>,
    called: Option<(usize, String)>,
}

impl Forbidden {
    pub(super) fn new(tools: Vec<String>) -> Forbidden {
        Forbidden { lookup: tools.iter().cloned().collect(), tools, called: None }
    }
}

impl Part for Forbidden {
    fn step(&mut self, index: usize, step: &Step<'_>) {
        let meant = |name: &str| self.lookup.contains(name);
        if self.called.is_none() && (meant(&step.name) || meant(&step.alias)) {
            self.called = Some((index, names_of(step).into_owned()));
        }
    }

    fn finding(&self, _seen: usize, _head: &Head<'_>) -> Verdict {
        let tools = listed(self.tools.iter().map(String::as_str));
        match &self.called {
            None => Verdict::pass(format!("not called: {tools}")),
            Some((index, name)) => Verdict::fail(false, format!("`{name}` was called and must not be"))
                .at(format!("steps[{index}]"))
                .evidence(format!("none of: {tools}"), name.as_str())
                .suggest("take the tool from the agent, or deny it by a rule"),
        }
    }
}
