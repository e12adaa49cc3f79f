//! Lines that are too long, too deep, torn, or ask for too much at once.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::attest::{Engine, LONGEST_REPLY, Place, assertion, contains, content, request, trace};

/// Longer than any of these takes on a slow machine, shorter than a client waits.
const SLOWEST: Duration = Duration::from_secs(10);

fn timed(engine: &mut Engine, name: &str, line: &str) -> Value {
    let begin = Instant::now();
    let reply = engine.exchange(line);
    let took = begin.elapsed();
    assert!(took < SLOWEST, "{name}: {took:?}");
    reply
}

#[test]
fn brackets_in_every_place() {
    let place = Place::new();
    let mut engine = place.ready(&[]);
    for (open, close) in [("[", "]"), (r#"{"a":"#, "}")] {
        let whole = format!("{}1{}", open.repeat(100_000), close.repeat(100_000));
        let torn = open.repeat(100_000);
        let batch = |trace: &str, spec: &str| {
            format!(
                r#"{{"jsonrpc":"2.0","id":5,"method":"evaluate_batch","params":{{"trace":{trace},"assertions":[{{"assertion_id":"a","type":"schema","spec":{spec}}}]}}}}"#
            )
        };
        let usual_spec = r#"{"target":"output","schema":{"type":"object"}}"#;
        let usual = r#"{"trace_id":"t","output":{"message":"hello"}}"#;
        let step = |member: &str| {
            format!(
                r#"{{"trace_id":"t","steps":[{{"type":"tool_call","name":"n","{member}":{whole}}}],"output":{{"m":1}}}}"#
            )
        };
        let on_step = |member: &str| {
            format!(r#"{{"target":"steps[?name=='n'].{member}","schema":{{"type":"string"}}}}"#)
        };
        let member = |name: &str| format!(r#"{{"trace_id":"t","{name}":{whole},"output":{{"m":1}}}}"#);
        let lines: Vec<(&str, String)> = vec![
            ("line", whole.clone()),
            ("torn line", torn.clone()),
            ("id", format!(r#"{{"jsonrpc":"2.0","id":{whole},"method":"x"}}"#)),
            ("method", format!(r#"{{"jsonrpc":"2.0","id":5,"method":{whole}}}"#)),
            ("params", format!(r#"{{"jsonrpc":"2.0","id":5,"method":"evaluate_batch","params":{whole}}}"#)),
            (
                "other member",
                format!(r#"{{"jsonrpc":"2.0","id":5,"method":"query_drift","params":{{}},"x":{whole}}}"#),
            ),
            ("torn params", format!(r#"{{"jsonrpc":"2.0","id":5,"method":"evaluate_batch","params":{torn}"#)),
            ("trace", batch(&whole, usual_spec)),
            ("args", batch(&step("args"), usual_spec)),
            ("args as target", batch(&step("args"), &on_step("args"))),
            ("result as target", batch(&step("result"), &on_step("result"))),
            ("step metadata", batch(&step("metadata"), usual_spec)),
            ("sub_trace", batch(&step("sub_trace"), usual_spec)),
            ("input", batch(&member("input"), usual_spec)),
            ("metadata", batch(&member("metadata"), usual_spec)),
            ("steps", batch(&member("steps"), usual_spec)),
            ("agent_id", batch(&member("agent_id"), usual_spec)),
            ("unknown member", batch(&member("unknown"), usual_spec)),
            ("output", batch(&format!(r#"{{"trace_id":"t","output":{{"m":{whole}}}}}"#), usual_spec)),
            (
                "output as target",
                batch(
                    &format!(r#"{{"trace_id":"t","output":{{"m":{whole}}}}}"#),
                    r#"{"target":"output.m","schema":{"type":"array"}}"#,
                ),
            ),
            ("spec", batch(usual, &whole)),
            ("schema", batch(usual, &format!(r#"{{"target":"output","schema":{whole}}}"#))),
            (
                "schema below a keyword",
                batch(usual, &format!(r#"{{"target":"output","schema":{{"const":{whole}}}}}"#)),
            ),
            (
                "assertions",
                format!(
                    r#"{{"jsonrpc":"2.0","id":5,"method":"evaluate_batch","params":{{"trace":{usual},"assertions":{whole}}}}}"#
                ),
            ),
            (
                "tree",
                format!(
                    r#"{{"jsonrpc":"2.0","id":5,"method":"validate_trace_tree","params":{{"trace":{{"output":{whole},"input":{whole}}}}}}}"#
                ),
            ),
            (
                "plugin result",
                format!(
                    r#"{{"jsonrpc":"2.0","id":5,"method":"submit_plugin_result","params":{{"result":{{"metadata":{whole}}}}}}}"#
                ),
            ),
        ];
        for (name, line) in lines {
            let reply = timed(&mut engine, name, &line);
            if name.ends_with("as target") || name.starts_with("schema") || name == "spec" {
                let result = &reply["result"]["results"][0];
                assert!(result["status"] == "hard_fail" || result["status"] == "pass", "{name}: {reply}");
            }
            engine.assert_well(name);
        }
    }
    // Traces as deep in each other: read or refused, never followed to the end of the stack.
    let (mut front, mut back) = (String::new(), String::new());
    for level in 0..20_000 {
        front.push_str(&format!(r#"{{"trace_id":"n{level}","output":{{"m":1}},"steps":[{{"type":"agent_call","name":"n","sub_trace":"#));
        back.push_str("}]}");
    }
    for method in ["evaluate_batch", "validate_trace_tree"] {
        let line = format!(
            r#"{{"jsonrpc":"2.0","id":5,"method":"{method}","params":{{"trace":{front}{{}}{back}}}}}"#
        );
        let reply = timed(&mut engine, method, &line);
        assert!(reply["error"]["code"] == 1001 || reply["result"]["valid"] == false, "{reply}");
        engine.assert_well(method);
    }
}

#[test]
fn texts_that_come_back_are_cut() {
    let place = Place::new();
    let mut engine = place.ready(&[]);
    let long = "\u{1}é\"".repeat(100_000);
    for (method, params) in [
        (long.as_str(), json!({})),
        ("initialize", json!({"protocol_version": 1, "required_capabilities": vec![long.clone(); 20]})),
        ("query_drift", json!({"assertion_id": long})),
        (
            "submit_plugin_result",
            json!({"assertion_id": long, "trace_id": long, "result": {"status": long, "explanation": long}}),
        ),
        (
            "submit_plugin_result",
            json!({"assertion_id": long, "trace_id": long, "result": {"status": "pass", "explanation": long}}),
        ),
        (
            "evaluate_batch",
            json!({"trace": {"trace_id": long, "output": {"m": 1}, "steps": [{"type": long, "name": long}]}}),
        ),
        ("evaluate_batch", json!({"trace": trace("t"), "assertions": [assertion("a", &long, &json!({}))]})),
        (
            "evaluate_batch",
            json!({"trace": {"trace_id": long, "output": {"message": long}}, "assertions": [content("a", &json!({"check": "contains", "value": long.clone() + "x", "target": "output.message"}))]}),
        ),
        (
            "evaluate_batch",
            json!({"trace": trace("t"), "assertions": [content("a", &json!({"target": format!("output.{long}"), "check": "contains"}))]}),
        ),
        (
            "evaluate_batch",
            json!({"trace": trace("t"), "assertions": [assertion("a", "constraint", &json!({"field": long, "operator": long, "value": 1}))]}),
        ),
        (
            "evaluate_batch",
            json!({"trace": trace("t"), "assertions": [assertion("a", "schema", &json!({"target": "output", "schema": {"required": [long, "b"]}}))]}),
        ),
        (
            "validate_trace_tree",
            json!({"trace": {"trace_id": long, "agent_id": long, "steps": [{"type": "agent_call", "name": "n", "sub_trace": {"trace_id": long, "agent_id": long}}]}}),
        ),
    ] {
        engine.ask(method, &params);
        engine.assert_well(method);
    }
    // Many names instead of a long one.
    let calls: Vec<Value> = (0..2_000)
        .map(|index| {
            let agent = format!("{index}{}", "\u{1}".repeat(150));
            json!({"type": "agent_call", "name": "n", "sub_trace": {"trace_id": format!("s{index}"), "agent_id": agent}})
        })
        .collect();
    let result = engine.result("validate_trace_tree", &json!({"trace": {"trace_id": "r", "steps": calls}}));
    assert_eq!(result["agent_count"], 2_000);
    assert!(!result["agent_ids"].as_array().unwrap().is_empty());
    let missing: Vec<String> = (0..5_000).map(|index| format!("capability-{index}")).collect();
    let mut other = place.start(&[]);
    let result =
        other.result("initialize", &json!({"protocol_version": 1, "required_capabilities": missing}));
    assert_eq!(result["compatible"], false);
}

/// A name as long as a line, which each of many results would carry: a client gets rows without ids.
#[test]
fn a_long_name_is_not_multiplied() {
    let place = Place::new();
    let mut engine = place.ready(&[]);
    engine.assert_well("the start");
    let before = engine.resident();
    let id = "n".repeat(4 << 20);
    let assertions: Vec<Value> = (0..250)
        .flat_map(|index| {
            [assertion(&format!("p{index}"), "plugin", &json!({})), contains(&format!("c{index}"), "x")]
        })
        .collect();
    let params = json!({"trace": {"trace_id": id, "output": {"message": "x"}}, "assertions": assertions});
    assert_eq!(engine.result("evaluate_batch", &params)["results"].as_array().unwrap().len(), 500);
    let grown = engine.peak().saturating_sub(before);
    assert!(grown < 128 << 20, "{} MiB", grown >> 20);
    let submit = json!({"trace_id": id, "assertion_id": "p7", "result": {"status": "pass"}});
    assert_eq!(engine.result("submit_plugin_result", &submit)["accepted"], true);
    assert_eq!(engine.close().0, 0);
    assert_eq!(place.rows().len(), 501);
    let size = std::fs::metadata(place.database()).unwrap().len();
    assert!(size < 16 << 20, "{} MiB", size >> 20);
}

#[test]
fn many_results_in_one_reply() {
    let place = Place::new();
    let mut engine = place.ready(&[]);
    for (count, value) in [(450, "hello"), (600, "hello"), (450, "absent"), (600, "absent")] {
        let assertions: Vec<Value> =
            (0..count).map(|index| contains(&format!("a{index:06}"), value)).collect();
        let results = engine.evaluate(&trace("t"), &json!(assertions));
        assert_eq!(results.len(), count);
        for (index, result) in results.iter().enumerate() {
            assert_eq!(result["assertion_id"], format!("a{index:06}"));
            assert_eq!(result["status"], if value == "hello" { "pass" } else { "hard_fail" });
        }
    }
    // Each explanation alone would fill the line.
    let long = "long ".repeat(10_000);
    let assertions: Vec<Value> = (0..100).map(|index| contains(&format!("{index}"), &long)).collect();
    let results = engine.evaluate(
        &json!({"trace_id": "t", "output": {"message": long.to_uppercase() + "x"}}),
        &json!(assertions),
    );
    assert_eq!(results.len(), 100);
    // Of this client nothing is known: what fits into no short line comes in a long one, up to a bound.
    engine.longest = 4_000_000;
    let many = |count: usize| -> Vec<Value> {
        (0..count).map(|index| contains(&format!("assert_{index:08}"), "hello")).collect()
    };
    assert_eq!(engine.evaluate(&trace("t"), &json!(many(5_000))).len(), 5_000);
    let (code, said) =
        engine.refusal("evaluate_batch", &json!({"trace": trace("t"), "assertions": many(10_001)}));
    assert_eq!(code, 1002);
    assert!(said.contains("several batches"), "{said}");
    engine.assert_well("too many assertions");
    assert_eq!(engine.close().0, 0);
}

/// The Python SDK breaks at a line of 64 KiB; other clients say what they read, or are known to read any line.
#[test]
fn a_thousand_assertions_are_answered_for_clients_that_read_long_lines() {
    let place = Place::new();
    let assertions: Vec<Value> =
        (0..1_000).map(|index| contains(&format!("assert_{index:08}"), "absent")).collect();
    let params = json!({"trace": trace("t"), "assertions": assertions});
    for (client, answered) in [
        (json!({"sdk_name": "attest-python"}), false),
        (json!({"sdk_name": "attest-python", "max_response_bytes": 4_000_000}), true),
        (json!({"sdk_name": "attest-typescript"}), true),
        (json!({"sdk_name": null}), true),
    ] {
        let mut engine = place.start(&[]);
        engine.longest = 4_000_000;
        let mut hello = json!({"protocol_version": 1});
        hello.as_object_mut().unwrap().extend(client.as_object().unwrap().clone());
        let able = engine.result("initialize", &hello);
        assert_eq!(able.get("max_response_bytes"), client.get("max_response_bytes"), "{able}");
        if answered {
            let results = engine.result("evaluate_batch", &params);
            let results = results["results"].as_array().unwrap();
            assert_eq!(results.len(), 1_000, "{client}");
            assert!(
                results.iter().all(|result| result["explanation"].as_str().unwrap().contains("`absent`"))
            );
        } else {
            assert_eq!(engine.refusal("evaluate_batch", &params).0, 1002, "{client}");
        }
        assert_eq!(engine.close().0, 0);
    }
}

#[test]
fn a_line_that_is_too_long_gets_one_reply_and_the_next_is_answered() {
    let place = Place::new();
    let mut engine = place.ready(&[]);
    for (front, id) in [
        (r#"{"jsonrpc":"2.0","id":41,"method":"evaluate_batch","params":{"x":""#, 41),
        (r#"{"id": -3, "jsonrpc":"2.0", "method":"evaluate_batch","params":{"x":""#, -3),
        (r#"{"jsonrpc":"2.0","method":"evaluate_batch","params":{"id":9,"x":""#, 0),
        ("garbage ", 0),
    ] {
        let mut lines = front.as_bytes().to_vec();
        lines.extend(std::iter::repeat_n(b'x', 11_000_000));
        lines.extend(b"\"}}\n");
        lines.extend(request(1000, "query_drift", &json!({})).as_bytes());
        lines.push(b'\n');
        engine.write(&lines);
        let refused = engine.receive();
        assert_eq!(
            (refused["id"].as_i64(), refused["error"]["code"].as_i64()),
            (Some(id), Some(-32600)),
            "{refused}"
        );
        let next = engine.receive();
        assert_eq!((&next["id"], &next["result"]["report"]["count"]), (&json!(1000), &json!(0)), "{next}");
    }
    let peak = engine.peak();
    assert!(peak < 100 << 20, "{} MiB", peak >> 20);
    assert_eq!(engine.close().0, 0);
}

#[test]
fn the_end_of_input_in_the_middle_of_a_line() {
    let place = Place::new();
    let whole =
        request(9, "evaluate_batch", &json!({"trace": trace("t"), "assertions": [contains("a", "hello")]}));
    for cut in [1, 20, whole.len() / 2, whole.len() - 1] {
        let mut engine = place.ready(&[]);
        engine.write(&whole.as_bytes()[..cut]);
        drop(engine.stdin.take());
        let reply = engine.receive();
        assert_eq!((&reply["error"]["code"], &reply["id"]), (&json!(-32700), &json!(0)), "{cut}: {reply}");
        assert_eq!(engine.wait().0, 0);
    }
}

/// Words of other requests inside a request do not make it overtake them.
#[test]
fn a_request_is_not_taken_for_another() {
    let place = Place::new();
    let mut engine = place.ready(&[]);
    let waits = assertion("p", "plugin", &json!({}));
    let mut filling = trace("t");
    filling["input"] = json!("x".repeat(2 << 20));
    for round in 0..10i64 {
        let batch = request(round * 2, "evaluate_batch", &json!({"trace": filling, "assertions": [waits]}));
        let submit = json!({"trace_id": "t", "assertion_id": "p", "plugin_name": "evaluate_batch", "result": {"status": "pass", "score": 1, "explanation": "llm_judge \"embedding\" generate_user_message"}});
        engine.write(
            format!("{batch}\n{}\n", request(round * 2 + 1, "submit_plugin_result", &submit)).as_bytes(),
        );
        assert_eq!(engine.receive()["result"]["results"][0]["status"], "soft_fail");
        let reply = engine.receive();
        assert_eq!(reply["result"]["accepted"], true, "{round}: {reply}");
    }
    // Nor does the end of the session overtake what was asked before it.
    let batch =
        request(100, "evaluate_batch", &json!({"trace": filling, "assertions": [contains("a", "hello")]}));
    let end = request(101, "shutdown", &json!({"why": "evaluate_batch"}));
    engine.write(format!("{batch}\n{end}\n").as_bytes());
    assert_eq!(engine.receive()["result"]["results"][0]["status"], "pass");
    assert_eq!(engine.receive()["result"]["assertions_evaluated"], 21);
    assert_eq!(engine.wait().0, 0);
}

#[test]
fn every_reply_fits_whatever_the_names() {
    let place = Place::new();
    let mut engine = place.start(&[]);
    engine.result("initialize", &json!({"protocol_version": 1, "sdk_name": "attest-python"}));
    for name in ["\u{1}", "\"", "é", "\u{7f}", "<"] {
        for count in [1, 30, 100, 230, 600] {
            let id = name.repeat(256 / name.len());
            let assertions: Vec<Value> = (0..count)
                .map(|_| json!({"assertion_id": id, "request_id": id, "type": "content", "spec": {"check": "contains", "value": "absent"}}))
                .collect();
            let reply = engine.ask("evaluate_batch", &json!({"trace": trace("t"), "assertions": assertions}));
            let fits = count * 2 * 256 < LONGEST_REPLY / 8;
            assert!(!fits || reply.get("result").is_some(), "{name:?} {count}: {reply}");
        }
    }
    engine.assert_well("long names");
}
