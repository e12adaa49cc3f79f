//! Tasks, triggers and failure handlers.

use super::*;

const FIRST: &str = "/workflows/0/tasks/0";
const SECOND: &str = "/workflows/0/tasks/1";

#[track_caller]
fn first(member: &str, value: &str, expected: &[&str]) {
    errors(&[(&format!("{FIRST}/{member}"), value)], expected);
}

#[track_caller]
fn second(member: &str, value: &str, expected: &[&str]) {
    errors(&[(&format!("{SECOND}/{member}"), value)], expected);
}

#[test]
fn shell_tasks_have_a_program_and_no_prompt() {
    first("prompt", "\"x\"", &["~[0].prompt prompt_forbidden"]);
    first("shell", "null", &["~[0].shell required"]);
    first("shell", "\"echo\"", &["~[0].shell not_an_object"]);
    first("shell", "{}", &["~[0].shell.program required"]);
    first(
        "shell",
        r#"{"program":"x","args":"a","cwd":"","stdin":1,"more":1}"#,
        &[
            "~[0].shell.args not_an_array",
            "~[0].shell.cwd empty",
            "~[0].shell.stdin not_a_string",
            "~[0].shell.more unknown_key",
        ],
    );
    first(
        "shell",
        r#"{"program":"x","args":["a","",null,1,"\u0001"],"stdin":"","cwd":"/a b"}"#,
        &[
            "~[0].shell.args[1] empty",
            "~[0].shell.args[2] required",
            "~[0].shell.args[3] not_a_string",
            "~[0].shell.args[4] control_characters",
        ],
    );
    first("target/payload_kind", "\"shellCommand\"", &[]);
    first("target/payload_kind", "\"agentTurn\"", &["~[0].target.payload_kind payload_kind_mismatch"]);
}

#[test]
fn prompt_tasks_have_a_prompt_and_no_program() {
    second("prompt", "null", &["~[1].prompt required"]);
    second("prompt", "\" \"", &["~[1].prompt empty"]);
    second(
        "shell",
        r#"{"program":"x","more":1}"#,
        &["~[1].shell shell_forbidden", "~[1].shell.more unknown_key"],
    );
    // The kind does not fit, but validation does not check that: compilation refuses it.
    second("target/payload_kind", "\"shellCommand\"", &[]);
    second(
        "target",
        r#"{"session_target":"elsewhere","payload_kind":"x","agent_id":"a b"}"#,
        &[
            "~[1].target.session_target not_in_list",
            "~[1].target.payload_kind not_in_list",
            "~[1].target.agent_id invalid_token",
        ],
    );
    second("target", "null", &["~[1].target required"]);
    second("target", "{}", &["~[1].target.session_target required"]);
}

#[test]
fn legacy_command_is_refused_even_when_null() {
    for value in ["null", "\"echo\"", "{}"] {
        first("command", value, &["~[0].command legacy_command"]);
    }
    errors(
        &[("/version", "\"0.1\""), (&format!("{SECOND}/on_failure/command"), "null")],
        &["~[1].on_failure.command legacy_command"],
    );
}

