use super::*;

fn refused(manifest: &Json, target: Target) -> Vec<(String, &'static str)> {
    match compile(manifest, target, false) {
        Ok(_) => Vec::new(),
        Err(failure) => {
            assert_eq!((failure.code.word(), failure.code.rpc_code()), ("validation_error", -32602));
            let findings = failure.validation.expect("findings").errors;
            findings.into_iter().map(|finding| (finding.path, finding.code)).collect()
        }
    }
}

fn paths(manifest: &Json) -> Vec<String> {
    refused(manifest, Target::OpenclawScheduler).into_iter().map(|(path, _)| path).collect()
}

#[test]
fn a_prompt_cannot_be_a_shell_command() {
    let task = prompt("").replace("\"isolated\"}", "\"isolated\",\"payload_kind\":\"shellCommand\"}");
    let manifest = manifest("", "", &task);
    assert!(validate(&manifest).is_ok(), "validation stays ok");
    for target in Target::ALL {
        let expected = ("$.workflows[0].tasks[0].target.payload_kind".to_owned(), "compile_payload_kind");
        assert_eq!(refused(&manifest, target), [expected]);
    }
}

#[test]
fn the_index_counts_expanded_tasks() {
    let first = prompt("").replace(r#""id":"t""#, r#""on_failure":{"prompt":"h"},"id":"a""#);
    let second = shell(r#""stdin":"","#);
    assert_eq!(
        paths(&manifest("", "", &format!("{first},{second}"))),
        ["$.workflows[0].tasks[2].shell.stdin"]
    );
}

#[test]
fn environment_input_and_the_sentinel_are_refused_by_the_scheduler_alone() {
    for (task, field) in [
        (shell(r#""env":{"A":"1"},"#), "shell.env"),
        (shell(r#""stdin":"x","#), "shell.stdin"),
        (prompt("").replace("0 9 * * *", "0 0 31 2 *"), "schedule.cron"),
    ] {
        let manifest = manifest("", "", &task);
        assert_eq!(paths(&manifest), [format!("$.workflows[0].tasks[0].{field}")]);
        assert_eq!(refused(&manifest, Target::Standalone), []);
    }
    assert!(paths(&manifest("", "", &shell(r#""env":{},"#))).is_empty());
}

/// A task with a text of some length in one field.
type TaskWith = fn(&str) -> String;

#[test]
fn long_strings_are_refused_at_their_column() {
    let cases: [(&str, usize, TaskWith); 10] = [
        ("name", 200, |long| prompt("").replace(r#""name":"T""#, &format!(r#""name":"{long}""#))),
        ("payload_message", 100_000, |long| {
            prompt("").replace(r#""prompt":"p""#, &format!(r#""prompt":"{long}""#))
        }),
        ("agent_id", 128, |long| {
            prompt("").replace("\"isolated\"}", &format!("\"isolated\",\"agent_id\":\"{long}\"}}"))
        }),
        ("schedule_cron", 128, |long| prompt("").replace("0 9 * * *", long)),
        ("schedule_tz", 128, |long| {
            prompt("").replace("\"0 9 * * *\"", &format!("\"0 9 * * *\",\"tz\":\"{long}\""))
        }),
        ("delivery_channel", 64, |long| prompt(&format!(r#""delivery":{{"channel":"{long}"}},"#))),
        ("delivery_to", 256, |long| prompt(&format!(r#""delivery":{{"to":"{long}"}},"#))),
        ("payload_model", 256, |long| prompt(&format!(r#""model_policy":{{"model":"{long}"}},"#))),
        ("payload_thinking", 64, |long| prompt(&format!(r#""model_policy":{{"thinking":"{long}"}},"#))),
        ("preferred_session_key", 512, |long| prompt(&format!(r#""session":{{"preferred_key":"{long}"}},"#))),
    ];
    for (column, limit, task) in cases {
        assert_eq!(paths(&manifest("", "", &task(&"x".repeat(limit)))), [""; 0], "{column}");
        let expected = format!("$.workflows[0].tasks[0].{column}");
        assert_eq!(paths(&manifest("", "", &task(&"x".repeat(limit + 1)))), [expected], "{column}");
    }
    let condition = |length: usize| {
        let triggered = prompt("").replace(r#""id":"t""#, r#""id":"u""#).replace(
            r#""schedule":{"cron":"0 9 * * *"}"#,
            &format!(
                r#""trigger":{{"parent":"t","on":"success","condition":"contains:{}"}}"#,
                "x".repeat(length - 9)
            ),
        );
        manifest("", "", &format!("{},{triggered}", prompt("")))
    };
    assert_eq!(paths(&condition(1024)), [""; 0]);
    assert_eq!(paths(&condition(1025)), ["$.workflows[0].tasks[1].trigger_condition"]);
}

#[test]
fn lengths_are_counted_in_utf16_units() {
    let named =
        |name: &str| manifest("", "", &prompt("").replace(r#""name":"T""#, &format!(r#""name":"{name}""#)));
    assert_eq!(paths(&named(&"é".repeat(200))), [""; 0]);
    assert_eq!(paths(&named(&"😀".repeat(100))), [""; 0]);
    assert_eq!(paths(&named(&"😀".repeat(101))), ["$.workflows[0].tasks[0].name"]);
}

#[test]
fn downscoped_children_need_a_scope() {
    let child = |members: &str| {
        prompt(members)
            .replace(r#""id":"t""#, r#""id":"c""#)
            .replace(r#""schedule":{"cron":"0 9 * * *"}"#, r#""trigger":{"parent":"t","on":"success"}"#)
    };
    let with = |workflow: &str, parent: &str, own: &str| {
        manifest("", workflow, &format!("{},{}", prompt(parent), child(own)))
    };
    let downscope = r#""child_credential_policy":"downscope","#;
    let scope = ["$.workflows[0].tasks[1].identity.scope"];
    assert_eq!(paths(&with(downscope, "", "")), scope);
    assert_eq!(paths(&with("", downscope, "")), scope);
    assert_eq!(paths(&with("", "", downscope)), scope);
    assert_eq!(paths(&with(downscope, r#""child_credential_policy":"inherit","#, "")), [""; 0]);
    assert_eq!(paths(&with("", downscope, r#""child_credential_policy":"none","#)), [""; 0]);
    assert_eq!(paths(&with(downscope, "", r#""identity":{"scope":"s"},"#)), [""; 0]);
}

#[test]
fn an_output_beyond_the_bound_is_refused() {
    let claims = format!(r#"{{"a":"{}"}}"#, "x".repeat(100_000));
    let proofs =
        format!(r#""authorization_proof_profiles":[{{"id":"p","method":"none","claims":{claims}}}],"#);
    let tasks: Vec<String> =
        (0..2000).map(|index| prompt("").replace(r#""id":"t""#, &format!(r#""id":"t{index}""#))).collect();
    let bomb = manifest(&proofs, r#""authorization_proof":{"ref":"p"},"#, &tasks.join(","));
    for target in Target::ALL {
        let errors = refused(&bomb, target);
        assert_eq!(errors.len(), 1);
        assert_eq!(errors[0].1, "compile_too_large");
    }
}
