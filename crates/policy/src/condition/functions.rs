//! Operators and functions on values.

use std::cmp::Ordering;
use std::rc::Rc;

use super::evaluate::{Fault, MAX_BUILT, mismatch};
use super::names::function_name;
use super::node::{Function, Operator};
use super::time;
use super::value::Value;

/// Evaluates every operator but `in`, `&&` and `||`.
pub(super) fn binary<'v>(
    operator: Operator,
    left: &Value<'v>,
    right: &Value<'v>,
) -> Result<Value<'v>, Fault> {
    match operator {
        Operator::Equal => Ok(Value::Bool(left.equals(right))),
        Operator::NotEqual => Ok(Value::Bool(!left.equals(right))),
        Operator::Less => order(left, right, "<", Ordering::is_lt),
        Operator::LessEqual => order(left, right, "<=", Ordering::is_le),
        Operator::Greater => order(left, right, ">", Ordering::is_gt),
        Operator::GreaterEqual => order(left, right, ">=", Ordering::is_ge),
        Operator::Add => add(left, right),
        Operator::Subtract => subtract(left, right),
        Operator::Multiply => match (left, right) {
            (Value::Int(left), Value::Int(right)) => {
                left.checked_mul(*right).map(Value::Int).ok_or_else(overflow)
            }
            (Value::Uint(left), Value::Uint(right)) => {
                left.checked_mul(*right).map(Value::Uint).ok_or_else(overflow)
            }
            (Value::Double(left), Value::Double(right)) => Ok(Value::Double(left * right)),
            _ => Err(no_operator("*", left, right)),
        },
        Operator::Divide => match (left, right) {
            (Value::Int(_), Value::Int(0)) | (Value::Uint(_), Value::Uint(0)) => {
                Err(Fault::error("division by zero"))
            }
            (Value::Int(left), Value::Int(right)) => {
                left.checked_div(*right).map(Value::Int).ok_or_else(overflow)
            }
            (Value::Uint(left), Value::Uint(right)) => {
                left.checked_div(*right).map(Value::Uint).ok_or_else(overflow)
            }
            (Value::Double(left), Value::Double(right)) => Ok(Value::Double(left / right)),
            _ => Err(no_operator("/", left, right)),
        },
        Operator::Remainder => match (left, right) {
            (Value::Int(_), Value::Int(0)) | (Value::Uint(_), Value::Uint(0)) => {
                Err(Fault::error("remainder by zero"))
            }
            (Value::Int(left), Value::Int(right)) => {
                left.checked_rem(*right).map(Value::Int).ok_or_else(overflow)
            }
            (Value::Uint(left), Value::Uint(right)) => {
                left.checked_rem(*right).map(Value::Uint).ok_or_else(overflow)
            }
            _ => Err(no_operator("%", left, right)),
        },
        Operator::In => Err(no_operator("in", left, right)),
    }
}

/// The sign in front of a number.
pub(super) fn negate<'v>(value: &Value<'v>) -> Result<Value<'v>, Fault> {
    match value {
        Value::Int(value) => value.checked_neg().map(Value::Int).ok_or_else(overflow),
        Value::Double(value) => Ok(Value::Double(-value)),
        Value::Duration(value) => value.checked_neg().map(Value::Duration).ok_or_else(overflow),
        _ => Err(mismatch("-", value.kind())),
    }
}

/// Functions of two values; the first is the one that the method is called on.
pub(super) fn two<'v>(
    function: Function,
    receiver: &Value<'v>,
    argument: &Value<'v>,
) -> Result<Value<'v>, Fault> {
    let name = function_name(function);
    let text = receiver.as_text().ok_or_else(|| mismatch(name, receiver.kind()))?;
    let part = argument.as_text().ok_or_else(|| mismatch(name, argument.kind()))?;
    match function {
        Function::Contains => Ok(Value::Bool(text.contains(part))),
        Function::StartsWith => Ok(Value::Bool(text.starts_with(part))),
        Function::EndsWith => Ok(Value::Bool(text.ends_with(part))),
        _ => Err(Fault::error(format!("`{name}` takes one value"))),
    }
}