#[test]
fn exactly_one_of_schedule_and_trigger() {
    first("schedule", "null", &["~[0] schedule_or_trigger"]);
    first("trigger", r#"{"parent":"b","on":"success"}"#, &["~[0] schedule_or_trigger"]);
    first("schedule", "\"daily\"", &["~[0].schedule not_an_object"]);
    first("schedule", r#"{"tz":""}"#, &["~[0].schedule.cron required", "~[0].schedule.tz empty"]);
    // Neither cron nor time zone are understood by the protocol.
    first("schedule", r#"{"cron":"whenever","tz":"Mars/Base"}"#, &[]);
    errors(
        &[(&format!("{FIRST}/schedule"), "1"), (&format!("{FIRST}/trigger"), "1")],
        &["~[0].schedule not_an_object", "~[0].trigger not_an_object", "~[0] schedule_or_trigger"],
    );
}

#[test]
fn triggers_name_a_parent_of_the_workflow() {
    second("trigger", "{}", &["~[1].trigger.parent required", "~[1].trigger.on required"]);
    second("trigger", r#"{"parent":"b","on":"success"}"#, &["~[1].trigger.parent self_parent"]);
    second("trigger", r#"{"parent":"c","on":"success"}"#, &["~[1].trigger.parent unknown_parent"]);
    // Identifiers of handlers are no parents.
    second("trigger", r#"{"parent":"b.failure","on":"success"}"#, &["~[1].trigger.parent unknown_parent"]);
    second(
        "trigger",
        r#"{"parent":"a","on":"later","delay_s":-1,"condition":"x"}"#,
        &[
            "~[1].trigger.on not_in_list",
            "~[1].trigger.delay_s not_an_integer",
            "~[1].trigger.condition invalid_condition",
        ],
    );
    for (condition, code) in [
        ("contains:", Some("invalid_condition")),
        ("regex: ", Some("invalid_condition")),
        ("regex:(", Some("invalid_regex")),
        ("regex:(?<=a)b", None),
        ("contains:(", None),
    ] {
        let trigger = format!(r#"{{"parent":"a","on":"complete","condition":"{condition}"}}"#);
        let expected: Vec<_> = code.iter().map(|code| format!("~[1].trigger.condition {code}")).collect();
        let expected: Vec<_> = expected.iter().map(String::as_str).collect();
        second("trigger", &trigger, &expected);
    }
}

#[test]
fn longer_cycles_are_not_errors() {
    errors(
        &[
            (&format!("{FIRST}/schedule"), "-"),
            (&format!("{FIRST}/trigger"), r#"{"parent":"b","on":"failure"}"#),
        ],
        &[],
    );
}

#[test]
fn optional_blocks() {
    first("enabled", "1", &["~[0].enabled not_a_boolean"]);
    first(
        "model_policy",
        r#"{"provider":"a b","model":"","thinking":1}"#,
        &[
            "~[0].model_policy.provider invalid_token",
            "~[0].model_policy.model empty",
            "~[0].model_policy.thinking not_a_string",
        ],
    );
    first(
        "intent",
        r#"{"mode":"x","read_only":"no"}"#,
        &["~[0].intent.mode not_in_list", "~[0].intent.read_only not_a_boolean"],
    );
    first(
        "output",
        r#"{"preview_bytes":63,"offload":1,"retrieve":"x","format":"xml"}"#,
        &[
            "~[0].output.preview_bytes not_an_integer",
            "~[0].output.offload not_in_list",
            "~[0].output.retrieve not_in_list",
            "~[0].output.format not_in_list",
        ],
    );
    let budgets = r#"{"max_iterations":0,"max_fanout":0,"max_context_items":0,"max_pending_approvals":0,"max_queued_dispatches":0}"#;
    first(
        "budgets",
        budgets,
        &[
            "~[0].budgets.max_iterations not_an_integer",
            "~[0].budgets.max_fanout not_an_integer",
            "~[0].budgets.max_context_items not_an_integer",
            "~[0].budgets.max_pending_approvals not_an_integer",
            "~[0].budgets.max_queued_dispatches not_an_integer",
        ],
    );
    first(
        "reliability",
        r#"{"guarantee":"x","max_retries":-1,"overlap_policy":"x"}"#,
        &[
            "~[0].reliability.guarantee not_in_list",
            "~[0].reliability.max_retries not_an_integer",
            "~[0].reliability.overlap_policy not_in_list",
        ],
    );
    first(
        "approval",
        r#"{"required":1,"risk_level":"x","approver_scope":"a b","timeout_s":0,"auto":"x"}"#,
        &[
            "~[0].approval.required not_a_boolean",
            "~[0].approval.risk_level not_in_list",
            "~[0].approval.approver_scope invalid_token",
            "~[0].approval.timeout_s not_an_integer",
            "~[0].approval.auto not_in_list",
        ],
    );
    first(
        "context",
        r#"{"retrieval":"x","limit":0}"#,
        &["~[0].context.retrieval not_in_list", "~[0].context.limit not_an_integer"],
    );
    first("session", r#"{"preferred_key":"a b"}"#, &["~[0].session.preferred_key invalid_token"]);
    first(
        "contract",
        r#"{"sandbox":"x","allowed_paths":["/a",""],"network":"x","audit":"x","required_trust_level":"x","trust_enforcement":"x"}"#,
        &[
            "~[0].contract.sandbox not_in_list",
            "~[0].contract.allowed_paths[1] empty",
            "~[0].contract.network not_in_list",
            "~[0].contract.audit not_in_list",
            "~[0].contract.required_trust_level not_in_list",
            "~[0].contract.trust_enforcement not_in_list",
        ],
    );
    first(
        "verify",
        r#"{"timeout_seconds":1.5,"on_failure":"x"}"#,
        &[
            "~[0].verify.shell required",
            "~[0].verify.timeout_seconds not_an_integer",
            "~[0].verify.on_failure not_in_list",
        ],
    );
    first("auth_profile", "1", &["~[0].auth_profile not_a_string"]);
    first("delete_after_run", "1", &["~[0].delete_after_run not_a_boolean"]);
    for block in [
        "model_policy",
        "intent",
        "output",
        "budgets",
        "delivery",
        "reliability",
        "runtime",
        "approval",
        "context",
        "session",
        "identity",
        "contract",
        "authorization_proof",
        "authorization",
        "evidence",
        "verify",
        "on_failure",
    ] {
        for value in ["1", "[]", "\"x\"", "true"] {
            first(block, value, &[&format!("~[0].{block} not_an_object")]);
        }
    }
}

#[test]
fn announcements_need_a_receiver() {
    for mode in ["announce", "announce-always"] {
        first("delivery", &format!(r#"{{"mode":"{mode}"}}"#), &["~[0].delivery.to delivery_to_required"]);
        first("delivery", &format!(r#"{{"mode":"{mode}","channel":"c","to":"@x"}}"#), &[]);
    }
    first("delivery", r#"{"mode":"none"}"#, &[]);
    first(
        "delivery",
        r#"{"mode":"x","channel":"a b","to":" "}"#,
        &["~[0].delivery.mode not_in_list", "~[0].delivery.channel invalid_token", "~[0].delivery.to empty"],
    );
}

#[test]
fn duplicates_are_reported_before_and_after_expansion() {
    second(
        "id",
        "\"a\"",
        &["~[1].id duplicate_id", "~[1].id duplicate_expanded_id", "~[1].trigger.parent self_parent"],
    );
    second("on_failure/id", "\"a\"", &["~[1].on_failure.id duplicate_expanded_id"]);
    errors(
        &[(&format!("{SECOND}/id"), "\"a.failure\""), (&format!("{FIRST}/on_failure"), r#"{"prompt":"x"}"#)],
        &["~[1].id duplicate_expanded_id"],
    );
}

#[test]
fn handlers_infer_their_target() {
    second("on_failure", "{}", &["~[1].on_failure.prompt required"]);
    second("on_failure", r#"{"shell":{"program":"x"}}"#, &[]);
    second(
        "on_failure",
        r#"{"shell":{"program":"x"},"prompt":"y"}"#,
        &["~[1].on_failure.prompt prompt_forbidden"],
    );
    second(
        "on_failure",
        r#"{"shell":{"program":"x"},"target":{"session_target":"main"},"prompt":"y"}"#,
        &["~[1].on_failure.shell shell_forbidden"],
    );
    second("on_failure", r#"{"target":{"agent_id":"x"},"prompt":"y"}"#, &[]);
    second(
        "on_failure",
        r#"{"id":"a b","name":"","enabled":1,"prompt":"x","delay_s":0.5,"condition":"x","delete_after_run":1}"#,
        &[
            "~[1].on_failure.id invalid_identifier",
            "~[1].on_failure.name empty",
            "~[1].on_failure.enabled not_a_boolean",
            "~[1].on_failure.delay_s not_an_integer",
            "~[1].on_failure.condition invalid_condition",
            "~[1].on_failure.delete_after_run not_a_boolean",
        ],
    );
    for forbidden in
        ["schedule", "trigger", "on_failure", "verify", "auth_profile", "child_credential_policy"]
    {
        second(
            "on_failure",
            &format!(r#"{{"prompt":"x","{forbidden}":null}}"#),
            &[&format!("~[1].on_failure.{forbidden} unknown_key")],
        );
    }
}

#[test]
fn warnings_are_the_documented_ones() {
    warnings(
        &[(&format!("{SECOND}/approval"), r#"{"policy":"manual","required":true}"#)],
        &["~[1].approval approval_policy_and_required"],
    );
    warnings(&[(&format!("{SECOND}/approval"), r#"{"policy":"manual","required":null}"#)], &[]);
    let limits = |limit: &str, most: &str| {
        [
            (format!("{SECOND}/context"), format!("{{\"limit\":{limit}}}")),
            (format!("{SECOND}/budgets"), format!("{{\"max_context_items\":{most}}}")),
        ]
    };
    for (limit, most, differ) in [("3", "4", true), ("3", "3.0", false), ("null", "4", false)] {
        let changes = limits(limit, most);
        let changes: Vec<_> =
            changes.iter().map(|(pointer, value)| (pointer.as_str(), value.as_str())).collect();
        let expected: &[&str] = if differ { &["~[1].context.limit context_limits_differ"] } else { &[] };
        warnings(&changes, expected);
    }
    for intent in [r#"{"mode":"plan"}"#, r#"{"read_only":true}"#] {
        warnings(&[(&format!("{FIRST}/intent"), intent)], &["~[0].intent intent_not_enforced"]);
        warnings(&[(&format!("{SECOND}/intent"), intent)], &[]);
    }
    warnings(&[(&format!("{FIRST}/intent"), r#"{"mode":"execute","read_only":false}"#)], &[]);
    warnings(
        &[(&format!("{FIRST}/approval"), r#"{"required":true}"#)],
        &["~[0].approval.required root_approval"],
    );
    warnings(&[(&format!("{FIRST}/approval"), r#"{"required":false}"#)], &[]);
    warnings(&[(&format!("{FIRST}/approval"), r#"{"policy":"manual"}"#)], &[]);
    warnings(&[(&format!("{SECOND}/approval"), r#"{"required":true}"#)], &[]);
    // The warning of a root's approval comes after those of all tasks.
    warnings(
        &[
            (&format!("{FIRST}/approval"), r#"{"policy":"manual","required":true}"#),
            (&format!("{SECOND}/approval"), r#"{"policy":"manual","required":true}"#),
        ],
        &[
            "~[0].approval approval_policy_and_required",
            "~[1].approval approval_policy_and_required",
            "~[0].approval.required root_approval",
        ],
    );
}
