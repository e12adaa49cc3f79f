//! Advice to agents that ask for it: whether to work while idle, the intent of a prompt, how to plan and reason,
//! what it may be shown of its workspace and its past, how long to wait.
//!
//! Advice allows no action and denies none: decisions never read it. Where several documents give advice, all of them must
//! agree, so another document can only make it narrower.
//!
//! ```
//! use proctor_policy::advice::{Advice, PlanningAdvice};
//! use proctor_policy::policy::{Policy, Source};
//! let text = "default: deny\nadvice: {planning: {strategies: [step_by_step], deny: [production]}}\n";
//! let policy = Policy::compile(vec![Source::document("policy.yaml", text)]).unwrap();
//! let advice = policy.advice(&Default::default());
//! let PlanningAdvice::Use { strategy, .. } = advice.planning("tidy up", &["tree_of_thoughts", "step_by_step"]) else {
//!     panic!("refused")
//! };
//! assert_eq!(strategy, "step_by_step");
//! assert!(matches!(advice.planning("tidy up Production", &[]), PlanningAdvice::Block { .. }));
//! ```

mod answers;
mod compiled;
mod path;
mod phrases;
mod section;
mod text;

use std::sync::Arc;

use proctor_core::time::Timestamp;

use crate::calendar;
use crate::document::DEFAULT_RETRY_AFTER_MS;

pub use answers::{
    ContextAdvice, ContextScope, IdleAdvice, Intent, MemoryAdvice, PlanningAdvice, RateLimitAdvice,
    ReasoningAdvice,
};
pub(crate) use compiled::CompiledSection;
pub(crate) use path::PathPattern;
pub(crate) use phrases::Phrases;
pub use section::{
    AdviceSection, ContextSection, IdleSection, IntentMatch, IntentSection, MemorySection, MemorySessions,
    PlanningSection, RateLimitSection, ReasoningSection, TextSection,
};

/// Default confidence of an intent rule.
pub const DEFAULT_CONFIDENCE: f32 = 0.8;
/// Default of the most characters of a task or a problem.
pub const DEFAULT_MAX_CHARS: u32 = 100_000;
/// Default of the most results of context and memory.
pub const DEFAULT_MAX_RESULTS: u32 = 20;
/// Default of the most bytes of files in context.
pub const DEFAULT_MAX_BYTES: u32 = 64 * 1024;
/// The longest wait for a rate limit if no document says: a minute.
pub const DEFAULT_MAX_WAIT_MS: u64 = 60_000;
/// Bytes of a prompt that are searched for its intent.
pub const MAX_PROMPT_BYTES: usize = 64 * 1024;
/// The most characters of a target that an intent names.
pub const MAX_TARGET_CHARS: usize = 256;

/// The advice of all documents that apply to one caller. Without such a document, the constants here hold.
#[derive(Debug, Clone, Default)]
pub struct Advice {
    parts: Vec<Arc<CompiledSection>>,
}

impl Advice {
    pub(crate) fn new(parts: Vec<Arc<CompiledSection>>) -> Advice {
        Advice { parts }
    }

