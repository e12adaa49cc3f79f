//! Defects of the released gateway, tested on ours.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use aa_proto::assembly::agent::v1::{DeregisterRequest, RegisterRequest};
use aa_proto::assembly::common::v1::{AgentIdentityAssurance, Decision};
use aa_proto::assembly::policy::v1::{CheckActionRequest, RedactRule};
use interop_assembly::actions::{file, llm, process, question, tool, tool_result};
use interop_assembly::agent::Agent;
use interop_assembly::gateway::{Gateway, PATIENCE, Place, cpu_time};
use interop_assembly::link::Link;
use interop_assembly::log::assert_whole;
use interop_assembly::policies::{OPEN, zone_where_it_is};
use serde_json::Value;
use tonic::Code;

/// Callers at once.
const CALLERS: usize = 64;

/// More answers than a caller gets before the gateway ends.
const ENDLESS: usize = 100_000;

/// Answers so far: the traces of the questions.
type Answered = Arc<Mutex<BTreeSet<String>>>;

/// Asks as 64 callers until each has had so many answers, or the gateway is gone.
async fn ask_as_many(link: Link, answers: usize, answered: Answered) {
    let agent = Arc::new(link.register("platform").await);
    let callers: Vec<_> = (0..CALLERS)
        .map(|caller| {
            let (link, agent, answered) = (link.clone(), Arc::clone(&agent), Arc::clone(&answered));
            tokio::spawn(async move {
                for number in 0..answers {
                    let trace_id = format!("load-{caller}-{number}");
                    let asked = question(&agent, tool("web_search", "{}"));
                    if link.ask(CheckActionRequest { trace_id: trace_id.clone(), ..asked }).await.is_err() {
                        return;
                    }
                    answered.lock().unwrap().insert(trace_id);
                }
            })
        })
        .collect();
    for caller in callers {
        caller.await.unwrap();
    }
}

