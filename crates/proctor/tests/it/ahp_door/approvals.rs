//! Approvals: asked at once, waited for, decided by a person, honoured once, and still there after a crash.

use std::time::{Duration, Instant};

use crate::ahp_door::POLICY;
use crate::support::harness::{Event, Harness, before, of_kind, records};
use crate::support::{Folder, text};

fn deploy() -> Event {
    before("deploy", r#"{"to":"prod"}"#)
}

/// Asks for a new action that needs an approval; returns the approval's id.
fn escalated(harness: &mut Harness, event: &Event) -> String {
    let answer = harness.ask(event);
    assert_eq!(text(&answer, "decision"), "escalate", "{answer}");
    let id = text(&answer, "approval_id").to_owned();
    assert!(!id.is_empty() && text(&answer, "reason").contains(&id), "{answer}");
    assert!(answer["retry_after_ms"].as_u64().is_some_and(|wait| wait > 0), "{answer}");
    assert!(text(&answer, "expires_at").starts_with("20"), "{answer}");
    id
}

fn still_waits(harness: &mut Harness, event: &Event, id: &str) {
    let answer = harness.ask(event);
    assert_eq!((text(&answer, "decision"), text(&answer, "approval_id")), ("defer", id), "{answer}");
    assert!(answer["retry_after_ms"].as_u64().is_some_and(|wait| wait > 0), "{answer}");
    assert!(text(&answer, "reason").contains(id) && !text(&answer, "expires_at").is_empty(), "{answer}");
}

fn decide(folder: &Folder, verdict: &str, id: &str) {
    let output = folder.run(&["approve", verdict, id, "--reason", "seen by a person"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn an_approval_waits_and_its_outcome_is_told_once() {
    let folder = Folder::with_approver(POLICY);
    let mut harness = Harness::start(&folder);
    let first = escalated(&mut harness, &deploy());
    still_waits(&mut harness, &deploy(), &first);
    // The session and the agent's id are claims, and the depth is no part of what was asked for.
    still_waits(&mut harness, &deploy().depth(2).session("other").agent("another"), &first);
    let elsewhere = escalated(&mut harness, &before("deploy", r#"{"to":"test"}"#));
    assert_ne!(elsewhere, first);

    decide(&folder, "allow", &first);
    let granted = harness.ask(&deploy());
    assert_eq!(text(&granted, "decision"), "allow", "{granted}");
    assert!(text(&granted["metadata"], "reason").contains("approver:ann"), "{granted}");
    let second = escalated(&mut harness, &deploy());
    assert_ne!(second, first, "a grant is used once");

    decide(&folder, "deny", &second);
    let refused = harness.ask(&deploy());
    assert_eq!(text(&refused, "decision"), "block", "{refused}");
    assert!(text(&refused, "reason").contains("seen by a person"), "{refused}");
    assert_ne!(escalated(&mut harness, &deploy()), second, "a refusal is told once");
    still_waits(&mut harness, &before("deploy", r#"{"to":"test"}"#), &elsewhere);
    harness.close();
}

#[test]
fn an_approval_survives_a_crash_at_every_step() {
    let folder = Folder::with_approver(POLICY);
    let mut harness = Harness::start(&folder);
    let id = escalated(&mut harness, &deploy());
    harness.kill();
    let mut harness = Harness::start(&folder);
    still_waits(&mut harness, &deploy(), &id);
    harness.kill();
    // Nobody owns the directory now: the person's decision is taken all the same.
    decide(&folder, "allow", &id);
    let mut harness = Harness::start(&folder);
    assert_eq!(harness.word(&deploy()), "allow");
    harness.kill();
    let mut harness = Harness::start(&folder);
    let next = escalated(&mut harness, &deploy());
    assert_ne!(next, id, "used before the crash is used after it");
    decide(&folder, "deny", &next);
    harness.kill();
    let mut harness = Harness::start(&folder);
    assert_eq!(harness.word(&deploy()), "block");
    assert_ne!(escalated(&mut harness, &deploy()), next);
    harness.close();
}

#[test]
fn another_principal_inherits_no_approval() {
    let folder = Folder::with_approver(POLICY);
    let mut owner = Harness::start(&folder);
    owner.settle();
    // The second one relays to the first, and is somebody else.
    let mut other = Harness::start_with(&folder, &["--agent", "other"]);
    let own = escalated(&mut owner, &deploy());
    let others = escalated(&mut other, &deploy());
    assert_ne!(own, others);
    decide(&folder, "allow", &own);
    still_waits(&mut other, &deploy(), &others);
    assert_eq!(owner.word(&deploy()), "allow");
    still_waits(&mut other, &deploy(), &others);
    assert_eq!(other.close().0, 0);
    owner.close();
    let principals: Vec<String> = of_kind(&records(&folder), "decision")
        .iter()
        .map(|record| text(record, "principal").to_owned())
        .collect();
    assert!(principals.iter().any(|principal| principal.ends_with("/other")), "{principals:?}");
}

#[test]
fn what_nobody_decided_in_time_is_refused_or_asked_anew() {
    let folder = Folder::with_approver(POLICY);
    let mut harness = Harness::start(&folder);
    let brief = before("brief", "{}");
    let first = harness.ask(&brief);
    assert_eq!(text(&first, "decision"), "escalate", "{first}");
    let id = text(&first, "approval_id").to_owned();
    let start = Instant::now();
    let after = loop {
        let answer = harness.ask(&brief);
        if text(&answer, "approval_id") != id {
            break answer;
        }
        assert_eq!(text(&answer, "decision"), "defer", "{answer}");
        assert!(start.elapsed() < Duration::from_secs(30), "it never expired");
    };
    assert_eq!(text(&after, "decision"), "block", "it expires to a refusal: {after}");
    assert!(text(&after, "reason").contains("expire"), "{after}");
    let late = folder.run(&["approve", "allow", &id]);
    assert!(!late.status.success(), "too late");
    let anew = harness.ask(&brief);
    assert_eq!(text(&anew, "decision"), "escalate", "{anew}");
    assert_ne!(text(&anew, "approval_id"), id);
    harness.close();
}

#[test]
fn a_person_can_decide_while_the_answer_is_held_and_neighbours_do_not_wait() {
    let folder = Folder::with_approver(POLICY);
    // Longer than any machine takes for the rest: the person's decision ends it.
    folder.write("proctor.toml", "policy = \"policy.yaml\"\n[ahp]\nanswer_ms = 60000\nhold_ms = 50000\n");
    for (verdict, word) in [("allow", "allow"), ("deny", "block")] {
        let mut harness = Harness::start(&folder);
        let start = Instant::now();
        let held = harness.begin("ahp/event", &deploy().params());
        assert_eq!(harness.word(&before("bash", r#"{"command":"ls"}"#)), "allow");
        // The neighbour came later, so by now the question is on record.
        let waiting = folder.json(&["approve", "list", "--json"]);
        assert_eq!(waiting.len(), 1, "{waiting:?}");
        decide(&folder, verdict, text(&waiting[0], "approval_id"));
        let answer = harness.result(&held);
        assert_eq!(text(&answer, "decision"), word, "{answer}");
        assert!(start.elapsed() < Duration::from_secs(50), "the hold was sat out");
        harness.close();
    }
}

#[test]
fn what_is_not_decided_during_the_hold_is_escalated() {
    let folder = Folder::with_approver(POLICY);
    folder.write("proctor.toml", "policy = \"policy.yaml\"\n[ahp]\nhold_ms = 150\n");
    let mut harness = Harness::start(&folder);
    let start = Instant::now();
    let id = escalated(&mut harness, &deploy());
    assert!(start.elapsed() >= Duration::from_millis(150), "{:?}", start.elapsed());
    still_waits(&mut harness, &deploy(), &id);
    harness.close();
    folder.write("proctor.toml", "policy = \"policy.yaml\"\n[ahp]\nhold_ms = 8000\n");
    let refused = folder.run(&["harness"]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&refused.stderr).contains("hold_ms"));
}

#[test]
fn a_confirmation_is_escalated_with_its_id_until_a_person_decided() {
    let folder = Folder::with_approver(POLICY);
    let mut harness = Harness::start(&folder);
    let ask = |kind: &str, message: &str| {
        Event::new(
            "confirmation",
            &format!(r#"{{"session_id":"s","confirmation_type":"{kind}","message":"{message}"}}"#),
        )
    };
    let approved = harness.ask(&ask("user_confirm", "go on?"));
    assert_eq!(text(&approved, "decision"), "approve", "{approved}");
    assert!(!text(&approved["metadata"], "decision_id").is_empty(), "{approved}");
    let rejected = harness.ask(&ask("cost_confirm", "spend 4 USD?"));
    assert_eq!(
        (text(&rejected, "decision"), text(&rejected, "reason")),
        ("reject", "Nothing is spent."),
        "{rejected}"
    );
    let safety = ask("safety_confirm", "delete the branch?");
    let id = escalated(&mut harness, &safety);
    let again = harness.ask(&safety);
    assert_eq!((text(&again, "decision"), text(&again, "approval_id")), ("escalate", id.as_str()), "{again}");
    assert!(text(&again, "reason").contains(&id), "{again}");
    decide(&folder, "allow", &id);
    assert_eq!(harness.word(&safety), "approve");
    let next = escalated(&mut harness, &safety);
    decide(&folder, "deny", &next);
    let refused = harness.ask(&safety);
    assert_eq!(text(&refused, "decision"), "reject", "{refused}");
    assert!(text(&refused, "reason").contains("seen by a person"), "{refused}");
    harness.close();
    let decided = of_kind(&records(&folder), "decision").len();
    assert_eq!(decided, 7);
}
