//! Supervision of a running agent: constraints of the test, watched on its events.
//!
//! ```
//! use proctor_core::json::Json;
//! use proctor_runner::supervision::{Bounds, Crossing, Supervision};
//!
//! let bounds = Bounds { max_tokens: Some(100), ..Bounds::default() };
//! let mut supervision = Supervision::new(bounds, |_model, _read, _written| 0.0);
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
    #[error("the agent spent {used} USD{}; the budget is {limit} USD", if *.is_estimated { " by list prices, because it reports no cost" } else { "" })]
    Budget {
        /// Cost.
        used: f64,
        /// The limit.
        limit: f64,
        /// Whether the cost is one of list prices, at least in part.
        is_estimated: bool,
    },
    /// An amount that cannot be read, so that a limit cannot be checked.
    #[error("the agent reports {name} that is no amount ({}), so the limit on it cannot be checked", quoted(.value))]
    Unreadable {
        /// Name of the member.
        name: &'static str,
        /// Its value.
        value: String,
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
            Crossing::Steps { .. }
            | Crossing::Tokens { .. }
            | Crossing::Budget { .. }
            | Crossing::Unreadable { .. } => ErrorCode::BudgetExceeded,
            Crossing::Tool(_) => ErrorCode::ToolNotFound,
        }
    }
}

/// Cost in US dollars of a request to a model: its name, tokens read, tokens written.
pub type Prices = fn(&str, u64, u64) -> f64;

/// Amounts that an agent has used so far, against its bounds.
#[derive(Debug, Clone)]
pub struct Supervision {
    bounds: Bounds,
    prices: Prices,
    reported_steps: u64,
    llm_requests: u64,
    tokens: u64,
    cost_usd: f64,
    /// Cost by list prices of requests whose cost the agent does not report.
    estimated_usd: f64,
    has_cost: bool,
}

impl Supervision {
    /// Supervision of one run.
    pub fn new(bounds: Bounds, prices: Prices) -> Supervision {
        Supervision {
            bounds,
            prices,
            reported_steps: 0,
            llm_requests: 0,
            tokens: 0,
            cost_usd: 0.0,
            estimated_usd: 0.0,
            has_cost: false,
        }
    }

    /// Looks at one event; a crossing ends the run.
    pub fn observe(&mut self, event_type: &str, payload: &Json) -> Option<Crossing> {
        match event_type {
            "tool_call" => {
                let tool = payload.get("tool").and_then(Json::as_str).unwrap_or_default();
                self.tool(tool)
            }
            "llm_request" => self.request(payload).err().or_else(|| self.crossed()),
            "progress" => self.progress(payload).err().or_else(|| self.crossed()),
            _ => None,
        }
    }

    fn request(&mut self, payload: &Json) -> Result<(), Crossing> {
        self.llm_requests += 1;
        let (read, written) =
            (self.tokens_in(payload, "input_tokens")?, self.tokens_in(payload, "output_tokens")?);
        self.tokens = self.tokens.saturating_add(read.saturating_add(written));
        if let Some(cost) = self.cost_in(payload)? {
            self.cost_usd += cost;
            self.has_cost = true;
        } else {
            let model = payload.get("model").and_then(Json::as_str).unwrap_or_default();
            self.estimated_usd += (self.prices)(model, read, written);
        }
        Ok(())
    }

    fn progress(&mut self, payload: &Json) -> Result<(), Crossing> {
        let step = bounded(payload, "current_step", self.bounds.max_steps.is_some())?;
        self.reported_steps = self.reported_steps.max(step);
        Ok(())
    }

    /// Tokens of a member. They also tell the cost where it is not reported.
    fn tokens_in(&self, object: &Json, name: &'static str) -> Result<u64, Crossing> {
        bounded(object, name, self.bounds.max_tokens.is_some() || self.bounds.budget_usd.is_some())
    }

    fn cost_in(&self, object: &Json) -> Result<Option<f64>, Crossing> {
        let name = "cost_usd";
        match (amount(object, name), object.get(name)) {
            (Some(cost), _) => Ok(Some(cost)),
            (None, Some(value)) if !value.is_null() && self.bounds.budget_usd.is_some() => {
                Err(unreadable(name, value))
            }
            (None, _) => Ok(None),
        }
    }

    /// Looks at a tool that the agent calls.
    pub fn tool(&self, tool: &str) -> Option<Crossing> {
        let allowed = self.bounds.allowed_tools.as_ref()?;
        (!allowed.iter().any(|name| name == tool)).then(|| Crossing::Tool(tool.to_owned()))
    }

    /// Looks at the metrics of a response, which may say more than the events did.
    pub fn conclude(&mut self, metrics: &Json) -> Option<Crossing> {
        self.metrics(metrics).err().or_else(|| self.crossed())
    }

    fn metrics(&mut self, metrics: &Json) -> Result<(), Crossing> {
        let steps = bounded(metrics, "total_steps", self.bounds.max_steps.is_some())?;
        self.reported_steps = self.reported_steps.max(steps);
        let (read, written) =
            (self.tokens_in(metrics, "input_tokens")?, self.tokens_in(metrics, "output_tokens")?);
        let total = self.tokens_in(metrics, "total_tokens")?.max(read.saturating_add(written));
        // Tokens that no event told of, at the price of tokens read by an unknown model.
        let untold = total.saturating_sub(self.tokens);
        self.tokens = self.tokens.max(total);
        if let Some(cost) = self.cost_in(metrics)? {
            // The cost of the whole task is known, so nothing of it is estimated.
            (self.cost_usd, self.estimated_usd) = (self.cost_usd.max(cost), 0.0);
            self.has_cost = true;
        } else if untold > 0 {
            self.estimated_usd += (self.prices)("", untold, 0);
        }
        Ok(())
    }

