//! The request line of the Attest engine, and what assertions it can hold.

use serde_json::{Value, json};

use crate::fuzz::{Material, drive};

const ATTEST_TRACE: &str = r#"{"schema_version":1,"trace_id":"t","agent_id":"a","input":{"q":"?"},"steps":[{"type":"llm_call","name":"think","args":{"model":"m"},"result":{"completion":"c"},"started_at_ms":1,"ended_at_ms":2.5},{"type":"tool_call","name":"search","args":{"query":"sch\u00f6n"},"result":[1,2.50,null,"\ud83d\ude00"]},{"type":"agent_call","name":"b","sub_trace":{"trace_id":"u","agent_id":"b","parent_trace_id":"t","steps":[{"type":"retrieval","name":"look"}],"output":{"message":"below"}}}],"output":{"message":"hello world","structured":{"answer":42,"list":[{"x":"1"}]}},"metadata":{"total_tokens":100,"cost_usd":0.01,"latency_ms":250},"parent_trace_id":null}"#;

const ATTEST_ASSERTIONS: &str = r##"[{"assertion_id":"1","type":"schema","spec":{"target":"output.structured","schema":{"$schema":"https://json-schema.org/draft/2020-12/schema","$defs":{"n":{"type":"integer","multipleOf":2}},"type":"object","required":["answer"],"properties":{"answer":{"$ref":"#/$defs/n"},"list":{"items":{"pattern":"^(a+)+$"},"uniqueItems":true}},"patternProperties":{"^x":false},"if":{"minProperties":1},"else":false}}},{"assertion_id":"2","type":"constraint","spec":{"field":"steps[?type=='tool_call'].length","operator":"between","min":1,"max":2e3,"soft":true}},{"assertion_id":"3","type":"trace","spec":{"check":"contains_in_order","tools":["think","search"]}},{"assertion_id":"4","type":"trace","spec":{"check":"loop_detection","tool":"search","max_repetitions":2}},{"assertion_id":"5","type":"content","spec":{"target":"steps[?name=='search'].args.query","check":"regex_match","value":"(?i)^(sch.n|[a-z]{2,9})$"}},{"assertion_id":"6","type":"content","spec":{"check":"keyword_all","values":["hello","world"],"case_sensitive":true,"threshold":"dynamic"}},{"assertion_id":"7","type":"trace_tree","spec":{"check":"cross_agent_data_flow","from_agent":"a","to_agent":"b","field":"message"}},{"assertion_id":"8","type":"trace_tree","spec":{"check":"ordered_agents","groups":[["a"],["b"]]}},{"assertion_id":"9","type":"embedding","spec":{"reference":"r","threshold":0.5,"model":null}},{"assertion_id":"10","type":"llm_judge","spec":{"criteria":"c","rubric":"safety","repeat":3,"bias_probes":"all"}},{"assertion_id":"11","type":"plugin","spec":{"plugin_id":"p"},"request_id":"r"},{"assertion_id":"12","type":"content","spec":{"target":"steps[*].args.query","check":"not_matches","pattern":"\\bx[\\d\\S]"}},{"assertion_id":"13","type":"trace","spec":{"check":"no_call","tool":"search","args":{"query":"x","n":[1]}}}]"##;

