//! Jobs that are created, updated, adopted and planned.

use proctor_core::json::Json;

use super::super::place::{Place, at};
use super::{actions, calls, place, two_tasks};

/// Makes a job by hand, as a user of the scheduler would.
fn by_hand(place: &Place, id: &str, name: &str) {
    let job = format!(
        r#"{{"id":"{id}","name":"{name}","origin":"alice","session_target":"shell","payload_kind":"shellCommand","schedule_cron":"* * * * *"}}"#
    );
    let script = place.path("openclaw-scheduler");
    let mut command = place.command(&script, &["--json", "jobs", "add", &job]);
    let output = command.env("SCHEDULER_DB", place.path("scheduler.db")).output().unwrap();
    assert!(output.status.success(), "{output:?}");
}

#[test]
fn jobs_are_created_and_then_updated_parents_first() {
    let place = place(&[]);
    place.write("m.json", &two_tasks("0.2", ""));
    let created = place.good(&["apply", "m.json", "--explain"]);
    assert_eq!(actions(&created), ["created Collect", "created Report"]);
    for (member, expected) in [
        ("/target", "\"openclaw-scheduler\""),
        ("/dry_run", "false"),
        ("/job_count", "2"),
        ("/capabilities/source", "\"static\""),
        ("/capabilities/negotiated", "false"),
        ("/handoff/field_version", "\"1\""),
        ("/handoff/projected_fields", "41"),
        ("/actions/1/invocation_mode", "\"trigger\""),
    ] {
        assert_eq!(at(&created, member).to_string(), expected, "{created}");
    }
    assert_eq!(at(&created, "/explain").as_array().unwrap().len(), 2);
    assert_eq!(
        at(&created, "/scheduler/db_path").as_str(),
        Some(place.path("scheduler.db").to_str().unwrap())
    );
    // The same again through RPC, where the call names the scheduler.
    let mut server = place.serve();
    let params = format!(
        r#"{{"manifest":{},"schedulerBin":{},"dbPath":{}}}"#,
        two_tasks("0.2", ""),
        Json::from(place.path("openclaw-scheduler").to_str().unwrap()),
        Json::from(place.path("scheduler.db").to_str().unwrap()),
    );
    let updated = server.good("agentcli.apply", &params);
    assert_eq!(actions(&updated), ["updated Collect", "updated Report"]);
    assert!(updated.get("explain").is_none(), "{updated}");
    server.end();
    assert_eq!(
        calls(&place),
        ["jobs list", "jobs add", "jobs add", "jobs list", "jobs update", "jobs update"]
    );
}

#[test]
fn a_dry_run_and_a_plan_write_nothing_and_say_what_would_be_done() {
    let place = place(&[]);
    place.write("m.json", &two_tasks("0.2", ""));
    let dry = place.good(&["apply", "m.json", "--dry-run"]);
    assert_eq!(actions(&dry), ["created Collect", "created Report"]);
    assert_eq!(at(&dry, "/dry_run"), &Json::Bool(true));
    let mut server = place.serve();
    let params = format!(r#"{{"manifest":{},"dryRun":true}}"#, two_tasks("0.2", ""));
    assert_eq!(actions(&server.good("agentcli.apply", &params)), actions(&dry));
    server.end();
    assert_eq!(calls(&place), ["jobs list", "jobs list"]);

    place.good(&["apply", "m.json"]);
    place.write("m.json", &two_tasks("0.2", "").replace("0 9 *", "0 8 *"));
    let planned = place.run(&["plan", "m.json"]);
    let text = String::from_utf8(planned.stdout).unwrap();
    assert!(planned.status.success(), "{text}");
    assert!(text.starts_with("~ updated Collect ("), "{text}");
    assert!(text.contains("\n    schedule_cron: \"0 9 * * *\" -> \"0 8 * * *\"\n"), "{text}");
    assert!(text.contains("0 created, 1 updated, 0 adopted, 1 unchanged"), "{text}");
    let planned = place.good(&["plan", "m.json", "--json"]);
    assert_eq!(
        at(&planned, "/plan/summary").to_string(),
        r#"{"created":0,"updated":1,"adopted":0,"unchanged":1}"#
    );
    assert_eq!(calls(&place).iter().filter(|call| *call == "jobs update").count(), 0);
    let same = place.proctor(&["manifest", "plan", "m.json"]);
    assert_eq!((same.status.code(), String::from_utf8(same.stdout).unwrap()), (Some(0), text));
}

#[test]
fn jobs_made_by_hand_are_adopted_by_name_only_when_asked() {
    let place = place(&[]);
    by_hand(&place, "mine", "Collect");
    place.write("m.json", &two_tasks("0.2", ""));
    place.refused(&["apply", "m.json", "--adopt-by", "owner"], "invalid_argument");
    let adopted = place.good(&["apply", "m.json", "--adopt-by", "name"]);
    assert_eq!(actions(&adopted), ["adopted Collect", "created Report"]);
    assert_eq!(at(&adopted, "/actions/0/adopted_from_job_id").as_str(), Some("mine"));
    let jobs = place.good(&["inspect", "jobs", "--fields", "name,origin"]);
    let rows = at(&jobs, "/items").to_string();
    assert_eq!(at(&jobs, "/count").to_string(), "2", "{jobs}");
    assert!(rows.contains(r#"{"name":"Collect","origin":"alice"}"#), "{rows}");
    // Two jobs of one name: nobody knows which is meant, and nothing is written.
    by_hand(&place, "other", "Report");
    let before = calls(&place).len();
    let mut server = place.serve();
    by_hand(&place, "another", "Report");
    let changed = two_tasks("0.2", "").replace(r#""id":"report""#, r#""id":"report2""#);
    let params = format!(r#"{{"manifest":{changed},"adoptBy":"name"}}"#);
    let error = server.refused("agentcli.apply", &params, -32602, "invalid_argument");
    assert!(error.to_string().contains("Report"), "{error}");
    server.end();
    assert!(calls(&place)[before..].iter().all(|call| call != "jobs delete" && call != "jobs update"));
}

#[test]
fn a_secret_is_neither_applied_nor_shown_in_a_plan() {
    let place = place(&[]);
    place
        .write("m.json", &two_tasks("0.2", "").replace("[\"collect\"]", &format!("[\"{}\"]", super::TRACED)));
    let refused = place.refused(&["apply", "m.json"], "invalid_argument");
    assert!(!refused.to_string().contains("Abcdefgh"), "{refused}");
    assert!(calls(&place).is_empty());
    for arguments in [vec!["plan", "m.json"], vec!["plan", "m.json", "--json"]] {
        let planned = place.run(&arguments);
        let text = String::from_utf8(planned.stdout).unwrap();
        assert!(planned.status.success() && text.contains("REDACTED"), "{text}");
        assert!(!text.contains("Abcdefgh"), "{text}");
    }
}