/// Functions of one value.
pub(super) fn one(function: Function, value: Value<'_>) -> Result<Value<'_>, Fault> {
    let wrong = |value: &Value<'_>| mismatch(function_name(function), value.kind());
    match function {
        Function::Size => {
            let size = value
                .length()
                .or_else(|| value.as_text().map(|text| text.chars().count()))
                .or_else(|| value.as_bytes().map(<[u8]>::len))
                .ok_or_else(|| wrong(&value))?;
            Ok(Value::Int(i64::try_from(size).unwrap_or(i64::MAX)))
        }
        Function::LowerAscii => built(value.as_text().ok_or_else(|| wrong(&value))?.to_ascii_lowercase()),
        Function::UpperAscii => built(value.as_text().ok_or_else(|| wrong(&value))?.to_ascii_uppercase()),
        Function::Trim => match value {
            Value::Text(text) => Ok(Value::Text(text.trim())),
            _ => built(value.as_text().ok_or_else(|| wrong(&value))?.trim().to_owned()),
        },
        Function::Dyn => Ok(value),
        Function::Bool => match (&value, value.as_text()) {
            (Value::Bool(_), _) => Ok(value),
            (_, Some("true")) => Ok(Value::Bool(true)),
            (_, Some("false")) => Ok(Value::Bool(false)),
            (_, Some(_)) => Err(unreadable("a boolean")),
            _ => Err(wrong(&value)),
        },
        Function::Int => to_int(&value).unwrap_or_else(|| Err(wrong(&value))),
        Function::Uint => to_uint(&value).unwrap_or_else(|| Err(wrong(&value))),
        Function::Double => to_double(&value).unwrap_or_else(|| Err(wrong(&value))),
        Function::Text => to_text(value),
        Function::Bytes => match &value {
            Value::Bytes(_) | Value::BuiltBytes(_) => Ok(value),
            Value::Text(text) => Ok(Value::Bytes(text.as_bytes())),
            Value::Built(text) => Ok(Value::BuiltBytes(Rc::from(text.as_bytes()))),
            _ => Err(wrong(&value)),
        },
        Function::Duration => match (&value, value.as_text()) {
            (Value::Duration(_), _) => Ok(value),
            (_, Some(text)) => {
                time::parse_duration(text).map(Value::Duration).ok_or_else(|| unreadable("a duration"))
            }
            _ => Err(wrong(&value)),
        },
        Function::Timestamp => match (&value, value.as_text()) {
            (Value::Timestamp(_), _) => Ok(value),
            (Value::Int(seconds), _) => {
                seconds.checked_mul(1_000_000).map(Value::Timestamp).ok_or_else(overflow)
            }
            (_, Some(text)) => {
                time::parse_timestamp(text).map(Value::Timestamp).ok_or_else(|| unreadable("a timestamp"))
            }
            _ => Err(wrong(&value)),
        },
        _ => match &value {
            Value::Timestamp(micros) => time::part_of_moment(function, *micros)
                .map(Value::Int)
                .ok_or_else(|| Fault::error("the timestamp is outside the calendar")),
            Value::Duration(micros) => {
                time::part_of_duration(function, *micros).map(Value::Int).ok_or_else(|| wrong(&value))
            }
            _ => Err(wrong(&value)),
        },
    }
}

fn order<'v>(
    left: &Value<'v>,
    right: &Value<'v>,
    sign: &str,
    holds: fn(Ordering) -> bool,
) -> Result<Value<'v>, Fault> {
    match left.compare(right) {
        Some(ordering) => Ok(Value::Bool(holds(ordering))),
        // NaN is less, equal or greater than nothing, and still a number.
        None if left.kind().is_number() && right.kind().is_number() => Ok(Value::Bool(false)),
        None => Err(no_operator(sign, left, right)),
    }
}

fn add<'v>(left: &Value<'v>, right: &Value<'v>) -> Result<Value<'v>, Fault> {
    match (left, right) {
        (Value::Int(left), Value::Int(right)) => {
            left.checked_add(*right).map(Value::Int).ok_or_else(overflow)
        }
        (Value::Uint(left), Value::Uint(right)) => {
            left.checked_add(*right).map(Value::Uint).ok_or_else(overflow)
        }
        (Value::Double(left), Value::Double(right)) => Ok(Value::Double(left + right)),
        (Value::Duration(left), Value::Duration(right)) => {
            left.checked_add(*right).map(Value::Duration).ok_or_else(overflow)
        }
        (Value::Timestamp(left), Value::Duration(right))
        | (Value::Duration(right), Value::Timestamp(left)) => {
            left.checked_add(*right).map(Value::Timestamp).ok_or_else(overflow)
        }
        _ => {
            if let (Some(left), Some(right)) = (left.as_text(), right.as_text()) {
                if left.len() + right.len() > MAX_BUILT {
                    return Err(too_long());
                }
                return built([left, right].concat());
            }
            if let (Some(left), Some(right)) = (left.as_bytes(), right.as_bytes()) {
                if left.len() + right.len() > MAX_BUILT {
                    return Err(too_long());
                }
                return Ok(Value::BuiltBytes([left, right].concat().into()));
            }
            join_lists(left, right)
        }
    }
}

fn join_lists<'v>(left: &Value<'v>, right: &Value<'v>) -> Result<Value<'v>, Fault> {
    match (left.kind().is_list(), left.length(), right.kind().is_list(), right.length()) {
        (true, Some(before), true, Some(after)) if before + after <= MAX_BUILT => Ok(Value::List(
            (0..before)
                .filter_map(|place| left.element(place))
                .chain((0..after).filter_map(|place| right.element(place)))
                .collect(),
        )),
        (true, Some(_), true, Some(_)) => Err(too_long()),
        _ => Err(no_operator("+", left, right)),
    }
}