/// The engine's way of a line, as far as it needs no model and no file: repaired, read, decoded, validated and judged.
#[test]
fn attest_requests() {
    use proctor_assert::{Assertion, Limits, Tools, Trace, evaluate, inspect_tree, validate};
    use proctor_wire::attest::message::{
        EvaluateBatch, GenerateUserMessage, Initialize, QueryDrift, SubmitPluginResult, ValidateTree,
    };
    use proctor_wire::attest::rpc;

    let words = &[
        "{",
        "}",
        "[",
        "]",
        ",",
        ":",
        "\"",
        "\"jsonrpc\":\"2.0\"",
        "\"id\":1",
        "\"id\":1e5",
        "\"method\":\"evaluate_batch\"",
        "\"params\":{",
        "\"trace\":",
        "\"assertions\":[",
        "\"type\":\"content\"",
        "\"spec\":{",
        "\"check\":\"regex_match\"",
        "\"value\":\"(a+)+$\"",
        "\"value\":\"a{1000}{1000}\"",
        "\"values\":[]",
        "\"target\":\"output\"",
        "\"target\":\"steps[?name=='\"",
        "\"schema\":",
        "\"$ref\":\"#\"",
        "\"allOf\":[",
        "\"soft\":true",
        "\"threshold\":\"dynamic\"",
        "\"session\":\"s\"",
        "\\ud800",
        "\\udc00",
        "\\u0000",
        "\\",
        "null",
        "-0",
        "1e308",
        "0.1",
        "true",
        "\u{feff}",
        "\u{e9}",
        "\u{2028}",
    ];
    let batch = format!(
        r#"{{"jsonrpc":"2.0","id":7,"method":"evaluate_batch","params":{{"trace":{ATTEST_TRACE},"assertions":{ATTEST_ASSERTIONS}}}}}"#
    );
    let tree = format!(
        r#"{{"jsonrpc":"2.0","id":8,"method":"validate_trace_tree","params":{{"trace":{ATTEST_TRACE}}}}}"#
    );
    let valid: &[&[u8]] = &[
        batch.as_bytes(),
        tree.as_bytes(),
        br#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"sdk_name":"s","protocol_version":1,"required_capabilities":["layers_1_4"]}}"#,
        br#"{"jsonrpc":"2.0","id":2,"method":"submit_plugin_result","params":{"trace_id":"t","plugin_name":"p","assertion_id":"a","result":{"status":"pass","score":0.5,"explanation":"x"}}}"#,
        br#"{"jsonrpc":"2.0","id":3,"method":"query_drift","params":{"assertion_id":"a","window_size":50}}"#,
        br#"{"jsonrpc":"2.0","id":4,"method":"generate_user_message","params":{"persona":{"name":"n","temperature":0.5},"conversation_history":[{"role":"user","content":"c"}],"fault_config":{"error_rate":0.1}}}"#,
    ];
    let tools = Tools::default();
    drive("attest request", &Material { words, valid }, |data| {
        let line = rpc::repaired(data);
        let _ = rpc::number_at_the_beginning(data);
        let request = match rpc::read(&line) {
            Ok(request) => request,
            Err((id, refusal)) => {
                return match rpc::refuse(id, &refusal).len() {
                    0..=proctor_wire::attest::MAX_REPLY => Ok(()),
                    long => Err(format!("a refusal of {long} bytes").into()),
                };
            }
        };
        // Whatever it asks for, its parameters are given to every method.
        let _ = request.params.read::<Initialize>();
        let _ = request.params.read::<SubmitPluginResult>();
        let _ = request.params.read::<QueryDrift>();
        let _ = request.params.read::<GenerateUserMessage>();
        if let Ok(asked) = request.params.read::<ValidateTree<Trace<'_>>>() {
            let _ = inspect_tree(&asked.trace);
        }
        let Ok(asked) = request.params.read::<EvaluateBatch<'_, Trace<'_>, Assertion<'_>>>() else {
            return Ok(());
        };
        if validate(&asked.trace, &Limits::default()).is_err() {
            return Ok(());
        }
        for assertion in asked.assertions.unwrap_or_default() {
            let verdict = evaluate(&asked.trace, &assertion, &tools);
            if !(0.0..=1.0).contains(&verdict.score) {
                return Err(format!("a score of {}", verdict.score).into());
            }
            if verdict.status.passed() && verdict.score < 1.0 {
                return Err(format!("a pass with a score of {}", verdict.score).into());
            }
            let _ = assertion.key(&tools);
        }
        Ok(())
    });
}

