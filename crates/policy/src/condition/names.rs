//! The names that conditions know: variables, members, functions.

use std::sync::LazyLock;

use proctor_core::action::MemberType;
use proctor_facts::Fact;

use super::node::{Containment, Function, Kind, Member, PastFunction};

/// The variables.
pub(super) const VARIABLES: [&str; 4] = ["action", "agent", "session", "time"];

/// Members of `action`: the facts, and what the scanner found.
static ACTION: LazyLock<Vec<(&str, Member, Kind)>> = LazyLock::new(|| {
    let facts = Fact::ALL.iter().map(|fact| {
        let kind = match fact.member_type() {
            MemberType::Kind | MemberType::Text => Kind::Text,
            MemberType::Texts => Kind::Texts,
            MemberType::Json => Kind::Any,
            MemberType::Number => Kind::Int,
            MemberType::Decimal => Kind::Double,
        };
        (fact.name(), Member::Fact(*fact), kind)
    });
    facts.chain([("findings", Member::Findings, Kind::Texts)]).collect()
});

/// Members of `agent`.
const AGENT: [(&str, Member, Kind); 12] = [
    ("name", Member::AgentName, Kind::Text),
    ("principal", Member::Principal, Kind::Text),
    ("team", Member::Team, Kind::Text),
    ("org", Member::Org, Kind::Text),
    ("risk_tier", Member::RiskTier, Kind::Text),
    ("depth", Member::AgentDepth, Kind::Int),
    ("parent", Member::Parent, Kind::Text),
    ("parent_risk_tier", Member::ParentRiskTier, Kind::Text),
    ("children", Member::Children, Kind::Int),
    ("is_registered", Member::IsRegistered, Kind::Bool),
    ("age", Member::Age, Kind::Duration),
    ("team_agents", Member::TeamAgents, Kind::Int),
];

/// Members of `session`.
const SESSION: [(&str, Member, Kind); 1] = [("id", Member::SessionId, Kind::Text)];

/// Members of `time`.
const TIME: [(&str, Member, Kind); 5] = [
    ("now", Member::Now, Kind::Timestamp),
    ("hour", Member::Hour, Kind::Int),
    ("minute", Member::Minute, Kind::Int),
    ("weekday", Member::Weekday, Kind::Text),
    ("date", Member::Date, Kind::Text),
];

/// The members of a variable.
pub(super) fn members_of(variable: &str) -> &'static [(&'static str, Member, Kind)] {
    match variable {
        "action" => &ACTION,
        "agent" => &AGENT,
        "session" => &SESSION,
        "time" => &TIME,
        _ => &[],
    }
}

/// Functions about the past, on `session` and `agent`.
pub(super) const PAST: [(&str, PastFunction, Kind); 6] = [
    ("called", PastFunction::Called, Kind::Bool),
    ("count", PastFunction::Count, Kind::Int),
    ("since", PastFunction::Since, Kind::Duration),
    ("denied", PastFunction::Denied, Kind::Bool),
    ("denied_count", PastFunction::DeniedCount, Kind::Int),
    ("tainted", PastFunction::Tainted, Kind::Bool),
];

/// Functions about the workspace, on `action`.
pub(super) const CONTAINMENT: [(&str, Containment); 2] =
    [("within", Containment::Within), ("writes_within", Containment::WritesWithin)];

/// Values of `time.weekday`, Monday first.
pub(super) const WEEKDAYS: [&str; 7] =
    ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"];

/// The macros.
pub(super) const MACROS: [&str; 7] = ["has", "all", "exists", "exists_one", "existsOne", "filter", "map"];

/// Call syntax of a function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Style {
    /// `x.f()`
    Method,
    /// `f(x)`
    Global,
    /// Either.
    Both,
}

/// A function: its parameters include the value that a method is called on.
#[derive(Debug)]
pub(super) struct Signature {
    pub(super) name: &'static str,
    pub(super) style: Style,
    pub(super) function: Function,
    pub(super) takes: &'static [&'static [Kind]],
    pub(super) gives: Kind,
}

const fn signature(
    name: &'static str,
    style: Style,
    function: Function,
    takes: &'static [&'static [Kind]],
    gives: Kind,
) -> Signature {
    Signature { name, style, function, takes, gives }
}

