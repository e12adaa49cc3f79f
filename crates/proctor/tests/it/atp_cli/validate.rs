//! `proctor atp validate`: valid, valid with warnings, invalid.

use super::examples::{ERROR_RESPONSE, REQUEST, RESPONSE, events};
use super::{atp, json};

const EVENT: &str = r#"{"version":"1.0","task_id":"550e8400-e29b-41d4-a716-446655440000","timestamp":"2025-01-21T10:30:45Z","sequence":1,"event_type":"reasoning","payload":{"plan":["a"]}}"#;

const SMALL_RESPONSE: &str = r#"{"version":"1.0","task_id":"550e8400-e29b-41d4-a716-446655440000","status":"completed","artifacts":[],"metrics":{}}"#;

const SMALL_REQUEST: &str = r#"{"version":"1.0","task_id":"550e8400-e29b-41d4-a716-446655440000","task":{"description":"d","expected_artifacts":[{"name":"r"}]},"constraints":{"max_steps":1}}"#;

/// Exit code and standard output of a validation from standard input.
fn validate(kind: &str, text: &str, flags: &[&str]) -> (i32, String) {
    let output = atp(&[&["validate", kind, "-"], flags].concat(), text);
    (output.status.code().unwrap(), String::from_utf8(output.stdout).unwrap())
}

#[test]
fn the_documents_messages_are_valid_with_strict() {
    for flags in [&["--strict"][..], &[]] {
        assert_eq!(validate("request", REQUEST, flags), (0, "-: valid\n".to_owned()));
        assert_eq!(validate("response", ERROR_RESPONSE, flags), (0, "-: valid\n".to_owned()));
        // Size and hash of the document's own artifact are wrong, which never makes it invalid.
        let (code, text) = validate("response", RESPONSE, flags);
        assert_eq!(code, 0, "{text}");
        assert!(text.starts_with("-: valid with warnings\n"), "{text}");
        assert!(text.contains("  warning: $.artifacts[0].size_bytes: content has another size"), "{text}");
        assert!(text.contains("  warning: $.artifacts[0].content_hash: content has another hash"), "{text}");
        for event in events() {
            assert_eq!(validate("event", &event, flags).0, 0, "{event}");
        }
        let lines = events().join("\n");
        let expected =
            format!("-: {0} events: {0} valid, 0 valid with warnings, 0 invalid\n", events().len());
        assert_eq!(validate("event", &lines, flags), (0, expected));
    }
}

/// The text of the document itself, if it lies beside the repository: its own examples, ellipses included.
#[test]
fn the_documents_own_text_is_valid_with_strict() {
    let document = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/seeds/agent-test-protocol.txt");
    let Ok(document) = std::fs::read_to_string(document) else {
        println!("not run: the document is not there");
        return;
    };
    for (heading, kind) in [("### ATP Request", "request"), ("### ATP Response", "response")] {
        let rest = document.split_once(&format!("{heading}\n")).unwrap().1;
        let text = rest.split_once("```json\n").unwrap().1.split_once("```").unwrap().0;
        let (code, said) = validate(kind, text, &["--strict"]);
        assert_eq!(code, 0, "{said}");
    }
}

