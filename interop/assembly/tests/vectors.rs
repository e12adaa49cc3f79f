//! The published queries, put to the gateway: the decision, the rule and what is cut are those that they name.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

use std::path::Path;

use aa_proto::assembly::common::v1::{ActionType, AgentId, Decision};
use aa_proto::assembly::policy::v1::action_context::Action;
use aa_proto::assembly::policy::v1::{
    ActionContext, CheckActionRequest, FileOpContext, LlmCallContext, NetworkCallContext, ProcessExecContext,
    ToolCallContext,
};
use interop_assembly::gateway::{Place, Way};
use interop_assembly::policies::CONFORMANCE;
use serde_json::Value;

#[tokio::test]
async fn published_queries_get_their_answers() {
    let folder =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/vectors/assembly").join("policy_query");
    let Ok(vectors) = std::fs::read_dir(&folder) else {
        println!("not run: shared vectors are absent");
        return;
    };
    let vectors: Vec<Value> = vectors
        .map(|entry| serde_json::from_slice(&std::fs::read(entry.unwrap().path()).unwrap()).unwrap())
        .collect();
    assert_eq!(vectors.len(), 10);
    let place = Place::new(CONFORMANCE);
    // The queries name agents that nobody registered, and tokens that nobody gave.
    let gateway = place.start_with(&["--mode", "relaxed"], &[]);
    for way in Way::ALL {
        let link = gateway.link_by(way).await;
        for vector in &vectors {
            let answer = link.ask(request(&vector["request"])).await.unwrap();
            let expected = &vector["response"];
            let decision = Decision::from_str_name(text(&expected["decision"])).unwrap();
            assert_eq!(answer.decision(), decision, "{vector}: {answer:?}");
            assert_eq!(answer.policy_rule, text(&expected["policy_rule"]), "{vector}");
            assert_eq!(answer.approval_id.is_empty(), decision != Decision::Pending, "{answer:?}");
            assert!(answer.decision_latency_us > 0, "{answer:?}");
            let cut: Vec<(String, String)> = answer
                .redact
                .map(|redact| {
                    redact.rules.into_iter().map(|rule| (rule.field_path, rule.replacement)).collect()
                })
                .unwrap_or_default();
            assert_eq!(cut, cuts(&expected["redact"]["rules"]), "{vector}");
        }
    }
}

fn cuts(rules: &Value) -> Vec<(String, String)> {
    let rule = |rule: &Value| (text(&rule["field_path"]).to_owned(), text(&rule["replacement"]).to_owned());
    rules.as_array().into_iter().flatten().map(rule).collect()
}

fn request(query: &Value) -> CheckActionRequest {
    let id = &query["agent_id"];
    CheckActionRequest {
        agent_id: Some(AgentId {
            org_id: text(&id["org_id"]).into(),
            team_id: text(&id["team_id"]).into(),
            agent_id: text(&id["agent_id"]).into(),
        }),
        credential_token: text(&query["credential_token"]).into(),
        trace_id: text(&query["trace_id"]).into(),
        span_id: text(&query["span_id"]).into(),
        action_type: ActionType::from_str_name(text(&query["action_type"])).unwrap().into(),
        context: Some(ActionContext { action: Some(action(&query["context"])) }),
        caller_agent_id: None,
    }
}

fn action(context: &Value) -> Action {
    let (name, members) = context.as_object().unwrap().iter().next().unwrap();
    let member = |name: &str| text(&members[name]).to_owned();
    let number = |name: &str| i32::try_from(members[name].as_i64().unwrap()).unwrap();
    let flag = |name: &str| members[name].as_bool().unwrap();
    match name.as_str() {
        "llm_call" => Action::LlmCall(LlmCallContext {
            model: member("model"),
            prompt_tokens: number("prompt_tokens"),
            contains_pii: flag("contains_pii"),
        }),
        "tool_call" => Action::ToolCall(ToolCallContext {
            tool_name: member("tool_name"),
            tool_source: member("tool_source"),
            args_json: member("args_json_utf8").into_bytes(),
            target_url: member("target_url"),
        }),
        "file_op" => Action::FileOp(FileOpContext {
            operation: member("operation"),
            path: member("path"),
            is_sensitive_path: flag("is_sensitive_path"),
        }),
        "network_call" => Action::NetworkCall(NetworkCallContext {
            host: member("host"),
            port: number("port"),
            protocol: member("protocol"),
            in_allowlist: flag("in_allowlist"),
        }),
        "process_exec" => Action::ProcessExec(ProcessExecContext {
            command: member("command"),
            args: members["args"].as_array().unwrap().iter().map(|word| text(word).to_owned()).collect(),
        }),
        other => panic!("an unknown context `{other}`"),
    }
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_else(|| panic!("text: {value}"))
}
