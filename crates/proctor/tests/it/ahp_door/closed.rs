//! Actions that cannot be decided or recorded are not let through; the answer is a result, never an error.

use proctor_core::json::Json;

use crate::ahp_door::POLICY;
use crate::support::harness::{Event, Harness, after, alarms, before, of_kind, outcomes, records, session};
use crate::support::{Folder, text};

fn list() -> Event {
    before("bash", r#"{"command":"ls"}"#)
}

#[test]
fn without_a_policy_everything_is_blocked() {
    let folder = Folder::with_policy("x");
    std::fs::remove_file(folder.path("proctor.toml")).unwrap();
    let mut harness = Harness::start(&folder);
    let blocked = harness.ask(&list());
    assert_eq!((text(&blocked, "decision"), text(&blocked["metadata"], "rule")), ("block", "no-policy"));
    assert!(!text(&blocked, "reason").is_empty(), "{blocked}");
    let confirmation = Event::new(
        "confirmation",
        r#"{"session_id":"s","confirmation_type":"user_confirm","message":"ok?"}"#,
    );
    assert_eq!(harness.word(&confirmation), "reject");
    assert_eq!(harness.word(&Event::new("pre_prompt", r#"{"prompt":"hi"}"#)), "block");
    assert_eq!(harness.query("may_i", r#"{"tool":"bash"}"#)["answer"], Json::Bool(false));
    let (code, said) = harness.close();
    assert_eq!(code, 0);
    assert!(said.contains("every action is denied"), "{said}");
    assert_eq!(of_kind(&records(&folder), "decision").len(), 3);
}

#[test]
fn a_policy_that_cannot_be_read_any_more_leaves_the_old_one_in_force() {
    let folder = Folder::with_policy(POLICY);
    let mut harness = Harness::start(&folder);
    assert_eq!(harness.word(&list()), "allow");
    folder.write("policy.yaml", "version: \"1\"\nrules: [{ id: x, then: alow }]\n");
    harness.wait_for("did you mean `allow`");
    assert_eq!(harness.word(&list()), "allow", "the old policy stays");
    assert_eq!(harness.word(&before("bash", r#"{"command":"rm x"}"#)), "block");
    folder.write("policy.yaml", "version: \"1\"\ndefault: deny\n");
    harness.wait_for("is in force");
    assert_eq!(harness.word(&list()), "block", "the new one counts once it can be read");
    harness.close();
    let all = records(&folder);
    let codes: Vec<&str> = of_kind(&all, "policy").iter().map(|record| text(record, "code")).collect();
    assert_eq!(codes, ["loaded", "refused", "loaded"]);
}

#[test]
fn what_cannot_be_recorded_is_answered_with_the_safe_result_of_its_family() {
    let folder = Folder::with_policy(POLICY);
    let mut harness = Harness::start_with(&folder, &["--answer-ms", "3000"]);
    assert_eq!(harness.word(&list()), "allow");
    harness.limit_files(Some(1));
    let specialised = |kind: &str, payload: &str| Event::new(kind, payload);
    let families = [
        (list(), "block"),
        (Event::new("pre_prompt", r#"{"prompt":"hi"}"#), "block"),
        (
            specialised(
                "confirmation",
                r#"{"session_id":"s","confirmation_type":"user_confirm","message":"ok?"}"#,
            ),
            "reject",
        ),
        (specialised("idle", r#"{"idle_duration_ms":1,"idle_reason":"x"}"#), "defer"),
        (
            specialised("planning", r#"{"session_id":"s","task_description":"x","available_strategies":[]}"#),
            "block",
        ),
        (
            specialised(
                "reasoning",
                r#"{"session_id":"s","reasoning_type":"re_act","problem_statement":"x"}"#,
            ),
            "block",
        ),
        (
            specialised(
                "rate_limit",
                r#"{"session_id":"s","limit_type":"llm_token_limit","retry_after_ms":1,"current_usage":""}"#,
            ),
            "skip",
        ),
        (specialised("intent_detection", r#"{"session_id":"s","prompt":"x","workspace":"."}"#), "block"),
        (
            specialised(
                "memory_recall",
                r#"{"session_id":"s","query":"x","memory_type":"x","max_results":1,"working_directory":"."}"#,
            ),
            "block",
        ),
        (Event::new("handshake", "{}"), "block"),
        (Event::new("pre_action", r#"{"tool":"bash","tool_name":"search"}"#), "block"),
    ];
    for (event, word) in &families {
        let answer = harness.ask(event);
        assert_eq!(text(&answer, "decision"), *word, "{event:?}: {answer}");
        assert!(text(&answer, "reason").contains("not recorded"), "{event:?}: {answer}");
    }
    let unanswered = harness.query("may_i", r#"{"tool":"bash","args":{"command":"ls"}}"#);
    assert_eq!(unanswered["answer"], Json::Null, "{unanswered}");
    assert!(text(&unanswered, "reason").contains("not recorded"), "{unanswered}");
    let quiet = Event::new("heartbeat", r#"{"uptime_ms":1}"#);
    let together = harness.batch(&[list(), quiet]);
    assert_eq!(together.iter().map(|it| text(it, "decision")).collect::<Vec<_>>(), ["block", "block"]);
    harness.limit_files(None);
    assert_eq!(harness.word(&list()), "allow", "it recovers");
    assert_eq!(harness.close().0, 0);
    let shown = session(&folder, "s");
    assert_eq!(of_kind(&shown, "decision").len(), 2, "what was answered as blocked did not happen");
    let fsck = folder.run(&["audit", "fsck"]);
    assert!(fsck.status.success(), "{}", String::from_utf8_lossy(&fsck.stdout));
}

#[test]
fn a_payload_that_says_two_different_things_is_blocked() {
    let folder = Folder::with_policy(POLICY);
    let mut harness = Harness::start(&folder);
    let contradictions = [
        r#"{"tool_name":"bash","tool":"deploy","arguments":{"command":"ls"}}"#,
        r#"{"tool":"bash","arguments":{"command":"ls"},"args":{"command":"rm x"}}"#,
        r#"{"tool":"bash","args":{"command":"ls"},"working_directory":"/a","cwd":"/b"}"#,
        r#"{"tool":7}"#,
        r#"{"tool":["bash"],"args":{"command":"ls"}}"#,
    ];
    for payload in contradictions {
        let answer = harness.ask(&Event::new("pre_action", payload));
        assert_eq!(text(&answer, "decision"), "block", "{payload}: {answer}");
        assert!(!text(&answer, "reason").is_empty(), "{answer}");
    }
    let same = r#"{"tool_name":"bash","tool":"bash","arguments":{"command":"ls"},"args":{"command":"ls"}}"#;
    assert_eq!(harness.word(&Event::new("pre_action", same)), "allow", "the same thing twice is one thing");
    // Without a tool, or without an object, there is nothing that a rule could allow.
    for payload in ["null", "7", "[]", "\"ls\"", "{}"] {
        assert_eq!(harness.word(&Event::new("pre_action", payload)), "block", "{payload}");
    }
    harness.close();
    assert_eq!(alarms(&folder), vec!["malformed"; contradictions.len()]);
}

#[test]
fn everything_that_was_sent_is_answered_and_on_record_before_the_end() {
    let folder = Folder::with_policy(POLICY);
    let mut harness = Harness::start(&folder);
    let ids: Vec<Json> = (0..300).map(|_| harness.begin("ahp/event", &list().params())).collect();
    harness.notify(&Event::new("success", "{}"));
    harness.end_input();
    for id in &ids {
        assert_eq!(text(&harness.result(id), "decision"), "allow");
    }
    assert_eq!(harness.close().0, 0);
    let shown = session(&folder, "s");
    assert_eq!((of_kind(&shown, "decision").len(), of_kind(&shown, "observation").len()), (300, 1));

    for (signal, code) in [(rustix::process::Signal::TERM, 143), (rustix::process::Signal::INT, 130)] {
        let mut harness = Harness::start(&folder);
        assert_eq!(harness.word(&list()), "allow");
        rustix::process::kill_process(harness.pid(), signal).unwrap();
        assert_eq!(harness.wait(), code);
    }
}

#[test]
fn when_the_owner_dies_its_relay_blocks_until_it_is_the_owner() {
    let folder = Folder::with_policy(POLICY);
    let mut owner = Harness::start(&folder);
    assert_eq!(owner.word(&list()), "allow");
    let mut relay = Harness::start(&folder);
    let id = relay.let_through(&before("bash", r#"{"command":"make"}"#));
    owner.kill();
    let gone = relay.ask(&list());
    let word = text(&gone, "decision");
    assert!(word == "allow" || word == "block" && text(&gone, "reason").contains("not recorded"), "{gone}");
    // It is blocked at once, again and again, until the relay has become the owner.
    let end = std::time::Instant::now() + std::time::Duration::from_secs(30);
    while relay.word(&list()) != "allow" {
        assert!(std::time::Instant::now() < end, "it never decides itself");
    }
    // What the dead owner decided can still be reported.
    relay.notify(&after("bash", r#"{"command":"make"}"#));
    assert_eq!(relay.close().0, 0);
    assert_eq!(alarms(&folder), [""; 0]);
    assert_eq!(outcomes(&folder, "s"), [(id, "ok".to_owned(), "arguments".to_owned())]);
}
