//! Every generic decision: in the protocol's words, on record, with changes in their places.

use proctor_core::json::Json;

use crate::ahp_door::{POLICY, SECRET};
use crate::support::harness::{Event, Harness, assert_not_stored, before, json, of_kind, records, session};
use crate::support::{Folder, text};

#[test]
fn allow_block_and_defer_are_answered_and_on_record() {
    let folder = Folder::with_policy(POLICY);
    let mut harness = Harness::start(&folder);
    let allowed = harness.ask(&before("Bash", r#"{"command":"ls -l"}"#));
    assert_eq!(text(&allowed, "decision"), "allow", "{allowed}");
    assert_eq!(text(&allowed["metadata"], "rule"), "commands", "{allowed}");
    let blocked = harness.ask(&before("Bash", r#"{"command":"sudo rm -rf /"}"#));
    assert_eq!(
        (text(&blocked, "decision"), text(&blocked, "reason")),
        ("block", "Nothing is deleted here."),
        "{blocked}"
    );
    let unknown = harness.ask(&before("teleport", "{}"));
    assert_eq!((text(&unknown, "decision"), text(&unknown["metadata"], "rule")), ("block", "default"));
    assert!(!text(&unknown, "reason").is_empty(), "{unknown}");
    let deferred = harness.ask(&before("later", "{}"));
    assert_eq!((text(&deferred, "decision"), text(&deferred, "reason")), ("defer", "Not now."), "{deferred}");
    assert_eq!(deferred["retry_after_ms"].as_u64(), Some(2000), "{deferred}");
    let prompted = harness.ask(&Event::new("pre_prompt", r#"{"prompt":"hello","message_count":1}"#));
    assert_eq!((text(&prompted, "decision"), text(&prompted["metadata"], "rule")), ("allow", "prompts"));
    assert_eq!(harness.close().0, 0);

    let shown = session(&folder, "s");
    let on_record: Vec<(&str, &str)> =
        of_kind(&shown, "decision").iter().map(|it| (text(it, "id"), text(it, "decision"))).collect();
    let answered: Vec<(&str, &str)> = [
        (&allowed, "allow"),
        (&blocked, "deny"),
        (&unknown, "deny"),
        (&deferred, "defer"),
        (&prompted, "allow"),
    ]
    .map(|(answer, effect)| (text(&answer["metadata"], "decision_id"), effect))
    .to_vec();
    assert_eq!(on_record, answered);
    assert!(
        of_kind(&shown, "decision")
            .iter()
            .all(|it| text(it, "door") == "ahp" && text(it, "agent") == "coder")
    );
}

#[test]
fn a_change_is_made_where_the_payload_has_the_value() {
    let policy = r#"
version: "1"
default: allow
rules:
  - { id: short, when: action.tool == "search", then: modify, set: { /args/limit: 10 } }
  - { id: dry, when: action.tool == "push", then: modify, set: { /command: git push --dry-run } }
  - { id: polite, when: action.tool == "llm_call", then: modify, set: { /text: please } }
  - { id: nowhere, when: action.tool == "nowhere", then: modify, set: { /url: "http://x/" } }
"#;
    let folder = Folder::with_policy(policy);
    let mut harness = Harness::start(&folder);
    for (kind, payload, changed) in [
        (
            "pre_action",
            r#"{"tool_name":"search","arguments":{"q":"x","limit":1000},"recent_tools":["a"]}"#,
            r#"{"tool_name":"search","arguments":{"q":"x","limit":10},"recent_tools":["a"]}"#,
        ),
        (
            "pre_action",
            r#"{"tool":"search","args":{"limit":1000,"q":"x"}}"#,
            r#"{"tool":"search","args":{"limit":10,"q":"x"}}"#,
        ),
        (
            "pre_action",
            r#"{"tool":"search","q":"x","limit":1000}"#,
            r#"{"tool":"search","q":"x","limit":10}"#,
        ),
        (
            "pre_action",
            r#"{"tool":"push","command":"git push"}"#,
            r#"{"tool":"push","command":"git push --dry-run"}"#,
        ),
        ("pre_prompt", r#"{"prompt":"now!","message_count":3}"#, r#"{"prompt":"please","message_count":3}"#),
    ] {
        let answer = harness.ask(&Event::new(kind, payload));
        assert_eq!(text(&answer, "decision"), "modify", "{answer}");
        assert_eq!(answer["modified_payload"], json(changed), "{payload}");
        assert!(!text(&answer["metadata"], "decision_id").is_empty(), "{answer}");
    }
    let placeless = harness.ask(&before("nowhere", "{}"));
    assert_eq!(
        text(&placeless, "decision"),
        "block",
        "a change without a place must not be lost: {placeless}"
    );
    harness.close();
}

#[test]
fn a_secret_is_cut_from_what_runs_and_from_what_is_stored() {
    let folder = Folder::with_policy(POLICY);
    let mut harness = Harness::start(&folder);
    let shapes = [
        (
            format!(r#"{{"tool_name":"upload","arguments":{{"key":"{SECRET}","n":1.50}}}}"#),
            r#"{"tool_name":"upload","arguments":{"key":"[REDACTED:OpenAiKey]","n":1.50}}"#,
        ),
        (
            format!(r#"{{"tool":"upload","args":{{"list":["a","{SECRET}"]}}}}"#),
            r#"{"tool":"upload","args":{"list":["a","[REDACTED:OpenAiKey]"]}}"#,
        ),
        (
            format!(r#"{{"tool":"upload","key":"{SECRET}"}}"#),
            r#"{"tool":"upload","key":"[REDACTED:OpenAiKey]"}"#,
        ),
    ];
    for (payload, changed) in shapes {
        let event = Event::new("pre_action", &payload)
            .context(&format!(r#"{{"current_task":"use {SECRET}"}}"#))
            .metadata(Json::object().with("note", SECRET));
        let answer = harness.ask(&event);
        assert_eq!(text(&answer, "decision"), "modify", "{answer}");
        assert_eq!(answer["modified_payload"], json(changed));
        assert!(!answer.to_string().contains(SECRET), "{answer}");
    }
    let prompt = harness.ask(&Event::new("pre_prompt", &format!(r#"{{"prompt":"my key is {SECRET}"}}"#)));
    assert_eq!(text(&prompt, "decision"), "modify", "{prompt}");
    assert_eq!(text(&prompt["modified_payload"], "prompt"), "my key is [REDACTED:OpenAiKey]");
    let whole = harness.ask(&Event::new("pre_prompt", &format!("\"{SECRET}\"")));
    assert!(!whole.to_string().contains(SECRET), "{whole}");
    // Also while the log of the database still holds everything.
    assert_not_stored(&folder, SECRET);
    harness.close();
    assert_not_stored(&folder, SECRET);
    assert_eq!(of_kind(&records(&folder), "decision").len(), 5);
}

#[test]
fn a_batch_is_decided_like_its_events_one_by_one() {
    let folder = Folder::with_policy(POLICY);
    let mut harness = Harness::start(&folder);
    let decisions = harness.batch(&[
        before("bash", r#"{"command":"ls"}"#),
        before("bash", r#"{"command":"rm x"}"#),
        Event::new("heartbeat", r#"{"uptime_ms":1,"total_events_processed":1,"current_state":"active"}"#),
        Event::new("pre_action", r#"{"tool":"bash","tool_name":"search"}"#),
        before("search", r#"{"limit":99}"#),
    ]);
    let words: Vec<&str> = decisions.iter().map(|decision| text(decision, "decision")).collect();
    assert_eq!(words, ["allow", "block", "allow", "block", "modify"]);
    assert!(harness.batch(&[]).is_empty());
    harness.close();
    let shown = session(&folder, "s");
    assert_eq!(of_kind(&shown, "decision").len(), 3);
    assert_eq!(of_kind(&shown, "observation").len(), 1);
}

#[test]
fn a_ledger_of_this_door_is_verified_and_every_decision_derived_again() {
    let folder = Folder::with_approver(POLICY);
    let key = text(&folder.json(&["init", "--json"])[0], "ledger").to_owned();
    folder.write("trust", &format!("log {key}\n"));
    let mut harness = Harness::start(&folder);
    let upload = format!(r#"{{"key":"{SECRET}"}}"#);
    for event in [
        before("bash", r#"{"command":"ls"}"#),
        before("bash", r#"{"command":"rm x"}"#),
        before("search", r#"{"limit":99}"#),
        before("upload", &upload).context(r#"{"current_task":"ship"}"#),
        before("later", "{}"),
        before("deploy", r#"{"to":"prod"}"#),
        before("deploy", r#"{"to":"prod"}"#),
        Event::new("pre_prompt", r#"{"prompt":"hi","estimated_tokens":50}"#),
        Event::new(
            "confirmation",
            r#"{"session_id":"s","confirmation_type":"user_confirm","message":"ok?"}"#,
        ),
    ] {
        harness.ask(&event);
    }
    harness.notify(&after_prompt());
    harness.settle();
    let waiting = folder.json(&["approve", "list", "--json"]);
    let approval = text(&waiting[0], "approval_id").to_owned();
    assert!(folder.run(&["approve", "allow", &approval]).status.success(), "{waiting:?}");
    assert_eq!(harness.word(&before("deploy", r#"{"to":"prod"}"#)), "allow");
    harness.notify(&Event::new("session_end", "{}"));
    harness.send(b"not json");
    harness.reply(&Json::Null);
    assert_eq!(harness.close().0, 0);
    let (report, code) = folder.verify(Some(&folder.path("trust")));
    assert_eq!((text(&report, "verdict"), code), ("verified", 0), "{report}");
    let counted = |name: &str| report["derivation"][name].as_u64();
    assert_eq!((counted("same"), counted("different"), counted("undecidable")), (Some(10), Some(0), Some(0)));
}

fn after_prompt() -> Event {
    Event::new("post_response", r#"{"response_text":"hello","usage":{"total_tokens":70}}"#)
}
