//! Conversion of records to memories.

use proctor_core::decision::Effect;
use proctor_core::json::Json;
use proctor_core::record::{Envelope, RecordKind};

use proctor_workspace::words::beginning;

/// Bytes of each part of a record that a memory quotes.
const MAX_PART_BYTES: usize = 2048;
/// Tasks and checks that a memory lists.
const MAX_LISTED: usize = 20;

/// Category of a memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MemoryKind {
    /// Fact that was completed or verified.
    Known,
    /// Outcome of an action.
    Done,
    /// Any other event.
    Happened,
}

/// Text drawn from one record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Memory {
    pub kind: MemoryKind,
    pub content: String,
}

/// Extracts the memory of a record, if it is of a kind that has one. `decided` returns the body of the decision of an outcome.
pub(super) fn memory_of(envelope: &Envelope, body: &Json, decided: &dyn Fn(u64) -> Json) -> Option<Memory> {
    match envelope.kind {
        RecordKind::Observation => observation(&envelope.code, body.pointer("/data/payload")?),
        RecordKind::Outcome => {
            let decision = envelope.links.first().map(|sequence| decided(*sequence)).unwrap_or_default();
            Some(Memory { kind: MemoryKind::Done, content: outcome(envelope, body, &decision) })
        }
        RecordKind::Decision if envelope.decision == Some(Effect::Deny) => {
            let reason = body.pointer("/decision/reason").and_then(Json::as_str).unwrap_or_default();
            let content = format!(
                "{} was denied by rule `{}`{}{}",
                tool(envelope),
                part(&envelope.rule),
                after(": ", reason),
                in_brackets(&target(body))
            );
            Some(Memory { kind: MemoryKind::Done, content })
        }
        RecordKind::Alarm => {
            let problem = body.get("problem").and_then(Json::as_str).unwrap_or_default();
            let about =
                if envelope.tool.is_empty() { String::new() } else { format!(" about {}", tool(envelope)) };
            let content = format!("alarm `{}`{about}{}", part(&envelope.code), after(": ", problem));
            Some(Memory { kind: MemoryKind::Happened, content })
        }
        _ => None,
    }
}

fn observation(code: &str, payload: &Json) -> Option<Memory> {
    let (kind, content) = match code {
        "success" => (MemoryKind::Known, success(payload)?),
        "verification" => (MemoryKind::Known, verification(payload)?),
        "run_lifecycle" => (MemoryKind::Known, run(payload)?),
        "task_list" => (MemoryKind::Happened, tasks(payload)?),
        "error" => (MemoryKind::Happened, error(payload)?),
        _ => return None,
    };
    Some(Memory { kind, content })
}

fn success(payload: &Json) -> Option<String> {
    let summary = text(payload, "action_summary")?;
    let kind = text(payload, "action_type").map(|kind| format!("{kind}: ")).unwrap_or_default();
    Some(format!("{kind}{summary}"))
}

fn error(payload: &Json) -> Option<String> {
    let said = payload.as_str().map(part);
    let message = said.or_else(|| text(payload, "error_message")).or_else(|| text(payload, "message"))?;
    let kind = text(payload, "error_type").map(|kind| format!(" {kind}")).unwrap_or_default();
    Some(format!("error{kind}: {message}"))
}

/// Summarizes a run that reports a result.
fn run(payload: &Json) -> Option<String> {
    let result = text(payload, "result_summary").or_else(|| text(payload, "error"))?;
    Some(format!("run `{}` {}: {result}", text(payload, "run_id")?, text(payload, "status")?))
}

fn tasks(payload: &Json) -> Option<String> {
    let tasks: Vec<String> = payload
        .get("tasks")?
        .as_array()?
        .iter()
        .take(MAX_LISTED)
        .filter_map(|task| {
            let problem = text(task, "error").map(|error| format!(", {error}")).unwrap_or_default();
            Some(format!("{} ({}{problem})", text(task, "title")?, text(task, "status")?))
        })
        .collect();
    (!tasks.is_empty()).then(|| {
        format!("tasks of run `{}`: {}", text(payload, "run_id").unwrap_or_default(), tasks.join("; "))
    })
}

