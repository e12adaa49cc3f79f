//! Judgement of duties on replies that came.

use proctor_core::json::Json;
use proctor_sandbox::Status as ProcessStatus;
use proctor_wire::atp::conversation::{ConversationProblem, ReceivedEvent};
use proctor_wire::atp::{Event, Findings, ReadError, Response, Strictness, Version, WarningKind};

use super::duty::{Duty, Outcome};
use super::reply::{Handling, Reply};

/// The outcome of a duty whose violations were looked for.
pub(super) fn outcome(violation: Option<String>) -> Outcome {
    violation.map_or(Outcome::Passed, Outcome::Failed)
}

/// Judges the duties about messages on replies to valid requests.
pub(super) fn messages(duty: Duty, replies: &[Reply]) -> Outcome {
    let first = |violation: fn(&Reply) -> Option<String>| outcome(replies.iter().find_map(violation));
    let has_events = replies.iter().any(|reply| !reply.messages.events.is_empty());
    match duty {
        Duty::Answers => {
            first(|reply| reply.missing_response().or_else(|| response_problem(reply, &[], true)))
        }
        Duty::Version => first(|reply| {
            let events = reply.messages.events.iter().map(|event| (event.as_json(), "an event"));
            let messages = reply.response().map(|response| (response, "the response"));
            messages.into_iter().chain(events).find_map(|(json, name)| version_problem(json, name))
        }),
        Duty::TaskId => first(task_id_problem),
        Duty::Status => first(|reply| response_problem(reply, &["$.status"], false)),
        Duty::Artifacts => first(|reply| response_problem(reply, &["$.artifacts"], false)),
        Duty::Metrics => first(|reply| response_problem(reply, &["$.metrics"], false)),
        Duty::Events if has_events => first(|reply| reply.messages.events.iter().find_map(event_problem)),
        Duty::EventOrder if has_events => first(order_problem),
        Duty::Events | Duty::EventOrder => Outcome::NotApplicable("the agent sends no events".to_owned()),
        Duty::AllowedTools => first(|reply| {
            let used = reply.messages.events.iter().find_map(|event| tool_of(event.as_json()))?;
            Some(format!("it reports a call of `{used}`, and `allowed_tools` is empty"))
        }),
        Duty::Exit => first(|reply| match reply.status {
            _ if reply.lingered => {
                Some("the process still ran 2 s after it had closed its output".to_owned())
            }
            Some(ProcessStatus::Exited(0)) | None => None,
            Some(status) => crate::execute::crash(status),
        }),
        _ => Outcome::NotApplicable("not a duty about messages".to_owned()),
    }
}

/// Judges the reason of failed responses, on all replies.
pub(super) fn error_text<'r>(replies: impl Iterator<Item = &'r Reply>) -> Outcome {
    let mut has_failed = false;
    for reply in replies.filter(|reply| reply.status_word() == Some("failed")) {
        has_failed = true;
        let error = reply.response().and_then(|response| response.get("error")).and_then(Json::as_str);
        if error.is_none_or(|error| error.trim().is_empty()) {
            return Outcome::Failed(format!("its failed response to {} has no `error`", reply.label));
        }
    }
    if has_failed {
        Outcome::Passed
    } else {
        Outcome::NotApplicable("the agent sent no failed response".to_owned())
    }
}

/// Judges a request that the agent has to execute.
pub(super) fn executed(reply: &Reply) -> Outcome {
    if reply.is_executed() {
        return Outcome::Passed;
    }
    let Some(response) = reply.response() else {
        return outcome(reply.missing_response());
    };
    let word = reply.status_word().unwrap_or("something else");
    Outcome::Failed(match response.get("error").and_then(Json::as_str) {
        Some(error) => format!("it answered `{word}`: {error}"),
        None => format!("it answered `{word}`"),
    })
}

/// The violation in the reply to a request that must be refused; one that is too large may also be executed.
pub(super) fn refusal_problem(reply: &Reply, is_huge: bool) -> Option<String> {
    let label = reply.label;
    match reply.handling() {
        Handling::Refused => None,
        Handling::Executed(_) | Handling::Cut(_) if is_huge => None,
        Handling::Executed(status) => Some(format!("{label}: it answered `{status}`")),
        Handling::Cut(reason) | Handling::Broken(reason) => Some(format!("{label}: {reason}")),
    }
}

