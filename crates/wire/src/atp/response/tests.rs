use super::*;
use crate::atp::artifact::{FileArtifact, StructuredArtifact};
use crate::atp::{Number, ReadError, Strictness, WarningKind};

const ID: &str = "550e8400-e29b-41d4-a716-446655440000";

fn response(members: &str) -> String {
    format!(r#"{{"version":"1.0","task_id":"{ID}","status":"completed"{members}}}"#)
}

fn with_artifacts(artifacts: &str) -> String {
    response(&format!(r#","metrics":{{}},"artifacts":[{artifacts}]"#))
}

fn paths(text: &str, strictness: Strictness) -> Vec<String> {
    match Response::parse(text.as_bytes(), strictness) {
        Err(ReadError::Invalid(findings)) => {
            findings.problems.listed().iter().map(|found| found.path.clone()).collect()
        }
        Ok(_) => Vec::new(),
        Err(other) => panic!("{other}"),
    }
}

fn warnings(text: &str) -> Vec<(WarningKind, u64)> {
    Response::parse(text.as_bytes(), Strictness::Lenient).unwrap().warnings.counts().collect()
}

#[test]
fn built_responses_are_strictly_valid() {
    let (data, cost) = (Json::object().with("x", 1u8), Json::Number("0.450".into()));
    let metrics = Metrics { total_steps: Some(3), cost_usd: Number::of(&cost), ..Metrics::default() };
    let built = Response::new(ID, Status::Failed)
        .with_artifact(&Artifact::Structured(StructuredArtifact { name: "n", schema: None, data: &data }))
        .with_artifact(&Artifact::File(FileArtifact { path: "a/b", ..FileArtifact::default() }))
        .with_metrics(&metrics)
        .with_error("no such tool", Some(&ErrorCode::ToolNotFound), Some(Json::object().with("tool", "t")))
        .with_trace_id("trace-1");
    let read = Response::parse(built.to_string().as_bytes(), Strictness::Strict).unwrap();
    assert!(read.warnings.is_empty());
    assert_eq!(read.message, built);
    assert_eq!(read.message.status(), Status::Failed);
    assert_eq!(read.message.metrics(), metrics);
    assert_eq!(read.message.metrics().cost_usd.unwrap().literal(), "0.450");
    assert_eq!(read.message.artifacts().map(|artifact| artifact.name()).collect::<Vec<_>>(), ["n", "a/b"]);
    assert_eq!(read.message.error(), Some("no such tool"));
    assert_eq!(read.message.error_code(), Some(ErrorCode::ToolNotFound));
    assert_eq!(read.message.error_details().unwrap()["tool"], "t");
    assert_eq!(read.message.trace_id(), Some("trace-1"));
}

#[test]
fn members_that_released_platforms_drop_are_kept() {
    let text = with_artifacts(
        r#"{"type":"structured","name":"n","schema":"s","data":{},"x":null},{"type":"reference","path":"/w/l.csv","content_hash":"sha256:00","y":[1.0]}"#,
    );
    let text = text.replace("\"completed\"", "\"partial\",\"extra\":{\"a\":1e2},\"error_code\":\"MINE\"");
    let read = Response::parse(text.as_bytes(), Strictness::Strict).unwrap();
    assert_eq!(read.message.to_string(), text);
    assert_eq!(read.message.error_code(), Some(ErrorCode::Other("MINE".to_owned())));
}

#[test]
fn absent_and_null_members_are_warnings() {
    assert_eq!(warnings(&response("")), [(WarningKind::NoArtifacts, 1), (WarningKind::NoMetrics, 1)]);
    assert_eq!(paths(&response(""), Strictness::Strict), ["$.artifacts", "$.metrics"]);
    let text = response(
        r#","artifacts":[{"type":"file","path":"a","content":null,"size_bytes":null,"other":null}],"metrics":{"cost_usd":null},"error":null,"trace_id":null"#,
    );
    assert_eq!(warnings(&text), [(WarningKind::NullForAbsent, 4)], "`error` may be null by the schema");
    let read = Response::parse(text.as_bytes(), Strictness::Lenient).unwrap();
    assert_eq!(
        read.message.to_string(),
        response(r#","artifacts":[{"type":"file","path":"a","other":null}],"metrics":{}"#)
    );
    assert_eq!(warnings(&response(r#","artifacts":null,"metrics":null"#)).len(), 2);
}

#[test]
fn bad_artifacts_are_named_by_path() {
    let good = r#"{"type":"file","path":"a"}"#;
    for (bad, member) in [
        (r#"{"type":"file","path":"../a"}"#, ".path"),
        (r#"{"type":"file","path":"/a"}"#, ".path"),
        (r#"{"type":"file"}"#, ".path"),
        (r#"{"type":"file","path":1}"#, ".path"),
        (r#"{"path":"a"}"#, ".type"),
        (r#"{"type":"archive","path":"a"}"#, ".type"),
        (r#"{"type":"structured","name":"n","data":[]}"#, ".data"),
        (r#"{"type":"structured","name":"n"}"#, ".data"),
        (r#"{"type":"structured","name":"a/b","data":{}}"#, ".name"),
        (r#"{"type":"structured","name":"","data":{}}"#, ".name"),
        (r#"{"type":"structured","name":"n","data":{},"schema":1}"#, ".schema"),
        (r#"{"type":"reference","path":"a\u0000"}"#, ".path"),
        (r#"{"type":"reference","path":"a","size_bytes":-1}"#, ".size_bytes"),
        (r#"{"type":"reference","path":"a","size_bytes":1.5}"#, ".size_bytes"),
        (r#"{"type":"reference","path":"a","content_hash":1}"#, ".content_hash"),
        ("1", ""),
    ] {
        let text = with_artifacts(&format!("{good},{good},{bad}"));
        assert_eq!(paths(&text, Strictness::Lenient), [format!("$.artifacts[2]{member}")], "{bad}");
    }
    for good in ["/abs/file", "https://host/x?y", "../x", "C:\\x"] {
        let text = with_artifacts(&format!(r#"{{"type":"reference","path":{}}}"#, Json::from(good)));
        assert!(paths(&text, Strictness::Lenient).is_empty(), "{good}");
    }
}

#[test]
fn paths_beyond_the_schema_are_warnings_in_strict_mode() {
    let read = Response::parse(
        with_artifacts(r#"{"type":"file","path":"../a","size_bytes":-1}"#).as_bytes(),
        Strictness::Strict,
    );
    assert_eq!(read.unwrap().warnings.count(WarningKind::RefusedInRuns), 2);
}

#[test]
fn limits_are_enforced_at_their_ends() {
    let error = |length: usize| {
        response(&format!(r#","artifacts":[],"metrics":{{}},"error":"{}""#, "e".repeat(length)))
    };
    let trace = |length: usize| {
        response(&format!(r#","artifacts":[],"metrics":{{}},"trace_id":"{}""#, "t".repeat(length)))
    };
    let artifacts = |count: usize| with_artifacts(&vec![r#"{"type":"file","path":"a"}"#; count].join(","));
    let content = |length: usize| {
        with_artifacts(&format!(r#"{{"type":"file","path":"a","content":"{}"}}"#, "c".repeat(length)))
    };
    let text = |name: &str, length: usize| {
        with_artifacts(&format!(r#"{{"type":"file","path":"a","{name}":"{}"}}"#, "x".repeat(length)))
    };
    let path =
        |length: usize| with_artifacts(&format!(r#"{{"type":"file","path":"{}"}}"#, "p".repeat(length)));
    let name = |length: usize| {
        with_artifacts(&format!(r#"{{"type":"structured","name":"{}","data":{{}}}}"#, "n".repeat(length)))
    };
    for (good, bad, at) in [
        (error(10_000), error(10_001), "$.error"),
        (trace(256), trace(257), "$.trace_id"),
        (artifacts(1_000), artifacts(1_001), "$.artifacts"),
        (content(10_000_000), content(10_000_001), "$.artifacts[0].content"),
        (text("content_type", 256), text("content_type", 257), "$.artifacts[0].content_type"),
        (text("content_hash", 128), text("content_hash", 129), "$.artifacts[0].content_hash"),
        (path(4096), path(4097), "$.artifacts[0].path"),
        (name(256), name(257), "$.artifacts[0].name"),
    ] {
        assert!(paths(&good, Strictness::Lenient).is_empty(), "{at}");
        assert_eq!(paths(&bad, Strictness::Lenient), [at]);
        assert!(paths(&bad, Strictness::Strict).is_empty(), "{at}");
    }
}

#[test]
fn metrics_are_numbers_of_their_kind() {
    let with = |metrics: &str| response(&format!(r#","artifacts":[],"metrics":{{{metrics}}}"#));
    for good in [
        r#""total_tokens":0"#,
        r#""tool_calls":3.0"#,
        r#""wall_time_seconds":120"#,
        r#""cost_usd":0.45"#,
        r#""mine":"x""#,
    ] {
        assert!(paths(&with(good), Strictness::Lenient).is_empty(), "{good}");
    }
    for (bad, is_schema) in [
        (r#""total_tokens":-1"#, false),
        (r#""total_tokens":1.5"#, true),
        (r#""total_tokens":"5""#, true),
        (r#""llm_calls":99999999999999999999"#, false),
        (r#""cost_usd":-0.1"#, false),
        (r#""cost_usd":1e999"#, false),
        (r#""cost_usd":"1""#, true),
        (r#""cache_read_tokens":"1""#, false),
    ] {
        assert_eq!(paths(&with(bad), Strictness::Lenient).len(), 1, "{bad}");
        assert_eq!(paths(&with(bad), Strictness::Strict).is_empty(), !is_schema, "{bad}");
    }
}

#[test]
fn mismatches_of_content_are_warnings_in_both_modes() {
    let text = with_artifacts(
        r#"{"type":"file","path":"a","size_bytes":4,"content_hash":"sha256:00","content":"hello"},{"type":"file","path":"b","content_hash":"crc:1","content":"x"}"#,
    );
    for strictness in [Strictness::Lenient, Strictness::Strict] {
        let read = Response::parse(text.as_bytes(), strictness).unwrap();
        let listed: Vec<(&str, WarningKind)> =
            read.warnings.listed().iter().map(|warning| (warning.path.as_str(), warning.kind)).collect();
        assert_eq!(
            listed,
            [
                ("$.artifacts[0].size_bytes", WarningKind::SizeMismatch),
                ("$.artifacts[0].content_hash", WarningKind::HashMismatch),
                ("$.artifacts[1].content_hash", WarningKind::HashNotChecked)
            ]
        );
    }
}

#[test]
fn statuses_and_codes_are_checked() {
    for status in Status::ALL {
        let text = response("").replace("completed", status.as_str());
        let read = Response::parse(text.as_bytes(), Strictness::Lenient).unwrap();
        assert_eq!(read.message.status(), status);
    }
    for bad in ["\"done\"", "\"Completed\"", "1", "null"] {
        let text = format!(r#"{{"task_id":"t","status":{bad}}}"#);
        assert_eq!(paths(&text, Strictness::Lenient), ["$.status"], "{bad}");
    }
    for bad in [r#","error_code":5"#, r#","error_details":[]"#, r#","error":{}"#] {
        assert_eq!(paths(&response(bad), Strictness::Lenient).len(), 1, "{bad}");
    }
}

#[test]
fn more_problems_than_are_listed_are_counted() {
    let text = with_artifacts(&vec!["1"; 500].join(","));
    let Err(ReadError::Invalid(findings)) = Response::parse(text.as_bytes(), Strictness::Lenient) else {
        panic!("invalid")
    };
    assert_eq!((findings.problems.listed().len(), findings.problems.total()), (100, 500));
    assert!(ReadError::Invalid(findings).to_string().ends_with("and 499 more"));
}