async fn has_answered(enough: usize, answered: &Answered) {
    while answered.lock().unwrap().len() < enough {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

/// The traces in the log, each once.
fn logged_traces(place: &Place) -> BTreeSet<String> {
    let mut traces = BTreeSet::new();
    for entry in place.logged() {
        if entry.trace().starts_with("load-") {
            assert!(traces.insert(entry.trace().to_owned()), "{} is logged twice", entry.trace());
        }
    }
    traces
}

#[tokio::test(flavor = "multi_thread")]
async fn every_answer_is_in_the_log_after_an_orderly_end() {
    let place = Place::new(OPEN);
    let gateway = place.start();
    let answered = Answered::default();
    ask_as_many(gateway.link().await, 60, Arc::clone(&answered)).await;
    gateway.terminate().await;
    let answered = answered.lock().unwrap();
    assert_eq!(answered.len(), CALLERS * 60);
    assert_eq!(logged_traces(&place), *answered);
    assert_whole(&place.log());
}

#[tokio::test(flavor = "multi_thread")]
async fn every_answer_is_in_the_log_after_a_violent_end_and_a_restart() {
    let place = Place::new(OPEN);
    let gateway = place.start();
    let answered = Answered::default();
    let asking = ask_as_many(gateway.link().await, ENDLESS, Arc::clone(&answered));
    let enough = has_answered(2000, &answered);
    tokio::select! { () = asking => panic!("nobody stops asking before the end"), () = enough => {} }
    gateway.kill();
    let answered = answered.lock().unwrap().clone();
    // What the kill left to be written is written by the next start.
    let again = place.start();
    let link = again.link().await;
    let agent = link.register("platform").await;
    link.check(&agent, tool("web_search", "{}")).await;
    again.terminate().await;
    all_are_logged(&answered, &place);
}

fn all_are_logged(answered: &BTreeSet<String>, place: &Place) {
    let logged = logged_traces(place);
    let lost: Vec<&String> = answered.difference(&logged).collect();
    assert!(lost.is_empty(), "{} of {} answers are not in the log: {lost:?}", lost.len(), answered.len());
    assert_whole(&place.log());
}

#[tokio::test(flavor = "multi_thread")]
async fn every_answer_is_in_the_log_when_the_gateway_is_asked_to_end_while_it_is_busy() {
    let place = Place::new(OPEN);
    let gateway = place.start();
    let answered = Answered::default();
    let asking = tokio::spawn(ask_as_many(gateway.link().await, ENDLESS, Arc::clone(&answered)));
    has_answered(2000, &answered).await;
    assert!(!asking.is_finished(), "nobody stops asking before the end");
    let status = gateway.terminate().await;
    assert!(status.success(), "{status}");
    tokio::time::timeout(PATIENCE, asking).await.expect("whoever asks hears of the end").unwrap();
    let answered = answered.lock().unwrap();
    assert!(answered.len() < CALLERS * ENDLESS, "the end came while they asked");
    all_are_logged(&answered, &place);
}

/// Policy with all counting sections, with bounds that are never reached.
const COUNTING: &str = r#"
version: "1"
default: allow
tools:
  web_search: { allow: true, limit_per_hour: 1000000000 }
anomalies:
  loops: { count: 1000000000, window: 1h, then: deny }
  spikes: { sigma: 100, at_least: 1000000000, then: deny }
budget: { daily_limit_usd: 1000000000, monthly_limit_usd: 1000000000 }
"#;

/// In how many parts checks are made; their costs are compared.
const PARTS: usize = 9;

/// Allowed ratio of the last part's cost to the first part's. The released gateway, for which a check costs more with each, is above it
/// after 18,000.
const TOLERANCE: f64 = 1.4;

#[tokio::test(flavor = "multi_thread")]
async fn a_check_costs_no_more_after_many() {
    let place = Place::new(COUNTING);
    let gateway = place.start();
    let link = gateway.link().await;
    let agent = link.register("platform").await;
    let part = if std::env::var_os("PROCTOR_FULL").is_some() { 100_000 } else { 18_000 } / PARTS;
    cost_of_checks(&gateway, &link, &agent, 1000).await;
    let mut costs = Vec::new();
    for _ in 0..PARTS {
        costs.push(cost_of_checks(&gateway, &link, &agent, part).await);
    }
    // The cheapest of three at each end: now and then the ledger begins a new file.
    let (early, late) = (costs.iter().take(3).min().unwrap(), costs.iter().rev().take(3).min().unwrap());
    assert!(
        late.as_secs_f64() <= early.as_secs_f64() * TOLERANCE,
        "{early:?} at first, {late:?} at last: {costs:?}"
    );
}

/// The processor time that the gateway needs for so many checks, of tools and of models.
async fn cost_of_checks(gateway: &Gateway, link: &Link, agent: &Agent, checks: usize) -> Duration {
    let before = cpu_time(gateway.pid());
    for number in 0..checks {
        let action = if number.is_multiple_of(4) { llm("gpt-4o", 10) } else { tool("web_search", "{}") };
        let answer = link.check(agent, action).await;
        assert_eq!(answer.decision(), Decision::Allow, "{answer:?}");
    }
    cpu_time(gateway.pid()).saturating_sub(before)
}

#[tokio::test]
async fn a_restart_keeps_agents_their_tokens_and_their_parents() {
    let place = Place::new(OPEN);
    let gateway = place.start();
    let link = gateway.link().await;
    let parent = link.register("platform").await;
    let mut child = link.register_child("platform", &parent).await;
    gateway.terminate().await;

    let gateway = place.start();
    let link = gateway.link().await;
    for agent in [&parent, &child] {
        let answer = link.check(agent, tool("web_search", "{}")).await;
        assert_eq!(answer.decision(), Decision::Allow, "{answer:?}");
        assert_eq!(answer.agent_identity_assurance(), AgentIdentityAssurance::Bound, "{answer:?}");
        assert!(!link.heartbeat(agent).await.unwrap().should_suspend);
    }
    let own = std::mem::take(&mut child.token);
    assert_eq!(link.heartbeat(&child).await.unwrap_err().code(), Code::Unauthenticated, "an empty token");
    let request = DeregisterRequest { agent_id: Some(child.id.clone()), ..DeregisterRequest::default() };
    let refused = link.lifecycle().deregister(request).await.unwrap_err();
    assert_eq!(refused.code(), Code::Unauthenticated, "an empty token");
    child.token = own;

    let request = DeregisterRequest {
        agent_id: Some(parent.id.clone()),
        credential_token: parent.token.clone(),
        reason: String::new(),
    };
    assert!(link.lifecycle().deregister(request).await.unwrap().into_inner().success);
    assert!(link.heartbeat(&child).await.unwrap().should_suspend, "who started it has left");
}

/// The released gateway says that the agent exists, and leaves it locked out.
#[tokio::test]
async fn whoever_lost_its_token_gets_another_with_its_key() {
    let place = Place::new(OPEN);
    let gateway = place.start();
    let link = gateway.link().await;
    let mut agent = link.register("platform").await;
    let again = link.registration(&agent).await.unwrap();
    let token = link.lifecycle().register(again).await.unwrap().into_inner().credential_token;
    assert_ne!(token, agent.token);
    assert_eq!(
        link.heartbeat(&agent).await.unwrap_err().code(),
        Code::Unauthenticated,
        "the old token is void"
    );
    agent.token = token;
    link.heartbeat(&agent).await.unwrap();
    let stolen = link.registration(&agent).await.unwrap();
    let stolen = RegisterRequest { possession_proof: vec![7; 64], ..stolen };
    assert_eq!(link.lifecycle().register(stolen).await.unwrap_err().code(), Code::Unauthenticated);
    link.heartbeat(&agent).await.unwrap();
}

#[tokio::test]
async fn running_a_program_is_for_the_policy_to_decide() {
    let place = Place::new("version: \"1\"\ndefault: allow\ncapabilities:\n  deny: [network_outbound]\n");
    let gateway = place.start();
    let link = gateway.link().await;
    let agent = link.register("platform").await;
    assert_eq!(link.decision(&agent, process("ls", &["-l"])).await, Decision::Allow);
    gateway.terminate().await;
    place.set_policy("version: \"1\"\ndefault: allow\ncapabilities:\n  deny: [terminal_exec]\n");
    let gateway = place.start();
    let link = gateway.link().await;
    assert_eq!(link.decision(&agent, process("ls", &["-l"])).await, Decision::Deny);
}

/// Policy of Agent Assembly's own example.
const GUARDED: &str = r#"
version: "1"
tools:
  file_write:
    allow: true
    requires_approval_if: path starts_with "/etc" OR path starts_with "/usr"
  shell: { allow: false }
"#;

#[tokio::test]
async fn a_guard_on_writing_files_fires() {
    let place = Place::new(GUARDED);
    let gateway = place.start();
    let link = gateway.link().await;
    let agent = link.register("platform").await;
    let in_args = |path: &str| tool("file_write", &format!(r#"{{"path":"{path}","content":"x"}}"#));
    for action in [file("write", "/etc/passwd"), file("create", "/usr/bin/x"), in_args("/etc/passwd")] {
        let answer = link.check(&agent, action.clone()).await;
        assert_eq!(answer.decision(), Decision::Pending, "{action:?}: {answer:?}");
    }
    for action in [file("write", "/srv/notes"), in_args("/srv/notes")] {
        let answer = link.check(&agent, action.clone()).await;
        assert_eq!(answer.decision(), Decision::Allow, "{action:?}: {answer:?}");
    }
    assert_eq!(link.decision(&agent, process("bash", &["-c", "true"])).await, Decision::Deny);
}

#[tokio::test]
async fn hours_may_run_over_midnight() {
    for (local_hour, decision) in [(1, Decision::Allow), (12, Decision::Deny)] {
        let zone = zone_where_it_is(local_hour);
        let place = Place::new(&format!(
            "version: \"1\"\ndefault: allow\nschedule:\n  active_hours: {{ start: \"22:00\", end: \"06:00\", timezone: {zone} }}\n"
        ));
        let gateway = place.start();
        let link = gateway.link().await;
        let agent = link.register("platform").await;
        let answer = link.check(&agent, tool("web_search", "{}")).await;
        assert_eq!(answer.decision(), decision, "{zone}: {answer:?}");
    }
}

#[tokio::test]
async fn what_is_cut_has_a_path_and_a_kind_and_leaves_json() {
    let place = Place::new(OPEN);
    let gateway = place.start();
    let link = gateway.link().await;
    let agent = link.register("platform").await;
    let text = r#"{"api_key":"sk-1234567890abcdefghij","nested":{"list":["x","AKIAIOSFODNN7EXAMPLE"]},"body":"hello"}"#;
    for (action, member) in [(tool("http_post", text), "args"), (tool_result("http_post", text), "result")] {
        let answer = link.check(&agent, action).await;
        assert_eq!(answer.decision(), Decision::Redact, "{answer:?}");
        let rules = answer.redact.expect("what to cut").rules;
        let expected = [
            (format!("$.{member}.api_key"), "[REDACTED:OpenAiKey]"),
            (format!("$.{member}.nested.list[1]"), "[REDACTED:AwsAccessKey]"),
        ];
        let found: Vec<(String, &str)> =
            rules.iter().map(|rule| (rule.field_path.clone(), rule.replacement.as_str())).collect();
        assert_eq!(found, expected);
        let cut = cut(serde_json::from_str(text).unwrap(), member, &rules);
        assert_eq!(
            cut.to_string(),
            r#"{"api_key":"[REDACTED:OpenAiKey]","body":"hello","nested":{"list":["x","[REDACTED:AwsAccessKey]"]}}"#
        );
    }
    gateway.terminate().await;
    let log = std::fs::read_to_string(place.log()).unwrap();
    assert!(!log.contains("sk-1234567890abcdefghij") && !log.contains("AKIAIOSFODNN7EXAMPLE"), "{log}");
    let redacted: Vec<_> =
        place.logged().into_iter().filter(|entry| entry.event_type() == "CredentialLeakBlocked").collect();
    assert_eq!(redacted.len(), 2, "{log}");
    for entry in redacted {
        let text = &entry.line["redacted_payload"];
        let text = text.as_str().unwrap_or_else(|| panic!("what was cut is in the log: {entry:?}"));
        let cut: Value = serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"));
        assert!(text.contains("[REDACTED:OpenAiKey]") && text.contains("[REDACTED:AwsAccessKey]"), "{text}");
        assert!(text.contains("hello"), "what was not cut stays: {cut}");
    }
    assert_whole(&place.log());
}

/// Applies the instructions as a client does: each path is replaced.
fn cut(mut value: Value, member: &str, rules: &[RedactRule]) -> Value {
    for rule in rules {
        let path = rule.field_path.strip_prefix(&format!("$.{member}")).expect("a path below the member");
        let pointer = path.replace(['.', '['], "/").replace(']', "");
        *value.pointer_mut(&pointer).unwrap_or_else(|| panic!("{path} is there")) =
            rule.replacement.clone().into();
    }
    value
}

#[tokio::test]
async fn patterns_of_a_new_policy_hold_without_a_restart() {
    let place = Place::new(OPEN);
    let gateway = place.start();
    let link = gateway.link().await;
    let agent = link.register("platform").await;
    let action = || tool("send", r#"{"text":"ticket-4711"}"#);
    assert_eq!(link.decision(&agent, action()).await, Decision::Allow);
    place.set_policy(&format!("{OPEN}data:\n  sensitive_patterns: ['ticket-[0-9]+']\n"));
    let patience = tokio::time::Instant::now() + PATIENCE;
    let answer = loop {
        let answer = link.check(&agent, action()).await;
        if answer.decision() != Decision::Allow || tokio::time::Instant::now() > patience {
            break answer;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    };
    assert_eq!(answer.decision(), Decision::Redact, "{answer:?}");
    let rules = answer.redact.expect("what to cut").rules;
    assert_eq!(
        (rules[0].field_path.as_str(), rules[0].replacement.as_str()),
        ("$.args.text", "[REDACTED:Custom]")
    );
}

#[tokio::test]
async fn a_policy_that_cannot_be_read_changes_nothing() {
    let place = Place::new("version: \"1\"\ndefault: deny\n");
    let gateway = place.start();
    let link = gateway.link().await;
    let agent = link.register("platform").await;
    place.set_policy("version: \"1\"\ndefualt: allow\n");
    for _ in 0..50 {
        assert_eq!(link.decision(&agent, tool("web_search", "{}")).await, Decision::Deny);
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
