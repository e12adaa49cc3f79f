use proptest::prelude::*;

use super::*;
use crate::atp::limits::MAX_MESSAGE;
use crate::atp::{Status, WarningKind};

fn event(task: &str, sequence: u64) -> String {
    format!(
        r#"{{"version":"1.0","task_id":"{task}","timestamp":"2025-01-21T10:30:45Z","sequence":{sequence},"event_type":"progress","payload":{{}}}}"#
    )
}

fn response(task: &str) -> String {
    format!(r#"{{"version":"1.0","task_id":"{task}","status":"completed","artifacts":[],"metrics":{{}}}}"#)
}

fn conversation(messages: &[(Source<'_>, &str)]) -> Conversation {
    let mut conversation = Conversation::new("t");
    for (source, text) in messages {
        conversation.feed(*source, text.as_bytes());
    }
    conversation
}

#[test]
fn a_clean_run_on_every_transport() {
    for source in [Source::Message, Source::Sse { event: "" }, Source::Sse { event: "message" }] {
        let (first, second, last) = (event("t", 0), event("t", 5), response("t"));
        let mut conversation = Conversation::new("t");
        assert_eq!(conversation.feed(source, first.as_bytes()), Fed::Event);
        assert_eq!(conversation.feed(source, second.as_bytes()), Fed::Event);
        assert!(!conversation.has_responded());
        assert_eq!(conversation.feed(source, last.as_bytes()), Fed::Response);
        let transcript = conversation.finish();
        assert_eq!(transcript.response.unwrap().status(), Status::Completed);
        assert_eq!(transcript.counts, EventCounts { received: 2, ..EventCounts::default() });
        assert!(transcript.problems.is_empty() && transcript.events.iter().all(|event| !event.is_flawed()));
        assert_eq!(transcript.warnings.count(WarningKind::TaskIdNotUuid), 3);
    }
}

#[test]
fn log_lines_are_no_messages() {
    let mut conversation = Conversation::new("t");
    for line in
        ["", "INFO starting", "{not json", "{\"level\":\"info\",\"status\":\"ok\"}", "[1]", "{}", "\u{1b}[0m"]
    {
        assert_eq!(conversation.feed(Source::StderrLine, line.as_bytes()), Fed::Other, "{line}");
    }
    assert_eq!(conversation.feed(Source::StderrLine, b"\xff\xfe"), Fed::Other);
    assert_eq!(conversation.feed(Source::StderrLine, event("t", 0).as_bytes()), Fed::Event);
    for data in ["", "[DONE]", "ping", "{}"] {
        assert_eq!(conversation.feed(Source::Sse { event: "" }, data.as_bytes()), Fed::Other, "{data}");
    }
    let transcript = conversation.finish();
    let [ConversationProblem::NoResponse { syntax: Some(syntax) }] = &transcript.problems[..] else {
        panic!("{:?}", transcript.problems)
    };
    assert!(transcript.problems[0].to_string().contains(&syntax.to_string()));
}

#[test]
fn framed_messages_must_be_messages() {
    for (source, text, problem) in [
        (Source::Message, "{\"a\":1}", "neither an event nor a response"),
        (Source::Message, "pong", "not valid JSON"),
        (Source::Message, "", "not valid JSON"),
        (Source::Sse { event: "" }, "{\"event_type\":", "not valid JSON"),
        (Source::Sse { event: "response" }, "no", "not valid JSON"),
        (Source::Event, "no", "not valid JSON"),
    ] {
        let mut conversation = Conversation::new("t");
        assert_eq!(conversation.feed(source, text.as_bytes()), Fed::Refused, "{text}");
        assert!(conversation.problems()[0].to_string().contains(problem), "{text}");
    }
}

#[test]
fn a_named_response_needs_no_status_to_be_recognised() {
    for source in [Source::Sse { event: "response" }, Source::Response] {
        let transcript = conversation(&[(source, r#"{"task_id":"t"}"#)]).finish();
        assert!(
            matches!(&transcript.problems[..], [ConversationProblem::InvalidResponse(problems)] if problems.listed()[0].path == "$.status")
        );
        assert_eq!(transcript.refused_response.unwrap().to_string(), r#"{"task_id":"t"}"#);
    }
}

#[test]
fn task_ids_must_be_the_requests() {
    let (event, response) = (event("other", 0), response("other"));
    let transcript =
        conversation(&[(Source::Message, event.as_str()), (Source::Message, response.as_str())]).finish();
    let foreign = |message| ConversationProblem::ForeignTaskId { message, found: "other".to_owned() };
    assert_eq!(transcript.problems, [foreign(MessageKind::Event), foreign(MessageKind::Response)]);
    assert!(transcript.response.is_none() && transcript.refused_response.is_some());
    assert_eq!(transcript.events[0].problems().unwrap().listed()[0].path, "$.task_id");
    assert_eq!(transcript.counts.invalid, 1);
}

#[test]
fn order_is_checked_and_flawed_events_are_kept() {
    let events: Vec<String> = [3, 5, 4, 5, 6].map(|sequence| event("t", sequence)).into();
    let mut messages: Vec<(Source<'_>, &str)> =
        events.iter().map(|event| (Source::Message, event.as_str())).collect();
    let without = r#"{"version":"1.0","task_id":"t","event_type":"progress","payload":{}}"#;
    let invalid = r#"{"version":"1.0","task_id":"t","event_type":"tool_call","payload":{}}"#;
    let response = response("t");
    messages.extend([
        (Source::Message, without),
        (Source::Message, invalid),
        (Source::Message, response.as_str()),
    ]);
    messages.extend([(Source::Message, events[4].as_str()), (Source::StderrLine, without)]);
    let transcript = conversation(&messages).finish();
    let flaws: Vec<(bool, bool, bool)> = transcript
        .events
        .iter()
        .map(|event| (event.out_of_sequence, event.after_response, event.problems().is_some()))
        .collect();
    let clean = (false, false, false);
    let late = (true, false, false);
    assert_eq!(
        flaws,
        [clean, clean, late, late, clean, clean, (false, false, true), (true, true, false), clean],
        "a line of standard error is never late"
    );
    assert_eq!(
        transcript.counts,
        EventCounts { received: 9, invalid: 1, out_of_sequence: 3, after_response: 1, dropped: 0 }
    );
    assert!(transcript.problems.is_empty(), "flawed events fail no run by themselves");
    assert_eq!(transcript.warnings.count(WarningKind::NoSequence), 3);
}

#[test]
fn a_second_response_is_a_problem_even_after_an_invalid_one() {
    for first in [response("t"), r#"{"status":1}"#.to_owned()] {
        let second = response("t");
        let transcript =
            conversation(&[(Source::Message, first.as_str()), (Source::Message, second.as_str())]).finish();
        assert_eq!(transcript.problems.last(), Some(&ConversationProblem::SecondResponse));
    }
}

#[test]
fn limits_cut_off_with_a_reason() {
    let deep = format!(r#"{{"event_type":{}{}}}"#, "[".repeat(128), "]".repeat(128));
    let long = "x".repeat(MAX_MESSAGE + 1);
    for (text, reason) in [(deep.as_str(), "nested deeper"), (long.as_str(), "longer than")] {
        for source in [Source::StderrLine, Source::Message, Source::Sse { event: "" }] {
            let mut conversation = Conversation::new("t");
            assert_eq!(conversation.feed(source, text.as_bytes()), Fed::Refused);
            let problem = &conversation.problems()[0];
            assert!(problem.is_limit() && problem.to_string().contains(reason), "{problem}");
        }
        let mut conversation = Conversation::new("t");
        conversation.feed_output(text.as_bytes());
        assert!(conversation.problems()[0].is_limit());
    }
    let mut conversation = Conversation::new("t");
    assert_eq!(conversation.feed_too_large(1 << 40), Fed::Refused);
    assert!(conversation.problems()[0].is_limit());
}

#[test]
fn events_beyond_the_limit_are_dropped_and_counted() {
    let mut conversation = Conversation::new("t");
    let text = r#"{"task_id":"t","event_type":"progress","payload":{}}"#;
    for _ in 0..MAX_EVENTS {
        assert_eq!(conversation.feed(Source::StderrLine, text.as_bytes()), Fed::Event);
    }
    for _ in 0..3 {
        assert_eq!(conversation.feed(Source::StderrLine, text.as_bytes()), Fed::Dropped);
    }
    conversation.feed_output(response("t").as_bytes());
    let transcript = conversation.finish();
    assert_eq!(transcript.problems, [ConversationProblem::TooManyEvents]);
    assert_eq!((transcript.events.len(), transcript.counts.dropped), (MAX_EVENTS, 3));
    assert!(transcript.response.is_some(), "the response still counts");
}

#[test]
fn a_flood_behind_the_response_is_dropped_without_a_problem() {
    let mut conversation = Conversation::new("t");
    let text = r#"{"task_id":"t","event_type":"progress","payload":{}}"#;
    conversation.feed(Source::Message, response("t").as_bytes());
    for _ in 0..MAX_EVENTS {
        conversation.feed(Source::Message, text.as_bytes());
    }
    assert_eq!(conversation.feed(Source::Message, text.as_bytes()), Fed::Dropped);
    assert_eq!(conversation.problems(), []);
    // Standard error has no order with the response: there it is a flood like any other.
    assert_eq!(conversation.feed(Source::StderrLine, text.as_bytes()), Fed::Dropped);
    assert_eq!(conversation.problems(), [ConversationProblem::TooManyEvents]);
}

#[test]
fn memory_of_events_is_bounded() {
    let mut conversation = Conversation::new("t");
    let text =
        format!(r#"{{"task_id":"t","event_type":"progress","payload":{{"a":[{}1]}}}}"#, "1,".repeat(900_000));
    for _ in 0..4 {
        assert_eq!(conversation.feed(Source::Message, text.as_bytes()), Fed::Event);
    }
    assert_eq!(conversation.feed(Source::Message, text.as_bytes()), Fed::Dropped);
    assert_eq!(conversation.problems(), [ConversationProblem::EventsTooLarge]);
}

#[test]
fn standard_output_is_one_text_or_has_one_line() {
    let pretty = "{\n  \"task_id\": \"t\",\n  \"status\": \"completed\"\n}\n";
    let line = response("t");
    let logged = format!("starting\n{{\"status\":\"warming up\"}}\r\n{}\n{line}\r\ndone\n", event("t", 1));
    for (output, events) in [(pretty, 0), (line.as_str(), 0), (logged.as_str(), 1)] {
        let mut conversation = Conversation::new("t");
        conversation.feed_output(output.as_bytes());
        let transcript = conversation.finish();
        assert!(transcript.problems.is_empty() && transcript.response.is_some(), "{output}");
        assert_eq!(transcript.events.len(), events, "{output}");
    }
    for (output, reason) in [
        ("", "no response"),
        ("hello\n", "no response"),
        ("{\n \"status\": \"completed\",\n", "not valid JSON: expected a member name"),
        ("{\"result\": 5}", "$.task_id"),
        ("log\n{\"status\": \"completed\"}\n", "$.task_id"),
    ] {
        let mut conversation = Conversation::new("t");
        conversation.feed_output(output.as_bytes());
        let transcript = conversation.finish();
        assert!(transcript.problems[0].to_string().contains(reason), "{output}: {}", transcript.problems[0]);
    }
    let mut conversation = Conversation::new("t");
    conversation.feed_output(format!("{line}\n{line}\n{line}").as_bytes());
    assert_eq!(conversation.finish().problems, [ConversationProblem::SecondResponse]);
}

fn any_source() -> impl Strategy<Value = Source<'static>> {
    prop::sample::select(vec![
        Source::StderrLine,
        Source::Message,
        Source::Sse { event: "" },
        Source::Sse { event: "response" },
        Source::Event,
        Source::Response,
    ])
}

fn any_message() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        (0u64..6, any::<bool>())
            .prop_map(|(sequence, own)| event(if own { "t" } else { "u" }, sequence).into_bytes()),
        any::<bool>().prop_map(|own| response(if own { "t" } else { "u" }).into_bytes()),
        Just(br#"{"event_type":"progress","task_id":"t"}"#.to_vec()),
        Just(b"log line".to_vec()),
        prop::collection::vec(any::<u8>(), 0..20),
        "[{}\\[\\]\":,a-z0-9_]{0,30}".prop_map(String::into_bytes),
    ]
}

proptest! {
    /// The state after a prefix does not depend on what follows, nor on whether anybody looked at it.
    #[test]
    fn a_prefix_is_the_batch_of_its_messages(messages in prop::collection::vec((any_source(), any_message()), 0..12), at in 0usize..12) {
        let at = at.min(messages.len());
        let feed = |conversation: &mut Conversation, messages: &[(Source<'_>, Vec<u8>)]| {
            for (source, text) in messages {
                conversation.feed(*source, text);
            }
        };
        let mut whole = Conversation::new("t");
        feed(&mut whole, &messages);
        let mut parts = Conversation::new("t");
        feed(&mut parts, &messages[..at]);
        let before = parts.clone();
        let looked_at = before.clone().finish();
        feed(&mut parts, &messages[at..]);
        prop_assert_eq!(&parts, &whole);
        prop_assert_eq!(before.events(), &whole.events()[..before.events().len()]);
        if let Some(response) = before.response() {
            prop_assert_eq!(Some(response), whole.response(), "a response is never replaced");
        }
        prop_assert!(looked_at.counts.received <= whole.counts().received);
        let transcript = whole.finish();
        prop_assert_eq!(transcript.counts.received, transcript.events.len() as u64 + transcript.counts.dropped);
        prop_assert!(transcript.response.is_some() || !transcript.problems.is_empty(), "no run is green without a response");
    }

    #[test]
    fn standard_output_never_panics(lines in prop::collection::vec(any_message(), 0..8)) {
        let mut conversation = Conversation::new("t");
        conversation.feed_output(&lines.join(&b'\n'));
        let transcript = conversation.finish();
        prop_assert!(transcript.response.is_some() || !transcript.problems.is_empty());
    }
}
