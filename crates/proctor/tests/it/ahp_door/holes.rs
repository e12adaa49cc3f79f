//! Ways around the guard that were found stay closed.

use std::time::{Duration, Instant};

use proctor_core::json::Json;
use rustix::process::{Signal, kill_process};

use crate::ahp_door::{POLICY, SECRET};
use crate::support::harness::{Event, Harness, alarms, assert_not_stored, before, of_kind, session};
use crate::support::{Folder, stop_process, text};

const BALANCED: &str = include_str!("../../../../../schemas/examples/balanced.yaml");

/// Command that no form of sending it may get through.
const WORST: &str = "sudo rm -rf /";

#[test]
fn a_command_is_seen_in_whatever_form_arguments_come() {
    let folder = Folder::with_policy(BALANCED);
    let mut harness = Harness::start(&folder);
    let encoded = |inner: &str| Json::from(inner).to_string();
    let forms = [
        format!(r#"{{"command":"{WORST}"}}"#),
        encoded(&format!(r#"{{"command":"{WORST}"}}"#)),
        encoded(&format!(r#"{{"command":"ls","command":"{WORST}"}}"#)),
        encoded(&format!("{{\"command\":\"{WORST}\",\"note\":\"a\tb\"}}")),
        encoded(&format!("\u{feff}{{\"command\":\"{WORST}\"}}")),
        encoded(&encoded(&format!(r#"{{"command":"{WORST}"}}"#))),
        encoded(&format!(r#"[{{"command":"{WORST}"}}]"#)),
        encoded(&format!(r#"{}{{"command":"{WORST}"}}{}"#, r#"{"a":"#.repeat(200), "}".repeat(200))),
        encoded(WORST),
        r#"["sudo","rm","-rf","/"]"#.to_owned(),
        format!(r#"{{"text":"{WORST}"}}"#),
        format!(r#"{{"bash":"{WORST}"}}"#),
        format!(r#"{{"something":"{WORST}"}}"#),
    ];
    for arguments in forms {
        let payload = format!(r#"{{"tool_name":"bash","arguments":{arguments}}}"#);
        let answer = harness.ask(&Event::new("pre_action", &payload));
        assert_ne!(text(&answer, "decision"), "allow", "{payload}: {answer}");
    }
    let beside = format!(r#"{{"tool_name":"bash","arguments":{{}},"input":{{"command":"{WORST}"}}}}"#);
    assert_ne!(harness.word(&Event::new("pre_action", &beside)), "allow", "{beside}");
    harness.close();
}

#[test]
fn a_secret_beside_the_arguments_is_cut_there_too() {
    let folder = Folder::with_policy(POLICY);
    let mut harness = Harness::start(&folder);
    let payload = format!(
        r#"{{"tool":"upload","args":{{"to":"x"}},"arguments":{{"to":"x"}},"stdin":"{SECRET}","env":{{"KEY":"{SECRET}"}}}}"#
    );
    let answer = harness.ask(&Event::new("pre_action", &payload));
    assert_eq!(text(&answer, "decision"), "modify", "{answer}");
    assert!(!answer.to_string().contains(SECRET), "{answer}");
    let twice =
        format!(r#"{{"tool":"upload","args":{{"key":"{SECRET}"}},"arguments":{{"key":"{SECRET}"}}}}"#);
    let answer = harness.ask(&Event::new("pre_action", &twice));
    assert_eq!(text(&answer, "decision"), "modify", "{answer}");
    assert!(!answer.to_string().contains(SECRET), "{answer}");
    harness.close();
    assert_not_stored(&folder, SECRET);
}

#[test]
fn a_path_without_end_does_not_hold_up_the_next_question() {
    let folder = Folder::with_policy(BALANCED);
    let mut harness = Harness::start(&folder);
    let long = "/a".repeat(200_000);
    let ids = [
        harness.begin("ahp/event", &before("read_file", &format!(r#"{{"path":"{long}"}}"#)).params()),
        harness.begin("ahp/event", &before("bash", r#"{"command":"ls"}"#).params()),
    ];
    // Both are decided: a door that gave up on the first would say that it is not recorded.
    for id in &ids {
        let answer = harness.result(id);
        assert!(!text(&answer, "reason").contains("not recorded"), "{answer}");
    }
    harness.close();
    assert_eq!(of_kind(&session(&folder, "s"), "decision").len(), 2);
}

#[test]
fn an_owner_that_hangs_makes_its_relay_block_and_nobody_waits_twice() {
    let folder = Folder::with_policy(POLICY);
    folder.write("proctor.toml", "policy = \"policy.yaml\"\n[ahp]\nanswer_ms = 1000\n");
    let mut owner = Harness::start(&folder);
    assert_eq!(owner.word(&before("bash", r#"{"command":"ls"}"#)), "allow");
    let mut relay = Harness::start(&folder);
    assert_eq!(relay.word(&before("bash", r#"{"command":"ls"}"#)), "allow");
    stop_process(owner.pid());
    let start = Instant::now();
    for _ in 0..20 {
        assert_eq!(relay.word(&before("bash", r#"{"command":"ls"}"#)), "block");
    }
    // One wait for the owner, not one for each question: that would be at least twenty seconds.
    assert!(start.elapsed() < Duration::from_secs(10), "{:?}", start.elapsed());
    kill_process(owner.pid(), Signal::CONT).unwrap();
    relay.close();
    owner.close();
}

#[test]
fn an_owner_whose_answers_are_long_is_not_waited_for_in_vain() {
    let rules: String = (0..400)
        .map(|n| {
            format!(
                "  - {{ id: r{n}, when: action.tool == \"t{n}\", then: deny, reason: {} }}\n",
                "x".repeat(300)
            )
        })
        .collect();
    let folder = Folder::with_policy(&format!("version: \"1\"\ndefault: allow\nrules:\n{rules}"));
    let mut owner = Harness::start(&folder);
    assert_eq!(owner.word(&before("x", "{}")), "allow");
    let mut relay = Harness::start(&folder);
    let question = Json::object()
        .with("session_id", "s")
        .with("agent_id", "a")
        .with("query_type", "policy")
        .with("payload", Json::Null);
    let questions: Vec<Json> = (0..12).map(|_| relay.begin("ahp/query", &question)).collect();
    let long = format!(r#"{{"text":"{}"}}"#, "a b ".repeat(25_000));
    for _ in 0..8 {
        relay.notify(&Event::new("heartbeat", &long));
    }
    let last = relay.begin("ahp/event", &before("x", "{}").params());
    for id in &questions {
        assert!(!relay.result(id)["answer"].is_null(), "the owner answered this");
    }
    assert_eq!(text(&relay.result(&last), "decision"), "allow");
    relay.close();
    owner.close();
}

#[test]
fn however_many_decisions_are_open_the_end_of_a_session_closes_them_and_is_on_record() {
    let folder = Folder::with_policy(POLICY);
    let mut harness = Harness::start(&folder);
    let asked = 600;
    let ids: Vec<Json> = (0..asked)
        .map(|n| harness.begin("ahp/event", &before("upload", &format!(r#"{{"n":{n}}}"#)).params()))
        .collect();
    for id in &ids {
        harness.result(id);
    }
    harness.notify(&Event::new("session_end", "{}"));
    harness.close();
    let shown = session(&folder, "s");
    let unknown = of_kind(&shown, "outcome").into_iter().filter(|record| text(record, "code") == "unknown");
    assert_eq!(unknown.count(), asked);
    let last = of_kind(&shown, "observation");
    assert!(last.iter().any(|record| text(record, "code") == "session_end"));
    assert_eq!(alarms(&folder), [""; 0]);
}
