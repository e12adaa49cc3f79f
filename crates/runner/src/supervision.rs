//! Supervision of a running agent: constraints of the test, watched on its events.
//!
//! ```
//! use proctor_core::json::Json;
//! use proctor_runner::supervision::{Bounds, Crossing, Supervision};
//!
//! let bounds = Bounds { max_tokens: Some(100), ..Bounds::default() };
//! let mut supervision = Supervision::new(bounds);
//! let payload = Json::parse(br#"{"model": "m", "input_tokens": 90, "output_tokens": 20}"#).unwrap();
//! assert_eq!(supervision.observe("llm_request", &payload), Some(Crossing::Tokens { used: 110, limit: 100 }));
//! ```

use std::sync::Arc;

use proctor_core::json::Json;
use proctor_core::quoted;
use proctor_wire::atp::ErrorCode;

/// Constraints that bind while an agent runs. Time is kept elsewhere.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Bounds {
    /// Most steps.
    pub max_steps: Option<u64>,
    /// Most tokens.
    pub max_tokens: Option<u64>,
    /// Highest cost in US dollars.
    pub budget_usd: Option<f64>,
    /// The only tools that may be used; all if absent.
    pub allowed_tools: Option<Arc<[String]>>,
}

/// A constraint that was crossed.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum Crossing {
    /// The time is over.
    #[error("the agent took longer than {seconds} s")]
    Time {
        /// The limit.
        seconds: f64,
    },
    /// Too many steps.
    #[error("the agent took {used} steps; the limit is {limit}")]
    Steps {
        /// Steps taken.
        used: u64,
        /// The limit.
        limit: u64,
    },
    /// Too many tokens.
    #[error("the agent used {used} tokens; the limit is {limit}")]
    Tokens {
        /// Tokens used.
        used: u64,
        /// The limit.
        limit: u64,
    },
    /// Too expensive.
    #[error("the agent spent {used} USD; the budget is {limit} USD")]
    Budget {
        /// Cost.
        used: f64,
        /// The limit.
        limit: f64,
    },
    /// A tool that is not allowed.
    #[error("the agent used the tool {}, which the test does not allow", quoted(.0))]
    Tool(String),
}

impl Crossing {
    /// The protocol's error code for it.
    pub fn code(&self) -> ErrorCode {
        match self {
            Crossing::Time { .. } => ErrorCode::Timeout,
            Crossing::Steps { .. } | Crossing::Tokens { .. } | Crossing::Budget { .. } => {
                ErrorCode::BudgetExceeded
            }
            Crossing::Tool(_) => ErrorCode::ToolNotFound,
        }
    }
}

/// Amounts that an agent has used so far, against its bounds.
#[derive(Debug, Clone)]
pub struct Supervision {
    bounds: Bounds,
    reported_steps: u64,
    llm_requests: u64,
    tokens: u64,
    cost_usd: f64,
}

impl Supervision {
    /// Supervision of one run.
    pub fn new(bounds: Bounds) -> Supervision {
        Supervision { bounds, reported_steps: 0, llm_requests: 0, tokens: 0, cost_usd: 0.0 }
    }

    /// Looks at one event; a crossing ends the run.
    pub fn observe(&mut self, event_type: &str, payload: &Json) -> Option<Crossing> {
        let number = |name: &str| payload.get(name).and_then(Json::as_u64).unwrap_or(0);
        match event_type {
            "tool_call" => {
                let tool = payload.get("tool").and_then(Json::as_str).unwrap_or_default();
                return self.tool(tool);
            }
            "llm_request" => {
                self.llm_requests += 1;
                let used = number("input_tokens").saturating_add(number("output_tokens"));
                self.tokens = self.tokens.saturating_add(used);
                self.cost_usd += amount(payload, "cost_usd");
            }
            "progress" => self.reported_steps = self.reported_steps.max(number("current_step")),
            _ => return None,
        }
        self.crossed()
    }

    /// Looks at a tool that the agent calls.
    pub fn tool(&self, tool: &str) -> Option<Crossing> {
        let allowed = self.bounds.allowed_tools.as_ref()?;
        (!allowed.iter().any(|name| name == tool)).then(|| Crossing::Tool(tool.to_owned()))
    }

