//! Whether an expression asks for approval of an action.
//!
//! Unknown values and values of another type make the guard fire, except where the language says that they do not match: a missing
//! argument or result, a string or tier of the context that nobody knows.

use std::cmp::Ordering;

use proctor_core::action::ActionKind;
use proctor_core::json::Json;
use proctor_facts::Facts;
use rust_decimal::Decimal;

use super::field::{LEVELS, TIERS};
use super::{Clause, ContextType, Expression, Field, Literal, Operator};

impl Expression {
    /// Whether the action needs approval. `context` knows the context fields by their names (`agent.depth`,
    /// `governance_level`, …) and answers `None` for what it does not know.
    pub fn requires_approval(&self, facts: &Facts, context: &dyn Fn(&str) -> Option<Json>) -> bool {
        self.alternatives.iter().any(|clauses| clauses.iter().all(|clause| clause.holds(facts, context)))
    }
}

impl Clause {
    fn holds(&self, facts: &Facts, context: &dyn Fn(&str) -> Option<Json>) -> bool {
        match &self.field {
            Field::Tool => self.holds_for_tool(facts),
            Field::Path => self.holds_for_any(&with_singular(&facts.path, &facts.paths)),
            Field::Command => self.holds_for_any(&with_singular(&facts.command, &facts.commands)),
            Field::Url => self.holds_for_any(&urls(facts)),
            Field::Method => self.holds_for_any(&[method(facts)]),
            Field::Args(names) => match look_up(&facts.args, names) {
                Some(value) => self.holds_for_json(&value),
                None => ends_early(&facts.args, names),
            },
            Field::ToolResult(names) => {
                look_up(&facts.result, names).is_some_and(|value| self.holds_for_json(&value))
            }
            Field::Context(name, kind) => self.holds_for_context(*kind, context(name).as_ref()),
        }
    }

    /// Compares both names of the tool: it is another tool only if neither is the one meant.
    fn holds_for_tool(&self, facts: &Facts) -> bool {
        let names = [facts.name.as_str(), facts.tool.as_str()];
        match self.operator {
            Operator::NotEqual | Operator::NotIn => names.iter().all(|name| self.compare_text(name)),
            _ => names.iter().any(|name| self.compare_text(name)),
        }
    }

    /// A clause on a list holds if it holds for one element. An empty list counts as the empty string.
    fn holds_for_any(&self, values: &[String]) -> bool {
        if values.is_empty() {
            self.compare_text("")
        } else {
            values.iter().any(|value| self.compare_text(value))
        }
    }

    fn compare_text(&self, value: &str) -> bool {
        let (text, number) = match &self.literal {
            Literal::List(items) => {
                let found = items.iter().any(|item| item == value);
                return if self.operator == Operator::In { found } else { !found };
            }
            Literal::Text(text) => (text.as_str(), None),
            Literal::Number(number, text) => (text.as_str(), Some(number)),
        };
        match self.operator {
            Operator::Equal => value == text,
            Operator::NotEqual => value != text,
            Operator::Contains => value.contains(text),
            Operator::StartsWith => value.starts_with(text),
            // Text without an order: what the author guarded against cannot be told, so the guard fires.
            ordered => number
                .and_then(|number| compare_numbers(value, number))
                .is_none_or(|ordering| ordering_satisfies(ordered, ordering)),
        }
    }

    fn holds_for_json(&self, value: &Json) -> bool {
        match (value, &self.literal) {
            (Json::String(text), Literal::List(_)) => self.compare_text(text),
            (Json::String(text), Literal::Text(_)) => !self.operator.is_ordered() && self.compare_text(text),
            (Json::Number(value), Literal::Number(number, _)) => compare_numbers(value, number)
                .is_some_and(|ordering| ordering_satisfies(self.operator, ordering)),
            (Json::Number(value), Literal::List(_)) => self.compare_text(value),
            (Json::Bool(value), Literal::Text(text)) if matches!(text.as_str(), "true" | "false") => {
                let same = value.to_string() == *text;
                match self.operator {
                    Operator::Equal => same,
                    Operator::NotEqual => !same,
                    _ => true,
                }
            }
            (Json::Array(items), Literal::Text(text)) if self.operator == Operator::Contains => {
                items.iter().any(|item| item.as_str() == Some(text))
            }
            // The result as a whole is searched as text.
            (Json::Object(_) | Json::Array(_), Literal::Text(_)) if matches!(&self.field, Field::ToolResult(names) if names.is_empty()) => {
                self.operator == Operator::Contains && self.compare_text(&value.to_string())
            }
            // A value of another type cannot be compared, so the guard fires: the agent chooses the type.
            _ => true,
        }
    }

