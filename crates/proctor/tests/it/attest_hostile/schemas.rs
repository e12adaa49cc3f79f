//! Schemas and patterns that crash, hang or read files elsewhere.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::attest::{Engine, Place, assertion, content, trace};

const SLOWEST: Duration = Duration::from_secs(10);

fn judged(engine: &mut Engine, name: &str, trace: &Value, assertion: Value) -> Value {
    let begin = Instant::now();
    let result = engine.verdict(trace, assertion);
    let took = begin.elapsed();
    assert!(took < SLOWEST, "{name}: {took:?}");
    engine.assert_well(name);
    result
}

fn schema(schema: &Value) -> Value {
    assertion("s", "schema", &json!({"target": "output", "schema": schema}))
}

#[test]
fn schemas_that_are_none() {
    let place = Place::new();
    std::fs::write(place.path("work/secret.json"), r#"{"const": "top secret"}"#).unwrap();
    let file = format!("file://{}", place.path("work/secret.json").display());
    let mut engine = place.ready(&[]);
    let long = "a".repeat(1 << 20);
    for refused in [
        Value::Null,
        json!(5),
        json!("object"),
        json!([]),
        json!([{"type": "object"}]),
        json!({"type": 5}),
        json!({"type": "nonsense"}),
        json!({"$ref": 5}),
        json!({"$ref": "#/nowhere"}),
        json!({"$ref": "https://example.com/schema.json"}),
        json!({"$ref": "http://127.0.0.1:9/schema.json"}),
        json!({"$ref": file}),
        json!({"$ref": "secret.json"}),
        json!({"$ref": "file:///etc/passwd"}),
        json!({"$id": file, "$ref": "secret.json"}),
        json!({"$schema": "https://example.com/other"}),
        json!({"$schema": 5}),
        json!({"required": "message"}),
        json!({"properties": []}),
        json!({"minimum": "1"}),
        json!({"pattern": "("}),
        json!({"pattern": "(?=look)"}),
        json!({"properties": {"message": {"pattern": "(((a{1000}){1000}){1000}){1000}"}}}),
        json!({"properties": {"message": {"pattern": "a{1,99999999}"}}}),
        json!({"properties": {"message": {"pattern": format!("({long}")}}}),
        json!({"patternProperties": {"(": {}}}),
        json!(false),
    ] {
        let name = refused.to_string();
        let name = &name[..name.len().min(100)];
        let result = judged(&mut engine, name, &trace("t"), schema(&refused));
        assert_eq!(
            (&result["status"], &result["score"]),
            (&json!("hard_fail"), &json!(0.0)),
            "{name}: {result}"
        );
        assert!(
            !result.to_string().contains("top secret") && !result.to_string().contains("root:"),
            "{result}"
        );
        assert!(
            !result.to_string().contains(place.path("work").to_str().unwrap()) || name.contains("file://"),
            "{result}"
        );
    }
    for accepted in [
        json!(true),
        json!({}),
        json!({"$schema": "https://json-schema.org/draft/2020-12"}),
        json!({"$schema": "https://json-schema.org/draft/2020-12/schema", "type": "object"}),
        json!({"$schema": "http://json-schema.org/draft-07/schema#", "type": "object"}),
        json!({"$schema": "http://json-schema.org/draft-04/schema#", "type": "object"}),
        json!({"$defs": {"m": {"type": "string"}}, "properties": {"message": {"$ref": "#/$defs/m"}}}),
        json!({"properties": {"structured": {"properties": {"answer": {"type": "integer", "maximum": 42}}}}}),
    ] {
        let result = judged(&mut engine, &accepted.to_string(), &trace("t"), schema(&accepted));
        assert_eq!(result["status"], "pass", "{accepted}: {result}");
    }
}

#[test]
fn schemas_that_go_round_in_circles() {
    let place = Place::new();
    let mut engine = place.ready(&[]);
    let branch = |count: usize, to: &str| vec![json!({"$ref": to}); count];
    let mut ladder = serde_json::Map::new();
    for level in 0..60 {
        let next = format!("#/$defs/l{}", level + 1);
        ladder.insert(format!("l{level}"), json!({"anyOf": [{"$ref": next}, {"$ref": next}]}));
    }
    ladder.insert("l60".to_owned(), json!(false));
    for (name, looping) in [
        ("itself", json!({"$ref": "#"})),
        (
            "each other",
            json!({"$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}, "$ref": "#/$defs/a"}),
        ),
        ("itself in a list", json!({"allOf": [{"$ref": "#"}, {"$ref": "#"}]})),
        ("many of itself", json!({"anyOf": branch(50, "#")})),
        ("a ladder of two to the sixtieth", json!({"$defs": ladder, "$ref": "#/$defs/l0"})),
        ("not itself", json!({"not": {"$ref": "#"}})),
        ("itself dynamically", json!({"$dynamicAnchor": "x", "$dynamicRef": "#x"})),
        ("itself when it is not", json!({"if": {"$ref": "#"}, "then": false, "else": {"$ref": "#"}})),
    ] {
        let result = judged(&mut engine, name, &trace("t"), schema(&looping));
        assert!(["pass", "hard_fail"].contains(&result["status"].as_str().unwrap()), "{name}: {result}");
    }
    // One that follows the value down is a good schema.
    let tree = json!({"$defs": {"node": {"type": "object", "properties": {"next": {"$ref": "#/$defs/node"}}}}, "$ref": "#/$defs/node"});
    let value = (0..50).fold(json!({}), |below, _| json!({"next": below}));
    let result =
        judged(&mut engine, "a list", &json!({"trace_id": "t", "output": {"next": value}}), schema(&tree));
    assert_eq!(result["status"], "pass", "{result}");
    // Costly ones on a large value.
    let items: Vec<Value> = (0..20_000).map(|index| json!({"k": index})).collect();
    let large = json!({"trace_id": "t", "output": {"items": items}});
    let unique = json!({"properties": {"items": {"uniqueItems": true, "items": {"anyOf": [{"required": ["x"]}, {"required": ["k"]}]}}}});
    let result = judged(&mut engine, "unique items", &large, schema(&unique));
    assert!(["pass", "hard_fail"].contains(&result["status"].as_str().unwrap()), "{result}");
}

#[test]
fn patterns_that_explode_elsewhere() {
    let place = Place::new();
    let mut engine = place.ready(&[]);
    let many = json!({"trace_id": "t", "output": {"message": "a".repeat(100_000) + "!"}});
    let pattern = |value: &str| {
        content("r", &json!({"target": "output.message", "check": "regex_match", "value": value}))
    };
    for (value, status) in [
        ("(a+)+$", "hard_fail"),
        ("^(a|a)*$", "hard_fail"),
        ("^(a|aa)+$", "hard_fail"),
        ("(.*)*(.*)*(.*)*b", "hard_fail"),
        ("(a?){500}a{500}", "pass"),
        ("^a{1000}", "pass"),
        ("", "pass"),
        ("(?i)A!", "pass"),
        ("(a)\\1", "hard_fail"),
        ("(?=a)", "hard_fail"),
        ("(", "hard_fail"),
        ("a{1001}", "hard_fail"),
        ("(((((a{100}){100}){100}){100}){100})", "hard_fail"),
        ("\\pL{1000}{1000}", "hard_fail"),
    ] {
        let result = judged(&mut engine, value, &many, pattern(value));
        assert_eq!(result["status"], status, "{value}: {result}");
    }
    for (length, status) in [(10_000, "hard_fail"), (10_001, "hard_fail"), (1 << 20, "hard_fail")] {
        let result = judged(&mut engine, "a long pattern", &many, pattern(&"b".repeat(length)));
        assert_eq!(result["status"], status);
        let too_long = result["explanation"].as_str().unwrap().starts_with("error:");
        assert_eq!(too_long, length > 10_000, "{length}: {result}");
    }
    // The same as a schema's pattern.
    let result = judged(
        &mut engine,
        "schema",
        &many,
        schema(&json!({"properties": {"message": {"pattern": "^(a+)+$"}}})),
    );
    assert_eq!(result["status"], "hard_fail");
    // Hundreds of patterns are compiled, used and forgotten.
    let before = engine.resident();
    for index in 0..300 {
        engine.verdict(&trace("t"), pattern(&format!("{}{index}", "(x|y)[a-z]{50}".repeat(20))));
    }
    let grown = engine.resident().saturating_sub(before);
    assert!(grown < 100 << 20, "{} MiB", grown >> 20);
}

#[test]
fn numbers_at_the_edge() {
    let place = Place::new();
    let mut engine = place.ready(&[]);
    for number in ["1e308", "-1e308", "1e-320", "123456789012345678901234567890", "0.1", "-0.0"] {
        let line = format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"evaluate_batch","params":{{"trace":{{"trace_id":"t","output":{{"m":{number}}},"metadata":{{"latency_ms":{number},"total_tokens":{number}}},"steps":[{{"type":"tool_call","name":"n","started_at_ms":{number},"ended_at_ms":{number},"agent_id":"a"}}]}},"assertions":[
            {{"assertion_id":"a","type":"constraint","spec":{{"field":"metadata.latency_ms","operator":"eq","value":{number}}}}},
            {{"assertion_id":"b","type":"schema","spec":{{"target":"output.m","schema":{{"type":"number","multipleOf":0.1}}}}}},
            {{"assertion_id":"c","type":"trace_tree","spec":{{"check":"agent_wall_time_under","agent_id":"a","max_ms":{number}}}}},
            {{"assertion_id":"d","type":"trace","spec":{{"check":"loop_detection","tool":"n","max_repetitions":{number}}}}}]}}}}"#
        )
        .replace('\n', "");
        let reply = engine.exchange(&line);
        assert_eq!(reply["result"]["results"][0]["status"], "pass", "{number}: {reply}");
        let tree = format!(
            r#"{{"jsonrpc":"2.0","id":2,"method":"validate_trace_tree","params":{{"trace":{{"metadata":{{"total_tokens":{number},"latency_ms":{number},"cost_usd":{number}}}}}}}}}"#
        );
        let reply = engine.exchange(&tree);
        assert!(reply["result"]["aggregate_tokens"].is_number(), "{reply}");
    }
    // A number beyond all numbers is no number.
    let line = r#"{"jsonrpc":"2.0","id":1,"method":"evaluate_batch","params":{"trace":{"trace_id":"t","output":{"m":1},"metadata":{"latency_ms":1e999}}}}"#;
    assert_eq!(engine.exchange(line)["error"]["code"], 1001);
    // Sums beyond them are written as numbers all the same.
    let below =
        json!({"trace_id": "s", "metadata": {"cost_usd": 1e308, "total_tokens": 1e308, "latency_ms": 1e308}});
    let steps = vec![json!({"type": "agent_call", "name": "n", "sub_trace": below}); 3];
    let result = engine.result("validate_trace_tree", &json!({"trace": {"trace_id": "t", "steps": steps}}));
    for name in ["aggregate_tokens", "aggregate_cost_usd", "aggregate_latency_ms"] {
        assert!(result[name].is_number(), "{result}");
    }
}
