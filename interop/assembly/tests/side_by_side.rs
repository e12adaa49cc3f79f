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
use interop_assembly::policies::zone_where_it_is;

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

/// An action, and the decisions of both gateways.
type Question = (Action, Decision, Decision);

fn same(action: Action, both: Decision) -> Question {
    (action, both, both)
}

/// An action with a key in it.
fn with_key() -> Action {
    tool("web_search", r#"{"q":"AKIAIOSFODNN7EXAMPLE"}"#)
}

#[tokio::test]
async fn sections_mean_the_same_to_both() {
    let questions = vec![
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
        same(with_key(), Redact),
        same(tool_result("web_search", r#"{"hits":["ghp_abcdefghijklmnopqrstuvwxyz0123456789"]}"#), Redact),
        same(llm("gpt-4o", 100), Allow),
        same(file("read", "/srv/notes"), Allow),
        same(file("write", "/srv/notes"), Allow),
        same(file("append", "/srv/notes"), Allow),
        same(file("create", "/srv/notes"), Allow),
        same(file("delete", "/srv/notes"), Deny),
        same(network("api.openai.com"), Allow),
        same(network("API.OpenAI.com"), Allow),
        same(network("a.b.example.org"), Allow),
        same(network("example.org"), Deny),
        same(network("elsewhere.example"), Deny),
        // The released gateway denies every program, whatever its policy says.
        (process("ls", &["-l"]), Deny, Allow),
    ];
    agree(SECTIONS, questions).await;
}

#[tokio::test]
async fn what_happens_to_secrets_means_the_same_to_both() {
    let secrets = || {
        [
            with_key(),
            tool("web_search", r#"{"q":"bob@example.org"}"#),
            tool("web_search", r#"{"q":"see ticket-4711"}"#),
            tool_result("web_search", r#"{"hits":["AKIAIOSFODNN7EXAMPLE"]}"#),
            file("read", "/srv/AKIAIOSFODNN7EXAMPLE"),
            network("akiaiosfodnn7example.example.org"),
        ]
    };
    for (action, decision) in
        [("block", Deny), ("alert_only", Allow), ("redact_only", Redact), ("alert_and_redact", Redact)]
    {
        let document = format!(
            "version: \"1\"\ndata: {{ credential_action: {action}, sensitive_patterns: ['ticket-[0-9]+'] }}\n"
        );
        let mut questions: Vec<Question> =
            secrets().into_iter().map(|question| same(question, decision)).collect();
        // To the released gateway, a secret on its way to a host is an anomaly, whatever the policy says.
        if decision == Allow
            && let Some(to_a_host) = questions.last_mut()
        {
            to_a_host.1 = Deny;
        }
        questions.extend([
            same(tool("web_search", r#"{"q":"x"}"#), Allow),
            same(llm("gpt-4o", 10), Allow),
            same(file("read", "/srv/notes"), Allow),
        ]);
        agree(&document, questions).await;
    }
}

#[tokio::test]
async fn capabilities_mean_the_same_to_both() {
    let reading = r#"
version: "1"
capabilities: { allow: [file_read, "mcp_tool:web_search"] }
"#;
    let mut questions = vec![
        same(tool("web_search", "{}"), Allow),
        same(tool_result("web_search", "{}"), Allow),
        same(file("read", "/srv/notes"), Allow),
    ];
    let outside = [
        tool("other", "{}"),
        tool_result("other", "{}"),
        file("write", "/srv/notes"),
        file("append", "/srv/notes"),
        file("create", "/srv/notes"),
        file("delete", "/srv/notes"),
        network("example.org"),
        llm("gpt-4o", 10),
        process("ls", &[]),
    ];
    questions.extend(outside.map(|action| same(action, Deny)));
    agree(reading, questions).await;

    let writing = r#"
version: "1"
capabilities: { allow: [file_write, network_outbound, terminal_exec, "mcp_tool:llm_call"] }
"#;
    let questions = vec![
        same(file("write", "/srv/notes"), Allow),
        same(file("append", "/srv/notes"), Allow),
        same(file("create", "/srv/notes"), Allow),
        same(network("example.org"), Allow),
        same(llm("gpt-4o", 10), Allow),
        same(file("read", "/srv/notes"), Deny),
        same(file("delete", "/srv/notes"), Deny),
        same(tool("web_search", "{}"), Deny),
        // As above: programs.
        (process("ls", &[]), Deny, Allow),
    ];
    agree(writing, questions).await;

    let denying = r#"
version: "1"
capabilities:
  allow: [file_read, file_write, file_delete, network_outbound, "mcp_tool:shell", "mcp_tool:other"]
  deny: [file_write, network_outbound, terminal_exec, "mcp_tool:shell"]
"#;
    let questions = vec![
        same(file("read", "/srv/notes"), Allow),
        same(file("write", "/srv/notes"), Deny),
        same(file("append", "/srv/notes"), Deny),
        same(file("create", "/srv/notes"), Deny),
        // Whoever may not write may not delete.
        same(file("delete", "/srv/notes"), Deny),
        same(network("example.org"), Deny),
        same(process("ls", &[]), Deny),
        same(tool("shell", "{}"), Deny),
        same(tool("other", "{}"), Allow),
    ];
    agree(denying, questions).await;
}

#[tokio::test]
async fn hosts_mean_the_same_to_both() {
    for (allowlist, listed, unlisted) in [
        ("network: { allowlist: [] }", Deny, Deny),
        ("network: {}", Deny, Deny),
        ("network: { allowlist: [\"*\"] }", Allow, Allow),
        ("network: { allowlist: [example.org] }", Allow, Deny),
        ("", Allow, Allow),
    ] {
        let questions = vec![
            same(network("example.org"), listed),
            same(network("localhost"), unlisted),
            same(network("sub.example.org"), unlisted),
            same(tool("web_search", "{}"), Allow),
            same(file("read", "/srv/notes"), Allow),
        ];
        agree(&format!("version: \"1\"\n{allowlist}\n"), questions).await;
    }
}

#[tokio::test]
async fn tools_mean_the_same_to_both() {
    let wildcard = r#"
version: "1"
tools:
  "*": { allow: false }
  web_search: { allow: true }
"#;
    let questions = vec![
        same(tool("web_search", "{}"), Allow),
        same(tool("other", "{}"), Deny),
        same(llm("gpt-4o", 10), Deny),
        // The released gateway asks its tools about calls alone.
        (tool_result("other", "{}"), Allow, Deny),
        (file("read", "/srv/notes"), Allow, Deny),
        (network("example.org"), Allow, Deny),
    ];
    agree(wildcard, questions).await;

    let named = r#"
version: "1"
tools:
  llm_call: { allow: false }
  file_write: { allow: false }
  "*": { allow: true, limit_per_hour: 1 }
"#;
    let questions = vec![
        same(llm("gpt-4o", 10), Deny),
        same(tool("file_write", "{}"), Deny),
        same(tool("one", "{}"), Allow),
        same(tool("other", "{}"), Allow),
        same(tool("one", "{}"), Deny),
        same(tool("other", "{}"), Deny),
        same(file("read", "/srv/notes"), Allow),
        (file("write", "/srv/notes"), Allow, Deny),
        (file("append", "/srv/notes"), Allow, Deny),
        (file("create", "/srv/notes"), Allow, Deny),
    ];
    agree(named, questions).await;
}

#[tokio::test]
async fn hours_mean_the_same_to_both() {
    let zone = zone_where_it_is(12);
    for (start, end, decision) in [
        ("00:00", "10:00", Deny),
        ("15:00", "23:00", Deny),
        ("10:00", "15:00", Allow),
        ("00:00", "23:59", Allow),
    ] {
        let document = format!(
            "version: \"1\"\nschedule:\n  active_hours: {{ start: \"{start}\", end: \"{end}\", timezone: {zone} }}\n"
        );
        let questions = vec![
            same(tool("web_search", "{}"), decision),
            same(llm("gpt-4o", 10), decision),
            same(file("append", "/srv/notes"), decision),
            same(network("example.org"), decision),
        ];
        agree(&document, questions).await;
    }
}

#[tokio::test]
async fn budgets_mean_the_same_to_both() {
    // A thousand tokens cost half a cent. The call that crosses the limit is let through.
    let thousand = || llm("gpt-4o", 1000);
    for limit in
        ["daily_limit_usd: 0.01", "monthly_limit_usd: 0.01", "daily_limit_usd: 0.01, monthly_limit_usd: 10"]
    {
        let questions = vec![
            same(thousand(), Allow),
            same(tool("web_search", "{}"), Allow),
            same(thousand(), Allow),
            same(thousand(), Deny),
            same(llm("gpt-4o", 1), Deny),
            same(tool("web_search", "{}"), Deny),
            same(file("read", "/srv/notes"), Deny),
        ];
        agree(&format!("version: \"1\"\nbudget: {{ {limit} }}\n"), questions).await;
    }
    // What each family of models costs, and one that nobody knows; without tokens a thousand are counted.
    // The names are short, because the released gateway takes some longer ones for secrets.
    for (model, limit, calls) in [
        ("gpt-4", "0.06", 2),
        ("gpt-3.5", "0.001", 2),
        ("opus", "0.03", 2),
        ("sonnet", "0.006", 2),
        ("haiku", "0.0005", 2),
        ("command-r-plus", "0.006", 2),
        ("command-r", "0.001", 2),
        ("mystery-model", "0.01", 1),
    ] {
        let mut questions = vec![same(llm(model, 0), Allow); calls];
        questions.push(same(llm(model, 1), Deny));
        agree(&format!("version: \"1\"\nbudget: {{ daily_limit_usd: {limit} }}\n"), questions).await;
    }
}

/// Asks both, one question after the other. Where both say no, or cut, the released words come first in ours.
async fn agree(document: &str, questions: Vec<Question>) {
    let place = Place::new(document);
    let (gateway, official) = (place.start(), Official::start(document).await);
    let (ours, theirs) = (gateway.link().await, official.link().await);
    let (our_agent, their_agent) = (ours.register("platform").await, theirs.register("platform").await);
    let mut differences = Vec::new();
    for (action, they_say, we_say) in questions {
        let (their_answer, our_answer) =
            (answer(&theirs, &their_agent, &action).await, answer(&ours, &our_agent, &action).await);
        if their_answer.0 != they_say {
            differences.push(format!("theirs: {action:?}: {they_say:?} expected: {their_answer:?}"));
        }
        if our_answer.0 != we_say {
            differences.push(format!("ours: {action:?}: {we_say:?} expected: {our_answer:?}"));
        }
        if they_say == we_say
            && matches!(we_say, Deny | Redact)
            && (their_answer.1.is_empty() || !our_answer.1.starts_with(&their_answer.1))
        {
            differences.push(format!("reason: {action:?}: theirs {their_answer:?}, ours {our_answer:?}"));
        }
    }
    assert!(differences.is_empty(), "{document}\n{}", differences.join("\n"));
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
