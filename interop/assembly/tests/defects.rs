//! What the released gateway gets wrong, asked of ours.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use aa_proto::assembly::agent::v1::{DeregisterRequest, RegisterRequest};
use aa_proto::assembly::common::v1::{AgentIdentityAssurance, Decision};
use aa_proto::assembly::policy::v1::{CheckActionRequest, RedactRule};
use interop_assembly::actions::{file, process, question, tool, tool_result};
use interop_assembly::agent::Agent;
use interop_assembly::gateway::{Gateway, PATIENCE, Place, cpu_time};
use interop_assembly::link::Link;
use interop_assembly::log::assert_whole;
use interop_assembly::policies::OPEN;
use serde_json::Value;
use tonic::Code;

/// Callers at once.
const CALLERS: usize = 64;

/// What has been answered so far: the traces of the questions.
type Answered = Arc<Mutex<BTreeSet<String>>>;

/// Asks as 64 callers until each has had so many answers, or the gateway is gone.
async fn ask_as_many(gateway: &Gateway, answers: usize, answered: &Answered) {
    let link = gateway.link().await;
    let agent = Arc::new(link.register("platform").await);
    let callers: Vec<_> = (0..CALLERS)
        .map(|caller| {
            let (link, agent, answered) = (link.clone(), Arc::clone(&agent), Arc::clone(answered));
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
    ask_as_many(&gateway, 60, &answered).await;
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
    let asking = ask_as_many(&gateway, 100_000, &answered);
    let enough = async {
        while answered.lock().unwrap().len() < 2000 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    tokio::select! { () = asking => panic!("nobody stops asking before the end"), () = enough => {} }
    gateway.kill();
    let answered = answered.lock().unwrap().clone();
    // What the kill left to be written is written by the next start.
    let again = place.start();
    let link = again.link().await;
    let agent = link.register("platform").await;
    link.check(&agent, tool("web_search", "{}")).await;
    again.terminate().await;
    let logged = logged_traces(&place);
    let lost: Vec<&String> = answered.difference(&logged).collect();
    assert!(lost.is_empty(), "{} of {} answers are not in the log: {lost:?}", lost.len(), answered.len());
    assert_whole(&place.log());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_check_costs_no_more_after_many() {
    let place = Place::new(OPEN);
    let gateway = place.start();
    let answered = Answered::default();
    ask_as_many(&gateway, 16, &answered).await;
    let link = gateway.link().await;
    let agent = link.register("platform").await;
    let early = cost_of_checks(&gateway, &link, &agent).await;
    for _ in 0..8 {
        cost_of_checks(&gateway, &link, &agent).await;
    }
    let late = cost_of_checks(&gateway, &link, &agent).await;
    assert!(
        late < early * 2 + Duration::from_millis(100),
        "{early:?} at first, {late:?} after 18,000 checks"
    );
}

/// The processor time that the gateway needs for 2000 checks.
async fn cost_of_checks(gateway: &Gateway, link: &Link, agent: &Agent) -> Duration {
    let before = cpu_time(gateway.pid());
    for _ in 0..2000 {
        link.check(agent, tool("web_search", "{}")).await;
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

/// As Agent Assembly's own example has it.
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

/// A time zone in which it is about this hour now. Zones of this kind have the sign the other way round.
#[expect(clippy::disallowed_methods, reason = "the gateway goes by the machine's clock")]
fn zone_where_it_is(hour: i64) -> String {
    let now = i64::try_from(SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs()).unwrap();
    let offset = (hour - now / 3600 % 24 + 36) % 24 - 12;
    if offset > 0 { format!("Etc/GMT-{offset}") } else { format!("Etc/GMT+{}", -offset) }
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
        if let Some(text) = entry.line["redacted_payload"].as_str() {
            serde_json::from_str::<Value>(text).unwrap_or_else(|error| panic!("{error}: {text}"));
        }
    }
    assert_whole(&place.log());
}

/// What a client makes of the instructions: each path is replaced.
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