fn verification(payload: &Json) -> Option<String> {
    let list =
        |name: &str| payload.get(name).and_then(Json::as_array).unwrap_or_default().iter().take(MAX_LISTED);
    let checks: Vec<String> = list("checks")
        .filter_map(|check| {
            let message = text(check, "message").map(|message| format!(", {message}")).unwrap_or_default();
            Some(format!("{} ({}{message})", text(check, "subject")?, text(check, "status")?))
        })
        .collect();
    let risks: Vec<&str> = list("residual_risks").filter_map(Json::as_str).map(part).collect();
    Some(format!(
        "verification of run `{}`: {}{}{}",
        text(payload, "run_id")?,
        text(payload, "status")?,
        after("; ", &checks.join("; ")),
        after("; risks: ", &risks.join("; "))
    ))
}

fn outcome(envelope: &Envelope, body: &Json, decision: &Json) -> String {
    let ending = match envelope.code.as_str() {
        "ok" => "succeeded",
        "failed" => "failed",
        _ => "was never reported",
    };
    let result = body.get("result").unwrap_or(&Json::Null);
    let reported = result_text(result).unwrap_or_default();
    format!("{} {ending}{}{}", tool(envelope), in_brackets(&target(decision)), after(": ", &reported))
}

/// Reads the result of an action from the members that agents use for it.
fn result_text(result: &Json) -> Option<String> {
    if let Some(said) = result.as_str() {
        return Some(part(said).to_owned());
    }
    let inner = result.get("result");
    if let Some(said) = inner.and_then(Json::as_str) {
        return Some(part(said).to_owned());
    }
    let places = [inner, Some(result)];
    let names = ["error", "output", "stdout", "response_text", "message", "summary"];
    let said = places.into_iter().flatten().find_map(|place| names.iter().find_map(|name| text(place, name)));
    said.map(str::to_owned)
}

/// Names the target of a decided action.
fn target(decision: &Json) -> String {
    let Some(action) = decision.pointer("/read_set/action") else { return String::new() };
    let named = ["command", "path", "url", "host", "model"];
    named.iter().find_map(|name| text(action, name)).unwrap_or_default().to_owned()
}

fn tool(envelope: &Envelope) -> String {
    let tool =
        if envelope.tool.is_empty() { "an action" } else { return format!("`{}`", part(&envelope.tool)) };
    tool.to_owned()
}

/// Reads a string member that is not blank.
fn text<'a>(value: &'a Json, name: &str) -> Option<&'a str> {
    value.get(name)?.as_str().map(part).filter(|text| !text.is_empty())
}

fn part(text: &str) -> &str {
    beginning(text.trim(), MAX_PART_BYTES)
}

fn after(separator: &str, text: &str) -> String {
    let text = part(text);
    if text.is_empty() { String::new() } else { format!("{separator}{text}") }
}

fn in_brackets(text: &str) -> String {
    if text.is_empty() { String::new() } else { format!(" ({text})") }
}

#[cfg(test)]
mod tests {
    use proctor_core::id::RecordId;
    use proctor_core::random::SeededRandomness;
    use proctor_core::time::Timestamp;
    use proptest::prelude::*;

    use super::*;

    fn envelope(kind: RecordKind, code: &str) -> Envelope {
        let time = Timestamp::from_micros(0);
        let mut envelope = Envelope::new(RecordId::new(time, &SeededRandomness::new(1)), time, kind);
        envelope.code = code.to_owned();
        envelope
    }

    fn observed(code: &str, payload: &str) -> Option<(MemoryKind, String)> {
        let body = Json::object()
            .with("data", Json::object().with("payload", Json::parse(payload.as_bytes()).unwrap()));
        let memory = memory_of(&envelope(RecordKind::Observation, code), &body, &|_| Json::Null)?;
        Some((memory.kind, memory.content))
    }

