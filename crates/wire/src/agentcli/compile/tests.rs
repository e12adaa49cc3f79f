mod laws;
mod refusals;
mod scheduler;
mod standalone;

use super::*;

fn parse(text: &str) -> Json {
    Json::parse(text.as_bytes()).expect("JSON")
}

/// A manifest of version 0.2 with these members of the document and the workflow, and these tasks.
fn manifest(top: &str, workflow: &str, tasks: &str) -> Json {
    parse(&format!(
        r#"{{"version":"0.2",{top}"workflows":[{{"id":"w","name":"W",{workflow}"tasks":[{tasks}]}}]}}"#
    ))
}

/// A prompt task on a schedule with these members.
fn prompt(members: &str) -> String {
    format!(
        r#"{{"id":"t","name":"T","target":{{"session_target":"isolated"}},"prompt":"p",{members}"schedule":{{"cron":"0 9 * * *"}}}}"#
    )
}

/// A shell task on a schedule with these members of the command.
fn shell(members: &str) -> String {
    format!(
        r#"{{"id":"t","name":"T","target":{{"session_target":"shell"}},"shell":{{{members}"program":"x"}},"schedule":{{"cron":"0 9 * * *"}}}}"#
    )
}

fn compiled(manifest: &Json, target: Target) -> Json {
    compile(manifest, target, false).unwrap_or_else(|failure| panic!("{failure}: {:?}", failure.validation))
}

fn first_job(manifest: &Json) -> Json {
    compiled(manifest, Target::OpenclawScheduler).pointer("/jobs/0").expect("a job").clone()
}

fn first_task(manifest: &Json) -> Json {
    compiled(manifest, Target::Standalone).pointer("/workflows/0/tasks/0").expect("a task").clone()
}

#[test]
fn targets_have_their_documented_names() {
    for target in Target::ALL {
        assert_eq!(Target::of_word(target.word()), Some(target));
    }
    assert_eq!(Target::of_word("proctor"), None);
}

#[test]
fn an_invalid_manifest_is_refused_with_its_findings() {
    let failure =
        compile(&parse(r#"{"version":"0.2"}"#), Target::Standalone, false).expect_err("no workflows");
    assert_eq!(failure.code.word(), "validation_error");
    assert!(!failure.validation.expect("findings").is_ok());
}

#[test]
fn names_carry_the_workflow_only_where_there_are_several() {
    let task = prompt("");
    let two = parse(&format!(
        r#"{{"version":"0.2","workflows":[{{"id":"a","name":"A","tasks":[{task}]}},{{"id":"b","name":"B","tasks":[{task}]}}]}}"#
    ));
    assert_eq!(compiled(&two, Target::OpenclawScheduler).pointer("/jobs/1/name"), Some(&"B: T".into()));
    assert_eq!(compiled(&two, Target::Standalone).pointer("/workflows/1/tasks/0/name"), Some(&"B: T".into()));
    assert_eq!(first_job(&manifest("", "", &task))["name"], "T");
}

#[test]
fn the_output_names_version_0_2_for_old_manifests_too() {
    let old = parse(&format!(
        r#"{{"version":"0.1","workflows":[{{"id":"w","name":"W","tasks":[{}]}}]}}"#,
        prompt("")
    ));
    for target in Target::ALL {
        assert_eq!(compiled(&old, target)["version"], "0.2");
    }
}