    /// Looks at the metrics of a response, which may say more than the events did.
    pub fn conclude(&mut self, metrics: &Json) -> Option<Crossing> {
        let number = |name: &str| metrics.get(name).and_then(Json::as_u64).unwrap_or(0);
        self.reported_steps = self.reported_steps.max(number("total_steps"));
        let both = number("input_tokens").saturating_add(number("output_tokens"));
        self.tokens = self.tokens.max(number("total_tokens")).max(both);
        self.cost_usd = self.cost_usd.max(amount(metrics, "cost_usd"));
        self.crossed()
    }

    /// Steps: as reported, else one for each request to a model.
    pub fn steps(&self) -> u64 {
        if self.reported_steps > 0 { self.reported_steps } else { self.llm_requests }
    }

    /// Tokens used.
    pub fn tokens(&self) -> u64 {
        self.tokens
    }

    /// Cost in US dollars.
    pub fn cost_usd(&self) -> f64 {
        self.cost_usd
    }

    fn crossed(&self) -> Option<Crossing> {
        let over = |used: u64, limit: Option<u64>| limit.filter(|limit| used > *limit);
        if let Some(limit) = over(self.steps(), self.bounds.max_steps) {
            return Some(Crossing::Steps { used: self.steps(), limit });
        }
        if let Some(limit) = over(self.tokens, self.bounds.max_tokens) {
            return Some(Crossing::Tokens { used: self.tokens, limit });
        }
        let limit = self.bounds.budget_usd.filter(|limit| self.cost_usd > *limit)?;
        Some(Crossing::Budget { used: self.cost_usd, limit })
    }
}

/// An amount of money; anything but a finite number that is not negative is nothing.
fn amount(object: &Json, name: &str) -> f64 {
    let literal = match object.get(name) {
        Some(Json::Number(literal)) => literal.parse::<f64>().unwrap_or(0.0),
        _ => 0.0,
    };
    if literal.is_finite() { literal.max(0.0) } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn supervision(bounds: Bounds) -> Supervision {
        Supervision::new(bounds)
    }

    fn json(text: &str) -> Json {
        Json::parse(text.as_bytes()).unwrap()
    }

    #[test]
    fn steps_are_those_reported_else_requests_to_models() {
        let mut counted = supervision(Bounds { max_steps: Some(2), ..Bounds::default() });
        let request = json(r#"{"model":"m"}"#);
        assert_eq!(counted.observe("llm_request", &request), None);
        assert_eq!(counted.observe("llm_request", &request), None);
        let crossing = counted.observe("llm_request", &request);
        assert_eq!(crossing, Some(Crossing::Steps { used: 3, limit: 2 }));
        let mut reported = supervision(Bounds { max_steps: Some(2), ..Bounds::default() });
        assert_eq!(reported.observe("progress", &json(r#"{"current_step":2}"#)), None);
        assert!(reported.conclude(&json(r#"{"total_steps":3}"#)).is_some());
    }

    #[test]
    fn tools_outside_the_list_are_crossings_and_an_empty_list_allows_none() {
        let call = json(r#"{"tool":"shell"}"#);
        let none: Arc<[String]> = Vec::new().into();
        let mut closed = supervision(Bounds { allowed_tools: Some(none), ..Bounds::default() });
        let crossing = closed.observe("tool_call", &call).unwrap();
        assert_eq!(crossing.code(), ErrorCode::ToolNotFound);
        assert_eq!(supervision(Bounds::default()).observe("tool_call", &call), None);
    }

    #[test]
    fn money_that_is_no_number_counts_as_nothing() {
        let mut spent = supervision(Bounds { budget_usd: Some(0.5), ..Bounds::default() });
        assert_eq!(spent.conclude(&json(r#"{"cost_usd":"9"}"#)), None);
        assert_eq!(spent.conclude(&json(r#"{"cost_usd":-9}"#)), None);
        assert_eq!(
            spent.conclude(&json(r#"{"cost_usd":0.75}"#)),
            Some(Crossing::Budget { used: 0.75, limit: 0.5 })
        );
    }
}
