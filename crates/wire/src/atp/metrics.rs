//! Metrics of an execution.

use proctor_core::json::Json;

use super::check::{Basis, Fields};
use super::number::Number;
use super::object::put;

/// The metrics that an agent reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Metrics<'a> {
    /// All tokens.
    pub total_tokens: Option<u64>,
    /// Tokens of prompts.
    pub input_tokens: Option<u64>,
    /// Tokens of answers.
    pub output_tokens: Option<u64>,
    /// Steps of the agent.
    pub total_steps: Option<u64>,
    /// Calls of tools.
    pub tool_calls: Option<u64>,
    /// Calls of models.
    pub llm_calls: Option<u64>,
    /// Tokens written to a prompt cache; released agents only.
    pub cache_creation_tokens: Option<u64>,
    /// Tokens read from a prompt cache; released agents only.
    pub cache_read_tokens: Option<u64>,
    /// Duration of the execution.
    pub wall_time_seconds: Option<Number<'a>>,
    /// Cost in US dollars.
    pub cost_usd: Option<Number<'a>>,
}

/// Counts of the document's schema.
const COUNTS: [&str; 6] =
    ["total_tokens", "input_tokens", "output_tokens", "total_steps", "tool_calls", "llm_calls"];
/// Counts of released agents.
const MORE_COUNTS: [&str; 2] = ["cache_creation_tokens", "cache_read_tokens"];
const AMOUNTS: [&str; 2] = ["wall_time_seconds", "cost_usd"];

impl<'a> Metrics<'a> {
    pub(super) fn view(json: &'a Json) -> Metrics<'a> {
        let number = |name| json.get(name).and_then(Number::of);
        let count = |name| number(name).and_then(Number::as_u64);
        Metrics {
            total_tokens: count("total_tokens"),
            input_tokens: count("input_tokens"),
            output_tokens: count("output_tokens"),
            total_steps: count("total_steps"),
            tool_calls: count("tool_calls"),
            llm_calls: count("llm_calls"),
            cache_creation_tokens: count("cache_creation_tokens"),
            cache_read_tokens: count("cache_read_tokens"),
            wall_time_seconds: number("wall_time_seconds"),
            cost_usd: number("cost_usd"),
        }
    }

    /// The object of a response; absent metrics are left out.
    pub fn to_json(&self) -> Json {
        let mut json = Json::object();
        put(&mut json, "total_tokens", self.total_tokens);
        put(&mut json, "input_tokens", self.input_tokens);
        put(&mut json, "output_tokens", self.output_tokens);
        put(&mut json, "total_steps", self.total_steps);
        put(&mut json, "tool_calls", self.tool_calls);
        put(&mut json, "llm_calls", self.llm_calls);
        put(&mut json, "cache_creation_tokens", self.cache_creation_tokens);
        put(&mut json, "cache_read_tokens", self.cache_read_tokens);
        put(&mut json, "wall_time_seconds", self.wall_time_seconds);
        put(&mut json, "cost_usd", self.cost_usd);
        json
    }
}

pub(super) fn check(mut metrics: Fields<'_, '_, '_>) {
    for name in COUNTS {
        metrics.count(name);
    }
    for name in AMOUNTS {
        metrics.amount(name, Basis::Rule);
    }
    metrics.basis = Basis::Rule;
    for name in MORE_COUNTS {
        metrics.count(name);
    }
}

pub(super) fn normalise(json: &mut Json) {
    super::object::remove_nulls(json, &COUNTS);
    super::object::remove_nulls(json, &MORE_COUNTS);
    super::object::remove_nulls(json, &AMOUNTS);
}
