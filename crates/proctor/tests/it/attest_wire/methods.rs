//! The methods: every member of what they take and of what they give, and when they may be called.

use serde_json::{Value, json};

use crate::attest_hostile::vendor::{Vendor, said};
use crate::support::attest::{Place, assertion, contains, trace};

const METHODS: [&str; 5] =
    ["evaluate_batch", "submit_plugin_result", "validate_trace_tree", "query_drift", "shutdown"];

#[test]
fn states_of_a_session() {
    let place = Place::new();
    let mut engine = place.start(&[]);
    for method in METHODS {
        assert_eq!(engine.refusal(method, &json!({})).0, 3003, "{method} before initialize");
    }
    // A refused `initialize` changes nothing.
    for params in [
        json!({}),
        json!({"protocol_version": 0}),
        json!({"protocol_version": 2}),
        json!({"protocol_version": "1"}),
        json!({"protocol_version": -1}),
        json!({"protocol_version": 1, "required_capabilities": "x"}),
    ] {
        assert_eq!(engine.refusal("initialize", &params).0, 3003, "{params}");
        assert_eq!(engine.refusal("query_drift", &json!({})).0, 3003);
    }
    for (version, says) in [(2, "not supported"), (0, "too old")] {
        assert!(engine.refusal("initialize", &json!({"protocol_version": version})).1.contains(says));
    }
    engine.initialize();
    assert_eq!(engine.refusal("initialize", &json!({"protocol_version": 1})).0, 3003);
    let nothing = engine.result("evaluate_batch", &json!({"trace": trace("t")}));
    assert_eq!(nothing.to_string(), r#"{"results":[],"total_cost":0.0,"total_duration_ms":0}"#);
    let ended = engine.result("shutdown", &json!({}));
    assert_eq!(ended, json!({"sessions_completed": 1, "assertions_evaluated": 0}));
    assert_eq!(engine.wait().0, 0);
}

#[test]
fn what_initialize_says() {
    let place = Place::new();
    let asked = json!({
        "sdk_name": "attest-python", "sdk_version": "0.9.0", "protocol_version": 1,
        "required_capabilities": ["layers_1_4"], "preferred_encoding": "json", "other": 1,
    });
    let result = place.start(&[]).result("initialize", &asked);
    assert_eq!(
        result,
        json!({
            "engine_version": "0.9.0", "protocol_version": 1,
            "capabilities": ["layers_1_4", "trace_tree", "continuous_eval", "plugins", "soft_failures", "multi_agent"],
            "missing": [], "compatible": true, "encoding": "json", "max_concurrent_requests": 64,
            "max_trace_size_bytes": 10_485_760, "max_steps_per_trace": 10_000,
        })
    );
    // In the order of the request, and as often; the session works all the same.
    let mut engine = place.start(&[]);
    let asked =
        json!({"protocol_version": 1, "required_capabilities": ["zeta", "layers_1_4", "llm_judge", "zeta"]});
    let result = engine.result("initialize", &asked);
    assert_eq!(
        (&result["missing"], &result["compatible"]),
        (&json!(["zeta", "llm_judge", "zeta"]), &json!(false))
    );
    engine.assert_well("an incompatible start");
    for required in [Value::Null, json!([])] {
        let result = place.start(&[]).result(
            "initialize",
            &json!({"protocol_version": 1, "required_capabilities": required, "sdk_name": null}),
        );
        assert_eq!(result["compatible"], true);
    }
}

#[test]
fn capabilities_follow_the_configuration() {
    let place = Place::new();
    let state = place.path("state");
    let usual = ["layers_1_4", "trace_tree", "continuous_eval", "plugins"];
    for (variables, more) in [
        (&[("ATTEST_OPENAI_API_KEY", "k")][..], &["embedding", "llm_judge", "simulation", "layers_5_6"][..]),
        (&[("ATTEST_JUDGE_BASE_URL", "http://127.0.0.1:9")], &["llm_judge", "simulation", "layers_5_6"]),
        (&[("ATTEST_EMBEDDING_BASE_URL", "http://127.0.0.1:9")], &["embedding", "layers_5_6"]),
        (&[("ATTEST_ANTHROPIC_API_KEY", "k")], &["llm_judge", "simulation", "layers_5_6"]),
        (&[("ATTEST_GEMINI_API_KEY", "k")], &["llm_judge", "simulation", "layers_5_6"]),
        (&[("ATTEST_OLLAMA_BASE_URL", "http://127.0.0.1:9")], &["llm_judge", "simulation", "layers_5_6"]),
        (&[("OPENAI_API_KEY", "k"), ("ATTEST_OPENAI_API_KEY", "")], &[]),
    ] {
        let capabilities = place.start(variables).initialize()["capabilities"].clone();
        let expected: Vec<&str> =
            usual.iter().chain(more).chain(&["soft_failures", "multi_agent"]).copied().collect();
        assert_eq!(capabilities, json!(expected), "{variables:?}");
    }
    let mut engine = place.start(&[("PROCTOR_STATE", state.to_str().unwrap())]);
    let capabilities = engine.initialize()["capabilities"].clone();
    assert!(capabilities.as_array().unwrap().contains(&json!("proctor_sessions")), "{capabilities}");
}

#[test]
fn plugins_wait_for_their_result() {
    let place = Place::new();
    let mut engine = place.ready(&[]);
    let plugin = |id: &str| assertion(id, "plugin", &json!({"plugin_id": "p", "config": {"x": 1}}));
    let results = engine.evaluate(&trace("t"), &json!([contains("c", "hello"), plugin("p1"), plugin("p2")]));
    assert_eq!(results[1]["assertion_id"], "p1");
    for waiting in &results[1..] {
        assert_eq!((&waiting["status"], &waiting["score"]), (&json!("soft_fail"), &json!(0.0)), "{waiting}");
        assert_eq!(waiting["explanation"], "waiting for submit_plugin_result");
    }
    let submit = |trace: &str, id: &str, status: Value, score: Value| {
        json!({
            "trace_id": trace, "plugin_name": "p", "assertion_id": id,
            "result": {"assertion_id": id, "status": status, "score": score, "explanation": "fine", "cost": 0.0,
                       "duration_ms": 45, "metadata": {"any": [1]}},
        })
    };
    for (trace, id, accepted) in
        [("t", "c", false), ("t", "p3", false), ("u", "p1", false), ("t", "p1", true), ("t", "p1", false)]
    {
        let result = engine.result("submit_plugin_result", &submit(trace, id, json!("pass"), json!(0.95)));
        assert_eq!(result, json!({"accepted": accepted}), "{trace} {id}");
    }
    // What could not be a result is refused, and the assertion waits on.
    for params in [
        submit("t", "p2", json!(5), json!(1)),
        submit("t", "p2", json!("pass"), json!("1")),
        submit("t", "p2", json!("excellent"), json!(1)),
        submit("t", "p2", json!("pass"), json!(2)),
        json!({"trace_id": 1}),
        json!({"trace_id": "t", "assertion_id": "p2", "result": []}),
    ] {
        assert_eq!(engine.refusal("submit_plugin_result", &params).0, 1002, "{params}");
    }
    let fail = submit("t", "p2", json!("fail"), json!(0.25));
    assert_eq!(engine.result("submit_plugin_result", &fail)["accepted"], true);
    assert_eq!(engine.result("shutdown", &json!({}))["assertions_evaluated"], 5);
    assert_eq!(engine.wait().0, 0);
    // In the history the results have taken the places of those that waited.
    let mut rows = place.rows();
    rows.sort_by(|left, right| left.1.cmp(&right.1));
    let row = |id: &str, kind: &str, score: f64, status: &str| {
        ("t".to_owned(), id.to_owned(), kind.to_owned(), score, status.to_owned())
    };
    assert_eq!(
        rows,
        [
            row("c", "content", 1.0, "pass"),
            row("p1", "plugin", 0.95, "pass"),
            row("p2", "plugin", 0.25, "hard_fail")
        ]
    );
}

fn sub(id: &str, parent: Option<&str>, agent: &str, below: &[Value]) -> Value {
    let steps: Vec<Value> =
        below.iter().map(|trace| json!({"type": "agent_call", "name": "call", "sub_trace": trace})).collect();
    json!({
        "trace_id": id, "agent_id": agent, "parent_trace_id": parent, "steps": steps, "output": "only text",
        "metadata": {"total_tokens": 10, "cost_usd": 0.5, "latency_ms": 100},
    })
}

#[test]
fn trees_are_inspected() {
    let place = Place::new();
    let mut engine = place.ready(&[]);
    let nothing = json!({
        "valid": true, "depth": 0, "agent_count": 0, "agent_ids": null,
        "aggregate_tokens": 0, "aggregate_cost_usd": 0.0, "aggregate_latency_ms": 0,
    });
    for params in [json!({}), json!({"trace": null}), json!({"trace": {}})] {
        assert_eq!(engine.result("validate_trace_tree", &params), nothing, "{params}");
    }
    let tree = sub(
        "r",
        None,
        "a",
        &[sub("s", Some("r"), "b", &[sub("u", None, "", &[])]), sub("v", Some("r"), "b", &[])],
    );
    assert_eq!(
        engine.result("validate_trace_tree", &json!({"trace": tree})),
        json!({
            "valid": true, "depth": 2, "agent_count": 3, "agent_ids": ["a", "b", "b"],
            "aggregate_tokens": 40, "aggregate_cost_usd": 2.0, "aggregate_latency_ms": 400,
        })
    );
    let deep = |levels: usize| {
        (0..levels)
            .fold(sub("0", None, "a", &[]), |below, level| sub(&format!("n{level}"), None, "a", &[below]))
    };
    assert_eq!(engine.result("validate_trace_tree", &json!({"trace": deep(5)}))["valid"], true);
    for (trace, says) in [
        (deep(6), "5"),
        (sub("r", None, "a", &[sub("r", Some("r"), "b", &[])]), "r"),
        (sub("r", None, "a", &[sub("s", Some("other"), "b", &[])]), "other"),
        (json!({"trace_id": "r", "steps": [{"type": "agent_call", "name": "lost"}]}), "sub_trace"),
    ] {
        let result = engine.result("validate_trace_tree", &json!({"trace": trace}));
        assert_eq!(result["valid"], false, "{result}");
        let errors = result["errors"].as_array().unwrap();
        assert!(errors.len() == 1 && errors[0].as_str().unwrap().contains(says), "{says}: {result}");
    }
    for params in [
        json!({"trace": []}),
        json!({"trace": 5}),
        json!({"trace": {"steps": {}}}),
        json!({"trace": {"trace_id": 5}}),
    ] {
        assert_eq!(engine.refusal("validate_trace_tree", &params).0, 1001, "{params}");
    }
}

#[test]
fn drift_of_an_assertion() {
    let place = Place::new();
    let mut engine = place.ready(&[]);
    let report = engine.result("query_drift", &json!({"assertion_id": "none"}))["report"].clone();
    assert_eq!(
        report,
        json!({"assertion_id": "none", "mean": 0.0, "stddev": 0.0, "count": 0, "latest_score": 0.0, "deviation": 0.0, "status": "no_data"})
    );
    let keywords = |values: &[&str]| {
        crate::support::attest::content(
            "d",
            &json!({"target": "output.message", "check": "keyword_all", "values": values}),
        )
    };
    for _ in 0..4 {
        engine.verdict(&trace("t"), keywords(&["hello"]));
    }
    let steady = engine.result("query_drift", &json!({"assertion_id": "d"}))["report"].clone();
    assert_eq!(steady["status"], "ok", "{steady}");
    engine.verdict(&trace("t"), keywords(&["hello", "missing"]));
    let fell =
        engine.result("query_drift", &json!({"assertion_id": "d", "window_size": null}))["report"].clone();
    assert_eq!(
        (&fell["count"], &fell["latest_score"], &fell["status"]),
        (&json!(5), &json!(0.5), &json!("drift_detected"))
    );
    let close = |name: &str, value: f64| (fell[name].as_f64().unwrap() - value).abs() < 1e-9;
    assert!(close("mean", 0.9) && close("stddev", 0.2) && close("deviation", -0.4), "{fell}");
    for window in [json!(0), json!(-3), json!(50), json!(50.0), json!(1e300)] {
        let again =
            engine.result("query_drift", &json!({"assertion_id": "d", "window_size": window}))["report"]
                .clone();
        assert_eq!(again, fell, "{window}");
    }
    for params in [
        json!({"assertion_id": 5}),
        json!({"window_size": "x"}),
        json!({"assertion_id": "d", "window_size": []}),
    ] {
        assert_eq!(engine.refusal("query_drift", &params).0, 1002, "{params}");
    }
}

#[test]
fn a_simulated_user_speaks() {
    let place = Place::new();
    let vendor = Vendor::start(|_| said("What about my order?"));
    let url = vendor.url();
    let mut engine = place.ready(&[("ATTEST_JUDGE_BASE_URL", &url)]);
    let asked = json!({
        "persona": {"name": "eve", "system_prompt": "You are Eve.", "style": "terse", "temperature": 0.7, "max_tokens": 50},
        "conversation_history": [{"role": "user", "content": "first"}, {"role": "assistant", "content": "second"}],
        "fault_config": {"error_rate": 0.0, "latency_jitter_ms": 0, "content_corruption": false, "timeout_after_ms": 0},
    });
    assert_eq!(engine.result("generate_user_message", &asked), json!({"message": "What about my order?"}));
    let sent = vendor.asked()[0].1.to_string();
    for part in ["You are Eve.", "first", "second", "50", "0.7"] {
        assert!(sent.contains(part), "{part}: {sent}");
    }
    // Faults on purpose: each has its code, and each may go better the next time.
    for (fault, code) in [(json!({"error_rate": 1}), 2001), (json!({"timeout_after_ms": 1}), 3002)] {
        let reply = engine
            .ask("generate_user_message", &json!({"persona": {"name": "friendly"}, "fault_config": fault}));
        assert_eq!(reply["error"]["code"], code, "{reply}");
        assert_eq!(reply["error"]["data"]["retryable"], true);
    }
    let swapped = engine.result(
        "generate_user_message",
        &json!({"persona": {"name": "confused"}, "fault_config": {"content_corruption": true}}),
    );
    assert_eq!(swapped["message"].as_str().unwrap().len(), "What about my order?".len());
    for params in [
        json!({"persona": []}),
        json!({"persona": {"name": 1}}),
        json!({"conversation_history": "x"}),
        json!({}),
    ] {
        assert_eq!(engine.refusal("generate_user_message", &params).0, 1002, "{params}");
    }
}

#[test]
fn a_user_who_cannot_speak_is_a_provider_error() {
    let place = Place::new();
    for (status, retryable) in [(400, false), (401, false)] {
        let vendor = Vendor::start(move |_| (status, r#"{"error":{"message":"no"}}"#.to_owned()));
        let url = vendor.url();
        let mut engine = place.ready(&[("ATTEST_JUDGE_BASE_URL", &url)]);
        let reply = engine.ask("generate_user_message", &json!({"persona": {"name": "friendly"}}));
        assert_eq!(
            (&reply["error"]["code"], &reply["error"]["data"]["retryable"]),
            (&json!(2001), &json!(retryable)),
            "{reply}"
        );
    }
    // One that never answers is a time-out.
    let vendor = Vendor::start(|_| {
        std::thread::sleep(std::time::Duration::from_secs(20));
        (500, String::new())
    });
    let url = vendor.url();
    let mut engine = place.ready(&[("ATTEST_JUDGE_BASE_URL", &url), ("ATTEST_JUDGE_TIMEOUT_S", "1")]);
    let reply = engine.ask("generate_user_message", &json!({"persona": {"name": "friendly"}}));
    assert_eq!(
        (&reply["error"]["code"], &reply["error"]["data"]["retryable"]),
        (&json!(3002), &json!(true)),
        "{reply}"
    );
}
