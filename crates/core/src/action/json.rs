//! The JSON form of an action.

use rust_decimal::Decimal;

use super::{Action, ActionKind, ActionMember, MemberMut, MemberRef};
use crate::json::Json;

/// A problem in an action's JSON form.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{error} (at `{path}`)")]
pub struct ActionProblem {
    /// Description of the problem.
    pub error: ActionError,
    /// JSONPath of the member.
    pub path: String,
}

/// Kinds of problems in an action's JSON form.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ActionError {
    /// The action itself is not an object.
    #[error("an action is an object, this is {0}")]
    NotAnObject(&'static str),
    /// A member that actions do not have.
    #[error("unknown member `{0}`: {hint}", hint = hint(.0, ActionMember::NAMES))]
    UnknownMember(String),
    /// A kind that actions do not have.
    #[error("unknown kind `{0}`: {hint}", hint = hint(.0, &ActionKind::ALL.map(ActionKind::word)))]
    UnknownKind(String),
    /// A member of another type.
    #[error("expected {expected}, found {found}")]
    Type {
        /// The type that the member has.
        expected: &'static str,
        /// The type that was sent.
        found: &'static str,
    },
    /// The number is not an integer, or is too large.
    #[error("expected an integer from 0 to {most}")]
    Integer {
        /// The largest value of the member.
        most: u64,
    },
    /// The value is not an amount of money.
    #[error("`{0}` is not an amount: write a decimal that is not negative, as in `0.25`")]
    Amount(String),
}

fn hint(word: &str, known: &[&str]) -> String {
    match crate::nearest(word, known) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("known are {}", known.join(", ")),
    }
}

pub(super) fn from_json(value: &Json) -> Result<Action, Vec<ActionProblem>> {
    let Some(members) = value.as_object() else {
        let error = ActionError::NotAnObject(value.type_name());
        return Err(vec![ActionProblem { error, path: "$".to_owned() }]);
    };
    let mut action = Action::default();
    let mut problems = Vec::new();
    for (name, member) in members {
        if let Err(error) = set(&mut action, name, member) {
            problems.push(ActionProblem { error, path: format!("$.{name}") });
        }
    }
    if problems.is_empty() { Ok(action) } else { Err(problems) }
}

fn set(action: &mut Action, name: &str, value: &Json) -> Result<(), ActionError> {
    let member = ActionMember::named(name).ok_or_else(|| ActionError::UnknownMember(name.to_owned()))?;
    match member.get_mut(action) {
        MemberMut::Kind(kind) => {
            let word = text(value)?;
            *kind = word.parse().map_err(|()| ActionError::UnknownKind(word))?;
        }
        MemberMut::Text(field) => *field = text(value)?,
        MemberMut::Texts(field) => {
            let items = value.as_array().ok_or_else(|| wrong_type("an array", value))?;
            *field = items.iter().map(text).collect::<Result<_, _>>()?;
        }
        MemberMut::Json(field) if member == ActionMember::Result => *field = value.clone(),
        MemberMut::Json(field) => *field = object(value)?,
        MemberMut::U16(field) => *field = integer(value)?,
        MemberMut::U32(field) => *field = integer(value)?,
        MemberMut::U64(field) => *field = integer(value)?,
        MemberMut::Optional(field) => *field = Some(integer(value)?),
        MemberMut::Decimal(field) => *field = amount(value)?,
    }
    Ok(())
}

fn wrong_type(expected: &'static str, value: &Json) -> ActionError {
    ActionError::Type { expected, found: value.type_name() }
}

fn text(value: &Json) -> Result<String, ActionError> {
    value.as_str().map(str::to_owned).ok_or_else(|| wrong_type("a string", value))
}

fn object(value: &Json) -> Result<Json, ActionError> {
    match value {
        Json::Object(_) | Json::Null => Ok(value.clone()),
        other => Err(wrong_type("an object", other)),
    }
}

fn integer<T: TryFrom<u64>>(value: &Json) -> Result<T, ActionError> {
    // More than 2^53 cannot be told to readers that use doubles, and is never a count.
    let number = value.as_u64().filter(|number| *number <= 1 << 53);
    number.and_then(|number| T::try_from(number).ok()).ok_or_else(|| {
        let most = (1u64 << 53).min(
            256u64.checked_pow(u32::try_from(size_of::<T>()).unwrap_or(8)).map_or(1 << 53, |most| most - 1),
        );
        ActionError::Integer { most }
    })
}

/// Money is a decimal: as a string, or as a number whose literal text is one.
fn amount(value: &Json) -> Result<Decimal, ActionError> {
    let literal = match value {
        Json::String(text) => text.as_str(),
        Json::Number(text) => text,
        other => return Err(wrong_type("an amount", other)),
    };
    let amount = Decimal::from_str_exact(literal).ok().or_else(|| Decimal::from_scientific(literal).ok());
    amount.filter(|amount| !amount.is_sign_negative()).ok_or_else(|| ActionError::Amount(literal.to_owned()))
}

/// Strings first, then JSON, then numbers: records hold this form, so its order is fixed.
pub(super) fn to_json(action: &Action) -> Json {
    let mut out = Json::object().with("kind", action.kind.word());
    let members = || ActionMember::ALL.iter().map(|member| (member.name(), member.get(action)));
    for (name, value) in members() {
        if let MemberRef::Text(text) = value
            && !text.is_empty()
        {
            out.push(name, text);
        }
    }
    for (name, value) in members() {
        if let MemberRef::Json(json) = value
            && !json.is_null()
        {
            out.push(name, json.clone());
        }
    }
    for (name, value) in members() {
        match value {
            MemberRef::Number(number) if number > 0 => out.push(name, number),
            MemberRef::Optional(Some(number)) => out.push(name, number),
            MemberRef::Decimal(amount) if !amount.is_zero() => out.push(name, amount.to_string()),
            _ => {}
        }
    }
    out
}
