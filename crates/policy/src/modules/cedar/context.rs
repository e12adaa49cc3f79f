//! The record as Cedar's context. Only what the policies read is built.

use std::collections::BTreeSet;

use cedar_policy::RestrictedExpression;
use rust_decimal::{Decimal, RoundingStrategy};

use proctor_core::json::Json;

use super::super::record::{self, MemberValue};
use crate::condition::CallingAgent;
use crate::input::Input;
use crate::question::AnswerSource;

/// Members of the context that policies read.
#[derive(Debug, Clone, Default)]
pub(super) struct Reads {
    pub(super) action: BTreeSet<&'static str>,
    pub(super) agent: bool,
    pub(super) session: bool,
    pub(super) time: bool,
    /// Whether the whole context is read, or an unknown part of it.
    pub(super) everything: bool,
}

impl Reads {
    pub(super) fn merge(&mut self, other: &Reads) {
        self.action.extend(&other.action);
        self.agent |= other.agent;
        self.session |= other.session;
        self.time |= other.time;
        self.everything |= other.everything;
    }
}

pub(super) fn pairs(
    input: &Input,
    answers: &dyn AnswerSource,
    reads: &Reads,
) -> Vec<(String, RestrictedExpression)> {
    let action = record::action(input, |name| reads.everything || reads.action.contains(name));
    let mut pairs = vec![("action".to_owned(), record_of(action))];
    if reads.everything || reads.agent {
        let acting = CallingAgent::ask(input, answers);
        pairs.push(("agent".to_owned(), record_of(record::agent(input, acting.as_ref()))));
    }
    if reads.everything || reads.session {
        pairs.push(("session".to_owned(), record_of(record::session(input))));
    }
    if reads.everything || reads.time {
        pairs.push(("time".to_owned(), record_of(record::time(input))));
    }
    pairs
}

fn record_of<'i>(members: impl IntoIterator<Item = (&'static str, MemberValue<'i>)>) -> RestrictedExpression {
    new_record(members.into_iter().filter_map(|(name, part)| Some((name.to_owned(), member_value(&part)?))))
}

/// Names are unique in the record and in JSON that was read; should they not be, an empty record makes policies that read it
/// fail, which denies.
fn new_record(members: impl IntoIterator<Item = (String, RestrictedExpression)>) -> RestrictedExpression {
    RestrictedExpression::new_record(members)
        .unwrap_or_else(|_| RestrictedExpression::new_set(std::iter::empty()))
}

fn member_value(part: &MemberValue<'_>) -> Option<RestrictedExpression> {
    Some(match part {
        MemberValue::Text(text) => RestrictedExpression::new_string((*text).to_owned()),
        MemberValue::Built(text) => RestrictedExpression::new_string(text.clone()),
        MemberValue::Whole(number) => {
            RestrictedExpression::new_long(i64::try_from(*number).unwrap_or(i64::MAX))
        }
        MemberValue::Truth(truth) => RestrictedExpression::new_bool(*truth),
        MemberValue::Decimal(number) => decimal(*number),
        MemberValue::Texts(texts) => RestrictedExpression::new_set(
            texts.iter().map(|text| RestrictedExpression::new_string((*text).to_owned())),
        ),
        // A message without arguments has an empty record of them.
        MemberValue::Json(Json::Null) => new_record(std::iter::empty()),
        MemberValue::Json(json) => json_value(json)?,
    })
}

/// Members of an object; nulls are left out.
pub(super) fn members(json: &Json) -> Vec<(String, RestrictedExpression)> {
    json.as_object()
        .unwrap_or_default()
        .iter()
        .filter_map(|(name, value)| Some((name.clone(), json_value(value)?)))
        .collect()
}

/// Recursion is bounded by the depth that the JSON parser allows.
fn json_value(json: &Json) -> Option<RestrictedExpression> {
    Some(match json {
        Json::Null => return None,
        Json::Bool(value) => RestrictedExpression::new_bool(*value),
        Json::Number(text) => match text.parse::<i64>() {
            Ok(whole) => RestrictedExpression::new_long(whole),
            Err(_) => RestrictedExpression::new_string(text.to_string()),
        },
        Json::String(text) => RestrictedExpression::new_string(text.clone()),
        Json::Array(items) => RestrictedExpression::new_set(items.iter().filter_map(json_value)),
        Json::Object(members) => {
            new_record(members.iter().filter_map(|(name, value)| Some((name.clone(), json_value(value)?))))
        }
    })
}

/// Converts to Cedar's decimal, which has four digits and a range: money is rounded up, and larger amounts become the maximum.
fn decimal(number: Decimal) -> RestrictedExpression {
    let limit = Decimal::new(i64::MAX, 4);
    let number = number.round_dp_with_strategy(4, RoundingStrategy::AwayFromZero).clamp(-limit, limit);
    RestrictedExpression::new_decimal(format!("{number:.4}"))
}
