//! The JSON form of an action.

use rust_decimal::Decimal;

use super::{Action, ActionKind};
use crate::json::Json;

/// Something wrong with an action's JSON form, and where.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{problem} (at `{path}`)")]
pub struct ActionProblem {
    /// What is wrong, and what to do.
    pub problem: String,
    /// JSON path of the place.
    pub path: String,
}

/// The members an action may have, and what each is.
const MEMBERS: [&str; 18] = [
    "kind",
    "tool",
    "args",
    "result",
    "metadata",
    "operation",
    "path",
    "command",
    "host",
    "port",
    "url",
    "model",
    "text",
    "tokens",
    "cost_usd",
    "cwd",
    "depth",
    "door",
];

pub(super) fn action(value: &Json) -> Result<Action, Vec<ActionProblem>> {
    let Some(members) = value.as_object() else {
        return Err(vec![ActionProblem {
            problem: format!("an action is an object, this is {}", value.type_name()),
            path: "$".to_owned(),
        }]);
    };
    let mut action = Action::default();
    let mut problems = Vec::new();
    for (name, member) in members {
        if let Err(problem) = set(&mut action, name, member) {
            problems.push(ActionProblem { problem, path: format!("$.{name}") });
        }
    }
    if problems.is_empty() { Ok(action) } else { Err(problems) }
}

fn set(action: &mut Action, name: &str, value: &Json) -> Result<(), String> {
    match name {
        "kind" => action.kind = kind(value)?,
        "tool" => action.name = text(value)?,
        "args" => action.args = object(value)?,
        "result" => action.result = value.clone(),
        "metadata" => action.metadata = object(value)?,
        "operation" => action.operation = text(value)?,
        "path" => action.path = text(value)?,
        "command" => action.command = text(value)?,
        "host" => action.host = text(value)?,
        "port" => action.port = Some(integer(value)?),
        "url" => action.url = text(value)?,
        "model" => action.model = text(value)?,
        "text" => action.text = text(value)?,
        "tokens" => action.tokens = integer(value)?,
        "cost_usd" => action.cost_usd = money(value)?,
        "cwd" => action.cwd = text(value)?,
        "depth" => action.depth = integer(value)?,
        "door" => action.door = text(value)?,
        other => return Err(unknown("member", other, &MEMBERS)),
    }
    Ok(())
}

fn kind(value: &Json) -> Result<ActionKind, String> {
    let word = text(value)?;
    word.parse().map_err(|()| unknown("kind", &word, &ActionKind::ALL.map(ActionKind::word)))
}

fn text(value: &Json) -> Result<String, String> {
    value.as_str().map(str::to_owned).ok_or_else(|| format!("expected a string, found {}", value.type_name()))
}

fn object(value: &Json) -> Result<Json, String> {
    match value {
        Json::Object(_) | Json::Null => Ok(value.clone()),
        other => Err(format!("expected an object, found {}", other.type_name())),
    }
}

fn integer<T: TryFrom<u64>>(value: &Json) -> Result<T, String> {
    // More than 2^53 cannot be told to readers that use doubles, and is never a count.
    let number = value.as_u64().filter(|number| *number <= 1 << 53);
    number.and_then(|number| T::try_from(number).ok()).ok_or_else(|| {
        let most = (1u64 << 53).min(
            256u64.checked_pow(u32::try_from(size_of::<T>()).unwrap_or(8)).map_or(1 << 53, |most| most - 1),
        );
        format!("expected an integer from 0 to {most}")
    })
}

/// Money is a decimal: as a string, or as a number whose literal text is one.
fn money(value: &Json) -> Result<Decimal, String> {
    let literal = match value {
        Json::String(text) => text.as_str(),
        Json::Number(text) => text,
        other => return Err(format!("expected an amount, found {}", other.type_name())),
    };
    let amount = Decimal::from_str_exact(literal).ok().or_else(|| Decimal::from_scientific(literal).ok());
    amount.filter(|amount| !amount.is_sign_negative()).ok_or_else(|| {
        format!("`{literal}` is not an amount: write a decimal that is not negative, as in `0.25`")
    })
}

fn unknown(what: &str, word: &str, known: &[&str]) -> String {
    match crate::nearest(word, known) {
        Some(near) => format!("unknown {what} `{word}`: did you mean `{near}`?"),
        None => format!("unknown {what} `{word}`: known are {}", known.join(", ")),
    }
}

pub(super) fn action_to_json(action: &Action) -> Json {
    let mut out = Json::object().with("kind", action.kind.word());
    let mut text = |name: &str, value: &str| {
        if !value.is_empty() {
            out.push(name, value);
        }
    };
    text("tool", &action.name);
    text("operation", &action.operation);
    text("path", &action.path);
    text("command", &action.command);
    text("host", &action.host);
    text("url", &action.url);
    text("model", &action.model);
    text("text", &action.text);
    text("cwd", &action.cwd);
    text("door", &action.door);
    for (name, value) in [("args", &action.args), ("result", &action.result), ("metadata", &action.metadata)]
    {
        if !value.is_null() {
            out.push(name, value.clone());
        }
    }
    if let Some(port) = action.port {
        out.push("port", port);
    }
    if action.tokens > 0 {
        out.push("tokens", action.tokens);
    }
    if !action.cost_usd.is_zero() {
        out.push("cost_usd", action.cost_usd.to_string());
    }
    if action.depth > 0 {
        out.push("depth", action.depth);
    }
    out
}
