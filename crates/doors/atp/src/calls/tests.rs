//! Tests of the list of calls.

use proctor_wire::atp::tool::CallShape;

use super::*;

fn call(tool: &str, input: Json) -> Call {
    Call { tool: tool.to_owned(), input: Some(input), task_id: None, shape: CallShape::Document }
}

fn ended(output: Json) -> EndedCall {
    EndedCall {
        reply: Reply::success(output),
        status: CallStatus::Success,
        duration: Duration::from_millis(1),
        decision: None,
        outcome: Some(1),
        changed_input: None,
    }
}

const NOW: Timestamp = Timestamp::from_micros(0);

#[test]
fn clearing_hides_calls_from_the_agent_and_not_from_the_supervisor() {
    let calls = Calls::default();
    for name in ["a", "b", "a"] {
        let index = calls.begin(NOW, call(name, Json::Null), 10).unwrap();
        calls.end(index, ended(Json::Null)).unwrap();
    }
    calls.begin(NOW, call("running", Json::Null), 10).unwrap();
    let filter =
        |tool: Option<&str>, limit| RecordFilter { tool: tool.map(str::to_owned), task_id: None, limit };
    assert_eq!(calls.listed(&filter(None, None)).len(), 3, "a running call is not listed");
    assert_eq!(calls.listed(&filter(Some("a"), None)).len(), 2);
    let last: Vec<String> = calls.listed(&filter(None, Some(2))).into_iter().map(|it| it.call.tool).collect();
    assert_eq!(last, ["b", "a"]);
    assert_eq!((calls.clear(), calls.clear()), (3, 0));
    assert!(calls.listed(&filter(None, None)).is_empty());
    assert_eq!(calls.take().0.len(), 4);
}

#[test]
fn calls_over_the_limit_are_counted_and_only_the_first_is_new() {
    let calls = Calls::default();
    calls.begin(NOW, call("a", Json::Null), 1).unwrap();
    assert!(calls.begin(NOW, call("a", Json::Null), 1).unwrap_err().is_first);
    assert!(!calls.begin(NOW, call("a", Json::Null), 1).unwrap_err().is_first);
    let (kept, over_limit) = calls.take();
    assert_eq!((kept.len(), over_limit), (1, 2));
}

#[test]
fn memory_is_bounded_and_the_call_stays_listed() {
    let calls = Calls::default();
    calls.lock().kept = MAX_KEPT - 1_000;
    let large = || Json::from("x".repeat(2_000));
    let index = calls.begin(NOW, call("a", large()), 10).unwrap();
    let kept = calls.end(index, ended(large())).unwrap();
    assert!(kept.is_shortened && kept.call.input.is_none());
    assert_eq!(kept.output(), Some(&Json::Null));
    let index = calls.begin(NOW, call("a", Json::from("y")), 10).unwrap();
    assert!(!calls.end(index, ended(Json::from("z"))).unwrap().is_shortened, "what fits is kept");
}
