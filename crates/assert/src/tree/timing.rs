//! Checks on wall time and concurrency. A step belongs to the agent that it names, or else to the agent of its trace. Calls of other
//! agents without times are left out.

use std::collections::HashMap;

use super::walk::{self, StepPath, StepPathBuf};
use crate::sequence::part::{Part, brief, listed};
use crate::trace::{Head, Step, StepKind};
use crate::verdict::Verdict;

/// Time span of an agent's steps.
#[derive(Clone, Default)]
struct Span {
    start: Option<f64>,
    start_at: StepPathBuf,
    end: Option<f64>,
    end_at: StepPathBuf,
    /// The first step that does not say when it began.
    without_start: Option<String>,
    /// The first step that does not say when it ended.
    without_end: Option<String>,
    /// The first step that ended before it began, with both times.
    backwards: Option<(String, f64, f64)>,
    /// The sum of the times of the steps that say both.
    busy: f64,
    /// The first call of another agent without times.
    delegation: Option<String>,
}

impl Span {
    fn note(&mut self, step: &Step<'_>, place: &StepPath<'_>) {
        // The builders of the official SDKs give a delegation no times: those of the called agent are in its own trace.
        if step.kind == StepKind::AgentCall && step.started_at_ms.is_none() && step.ended_at_ms.is_none() {
            self.delegation.get_or_insert_with(|| place.to_string());
            return;
        }
        match step.started_at_ms {
            None if self.without_start.is_none() => self.without_start = Some(place.to_string()),
            Some(start) if self.start.is_none_or(|first| start < first) => {
                self.start = Some(start);
                self.start_at.set(place);
            }
            _ => {}
        }
        match step.ended_at_ms {
            None if self.without_end.is_none() => self.without_end = Some(place.to_string()),
            Some(end) if self.end.is_none_or(|last| end > last) => {
                self.end = Some(end);
                self.end_at.set(place);
            }
            _ => {}
        }
        if let (Some(start), Some(end)) = (step.started_at_ms, step.ended_at_ms) {
            self.busy += end - start;
            if end < start && self.backwards.is_none() {
                self.backwards = Some((place.to_string(), start, end));
            }
        }
    }

    fn join(&mut self, other: &Span) {
        if other.start.is_some_and(|start| self.start.is_none_or(|first| start < first)) {
            self.start = other.start;
            self.start_at = other.start_at.clone();
        }
        if other.end.is_some_and(|end| self.end.is_none_or(|last| end > last)) {
            self.end = other.end;
            self.end_at = other.end_at.clone();
        }
        self.without_start = self.without_start.take().or_else(|| other.without_start.clone());
        self.without_end = self.without_end.take().or_else(|| other.without_end.clone());
        self.backwards = self.backwards.take().or_else(|| other.backwards.clone());
        self.busy += other.busy;
        self.delegation = self.delegation.take().or_else(|| other.delegation.clone());
    }

    /// Whether its times can be: nothing ends before it begins.
    fn forwards(&self, agent: &str) -> Result<(), Verdict> {
        let Some((place, start, end)) = &self.backwards else { return Ok(()) };
        let agent = brief(agent);
        Err(Verdict::fail(false, format!("{place}, a step of `{agent}`, ended before it began"))
            .at(place.as_str())
            .evidence(format!("an end at {start} ms or later"), format!("it ended at {end} ms"))
            .suggest("see what wrote the times into the trace"))
    }

    /// The failure of an agent none of whose steps has a time.
    fn without_times(&self, agent: &str, member: &str) -> Verdict {
        self.delegation.as_deref().map_or_else(|| no_steps_of(agent), |place| timeless(agent, place, member))
    }

    /// Start of the agent's first step.
    fn began(&self, agent: &str) -> Result<f64, Verdict> {
        self.forwards(agent)?;
        match (self.start, &self.without_start) {
            (Some(start), None) => Ok(start),
            (_, Some(place)) => Err(timeless(agent, place, "started_at_ms")),
            (None, None) => Err(self.without_times(agent, "started_at_ms")),
        }
    }

    /// End of the agent's last step.
    fn ended(&self, agent: &str) -> Result<f64, Verdict> {
        self.forwards(agent)?;
        match (self.end, &self.without_end) {
            (Some(end), None) => Ok(end),
            (_, Some(place)) => Err(timeless(agent, place, "ended_at_ms")),
            (None, None) => Err(self.without_times(agent, "ended_at_ms")),
        }
    }
}

fn timeless(agent: &str, place: &str, member: &str) -> Verdict {
    Verdict::fail(false, format!("a step of `{}` does not say `{member}`", brief(agent)))
        .at(place)
        .evidence(format!("a number at {place}.{member}"), "nothing")
        .suggest(format!("let the agent's recorder write `{member}` at each step"))
}

fn no_steps_of(agent: &str) -> Verdict {
    let agent = brief(agent);
    Verdict::fail(false, format!("there is no step of `{agent}`"))
        .at("steps")
        .evidence(format!("a step of {agent}"), "no such step")
        .suggest("see whether the agent acted, and whether its steps or its trace say `agent_id`")
}

/// Time spans of some agents.
struct Spans {
    named: HashMap<String, Span>,
    /// Steps of the outermost trace that name no agent: whose they are is known last.
    unnamed: Span,
}

