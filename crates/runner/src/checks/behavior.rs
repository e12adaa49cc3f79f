//! Rules on tool calls and errors.

use proctor_core::json::Json;
use proctor_core::quoted;

use super::evidence::{EventView, Evidence};
use super::result::CheckResult;
use super::value::{JsonPath, same};

/// Rules of a `behavior` assertion. Each rule that is given yields a check of its own.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Behavior {
    /// Tools that must have been called.
    pub must_use_tools: Option<Vec<String>>,
    /// Tools that must not have been called.
    pub forbidden_tools: Option<Vec<String>>,
    /// Most tool calls.
    pub max_tool_calls: Option<u64>,
    /// Fewest tool calls.
    pub min_tool_calls: Option<u64>,
    /// Whether errors are forbidden.
    pub no_errors: bool,
    /// Calls that must have happened.
    pub expected_tool_calls: Option<Vec<CallPattern>>,
    /// Whether the order of `expected_tool_calls` counts.
    pub tool_call_order: Order,
    /// Calls that must not have happened.
    pub forbidden_tool_calls: Option<Vec<CallPattern>>,
}

/// Order of expected calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Order {
    /// Each pattern matches some call.
    #[default]
    Any,
    /// The patterns match calls in the listed order.
    Expected,
}

/// A pattern of a tool call.
#[derive(Debug, Clone, PartialEq)]
pub struct CallPattern {
    /// The tool.
    pub tool: String,
    /// The status that the call must have.
    pub status: Option<String>,
    /// Rules on the input.
    pub input_matches: Vec<Matcher>,
    /// Rules on the output.
    pub output_matches: Vec<Matcher>,
}

/// A rule on one member of an input or output.
#[derive(Debug, Clone, PartialEq)]
pub struct Matcher {
    /// The member.
    pub path: JsonPath,
    /// The rule.
    pub rule: Rule,
}

/// Rules on a member.
#[derive(Debug, Clone, PartialEq)]
pub enum Rule {
    /// The member has this value.
    Equals(Json),
    /// The member is there.
    Exists,
    /// The member is not there.
    Absent,
}

impl Behavior {
    pub(super) fn evaluate(&self, evidence: &Evidence<'_>) -> Vec<CheckResult> {
        let calls: Vec<Call<'_>> = tool_calls(evidence);
        // What must have happened is judged by calls that are credible, what must not by all.
        let credible: Vec<Call<'_>> = calls.iter().filter(|call| !call.event.is_doubtful).copied().collect();
        let mut checks = Vec::new();
        if let Some(tools) = &self.must_use_tools {
            checks.push(must_use(tools, &credible, evidence));
        }
        if let Some(tools) = &self.forbidden_tools {
            checks.push(forbidden(tools, &calls));
        }
        if let Some(limit) = self.max_tool_calls {
            // The larger of what was reported and what was seen: a metric of 0 does not hide calls.
            let count = evidence.metric("tool_calls").unwrap_or_default().max(calls.len() as u64);
            checks.push(counted("max_tool_calls", count, count <= limit, "at most", limit));
        }
        if let Some(limit) = self.min_tool_calls {
            // An agent's own metric counts only where nobody else can count, and where no reported call is doubtful.
            let is_usable = !evidence.has_tools && credible.len() == calls.len();
            let metric = evidence.metric("tool_calls").filter(|_| is_usable);
            let count = metric.unwrap_or(credible.len() as u64);
            checks.push(counted("min_tool_calls", count, count >= limit, "at least", limit));
        }
        if self.no_errors {
            checks.push(no_errors(evidence));
        }
        if let Some(patterns) = &self.expected_tool_calls {
            checks.push(expected_calls(patterns, self.tool_call_order, &credible, evidence));
        }
        if let Some(patterns) = &self.forbidden_tool_calls {
            let hit = calls.iter().find(|call| patterns.iter().any(|pattern| pattern.matches(call.event)));
            let message = match hit {
                Some(call) => {
                    format!("a forbidden call of {} was made (event {})", quoted(call.tool), call.index)
                }
                None => "no forbidden call was made".to_owned(),
            };
            checks.push(CheckResult::new("forbidden_tool_calls", hit.is_none(), message));
        }
        checks
    }
}

/// A tool call among the events.
#[derive(Clone, Copy)]
struct Call<'a> {
    /// Number of the event, in order of arrival.
    index: usize,
    /// Sequence if every call has one, else order of arrival: calls that the endpoint saw have none.
    order: u64,
    tool: &'a str,
    event: &'a EventView<'a>,
}

fn tool_calls<'a>(evidence: &Evidence<'a>) -> Vec<Call<'a>> {
    let is_numbered = evidence.events_of("tool_call").all(|(_, event)| event.sequence.is_some());
    let call = |(index, event): (usize, &'a EventView<'a>)| Call {
        index,
        order: event.sequence.filter(|_| is_numbered).unwrap_or(index as u64),
        tool: event.payload.get("tool").and_then(Json::as_str).unwrap_or_default(),
        event,
    };
    evidence.events_of("tool_call").map(call).collect()
}

