//! Reports: bound to their decisions, also after a crash; what nobody asked for is an alarm.

use proctor_core::json::Json;

use crate::ahp_door::{POLICY, SECRET};
use crate::support::harness::{
    Event, Harness, after, alarms, assert_not_stored, before, of_kind, outcomes, session,
};
use crate::support::{Folder, text};

/// Runs the same twice: in one go, and with a kill between the decisions and their reports.
fn with_and_without_a_crash(test: impl Fn(&Folder, &dyn Fn(Harness) -> Harness)) {
    with_policy_and_crash(POLICY, test);
}

fn with_policy_and_crash(policy: &str, test: impl Fn(&Folder, &dyn Fn(Harness) -> Harness)) {
    let folder = Folder::with_policy(policy);
    test(&folder, &|harness| harness);
    let folder = Folder::with_policy(policy);
    test(&folder, &|harness| {
        harness.kill();
        Harness::start(&folder)
    });
}

fn bound(id: &str, ending: &str, how: &str) -> (String, String, String) {
    (id.to_owned(), ending.to_owned(), how.to_owned())
}

#[test]
fn a_report_that_names_its_decision_is_bound_to_it() {
    with_and_without_a_crash(|folder, between| {
        let mut harness = Harness::start(folder);
        // All alike, so that only the id tells them apart.
        let ids: Vec<String> =
            (0..4).map(|_| harness.let_through(&before("bash", r#"{"command":"make"}"#))).collect();
        let mut harness = between(harness);
        let named = |id: &str| Json::object().with("decision_id", id);
        harness.notify(&after("bash", r#"{"command":"make"}"#).metadata(named(&ids[3])));
        let inside =
            format!(r#"{{"tool":"bash","metadata":{{"decision_id":"{}"}},"success":false}}"#, ids[2]);
        harness.notify(&Event::new("post_action", &inside));
        let top = format!(r#"{{"decision_id":"{}","result":{{"status":"failed"}}}}"#, ids[1]);
        harness.notify(&Event::new("post_action", &top).depth(3));
        harness.notify(&after("bash", r#"{"command":"make"}"#));
        harness.close();
        assert_eq!(
            outcomes(folder, "s"),
            [
                bound(&ids[3], "ok", "decision_id"),
                bound(&ids[2], "failed", "decision_id"),
                bound(&ids[1], "failed", "decision_id"),
                bound(&ids[0], "ok", "arguments"),
            ]
        );
        assert_eq!(alarms(folder), [""; 0]);
    });
}

#[test]
fn a_report_is_bound_by_tool_and_arguments_as_asked_or_as_answered() {
    with_and_without_a_crash(|folder, between| {
        let mut harness = Harness::start(folder);
        let listed = harness.let_through(&before("bash", r#"{"command":"ls","timeout":5}"#));
        let made = harness.let_through(&before("bash", r#"{"command":"make"}"#));
        let asked = harness.let_through(&before("search", r#"{"q":"a","limit":1000}"#));
        let answered = harness.let_through(&before("search", r#"{"q":"b","limit":1000}"#));
        let one = harness.let_through(&before("upload", &format!(r#"{{"key":"{SECRET}","n":1}}"#)));
        let two = harness.let_through(&before("upload", &format!(r#"{{"key":"{SECRET}","n":2}}"#)));
        let mut harness = between(harness);
        // Other names for the same tool and the same members, in another order.
        harness.notify(&Event::new("post_action", r#"{"tool":"shell","args":{"command":"make"}}"#));
        harness.notify(&after("Bash", r#"{"timeout":5,"command":"ls"}"#));
        harness.notify(&after("search", r#"{"q":"b","limit":10}"#));
        harness.notify(&after("search", r#"{"q":"a","limit":1000}"#));
        harness.notify(&after("upload", r#"{"key":"[REDACTED:OpenAiKey]","n":2}"#));
        harness.notify(&after("upload", &format!(r#"{{"key":"{SECRET}","n":1}}"#)));
        harness.close();
        let how = "arguments";
        assert_eq!(
            outcomes(folder, "s"),
            [&made, &listed, &answered, &asked, &two, &one].map(|id| bound(id, "ok", how))
        );
        assert_eq!(alarms(folder), [""; 0]);
        assert_not_stored(folder, SECRET);
    });
}

#[test]
fn a_report_with_other_arguments_is_bound_by_its_tool_and_says_when_it_could_be_several() {
    with_and_without_a_crash(|folder, between| {
        let mut harness = Harness::start(folder);
        let search = harness.let_through(&before("search", r#"{"q":"a"}"#));
        let first = harness.let_through(&before("bash", r#"{"command":"ls 1"}"#));
        let second = harness.let_through(&before("bash", r#"{"command":"ls 2"}"#));
        // Denied ones are no candidates while others are.
        assert_eq!(harness.word(&before("bash", r#"{"command":"rm 3"}"#)), "block");
        let mut harness = between(harness);
        harness.notify(&after("search", r#"{"q":"something else"}"#));
        harness.notify(&Event::new("post_action", r#"{"tool_name":"bash","result":{"success":true}}"#));
        harness.notify(&after("bash", r#"{"command":"ls 9"}"#));
        harness.close();
        assert_eq!(
            outcomes(folder, "s"),
            [bound(&search, "ok", "tool"), bound(&first, "ok", "ambiguous"), bound(&second, "ok", "tool")]
        );
        assert_eq!(alarms(folder), [""; 0]);
    });
}

#[test]
fn a_report_that_names_no_action_is_of_the_oldest_open_decision_of_its_depth() {
    with_and_without_a_crash(|folder, between| {
        let mut harness = Harness::start(folder);
        let denied = harness.ask(&before("teleport", "{}"));
        assert_eq!(text(&denied, "decision"), "block", "{denied}");
        let denied = text(&denied["metadata"], "decision_id").to_owned();
        let deep = harness.let_through(&before("bash", r#"{"command":"ls 1"}"#).depth(1));
        let first = harness.let_through(&before("bash", r#"{"command":"ls 2"}"#));
        let second = harness.let_through(&before("upload", "{}"));
        let mut harness = between(harness);
        let nameless = Event::new("post_action", r#"{"result":{"success":true}}"#);
        harness.notify(&nameless);
        harness.notify(&nameless);
        harness.notify(&nameless.clone().depth(1));
        harness.settle();
        assert_eq!(alarms(folder), [""; 0]);
        harness.notify(&nameless.clone().depth(2));
        harness.notify(&nameless);
        harness.close();
        // A denied one only when nothing else can be meant.
        assert_eq!(
            outcomes(folder, "s"),
            [&first, &second, &deep, &denied].map(|id| bound(id, "ok", "oldest"))
        );
        assert_eq!(alarms(folder), ["unasked", "denied_but_done"]);
    });
}

#[test]
fn what_was_done_without_asking_or_against_the_answer_is_an_alarm() {
    with_and_without_a_crash(|folder, between| {
        let mut harness = Harness::start(folder);
        let denied = harness.ask(&before("bash", r#"{"command":"rm -r x"}"#));
        let denied = text(&denied["metadata"], "decision_id").to_owned();
        let asked = harness.ask(&before("deploy", r#"{"to":"prod"}"#));
        let asked = text(&asked["metadata"], "decision_id").to_owned();
        let mut harness = between(harness);
        harness.notify(&after("bash", r#"{"command":"rm -r x"}"#));
        harness.notify(&after("deploy", r#"{"to":"prod"}"#));
        harness.notify(&after("upload", r#"{"n":1}"#));
        harness.notify(&after("upload", "{}").session("never seen"));
        harness.notify(&Event::new("post_response", r#"{"response_text":"hi"}"#));
        harness.close();
        assert_eq!(
            outcomes(folder, "s"),
            [bound(&denied, "ok", "arguments"), bound(&asked, "ok", "arguments")]
        );
        assert_eq!(alarms(folder), ["denied_but_done", "denied_but_done", "unasked", "unasked", "unasked"]);
        let shown = String::from_utf8(folder.run(&["session", "show", "s"]).stdout).unwrap();
        assert_eq!(shown.matches("denied_but_done").count(), 2, "{shown}");
        assert!(shown.contains("upload was done without asking"), "{shown}");
        let other = String::from_utf8(folder.run(&["session", "show", "never seen"]).stdout).unwrap();
        assert!(other.contains("unasked"), "{other}");
    });
}

#[test]
fn reported_twice_is_neither_an_alarm_nor_a_second_outcome() {
    with_and_without_a_crash(|folder, between| {
        let mut harness = Harness::start(folder);
        let id = harness.let_through(&before("bash", r#"{"command":"ls"}"#));
        let named = Json::object().with("decision_id", id.as_str());
        let report = after("bash", r#"{"command":"ls"}"#).metadata(named);
        harness.notify(&report);
        // It may come before or after the crash.
        harness.settle();
        let mut harness = between(harness);
        harness.notify(&report);
        harness.settle();
        assert_eq!(outcomes(folder, "s"), [bound(&id, "ok", "decision_id")]);
        assert_eq!(alarms(folder), [""; 0]);
        // Nor does another one use up a neighbour's place.
        let neighbour = harness.let_through(&before("bash", r#"{"command":"ls"}"#));
        harness.notify(&report);
        harness.notify(&after("bash", r#"{"command":"ls"}"#));
        harness.close();
        assert_eq!(
            outcomes(folder, "s"),
            [bound(&id, "ok", "decision_id"), bound(&neighbour, "ok", "arguments")]
        );
        assert_eq!(alarms(folder), [""; 0]);
    });
}

#[test]
fn what_is_open_at_the_end_of_a_session_is_closed_as_unknown() {
    with_and_without_a_crash(|folder, between| {
        let mut harness = Harness::start(folder);
        let open = harness.let_through(&before("bash", r#"{"command":"ls"}"#));
        let done = harness.let_through(&before("upload", "{}"));
        assert_eq!(harness.word(&before("bash", r#"{"command":"rm x"}"#)), "block");
        harness.let_through(&before("bash", r#"{"command":"ls"}"#).session("goes on"));
        harness.notify(&after("upload", "{}"));
        harness.settle();
        let mut harness = between(harness);
        harness.notify(&Event::new("session_end", r#"{"session_id":"s","duration_ms":5}"#));
        harness.settle();
        assert_eq!(
            outcomes(folder, "s"),
            [bound(&done, "ok", "arguments"), bound(&open, "unknown", "session_end")]
        );
        assert_eq!(outcomes(folder, "goes on"), []);
        // A session that ends twice closes nothing twice.
        harness.notify(&Event::new("session_end", "{}"));
        harness.close();
        assert_eq!(outcomes(folder, "s").len(), 2);
        assert_eq!(alarms(folder), [""; 0]);
    });
}

#[test]
fn the_report_of_a_model_call_settles_what_it_really_used() {
    let policy = POLICY.replace("budget:\n", "budget:\n  trust_reports: true\n");
    with_policy_and_crash(&policy, |folder, between| {
        let mut harness = Harness::start(folder);
        let spent = |harness: &mut Harness| {
            let budget = harness.query("budget", r#"{"unit":"tokens"}"#);
            budget["answer"]["limits"].as_array().unwrap()[0]["spent"].as_u64().unwrap()
        };
        // As agents in the field send it: a call to a model, reported as an action without a tool.
        let prompt = r#"{"prompt":"hi","system_prompt":"","message_count":1,"estimated_tokens":1000}"#;
        let first = harness.let_through(&Event::new("pre_prompt", prompt));
        let busy = harness.let_through(&before("bash", r#"{"command":"ls"}"#));
        assert_eq!(spent(&mut harness), 1000);
        let mut harness = between(harness);
        harness.notify(&Event::new(
            "post_action",
            r#"{"response_text":"hello","tool_calls_count":0,"duration_ms":9,"usage":{"prompt_tokens":10,"completion_tokens":5,"total_tokens":15}}"#,
        ));
        assert_eq!(spent(&mut harness), 15);
        let second = harness.let_through(&Event::new("pre_prompt", r#"{"prompt":"and?"}"#));
        harness.notify(&Event::new(
            "post_response",
            r#"{"response_text":"so","usage":{"prompt_tokens":20,"completion_tokens":7}}"#,
        ));
        assert_eq!(spent(&mut harness), 42);
        harness.notify(&after("bash", r#"{"command":"ls"}"#));
        harness.close();
        assert_eq!(
            outcomes(folder, "s"),
            [bound(&first, "ok", "tool"), bound(&second, "ok", "tool"), bound(&busy, "ok", "arguments")]
        );
        assert_eq!(of_kind(&session(folder, "s"), "settlement").len(), 2);
        assert_eq!(alarms(folder), [""; 0]);
    });
}

#[test]
fn a_batch_may_hold_an_action_and_its_report() {
    let folder = Folder::with_policy(POLICY);
    let mut harness = Harness::start(&folder);
    let decisions =
        harness.batch(&[before("bash", r#"{"command":"ls"}"#), after("bash", r#"{"command":"ls"}"#)]);
    let id = text(&decisions[0]["metadata"], "decision_id").to_owned();
    assert_eq!(decisions.iter().map(|it| text(it, "decision")).collect::<Vec<_>>(), ["allow", "allow"]);
    harness.close();
    assert_eq!(alarms(&folder), [""; 0]);
    assert_eq!(outcomes(&folder, "s"), [bound(&id, "ok", "arguments")]);
}

#[test]
fn a_report_right_after_the_same_report_is_no_alarm_either() {
    let folder = Folder::with_policy(POLICY);
    let mut harness = Harness::start(&folder);
    for index in 0..20 {
        let arguments = format!(r#"{{"command":"ls {index}"}}"#);
        let id = harness.let_through(&before("bash", &arguments));
        let report = after("bash", &arguments).metadata(Json::object().with("decision_id", id));
        // In one write, so that the second arrives before the first is on record.
        let line = Json::object()
            .with("jsonrpc", "2.0")
            .with("method", "ahp/event")
            .with("params", report.params())
            .to_string();
        harness.send(format!("{line}\n{line}").as_bytes());
    }
    harness.close();
    assert_eq!(alarms(&folder), [""; 0]);
    assert_eq!(outcomes(&folder, "s").len(), 20);
    let shown = session(&folder, "s");
    assert_eq!(of_kind(&shown, "observation").len(), 20, "said twice is on record, too");
}

#[test]
fn the_last_report_and_the_end_of_the_session_may_come_in_one_breath() {
    with_and_without_a_crash(|folder, between| {
        let mut harness = Harness::start(folder);
        let mut ids = Vec::new();
        for index in 0..10 {
            ids.push(harness.let_through(&before("bash", "{}").session(&format!("s{index}"))));
        }
        let mut harness = between(harness);
        for index in 0..10 {
            let name = format!("s{index}");
            let line = |event: Event| {
                Json::object()
                    .with("jsonrpc", "2.0")
                    .with("method", "ahp/event")
                    .with("params", event.session(&name).params())
                    .to_string()
            };
            let (report, end) = (line(after("bash", "{}")), line(Event::new("session_end", "{}")));
            harness.send(format!("{report}\n{end}").as_bytes());
        }
        harness.close();
        for (index, id) in ids.iter().enumerate() {
            let name = format!("s{index}");
            assert_eq!(outcomes(folder, &name), [bound(id, "ok", "arguments")]);
            let shown = session(folder, &name);
            let observed: Vec<&str> =
                of_kind(&shown, "observation").iter().map(|record| text(record, "code")).collect();
            assert_eq!(observed, ["session_end"], "of {name}");
        }
        assert_eq!(alarms(folder), [""; 0]);
    });
}

#[test]
fn reports_in_one_breath_close_one_decision_each() {
    with_and_without_a_crash(|folder, between| {
        let mut harness = Harness::start(folder);
        let ids: Vec<String> = (0..3).map(|_| harness.let_through(&before("bash", "{}"))).collect();
        let mut harness = between(harness);
        let named = after("bash", "{}").metadata(Json::object().with("decision_id", ids[0].as_str()));
        // The oldest is closed by its id, so the others cannot be that one any more.
        for event in [named, after("bash", "{}"), after("bash", "{}")] {
            harness.notify(&event);
        }
        harness.close();
        assert_eq!(
            outcomes(folder, "s"),
            [
                bound(&ids[0], "ok", "decision_id"),
                bound(&ids[1], "ok", "ambiguous"),
                bound(&ids[2], "ok", "arguments")
            ]
        );
        assert_eq!(alarms(folder), [""; 0]);
    });
}

#[test]
fn a_confirmation_is_not_taken_for_an_action_that_was_done() {
    with_and_without_a_crash(|folder, between| {
        let mut harness = Harness::start(folder);
        let confirmation = r#"{"session_id":"s","confirmation_type":"user_confirm","message":"ok?"}"#;
        assert_eq!(harness.word(&Event::new("confirmation", confirmation)), "approve");
        let id = harness.let_through(&before("bash", r#"{"command":"ls"}"#));
        let mut harness = between(harness);
        harness.notify(&Event::new("post_action", r#"{"result":{"success":true}}"#));
        harness.close();
        assert_eq!(outcomes(folder, "s"), [bound(&id, "ok", "oldest")]);
    });
}

#[test]
fn what_a_person_granted_is_reported_like_anything_else() {
    let folder = Folder::with_approver(POLICY);
    let deploy = before("deploy", r#"{"to":"prod"}"#);
    let mut harness = Harness::start(&folder);
    let approval = text(&harness.ask(&deploy), "approval_id").to_owned();
    assert_eq!(harness.word(&deploy), "defer");
    assert!(folder.run(&["approve", "allow", &approval]).status.success());
    let id = harness.let_through(&deploy);
    harness.kill();
    let mut harness = Harness::start(&folder);
    harness.notify(&after("deploy", r#"{"to":"prod"}"#));
    harness.close();
    assert_eq!(outcomes(&folder, "s"), [bound(&id, "ok", "arguments")]);
    assert_eq!(alarms(&folder), [""; 0]);
}
