use super::*;

fn parse(text: &str) -> Json {
    Json::parse(text.as_bytes()).expect("JSON")
}

fn expanded(task: &str) -> Json {
    let manifest =
        parse(&format!(r#"{{"version":"0.2","workflows":[{{"id":"w","name":"W","tasks":[{task}]}}]}}"#));
    expand(&manifest).pointer("/workflows/0/tasks").expect("tasks").clone()
}

#[test]
fn compiled_ids_are_the_documented_ones() {
    assert_eq!(compiled_id("daily-report", "collect"), "147376ec2ccf87ebb2cae199b6128b4e");
    assert_eq!(compiled_id("w", "a"), "052614887028d2817a96c111b2c01c43");
    assert_eq!(compiled_id("w", "a.failure"), "9d2df190510038077aebdb9f9da6875b");
}

#[test]
fn a_handler_follows_its_parent_with_everything_inferred() {
    let tasks = expanded(
        r#"{"id":"a","name":"A","enabled":false,"target":{"session_target":"shell","agent_id":"ops"},
            "shell":{"program":"x"},"schedule":{"cron":"* * * * *"},"on_failure":{"prompt":"triage"}}"#,
    );
    let [parent, handler] = tasks.as_array().expect("two tasks") else { panic!("{tasks}") };
    assert!(parent.get("on_failure").is_none());
    assert_eq!(
        handler.to_string(),
        concat!(
            r#"{"id":"a.failure","name":"A Failure Handler","enabled":false,"#,
            r#""target":{"session_target":"isolated","agent_id":"ops"},"prompt":"triage","#,
            r#""trigger":{"parent":"a","on":"failure","delay_s":0,"condition":null}}"#
        )
    );
}

#[test]
fn a_handlers_own_members_win() {
    let tasks = expanded(
        r#"{"id":"a","name":"A","target":{"session_target":"main"},"prompt":"p","schedule":{"cron":"* * * * *"},
            "on_failure":{"id":"h","name":"H","enabled":true,"shell":{"program":"true"},"delay_s":5,"condition":"contains:x",
            "target":{"agent_id":"b","payload_kind":"shellCommand"},"identity":{"ref":"i"},"delete_after_run":true,
            "verify":{"shell":"no"},"auth_profile":"no"}}"#,
    );
    assert_eq!(
        tasks.as_array().expect("tasks")[1].to_string(),
        concat!(
            r#"{"id":"h","name":"H","enabled":true,"#,
            r#""target":{"session_target":"shell","agent_id":"b","payload_kind":"shellCommand"},"#,
            r#""shell":{"program":"true"},"identity":{"ref":"i"},"delete_after_run":true,"#,
            r#""trigger":{"parent":"a","on":"failure","delay_s":5,"condition":"contains:x"}}"#
        )
    );
}

#[test]
fn an_empty_prompt_and_an_absent_handler_add_nothing() {
    let tasks = expanded(r#"{"id":"a","name":"A","on_failure":{"prompt":""}}"#);
    assert!(tasks.as_array().expect("tasks")[1].get("prompt").is_none());
    let tasks = expanded(r#"{"id":"a","name":"A","on_failure":null}"#);
    assert_eq!(tasks.to_string(), r#"[{"id":"a","name":"A"}]"#);
}

#[test]
fn expansion_is_idempotent_and_agrees_with_the_borrowed_form() {
    let manifest = parse(
        r#"{"version":"0.2","workflows":[{"id":"w","name":"W","tasks":[
            {"id":"a","name":"A","on_failure":{"prompt":"p"}},{"id":"b","name":"B"}]}]}"#,
    );
    let once = expand(&manifest);
    assert_eq!(expand(&once), once);
    let workflow = manifest.pointer("/workflows/0").expect("workflow");
    let ids: Vec<String> =
        tasks(workflow).iter().filter_map(|task| text(task, "id").map(str::to_owned)).collect();
    assert_eq!(ids, ["a", "a.failure", "b"]);
}
