use std::time::Instant;

use super::*;

fn manifest(tasks: &str) -> Json {
    let text = format!(r#"{{"version":"0.2","workflows":[{{"id":"w","name":"W","tasks":[{tasks}]}}]}}"#);
    Json::parse(text.as_bytes()).unwrap()
}

fn codes(manifest: &Json) -> Vec<(String, &'static str)> {
    findings(manifest).into_iter().map(|finding| (finding.path, finding.code)).collect()
}

#[test]
fn each_finding_has_its_code_and_path() {
    let tasks = r#"
        {"id":"a","target":{"session_target":"main","payload_kind":"agentTurn"},"schedule":{"cron":"nonsense","tz":"Mars/Base"}},
        {"id":"b","target":{"session_target":"isolated"},"schedule":{"cron":"0 0 31 2 *","tz":"europe/berlin"},
         "on_failure":{"target":{"payload_kind":"shellCommand"},"prompt":"x"}},
        {"id":"c","trigger":{"parent":"d","on":"success"}},
        {"id":"d","trigger":{"parent":"c","on":"success"},"prompt":"use sk-proj-Abcdefghijklmnopqrstuvwxyz0123456789ABCD"}
    "#;
    assert_eq!(
        codes(&manifest(tasks)),
        [
            ("$.workflows[0].tasks[0].target.payload_kind".to_owned(), "proctor_target_kind"),
            ("$.workflows[0].tasks[0].schedule.cron".to_owned(), "proctor_cron_invalid"),
            ("$.workflows[0].tasks[0].schedule.tz".to_owned(), "proctor_timezone_unknown"),
            ("$.workflows[0].tasks[1].schedule.cron".to_owned(), "proctor_cron_never_fires"),
            ("$.workflows[0].tasks[1].on_failure.target.payload_kind".to_owned(), "proctor_target_kind"),
            ("$.workflows[0].tasks[2].trigger.parent".to_owned(), "proctor_cycle"),
            ("$.workflows[0].tasks[3].prompt".to_owned(), "proctor_secret"),
        ]
    );
}

#[test]
fn the_secret_itself_is_in_no_finding() {
    let secret = "sk-proj-Abcdefghijklmnopqrstuvwxyz0123456789ABCD";
    let tasks = format!(
        r#"{{"id":"{secret}","schedule":{{"cron":"{secret}","tz":"{secret}"}},"trigger":{{"parent":"x"}}}},
           {{"id":"x","trigger":{{"parent":"{secret}"}}}}"#
    );
    let found = findings(&manifest(&tasks));
    assert!(found.len() >= 5, "{found:?}");
    assert!(!format!("{found:?}").contains("Abcdefghij"), "{found:?}");
}

#[test]
fn anything_at_all_can_be_looked_at() {
    for text in
        ["null", "[]", "7", r#"{"workflows":7}"#, r#"{"workflows":[null,{"tasks":[1,{"target":[]}]}]}"#]
    {
        assert_eq!(findings(&Json::parse(text.as_bytes()).unwrap()), []);
    }
}

#[test]
fn a_task_that_is_its_own_parent_is_left_to_the_protocol() {
    assert_eq!(codes(&manifest(r#"{"id":"a","trigger":{"parent":"a"}}"#)), []);
}

#[test]
fn each_circle_is_reported_once() {
    let tasks: Vec<String> =
        [("a", "b"), ("b", "c"), ("c", "a"), ("d", "a"), ("e", "f"), ("f", "e"), ("g", "none")]
            .iter()
            .map(|(id, parent)| format!(r#"{{"id":"{id}","trigger":{{"parent":"{parent}"}}}}"#))
            .collect();
    let found = findings(&manifest(&tasks.join(",")));
    assert_eq!(found.len(), 2, "{found:?}");
    assert!(found[0].message.contains("`a`, `b`, `c`"), "{found:?}");
}

#[test]
fn thousands_of_impossible_expressions_end_within_a_second() {
    let plain = (0..2000)
        .map(|number| format!("{} {} 31 2,{} *", number % 60, number / 60 % 24, [4, 6, 9, 11][number % 4]));
    let special = (0..500)
        .map(|number| format!("{} {} {} 31 2 +1#{}", number % 60, number / 60, number % 24, number % 5 + 1));
    for (expressions, count) in
        [(plain.collect::<Vec<String>>(), MAX_FINDINGS), (special.collect::<Vec<String>>(), 500)]
    {
        let tasks: Vec<String> = expressions
            .iter()
            .enumerate()
            .map(|(number, cron)| format!(r#"{{"id":"t{number}","schedule":{{"cron":"{cron}"}}}}"#))
            .collect();
        let manifest = manifest(&tasks.join(","));
        let start = Instant::now();
        let found = findings(&manifest);
        let time = start.elapsed();
        assert_eq!(found.len(), count, "the list is bounded");
        assert_eq!(found[0].code, "proctor_cron_never_fires");
        assert!(time.as_millis() < 1000, "{time:?}");
    }
}

#[test]
fn a_long_circle_is_found_in_linear_time() {
    let tasks: Vec<String> = (0..20_000)
        .map(|number| format!(r#"{{"id":"t{number}","trigger":{{"parent":"t{}"}}}}"#, (number + 1) % 20_000))
        .collect();
    let found = findings(&manifest(&tasks.join(",")));
    assert_eq!(found.len(), 1);
    assert!(found[0].message.contains("and 19990 more"), "{}", found[0].message);
}
