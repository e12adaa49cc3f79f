//! Arbitrary input: each message gets an answer, and none panics.

use std::collections::BTreeMap;

use proctor_wire::ahp::run::RunState;
use proctor_wire::ahp::{Call, Entry, Id, Limits, Message, check, rpc};
use proptest::prelude::*;
use serde_json::value::RawValue;

/// Does with a message what a harness does with it, and returns its reply.
fn serve(text: &[u8], limits: &Limits) -> Option<String> {
    let observe = |entry: &Entry| {
        if let Some(contract) = &entry.contract {
            let mut state = RunState::default();
            state.apply(contract);
            let again = state.to_json().read::<RunState>();
            assert_eq!(again, Ok(state));
        }
    };
    match rpc::read(text) {
        Ok(Message::Request { id, method, params }) => Some(match check::request(&method, params, limits) {
            Ok(Call::Handshake(request)) => rpc::respond(&id, &request).unwrap(),
            Ok(Call::Event(event, _)) => rpc::respond(&id, &event).unwrap(),
            Ok(Call::Query(query)) => rpc::respond(&id, &query).unwrap(),
            Ok(Call::Batch(entries)) => {
                entries.iter().for_each(observe);
                rpc::respond(&id, &entries.len()).unwrap()
            }
            Err(error) => rpc::refuse(&id, &error),
        }),
        Ok(Message::Notification { method, params }) => match check::notification(&method, params, limits) {
            Ok(entry) => {
                entry.iter().for_each(observe);
                None
            }
            Err(error) => Some(rpc::refuse(&Id::from(""), &error)),
        },
        Err(refused) => Some(rpc::refuse(&refused.id, &refused.error)),
    }
}

const VALID: [&str; 12] = [
    r#"{"jsonrpc":"2.0","id":"h-1","method":"ahp/handshake","params":{"protocol_version":"2.4","agent_info":{"framework":"loom","version":"0.3.1","capabilities":["batch"]},"session_id":"s","agent_id":"a"}}"#,
    r#"{"jsonrpc":"2.0","id":7,"method":"ahp/event","params":{"event_type":"pre_action","session_id":"s","agent_id":"a","timestamp":"t","depth":1,"payload":{"tool_name":"shell","arguments":{"command":"git push"}},"context":{"current_task":"ship","recent_facts":[{"content":"c","source":"s","confidence":0.9}],"session_stats":{"total_actions":12,"total_tokens":-9,"duration_ms":61250,"error_count":1}},"metadata":{"trace":"9f2"}}}"#,
    r#"{"jsonrpc":"2.0","id":null,"method":"ahp/query","params":{"session_id":"s","agent_id":"a","query_type":"budget_left","payload":{"unit":1.10}}}"#,
    r#"{"jsonrpc":"2.0","id":"b","method":"ahp/batch","params":{"events":[{"event_type":"error","session_id":"s","agent_id":"a","timestamp":"t","depth":0,"payload":null},{"event_type":"run_lifecycle","session_id":"s","agent_id":"a","timestamp":"t","depth":0,"payload":{"run_id":"r","session_id":"s","status":"created","updated_at":"t"}}]}}"#,
    r#"{"jsonrpc":"2.0","method":"ahp/event","params":{"event_type":"task_list","session_id":"s","agent_id":"a","timestamp":"t","depth":0,"payload":{"run_id":"r","session_id":"s","updated_at":"t","tasks":[{"id":"t1","title":"w","status":"in_progress","depends_on":["t0","t1"],"evidence":[{"kind":"diff","summary":"s","artifact":{"id":"a1","sha256":"00","size_bytes":5}}],"metadata":{"n":1e400}}]}}}"#,
    r#"{"jsonrpc":"2.0","method":"ahp/event","params":{"event_type":"verification","session_id":"s","agent_id":"a","timestamp":"t","depth":0,"payload":{"run_id":"r","session_id":"s","status":"passed","updated_at":"t","checks":[{"id":"c","subject":"u","status":"failed","command":"make"}],"residual_risks":["r"]}}}"#,
    r#"{"jsonrpc":"2.0","id":"c","method":"ahp/event","params":{"event_type":"context_perception","session_id":"s","agent_id":"a","timestamp":"t","depth":0,"payload":{"session_id":"s","intent":"locate","target":{"entity":{"name":"n","entity_type":"f","identifier":null}},"context":{"workspace":"w"},"constraints":{"max_results":5}}}}"#,
    r#"{"jsonrpc":"2.0","id":"p","method":"ahp/event","params":{"event_type":"planning","session_id":"s","agent_id":"a","timestamp":"t","depth":0,"payload":{"session_id":"s","task_description":"d","available_strategies":["none",{"custom":"beam"}],"constraints":[1]}}}"#,
    r#"{"jsonrpc":"2.0","id":"r","method":"ahp/event","params":{"event_type":"reasoning","session_id":"s","agent_id":"a","timestamp":"t","depth":0,"payload":{"session_id":"s","reasoning_type":{"other":"o"},"problem_statement":"p","hints":["h"]}}}"#,
    r#"{"jsonrpc":"2.0","id":"l","method":"ahp/event","params":{"event_type":"rate_limit","session_id":"s","agent_id":"a","timestamp":"t","depth":0,"payload":{"session_id":"s","limit_type":"llm_token_limit","retry_after_ms":2000,"current_usage":"60"}}}"#,
    r#"{"jsonrpc":"2.0","id":"i","method":"ahp/event","params":{"event_type":"idle","session_id":"s","agent_id":"a","timestamp":"t","depth":0,"payload":{"idle_duration_ms":1,"idle_reason":"r"}}}"#,
    r#"{"jsonrpc":"2.0","id":"m","method":"ahp/event","params":{"event_type":"memory_recall","session_id":"s","agent_id":"a","timestamp":"t","depth":0,"payload":{"session_id":"s","query":"q","memory_type":"e","max_results":3,"working_directory":"w"}}}"#,
];

