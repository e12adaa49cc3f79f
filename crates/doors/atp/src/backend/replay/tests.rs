//! Tests of replay.

use std::sync::Arc;

use proptest::prelude::*;

use super::*;
use crate::backend::Recorder;

fn unchanged() -> SecretCutter {
    Arc::new(|value| value)
}

fn json(text: &str) -> Json {
    Json::parse(text.as_bytes()).unwrap()
}

const RECORDING: &str = r#"{"tool":"search","input":{"q":"a","n":1},"reply":{"status":"success","output":1}}

{"tool":"search","input":{"q":"a","n":1},"reply":{"status":"success","output":2}}
{"tool":"fail","input":{},"reply":{"status":"error","error":"no","error_code":"TIMEOUT"}}
"#;

#[test]
fn equal_calls_are_answered_in_their_recorded_order_and_others_fail() {
    let replay = Replay::read(RECORDING.as_bytes(), unchanged()).unwrap();
    let same = json(r#"{"n":1,"q":"a"}"#);
    assert_eq!(replay.next("search", &same), ToolResult::Success(json("1")));
    assert_eq!(replay.next("search", &same), ToolResult::Success(json("2")));
    assert!(
        matches!(replay.next("search", &same), ToolResult::Failed { error, .. } if error.contains("less often"))
    );
    assert!(
        matches!(replay.next("search", &json("{}")), ToolResult::Failed { error, .. } if error.contains("no call"))
    );
    assert_eq!(replay.next("other", &same), ToolResult::UnknownTool);
    assert!(matches!(
        replay.next("fail", &json("{}")),
        ToolResult::Failed { code: Some(ErrorCode::Timeout), .. }
    ));
    let names: Vec<String> = replay.tools().into_iter().map(|tool| tool.name).collect();
    assert_eq!(names, ["search", "fail"]);
}

#[test]
fn mistakes_name_their_line() {
    let problem = |text: &str| Replay::read(text.as_bytes(), unchanged()).err().unwrap().to_string();
    assert!(problem("\n{").starts_with("line 2 of the recording is not JSON"));
    assert!(problem(r#"{"tool":"a","input":{}}"#).starts_with("line 1 of the recording is no call"));
    assert!(problem(r#"{"tool":1,"input":{},"reply":{}}"#).starts_with("line 1 of the recording is no call"));
    assert!(
        problem(r#"{"tool":"a","input":{},"reply":{"status":"maybe"}}"#)
            .starts_with("line 1 of the recording has an invalid reply")
    );
}

/// A writer that others can look into.
#[derive(Clone, Default)]
struct Buffer(Arc<Mutex<Vec<u8>>>);

impl io::Write for Buffer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[tokio::test]
async fn secrets_are_cut_from_recordings_and_found_again() {
    #[expect(clippy::needless_pass_by_value, reason = "the type of the callback")]
    fn cut(value: Json) -> Json {
        json(&value.to_string().replace("hunter2hunter2", "[cut]"))
    }
    let buffer = Buffer::default();
    let recorder = Recorder::new(Box::new(buffer.clone()), Arc::new(cut));
    let input = json(r#"{"password":"hunter2hunter2"}"#);
    recorder.record("login", &input, &ToolResult::Success("hello hunter2hunter2".into())).await.unwrap();
    recorder.record("none", &input, &ToolResult::UnknownTool).await.unwrap();
    let text = String::from_utf8(buffer.0.lock().unwrap().clone()).unwrap();
    assert!(!text.contains("hunter2") && text.lines().count() == 1, "{text}");
    let replay = Replay::read(text.as_bytes(), Arc::new(cut)).unwrap();
    assert_eq!(replay.next("login", &input), ToolResult::Success("hello [cut]".into()));
}

fn any_json() -> impl Strategy<Value = Json> {
    let leaf = prop_oneof![
        Just(Json::Null),
        any::<bool>().prop_map(Json::from),
        any::<i64>().prop_map(Json::from),
        ".{0,8}".prop_map(Json::from),
    ];
    leaf.prop_recursive(3, 24, 4, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Json::Array),
            proptest::collection::btree_map("[a-c]{0,2}", inner, 0..4)
                .prop_map(|members| Json::Object(members.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn what_is_recorded_is_replayed(tool in "[ -~]{1,12}", input in any_json(), output in any_json()) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let buffer = Buffer::default();
        let recorder = Recorder::new(Box::new(buffer.clone()), unchanged());
        let result = ToolResult::Success(output);
        runtime.block_on(recorder.record(&tool, &input, &result)).unwrap();
        let replay = Replay::read(buffer.0.lock().unwrap().as_slice(), unchanged()).unwrap();
        prop_assert_eq!(replay.next(&tool, &input), result);
    }

    #[test]
    fn no_bytes_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _ = Replay::read(bytes.as_slice(), unchanged());
    }
}