impl Spans {
    fn of<'n>(agents: impl IntoIterator<Item = &'n String>) -> Spans {
        let named = agents.into_iter().map(|agent| (agent.clone(), Span::default())).collect();
        Spans { named, unnamed: Span::default() }
    }

    fn note(&mut self, index: usize, step: &Step<'_>) {
        walk::steps(index, step, &mut |step, within, place| {
            let span = match within {
                _ if !step.agent_id.is_empty() => self.named.get_mut(step.agent_id.as_str()),
                Some(head) => self.named.get_mut(head.agent_id.as_str()),
                None => Some(&mut self.unnamed),
            };
            if let Some(span) = span {
                span.note(step, place);
            }
        });
    }

    fn get(&self, agent: &str, head: &Head<'_>) -> Span {
        let mut span = self.named.get(agent).cloned().unwrap_or_default();
        if head.agent_id.as_str() == agent {
            span.join(&self.unnamed);
        }
        span
    }
}

/// Check that all agents of a group end before any of the next begins.
pub(super) struct Ordered {
    groups: Vec<Vec<String>>,
    spans: Spans,
}

impl Ordered {
    pub(super) fn new(groups: Vec<Vec<String>>) -> Ordered {
        Ordered { spans: Spans::of(groups.iter().flatten()), groups }
    }

    fn check(&self, head: &Head<'_>) -> Result<Verdict, Verdict> {
        for (before, after) in self.groups.iter().zip(self.groups.iter().skip(1)) {
            let mut end = f64::NEG_INFINITY;
            let mut last = "";
            for agent in before {
                let ended = self.spans.get(agent, head).ended(agent)?;
                if ended > end {
                    (end, last) = (ended, agent);
                }
            }
            for agent in after {
                let span = self.spans.get(agent, head);
                let start = span.began(agent)?;
                if end < start {
                    continue;
                }
                let (first, second) = (brief(last), brief(agent));
                return Err(Verdict::fail(false, format!("`{second}` began before `{first}` had ended"))
                    .at(span.start_at.to_string())
                    .evidence(format!("{second} begins after {end} ms"), format!("it begins at {start} ms"))
                    .suggest("see whether the second agent should have waited for the first"));
            }
        }
        let groups: Vec<String> = self.groups.iter().map(|group| group.join(" + ")).collect();
        Ok(Verdict::pass(format!("one after the other: {}", listed(groups.iter().map(String::as_str)))))
    }
}

impl Part for Ordered {
    fn step(&mut self, index: usize, step: &Step<'_>) {
        self.spans.note(index, step);
    }

    fn finding(&self, _seen: usize, head: &Head<'_>) -> Verdict {
        self.check(head).unwrap_or_else(|failure| failure)
    }
}

/// Two agents act at the same time.
pub(super) struct Overlap {
    first: String,
    second: String,
    spans: Spans,
}

impl Overlap {
    pub(super) fn new(first: String, second: String) -> Overlap {
        Overlap { spans: Spans::of([&first, &second]), first, second }
    }

    fn check(&self, head: &Head<'_>) -> Result<Verdict, Verdict> {
        let (one, two) = (self.spans.get(&self.first, head), self.spans.get(&self.second, head));
        let (one_start, one_end) = (one.began(&self.first)?, one.ended(&self.first)?);
        let (two_start, two_end) = (two.began(&self.second)?, two.ended(&self.second)?);
        let (first, second) = (brief(&self.first), brief(&self.second));
        if one_start < two_end && two_start < one_end {
            return Ok(Verdict::pass(format!("`{first}` and `{second}` acted at the same time")));
        }
        let later = if one_start > two_start { &one } else { &two };
        Err(Verdict::fail(false, format!("`{first}` and `{second}` did not act at the same time"))
            .at(later.start_at.to_string())
            .evidence(
                "times that overlap",
                format!(
                    "{first} from {one_start} to {one_end} ms, {second} from {two_start} to {two_end} ms"
                ),
            )
            .suggest("see whether one agent waits for the other"))
    }
}

impl Part for Overlap {
    fn step(&mut self, index: usize, step: &Step<'_>) {
        self.spans.note(index, step);
    }

    fn finding(&self, _seen: usize, head: &Head<'_>) -> Verdict {
        self.check(head).unwrap_or_else(|failure| failure)
    }
}

/// The steps of an agent take less time than this, all added up.
pub(super) struct WallTime {
    agent: String,
    most: f64,
    spans: Spans,
}

impl WallTime {
    pub(super) fn new(agent: String, most: f64) -> WallTime {
        WallTime { spans: Spans::of([&agent]), agent, most }
    }

    fn check(&self, head: &Head<'_>) -> Result<Verdict, Verdict> {
        let span = self.spans.get(&self.agent, head);
        span.began(&self.agent)?;
        span.ended(&self.agent)?;
        let (agent, busy, most) = (brief(&self.agent), span.busy, self.most);
        if busy < most {
            return Ok(Verdict::pass(format!(
                "the steps of `{agent}` took {busy} ms, less than {most} ms asked for"
            )));
        }
        Err(Verdict::fail(
            false,
            format!("the steps of `{agent}` took {busy} ms, less than {most} ms asked for"),
        )
        .at(span.end_at.to_string())
        .evidence(format!("less than {most} ms"), format!("{busy} ms"))
        .suggest("see which step takes longest, or allow more"))
    }
}

impl Part for WallTime {
    fn step(&mut self, index: usize, step: &Step<'_>) {
        self.spans.note(index, step);
    }

    fn finding(&self, _seen: usize, head: &Head<'_>) -> Verdict {
        self.check(head).unwrap_or_else(|failure| failure)
    }
}