fn subtract<'v>(left: &Value<'v>, right: &Value<'v>) -> Result<Value<'v>, Fault> {
    match (left, right) {
        (Value::Int(left), Value::Int(right)) => {
            left.checked_sub(*right).map(Value::Int).ok_or_else(overflow)
        }
        (Value::Uint(left), Value::Uint(right)) => {
            left.checked_sub(*right).map(Value::Uint).ok_or_else(overflow)
        }
        (Value::Double(left), Value::Double(right)) => Ok(Value::Double(left - right)),
        (Value::Duration(left), Value::Duration(right))
        | (Value::Timestamp(left), Value::Timestamp(right)) => {
            left.checked_sub(*right).map(Value::Duration).ok_or_else(overflow)
        }
        (Value::Timestamp(left), Value::Duration(right)) => {
            left.checked_sub(*right).map(Value::Timestamp).ok_or_else(overflow)
        }
        _ => Err(no_operator("-", left, right)),
    }
}

fn to_int(value: &Value<'_>) -> Option<Result<Value<'static>, Fault>> {
    Some(match value {
        Value::Int(value) => Ok(Value::Int(*value)),
        Value::Uint(value) => i64::try_from(*value).map(Value::Int).map_err(|_| overflow()),
        #[expect(
            clippy::cast_possible_truncation,
            reason = "the range is checked; the fraction is cut as CEL says"
        )]
        Value::Double(value) if *value > -9.223_372_036_854_775e18 && *value < 9.223_372_036_854_775e18 => {
            Ok(Value::Int(*value as i64))
        }
        Value::Double(_) => Err(overflow()),
        Value::Timestamp(micros) => Ok(Value::Int(micros.div_euclid(1_000_000))),
        _ => value.as_text()?.parse().map(Value::Int).map_err(|_| unreadable("an int")),
    })
}

fn to_uint(value: &Value<'_>) -> Option<Result<Value<'static>, Fault>> {
    Some(match value {
        Value::Uint(value) => Ok(Value::Uint(*value)),
        Value::Int(value) => u64::try_from(*value).map(Value::Uint).map_err(|_| overflow()),
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the range is checked")]
        Value::Double(value) if (0.0..1.844_674_407_370_955e19).contains(value) => {
            Ok(Value::Uint(*value as u64))
        }
        Value::Double(_) => Err(overflow()),
        _ => value.as_text()?.parse().map(Value::Uint).map_err(|_| unreadable("a uint")),
    })
}

fn to_double(value: &Value<'_>) -> Option<Result<Value<'static>, Fault>> {
    Some(match value {
        Value::Double(value) => Ok(Value::Double(*value)),
        #[expect(clippy::cast_precision_loss, reason = "CEL's conversion rounds")]
        Value::Int(value) => Ok(Value::Double(*value as f64)),
        #[expect(clippy::cast_precision_loss, reason = "CEL's conversion rounds")]
        Value::Uint(value) => Ok(Value::Double(*value as f64)),
        _ => value.as_text()?.parse().map(Value::Double).map_err(|_| unreadable("a double")),
    })
}

fn to_text(value: Value<'_>) -> Result<Value<'_>, Fault> {
    match &value {
        Value::Text(_) | Value::Built(_) => Ok(value),
        Value::Bool(value) => Ok(Value::Text(if *value { "true" } else { "false" })),
        Value::Int(value) => built(value.to_string()),
        Value::Uint(value) => built(value.to_string()),
        Value::Double(value) => built(value.to_string()),
        Value::Duration(micros) => built(time::print_duration(*micros)),
        Value::Timestamp(micros) => built(time::print_timestamp(*micros)),
        _ => match value.as_bytes() {
            Some(bytes) => built(String::from_utf8(bytes.to_vec()).map_err(|_| unreadable("a string"))?),
            None => Err(mismatch("string", value.kind())),
        },
    }
}

fn built<'v>(text: String) -> Result<Value<'v>, Fault> {
    if text.len() > MAX_BUILT { Err(too_long()) } else { Ok(Value::Built(text.into())) }
}

fn too_long() -> Fault {
    Fault::error(format!("the condition builds something longer than {MAX_BUILT}"))
}

fn overflow() -> Fault {
    Fault::error("a number is out of range")
}

fn unreadable(what: &str) -> Fault {
    Fault::error(format!("a string cannot be read as {what}"))
}

fn no_operator(sign: &str, left: &Value<'_>, right: &Value<'_>) -> Fault {
    Fault::error(format!("`{sign}` is not for {} and {}", left.kind().words(), right.kind().words()))
}