    #[test]
    fn what_agents_say_is_remembered_in_words() {
        for (code, payload, kind, content) in [
            (
                "success",
                r#"{"action_type":"edit","action_summary":"renamed module"}"#,
                MemoryKind::Known,
                "edit: renamed module",
            ),
            (
                "error",
                r#"{"error_type":"io","error_message":"disk full"}"#,
                MemoryKind::Happened,
                "error io: disk full",
            ),
            ("error", r#""it broke""#, MemoryKind::Happened, "error: it broke"),
            (
                "run_lifecycle",
                r#"{"run_id":"r","status":"completed","result_summary":"all green"}"#,
                MemoryKind::Known,
                "run `r` completed: all green",
            ),
            (
                "task_list",
                r#"{"run_id":"r","tasks":[{"title":"codec","status":"completed"},{"title":"net","status":"failed","error":"no IPv6"}]}"#,
                MemoryKind::Happened,
                "tasks of run `r`: codec (completed); net (failed, no IPv6)",
            ),
            (
                "verification",
                r#"{"run_id":"r","status":"passed","checks":[{"subject":"unit tests","status":"passed"}],"residual_risks":["no Windows run"]}"#,
                MemoryKind::Known,
                "verification of run `r`: passed; unit tests (passed); risks: no Windows run",
            ),
        ] {
            assert_eq!(observed(code, payload), Some((kind, content.to_owned())), "{code}");
        }
        for (code, payload) in [
            ("run_lifecycle", r#"{"run_id":"r","status":"executing"}"#),
            ("task_list", r#"{"run_id":"r","tasks":[]}"#),
            ("heartbeat", r#"{"uptime_ms":1}"#),
            ("memory_recall", r#"{"query":"x"}"#),
            ("success", "7"),
        ] {
            assert_eq!(observed(code, payload), None, "{code}");
        }
    }

    #[test]
    fn outcomes_denials_and_alarms_name_their_tool() {
        let decision = Json::parse(
            br#"{"decision":{"reason":"history is kept"},"read_set":{"action":{"command":"git push --force"}}}"#,
        )
        .unwrap();
        let mut done = envelope(RecordKind::Outcome, "failed");
        done.tool = "shell".to_owned();
        done.links = vec![7];
        let body =
            Json::parse(br#"{"result":{"tool_name":"bash","result":{"output":"rejected","exit_code":1}}}"#)
                .unwrap();
        let asked = |sequence: u64| if sequence == 7 { decision.clone() } else { Json::Null };
        let memory = memory_of(&done, &body, &asked).unwrap();
        assert_eq!(memory.content, "`shell` failed (git push --force): rejected");
        assert_eq!(memory.kind, MemoryKind::Done);

        let mut denied = envelope(RecordKind::Decision, "");
        denied.tool = "shell".to_owned();
        denied.rule = "no-force".to_owned();
        denied.decision = Some(Effect::Allow);
        assert_eq!(memory_of(&denied, &decision, &asked), None);
        denied.decision = Some(Effect::Deny);
        let memory = memory_of(&denied, &decision, &asked).unwrap();
        assert_eq!(
            memory.content,
            "`shell` was denied by rule `no-force`: history is kept (git push --force)"
        );

        let mut alarm = envelope(RecordKind::Alarm, "unasked");
        let body = Json::object().with("problem", "shell was done without asking");
        assert_eq!(
            memory_of(&alarm, &body, &asked).unwrap().content,
            "alarm `unasked`: shell was done without asking"
        );
        alarm.tool = "shell".to_owned();
        assert_eq!(memory_of(&alarm, &Json::Null, &asked).unwrap().content, "alarm `unasked` about `shell`");
    }

    proptest! {
        #[test]
        fn a_memory_is_bounded_whatever_was_said(code in "success|error|run_lifecycle|task_list|verification", length in 0usize..100_000) {
            let long = "ü".repeat(length);
            let payload = Json::object()
                .with("action_summary", long.as_str()).with("action_type", long.as_str())
                .with("error_message", long.as_str()).with("run_id", long.as_str()).with("status", long.as_str())
                .with("result_summary", long.as_str())
                .with("tasks", vec![Json::object().with("title", long.as_str()).with("status", long.as_str()); 30]);
            let body = Json::object().with("data", Json::object().with("payload", payload));
            let memory = memory_of(&envelope(RecordKind::Observation, &code), &body, &|_| Json::Null);
            prop_assert!(memory.is_none_or(|memory| memory.content.len() < 100 * MAX_PART_BYTES));
        }
    }
}
