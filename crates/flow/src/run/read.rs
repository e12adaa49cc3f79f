//! Reading of manifest values; `null` counts as absent.

use proctor_core::json::Json;

/// Member that is there and not `null`.
pub(super) fn member<'a>(value: &'a Json, name: &str) -> Option<&'a Json> {
    value.get(name).filter(|found| !found.is_null())
}

/// Member that is text.
pub(super) fn text<'a>(value: &'a Json, name: &str) -> Option<&'a str> {
    member(value, name).and_then(Json::as_str)
}

/// Member that is a whole number; `3.0` is one, as in JavaScript.
pub(super) fn integer(value: &Json, name: &str) -> Option<u64> {
    let found = member(value, name)?;
    if let Some(number) = found.as_u64() {
        return Some(number);
    }
    let Json::Number(literal) = found else { return None };
    let number = rust_decimal::Decimal::from_scientific(literal)
        .or_else(|_| rust_decimal::Decimal::from_str_exact(literal))
        .ok()?;
    number.is_integer().then(|| u64::try_from(number).ok()).flatten()
}

/// Texts of a list.
pub(super) fn texts<'a>(value: &'a Json, name: &str) -> Vec<&'a str> {
    let listed = member(value, name).and_then(Json::as_array).unwrap_or_default();
    listed.iter().filter_map(Json::as_str).collect()
}

/// Shell block of a task; `None` for prompt tasks.
pub(super) fn shell(task: &Json) -> Option<&Json> {
    let target = member(task, "target")?;
    (text(target, "session_target") == Some("shell")).then(|| member(task, "shell")).flatten()
}

/// Identifier of the agent that a prompt task is for.
pub(super) fn agent_id(task: &Json) -> &str {
    member(task, "target").and_then(|target| text(target, "agent_id")).unwrap_or("main")
}
