//! The example policy `conformance.yaml` answers Agent Assembly's queries as their vectors say: decision, rule, approval, and what is
//! cut where. The queries of this file are our own; the published ones run too where they are at hand.

use std::path::Path;

use proctor_core::action::{Action, ActionKind};
use proctor_core::decision::{Decision, Effect};
use proctor_core::id::{ApprovalId, RecordId, SessionId};
use proctor_core::json::Json;
use proctor_core::session::Caller;
use proctor_core::time::Timestamp;
use proctor_policy::judge::{Request, judge};
use proctor_policy::policy::{Policy, Source};
use proctor_policy::prepare::prepare;
use proctor_policy::state::State;

const POLICY: &str = include_str!("../../../../schemas/examples/conformance.yaml");

/// A query as the vectors write it, the decision and the rule it gets, and what is cut where.
type Case = (&'static str, &'static str, &'static str, &'static [(&'static str, &'static str)]);

const CASES: [Case; 17] = [
    (
        r#"{"action_type":"LLM_CALL","context":{"llm_call":{"model":"claude-sonnet-4","prompt_tokens":90}}}"#,
        "ALLOW",
        "rule:allow-llm-v1",
        &[],
    ),
    (
        r#"{"action_type":"LLM_CALL","context":{"llm_call":{"model":"scratch-1","prompt_tokens":90}}}"#,
        "DENY",
        "default",
        &[],
    ),
    (
        r#"{"action_type":"NETWORK_CALL","context":{"network_call":{"host":"api.openai.com","port":443,"protocol":"https"}}}"#,
        "ALLOW",
        "rule:network-allowlist-v1",
        &[],
    ),
    // What a caller says about the allowlist does not count.
    (
        r#"{"action_type":"NETWORK_CALL","context":{"network_call":{"host":"files.example.org","port":80,"protocol":"http","in_allowlist":true}}}"#,
        "DENY",
        "rule:network-allowlist-v1",
        &[],
    ),
    (
        r#"{"action_type":"TOOL_CALL","context":{"tool_call":{"tool_name":"web_search","args_json_utf8":"{\"query\":\"x\"}","target_url":"https://api.openai.com/v1"}}}"#,
        "ALLOW",
        "rule:allow-declared-tools-v1",
        &[],
    ),
    // The tool is declared, but what it reaches is not listed.
    (
        r#"{"action_type":"TOOL_CALL","context":{"tool_call":{"tool_name":"web_search","args_json_utf8":"{}","target_url":"https://files.example.org/x"}}}"#,
        "DENY",
        "rule:network-allowlist-v1",
        &[],
    ),
    (
        r#"{"action_type":"TOOL_CALL","context":{"tool_call":{"tool_name":"mystery","args_json_utf8":"{}"}}}"#,
        "DENY",
        "default",
        &[],
    ),
    (
        r#"{"action_type":"FILE_OPERATION","context":{"file_op":{"operation":"create","path":"/etc/cron.d/x"}}}"#,
        "DENY",
        "rule:deny-sensitive-writes-v1",
        &[],
    ),
    (
        r#"{"action_type":"FILE_OPERATION","context":{"file_op":{"operation":"delete","path":"/srv/../etc/hosts"}}}"#,
        "DENY",
        "rule:deny-sensitive-writes-v1",
        &[],
    ),
    (
        r#"{"action_type":"FILE_OPERATION","context":{"file_op":{"operation":"write","path":"/srv/notes"}}}"#,
        "DENY",
        "default",
        &[],
    ),
    (
        r#"{"action_type":"PROCESS_EXEC","context":{"process_exec":{"command":"ls","args":["-l"]}}}"#,
        "DENY",
        "rule:deny-shell-v1",
        &[],
    ),
    (
        r#"{"action_type":"AGENT_SPAWN","context":{"tool_call":{"tool_name":"agent_spawn","args_json_utf8":"{\"child_type\":\"reader\"}"}}}"#,
        "PENDING",
        "rule:approval-agent-spawn-v1",
        &[],
    ),
    (
        r#"{"action_type":"TOOL_CALL","context":{"tool_call":{"tool_name":"code_interpreter","args_json_utf8":"{\"estimated_cost_usd\":2}"}}}"#,
        "PENDING",
        "rule:approval-high-cost-v1",
        &[],
    ),
    (
        r#"{"action_type":"TOOL_CALL","context":{"tool_call":{"tool_name":"code_interpreter","args_json_utf8":"{\"estimated_cost_usd\":0.05}"}}}"#,
        "ALLOW",
        "rule:allow-declared-tools-v1",
        &[],
    ),
    (
        r#"{"action_type":"TOOL_CALL","context":{"tool_call":{"tool_name":"http_post","args_json_utf8":"{\"headers\":{\"x key\":\"AKIAIOSFODNN7EXAMPLE\"},\"n\":1}"}}}"#,
        "REDACT",
        "rule:redact-credentials-v1",
        &[("$.args.headers['x key']", "[REDACTED:AwsAccessKey]")],
    ),
    (
        r#"{"action_type":"TOOL_CALL","context":{"tool_call":{"tool_name":"db_query","args_json_utf8":"{\"urls\":[\"x\",\"mysql://u:p@h/d\"],\"key\":\"sk-ant-abcdefghijkl\"}"}}}"#,
        "REDACT",
        "rule:redact-credentials-v1",
        &[("$.args.urls[1]", "[REDACTED:MysqlUrl]"), ("$.args.key", "[REDACTED:AnthropicKey]")],
    ),
    // Cutting never lets through what is denied.
    (
        r#"{"action_type":"TOOL_CALL","context":{"tool_call":{"tool_name":"mystery","args_json_utf8":"{\"key\":\"sk-ant-abcdefghijkl\"}"}}}"#,
        "DENY",
        "default",
        &[],
    ),
];

