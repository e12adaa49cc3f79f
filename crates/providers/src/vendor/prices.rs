//! List prices of well-known models.

/// The price of a million tokens, in dollars.
struct Price {
    model: &'static str,
    input: f64,
    output: f64,
    /// Prices of long requests: number of input tokens, input price, output price.
    long: Option<(u64, f64, f64)>,
}

const fn flat(model: &'static str, input: f64, output: f64) -> Price {
    Price { model, input, output, long: None }
}

const fn stepped(model: &'static str, input: f64, output: f64, long: (u64, f64, f64)) -> Price {
    Price { model, input, output, long: Some(long) }
}

/// The vendors' list prices as of November 2026: standard tier, without discounts for caches or batches. Prices that are
/// announced to end soon are left out: an unknown price is better than a wrong one.
const PRICES: &[Price] = &[
    flat("gpt-4.1", 2.0, 8.0),
    flat("gpt-4.1-mini", 0.4, 1.6),
    flat("gpt-4.1-nano", 0.1, 0.4),
    flat("gpt-4o", 2.5, 10.0),
    flat("gpt-4o-2024-05-13", 5.0, 15.0),
    flat("gpt-4o-mini", 0.15, 0.6),
    flat("o3", 2.0, 8.0),
    flat("o3-mini", 1.1, 4.4),
    flat("o4-mini", 1.1, 4.4),
    flat("gpt-5", 1.25, 10.0),
    flat("gpt-5-mini", 0.25, 2.0),
    flat("gpt-5-nano", 0.05, 0.4),
    flat("gpt-5.1", 1.25, 10.0),
    flat("gpt-5.2", 1.75, 14.0),
    stepped("gpt-5.4", 2.5, 15.0, (272_000, 5.0, 22.5)),
    flat("gpt-5.4-mini", 0.75, 4.5),
    flat("gpt-5.4-nano", 0.2, 1.25),
    flat("text-embedding-3-small", 0.02, 0.0),
    flat("text-embedding-3-large", 0.13, 0.0),
    flat("text-embedding-ada-002", 0.1, 0.0),
    flat("claude-fable-5", 10.0, 50.0),
    flat("claude-fable-5-1", 10.0, 50.0),
    flat("claude-opus-5-5", 4.0, 20.0),
    flat("claude-opus-5", 5.0, 25.0),
    flat("claude-opus-4-8", 5.0, 25.0),
    flat("claude-opus-4-7", 5.0, 25.0),
    flat("claude-opus-4-6", 5.0, 25.0),
    flat("claude-opus-4-5", 5.0, 25.0),
    flat("claude-sonnet-5-5", 2.0, 10.0),
    flat("claude-sonnet-5", 2.0, 10.0),
    flat("claude-sonnet-4-6", 3.0, 15.0),
    flat("claude-sonnet-4-5", 3.0, 15.0),
    flat("claude-sonnet-4", 3.0, 15.0),
    stepped("claude-haiku-5-5", 0.1, 0.5, (100_000, 0.5, 2.5)),
    flat("claude-haiku-4-5", 1.0, 5.0),
    stepped("gemini-2.5-pro", 1.25, 10.0, (200_000, 2.5, 15.0)),
    flat("gemini-2.5-flash", 0.3, 2.5),
    flat("gemini-2.5-flash-lite", 0.1, 0.4),
    flat("gemini-3.5-flash", 1.5, 9.0),
];

/// The cost of tokens in dollars, or nothing if the model's price is not known.
///
/// A dated version (`gpt-4.1-2025-04-14`, `claude-haiku-4-5-20251001`) costs what the model costs. Whether a model costs
/// anything at all depends on the server too: one that runs on this machine is free, whatever its models are called.
pub fn cost_usd(model: &str, input_tokens: u64, output_tokens: u64) -> Option<f64> {
    let model = model.strip_prefix("models/").unwrap_or(model);
    let price = find(model).or_else(|| find(undated(model)?))?;
    let (input, output) = match price.long {
        Some((above, input, output)) if input_tokens > above => (input, output),
        _ => (price.input, price.output),
    };
    Some((input_tokens as f64 * input + output_tokens as f64 * output) / 1_000_000.0)
}

fn find(model: &str) -> Option<&'static Price> {
    PRICES.iter().find(|price| price.model == model)
}

/// The name without the date at its end, which is written `-2025-04-14` or `-20250414`.
fn undated(model: &str) -> Option<&str> {
    ["dddd-dd-dd", "dddddddd"].into_iter().find_map(|shape| {
        let (name, date) = model.split_at_checked(model.len().checked_sub(shape.len())?)?;
        let fits = date.bytes().zip(shape.bytes()).all(|(byte, wanted)| match wanted {
            b'd' => byte.is_ascii_digit(),
            other => byte == other,
        });
        if fits { name.strip_suffix('-') } else { None }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_million_tokens_cost_what_the_list_says() {
        for (model, input, output) in [
            ("gpt-4.1", 2.0, 8.0),
            ("gpt-4.1-2025-04-14", 2.0, 8.0),
            ("gpt-4.1-mini-2025-04-14", 0.4, 1.6),
            ("gpt-4o-2024-05-13", 5.0, 15.0),
            ("gpt-4o-2024-08-06", 2.5, 10.0),
            ("claude-haiku-4-5-20251001", 1.0, 5.0),
            ("claude-sonnet-4-20250514", 3.0, 15.0),
            ("models/gemini-2.5-flash", 0.3, 2.5),
        ] {
            assert_eq!(cost_usd(model, 100_000, 0), Some(input / 10.0), "{model}");
            assert_eq!(cost_usd(model, 0, 1_000_000), Some(output), "{model}");
        }
    }

    #[test]
    fn a_long_prompt_costs_more_where_the_vendor_says_so() {
        assert_eq!(cost_usd("gemini-2.5-pro", 200_000, 0), Some(0.25));
        assert_eq!(cost_usd("gemini-2.5-pro", 400_000, 100_000), Some(2.5));
        assert_eq!(cost_usd("claude-haiku-5-5", 200_000, 0), Some(0.1));
    }

    #[test]
    fn an_unknown_model_has_no_price() {
        for model in [
            "",
            "gpt-4.1-turbo",
            "gpt-4.1-",
            "-2025-04-14",
            "llama3",
            "2025-04-14",
            "gpt-4.1-2025-04",
            "é2025-04-14",
        ] {
            assert_eq!(cost_usd(model, 1, 1), None, "{model}");
        }
    }

    #[test]
    fn no_model_is_listed_twice() {
        for (at, price) in PRICES.iter().enumerate() {
            assert!(PRICES.iter().skip(at + 1).all(|other| other.model != price.model), "{}", price.model);
        }
    }
}
