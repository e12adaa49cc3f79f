//! Validation of traces: the order of the rules, and the limits.

use serde_json::{Value, json};

use crate::support::attest::{Engine, Place, contains, trace};

/// Code and message of the refusal of a trace; 0 if it is judged.
fn judged(engine: &mut Engine, trace: &Value, assertions: &Value) -> (i64, String) {
    let reply = engine.ask("evaluate_batch", &json!({"trace": trace, "assertions": assertions}));
    match reply.get("error") {
        None => (0, String::new()),
        Some(error) => {
            (error["code"].as_i64().unwrap(), error["data"]["detail"].as_str().unwrap().to_owned())
        }
    }
}

/// The trace with a member replaced; without it if the value is missing.
fn with(member: &str, value: Option<Value>) -> Value {
    let mut changed = trace("t");
    match value {
        Some(value) => changed[member] = value,
        None => drop(changed.as_object_mut().unwrap().remove(member)),
    }
    changed
}

fn step(members: &Value) -> Value {
    with("steps", Some(json!([members])))
}

#[test]
fn members_and_their_types() {
    let place = Place::new();
    let mut engine = place.ready(&[]);
    for accepted in [
        with("schema_version", None),
        with("schema_version", Some(json!(0))),
        with("schema_version", Some(json!(1.0))),
        with("schema_version", Some(Value::Null)),
        with("trace_id", Some(json!("  spaces around  "))),
        with("agent_id", None),
        with("agent_id", Some(Value::Null)),
        with("input", None),
        with("input", Some(json!([1, "two"]))),
        with("steps", None),
        with("steps", Some(Value::Null)),
        with("steps", Some(json!([]))),
        with("metadata", None),
        with("metadata", Some(Value::Null)),
        with("metadata", Some(json!({}))),
        with("metadata", Some(json!({"total_tokens": null, "unknown": {"x": 1}, "timestamp": "any"}))),
        // Numbers are numbers, however they are written.
        with("metadata", Some(json!({"latency_ms": 100.5, "total_tokens": 3.0, "cost_usd": 1}))),
        with("parent_trace_id", None),
        with("parent_trace_id", Some(json!("p"))),
        with("unknown", Some(json!({"deep": [[]]}))),
        with("output", Some(json!({"": null}))),
        step(&json!({"type": "retrieval", "name": "n"})),
        step(&json!({"type": "tool_call", "name": "n", "args": null, "result": 5, "metadata": [1]})),
        step(&json!({"type": "tool_call", "name": "n", "started_at_ms": 1.5, "ended_at_ms": 2})),
        step(
            &json!({"type": "tool_call", "name": "n", "agent_id": null, "agent_role": "r", "sub_trace": null}),
        ),
        // Only an agent's call has a trace below it, and it may be without.
        step(&json!({"type": "tool_call", "name": "n", "sub_trace": {}})),
        step(&json!({"type": "agent_call", "name": "n"})),
    ] {
        assert_eq!(judged(&mut engine, &accepted, &json!([contains("a", "x")])).0, 0, "{accepted}");
    }
    for (refused, says) in [
        (json!([]), ""),
        (json!("trace"), ""),
        (Value::Null, "trace_id"),
        (with("schema_version", Some(json!(2))), "schema_version"),
        (with("schema_version", Some(json!(-1))), "schema_version"),
        (with("schema_version", Some(json!("1"))), ""),
        (with("trace_id", None), "trace_id"),
        (with("trace_id", Some(json!(" \t "))), "trace_id"),
        (with("trace_id", Some(json!(5))), ""),
        (with("agent_id", Some(json!(5))), ""),
        (with("output", None), "output"),
        (with("output", Some(Value::Null)), "output"),
        (with("output", Some(json!({}))), "output"),
        (with("output", Some(json!("text"))), "output"),
        (with("output", Some(json!([1]))), "output"),
        (with("steps", Some(json!({}))), ""),
        (with("steps", Some(json!([null]))), ""),
        (with("steps", Some(json!([[]]))), ""),
        (with("metadata", Some(json!([]))), "metadata"),
        (with("metadata", Some(json!({"latency_ms": "100"}))), "metadata"),
        (with("metadata", Some(json!({"model": 5}))), "metadata"),
        (step(&json!({"type": "tool_call"})), "steps[0].name"),
        (step(&json!({"type": "tool_call", "name": "  "})), "steps[0].name"),
        (step(&json!({"name": "n"})), "steps[0].type"),
        (step(&json!({"type": "human", "name": "n"})), "human"),
        (step(&json!({"type": "tool_call", "name": "n", "started_at_ms": "1"})), ""),
        (
            step(&json!({"type": "agent_call", "name": "n", "sub_trace": {"trace_id": "s", "output": {}}})),
            "sub_trace.output",
        ),
        (
            step(&json!({"type": "agent_call", "name": "n", "sub_trace": {"output": {"m": 1}}})),
            "sub_trace.trace_id",
        ),
    ] {
        let (code, detail) = judged(&mut engine, &refused, &json!([]));
        assert_eq!(code, 1001, "{refused}");
        assert!(detail.contains(says), "{says}: {detail}");
    }
    for assertions in
        [json!(5), json!([null]), json!([5]), json!([{"assertion_id": 5}]), json!([{"type": []}])]
    {
        assert_eq!(judged(&mut engine, &trace("t"), &assertions).0, 1001, "{assertions}");
    }
}

