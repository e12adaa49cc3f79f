//! Answers of advice.

use std::sync::Arc;

use proctor_core::json::Json;

use super::compiled::CompiledSection;
use super::path;
use super::section::MemorySessions;

/// Advice on idle work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum IdleAdvice<'a> {
    /// Idle work is allowed.
    Allow,
    /// Idle work is not allowed now.
    Defer {
        /// Reason.
        reason: &'a str,
        /// Retry delay, in milliseconds.
        retry_after_ms: u64,
    },
}

/// Intent of a prompt.
#[derive(Debug, Clone, PartialEq)]
pub struct Intent<'a> {
    /// The intent, as its rule names it.
    pub name: &'a str,
    /// Confidence: above 0, at most 1.
    pub confidence: f32,
    /// Type of the target.
    pub target_type: Option<&'a str>,
    /// The target: the part of the prompt that the group `target` of the rule's `regex` matched.
    pub target_name: Option<String>,
    /// The field of work.
    pub domain: Option<&'a str>,
}

/// Advice on planning.
#[derive(Debug, Clone, PartialEq)]
pub enum PlanningAdvice<'a> {
    /// Planning is allowed, with this strategy.
    Use {
        /// The strategy: one that was offered, or if none was, the first that documents name, or `none`.
        strategy: &'a str,
        /// Hints.
        hints: Vec<&'a str>,
        /// A template for the plan.
        template: Option<&'a Json>,
    },
    /// Planning is not allowed.
    Block {
        /// Reason.
        reason: String,
    },
}

/// Advice on reasoning.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReasoningAdvice<'a> {
    /// Reasoning is allowed.
    Allow {
        /// Hints.
        hints: Vec<&'a str>,
    },
    /// Reasoning of this type, or on this topic, is not allowed.
    Block {
        /// Reason.
        reason: String,
    },
}

/// Advice on context.
#[derive(Debug, Clone)]
pub enum ContextAdvice<'a> {
    /// Context is given within these bounds.
    Allow(ContextScope<'a>),
    /// Context is not given.
    Block {
        /// Reason.
        reason: &'a str,
    },
}

/// The bounds of context.
#[derive(Debug, Clone)]
pub struct ContextScope<'a> {
    pub(super) parts: &'a [Arc<CompiledSection>],
    /// The most results.
    pub max_results: u32,
    /// The most bytes of files, together.
    pub max_bytes: u32,
}

impl ContextScope<'_> {
    /// Whether a file may be shown, by its path from the workspace with `/` between names. A path that leaves the workspace, or
    /// that could be read in two ways, may not.
    pub fn matches(&self, path: &str) -> bool {
        path::segments(path).is_some_and(|segments| self.parts.iter().all(|part| part.shows(&segments)))
    }
}

/// Advice on memories.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MemoryAdvice<'a> {
    /// Memories are given within these bounds.
    Allow {
        /// Sessions whose memories are given.
        sessions: MemorySessions,
        /// The most results.
        max_results: u32,
    },
    /// Memories are not given.
    Block {
        /// Reason.
        reason: &'a str,
    },
}

/// Advice on a rate limit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RateLimitAdvice {
    /// The call is retried after a wait.
    Retry {
        /// Wait in milliseconds.
        after_ms: u64,
    },
    /// The call is queued.
    Queue,
    /// The call is skipped.
    Skip {
        /// Reason.
        reason: &'static str,
    },
}