fn must_use(tools: &[String], calls: &[Call<'_>], evidence: &Evidence<'_>) -> CheckResult {
    let missing: Vec<String> = tools
        .iter()
        .filter(|tool| !calls.iter().any(|call| call.tool == tool.as_str()))
        .map(|tool| quoted(tool))
        .collect();
    let message = if missing.is_empty() {
        "every required tool was called".to_owned()
    } else {
        format!("not called: {}; {}", missing.join(", "), made(calls, evidence))
    };
    CheckResult::new("must_use_tools", missing.is_empty(), message)
}

fn forbidden(tools: &[String], calls: &[Call<'_>]) -> CheckResult {
    let called: Vec<String> = tools
        .iter()
        .filter(|tool| calls.iter().any(|call| call.tool == tool.as_str()))
        .map(|tool| quoted(tool))
        .collect();
    let message = if called.is_empty() {
        "no forbidden tool was called".to_owned()
    } else {
        format!("called although forbidden: {}", called.join(", "))
    };
    CheckResult::new("forbidden_tools", called.is_empty(), message)
}

fn counted(name: &str, count: u64, passed: bool, bound: &str, limit: u64) -> CheckResult {
    let message = format!("{count} tool calls, {bound} {limit} allowed");
    let details = Json::object().with("count", count).with("limit", limit);
    CheckResult::new(name, passed, message).with_details(details)
}

/// Errors that the agent recovered from count too.
fn no_errors(evidence: &Evidence<'_>) -> CheckResult {
    let events = evidence.events_of("error").count();
    let first = evidence.events_of("error").next().map(|(_, event)| {
        let said = event.payload.get("message").and_then(Json::as_str).unwrap_or("without message");
        quoted(said)
    });
    let message = match (evidence.error(), first) {
        (None, None) => "no errors".to_owned(),
        (Some(error), _) => format!("the response has an error: {}", quoted(&error)),
        (None, Some(first)) => format!("{events} error events, the first: {first}"),
    };
    CheckResult::new("no_errors", evidence.error().is_none() && events == 0, message)
}

/// The calls that were made, with their input, as part of a sentence.
fn made(calls: &[Call<'_>], evidence: &Evidence<'_>) -> String {
    const SHOWN: usize = 5;
    const INPUT: usize = 80;
    if calls.is_empty() {
        return "no tool was called".to_owned();
    }
    let call = |call: &Call<'_>| {
        let payload = call.event.payload;
        let input = payload.get("input").or_else(|| payload.get("args")).map(Json::to_string);
        let input = evidence.files.shown(&input.unwrap_or_default());
        format!("{}({})", quoted(call.tool), proctor_core::printable::shown(&input, INPUT))
    };
    let mut listed: Vec<String> = calls.iter().take(SHOWN).map(call).collect();
    if calls.len() > SHOWN {
        listed.push(format!("{} more", calls.len() - SHOWN));
    }
    format!("called: {}", listed.join(", "))
}

fn expected_calls(
    patterns: &[CallPattern],
    order: Order,
    calls: &[Call<'_>],
    evidence: &Evidence<'_>,
) -> CheckResult {
    let check = |passed, message: String| CheckResult::new("expected_tool_calls", passed, message);
    let mut sorted: Vec<&Call<'_>> = calls.iter().collect();
    sorted.sort_by_key(|call| call.order);
    let mut after: Option<u64> = None;
    for (number, pattern) in patterns.iter().enumerate() {
        let found = sorted.iter().find(|call| {
            let later = order == Order::Any || after.is_none_or(|last| call.order > last);
            later && pattern.matches(call.event)
        });
        let Some(call) = found else {
            let behind = if number > 0 && order == Order::Expected { " after the one before it" } else { "" };
            let tool = quoted(&pattern.tool);
            let message = format!(
                "expected call {} ({tool}) was not made{behind}; {}",
                number + 1,
                made(calls, evidence)
            );
            return check(false, message);
        };
        after = Some(call.order);
    }
    check(true, format!("all {} expected calls were made", patterns.len()))
}

impl CallPattern {
    fn matches(&self, event: &EventView<'_>) -> bool {
        let payload = event.payload;
        let member = |name: &str| payload.get(name).unwrap_or(&Json::Null);
        // Older agents send the input as `args`.
        let input = payload.get("input").or_else(|| payload.get("args")).unwrap_or(&Json::Null);
        payload.get("tool").and_then(Json::as_str) == Some(self.tool.as_str())
            && self.status.as_ref().is_none_or(|status| member("status").as_str() == Some(status.as_str()))
            && self.input_matches.iter().all(|matcher| matcher.holds(input))
            && self.output_matches.iter().all(|matcher| matcher.holds(member("output")))
    }
}

impl Matcher {
    fn holds(&self, value: &Json) -> bool {
        let found = self.path.find(value);
        match &self.rule {
            Rule::Equals(expected) => found.is_some_and(|found| same(found, expected)),
            Rule::Exists => found.is_some(),
            Rule::Absent => found.is_none(),
        }
    }
}
