//! The section `advice` as it is written.

use proctor_core::json::Json;
use rust_decimal::Decimal;

use crate::document::{ActiveHours, Position};

/// `advice`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AdviceSection {
    /// `idle`.
    pub idle: Option<IdleSection>,
    /// `intents`; the first that matches wins.
    pub intents: Vec<IntentSection>,
    /// `planning`.
    pub planning: Option<PlanningSection>,
    /// `reasoning`.
    pub reasoning: Option<ReasoningSection>,
    /// `context`.
    pub context: Option<ContextSection>,
    /// `memory`.
    pub memory: Option<MemorySection>,
    /// `rate_limit`.
    pub rate_limit: Option<RateLimitSection>,
    /// Position of the section.
    pub at: Position,
}

/// `advice.idle`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IdleSection {
    /// `allow`; absent is true.
    pub allow: bool,
    /// `hours`: only then; absent is always.
    pub hours: Option<ActiveHours>,
    /// `reason` of a refusal.
    pub reason: Option<String>,
    /// `retry_after` of a refusal, in milliseconds.
    pub retry_after_ms: Option<u64>,
}

/// An entry of `advice.intents`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IntentSection {
    /// `intent`.
    pub intent: String,
    /// `any` or `regex`.
    pub when: IntentMatch,
    /// `confidence`: above 0, at most 1.
    pub confidence: Option<Decimal>,
    /// `target_type`.
    pub target_type: Option<String>,
    /// `domain`.
    pub domain: Option<String>,
    /// Position of the entry.
    pub at: Position,
}

/// Condition for an intent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum IntentMatch {
    /// `any`: the prompt has one of these phrases.
    Any(Vec<String>),
    /// `regex`: the prompt has a match.
    Regex(String),
}

/// Keys that `advice.planning` and `advice.reasoning` share.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TextSection {
    /// `allow`; absent is true.
    pub allow: bool,
    /// `reason` of any refusal by this section.
    pub reason: Option<String>,
    /// `deny`: phrases that are refused.
    pub deny: Vec<String>,
    /// `max_chars`: longer texts are refused.
    pub max_chars: Option<u32>,
    /// `hints`.
    pub hints: Vec<String>,
}

/// `advice.planning`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlanningSection {
    /// Rules about the text of tasks.
    pub text: TextSection,
    /// `strategies`, in order of preference; `None` if absent.
    pub strategies: Option<Vec<String>>,
    /// `template`.
    pub template: Option<Json>,
}

/// `advice.reasoning`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReasoningSection {
    /// Rules about the text of problems.
    pub text: TextSection,
    /// `types`; `None` if absent.
    pub types: Option<Vec<String>>,
}

/// `advice.context`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContextSection {
    /// `allow`; absent is true.
    pub allow: bool,
    /// `reason` of a refusal.
    pub reason: Option<String>,
    /// `files`: patterns of what may be shown; `None` if absent.
    pub files: Option<Vec<String>>,
    /// `never`: patterns of what may not.
    pub never: Vec<String>,
    /// `max_results`.
    pub max_results: Option<u32>,
    /// `max_bytes`.
    pub max_bytes: Option<u32>,
}

/// `advice.memory`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemorySection {
    /// `allow`; absent is true.
    pub allow: bool,
    /// `reason` of a refusal.
    pub reason: Option<String>,
    /// `sessions`.
    pub sessions: Option<MemorySessions>,
    /// `max_results`.
    pub max_results: Option<u32>,
}

/// Sessions that may be recalled; the narrower is the lesser.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum MemorySessions {
    /// The same session.
    #[default]
    Own,
    /// All sessions of the same principal.
    Principal,
}

/// `advice.rate_limit`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RateLimitSection {
    /// `max_wait`, in milliseconds.
    pub max_wait_ms: Option<u64>,
    /// `skip_when_spent`.
    pub skip_when_spent: Option<bool>,
}
