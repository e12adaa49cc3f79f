//! Replies to batches: the order, skipped layers after a failure, soft failures, and the members of each result.

use serde_json::{Value, json};

use crate::attest_hostile::vendor::Vendor;
use crate::support::attest::{Engine, Place, assertion, contains, content, request, trace};

/// The request that the protocol's document shows, and its answer.
const EXAMPLE: &str = r#"{
"trace": {
"schema_version": 1,
"trace_id": "abc-123",
"agent_id": "customer-service",
"input": {"messages": [{"role": "user", "content": "Refund order ORD-123"}]},
"steps": [
{
"type": "llm_call",
"name": "completion",
"args": {"model": "gpt-4.1"},
"result": {"completion": "I'll look up that order for you.", "tokens": 150},
"started_at_ms": 1708617600000,
"ended_at_ms": 1708617601200
},
{
"type": "tool_call",
"name": "lookup_order",
"args": {"order_id": "ORD-123"},
"result": {"status": "delivered", "amount": 45.99}
}
],
"output": {"message": "Your refund of $45.99 has been processed."},
"metadata": {
"total_tokens": 350,
"cost_usd": 0.004,
"latency_ms": 1200,
"model": "gpt-4.1"
},
"parent_trace_id": null
},
"assertions": [
{
"assertion_id": "assert_a1b2c3d4",
"type": "schema",
"spec": {
"target": "output.structured",
"schema": {"type": "object", "required": ["message"]}
}
},
{
"assertion_id": "assert_e5f6g7h8",
"type": "trace",
"spec": {
"check": "contains",
"tool_name": "lookup_order"
}
}
]
}"#;