#[test]
fn the_examples_are_good() {
    for text in VALID {
        let reply = serve(text.as_bytes(), &Limits::default());
        assert!(reply.as_ref().is_none_or(|reply| !reply.contains("\"error\":")), "{text}: {reply:?}");
    }
}

/// A change to a text.
#[derive(Debug, Clone)]
enum Change {
    Byte(usize, u8),
    Remove(usize, usize),
    Insert(usize, &'static str),
    Repeat(usize, usize),
    Value(usize, &'static str),
}

fn any_change() -> impl Strategy<Value = Change> {
    let token = prop::sample::select(vec![
        "null",
        "true",
        "{}",
        "[]",
        "\"\"",
        "-1",
        "1e999",
        "5.0",
        "99999999999999999999",
        "[[[[",
        "}}",
        ",",
        ":",
        "\"",
        "\\",
        "\\ud800",
        "{\"custom\":1}",
    ]);
    prop_oneof![
        (any::<usize>(), any::<u8>()).prop_map(|(at, byte)| Change::Byte(at, byte)),
        (any::<usize>(), 0usize..30).prop_map(|(at, count)| Change::Remove(at, count)),
        (any::<usize>(), token.clone()).prop_map(|(at, token)| Change::Insert(at, token)),
        (any::<usize>(), 0usize..40).prop_map(|(at, count)| Change::Repeat(at, count)),
        (any::<usize>(), token).prop_map(|(at, token)| Change::Value(at, token)),
    ]
}

fn change(text: &mut Vec<u8>, change: &Change) {
    if text.is_empty() {
        return;
    }
    match *change {
        Change::Byte(at, byte) => {
            let at = at % text.len();
            text[at] = byte;
        }
        Change::Remove(at, count) => {
            let at = at % text.len();
            text.drain(at..(at + count).min(text.len()));
        }
        Change::Insert(at, token) => {
            let at = at % text.len();
            text.splice(at..at, token.bytes());
        }
        Change::Repeat(at, count) => {
            let at = at % text.len();
            let part = text[at..(at + count).min(text.len())].to_vec();
            text.splice(at..at, part);
        }
        // Replaces a whole value, so that the text often stays JSON and reaches the deeper checks.
        Change::Value(at, token) => {
            let colons: Vec<usize> = (0..text.len()).filter(|at| text[*at] == b':').collect();
            let Some(start) = colons.get(at % colons.len().max(1)).map(|colon| colon + 1) else { return };
            let end = text[start..]
                .iter()
                .position(|byte| b",}]".contains(byte))
                .map_or(text.len(), |end| start + end);
            text.splice(start..end, token.bytes());
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn any_bytes(bytes in prop::collection::vec(any::<u8>(), 0..200), lenient: bool) {
        serve(&bytes, &Limits { lenient, ..Limits::default() });
    }

    #[test]
    fn any_json_characters(text in "[\\[\\]{}\",:0-9eE.+\\-a-z\\\\ ]{0,80}") {
        serve(text.as_bytes(), &Limits::default());
    }

    #[test]
    fn changed_messages(
        which in 0..VALID.len(),
        changes in prop::collection::vec(any_change(), 1..5),
        lenient: bool,
    ) {
        let mut text = VALID[which].as_bytes().to_vec();
        for one in &changes {
            change(&mut text, one);
        }
        if let Some(reply) = serve(&text, &Limits { lenient, ..Limits::default() }) {
            // Whatever the reply says, it is one line of JSON with an id and one of the two outcomes.
            prop_assert!(!reply.contains('\n'));
            let members: BTreeMap<String, Box<RawValue>> = serde_json::from_str(&reply).unwrap();
            let names: Vec<&str> = members.keys().map(String::as_str).collect();
            prop_assert!(names == ["error", "id", "jsonrpc"] || names == ["id", "jsonrpc", "result"], "{}", reply);
        }
    }
}
