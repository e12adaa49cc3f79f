use super::*;
use crate::atp::{ReadError, Strictness, WarningKind};

const ID: &str = "550e8400-e29b-41d4-a716-446655440000";

fn event(kind: &str, payload: &str) -> String {
    format!(
        r#"{{"version":"1.0","task_id":"{ID}","timestamp":"2025-01-21T10:30:45.123Z","sequence":42,"event_type":"{kind}","payload":{payload}}}"#
    )
}

fn paths(text: &str, strictness: Strictness) -> Vec<String> {
    match Event::parse(text.as_bytes(), strictness) {
        Err(ReadError::Invalid(findings)) => {
            findings.problems.listed().iter().map(|found| found.path.clone()).collect()
        }
        Ok(_) => Vec::new(),
        Err(other) => panic!("{other}"),
    }
}

fn warnings(text: &str) -> Vec<(WarningKind, u64)> {
    Event::parse(text.as_bytes(), Strictness::Lenient).unwrap().warnings.counts().collect()
}

#[test]
fn built_events_are_read_back() {
    let (input, steps) = (Json::object().with("q", "x"), [Json::from("a"), Json::from("b")]);
    let duration = Json::from(1500u64);
    for payload in [
        Payload::ToolCall(ToolCall {
            tool: "web_search",
            input: Some(&input),
            duration_ms: Number::of(&duration),
            status: Some("success"),
            ..ToolCall::default()
        }),
        Payload::LlmRequest(LlmRequest { model: "m", input_tokens: Some(1), ..LlmRequest::default() }),
        Payload::Reasoning(Reasoning { plan: Some(Plan::Steps(&steps)), ..Reasoning::default() }),
        Payload::StateChange(StateChange { to_state: Some("done"), ..StateChange::default() }),
        Payload::ArtifactCreated(ArtifactCreated {
            path: Some("p"),
            size_bytes: Some(3),
            ..ArtifactCreated::default()
        }),
        Payload::Error(ErrorReport {
            error_type: "e",
            message: "m",
            recoverable: Some(true),
            ..ErrorReport::default()
        }),
        Payload::Progress(Progress { current_step: Some(1), message: Some("m"), ..Progress::default() }),
    ] {
        let built = Event::new(ID, 7, Timestamp::from_micros(1_737_455_445_123_000), &payload);
        let read = Event::parse(built.to_string().as_bytes(), Strictness::Strict).unwrap();
        assert!(read.warnings.is_empty(), "{built}");
        assert_eq!(read.message, built);
        assert_eq!(read.message.payload(), payload);
        assert_eq!(read.message.sequence(), Some(7));
        assert_eq!(read.message.time(), Some(Timestamp::from_micros(1_737_455_445_123_000)));
        assert_eq!(read.message.event_type().unwrap().as_str(), payload.event_type_name());
    }
}