#[test]
fn the_documents_own_example() {
    let place = Place::new();
    let mut engine = place.ready(&[]);
    let params = EXAMPLE.replace('\n', "");
    let reply =
        engine.exchange(format!(r#"{{"jsonrpc":"2.0","id":1,"method":"evaluate_batch","params":{params}}}"#));
    let results = reply["result"]["results"].as_array().unwrap();
    assert_eq!(results.len(), 2, "{reply}");
    for (result, id) in results.iter().zip(["assert_a1b2c3d4", "assert_e5f6g7h8"]) {
        assert_eq!(result["assertion_id"], id);
        assert_eq!(
            (&result["status"], &result["score"], &result["cost"]),
            (&json!("pass"), &json!(1.0), &json!(0.0)),
            "{result}"
        );
        assert!(
            !result["explanation"].as_str().unwrap().is_empty() && result["duration_ms"].is_u64(),
            "{result}"
        );
    }
    assert_eq!(reply["result"]["total_cost"], 0.0);
    assert!(reply["result"]["total_duration_ms"].is_u64());
    assert!(reply["result"].get("simulated").is_none());
    // With the member, the member is what is looked at.
    let mut with: Value = serde_json::from_str(EXAMPLE).unwrap();
    with["trace"]["output"]["structured"] = json!({"other": 1});
    let results = engine.evaluate(&with["trace"], &with["assertions"]);
    assert_eq!(results[0]["status"], "hard_fail", "{results:?}");
}

fn spec_of(kind: &str, passes: bool) -> Value {
    match (kind, passes) {
        ("schema", true) => json!({"target": "output", "schema": {"type": "object"}}),
        ("schema", false) => json!({"target": "output", "schema": {"type": "array"}}),
        ("constraint", pass) => {
            json!({"field": "steps.length", "operator": if pass { "eq" } else { "gt" }, "value": 3})
        }
        ("trace", pass) => {
            json!({"check": "required_tools", "tools": [if pass { "search" } else { "absent" }]})
        }
        ("trace_tree", pass) => {
            json!({"check": "agent_called", "agent_id": if pass { "agent" } else { "absent" }})
        }
        (_, pass) => {
            json!({"target": "output.message", "check": "contains", "value": if pass { "hello" } else { "absent" }})
        }
    }
}

fn of(kind: &str, id: &str, passes: bool) -> Value {
    assertion(id, kind, &spec_of(kind, passes))
}

fn ids(results: &[Value]) -> Vec<&str> {
    results.iter().map(|result| result["assertion_id"].as_str().unwrap()).collect()
}

fn engine_with_judge(place: &Place, vendor: &Vendor) -> Engine {
    place.ready(&[("ATTEST_JUDGE_BASE_URL", &vendor.url())])
}

#[test]
fn results_are_in_the_order_of_the_request() {
    let place = Place::new();
    let vendor = Vendor::judge(0.9);
    let mut engine = engine_with_judge(&place, &vendor);
    let judge = |id: &str| assertion(id, "llm_judge", &json!({"criteria": id}));
    let batch = json!([
        judge("j1"),
        of("content", "c1", true),
        of("trace_tree", "tt", true),
        of("trace", "t", true),
        judge("j2"),
        of("constraint", "n", true),
        of("schema", "s", true),
        of("content", "c2", true),
        assertion("p", "plugin", &json!({"plugin_id": "x"})),
    ]);
    let results = engine.evaluate(&trace("t"), &batch);
    assert_eq!(ids(&results), ["j1", "c1", "tt", "t", "j2", "n", "s", "c2", "p"], "{results:?}");
    // A plugin that is waited for keeps nothing from running.
    assert_eq!((&results[8]["status"], &results[0]["status"]), (&json!("soft_fail"), &json!("pass")));
    assert_eq!(vendor.count(), 2);
}

#[test]
fn a_hard_failure_keeps_models_from_being_asked() {
    let place = Place::new();
    let vendor = Vendor::judge(0.9);
    let mut engine = engine_with_judge(&place, &vendor);
    let judge = |id: &str| assertion(id, "llm_judge", &json!({"criteria": id}));
    for kind in ["schema", "constraint", "trace", "trace_tree", "content"] {
        let batch = json!([
            judge("j1"),
            of("content", "last", false),
            of(kind, "first", false),
            judge("j2"),
            of("content", "good", true)
        ]);
        let results = engine.evaluate(&trace("t"), &batch);
        assert_eq!(results.len(), 3, "{results:?}");
        let failures: Vec<&Value> = results.iter().filter(|result| result["status"] == "hard_fail").collect();
        assert_eq!(failures.len(), 2);
        assert!(
            failures[0]["explanation"]
                .as_str()
                .unwrap()
                .contains("(2 assertions of layers 5 and 6 were not run)"),
            "{}",
            failures[0]
        );
        assert!(!failures[1]["explanation"].as_str().unwrap().contains("not run"), "{}", failures[1]);
    }
    // What is not known at all does so too.
    let results = engine.evaluate(
        &trace("t"),
        &json!([of("content", "c", true), judge("j"), assertion("u", "nonsense", &json!({}))]),
    );
    assert_eq!(ids(&results), ["c", "u"]);
    assert_eq!(results[1]["status"], "hard_fail");
    assert!(
        results[1]["explanation"].as_str().unwrap().contains("(1 assertion of layers 5 and 6 was not run)"),
        "{}",
        results[1]
    );
    assert_eq!(vendor.count(), 0);
    // Soft failures do not, and without anything to leave out nothing is said.
    let soft = content("soft", &json!({"check": "contains", "value": "absent", "soft": true}));
    let results = engine.evaluate(&trace("t"), &json!([soft, judge("j3")]));
    assert_eq!(ids(&results), ["soft", "j3"]);
    assert_eq!((&results[0]["status"], &results[1]["status"]), (&json!("soft_fail"), &json!("pass")));
    let results = engine.evaluate(&trace("t"), &json!([of("content", "c", false)]));
    assert!(!results[0]["explanation"].as_str().unwrap().contains("not run"));
    // A model that is not configured is the failure of its own assertion only.
    let mut without = Place::new().ready(&[]);
    let results = without.evaluate(
        &trace("t"),
        &json!([
            judge("j"),
            of("content", "c", true),
            assertion("e", "embedding", &json!({"reference": "r"}))
        ]),
    );
    assert_eq!(ids(&results), ["j", "c", "e"]);
    for result in [&results[0], &results[2]] {
        assert_eq!(result["status"], "hard_fail");
        assert!(result["explanation"].as_str().unwrap().starts_with("error:"), "{result}");
    }
}

#[test]
fn what_soft_softens() {
    let place = Place::new();
    let mut engine = place.ready(&[]);
    let table = [
        (
            "content",
            json!({"target": "output.message", "check": "contains", "value": "absent", "soft": true}),
            "soft_fail",
            0.0,
        ),
        (
            "content",
            json!({"target": "output.message", "check": "contains", "value": "absent", "soft": false}),
            "hard_fail",
            0.0,
        ),
        (
            "content",
            json!({"target": "output.message", "check": "keyword_all", "values": ["hello", "absent"], "soft": true}),
            "soft_fail",
            0.5,
        ),
        (
            "content",
            json!({"target": "output.message", "check": "forbidden", "values": ["hello"], "soft": true}),
            "hard_fail",
            0.0,
        ),
        (
            "content",
            json!({"target": "output.absent", "check": "contains", "value": "x", "soft": true}),
            "hard_fail",
            0.0,
        ),
        (
            "content",
            json!({"target": "output.absent", "check": "not_contains", "value": "x", "soft": true}),
            "hard_fail",
            0.0,
        ),
        (
            "content",
            json!({"target": "metadata.model", "check": "contains", "value": "m", "soft": true}),
            "hard_fail",
            0.0,
        ),
        ("content", json!({"check": "nonsense", "soft": true}), "hard_fail", 0.0),
        ("content", json!({"check": "contains", "value": "hello", "soft": "yes"}), "hard_fail", 0.0),
        ("content", json!({"check": "contains", "value": "hello", "soft": true}), "pass", 1.0),
        (
            "constraint",
            json!({"field": "steps.length", "operator": "gt", "value": 9, "soft": true}),
            "soft_fail",
            0.0,
        ),
        ("constraint", json!({"field": "steps.length", "operator": "gt", "soft": true}), "hard_fail", 0.0),
        (
            "constraint",
            json!({"field": "steps.length", "operator": "like", "value": 1, "soft": true}),
            "hard_fail",
            0.0,
        ),
        (
            "constraint",
            json!({"field": "output.message", "operator": "gt", "value": 1, "soft": true}),
            "hard_fail",
            0.0,
        ),
        ("trace", json!({"check": "required_tools", "tools": ["absent"], "soft": true}), "soft_fail", 0.0),
        ("trace", json!({"check": "required_tools", "tools": [], "soft": true}), "hard_fail", 0.0),
        ("trace", json!({"check": "nonsense", "soft": true}), "hard_fail", 0.0),
        ("schema", json!({"target": "output", "schema": {"type": "array"}, "soft": true}), "hard_fail", 0.0),
        (
            "trace_tree",
            json!({"check": "agent_called", "agent_id": "absent", "soft": true}),
            "soft_fail",
            0.0,
        ),
        ("trace_tree", json!({"check": "nonsense", "soft": true}), "hard_fail", 0.0),
        ("trace_tree", json!({"soft": true}), "hard_fail", 0.0),
    ];
    for (kind, spec, status, score) in table {
        let result = engine.verdict(&trace("t"), assertion("a", kind, &spec));
        assert_eq!(
            (result["status"].as_str(), result["score"].as_f64()),
            (Some(status), Some(score)),
            "{kind} {spec}: {result}"
        );
    }
}

/// A defect of one assertion is never an error of the batch.
#[test]
fn a_bad_assertion_fails_alone() {
    let place = Place::new();
    let mut engine = place.ready(&[]);
    let mut batch = Vec::new();
    for kind in [
        "schema",
        "constraint",
        "trace",
        "content",
        "trace_tree",
        "embedding",
        "llm_judge",
        "nonsense",
        "",
        "Schema",
    ] {
        for spec in [
            json!({}),
            Value::Null,
            json!([]),
            json!(5),
            json!("x"),
            json!({"check": 5, "target": 5, "field": 5}),
        ] {
            batch.push(assertion(&format!("b{}", batch.len()), kind, &spec));
        }
        batch.push(json!({"assertion_id": "no-spec", "type": kind}));
    }
    batch.push(json!({}));
    for bad in &batch {
        let results = engine.evaluate(&trace("t"), &json!([bad, contains("good", "hello")]));
        let (bad_result, good): (Vec<&Value>, Vec<&Value>) =
            results.iter().partition(|result| result["assertion_id"] != "good");
        assert_eq!((good.len(), &good[0]["status"]), (1, &json!("pass")), "{bad}");
        assert_eq!(
            (bad_result.len(), &bad_result[0]["status"], &bad_result[0]["score"]),
            (1, &json!("hard_fail"), &json!(0.0)),
            "{bad}: {results:?}"
        );
        assert!(bad_result[0]["explanation"].as_str().unwrap().starts_with("error:"), "{bad}: {results:?}");
    }
}

#[test]
fn members_of_a_result() {
    let place = Place::new();
    let mut engine = place.ready(&[]);
    let mut pass = contains("dup", "hello");
    pass["request_id"] = json!("r-1");
    let mut fail =
        content("dup", &json!({"target": "output.message", "check": "contains", "value": "absent"}));
    fail["request_id"] = json!("");
    let results = engine.evaluate(&trace("t"), &json!([pass, fail]));
    assert_eq!(results[0]["request_id"], "r-1");
    assert!(results[1].get("request_id").is_none());
    for name in ["assertion_id", "status", "score", "explanation", "cost", "duration_ms"] {
        assert!(results.iter().all(|result| result.get(name).is_some()), "{name}: {results:?}");
    }
    // What a person needs to understand the failure.
    let failed = &results[1];
    assert_eq!(
        (&failed["layer"], &failed["type"], &failed["trace_node_path"]),
        (&json!(4), &json!("content"), &json!("output.message"))
    );
    assert!(failed["expected"].as_str().unwrap().contains("absent"), "{failed}");
    assert!(failed["actual"].as_str().unwrap().contains("hello world"), "{failed}");
    for (kind, layer) in [("schema", 1), ("constraint", 2), ("trace", 3), ("trace_tree", 7)] {
        let result = engine.verdict(&trace("t"), of(kind, "a", false));
        assert_eq!((&result["layer"], &result["type"]), (&json!(layer), &json!(kind)), "{result}");
    }
    assert_eq!(engine.verdict(&trace("t"), assertion("p", "plugin", &json!({})))["layer"], 8);
    // Times are sums of the results' times.
    let whole = engine.result(
        "evaluate_batch",
        &json!({"trace": trace("t"), "assertions": [contains("a", "x"), contains("b", "x")]}),
    );
    let sum: u64 = whole["results"]
        .as_array()
        .unwrap()
        .iter()
        .map(|result| result["duration_ms"].as_u64().unwrap())
        .sum();
    assert_eq!(whole["total_duration_ms"], sum);
}

#[test]
fn what_models_answer() {
    let place = Place::new();
    let vendor = Vendor::start(|asked| {
        if asked.path.ends_with("/embeddings") {
            let count = asked.body["input"].as_array().map_or(1, Vec::len);
            let data: Vec<Value> = (0..count)
                .map(|index| json!({"index": index, "object": "embedding", "embedding": [1.0, index as f64]}))
                .collect();
            return (
                200,
                json!({"data": data, "model": "m", "usage": {"prompt_tokens": 1, "total_tokens": 1}})
                    .to_string(),
            );
        }
        crate::attest_hostile::vendor::chat(0.75, "mostly")
    });
    let url = vendor.url();
    let mut engine = place.ready(&[
        ("ATTEST_JUDGE_BASE_URL", &url),
        ("ATTEST_EMBEDDING_BASE_URL", &url),
        ("ATTEST_JUDGE_MODEL", "gpt-4.1"),
    ]);
    let judge = |spec: Value| assertion("j", "llm_judge", &spec);
    for (spec, status) in [
        (
            json!({"target": "output.message", "criteria": "c", "rubric": "default", "threshold": 0.7, "soft": false, "model": null}),
            "pass",
        ),
        (
            json!({"target": "output.message", "criteria": "c", "rubric": "default", "threshold": 0.8, "soft": false, "model": null}),
            "hard_fail",
        ),
        (json!({"target": "output.message", "criteria": "c", "soft": true}), "soft_fail"),
        (json!({"dimension": "accuracy", "threshold": 0.5}), "pass"),
        (json!({"criteria": "c", "threshold": "dynamic"}), "soft_fail"),
        (json!({"rubric": "nonsense"}), "hard_fail"),
        (json!({"repeat": 17}), "hard_fail"),
    ] {
        let result = engine.verdict(&trace("t"), judge(spec.clone()));
        assert_eq!(result["status"], status, "{spec}: {result}");
    }
    // The price of 1000 tokens read and 100 written by gpt-4.1, where it was asked and not remembered.
    let result = engine.result(
        "evaluate_batch",
        &json!({"trace": trace("t"), "assertions": [judge(json!({"criteria": "new", "threshold": 0.1}))]}),
    );
    let cost = result["total_cost"].as_f64().unwrap();
    assert!((cost - 0.0028).abs() < 1e-9, "{result}");
    let metadata = &result["results"][0]["judge_metadata"];
    assert_eq!(
        (&metadata["model"], &metadata["rubric_name"], &metadata["sample_scores"]),
        (&json!("gpt-4.1"), &json!("default"), &json!([0.75]))
    );
    assert_eq!(metadata["prompt_hash"].as_str().unwrap().len(), 16);
    let result = engine.verdict(
        &trace("t"),
        assertion(
            "e",
            "embedding",
            &json!({"target": "output.message", "reference": "r", "threshold": 0.5, "model": null}),
        ),
    );
    assert_eq!(result["status"], "pass", "{result}");
    assert!((result["score"].as_f64().unwrap() - 0.707).abs() < 0.001, "{result}");
}

#[test]
fn a_simulation_is_said_to_be_one() {
    let place = Place::new();
    for (value, stamped) in [("1", true), ("true", true), ("yes", true), ("0", false), ("", false)] {
        let mut engine = place.ready(&[("ATTEST_SIMULATION", value)]);
        let params =
            json!({"trace": trace("t"), "assertions": [contains("a", "hello"), contains("b", "absent")]});
        let result = engine.result("evaluate_batch", &params);
        assert_eq!(result.get("simulated"), stamped.then_some(&json!(true)), "`{value}`: {result}");
        assert_eq!(
            (&result["results"][0]["status"], &result["results"][1]["status"]),
            (&json!("pass"), &json!("hard_fail"))
        );
    }
}

#[test]
fn soft_failures_have_a_budget() {
    let place = Place::new();
    let soft = content("a", &json!({"check": "contains", "value": "absent", "soft": true}));
    let params = json!({"trace": trace("t"), "assertions": [soft]});
    let mut engine = place.ready(&[("ATTEST_BUDGET_MAX_COST", "2")]);
    for _ in 0..2 {
        assert_eq!(engine.result("evaluate_batch", &params)["results"][0]["status"], "soft_fail");
    }
    for _ in 0..2 {
        assert_eq!(engine.refusal("evaluate_batch", &params).0, 3001);
        // Batches without a soft failure go on, and a plugin that is waited for is none.
        engine.assert_well("the budget");
        assert_eq!(engine.verdict(&trace("t"), assertion("p", "plugin", &json!({})))["status"], "soft_fail");
    }
    assert_eq!(engine.result("shutdown", &json!({}))["assertions_evaluated"], 6);
    for value in ["1.00", "-1", "many"] {
        let mut engine = place.ready(&[("ATTEST_BUDGET_MAX_COST", value)]);
        for _ in 0..3 {
            assert_eq!(
                engine.result("evaluate_batch", &params)["results"][0]["status"],
                "soft_fail",
                "{value}"
            );
        }
    }
}

/// A reply that is ready does not wait for a request behind it that is slow.
#[test]
fn a_finished_reply_goes_out_at_once() {
    let place = Place::new();
    let (release, released) = std::sync::mpsc::channel::<()>();
    let released = std::sync::Mutex::new(released);
    let vendor = Vendor::start(move |_| {
        let _ = released.lock().unwrap().recv_timeout(crate::support::attest::PATIENCE);
        crate::attest_hostile::vendor::chat(1.0, "late")
    });
    let mut engine = engine_with_judge(&place, &vendor);
    let judge = json!({"trace": trace("t"), "assertions": [assertion("j", "llm_judge", &json!({}))]});
    let fast = json!({"trace": trace("t"), "assertions": [contains("a", "hello")]});
    let lines =
        format!("{}\n{}\n", request(50, "evaluate_batch", &fast), request(51, "evaluate_batch", &judge));
    engine.write(lines.as_bytes());
    let first = engine.receive();
    assert_eq!(first["id"], 50);
    release.send(()).unwrap();
    let second = engine.receive();
    assert_eq!(
        (&second["id"], &second["result"]["results"][0]["status"]),
        (&json!(51), &json!("pass")),
        "{second}"
    );
}
