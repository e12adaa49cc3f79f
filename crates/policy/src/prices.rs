//! Expected cost of a call to a language model, where the caller does not say. The table is part of the evaluator's
//! semantic version.

use proctor_core::action::ActionKind;
use proctor_facts::Facts;
use rust_decimal::Decimal;
use rust_decimal::prelude::ToPrimitive as _;

/// Tokens that a call is taken to have when it does not say.
const UNSAID_TOKENS: u64 = 1000;

/// Part of the model's name, and millionths of a dollar for a thousand prompt tokens and for a thousand completion tokens. The first
/// match counts.
const PRICES: [(&str, i64, i64); 8] = [
    ("gpt-4o", 5_000, 15_000),
    ("gpt-3.5", 500, 1_500),
    ("gpt-4", 30_000, 60_000),
    ("opus", 15_000, 75_000),
    ("sonnet", 3_000, 15_000),
    ("haiku", 250, 1_250),
    ("command-r-plus", 3_000, 15_000),
    ("command-r", 500, 1_500),
];
/// Price of an unknown model: that of the dearest usual one.
const UNKNOWN: (i64, i64) = (15_000, 75_000);

fn prices(model: &str) -> (i64, i64) {
    let model = model.to_lowercase();
    let known = PRICES.iter().find(|(part, ..)| model.contains(part));
    known.map_or(UNKNOWN, |(_, prompt, completion)| (*prompt, *completion))
}

/// Cost of a call to a model in USD, by the tokens that it really took.
pub fn actual_cost(model: &str, prompt_tokens: u64, completion_tokens: u64) -> Decimal {
    let (prompt, completion) = prices(model);
    // Millionths of a dollar for a thousand tokens are billionths for one.
    let cost = |price: i64, tokens: u64| Decimal::new(price, 9).checked_mul(Decimal::from(tokens));
    let sum = cost(prompt, prompt_tokens).zip(cost(completion, completion_tokens));
    sum.and_then(|(prompt, completion)| prompt.checked_add(completion)).unwrap_or(Decimal::MAX).normalize()
}

/// [`actual_cost`] as a floating-point number, for what is compared and shown, never billed.
pub fn list_price_usd(model: &str, prompt_tokens: u64, completion_tokens: u64) -> f64 {
    // A decimal always has a nearest floating-point number.
    actual_cost(model, prompt_tokens, completion_tokens).to_f64().unwrap_or(f64::INFINITY)
}

/// The expected cost of an action in USD: what it says, else, for a call to a model, what the table says.
pub fn expected_cost(facts: &Facts) -> Decimal {
    if !facts.cost_usd.is_zero() {
        return facts.cost_usd;
    }
    listed_cost(facts).unwrap_or_default()
}

/// Cost of a call to a model by the table; none for other actions.
pub(crate) fn listed_cost(facts: &Facts) -> Option<Decimal> {
    let is_model_call = facts.kind == ActionKind::LlmCall || facts.tool == "llm_call";
    let tokens = if facts.tokens == 0 { UNSAID_TOKENS } else { facts.tokens };
    is_model_call.then(|| actual_cost(&facts.model, tokens, 0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cost(model: &str, tokens: u64) -> String {
        expected_cost(&Facts { kind: ActionKind::LlmCall, model: model.into(), tokens, ..Facts::default() })
            .to_string()
    }

    #[test]
    fn known_and_unknown_models() {
        assert_eq!(cost("gpt-4o-mini", 1000), "0.005");
        assert_eq!(cost("GPT-4-turbo", 2000), "0.06");
        assert_eq!(cost("claude-3-5-sonnet", 512), "0.001536");
        assert_eq!(cost("mystery", 0), "0.015");
        let said = Facts { cost_usd: Decimal::new(25, 2), ..Facts::default() };
        assert_eq!(expected_cost(&said), Decimal::new(25, 2));
        assert_eq!(expected_cost(&Facts::default()), Decimal::ZERO);
        assert_eq!(actual_cost("claude-3-haiku", 1000, 2000).to_string(), "0.00275");
        assert_eq!(actual_cost("x", u64::MAX, u64::MAX).to_string(), "1660206966633859.64535");
    }
}
