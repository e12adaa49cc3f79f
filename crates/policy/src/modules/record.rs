//! The record that modules see.

use std::sync::LazyLock;

use jiff::tz::TimeZone;
use proctor_core::action::MemberRef;
use proctor_core::json::Json;
use proctor_facts::Fact;

use crate::condition::CallingAgent;
use crate::input::Input;

/// The member of `action` that is no fact: what the scanner found.
const FINDINGS: &str = "findings";
/// Names of the members of `action`.
pub(super) static ACTION: LazyLock<Vec<&str>> =
    LazyLock::new(|| Fact::NAMES.iter().copied().chain([FINDINGS]).collect());
/// Members of `agent`.
pub(super) const AGENT: [&str; 12] = [
    "name",
    "principal",
    "team",
    "org",
    "risk_tier",
    "depth",
    "parent",
    "parent_risk_tier",
    "children",
    "is_registered",
    "age",
    "team_agents",
];
/// Members of `session`.
pub(super) const SESSION: [&str; 1] = ["id"];
/// Members of `time`.
pub(super) const TIME: [&str; 5] = ["now", "hour", "minute", "weekday", "date"];

const WEEKDAYS: [&str; 7] = ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"];

/// A member of the record: borrowed from the input where it can be.
pub(super) enum MemberValue<'i> {
    Text(&'i str),
    Built(String),
    Whole(u64),
    Truth(bool),
    /// A decimal number.
    Decimal(rust_decimal::Decimal),
    Texts(Vec<&'i str>),
    Json(&'i Json),
}

/// The members of `action` whose names `wanted` accepts.
pub(super) fn action(input: &Input, wanted: impl Fn(&str) -> bool) -> Vec<(&'static str, MemberValue<'_>)> {
    let facts = Fact::ALL.iter().filter(|fact| wanted(fact.name())).map(|fact| {
        let part = match fact.get(&input.facts) {
            MemberRef::Kind(kind) => MemberValue::Text(kind.word()),
            MemberRef::Text(text) => MemberValue::Text(text),
            MemberRef::Texts(texts) => MemberValue::Texts(texts.iter().map(String::as_str).collect()),
            MemberRef::Json(json) => MemberValue::Json(json),
            MemberRef::Number(number) => MemberValue::Whole(number),
            MemberRef::Optional(number) => MemberValue::Whole(u64::from(number.unwrap_or(0))),
            MemberRef::Decimal(amount) => MemberValue::Decimal(amount),
        };
        (fact.name(), part)
    });
    let mut members: Vec<_> = facts.collect();
    if wanted(FINDINGS) {
        let kinds = input.findings.iter().map(|finding| finding.kind.as_str());
        members.push((FINDINGS, MemberValue::Texts(kinds.collect())));
    }
    members
}

/// The members of `agent`. What the registry knows is left out if it gave no answer, so that what reads it fails.
pub(super) fn agent<'i>(
    input: &'i Input,
    acting: Option<&'i CallingAgent>,
) -> Vec<(&'static str, MemberValue<'i>)> {
    let mut members = vec![
        ("name", MemberValue::Text(&input.agent)),
        ("principal", MemberValue::Text(&input.caller.principal)),
        ("team", MemberValue::Text(&input.caller.team)),
        ("org", MemberValue::Text(&input.caller.org)),
    ];
    if let Some(acting) = acting {
        let age = u64::try_from(acting.age_micros(input) / 1_000_000).unwrap_or(0);
        members.extend([
            ("risk_tier", MemberValue::Text(acting.risk())),
            ("depth", MemberValue::Whole(u64::from(acting.depth(input)))),
            ("parent", MemberValue::Text(acting.parent())),
            ("parent_risk_tier", MemberValue::Text(acting.parent_risk())),
            ("children", MemberValue::Whole(acting.children())),
            ("is_registered", MemberValue::Truth(acting.is_registered())),
            ("age", MemberValue::Whole(age)),
            ("team_agents", MemberValue::Whole(acting.team_agents())),
        ]);
    }
    members
}

/// The members of `session`.
pub(super) fn session(input: &Input) -> [(&'static str, MemberValue<'_>); 1] {
    [("id", MemberValue::Built(input.session.to_string()))]
}

/// The members of `time`, in UTC. Empty for a moment outside the calendar, so that what reads them fails.
pub(super) fn time(input: &Input) -> Vec<(&'static str, MemberValue<'_>)> {
    let Ok(moment) = jiff::Timestamp::from_microsecond(input.now.micros()) else { return Vec::new() };
    let civil = TimeZone::UTC.to_datetime(moment);
    let weekday = usize::try_from(civil.weekday().to_monday_zero_offset()).unwrap_or(usize::MAX);
    vec![
        ("now", MemberValue::Built(input.now.to_string())),
        ("hour", MemberValue::Whole(u64::try_from(civil.hour()).unwrap_or(0))),
        ("minute", MemberValue::Whole(u64::try_from(civil.minute()).unwrap_or(0))),
        ("weekday", MemberValue::Text(WEEKDAYS.get(weekday).copied().unwrap_or_default())),
        ("date", MemberValue::Built(civil.date().to_string())),
    ]
}