/// Each deviation of released agents: a change of a valid message, the warning's path and name.
#[test]
fn released_deviations_are_warnings_and_invalid_with_strict() {
    let uuid = "550e8400-e29b-41d4-a716-446655440000";
    for (kind, valid, old, new, path, name) in [
        ("request", SMALL_REQUEST, r#""version":"1.0","#, "", "$.version", "no_version"),
        ("response", SMALL_RESPONSE, r#""version":"1.0","#, "", "$.version", "no_version"),
        ("event", EVENT, r#""version":"1.0","#, "", "$.version", "no_version"),
        ("request", SMALL_REQUEST, uuid, "run-7", "$.task_id", "task_id_not_uuid"),
        ("response", SMALL_RESPONSE, uuid, "run_7", "$.task_id", "task_id_not_uuid"),
        ("event", EVENT, "45Z", "45.123", "$.timestamp", "time_without_zone"),
        ("request", SMALL_REQUEST, r#"{"max_steps":1}"#, "null", "$.constraints", "null_for_absent"),
        ("request", SMALL_REQUEST, "1}", "null}", "$.constraints.max_steps", "null_for_absent"),
        (
            "request",
            SMALL_REQUEST,
            r#"{"name":"r"}"#,
            r#""out/r.md""#,
            "$.task.expected_artifacts[0]",
            "expected_artifact_as_text",
        ),
        ("response", SMALL_RESPONSE, r#""artifacts":[],"#, "", "$.artifacts", "no_artifacts"),
        ("response", SMALL_RESPONSE, r#","metrics":{}"#, "", "$.metrics", "no_metrics"),
        ("event", EVENT, r#""sequence":1,"#, "", "$.sequence", "no_sequence"),
        ("event", EVENT, r#""timestamp":"2025-01-21T10:30:45Z","#, "", "$.timestamp", "no_timestamp"),
    ] {
        assert_eq!(validate(kind, valid, &["--strict"]).0, 0);
        let changed = valid.replacen(old, new, 1);
        assert_ne!(changed, valid, "{name}");
        let output = atp(&["validate", kind, "-", "--json"], &changed);
        let report = json(&output);
        assert_eq!((output.status.code(), report["valid"].as_bool()), (Some(0), Some(true)), "{changed}");
        assert_eq!(report["warnings"][0]["kind"], name, "{changed}");
        assert_eq!(report["warnings"][0]["path"], path, "{changed}");
        let (code, text) = validate(kind, &changed, &["--strict"]);
        assert_eq!(code, 10, "{changed}");
        assert!(text.starts_with("-: invalid\n") && text.contains(&format!("  invalid: {path}: ")), "{text}");
    }
}

/// Deviations that the document's schemas allow: warnings in both modes.
#[test]
fn deviations_that_the_schemas_allow_are_warnings_with_strict_too() {
    let file = |claim: &str| {
        let artifact = format!(r#"[{{"type":"file","path":"a","content":"abc",{claim}}}]"#);
        SMALL_RESPONSE.replace("[]", &artifact)
    };
    for (kind, text, path, name) in [
        ("event", EVENT.replace(r#"["a"]"#, r#""a, then b""#), "$.payload.plan", "plan_as_text"),
        ("response", file(r#""size_bytes":7"#), "$.artifacts[0].size_bytes", "size_mismatch"),
        ("response", file(r#""content_hash":"sha256:00""#), "$.artifacts[0].content_hash", "hash_mismatch"),
        ("response", file(r#""content_hash":"md5:00""#), "$.artifacts[0].content_hash", "hash_not_checked"),
    ] {
        for flags in [&["--json"][..], &["--json", "--strict"]] {
            let output = atp(&[&["validate", kind, "-"], flags].concat(), &text);
            let report = json(&output);
            assert_eq!(output.status.code(), Some(0), "{report}");
            assert_eq!(
                (&report["warnings"][0]["kind"], &report["warnings"][0]["path"]),
                (&name.into(), &path.into())
            );
        }
    }
    // A path that leaves the workspace is valid by the schema, and refused by runs.
    let escaping = file(r#""size_bytes":3"#).replace(r#""path":"a""#, r#""path":"../a""#);
    assert_eq!(validate("response", &escaping, &[]).0, 10);
    let (code, text) = validate("response", &escaping, &["--strict"]);
    assert!(code == 0 && text.contains("a run would refuse it"), "{text}");
}

/// A higher minor version may have event types of its own; another major version is refused.
#[test]
fn versions() {
    let unknown = EVENT.replace("reasoning", "thinking");
    assert_eq!(validate("event", &unknown, &[]).0, 10);
    let newer = unknown.replace("\"1.0\"", "\"1.4\"");
    let (code, text) = validate("event", &newer, &[]);
    assert!(
        code == 0 && text.contains("warning: $.event_type: event type is unknown, the event is kept"),
        "{text}"
    );
    for (kind, text) in [("request", SMALL_REQUEST), ("response", SMALL_RESPONSE), ("event", EVENT)] {
        for version in ["2.0", "0.9", "1", "v1.0"] {
            let other = text.replace("\"1.0\"", &format!("\"{version}\""));
            let (code, text) = validate(kind, &other, &[]);
            assert!(code == 10 && text.contains("  invalid: $.version: version "), "{text}");
        }
        assert_eq!(validate(kind, &text.replace("\"1.0\"", "\"1.9\""), &[]).0, 0);
    }
}

#[test]
fn invalid_messages_have_a_path_and_exit_10() {
    let deep = format!("{}{}", "[".repeat(200), "]".repeat(200));
    for (kind, text, expected) in [
        ("request", "{", "invalid: $: message is not valid JSON"),
        ("request", "", "invalid: $: message is not valid JSON"),
        ("request", "[]", "invalid: $: expected an object, found an array"),
        ("request", r#"{"version":"1.0","version":"1.0"}"#, "duplicate member `version`"),
        (
            "request",
            &SMALL_REQUEST.replace(r#""max_steps":1"#, r#""max_steps":0"#),
            "$.constraints.max_steps: must be from 1 to 1000",
        ),
        (
            "request",
            &SMALL_REQUEST.replace(r#""description":"d","#, ""),
            "$.task.description: required member is missing",
        ),
        ("request", &SMALL_REQUEST.replace(r#"{"name":"r"}"#, &deep), "nested deeper than 128 levels"),
        (
            "response",
            &SMALL_RESPONSE.replace("completed", "done"),
            "$.status: `done` is not one of completed, failed",
        ),
        (
            "response",
            &SMALL_RESPONSE.replace("[]", r#"[{"type":"file","path":"/etc/passwd"}]"#),
            "$.artifacts[0].path: ",
        ),
        (
            "response",
            &SMALL_RESPONSE.replace("[]", r#"[{"path":"a"}]"#),
            "$.artifacts[0].type: required member is missing",
        ),
        (
            "response",
            &SMALL_RESPONSE.replace("{}", r#"{"total_tokens":1.5}"#),
            "$.metrics.total_tokens: expected an integer",
        ),
        ("event", &EVENT.replace(":1,", ":-1,"), "$.sequence: must not be negative"),
        ("event", &EVENT.replace("45Z", "45 o'clock"), "$.timestamp: not an RFC 3339 date and time"),
        ("event", &EVENT.replace(r#"{"plan":["a"]}"#, "7"), "$.payload: expected an object"),
    ] {
        let (code, said) = validate(kind, text, &[]);
        assert_eq!(code, 10, "{text}: {said}");
        assert!(said.starts_with("-: invalid\n") && said.contains(expected), "{said}");
    }
}

#[test]
fn files_are_read_and_lines_of_events_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("events.jsonl");
    let bad = EVENT.replace("reasoning", "dancing");
    std::fs::write(&path, format!("{EVENT}\n\n{bad}\n{}\n", EVENT.replace("45Z", "45"))).unwrap();
    let path = path.to_str().unwrap();
    let output = atp(&["validate", "event", path], "");
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(10));
    assert!(
        text.starts_with(&format!("{path}: 3 events: 1 valid, 1 valid with warnings, 1 invalid\n")),
        "{text}"
    );
    assert!(text.contains("  line 3: invalid: $.event_type: `dancing` is not one of"), "{text}");
    assert!(text.contains("  line 4: warning: $.timestamp: time has no zone"), "{text}");
    let output = atp(&["validate", "event", "no-such-file"], "");
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("no-such-file: "));
}

#[test]
fn texts_of_a_message_cannot_move_the_cursor() {
    let (_, text) = validate("response", &SMALL_RESPONSE.replace("completed", "\\u001b[2J"), &[]);
    assert!(!text.contains('\u{1b}'), "{text}");
}
