//! Every kind of event becomes a record, without secrets.

use std::collections::BTreeMap;

use proctor_core::json::Json;

use crate::ahp_door::{POLICY, SECRET};
use crate::support::harness::{
    Event, Harness, after, alarms, assert_not_stored, before, json, of_kind, records, session,
};
use crate::support::{Folder, text};

/// Events of each kind, in an order that makes sense.
fn all_kinds() -> Vec<(&'static str, Event)> {
    let typed = [
        ("handshake", "{}"),
        ("session_start", r#"{"session_id":"s","model_name":"m"}"#),
        ("heartbeat", r#"{"uptime_ms":90000,"total_events_processed":41,"current_state":"active"}"#),
        ("idle", r#"{"idle_duration_ms":45000,"idle_reason":"awaiting_user"}"#),
        (
            "context_perception",
            r#"{"session_id":"s","intent":"locate","target":{"pattern":{"pattern":"x","pattern_type":"text"}},"context":{"workspace":"."}}"#,
        ),
        (
            "memory_recall",
            r#"{"session_id":"s","query":"ls","memory_type":"episodic","max_results":3,"working_directory":"."}"#,
        ),
        (
            "planning",
            r#"{"session_id":"s","task_description":"split","available_strategies":["step_by_step"]}"#,
        ),
        ("reasoning", r#"{"session_id":"s","reasoning_type":"re_act","problem_statement":"why"}"#),
        (
            "rate_limit",
            r#"{"session_id":"s","limit_type":"llm_request_limit","retry_after_ms":2000,"current_usage":"60/60"}"#,
        ),
        ("confirmation", r#"{"session_id":"s","confirmation_type":"cost_confirm","message":"ok?"}"#),
        ("intent_detection", r#"{"session_id":"s","prompt":"where is it","workspace":"."}"#),
        ("query", "{}"),
        ("success", r#"{"session_id":"s","action_type":"edit","action_summary":"renamed","duration_ms":8}"#),
        ("error", r#"{"error_type":"io","error_message":"gone"}"#),
        ("run_lifecycle", r#"{"run_id":"r","session_id":"s","status":"created","updated_at":"now"}"#),
        ("task_list", r#"{"run_id":"r","session_id":"s","updated_at":"now","tasks":[]}"#),
        ("verification", r#"{"run_id":"r","session_id":"s","status":"pending","updated_at":"now"}"#),
        ("pre_prompt", r#"{"prompt":"hi"}"#),
        ("post_response", r#"{"response_text":"hello"}"#),
    ];
    let mut events: Vec<(&str, Event)> =
        typed.into_iter().map(|(kind, payload)| (kind, Event::new(kind, payload))).collect();
    events.push(("pre_action", before("bash", r#"{"command":"ls"}"#)));
    events.push(("post_action", after("bash", r#"{"command":"ls"}"#)));
    events.push(("session_end", Event::new("session_end", r#"{"session_id":"s"}"#)));
    events
}

const QUIET: [&str; 10] = [
    "post_action",
    "post_response",
    "session_start",
    "session_end",
    "error",
    "heartbeat",
    "success",
    "run_lifecycle",
    "task_list",
    "verification",
];

#[test]
fn every_kind_becomes_exactly_one_record() {
    let folder = Folder::with_policy(POLICY);
    let mut harness = Harness::start(&folder);
    let events = all_kinds();
    assert_eq!(events.len(), 22);
    // Begins the session, so that from here on each event is one record.
    harness.settle();
    let mut expected = records(&folder).len();
    for (kind, event) in &events {
        if QUIET.contains(kind) {
            harness.notify(event);
            harness.settle();
            expected += 2;
        } else {
            let answer = harness.ask(event);
            assert!(!text(&answer, "decision").is_empty(), "{kind}: {answer}");
            expected += 1;
        }
        assert_eq!(records(&folder).len(), expected, "{kind}");
    }
    harness.close();
    let shown = session(&folder, "s");
    let mut counted: BTreeMap<(String, String), usize> = BTreeMap::new();
    for record in shown.iter().filter(|record| text(record, "kind") != "session") {
        let named = if text(record, "kind") == "decision" { "tool" } else { "code" };
        *counted.entry((text(record, "kind").to_owned(), text(record, named).to_owned())).or_default() += 1;
    }
    for (kind, _) in &events {
        let key = match *kind {
            "pre_action" => ("decision", "shell"),
            "pre_prompt" => ("decision", "llm_call"),
            "confirmation" => ("decision", "confirmation"),
            "post_action" | "post_response" => ("outcome", "ok"),
            // Those of `settle` have the same code.
            "query" => continue,
            other => ("observation", other),
        };
        let count = if key.0 == "outcome" { 2 } else { 1 };
        assert_eq!(counted.get(&(key.0.to_owned(), key.1.to_owned())), Some(&count), "{kind}: {counted:?}");
    }
    assert_eq!(alarms(&folder), [""; 0]);
}

#[test]
fn a_question_is_recorded_with_its_answer() {
    let folder = Folder::with_policy(POLICY);
    let mut harness = Harness::start(&folder);
    let idle = Event::new("idle", r#"{"idle_duration_ms":45000,"idle_reason":"awaiting_user"}"#)
        .depth(2)
        .metadata(json(r#"{"trace":"9f2"}"#));
    let answer = harness.ask(&idle);
    harness.close();
    let shown = session(&folder, "s");
    let data = &of_kind(&shown, "observation")[0]["body"]["data"];
    assert_eq!(data["answer"], answer, "{data}");
    assert_eq!(text(&data["payload"], "idle_reason"), "awaiting_user");
    assert_eq!((data["depth"].as_u64(), text(&data["metadata"], "trace")), (Some(2), "9f2"));
}

#[test]
fn a_handshake_and_a_query_are_records_too() {
    let folder = Folder::with_policy(POLICY);
    let mut harness = Harness::start(&folder);
    let welcome = harness.request(
        "ahp/handshake",
        &json(
            r#"{"protocol_version":"2.4","agent_info":{"framework":"loom","version":"0.3.1","capabilities":[]},"session_id":"s","agent_id":"coder"}"#,
        ),
    );
    let result = &welcome["result"];
    assert_eq!((text(result, "protocol_version"), text(&result["harness_info"], "name")), ("2.4", "proctor"));
    assert_eq!(result["config"]["timeout_ms"].as_u64(), Some(8000), "{welcome}");
    assert_eq!(result["config"]["batch_size"].as_u64(), Some(100));
    assert_eq!(result["config"]["max_depth"].as_u64(), Some(10));
    let capabilities = result["harness_info"]["capabilities"].as_array().unwrap();
    for wanted in ["pre_action", "confirmation", "run_lifecycle", "batch", "query"] {
        assert!(capabilities.iter().any(|it| *it == wanted), "{wanted}: {welcome}");
    }
    harness.query("policy", "null");
    harness.close();
    let shown = session(&folder, "s");
    let codes: Vec<&str> = of_kind(&shown, "observation").iter().map(|it| text(it, "code")).collect();
    assert_eq!(codes, ["handshake", "query"]);
}

#[test]
fn secrets_are_cut_from_everything_that_is_observed() {
    let folder = Folder::with_policy(POLICY);
    let mut harness = Harness::start(&folder);
    let secret = |name: &str| format!(r#"{{"{name}":"{SECRET}"}}"#);
    for kind in ["session_start", "error", "session_end", "post_action", "heartbeat", "success"] {
        let event = Event::new(kind, &secret("note"))
            .context(&format!(r#"{{"current_task":"with {SECRET}"}}"#))
            .metadata(Json::object().with("note", SECRET));
        harness.notify(&event);
    }
    let agent = Event::new("session_start", "{}").agent(SECRET).session(SECRET);
    harness.notify(&agent);
    let contract = format!(
        r#"{{"run_id":"{SECRET}","session_id":"{SECRET}","status":"created","updated_at":"now","prompt":"{SECRET}"}}"#
    );
    harness.notify(&Event::new("run_lifecycle", &contract));
    harness.notify(&Event::new(
        "run_lifecycle",
        &contract.replace("created", "nonsense").replace("now", SECRET),
    ));
    harness.let_through(&before("bash", r#"{"command":"ls"}"#));
    let output = format!(r#"{{"tool":"bash","result":{{"output":"{SECRET}","exit_code":0}}}}"#);
    harness.notify(&Event::new("post_action", &output));
    let intent = format!(r#"{{"session_id":"s","prompt":"{SECRET}","workspace":"."}}"#);
    harness.ask(&Event::new("intent_detection", &intent));
    let planning = format!(
        r#"{{"session_id":"s","task_description":"{SECRET}","available_strategies":[{{"custom":"{SECRET}"}}]}}"#
    );
    harness.ask(&Event::new("planning", &planning));
    let confirmation =
        format!(r#"{{"session_id":"s","confirmation_type":"user_confirm","message":"use {SECRET}?"}}"#);
    assert_eq!(harness.word(&Event::new("confirmation", &confirmation)), "approve");
    harness.query("may_i", &format!(r#"{{"tool":"upload","args":{{"key":"{SECRET}"}}}}"#));
    harness.query(SECRET, &secret("x"));
    harness
        .send(format!(r#"{{"jsonrpc":"2.0","id":"{SECRET}","method":"{SECRET}","params":{{}}}}"#).as_bytes());
    harness.reply(&Json::from(SECRET));
    let unknown = Event::new(SECRET, "{}").params();
    assert_eq!(harness.request("ahp/event", &unknown)["error"]["code"].as_i64(), Some(-32602));
    assert_not_stored(&folder, SECRET);
    harness.close();
    assert_not_stored(&folder, SECRET);
    assert!(records(&folder).len() > 15);
}
