use super::*;
use proptest::prelude::*;

fn call(tool: &str, input: &str) -> ToolCall {
    ToolCall {
        tool: tool.to_owned(),
        input: Json::parse(input.as_bytes()).unwrap(),
        output: Json::from("out"),
        error: None,
        status: ToolCallStatus::Success,
        duration: Duration::from_millis(3),
        emitted: Vec::new(),
    }
}

fn placed(after_events: usize, tool: &str, input: &str) -> PlacedCall {
    PlacedCall { after_events, call: call(tool, input) }
}

fn event(sequence: u64, event_type: &str, payload: &str) -> Json {
    Json::object()
        .with("sequence", sequence)
        .with("event_type", event_type)
        .with("payload", Json::parse(payload.as_bytes()).unwrap())
}

fn tools(events: &[SeenEvent]) -> Vec<&str> {
    let named = events.iter().filter(|event| event.event_type == "tool_call");
    named.map(|event| event.payload.get("tool").and_then(Json::as_str).unwrap()).collect()
}

#[test]
fn a_call_that_is_also_reported_counts_once_as_the_endpoint_saw_it() {
    let events =
        [event(0, "tool_call", r#"{"tool":"search","input":{"q":1},"status":"success","output":"lie"}"#)];
    let merged = merge(&events, &[placed(0, "search", r#"{"q":1}"#)], &|_| false);
    assert_eq!(merged.len(), 1);
    assert_eq!(merged[0].payload.get("output").and_then(Json::as_str), Some("out"));
    assert_eq!((merged[0].sequence, merged[0].doubt), (None, None));
    // Another input is another call, and one report stands for one call.
    assert_eq!(merge(&events, &[placed(0, "search", r#"{"q":2}"#)], &|_| false).len(), 2);
    let twice = [placed(0, "search", r#"{"q":1}"#), placed(0, "search", r#"{"q":1}"#)];
    assert_eq!(merge(&events, &twice, &|_| false).len(), 2);
}

#[test]
fn unreported_calls_stand_where_they_were_seen() {
    let events = [event(0, "tool_call", r#"{"tool":"a"}"#), event(1, "tool_call", r#"{"tool":"c"}"#)];
    let merged =
        merge(&events, &[placed(1, "b", "{}"), placed(2, "d", "{}"), placed(2, "e", "{}")], &|_| false);
    assert_eq!(tools(&merged), ["a", "b", "c", "d", "e"]);
}

#[test]
fn calls_have_the_order_in_which_they_were_seen_and_invented_ones_are_doubtful() {
    let events = [
        event(5, "tool_call", r#"{"tool":"backup","input":{}}"#),
        event(10, "tool_call", r#"{"tool":"delete","input":{}}"#),
        event(11, "tool_call", r#"{"tool":"pay","input":{}}"#),
        event(12, "tool_call", r#"{"tool":"own","input":{}}"#),
    ];
    let calls = [placed(0, "delete", "{}"), placed(0, "backup", "{}")];
    let merged = merge(&events, &calls, &|tool| tool != "own");
    assert_eq!(tools(&merged), ["delete", "backup", "pay", "own"]);
    let doubts: Vec<Option<Doubt>> = merged.iter().map(|event| event.doubt).collect();
    assert_eq!(doubts, [None, None, Some(Doubt::Unseen), None]);
}

#[test]
fn calls_that_reached_no_tool_are_doubtful() {
    use ToolCallStatus::{Failed, Invalid, NotAllowed, Refused, Success, Unknown};
    for (status, expected) in [
        (Success, None),
        (Failed, None),
        (Unknown, Some(Doubt::Rejected)),
        (Refused, Some(Doubt::Rejected)),
        (NotAllowed, Some(Doubt::Rejected)),
        (Invalid, Some(Doubt::Rejected)),
    ] {
        let mut seen = placed(0, "search", "{}");
        seen.call.status = status;
        assert_eq!(merge(&[], &[seen], &|_| true)[0].doubt, expected, "{status:?}");
    }
}

#[test]
fn a_server_has_every_tool_and_a_list_those_it_names() {
    let named = ServedTools::Named(["search".to_owned()].into());
    assert!(named.contains("search") && !named.contains("pay") && !named.is_empty());
    assert!(ServedTools::Any.contains("pay") && !ServedTools::Any.is_empty());
    assert!(ServedTools::default().is_empty());
}

proptest! {
    #[test]
    fn merging_loses_no_event_and_counts_no_call_twice(
        reported in proptest::collection::vec(0..3_u8, 0..8),
        seen in proptest::collection::vec((0..3_u8, 0..9_usize), 0..8),
    ) {
        let events: Vec<Json> = reported.iter().zip(0..)
            .map(|(tool, sequence)| event(sequence, "tool_call", &format!(r#"{{"tool":"t{tool}"}}"#)))
            .collect();
        let mut calls: Vec<PlacedCall> =
            seen.iter().map(|(tool, after)| placed(*after.min(&events.len()), &format!("t{tool}"), "{}")).collect();
        calls.sort_by_key(|placed| placed.after_events);
        let merged = merge(&events, &calls, &|_| false);
        let count = |all: &[u8], tool: u8| all.iter().filter(|one| **one == tool).count();
        let seen: Vec<u8> = seen.iter().map(|(tool, _)| *tool).collect();
        for tool in 0..3 {
            let name = format!("t{tool}");
            let found = tools(&merged).iter().filter(|one| **one == name).count();
            prop_assert_eq!(found, count(&reported, tool).max(count(&seen, tool)));
        }
    }
}