/// The first strict problem of the response below one of these paths, or, if `is_rest`, outside of those that have a duty of their own.
fn response_problem(reply: &Reply, paths: &[&str], is_rest: bool) -> Option<String> {
    const OWN: [&str; 5] = ["$.version", "$.task_id", "$.status", "$.artifacts", "$.metrics"];
    let response = reply.response()?;
    let below = |path: &str, roots: &[&str]| {
        roots.iter().any(|root| {
            path.strip_prefix(root).is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
        })
    };
    let concerns = |path: &str| below(path, paths) || (is_rest && !below(path, &OWN));
    let findings = findings(Response::read(response.clone(), Strictness::Strict).map(|read| read.warnings));
    let problem = findings.problems.listed().iter().find(|problem| concerns(&problem.path));
    problem.map(ToString::to_string).or_else(|| {
        let is_violation = |kind| {
            matches!(kind, WarningKind::SizeMismatch | WarningKind::HashMismatch | WarningKind::RefusedInRuns)
        };
        let mut warnings = findings.warnings.listed().iter();
        let warning = warnings.find(|warning| is_violation(warning.kind) && concerns(&warning.path))?;
        Some(match &warning.problem {
            Some(problem) => format!("{}: {problem}", warning.path),
            None => warning.to_string(),
        })
    })
}

fn findings(read: Result<proctor_wire::atp::Warnings, ReadError>) -> Findings {
    match read {
        Ok(warnings) => Findings { warnings, ..Findings::default() },
        Err(ReadError::Invalid(findings)) => *findings,
        // The value was parsed already, so nothing else can be wrong with it.
        Err(ReadError::TooLarge { .. } | ReadError::Json(_)) => Findings::default(),
    }
}

fn version_problem(message: &Json, name: &str) -> Option<String> {
    match message.get("version") {
        None => Some(format!("{name} has no `version`")),
        Some(version) => {
            let is_supported = version.as_str().is_some_and(|text| Version::parse(text).is_some());
            (!is_supported).then(|| format!("{name} has another `version` than 1.x"))
        }
    }
}

fn task_id_problem(reply: &Reply) -> Option<String> {
    let events = reply.messages.events.iter().map(|event| (event.as_json(), "an event"));
    let response = reply.response().map(|response| (response, "the response"));
    let foreign = response.into_iter().chain(events).find_map(|(json, name)| {
        match json.get("task_id").and_then(Json::as_str) {
            Some(found) if found == reply.task_id => None,
            Some(found) => {
                let found: String = found.chars().take(80).collect();
                Some(format!("{name} has task id `{found}`, not the request's"))
            }
            None => Some(format!("{name} has no `task_id`")),
        }
    });
    foreign.or_else(|| {
        let is_foreign =
            |problem: &&ConversationProblem| matches!(problem, ConversationProblem::ForeignTaskId { .. });
        reply.messages.problems.iter().find(is_foreign).map(ToString::to_string)
    })
}

/// The first problem of an event by the document's schema and the rules of payloads; version and task id have duties of their own.
fn event_problem(received: &ReceivedEvent) -> Option<String> {
    let is_own = |path: &str| path == "$.version" || path == "$.task_id";
    let json = received.as_json();
    let strict = findings(Event::read(json.clone(), Strictness::Strict).map(|read| read.warnings));
    let newer = json.get("version").and_then(Json::as_str).and_then(Version::parse);
    let is_newer_type = |path: &str| path == "$.event_type" && newer.is_some_and(Version::is_newer);
    let problem = strict
        .problems
        .listed()
        .iter()
        .find(|problem| !is_own(&problem.path) && !is_newer_type(&problem.path));
    problem.map(|problem| format!("an event: {problem}")).or_else(|| {
        let mut warnings = strict.warnings.listed().iter();
        let warning = warnings.find(|warning| warning.kind == WarningKind::RefusedInRuns)?;
        warning.problem.as_ref().map(|problem| format!("an event: {}: {problem}", warning.path))
    })
}

fn order_problem(reply: &Reply) -> Option<String> {
    let late = reply.messages.events.iter().find(|event| event.after_response);
    let unordered = reply.messages.events.iter().find(|event| event.out_of_sequence);
    match (unordered, late) {
        (Some(event), _) => {
            let sequence = event.event().and_then(Event::sequence).unwrap_or_default();
            Some(format!("an event has sequence {sequence}, which is not higher than those before it"))
        }
        (None, Some(_)) => Some("an event came after the response".to_owned()),
        (None, None) => None,
    }
}

fn tool_of(event: &Json) -> Option<String> {
    if event.get("event_type").and_then(Json::as_str) != Some("tool_call") {
        return None;
    }
    let tool = event.get("payload").and_then(|payload| payload.get("tool")).and_then(Json::as_str);
    Some(tool.unwrap_or("a tool without name").chars().take(80).collect())
}
