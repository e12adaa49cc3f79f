use proctor_core::json::Json;
use proctor_core::time::Timestamp;
use proptest::prelude::*;

use super::*;
use crate::atp::{ErrorCode, ReadError};

fn problems(error: ReadError) -> Vec<String> {
    match error {
        ReadError::Invalid(findings) => {
            findings.problems.listed().iter().map(|found| found.path.clone()).collect()
        }
        other => panic!("{other}"),
    }
}

fn named(tool: &str) -> Route {
    Route::CallNamed { tool: tool.to_owned() }
}

#[test]
fn routes_of_the_document_and_of_released_platforms() {
    let filter = RecordFilter { tool: Some("a b".to_owned()), task_id: Some("t".to_owned()), limit: Some(5) };
    for (method, path, query, route) in [
        ("POST", "/web_search", "", named("web_search")),
        ("POST", "web_search", "", named("web_search")),
        ("POST", "/a%2Fb%20c", "", named("a/b c")),
        ("POST", "/tools", "", named("tools")),
        ("POST", "/health", "", named("health")),
        ("POST", "/tools/call", "", Route::Call),
        ("GET", "/tools", "", Route::Tools),
        ("GET", "/tools/web_search", "", Route::Tool { tool: "web_search".to_owned() }),
        ("GET", "/tools/call", "", Route::Tool { tool: "call".to_owned() }),
        ("GET", "/records", "", Route::Records(RecordFilter::default())),
        ("GET", "/records", "tool=a+b&task_id=t&limit=5&other=1", Route::Records(filter)),
        ("DELETE", "/records", "", Route::ClearRecords),
        ("GET", "/health", "", Route::Health),
    ] {
        assert_eq!(Route::parse(method, path, query), Ok(route), "{method} {path}");
    }
    for (method, path, query, error) in [
        ("POST", "/", "", RouteError::UnknownPath),
        ("POST", "", "", RouteError::UnknownPath),
        ("POST", "/a/b", "", RouteError::UnknownPath),
        ("POST", "/tools/call/x", "", RouteError::UnknownPath),
        ("GET", "/web_search", "", RouteError::WrongMethod { allowed: "POST" }),
        ("POST", "/tools/web_search", "", RouteError::WrongMethod { allowed: "GET" }),
        ("POST", "/a%2", "", RouteError::Malformed),
        ("POST", "/a%ff", "", RouteError::Malformed),
        ("POST", "/a%00", "", RouteError::Malformed),
        ("GET", "/records", "limit=-1", RouteError::Malformed),
    ] {
        assert_eq!(Route::parse(method, path, query), Err(error), "{method} {path}");
    }
    assert_eq!(Route::parse("POST", &"x".repeat(257), ""), Err(RouteError::Malformed));
}