    /// Bounds that nothing which the agent reported can be held against.
    pub fn unmeasured(&self) -> Vec<&'static str> {
        let bounds = [
            ("max_steps", self.bounds.max_steps.is_some() && self.steps() == 0),
            ("max_tokens", self.bounds.max_tokens.is_some() && self.tokens == 0),
            ("budget_usd", self.bounds.budget_usd.is_some() && !self.has_cost && self.tokens == 0),
        ];
        bounds.into_iter().filter_map(|(name, is_unmeasured)| is_unmeasured.then_some(name)).collect()
    }

    /// Steps: as reported, else one for each request to a model.
    pub fn steps(&self) -> u64 {
        if self.reported_steps > 0 { self.reported_steps } else { self.llm_requests }
    }

    /// Tokens used.
    pub fn tokens(&self) -> u64 {
        self.tokens
    }

    /// Cost in US dollars, as reported.
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
        let used = self.cost_usd + self.estimated_usd;
        let limit = self.bounds.budget_usd.filter(|limit| used > *limit)?;
        Some(Crossing::Budget { used, limit, is_estimated: self.estimated_usd > 0.0 })
    }
}

/// An amount of money: a finite number that is not negative.
fn amount(object: &Json, name: &str) -> Option<f64> {
    let Some(Json::Number(literal)) = object.get(name) else { return None };
    literal.parse::<f64>().ok().filter(|amount| amount.is_finite() && *amount >= 0.0)
}

/// A count: zero if it is absent. One that cannot be read is a crossing where there is a bound on it, because it may be any.
fn bounded(object: &Json, name: &'static str, is_bounded: bool) -> Result<u64, Crossing> {
    let Some(value) = object.get(name).filter(|value| !value.is_null()) else { return Ok(0) };
    // Also `1e6` and `1000000.0`, which many libraries write.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "saturates, and is not negative"
    )]
    match (value.as_u64(), amount(object, name)) {
        (Some(count), _) => Ok(count),
        (None, Some(amount)) => Ok(amount.ceil() as u64),
        (None, None) if is_bounded => Err(unreadable(name, value)),
        (None, None) => Ok(0),
    }
}

fn unreadable(name: &'static str, value: &Json) -> Crossing {
    Crossing::Unreadable { name, value: value.to_string().chars().take(40).collect() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn supervision(bounds: Bounds) -> Supervision {
        // A thousandth of a dollar for each token.
        Supervision::new(bounds, |_, read, written| (read + written) as f64 / 1000.0)
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
    fn amounts_are_read_in_every_spelling_and_unreadable_ones_are_no_way_out() {
        let bounds = || Bounds {
            max_steps: Some(100),
            max_tokens: Some(100),
            budget_usd: Some(0.5),
            ..Bounds::default()
        };
        for metrics in [
            r#"{"total_tokens":1000000.0}"#,
            r#"{"total_tokens":1e6}"#,
            r#"{"total_tokens":1000000000000000000000000000000}"#,
            r#"{"total_tokens":"999999"}"#,
            r#"{"input_tokens":-1}"#,
            r#"{"total_steps":1e3}"#,
            r#"{"total_steps":[]}"#,
            r#"{"cost_usd":"9"}"#,
            r#"{"cost_usd":-9}"#,
        ] {
            assert!(supervision(bounds()).conclude(&json(metrics)).is_some(), "{metrics}");
            assert_eq!(supervision(Bounds::default()).conclude(&json(metrics)), None, "{metrics}");
        }
        for (event, payload) in
            [("llm_request", r#"{"output_tokens":1e6}"#), ("progress", r#"{"current_step":"7"}"#)]
        {
            assert!(supervision(bounds()).observe(event, &json(payload)).is_some(), "{payload}");
        }
        let mut spent = supervision(Bounds { budget_usd: Some(0.5), ..Bounds::default() });
        assert_eq!(
            spent.conclude(&json(r#"{"cost_usd":0.75}"#)),
            Some(Crossing::Budget { used: 0.75, limit: 0.5, is_estimated: false })
        );
    }

    #[test]
    fn requests_without_a_cost_have_list_prices_until_the_cost_is_reported() {
        let bounds = || Bounds { budget_usd: Some(0.5), ..Bounds::default() };
        let request = json(r#"{"model":"m","input_tokens":300,"output_tokens":100}"#);
        let mut spent = supervision(bounds());
        assert_eq!(spent.observe("llm_request", &request), None);
        let crossing = spent.observe("llm_request", &request).unwrap();
        assert_eq!(crossing, Crossing::Budget { used: 0.8, limit: 0.5, is_estimated: true });
        assert!(crossing.to_string().contains("by list prices"), "{crossing}");
        // A reported cost counts, also if it is nothing.
        let mut free = supervision(bounds());
        let request = json(r#"{"model":"m","input_tokens":3000,"output_tokens":100,"cost_usd":0}"#);
        assert_eq!(free.observe("llm_request", &request), None);
        let mut late = supervision(bounds());
        assert_eq!(late.conclude(&json(r#"{"total_tokens":9000,"cost_usd":0.1}"#)), None);
        assert!(supervision(bounds()).conclude(&json(r#"{"total_tokens":9000}"#)).is_some());
    }

    #[test]
    fn bounds_without_any_report_are_named() {
        let bounds =
            Bounds { max_steps: Some(1), max_tokens: Some(1), budget_usd: Some(1.0), ..Bounds::default() };
        let mut silent = supervision(bounds);
        assert_eq!(silent.unmeasured(), ["max_steps", "max_tokens", "budget_usd"]);
        silent.conclude(&json(r#"{"total_tokens":1,"total_steps":1}"#));
        assert_eq!(silent.unmeasured(), [""; 0]);
    }
}