    fn holds_for_context(&self, kind: ContextType, value: Option<&Json>) -> bool {
        let value = value.filter(|value| !value.is_null());
        let Some(value) = value else {
            return matches!(kind, ContextType::Number | ContextType::Level | ContextType::Truth);
        };
        match kind {
            ContextType::Text => value.as_str().is_some_and(|text| self.compare_text(text)),
            ContextType::Tier => rank(value, TIERS).is_some_and(|rank| self.compare_rank(rank, TIERS)),
            ContextType::Level => rank(value, LEVELS).is_none_or(|rank| self.compare_rank(rank, LEVELS)),
            ContextType::Truth => value.as_bool().is_none_or(|truth| self.compare_text(&truth.to_string())),
            ContextType::Number => match (value, &self.literal) {
                (Json::Number(value), Literal::Number(number, _)) => compare_numbers(value, number)
                    .is_none_or(|ordering| ordering_satisfies(self.operator, ordering)),
                (Json::Number(value), Literal::List(items)) => {
                    let same = |item: &String| {
                        item.parse().ok().and_then(|item| compare_numbers(value, &item))
                            == Some(Ordering::Equal)
                    };
                    items.iter().any(same) == (self.operator == Operator::In)
                }
                _ => true,
            },
        }
    }

    fn compare_rank(&self, rank: usize, names: &[&str]) -> bool {
        let rank_of = |text: &String| names.iter().position(|name| name == text);
        match &self.literal {
            Literal::Text(text) => {
                rank_of(text).is_none_or(|other| ordering_satisfies(self.operator, rank.cmp(&other)))
            }
            Literal::List(items) => {
                items.iter().any(|item| rank_of(item) == Some(rank)) == (self.operator == Operator::In)
            }
            Literal::Number(..) => true,
        }
    }
}

fn with_singular(one: &str, many: &[String]) -> Vec<String> {
    let mut values = many.to_vec();
    if !one.is_empty() && !many.iter().any(|value| value == one) {
        values.push(one.to_owned());
    }
    values
}

/// The URL, and one for each further host: what is fetched from it may be fetched by either scheme.
fn urls(facts: &Facts) -> Vec<String> {
    let mut urls = Vec::new();
    if !facts.url.is_empty() {
        urls.push(facts.url.clone());
    }
    let hosts = with_singular(&facts.host, &facts.hosts);
    let known = |host: &String| *host == facts.host && !facts.url.is_empty();
    for host in hosts.iter().filter(|host| !known(host)) {
        let port =
            if *host == facts.host && facts.port != 0 { format!(":{}", facts.port) } else { String::new() };
        urls.push(format!("https://{host}{port}"));
        urls.push(format!("http://{host}{port}"));
    }
    urls
}

/// HTTP method: from an argument only; a connection to a host without one is a `CONNECT`.
fn method(facts: &Facts) -> String {
    if let Some(method) = facts.args.get("method").and_then(Json::as_str) {
        return method.to_uppercase();
    }
    if facts.kind == ActionKind::NetworkCall { "CONNECT".to_owned() } else { String::new() }
}

/// The value at the end of the names. A text on the way may itself be JSON, as results often are.
fn look_up(root: &Json, names: &[String]) -> Option<Json> {
    if root.is_null() {
        return None;
    }
    let parsed = match root {
        Json::String(text) if !names.is_empty() => Some(Json::parse(text.as_bytes()).ok()?),
        _ => None,
    };
    let mut current = parsed.as_ref().unwrap_or(root);
    for name in names {
        current = match current {
            Json::Object(_) => current.get(name)?,
            Json::Array(items) => items.get(name.parse::<usize>().ok()?)?,
            _ => return None,
        };
    }
    Some(current.clone())
}

/// Whether the names lead to a value that can have no members: one of another type, which the agent chose.
fn ends_early(root: &Json, names: &[String]) -> bool {
    (1..names.len()).any(|length| {
        let value = names.get(..length).and_then(|names| look_up(root, names));
        matches!(value, Some(Json::Bool(_) | Json::Number(_) | Json::String(_)))
    })
}

fn rank(value: &Json, names: &[&str]) -> Option<usize> {
    match value {
        Json::String(text) => names.iter().position(|name| name.eq_ignore_ascii_case(text)),
        Json::Number(_) => {
            value.as_u64().and_then(|rank| usize::try_from(rank).ok()).filter(|rank| *rank < names.len())
        }
        _ => None,
    }
}

/// Exactly where a decimal can hold the number, else as a floating-point number: a number too large to be exact is still
/// larger than the limit.
fn compare_numbers(value: &str, number: &Decimal) -> Option<Ordering> {
    let exact = Decimal::from_str_exact(value).or_else(|_| Decimal::from_scientific(value));
    if let Ok(value) = exact {
        return Some(value.cmp(number));
    }
    let value: f64 = value.parse().ok()?;
    let number: f64 = number.to_string().parse().ok()?;
    value.partial_cmp(&number)
}

fn ordering_satisfies(operator: Operator, ordering: Ordering) -> bool {
    match operator {
        Operator::Equal => ordering.is_eq(),
        Operator::NotEqual => ordering.is_ne(),
        Operator::Greater => ordering.is_gt(),
        Operator::GreaterOrEqual => ordering.is_ge(),
        Operator::Less => ordering.is_lt(),
        Operator::LessOrEqual => ordering.is_le(),
        Operator::Contains | Operator::StartsWith | Operator::In | Operator::NotIn => false,
    }
}