#[test]
fn what_released_agents_send_is_a_warning() {
    let text = r#"{"task_id":"t","event_type":"progress","payload":{"percentage":null}}"#;
    assert_eq!(
        warnings(text),
        [
            (WarningKind::NoVersion, 1),
            (WarningKind::TaskIdNotUuid, 1),
            (WarningKind::NullForAbsent, 1),
            (WarningKind::NoSequence, 1),
            (WarningKind::NoTimestamp, 1)
        ]
    );
    assert_eq!(paths(text, Strictness::Strict).len(), 4);
    let local = event("progress", "{}").replace("45.123Z", "45.123");
    assert_eq!(warnings(&local), [(WarningKind::TimeWithoutZone, 1)]);
    assert_eq!(paths(&local, Strictness::Strict), ["$.timestamp"]);
    let read = Event::parse(local.as_bytes(), Strictness::Lenient).unwrap();
    assert_eq!(read.message.time(), Some(Timestamp::from_micros(1_737_455_445_123_000)));

    let plan = event("reasoning", r#"{"plan":"first this"}"#);
    assert_eq!(warnings(&plan), [(WarningKind::PlanAsText, 1)]);
    let read = Event::parse(plan.as_bytes(), Strictness::Lenient).unwrap();
    assert!(matches!(
        read.message.payload(),
        Payload::Reasoning(Reasoning { plan: Some(Plan::Text("first this")), .. })
    ));

    let args = event("tool_call", r#"{"tool":"t","args":{"a":1},"error":null}"#);
    assert_eq!(warnings(&args), [(WarningKind::LegacyArgs, 1)]);
    let read = Event::parse(args.as_bytes(), Strictness::Lenient).unwrap();
    let Payload::ToolCall(call) = read.message.payload() else { panic!("a tool call") };
    assert_eq!(call.input.unwrap().to_string(), r#"{"a":1}"#);
    assert_eq!(read.message.to_string(), args.replace(r#","error":null"#, ""));
}

#[test]
fn unknown_types_are_kept_only_of_higher_minor_versions() {
    let text = event("telepathy", r#"{"x":null}"#);
    assert_eq!(paths(&text, Strictness::Lenient), ["$.event_type"]);
    let newer = text.replace("\"1.0\"", "\"1.3\"");
    assert_eq!(warnings(&newer), [(WarningKind::UnknownEventType, 1)]);
    let read = Event::parse(newer.as_bytes(), Strictness::Lenient).unwrap();
    assert_eq!(read.message.to_string(), newer);
    assert_eq!(read.message.event_type(), None);
    let Payload::Opaque(opaque) = read.message.payload() else { panic!("opaque") };
    assert_eq!((opaque.event_type, opaque.payload.to_string()), ("telepathy", r#"{"x":null}"#.to_owned()));
    assert_eq!(paths(&newer, Strictness::Strict), ["$.event_type"]);
}

#[test]
fn payloads_are_typed() {
    for (kind, bad, member) in [
        ("tool_call", "{}", "tool"),
        ("tool_call", r#"{"tool":""}"#, "tool"),
        ("tool_call", r#"{"tool":"t","duration_ms":-1}"#, "duration_ms"),
        ("tool_call", r#"{"tool":"t","error":{}}"#, "error"),
        ("llm_request", "{}", "model"),
        ("llm_request", r#"{"model":"m","input_tokens":-5}"#, "input_tokens"),
        ("llm_request", r#"{"model":"m","temperature":"hot"}"#, "temperature"),
        ("reasoning", r#"{"plan":[1]}"#, "plan[0]"),
        ("reasoning", r#"{"plan":{}}"#, "plan"),
        ("state_change", r#"{"from_state":1}"#, "from_state"),
        ("artifact_created", r#"{"size_bytes":"1"}"#, "size_bytes"),
        ("error", r#"{"message":"m"}"#, "error_type"),
        ("error", r#"{"error_type":"e","message":"m","recoverable":"yes"}"#, "recoverable"),
        ("progress", r#"{"percentage":100.5}"#, "percentage"),
        ("progress", r#"{"percentage":-1}"#, "percentage"),
        ("progress", r#"{"current_step":1.5}"#, "current_step"),
    ] {
        assert_eq!(paths(&event(kind, bad), Strictness::Lenient), [format!("$.payload.{member}")], "{bad}");
        let read = Event::parse(event(kind, bad).as_bytes(), Strictness::Strict).unwrap();
        assert_eq!(read.warnings.count(WarningKind::RefusedInRuns), 1, "{bad}");
    }
    assert_eq!(paths(&event("progress", "[]"), Strictness::Strict), ["$.payload"]);
}

#[test]
fn envelopes_are_checked() {
    let good = event("progress", "{}");
    for (from, to, path) in [
        ("\"sequence\":42", "\"sequence\":-1", "$.sequence"),
        ("\"sequence\":42", "\"sequence\":1.5", "$.sequence"),
        ("\"sequence\":42", "\"sequence\":\"1\"", "$.sequence"),
        ("2025-01-21T10:30:45.123Z", "yesterday", "$.timestamp"),
        ("\"2025-01-21T10:30:45.123Z\"", "1737455445", "$.timestamp"),
        ("\"event_type\":\"progress\",", "", "$.event_type"),
        (",\"payload\":{}", "", "$.payload"),
        (ID, "not an id", "$.task_id"),
        ("\"1.0\"", "\"2.0\"", "$.version"),
        ("\"1.0\"", "\"one\"", "$.version"),
    ] {
        for strictness in [Strictness::Lenient, Strictness::Strict] {
            assert_eq!(paths(&good.replace(from, to), strictness), [path], "{to}");
        }
    }
    let huge = good.replace("42", "18446744073709551616");
    assert_eq!(paths(&huge, Strictness::Lenient), ["$.sequence"]);
    assert!(paths(&huge, Strictness::Strict).is_empty());
}