const TEXT: &[Kind] = &[Kind::Text];
const NUMBER_OR_TEXT: &[Kind] = &[Kind::Int, Kind::Uint, Kind::Double, Kind::Text];
const MOMENT: &[Kind] = &[Kind::Timestamp];
const MOMENT_OR_SPAN: &[Kind] = &[Kind::Timestamp, Kind::Duration];

/// The functions.
pub(super) const FUNCTIONS: [Signature; 27] = [
    signature("contains", Style::Method, Function::Contains, &[TEXT, TEXT], Kind::Bool),
    signature("startsWith", Style::Method, Function::StartsWith, &[TEXT, TEXT], Kind::Bool),
    signature("endsWith", Style::Method, Function::EndsWith, &[TEXT, TEXT], Kind::Bool),
    signature("matches", Style::Both, Function::Matches, &[TEXT, TEXT], Kind::Bool),
    signature(
        "size",
        Style::Both,
        Function::Size,
        &[&[Kind::Text, Kind::Bytes, Kind::Texts, Kind::List, Kind::Map]],
        Kind::Int,
    ),
    signature("lowerAscii", Style::Method, Function::LowerAscii, &[TEXT], Kind::Text),
    signature("upperAscii", Style::Method, Function::UpperAscii, &[TEXT], Kind::Text),
    signature("trim", Style::Method, Function::Trim, &[TEXT], Kind::Text),
    signature(
        "int",
        Style::Global,
        Function::Int,
        &[&[Kind::Int, Kind::Uint, Kind::Double, Kind::Text, Kind::Timestamp]],
        Kind::Int,
    ),
    signature("uint", Style::Global, Function::Uint, &[NUMBER_OR_TEXT], Kind::Uint),
    signature("double", Style::Global, Function::Double, &[NUMBER_OR_TEXT], Kind::Double),
    signature(
        "string",
        Style::Global,
        Function::Text,
        &[&[
            Kind::Bool,
            Kind::Int,
            Kind::Uint,
            Kind::Double,
            Kind::Text,
            Kind::Bytes,
            Kind::Duration,
            Kind::Timestamp,
        ]],
        Kind::Text,
    ),
    signature("bytes", Style::Global, Function::Bytes, &[&[Kind::Text, Kind::Bytes]], Kind::Bytes),
    signature("bool", Style::Global, Function::Bool, &[&[Kind::Bool, Kind::Text]], Kind::Bool),
    signature("dyn", Style::Global, Function::Dyn, &[&[Kind::Any]], Kind::Any),
    signature(
        "duration",
        Style::Global,
        Function::Duration,
        &[&[Kind::Text, Kind::Duration]],
        Kind::Duration,
    ),
    signature(
        "timestamp",
        Style::Global,
        Function::Timestamp,
        &[&[Kind::Text, Kind::Int, Kind::Timestamp]],
        Kind::Timestamp,
    ),
    signature("getFullYear", Style::Method, Function::Year, &[MOMENT], Kind::Int),
    signature("getMonth", Style::Method, Function::Month, &[MOMENT], Kind::Int),
    signature("getDayOfMonth", Style::Method, Function::DayOfMonth, &[MOMENT], Kind::Int),
    signature("getDate", Style::Method, Function::Date, &[MOMENT], Kind::Int),
    signature("getDayOfWeek", Style::Method, Function::DayOfWeek, &[MOMENT], Kind::Int),
    signature("getDayOfYear", Style::Method, Function::DayOfYear, &[MOMENT], Kind::Int),
    signature("getHours", Style::Method, Function::Hours, &[MOMENT_OR_SPAN], Kind::Int),
    signature("getMinutes", Style::Method, Function::Minutes, &[MOMENT_OR_SPAN], Kind::Int),
    signature("getSeconds", Style::Method, Function::Seconds, &[MOMENT_OR_SPAN], Kind::Int),
    signature("getMilliseconds", Style::Method, Function::Milliseconds, &[MOMENT_OR_SPAN], Kind::Int),
];

/// The function of that name.
pub(super) fn function(name: &str) -> Option<&'static Signature> {
    FUNCTIONS.iter().find(|signature| signature.name == name)
}

/// The words for a runtime function in messages.
pub(super) fn function_name(function: Function) -> &'static str {
    FUNCTIONS
        .iter()
        .find(|signature| signature.function == function)
        .map_or("function", |signature| signature.name)
}
