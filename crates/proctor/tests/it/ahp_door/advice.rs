//! The specialised questions are answered by the policy's `advice` section and by the budgets.

use proctor_core::json::Json;

use crate::ahp_door::POLICY;
use crate::support::harness::{Event, Harness, before, json};
use crate::support::{Folder, text};

const ADVICE: &str = r#"
version: "1"
default: allow
budget:
  tokens: { daily: 100 }
advice:
  idle:
    allow: false
    reason: Nobody works on the side.
    retry_after: 10m
  intents:
    - { intent: locate, any: [where is, find the], domain: coding }
    - { intent: track, regex: '(?i)status of (?<target>[^?.]+)', confidence: 0.5, target_type: job }
  planning:
    strategies: [tree_of_thoughts, "custom:beam", step_by_step]
    deny: [production]
    reason: Plans for production are made by people.
    hints: [keep the public API]
  reasoning:
    types: [chain_of_thought, re_act]
    hints: [check lock order]
    reason: Not in this way.
  rate_limit:
    max_wait: 2m
"#;

fn planning(task: &str, strategies: &str) -> Event {
    let payload =
        format!(r#"{{"session_id":"s","task_description":"{task}","available_strategies":{strategies}}}"#);
    Event::new("planning", &payload)
}

fn reasoning(kind: &str) -> Event {
    let payload =
        format!(r#"{{"session_id":"s","reasoning_type":{kind},"problem_statement":"why deadlock"}}"#);
    Event::new("reasoning", &payload)
}

fn intent(prompt: &str) -> Event {
    Event::new("intent_detection", &format!(r#"{{"session_id":"s","prompt":"{prompt}","workspace":"."}}"#))
}

fn rate_limit(kind: &str, wait: u64) -> Event {
    let payload = format!(
        r#"{{"session_id":"s","limit_type":"{kind}","retry_after_ms":{wait},"current_usage":"60/60 rpm"}}"#
    );
    Event::new("rate_limit", &payload)
}

fn idle() -> Event {
    Event::new("idle", r#"{"idle_duration_ms":45000,"idle_reason":"awaiting_user"}"#)
}

/// Asserts that no intent was detected, in an answer that forbids nothing, also to readers of generic decisions.
fn no_intent(answer: &Json) {
    assert_eq!((text(answer, "decision"), text(answer, "detected_intent")), ("allow", "unknown"), "{answer}");
    assert!(answer["confidence"].to_string().starts_with('0'), "{answer}");
}

#[test]
fn idle_intents_plans_and_reasoning_follow_the_policy() {
    let folder = Folder::with_policy(ADVICE);
    let mut harness = Harness::start(&folder);
    let waits = harness.ask(&idle());
    assert_eq!((text(&waits, "decision"), text(&waits, "reason")), ("defer", "Nobody works on the side."));
    assert_eq!(waits["retry_after_ms"].as_u64(), Some(600_000), "generic readers need it: {waits}");

    let found = harness.ask(&intent("Where  is the retry loop"));
    assert_eq!((text(&found, "decision"), text(&found, "detected_intent")), ("allow", "locate"), "{found}");
    assert_eq!(found["target_hints"], json(r#"{"domain":"coding"}"#));
    assert_eq!(found["confidence"].to_string(), "0.8", "short decimals: {found}");
    let tracked = harness.ask(&intent("status of build 7?"));
    assert_eq!(text(&tracked, "detected_intent"), "track", "{tracked}");
    assert_eq!(tracked["target_hints"], json(r#"{"target_type":"job","target_name":"build 7"}"#));
    no_intent(&harness.ask(&intent("sing")));

    let plan = harness.ask(&planning("split", r#"["step_by_step",{"custom":"beam"}]"#));
    assert_eq!(text(&plan, "decision"), "allow", "{plan}");
    assert_eq!(plan["selected_strategy"], json(r#"{"custom":"beam"}"#), "the preferred one");
    assert!(plan.to_string().contains("keep the public API"), "{plan}");
    let production = harness.ask(&planning("change Production", r#"["step_by_step"]"#));
    assert_eq!(
        (text(&production, "decision"), text(&production, "reason")),
        ("block", "Plans for production are made by people.")
    );
    assert_eq!(harness.word(&planning("split", r#"["graph_planning"]"#)), "block");

    let reasons = harness.ask(&reasoning(r#""re_act""#));
    assert_eq!((text(&reasons, "decision"), &reasons["hints"]), ("allow", &json(r#"["check lock order"]"#)));
    for other in [r#""reflexion""#, r#"{"other":"dice"}"#] {
        let refused = harness.ask(&reasoning(other));
        assert_eq!((text(&refused, "decision"), text(&refused, "reason")), ("block", "Not in this way."));
    }
    harness.close();
}

#[test]
fn a_rate_limit_is_waited_for_put_off_or_given_up() {
    let folder = Folder::with_policy(ADVICE);
    let mut harness = Harness::start(&folder);
    let retry = harness.ask(&rate_limit("llm_request_limit", 2000));
    assert_eq!(text(&retry, "decision"), "retry", "{retry}");
    assert!(retry["retry_after_ms"].as_u64().is_some_and(|wait| wait >= 2000), "{retry}");
    assert_eq!(harness.word(&rate_limit("api_request_limit", 121_000)), "queue");
    // The budget is spent: there is no use in waiting.
    assert_eq!(harness.word(&Event::new("pre_prompt", r#"{"prompt":"hi","estimated_tokens":100}"#)), "allow");
    let skipped = harness.ask(&rate_limit("llm_token_limit", 2000));
    assert_eq!(text(&skipped, "decision"), "skip", "{skipped}");
    assert!(!text(&skipped, "reason").is_empty(), "{skipped}");
    harness.close();
}

#[test]
fn without_advice_everything_is_allowed_within_bounds_and_no_intent_is_known() {
    let folder = Folder::with_policy(POLICY);
    let mut harness = Harness::start(&folder);
    assert_eq!(harness.word(&idle()), "allow");
    let plan = harness.ask(&planning("split", r#"["graph_planning","step_by_step"]"#));
    assert_eq!(
        (text(&plan, "decision"), text(&plan, "selected_strategy")),
        ("allow", "graph_planning"),
        "{plan}"
    );
    assert_eq!(harness.word(&reasoning(r#""reflexion""#)), "allow");
    no_intent(&harness.ask(&intent("where is it")));
    assert_eq!(harness.word(&rate_limit("tool_execution_limit", 1000)), "retry");
    assert_eq!(harness.word(&rate_limit("tool_execution_limit", 61_000)), "queue");
    // Advice does not decide: what is denied stays denied.
    assert_eq!(harness.word(&before("bash", r#"{"command":"rm x"}"#)), "block");
    harness.close();
}

#[test]
fn context_and_memory_are_answered() {
    let folder = Folder::with_policy(ADVICE);
    folder.write("src/frame.rs", "pub fn parse_frame() {}\n");
    let mut harness = Harness::start(&folder);
    assert_eq!(harness.word(&before("bash", r#"{"command":"make flaky-test"}"#)), "allow");
    let context = harness.ask(&Event::new(
        "context_perception",
        r#"{"session_id":"s","intent":"locate","target":{"pattern":{"pattern":"parse_frame","pattern_type":"text"}},"context":{"workspace":".","query":"parse_frame"}}"#,
    ));
    assert_eq!(text(&context, "decision"), "allow", "{context}");
    assert!(context["injected_context"]["facts"].as_array().is_some(), "{context}");
    let memory = harness.ask(&Event::new(
        "memory_recall",
        r#"{"session_id":"s","query":"flaky-test","memory_type":"episodic","max_results":3,"working_directory":"."}"#,
    ));
    assert_eq!(text(&memory, "decision"), "allow", "{memory}");
    assert!(memory["injected_facts"].as_array().is_some(), "{memory}");
    harness.close();
}