#[test]
fn own_queries_get_their_answers() {
    let policy = policy();
    for (query, decision, rule, cut) in CASES {
        let judged = decide(&policy, &Json::parse(query.as_bytes()).unwrap());
        assert_eq!(wire_word(judged.effect), decision, "{query}\n{judged:?}");
        assert_eq!(judged.rule, rule, "{query}");
        let expected: Vec<(String, String)> =
            cut.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned())).collect();
        assert_eq!(changes(&judged), expected, "{query}");
        check_invariants(query, &judged);
    }
}

#[test]
fn published_queries_get_their_answers() {
    let folder =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/vectors/assembly").join("policy_query");
    let Ok(entries) = std::fs::read_dir(&folder) else {
        println!("not run: shared vectors are absent");
        return;
    };
    let policy = policy();
    let mut checked = 0;
    for entry in entries {
        let path = entry.expect("a readable folder").path();
        let name = path.file_stem().expect("a file name").to_string_lossy().into_owned();
        let vector = Json::parse(&std::fs::read(&path).expect("a readable vector")).expect("a JSON vector");
        let judged = decide(&policy, vector.get("request").expect("a request"));
        let expected = vector.get("response").expect("a response");
        assert_eq!(wire_word(judged.effect), string(expected, "decision"), "{name}: {judged:?}");
        assert_eq!(judged.rule, string(expected, "policy_rule"), "{name}");
        assert_eq!(changes(&judged), expected_changes(expected), "{name}");
        check_invariants(&name, &judged);
        checked += 1;
    }
    assert_eq!(checked, 10, "{}", folder.display());
}

fn policy() -> Policy {
    Policy::compile(vec![Source::document("conformance.yaml", POLICY)]).expect("the example is valid")
}

fn decide(policy: &Policy, query: &Json) -> Decision {
    let action = action(query);
    let caller = Caller { principal: "agent:example".into(), team: String::new(), org: String::new() };
    let (state, session, now) =
        (State::new(), SessionId::from_bytes([1; 16]), Timestamp::from_micros(1_790_000_000_000_000));
    let digest = action.digest(&[7; 32], &caller.principal, &action.name);
    let request = Request {
        action: &action,
        prepared: prepare(policy, &action, None),
        caller: &caller,
        agent: "example",
        session,
        digest,
        now,
        record: RecordId::from_bytes([2; 16]),
        fresh_approval: ApprovalId::from_bytes([3; 16]),
    };
    judge(policy, request, &state.view(&caller, session, digest, now)).decision
}

/// The action that a query proposes, as the Agent Assembly door reads it.
fn action(query: &Json) -> Action {
    let [(context, members)] = query.get("context").and_then(Json::as_object).expect("a context") else {
        panic!("one context: {query}");
    };
    let spawns = string(query, "action_type") == "AGENT_SPAWN";
    match context.as_str() {
        "llm_call" => Action {
            kind: ActionKind::LlmCall,
            model: string(members, "model"),
            tokens: members.get("prompt_tokens").and_then(Json::as_u64).unwrap_or(0),
            ..Action::default()
        },
        "tool_call" => Action {
            kind: if spawns { ActionKind::AgentSpawn } else { ActionKind::ToolCall },
            name: string(members, "tool_name"),
            args: Json::parse(string(members, "args_json_utf8").as_bytes()).expect("arguments in JSON"),
            url: string(members, "target_url"),
            ..Action::default()
        },
        "file_op" => Action {
            kind: ActionKind::FileOperation,
            operation: string(members, "operation"),
            path: string(members, "path"),
            ..Action::default()
        },
        "network_call" => {
            let (host, port) = (string(members, "host"), members.get("port").and_then(Json::as_u64).unwrap());
            Action {
                kind: ActionKind::NetworkCall,
                url: format!("{}://{host}:{port}", string(members, "protocol")),
                host,
                port: u16::try_from(port).ok(),
                ..Action::default()
            }
        }
        "process_exec" => Action {
            kind: ActionKind::ProcessExec,
            command: std::iter::once(string(members, "command"))
                .chain(members.get("args").and_then(Json::as_array).unwrap_or_default().iter().map(|word| {
                    let word = word.as_str().expect("a word");
                    if word.contains(' ') { format!("'{word}'") } else { word.to_owned() }
                }))
                .collect::<Vec<String>>()
                .join(" "),
            ..Action::default()
        },
        other => panic!("an unknown context `{other}`"),
    }
}

/// Invariants of every answer, whatever the policy says.
fn check_invariants(name: &str, decision: &Decision) {
    assert!(!decision.rule.is_empty(), "{name}");
    assert_eq!(decision.approval.is_some(), decision.effect == Effect::Ask, "{name}");
    assert_eq!(decision.changes.is_empty(), decision.effect != Effect::Redact, "{name}");
}

fn changes(decision: &Decision) -> Vec<(String, String)> {
    let text = |value: &Json| value.as_str().expect("a text").to_owned();
    decision.changes.iter().map(|change| (change.path.clone(), text(&change.replacement))).collect()
}

fn expected_changes(response: &Json) -> Vec<(String, String)> {
    let rules = response.pointer("/redact/rules").and_then(Json::as_array).unwrap_or_default();
    rules.iter().map(|rule| (string(rule, "field_path"), string(rule, "replacement"))).collect()
}

fn wire_word(effect: Effect) -> &'static str {
    match effect {
        Effect::Allow | Effect::Modify => "ALLOW",
        Effect::Deny | Effect::Defer => "DENY",
        Effect::Ask => "PENDING",
        Effect::Redact => "REDACT",
    }
}

fn string(value: &Json, name: &str) -> String {
    value.get(name).and_then(Json::as_str).unwrap_or_default().to_owned()
}