/// The first check that fails decides the message.
#[test]
fn the_first_problem_is_the_answer() {
    let place = Place::new();
    let mut engine = place.ready(&[]);
    let many = vec![json!({"type": "human", "name": ""}); 10_001];
    let long_name = json!([contains(&"x".repeat(257), "x")]);
    let bad_below = json!({"type": "agent_call", "name": "n", "sub_trace": {}});
    let table: Vec<(Value, &Value, i64, &str)> = vec![
        (json!({"schema_version": "x"}), &long_name, 1001, ""),
        (json!({"schema_version": 9}), &long_name, 1002, "256"),
        (json!({"schema_version": 9}), &Value::Null, 1001, "schema_version"),
        (json!({"trace_id": "", "output": 5}), &Value::Null, 1001, "trace_id"),
        (json!({"trace_id": "t", "steps": many.clone()}), &Value::Null, 1001, "output"),
        (json!({"trace_id": "t", "output": {}, "steps": many.clone()}), &Value::Null, 1001, "output"),
        (json!({"trace_id": "t", "output": {"m": 1}, "steps": many}), &Value::Null, 1001, "10001"),
        (
            json!({"trace_id": "t", "output": {"m": 1}, "steps": [{"name": "", "type": "x"}]}),
            &Value::Null,
            1001,
            "name",
        ),
        (
            json!({"trace_id": "t", "output": {"m": 1}, "steps": [{"name": "n", "type": "x", "args": "x".repeat(2 << 20)}]}),
            &Value::Null,
            1001,
            "type",
        ),
        (
            json!({"trace_id": "t", "output": {"m": 1}, "steps": [bad_below, {"name": "", "type": "x"}]}),
            &Value::Null,
            1001,
            "steps[1].name",
        ),
    ];
    for (trace, assertions, code, says) in table {
        let (found, detail) = judged(&mut engine, &trace, assertions);
        assert!(found == code && detail.contains(says), "{code} {says}: {found} {detail}");
    }
}

fn nested(depth: usize) -> Value {
    (0..depth).fold(json!({"trace_id": "leaf", "output": {"m": 1}}), |below, level| {
        json!({"trace_id": format!("n{level}"), "output": {"m": 1},
               "steps": [{"type": "agent_call", "name": "call", "sub_trace": below}]})
    })
}

#[test]
fn limits() {
    let place = Place::new();
    let mut engine = place.ready(&[]);
    let steps =
        |count: usize| with("steps", Some(json!(vec![json!({"type": "tool_call", "name": "n"}); count])));
    let payload =
        |bytes: usize| step(&json!({"type": "tool_call", "name": "n", "result": "x".repeat(bytes)}));
    let part = |id: &str, bytes: usize| json!({"type": "tool_call", "name": id, "result": "x".repeat(bytes)});
    let large_below = json!({"trace_id": "t", "output": {"m": 1}, "steps": [
        {"type": "agent_call", "name": "a", "sub_trace": {"trace_id": "s", "output": {"m": 1}, "steps": [
            part("one", 900_000), part("two", 900_000), part("three", 900_000)]}}]});
    let table: Vec<(&str, Value, i64)> = vec![
        ("10,000 steps", steps(10_000), 0),
        ("10,001 steps", steps(10_001), 1001),
        ("a step of 1,000,000 bytes", payload(1_000_000), 0),
        ("a step of 1,100,000 bytes", payload(1_100_000), 1001),
        ("a trace below of more than a mebibyte", large_below, 0),
        ("depth 4", nested(4), 0),
        ("depth 5", nested(5), 0),
        ("depth 6", nested(6), 1001),
        ("4 MB of <", json!({"trace_id": "t", "output": {"message": "<".repeat(4_000_000)}}), 0),
        (
            "an output of 600,000 characters",
            json!({"trace_id": "t", "output": {"message": "x".repeat(600_000)}}),
            0,
        ),
    ];
    for (name, trace, code) in table {
        let (found, detail) = judged(&mut engine, &trace, &json!([contains("a", "<")]));
        assert_eq!(found, code, "{name}: {detail}");
    }
    for (id, code) in [
        ("x".repeat(256), 0),
        ("x".repeat(257), 1002),
        ("é".repeat(128), 0),
        ("é".repeat(129), 1002),
        (String::new(), 0),
    ] {
        assert_eq!(
            judged(&mut engine, &trace("t"), &json!([contains(&id, "x")])).0,
            code,
            "{} bytes",
            id.len()
        );
    }
}

/// The longest line that is allowed is answered; one byte more is refused with its number, and the session goes on.
#[test]
fn the_longest_line() {
    let place = Place::new();
    let mut engine = place.ready(&[]);
    let around = r#"{"jsonrpc":"2.0","id":77,"method":"evaluate_batch","params":{"trace":{"trace_id":"t","output":{"message":""}},"assertions":[]}}"#;
    for (length, error) in [(10_485_759, None), (10_485_760, Some(-32600)), (11_000_000, Some(-32600))] {
        let text = "x".repeat(length - around.len());
        let line = around.replace(r#""message":"""#, &format!(r#""message":"{text}""#));
        assert_eq!(line.len(), length);
        let reply = engine.exchange(&line);
        assert_eq!(reply["id"], 77, "{reply}");
        assert_eq!(reply["error"]["code"].as_i64(), error, "{length}: {reply}");
        engine.assert_well(&format!("a line of {length} bytes"));
    }
}
