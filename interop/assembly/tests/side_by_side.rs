//! The released gateway beside ours: the same documents, the same questions, the same answers. Where ours differs on purpose, the difference is named.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

use aa_proto::assembly::common::v1::Decision::{self, Allow, Deny, Pending, Redact};
use aa_proto::assembly::policy::v1::action_context::Action;
use interop_assembly::actions::{file, llm, network, process, tool, tool_result};
use interop_assembly::agent::Agent;
use interop_assembly::gateway::Place;
use interop_assembly::link::Link;
use interop_assembly::official::Official;

/// A document of sections, as both read it.
const SECTIONS: &str = r#"
version: "1"
network:
  allowlist: [api.openai.com, "*.example.org"]
tools:
  web_search: { allow: true }
  denied_tool: { allow: false }
  silent_tool: {}
  pay: { allow: true, requires_approval_if: args.amount > 100 AND args.currency == "USD" }
  limited: { allow: true, limit_per_hour: 2 }
capabilities:
  deny: [file_delete]
data:
  sensitive_patterns: ['ticket-[0-9]+']
"#;

/// What both are asked, one after the other, and what each says.
fn questions() -> Vec<(Action, Decision, Decision)> {
    let same = |action: Action, both: Decision| (action, both, both);
    vec![
        same(tool("web_search", r#"{"q":"x"}"#), Allow),
        same(tool("denied_tool", "{}"), Deny),
        same(tool("silent_tool", "{}"), Deny),
        same(tool("unlisted_tool", "{}"), Allow),
        same(tool("pay", r#"{"amount":50,"currency":"USD"}"#), Allow),
        same(tool("pay", r#"{"amount":500,"currency":"EUR"}"#), Allow),
        same(tool("pay", r#"{"amount":500,"currency":"USD"}"#), Pending),
        same(tool("pay", "{}"), Allow),
        same(tool("limited", "{}"), Allow),
        same(tool("limited", "{}"), Allow),
        same(tool("limited", "{}"), Deny),
        same(tool("web_search", r#"{"q":"see ticket-4711"}"#), Redact),
        same(tool("web_search", r#"{"q":"AKIAIOSFODNN7EXAMPLE"}"#), Redact),
        same(tool_result("web_search", r#"{"hits":["ghp_abcdefghijklmnopqrstuvwxyz0123456789"]}"#), Redact),
        same(llm("gpt-4o", 100), Allow),
        same(file("read", "/srv/notes"), Allow),
        same(file("write", "/srv/notes"), Allow),
        same(file("delete", "/srv/notes"), Deny),
        same(network("api.openai.com"), Allow),
        same(network("API.OpenAI.com"), Allow),
        same(network("a.b.example.org"), Allow),
        same(network("example.org"), Deny),
        same(network("elsewhere.example"), Deny),
        // The released gateway denies every program, whatever its policy says.
        (process("ls", &["-l"]), Deny, Allow),
    ]
}

#[tokio::test]
async fn sections_mean_the_same_to_both() {
    let place = Place::new(SECTIONS);
    let (gateway, official) = (place.start(), Official::start(SECTIONS).await);
    let (ours, theirs) = (gateway.link().await, official.link().await);
    let (our_agent, their_agent) = (ours.register("platform").await, theirs.register("platform").await);
    let mut differences = Vec::new();
    for (action, they_say, we_say) in questions() {
        let (their_answer, our_answer) =
            (answer(&theirs, &their_agent, &action).await, answer(&ours, &our_agent, &action).await);
        if their_answer.0 != they_say {
            differences.push(format!("theirs: {action:?}: {they_say:?} expected: {their_answer:?}"));
        }
        if our_answer.0 != we_say {
            differences.push(format!("ours: {action:?}: {we_say:?} expected: {our_answer:?}"));
        }
        if they_say == Deny && we_say == Deny && !our_answer.1.starts_with(&their_answer.1) {
            differences.push(format!("reason: {action:?}: theirs {their_answer:?}, ours {our_answer:?}"));
        }
    }
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}

/// A decision, and why.
async fn answer(link: &Link, agent: &Agent, action: &Action) -> (Decision, String) {
    let answer = link.check(agent, action.clone()).await;
    (answer.decision(), answer.reason)
}

#[tokio::test]
async fn lines_of_the_log_have_the_same_members() {
    let place = Place::new(SECTIONS);
    let (gateway, official) = (place.start(), Official::start(SECTIONS).await);
    let mut agents = Vec::new();
    for link in [gateway.link().await, official.link().await] {
        let agent = link.register("platform").await;
        link.check(&agent, tool("web_search", r#"{"q":"x"}"#)).await;
        link.check(&agent, tool("denied_tool", "{}")).await;
        link.check(&agent, tool("web_search", r#"{"q":"AKIAIOSFODNN7EXAMPLE"}"#)).await;
        agents.push(agent);
    }
    gateway.terminate().await;
    let (ours, theirs) = (place.logged(), official.logged(3).await);
    for kind in ["ToolCallIntercepted", "PolicyViolation", "CredentialLeakBlocked"] {
        let of_kind = |entries: &[interop_assembly::log::Entry]| {
            let found = entries
                .iter()
                .find(|entry| entry.event_type() == kind && !entry.payload["decision"].is_null());
            found.unwrap_or_else(|| panic!("a {kind}: {entries:#?}")).clone()
        };
        let (ours, theirs) = (of_kind(&ours), of_kind(&theirs));
        // The released gateway names the document only where it has several.
        let named: Vec<String> =
            members(&ours.line).into_iter().filter(|name| name != "policy_doc_id").collect();
        assert_eq!(named, members(&theirs.line), "{kind}");
        let missing: Vec<String> =
            members(&theirs.payload).into_iter().filter(|name| ours.payload.get(name).is_none()).collect();
        assert!(missing.is_empty(), "{kind}: {missing:?} of {}\nnot in {}", theirs.payload, ours.payload);
        for name in [
            "action",
            "action_type",
            "agent_identity_assurance",
            "decision",
            "team_id",
            "trace_id",
            "verdict",
        ] {
            assert_eq!(ours.payload[name], theirs.payload[name], "{kind}: {name}");
        }
        for (entry, agent) in [(&theirs, &agents[1]), (&ours, &agents[0])] {
            assert_eq!(entry.payload["agent_id_hex"], agent.policy_id(), "{kind}: {entry:?}");
            assert_eq!(entry.payload["root_agent_id"], agent.topology_id(), "{kind}: {entry:?}");
            assert!(entry.payload["org_id"].is_null(), "{kind}: an agent without organisation: {entry:?}");
        }
    }
}

fn members(value: &serde_json::Value) -> Vec<String> {
    let mut names: Vec<String> = value.as_object().expect("an object").keys().cloned().collect();
    names.sort();
    names
}