#[test]
fn calls_in_both_shapes() {
    let call = Call::read(&named("t"), br#"{"task_id":"id","input":{"n":1.0},"more":1}"#).unwrap();
    let input = Json::parse(br#"{"n":1.0}"#).unwrap();
    let expected = Call {
        tool: "t".to_owned(),
        input: Some(input),
        task_id: Some("id".to_owned()),
        shape: CallShape::Document,
    };
    assert_eq!(call, expected);
    assert_eq!(call.to_json().to_string(), r#"{"task_id":"id","input":{"n":1.0}}"#);
    let call = Call::read(&Route::Call, br#"{"tool":"t","input":"text","task_id":null}"#).unwrap();
    let expected =
        Call { tool: "t".to_owned(), input: Some("text".into()), task_id: None, shape: CallShape::Released };
    assert_eq!(call, expected);
    assert_eq!(call.to_json().to_string(), r#"{"tool":"t","input":"text"}"#);
    assert_eq!(Call::read(&named("t"), br#"{"input":null}"#).unwrap().input, None);
    assert!(Call::read(&named("t"), br#"{"tool":"t"}"#).is_ok());
}

#[test]
fn bad_calls_are_refused_with_paths() {
    let refused = |route: &Route, body: &str| problems(Call::read(route, body.as_bytes()).unwrap_err());
    assert_eq!(refused(&Route::Call, "{}"), ["$.tool"]);
    assert_eq!(refused(&Route::Call, r#"{"tool":"","task_id":5}"#), ["$.tool", "$.task_id"]);
    assert_eq!(refused(&Route::Call, r#"{"tool":"a\nb"}"#), ["$.tool"]);
    assert_eq!(refused(&named("t"), r#"{"tool":"u"}"#), ["$.tool"], "one call, two tools");
    assert_eq!(refused(&named("t"), "[]"), ["$"]);
    assert!(matches!(Call::read(&named("t"), b"{"), Err(ReadError::Json(_))));
    assert!(matches!(
        Call::read(&named("t"), &vec![b' '; crate::atp::limits::MAX_MESSAGE + 1]),
        Err(ReadError::TooLarge { .. })
    ));
}

#[test]
fn replies_follow_the_shape_of_the_call() {
    let document = Call::read(&named("t"), b"{}").unwrap();
    let released = Call::read(&Route::Call, br#"{"tool":"t"}"#).unwrap();
    let success = Reply::success(Json::object().with("x", 1u8)).with_duration_ms(12);
    let details = Json::object().with("available_tools", vec![Json::from("web_search")]);
    let error = Reply::error("no such tool", ErrorCode::ToolNotFound, Some(details));
    for (reply, call, text) in [
        (&success, &document, r#"{"status":"success","output":{"x":1},"duration_ms":12}"#),
        (&success, &released, r#"{"tool":"t","status":"success","output":{"x":1},"duration_ms":12}"#),
        (
            &error,
            &document,
            r#"{"status":"error","error":"no such tool","error_code":"TOOL_NOT_FOUND","error_details":{"available_tools":["web_search"]}}"#,
        ),
    ] {
        assert_eq!(reply.to_json(call).to_string(), text);
        assert_eq!(&Reply::read(text.as_bytes()).unwrap(), reply);
    }
    let released =
        Reply::read(br#"{"tool":"t","status":"error","output":null,"error":"e","duration_ms":0.25}"#)
            .unwrap();
    assert_eq!(
        released.outcome,
        Outcome::Error { error: "e".to_owned(), code: None, details: None, output: None }
    );
    assert_eq!(
        problems(Reply::read(br#"{"status":"maybe","duration_ms":-1}"#).unwrap_err()),
        ["$.status", "$.duration_ms"]
    );
    assert_eq!(problems(Reply::read(b"{}").unwrap_err()), ["$.status"]);
}

fn record(tool: &str, task_id: Option<&str>, second: i64) -> Record {
    Record {
        timestamp: Timestamp::from_micros(second * 1_000_000),
        call: Call {
            tool: tool.to_owned(),
            input: Some(Json::object()),
            task_id: task_id.map(str::to_owned),
            shape: CallShape::Document,
        },
        reply: Reply::success("o".into()),
    }
}

#[test]
fn records_are_selected_from_the_end() {
    let all = [
        record("a", Some("1"), 1),
        record("b", Some("1"), 2),
        record("a", None, 3),
        record("a", Some("1"), 4),
    ];
    let select = |filter: RecordFilter| -> Vec<i64> {
        filter.select(&all).iter().map(|record| record.timestamp.micros() / 1_000_000).collect()
    };
    assert_eq!(select(RecordFilter::default()), [1, 2, 3, 4]);
    assert_eq!(select(RecordFilter { limit: Some(2), ..RecordFilter::default() }), [3, 4]);
    assert_eq!(select(RecordFilter { tool: Some("a".to_owned()), ..RecordFilter::default() }), [1, 3, 4]);
    assert_eq!(
        select(RecordFilter { tool: Some("a".to_owned()), task_id: Some("1".to_owned()), limit: Some(1) }),
        [4]
    );
    assert_eq!(
        records(&all[..1]).to_string(),
        r#"{"records":[{"timestamp":"1970-01-01T00:00:01.000000Z","tool":"a","input":{},"output":"o","status":"success","task_id":"1"}],"total":1}"#
    );
}

#[test]
fn listings() {
    let info = ToolInfo { name: "a", description: None };
    assert_eq!(tools([info]).to_string(), r#"{"tools":[{"name":"a"}]}"#);
    assert_eq!(cleared(3).to_string(), r#"{"cleared":3}"#);
    assert_eq!(healthy().to_string(), r#"{"status":"healthy"}"#);
    assert_eq!(not_found("a").to_string(), r#"{"detail":"Tool not found: a"}"#);
}

proptest! {
    #[test]
    fn nothing_panics(method in "GET|POST|DELETE|PUT", path in "[a-z/%0-9.]{0,20}|\\PC{0,10}", query in "[a-z=&%+0-9_]{0,20}", body in "[{}\\[\\]\",:a-z0-9]{0,30}|\\PC{0,20}") {
        if let Ok(route) = Route::parse(&method, &path, &query) {
            let _ = Call::read(&route, body.as_bytes());
        }
        let _ = Reply::read(body.as_bytes());
    }
}
