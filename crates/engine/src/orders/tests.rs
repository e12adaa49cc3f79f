use std::sync::Arc;
use std::time::Duration;

use proctor_core::action::Action;
use proctor_core::record::Registration;
use proctor_core::session::Caller;
use proctor_ledger::{Ledger, Options};
use proctor_policy::policy::{Policy, Source};

use super::*;
use crate::state_dir::StateDir;
use crate::{Parts, Proposal};
use proctor_system::{SystemClock, SystemRandomness};

/// An engine that knows these agents: principal and identifier.
fn engine(folder: &tempfile::TempDir, agents: &[(&str, &str)]) -> Engine {
    let state = StateDir::new(&folder.path().join("state"));
    state.create(&SystemRandomness).unwrap();
    let options = Options::new(state.key().unwrap(), Arc::new(SystemClock), Arc::new(SystemRandomness));
    let engine = Engine::start(Parts {
        ledger: Ledger::open(state.path(), options).unwrap(),
        policy: Policy::compile(vec![Source::document("policy.yaml", "default: allow\n")]).unwrap(),
        secret: [7; 32],
        clock: Arc::new(SystemClock),
        randomness: Arc::new(SystemRandomness),
        resolver: None,
        answer: Duration::from_secs(30),
    })
    .unwrap();
    for (principal, agent) in agents {
        let event = AgentEvent {
            principal: (*principal).to_owned(),
            agent: (*agent).to_owned(),
            code: "registered",
            registration: Some(Box::new(Registration {
                name: format!("the {agent}"),
                ..Registration::default()
            })),
            ..AgentEvent::default()
        };
        engine.change_agents_now(|_, _| Ok::<_, EngineError>((vec![event], ()))).unwrap();
    }
    engine
}

fn stopped(engine: &Engine) -> Vec<(String, bool)> {
    engine
        .look_up(|registry| registry.operations().map(|(name, ended)| (name.to_owned(), ended)).collect())
        .unwrap()
}

const AGENTS: [(&str, &str); 3] =
    [("agent:acme/red/bot", "bot"), ("agent:acme/blue/bot", "bot"), ("agent:acme/red/other", "other")];

#[test]
fn an_operation_of_an_agent_is_its_principal_whatever_it_is_called() {
    let folder = tempfile::tempdir().unwrap();
    let engine = engine(&folder, &AGENTS);
    for named in [
        "agent:acme/red/other",
        "agent:other",
        "agent:agent:acme/red/other",
        "agent:acme/red/o",
        "agent:the other",
    ] {
        let answer = operate(&engine, named, "pause", "for now", "uid:0").unwrap();
        assert_eq!(answer.get("operation").and_then(Json::as_str), Some("agent:acme/red/other"), "{named}");
        assert_eq!(stopped(&engine), [("agent:acme/red/other".to_owned(), false)], "{named}");
        operate(&engine, named, "resume", "", "uid:0").unwrap();
        assert_eq!(stopped(&engine), [], "{named}");
    }
}

#[test]
fn an_operation_of_nobody_or_of_several_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let engine = engine(&folder, &AGENTS);
    let refused = |named: &str| operate(&engine, named, "terminate", "", "uid:0").unwrap_err().to_string();
    assert_eq!(refused("agent:nobody"), "no agent is called `nobody`: `proctor agent list` shows all");
    assert!(refused("agent:bot").starts_with("`bot` can be `agent:acme/blue/bot` or `agent:acme/red/bot`"));
    assert!(refused("agent:").contains("is not an operation"));
    assert!(refused("bot").contains("is not an operation"));
    assert_eq!(stopped(&engine), []);
    // Other operations are anybody's.
    operate(&engine, "trace:span", "terminate", "", "uid:0").unwrap();
    operate(&engine, "*", "pause", "", "uid:0").unwrap();
    assert_eq!(stopped(&engine).len(), 2);
}

#[test]
fn what_is_stopped_can_be_resumed_when_its_agent_is_forgotten() {
    let folder = tempfile::tempdir().unwrap();
    let engine = engine(&folder, &AGENTS);
    operate(&engine, "agent:other", "pause", "", "uid:0").unwrap();
    order(&engine, "other", Order::Deregister, "", "uid:0").unwrap();
    operate(&engine, "agent:acme/red/other", "resume", "", "uid:0").unwrap();
    assert_eq!(stopped(&engine), []);
}

#[test]
fn an_order_for_nobody_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let engine = engine(&folder, &AGENTS);
    for nobody in ["uid:4242", "agent:ghost", "local", "nobody"] {
        for word in [Order::Suspend, Order::Kill, Order::Resume, Order::Deregister] {
            let refused = order(&engine, nobody, word, "", "uid:0");
            assert_eq!(refused, Err(OrderError::UnknownAgent(nobody.to_owned())), "{word:?}");
        }
    }
    // A principal that has acted can be stopped without having registered.
    let caller = Caller { principal: "uid:4242".to_owned(), ..Caller::default() };
    let action = Action { name: "Bash".to_owned(), ..Action::default() };
    let proposal = Proposal { action, caller, agent: String::new(), session: "s".to_owned() };
    let answer = engine.deliver(engine.submit(proposal));
    assert_eq!(answer.to_json().get("decision").and_then(Json::as_str), Some("allow"));
    order(&engine, "uid:4242", Order::Suspend, "", "uid:0").unwrap();
    assert!(engine.look_up(|registry| registry.stop("uid:4242").is_some()).unwrap());
}