/// Specs of every type, changed one by one: what is still JSON gets as far as a verdict.
#[test]
fn attest_specs() {
    use proctor_assert::{Assertion, Layer, Tools, Trace, evaluate};

    let trace = Trace::parse(ATTEST_TRACE).unwrap();
    let assertions: Vec<Value> = serde_json::from_str(ATTEST_ASSERTIONS).unwrap();
    let specs: Vec<String> = assertions.iter().map(|assertion| assertion["spec"].to_string()).collect();
    let valid: Vec<&[u8]> = specs.iter().map(String::as_bytes).collect();
    let words = &[
        "{",
        "}",
        "[",
        "]",
        ",",
        ":",
        "\"",
        "null",
        "true",
        "false",
        "0",
        "-1",
        "1.5",
        "1e308",
        "\"a\"",
        "\"\"",
        "(",
        ")",
        "*",
        "+",
        "?",
        "|",
        "{2,9}",
        "[a-z]",
        "^",
        "$",
        "\\\\d",
        "(?i)",
        "'",
        "].args.",
        "output.",
        "\"anyOf\":[",
        "\"$ref\":\"#\"",
        "\"not\":",
        "\"const\":",
        "\"enum\":[]",
        "\"type\":\"string\"",
        "\"format\":\"email\"",
        "\"soft\":1",
    ];
    let pool: Vec<Value> = assertions
        .iter()
        .flat_map(|assertion| nodes(&assertion["spec"]))
        .chain([
            json!(null),
            json!(-1),
            json!(1e308),
            json!({}),
            json!([]),
            json!(""),
            json!("#"),
            json!(["a", 1]),
        ])
        .collect();
    let tools = Tools::default();
    drive("attest spec", &Material { words, valid: &valid }, |data| {
        // What is JSON no more says instead which parts of a spec are exchanged, and for what.
        let text = std::str::from_utf8(data).ok().filter(|text| serde_json::from_str::<Value>(text).is_ok());
        let spec = text.map_or_else(|| exchanged(data, &assertions, &pool).to_string(), str::to_owned);
        for kind in Layer::KINDS {
            let assertion = Assertion::new("a", kind, &spec).map_err(|error| error.to_string())?;
            let verdict = evaluate(&trace, &assertion, &tools);
            if !(0.0..=1.0).contains(&verdict.score) || (verdict.status.passed() && verdict.score < 1.0) {
                return Err(
                    format!("{kind} {spec}: {:?} with a score of {}", verdict.status, verdict.score).into()
                );
            }
        }
        Ok(())
    });
}

/// A value and all that lies in it.
fn nodes(value: &Value) -> Vec<Value> {
    let below: Vec<&Value> = match value {
        Value::Array(items) => items.iter().collect(),
        Value::Object(members) => members.values().collect(),
        _ => Vec::new(),
    };
    std::iter::once(value.clone()).chain(below.into_iter().flat_map(nodes)).collect()
}

/// A spec in which parts are others of the pool; each three bytes say which part, and which other.
fn exchanged(data: &[u8], assertions: &[Value], pool: &[Value]) -> Value {
    let (first, rest) = data.split_first().unwrap_or((&0, &[]));
    let mut spec = assertions[usize::from(*first) % assertions.len()]["spec"].clone();
    for recipe in rest.chunks_exact(3).take(4) {
        let other = pool[(usize::from(recipe[1]) * 256 + usize::from(recipe[2])) % pool.len()].clone();
        let at = usize::from(recipe[0]) % nodes(&spec).len();
        *nth(&mut spec, &mut { at }).expect("there are that many") = other;
    }
    spec
}

/// The part of this number, depth first.
fn nth<'a>(value: &'a mut Value, left: &mut usize) -> Option<&'a mut Value> {
    if *left == 0 {
        return Some(value);
    }
    *left -= 1;
    match value {
        Value::Array(items) => items.iter_mut().find_map(|item| nth(item, left)),
        Value::Object(members) => members.values_mut().find_map(|member| nth(member, left)),
        _ => None,
    }
}