    /// Whether the agent may work of its own accord while it has nothing to do.
    pub fn idle(&self, now: Timestamp) -> IdleAdvice<'_> {
        for idle in self.sections(|section| section.idle.as_ref()) {
            let outside = idle.hours.as_ref().is_some_and(|hours| !calendar::is_active(hours, now));
            if !idle.allow || outside {
                let built_in =
                    if idle.allow { "outside the hours for idle work" } else { "idle work is not allowed" };
                return IdleAdvice::Defer {
                    reason: idle.reason.as_deref().unwrap_or(built_in),
                    retry_after_ms: idle.retry_after_ms.unwrap_or(DEFAULT_RETRY_AFTER_MS),
                };
            }
        }
        IdleAdvice::Allow
    }

    /// Intent of a prompt: the first intent rule that matches. Only the first [`MAX_PROMPT_BYTES`] are searched.
    pub fn intent(&self, prompt: &str) -> Option<Intent<'_>> {
        let prompt = text::beginning(prompt, MAX_PROMPT_BYTES);
        self.parts.iter().find_map(|part| part.intent(prompt))
    }

    /// Advice on planning a task. A strategy is called by its name, a custom one `custom:NAME`. What the agent offers is in its order
    /// of preference, and empty if it leaves the choice open.
    pub fn planning<'a>(&'a self, task: &str, offered: &[&'a str]) -> PlanningAdvice<'a> {
        let rules: Vec<_> = self.parts.iter().filter_map(|part| part.tasks()).collect();
        if let Some(reason) = text::refusal(&rules, "planning", "task", task) {
            return PlanningAdvice::Block { reason };
        }
        let lists: Vec<(&PlanningSection, &[String])> = self
            .sections(|section| section.planning.as_ref())
            .filter_map(|planning| Some((planning, planning.strategies.as_deref()?)))
            .collect();
        match strategy(&lists, offered) {
            Ok(strategy) => PlanningAdvice::Use {
                strategy,
                hints: distinct(self.sections(|section| section.planning.as_ref()).map(|found| &found.text)),
                template: self.sections(|section| section.planning.as_ref()?.template.as_ref()).next(),
            },
            Err(NoStrategy { reason }) => PlanningAdvice::Block { reason },
        }
    }

    /// Whether to reason in this way about a problem. A way is called by its name, any other `other:NAME`.
    pub fn reasoning(&self, kind: &str, problem: &str) -> ReasoningAdvice<'_> {
        let rules: Vec<_> = self.parts.iter().filter_map(|part| part.problems()).collect();
        if let Some(reason) = text::refusal(&rules, "reasoning", "problem", problem) {
            return ReasoningAdvice::Block { reason };
        }
        for reasoning in self.sections(|section| section.reasoning.as_ref()) {
            if let Some(types) = &reasoning.types
                && !types.iter().any(|name| name == kind)
            {
                let names: Vec<&str> = types.iter().map(String::as_str).collect();
                let (kind, allowed) = (text::quoted(kind), text::allowed_are(&names));
                let built_in = || format!("{kind} is not an allowed type of reasoning; {allowed}");
                return ReasoningAdvice::Block { reason: reasoning.text.reason_or(built_in) };
            }
        }
        let texts = self.sections(|section| section.reasoning.as_ref()).map(|found| &found.text);
        ReasoningAdvice::Allow { hints: distinct(texts) }
    }

    /// Part of the workspace that the agent may be shown, besides what rules say about reading each file.
    pub fn context(&self) -> ContextAdvice<'_> {
        let sections = || self.sections(|section| section.context.as_ref());
        if let Some(closed) = sections().find(|context| !context.allow) {
            let reason = closed.reason.as_deref().unwrap_or("context is not given");
            return ContextAdvice::Block { reason };
        }
        ContextAdvice::Allow(ContextScope {
            parts: &self.parts,
            max_results: sections()
                .filter_map(|found| found.max_results)
                .min()
                .unwrap_or(DEFAULT_MAX_RESULTS),
            max_bytes: sections().filter_map(|found| found.max_bytes).min().unwrap_or(DEFAULT_MAX_BYTES),
        })
    }

    /// Part of the past that the agent may be told.
    pub fn memory(&self) -> MemoryAdvice<'_> {
        let sections = || self.sections(|section| section.memory.as_ref());
        if let Some(closed) = sections().find(|memory| !memory.allow) {
            return MemoryAdvice::Block { reason: closed.reason.as_deref().unwrap_or("memory is not given") };
        }
        MemoryAdvice::Allow {
            sessions: sections().filter_map(|found| found.sessions).min().unwrap_or_default(),
            max_results: sections()
                .filter_map(|found| found.max_results)
                .min()
                .unwrap_or(DEFAULT_MAX_RESULTS),
        }
    }

    /// Advice on a rate limit that asks for this wait. `spent`: a budget of the agent is used up, so that its next
    /// action would be denied anyhow.
    pub fn rate_limit(&self, wait_ms: u64, spent: bool) -> RateLimitAdvice {
        let sections = || self.sections(|section| section.rate_limit.as_ref());
        let skip = sections().filter_map(|found| found.skip_when_spent).reduce(|one, other| one || other);
        if spent && skip.unwrap_or(true) {
            return RateLimitAdvice::Skip { reason: "the budget is spent" };
        }
        let max = sections().filter_map(|found| found.max_wait_ms).min().unwrap_or(DEFAULT_MAX_WAIT_MS);
        if wait_ms > max { RateLimitAdvice::Queue } else { RateLimitAdvice::Retry { after_ms: wait_ms } }
    }

    /// Sections of one kind, of all documents that have it.
    fn sections<'a, T: 'a>(
        &'a self,
        which: impl Fn(&'a AdviceSection) -> Option<&'a T>,
    ) -> impl Iterator<Item = &'a T> {
        self.parts.iter().filter_map(move |part| which(part.section()))
    }
}

/// Refusal: none of the offered strategies is allowed.
struct NoStrategy {
    reason: String,
}

/// The strategy that the first list prefers among those that every list has and the agent offers.
fn strategy<'a>(
    lists: &[(&'a PlanningSection, &'a [String])],
    offered: &[&'a str],
) -> Result<&'a str, NoStrategy> {
    let Some(((first, preferred), others)) = lists.split_first() else {
        return Ok(offered.first().copied().unwrap_or("none"));
    };
    let permitted: Vec<&str> = preferred
        .iter()
        .map(String::as_str)
        .filter(|name| others.iter().all(|(_, list)| list.iter().any(|other| other == name)))
        .collect();
    let chosen = permitted.iter().find(|name| offered.is_empty() || offered.contains(name));
    chosen.copied().ok_or_else(|| {
        // The document that leaves nothing speaks, if it has something to say.
        let leaves_nothing = |list: &[String]| !list.iter().any(|name| offered.contains(&name.as_str()));
        let speaker = lists.iter().find(|(_, list)| leaves_nothing(list)).map_or(*first, |(found, _)| *found);
        let allowed = text::allowed_are(&permitted);
        let reason =
            speaker.text.reason_or(|| format!("none of the offered strategies is allowed; {allowed}"));
        NoStrategy { reason }
    })
}

/// All hints in their order, each once.
fn distinct<'a>(sections: impl Iterator<Item = &'a TextSection>) -> Vec<&'a str> {
    let mut hints: Vec<&str> = Vec::new();
    for hint in sections.flat_map(|section| &section.hints) {
        if !hints.contains(&hint.as_str()) {
            hints.push(hint);
        }
    }
    hints
}

#[cfg(test)]
mod tests;
