//! Runs: what agents report about them is reduced to their state, and contradictions are alarms.

use crate::ahp_door::POLICY;
use crate::support::harness::{Event, Harness, alarms, of_kind, records, session};
use crate::support::{Folder, text};

fn lifecycle(run: &str, status: &str) -> Event {
    let payload = format!(r#"{{"run_id":"{run}","session_id":"s","status":"{status}","updated_at":"now"}}"#);
    Event::new("run_lifecycle", &payload)
}

fn tasks(run: &str, tasks: &[(&str, &str)]) -> Event {
    let tasks: Vec<String> = tasks
        .iter()
        .map(|(id, status)| format!(r#"{{"id":"{id}","title":"do {id}","status":"{status}"}}"#))
        .collect();
    let payload =
        format!(r#"{{"run_id":"{run}","session_id":"s","updated_at":"now","tasks":[{}]}}"#, tasks.join(","));
    Event::new("task_list", &payload)
}

fn verification(run: &str, status: &str, check: &str) -> Event {
    let payload = format!(
        r#"{{"run_id":"{run}","session_id":"s","status":"{status}","updated_at":"now","checks":[{{"id":"c1","subject":"tests","status":"{check}"}}],"residual_risks":["no Windows run"]}}"#
    );
    Event::new("verification", &payload)
}

fn shown(folder: &Folder) -> String {
    String::from_utf8(folder.run(&["session", "show", "s"]).stdout).unwrap()
}

#[test]
fn contracts_are_reduced_to_the_current_state_of_each_run() {
    let folder = Folder::with_policy(POLICY);
    let mut harness = Harness::start(&folder);
    for event in [
        lifecycle("one", "created"),
        lifecycle("one", "executing"),
        tasks("one", &[("a", "in_progress"), ("b", "pending")]),
        lifecycle("two", "planning"),
        tasks("one", &[("a", "completed"), ("b", "in_progress")]),
        verification("one", "running", "passed"),
    ] {
        harness.notify(&event);
    }
    harness.settle();
    let before = shown(&folder);
    assert!(before.contains("run one: executing, 1 of 2 tasks done, verification: running"), "{before}");
    assert!(before.contains("run two: planning, 0 of 0 tasks done, verification: not verified"), "{before}");
    harness.kill();
    let mut harness = Harness::start(&folder);
    harness.notify(&tasks("one", &[("a", "completed"), ("b", "completed")]));
    harness.notify(&verification("one", "passed", "passed"));
    harness.notify(&lifecycle("one", "verifying"));
    harness.notify(&lifecycle("one", "completed"));
    harness.close();
    let after = shown(&folder);
    assert!(after.contains("run one: completed, 2 of 2 tasks done, verification: passed"), "{after}");
    assert!(after.contains("risk: no Windows run"), "{after}");
    assert_eq!(alarms(&folder), [""; 0]);
}

#[test]
fn contradictions_are_alarms_and_the_last_word_counts() {
    let folder = Folder::with_policy(POLICY);
    let mut harness = Harness::start(&folder);
    harness.notify(&lifecycle("r", "verifying"));
    harness.notify(&lifecycle("r", "completed"));
    // What was said before a crash is still known after it.
    harness.settle();
    harness.kill();
    let mut harness = Harness::start(&folder);
    harness.notify(&lifecycle("r", "executing"));
    harness.notify(&tasks("r", &[("a", "pending"), ("a", "pending")]));
    harness.notify(&verification("r", "passed", "failed"));
    harness.notify(&lifecycle("r", "executing").session("another"));
    harness.close();
    assert_eq!(
        alarms(&folder),
        ["run_transition", "duplicate_task", "passed_without_checks", "session_mismatch"]
    );
    let text = shown(&folder);
    assert!(text.contains("run r: executing, 0 of 2 tasks done, verification: passed"), "{text}");
    assert!(text.contains("a run that is `completed` cannot become `executing`"), "{text}");
    assert!(text.contains("two tasks have the id `a`"), "{text}");
}

#[test]
fn the_first_contract_of_a_session_counts_too() {
    let folder = Folder::with_policy(POLICY);
    let mut harness = Harness::start(&folder);
    harness.notify(&lifecycle("r", "completed"));
    harness.notify(&lifecycle("r", "executing"));
    harness.close();
    assert_eq!(alarms(&folder), ["run_transition"]);
}

#[test]
fn a_contract_that_cannot_be_read_is_an_alarm_where_nobody_is_told() {
    let folder = Folder::with_policy(POLICY);
    let mut harness = Harness::start(&folder);
    harness.notify(&lifecycle("r", "created"));
    harness.notify(&lifecycle("r", "dreaming"));
    harness.notify(&Event::new("task_list", r#"{"run_id":"r","session_id":"s","updated_at":"now"}"#));
    harness.notify(&Event::new("verification", "null"));
    harness.notify(&lifecycle("r", "planning"));
    harness.close();
    assert_eq!(alarms(&folder), ["malformed", "malformed", "malformed"]);
    let all = records(&folder);
    assert!(of_kind(&all, "alarm").iter().all(|alarm| text(alarm, "door") == "ahp"));
    assert_eq!(of_kind(&session(&folder, "s"), "observation").len(), 2, "nothing around them is lost");
    assert!(shown(&folder).contains("run r: planning"), "{}", shown(&folder));
}
