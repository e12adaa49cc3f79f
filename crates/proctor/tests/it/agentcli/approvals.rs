//! Approvals of runs: a person decides with `proctor approve`, and the run takes place once.

use std::time::{Duration, Instant};

use proctor_core::json::Json;

use super::place::{ALLOW, Place, at, manifest};

/// A place with an approver, and a task that leaves a line in `ran` each time it runs.
fn place(policy: &str, approval: &str) -> Place {
    let place = Place::with_policy(policy);
    let made = place.proctor(&["init", "--approver", "ann"]);
    assert!(made.status.success(), "{made:?}");
    place.write("m.json", &marker("ran", approval));
    place
}

fn marker(file: &str, approval: &str) -> String {
    manifest(&format!(r#""shell":{{"program":"/bin/sh","args":["-c","echo x >> {file}"]}}{approval}"#), "")
}

const MANUAL: &str = r#","approval":{"policy":"manual"}"#;

fn ran(place: &Place) -> usize {
    std::fs::read_to_string(place.path("ran")).unwrap_or_default().lines().count()
}

/// Runs the task, which asks; returns the approval's id.
fn asks(place: &Place) -> String {
    let refused = place.refused(&["exec", "m.json", "a"], "approval_required");
    let id = at(&refused, "/approval_id").as_str().unwrap().to_owned();
    assert!(
        at(&refused, "/error").as_str().unwrap().contains(&format!("`proctor approve allow {id}`")),
        "{refused}"
    );
    at(&refused, "/approval_expires_at");
    id
}

fn status(place: &Place, id: &str) -> String {
    let listed = place.good(&["approvals", "list"]);
    let records = at(&listed, "/records").as_array().unwrap().to_vec();
    let record = records.into_iter().find(|record| at(record, "/approval_id").as_str() == Some(id));
    at(&record.unwrap_or_else(|| panic!("{listed}")), "/status").as_str().unwrap().to_owned()
}

#[test]
fn a_granted_run_takes_place_once_and_then_asks_again() {
    let place = place(ALLOW, MANUAL);
    let id = asks(&place);
    assert_eq!(asks(&place), id, "the same question");
    assert_eq!(ran(&place), 0);
    assert_eq!(status(&place, &id), "waiting");
    assert_eq!(place.proctor(&["manifest", "exec", "m.json", "a"]).status.code(), Some(11));
    let granted = place.proctor(&["approve", "allow", &id, "--reason", "release day"]);
    assert!(granted.status.success(), "{granted:?}");
    assert_eq!(status(&place, &id), "granted");
    // Another task, and a run that names another approval, do not rest on it.
    place.write("other.json", &marker("other", MANUAL));
    place.refused(&["exec", "other.json", "a"], "approval_required");
    assert_eq!(ran(&place), 0);
    let done = place.good(&["exec", "m.json", "a", "--approval-id", &id]);
    assert_eq!(at(&done, "/policy/approval_id").as_str(), Some(id.as_str()), "{done}");
    assert_eq!(ran(&place), 1);
    assert_eq!(status(&place, &id), "used");
    assert_ne!(asks(&place), id, "another question");
    assert_eq!(ran(&place), 1);
    assert!(!place.path("other").exists());
    let mut server = place.serve();
    let listed = server.good("agentcli.approvals.list", r#"{"status":"used","workflowId":"w","taskId":"a"}"#);
    assert_eq!(at(&listed, "/count").to_string(), "1", "{listed}");
    server.end();
    assert!(place.proctor(&["audit", "fsck"]).status.success());
}

#[test]
fn a_refused_approval_is_a_denied_run() {
    let place = place(ALLOW, MANUAL);
    let id = asks(&place);
    let refused = place.proctor(&["approve", "deny", &id, "--reason", "not on a Friday"]);
    assert!(refused.status.success(), "{refused:?}");
    assert_eq!(status(&place, &id), "refused");
    place.refused(&["exec", "m.json", "a"], "authorization_denied");
    assert_eq!(ran(&place), 0);
    let audit = place.good(&["audit", "--limit", "1"]);
    assert_eq!(at(&audit, "/records/0/code").as_str(), Some("authorization_denied"), "{audit}");
}

#[test]
fn an_expired_approval_cannot_be_granted_and_the_run_asks_anew() {
    let place = place(ALLOW, r#","approval":{"policy":"manual","timeout_s":1}"#);
    let id = asks(&place);
    let deadline = Instant::now() + Duration::from_secs(20);
    while status(&place, &id) != "expired" {
        assert!(Instant::now() < deadline, "the approval does not expire");
    }
    assert!(!place.proctor(&["approve", "allow", &id]).status.success());
    expires_to_deny(&place, &id);
}

#[test]
fn a_grant_that_was_not_used_in_time_is_no_grant() {
    let place = place(ALLOW, r#","approval":{"policy":"manual","timeout_s":2}"#);
    let id = asks(&place);
    let granted = place.proctor(&["approve", "allow", &id]);
    assert!(granted.status.success(), "{granted:?}");
    let deadline = Instant::now() + Duration::from_secs(20);
    while status(&place, &id) != "expired" {
        assert!(Instant::now() < deadline, "the grant does not expire");
    }
    expires_to_deny(&place, &id);
}

/// The next run is told that its question expired; the one after it asks anew.
fn expires_to_deny(place: &Place, id: &str) {
    let refused = place.refused(&["exec", "m.json", "a"], "authorization_denied");
    assert!(at(&refused, "/error").as_str().unwrap().contains("expired at"), "{refused}");
    assert_ne!(asks(place), id);
    assert_eq!(ran(place), 0);
}

#[test]
fn a_rule_that_asks_and_a_task_that_rejects_start_nothing() {
    let ask = "version: \"1\"\ndefault: ask\n";
    let place = place(ask, "");
    let id = asks(&place);
    assert!(place.proctor(&["approve", "allow", &id]).status.success());
    // An approval of the run does not loosen the task's own, nor the other way round.
    place.write("rejects.json", &marker("ran", r#","approval":{"policy":"auto-reject"}"#));
    place.refused(&["exec", "rejects.json", "a"], "approval_auto_rejected");
    place.write("free.json", &marker("ran", r#","approval":{"policy":"auto-approve"}"#));
    place.refused(&["exec", "free.json", "a"], "approval_required");
    assert_eq!(ran(&place), 0);
    place.refused(&["exec", "m.json", "a", "--approval-id", "nonsense"], "approval_scope_mismatch");
    let dry = place.good(&["exec", "m.json", "a", "--dry-run"]);
    assert_eq!(at(&dry, "/dry_run"), &Json::Bool(true));
    assert_eq!(ran(&place), 0);
}
