//! Checks on the order of steps.

use std::collections::{HashMap, HashSet};

use super::part::{NamePreview, Pair, Part, brief, counted, listed, names_of};
use crate::text::Text;
use crate::trace::{Head, Step};
use crate::verdict::Verdict;

/// The tools occur in this order, with anything between them.
pub(super) struct Subsequence {
    tools: Vec<String>,
    found: usize,
    names: NamePreview,
}

impl Subsequence {
    pub(super) fn new(tools: Vec<String>) -> Subsequence {
        Subsequence { tools, found: 0, names: NamePreview::default() }
    }
}

impl Part for Subsequence {
    fn step(&mut self, _index: usize, step: &Step<'_>) {
        if self.tools.get(self.found).is_some_and(|next| step.is_named(next)) {
            self.found += 1;
        }
        self.names.note_step(step);
    }

    fn finding(&self, _seen: usize, _head: &Head<'_>) -> Verdict {
        let wanted = listed(self.tools.iter().map(String::as_str));
        match (self.tools.get(self.found), self.found.checked_sub(1).and_then(|last| self.tools.get(last))) {
            (None, _) => Verdict::pass(format!("the tools were called in order: {wanted}")),
            (Some(next), before) => {
                let after = before.map(|last| format!(" after `{}`", brief(last))).unwrap_or_default();
                Verdict::fail(false, format!("`{}` was not called{after}", brief(next)))
                    .at("steps")
                    .evidence(format!("in this order: {wanted}"), self.names.to_string())
                    .suggest("see whether the agent skipped a tool or called it too early")
            }
        }
    }
}

/// The tools occur in this order, with nothing between them.
pub(super) struct Run {
    tools: Vec<String>,
    lookup: HashSet<String>,
    /// Failure function: for each length of a match, the longest shorter match that ends in the same steps.
    fallback: Vec<usize>,
    matched: usize,
    longest: usize,
    found: Option<usize>,
    names: NamePreview,
}

impl Run {
    pub(super) fn new(tools: Vec<String>) -> Run {
        let mut run = Run {
            lookup: tools.iter().cloned().collect(),
            fallback: vec![0, 0],
            tools,
            matched: 0,
            longest: 0,
            found: None,
            names: NamePreview::default(),
        };
        for end in 1..run.tools.len() {
            let before = run.fallback.get(end).copied().unwrap_or(0);
            let longer = run.tools.get(end).map_or(0, |tool| run.longer(before, tool));
            run.fallback.push(longer);
        }
        run
    }

    /// Length of the match after one more name.
    fn longer(&self, mut matched: usize, name: &str) -> usize {
        loop {
            if self.tools.get(matched).is_some_and(|next| next == name) {
                return matched + 1;
            }
            if matched == 0 {
                return 0;
            }
            matched = self.fallback.get(matched).copied().unwrap_or(0);
        }
    }
}

impl Part for Run {
    fn step(&mut self, index: usize, step: &Step<'_>) {
        self.names.note_step(step);
        if self.found.is_some() {
            return;
        }
        // A match goes on by one name: the one that is asked for, the first of them if both are.
        let asked_for = step.alias.is_empty() || self.lookup.contains(step.name.as_str());
        self.matched = self.longer(self.matched, if asked_for { &step.name } else { &step.alias });
        self.longest = self.longest.max(self.matched);
        if self.matched == self.tools.len() {
            self.found = Some((index + 1).saturating_sub(self.matched));
        }
    }

    fn finding(&self, _seen: usize, _head: &Head<'_>) -> Verdict {
        let wanted = listed(self.tools.iter().map(String::as_str));
        match self.found {
            Some(start) => Verdict::pass(format!("the steps from steps[{start}] on are exactly: {wanted}")),
            None => Verdict::fail(
                false,
                format!(
                    "the tools were not called one directly after the other; at most {} of {} were",
                    self.longest,
                    self.tools.len()
                ),
            )
            .at("steps")
            .evidence(format!("one after the other: {wanted}"), self.names.to_string())
            .suggest("if other steps may come between, use contains_in_order"),
        }
    }
}

/// Check that each step may follow the one before it.
pub(super) struct Transitions {
    allowed: HashMap<String, HashSet<String>>,
    listed: String,
    last: Option<Last>,
    wrong: Option<(usize, String, String)>,
}

/// The names of the step before.
#[derive(Default)]
struct Last {
    name: String,
    alias: String,
}

impl Last {
    fn set(&mut self, step: &Step<'_>) {
        self.name.clear();
        self.name.push_str(&step.name);
        self.alias.clear();
        self.alias.push_str(&step.alias);
    }

    fn shown(&self) -> String {
        let step = Step {
            name: Text(self.name.as_str().into()),
            alias: Text(self.alias.as_str().into()),
            ..Step::default()
        };
        names_of(&step).into_owned()
    }
}

impl Transitions {
    pub(super) fn new(pairs: &[Pair<'_>]) -> Transitions {
        let (allowed, listed) = allowed(pairs);
        Transitions { allowed, listed, last: None, wrong: None }
    }
}

/// The pairs for looking up, and for showing.
pub(crate) fn allowed(pairs: &[Pair<'_>]) -> (HashMap<String, HashSet<String>>, String) {
    let mut allowed: HashMap<String, HashSet<String>> = HashMap::new();
    let mut shown = NamePreview::default();
    for pair in pairs {
        allowed.entry(pair.from.to_string()).or_default().insert(pair.to.to_string());
        shown.note(&format!("{} → {}", brief(&pair.from), brief(&pair.to)));
    }
    (allowed, shown.to_string())
}

impl Part for Transitions {
    fn step(&mut self, index: usize, step: &Step<'_>) {
        if self.wrong.is_some() {
            return;
        }
        if let Some(last) = &self.last {
            // No pair has an empty name, so that a step without another name is not found by it.
            let may_follow = |from: &str| {
                let next = self.allowed.get(from);
                next.is_some_and(|next| {
                    next.contains(step.name.as_str()) || next.contains(step.alias.as_str())
                })
            };
            if !may_follow(&last.name) && !may_follow(&last.alias) {
                self.wrong = Some((index, last.shown(), names_of(step).into_owned()));
            }
        }
        self.last.get_or_insert_default().set(step);
    }

    fn finding(&self, seen: usize, _head: &Head<'_>) -> Verdict {
        match &self.wrong {
            None => Verdict::pass(format!("{} in an order that is listed", counted(seen, "step"))),
            Some((index, from, to)) => {
                Verdict::fail(false, format!("`{to}` came after `{from}`, which is not listed"))
                    .at(format!("steps[{index}]"))
                    .evidence(self.listed.as_str(), format!("{from} → {to}"))
                    .suggest("list the transition if it is meant, or see why the agent took it")
            }
        }
    }
}
