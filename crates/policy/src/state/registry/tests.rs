mod law;

use proctor_core::id::RecordId;
use proctor_core::record::{Envelope, RecordKind, Registration};
use proctor_core::time::Timestamp;

use super::*;

fn token(name: &str) -> Digest {
    Digest::of(name.as_bytes())
}

fn record(code: &str, principal: &str) -> Envelope {
    let mut envelope =
        Envelope::new(RecordId::from_bytes([3; 16]), Timestamp::from_micros(1_000), RecordKind::Agent);
    code.clone_into(&mut envelope.code);
    principal.clone_into(&mut envelope.principal);
    envelope.agent = format!("id-{principal}");
    envelope
}

fn registered(principal: &str, parent: &str) -> Envelope {
    let registration = Registration {
        token: Some(token(principal)),
        name: principal.to_uppercase(),
        risk: "low".to_owned(),
        parent: parent.to_owned(),
        depth: u32::from(!parent.is_empty()),
        ..Registration::default()
    };
    Envelope {
        team: "red".to_owned(),
        org: "acme".to_owned(),
        registration: Some(Box::new(registration)),
        ..record("registered", principal)
    }
}

fn order(code: &str, principal: &str, cause: &str) -> Envelope {
    Envelope { name: cause.to_owned(), rule: "because".to_owned(), ..record(code, principal) }
}

fn operation(code: &str, name: &str) -> Envelope {
    Envelope { name: name.to_owned(), ..record(code, "operator") }
}

fn after(records: &[Envelope]) -> Registry {
    after_with(BOUNDS, records)
}

fn after_with(bounds: Bounds, records: &[Envelope]) -> Registry {
    let mut registry = Registry::with_bounds(bounds);
    for (seq, record) in records.iter().enumerate() {
        registry.apply(seq as u64, record, &mut Vec::new());
    }
    registry
}

fn stop(registry: &Registry, principal: &str) -> Option<(String, String)> {
    registry.stop(principal).map(|stop| (stop.rule, stop.reason))
}

fn rule(registry: &Registry, principal: &str) -> Option<String> {
    registry.stop(principal).map(|stop| stop.rule)
}

#[expect(clippy::unnecessary_wraps, reason = "it is compared with what may be nothing")]
fn said(rule: &str, reason: &str) -> Option<(String, String)> {
    Some((rule.to_owned(), reason.to_owned()))
}

#[test]
fn an_agent_registers_and_is_found_by_its_token() {
    let policy = token("policy");
    let registry = after(&[Envelope { policy: Some(policy), ..registered("a", "") }, registered("b", "a")]);
    let a = registry.get("a").unwrap();
    assert_eq!((a.agent.as_str(), a.team.as_str(), a.org.as_str()), ("id-a", "red", "acme"));
    assert_eq!((a.registered_at.micros(), a.registered_seq, a.told), (1_000, 0, Some(policy)));
    assert!(a.is_registered());
    assert_eq!(registry.by_token(&token("b")).map(|agent| agent.principal.as_str()), Some("b"));
    assert_eq!(registry.by_token(&token("c")), None);
    let names =
        |agents: Vec<&AgentInfo>| agents.iter().map(|agent| agent.principal.clone()).collect::<Vec<_>>();
    assert_eq!(names(registry.list().collect()), ["a", "b"]);
    assert_eq!(names(registry.children("a").collect()), ["b"]);
    assert_eq!(names(registry.lineage("b")), ["b", "a"]);
    assert_eq!(registry.stop("b"), None);
}

#[test]
fn standing_says_what_is_known() {
    let mut high = registered("a", "");
    high.registration.as_mut().unwrap().risk = "high".to_owned();
    let mut child = registered("b", "a");
    child.registration.as_mut().unwrap().observe = true;
    let mut registry = after(&[high, child, registered("c", "a")]);
    assert_eq!(
        registry.status("b", "red", ""),
        Some(AgentStatus {
            stop: None,
            risk: "low".to_owned(),
            parent: "a".to_owned(),
            parent_risk: "high".to_owned(),
            depth: 1,
            children: 0,
            registered_at: Some(Timestamp::from_micros(1_000)),
            observe: true,
            team_agents: 3,
            name: "B".to_owned(),
            above: vec![registry.get("a").unwrap().caller()],
        })
    );
    assert_eq!(registry.status("a", "red", "").unwrap().children, 2);
    registry.apply(9, &record("deregistered", "c"), &mut Vec::new());
    let a = registry.status("a", "red", "").unwrap();
    assert_eq!((a.children, a.team_agents), (1, 2));
    assert_eq!(registry.status("c", "red", "").unwrap().registered_at, None);
    // Of a stranger only its team is known, if at all.
    assert_eq!(
        registry.status("x", "red", ""),
        Some(AgentStatus { team_agents: 2, ..AgentStatus::default() })
    );
    assert_eq!(registry.status("x", "blue", ""), None);
    assert_eq!(registry.status("x", "", ""), None);
}

#[test]
fn an_agent_is_stopped_by_its_principal_and_by_its_identifier() {
    let principal = "agent:acme/red/bot";
    let registered = Envelope { agent: "bot".to_owned(), ..registered(principal, "") };
    for (named, is_stopped) in [
        ("agent:acme/red/bot", true),
        ("agent:bot", true),
        ("agent:agent:acme/red/bot", true),
        ("agent:acme/red/other", false),
        ("acme/red/bot", false),
    ] {
        let registry = after(&[registered.clone(), operation("op_terminated", named)]);
        let stop = registry.status(principal, "red", "").unwrap().stop;
        assert_eq!(stop.is_some(), is_stopped, "{named}");
        assert_eq!(registry.status("agent:acme/red/else", "red", "").unwrap().stop, None, "{named}");
    }
    // A span is not taken for a principal.
    let registry = after(&[operation("op_terminated", "uid:1000")]);
    assert_eq!(registry.status("uid:1000", "", ""), None);
}

#[test]
fn a_new_token_replaces_the_old_one_and_nothing_else() {
    let renewed = Envelope {
        registration: Some(Box::new(Registration {
            token: Some(token("new")),
            risk: "critical".to_owned(),
            ..Registration::default()
        })),
        ..record("token", "a")
    };
    let registry = after(&[registered("a", ""), renewed.clone()]);
    assert_eq!(registry.by_token(&token("a")), None);
    assert_eq!(registry.by_token(&token("new")).unwrap().registration.as_ref().unwrap().risk, "low");
    // One that is deregistered or unknown gets none.
    let registry = after(&[registered("a", ""), record("deregistered", "a"), renewed.clone()]);
    assert_eq!(registry.by_token(&token("new")), None);
    assert_eq!(after(&[renewed]).list().count(), 0);
}

#[test]
fn a_token_stays_with_the_one_that_has_it() {
    let mut thief = registered("b", "");
    thief.registration.as_mut().unwrap().token = Some(token("a"));
    let registry = after(&[registered("a", ""), thief]);
    assert_eq!(registry.by_token(&token("a")).unwrap().principal, "a");
    assert_eq!(registry.get("b").unwrap().registration.as_ref().unwrap().token, None);
}

#[test]
fn who_deregisters_is_stopped_and_so_is_whom_it_started() {
    let registry = after(&[
        registered("a", ""),
        registered("b", "a"),
        registered("c", "b"),
        record("deregistered", "a"),
    ]);
    assert_eq!(registry.by_token(&token("a")), None);
    assert_eq!(stop(&registry, "a"), said("agent.deregistered", "agent is deregistered"));
    let reason = "the agent `a` above it is stopped: agent is deregistered";
    assert_eq!(stop(&registry, "b"), said("agent.parent_stopped", reason));
    assert_eq!(stop(&registry, "c"), said("agent.parent_stopped", reason));
}

#[test]
fn who_registers_again_keeps_marks_lineage_and_team() {
    let mut again = Envelope { team: "blue".to_owned(), org: "other".to_owned(), ..registered("b", "x") };
    let registration = again.registration.as_mut().unwrap();
    registration.token = Some(token("again"));
    registration.risk = "high".to_owned();
    registration.depth = 7;
    registration.observe = true;
    again.time = Timestamp::from_micros(5_000);
    let first = [
        registered("a", ""),
        registered("b", "a"),
        order("suspended", "b", "budget"),
        record("offline", "b"),
    ];
    for is_deregistered in [true, false] {
        let mut records = first.to_vec();
        records.extend(is_deregistered.then(|| record("deregistered", "b")));
        records.push(again.clone());
        let registry = after(&records);
        let b = registry.by_token(&token("again")).unwrap();
        assert_eq!((b.principal.as_str(), b.team.as_str(), b.org.as_str()), ("b", "red", "acme"));
        assert_eq!((b.registered_at.micros(), b.registered_seq), (1_000, 1));
        let own = b.registration.as_ref().unwrap();
        assert_eq!((own.parent.as_str(), own.depth, own.risk.as_str(), own.observe), ("a", 1, "high", true));
        assert!(b.is_registered() && !b.is_offline);
        assert_eq!(stop(&registry, "b"), said("agent.suspended", "agent is suspended (budget): because"));
        assert_eq!(registry.by_token(&token("b")), None);
    }
}

#[test]
fn causes_end_one_by_one_and_an_operator_ends_all() {
    let mut registry = after(&[
        registered("a", ""),
        order("suspended", "a", "budget"),
        order("suspended", "a", "anomaly"),
        order("resumed", "a", "budget"),
    ]);
    assert_eq!(stop(&registry, "a"), said("agent.suspended", "agent is suspended (anomaly): because"));
    registry.apply(4, &order("killed", "a", ""), &mut Vec::new());
    registry.apply(5, &order("resumed", "a", "anomaly"), &mut Vec::new());
    assert_eq!(stop(&registry, "a"), said("agent.killed", "agent is killed: because"));
    registry.apply(6, &order("suspended", "a", "budget"), &mut Vec::new());
    assert_eq!(rule(&registry, "a").as_deref(), Some("agent.killed"));
    registry.apply(7, &order("resumed", "a", "operator"), &mut Vec::new());
    assert_eq!(registry.stop("a"), None);
    let last = registry.get("a").unwrap().last_order.clone();
    assert_eq!(last, Some(("resumed".to_owned(), "because".to_owned())));
}

#[test]
fn more_causes_than_are_told_apart_need_an_operator() {
    let mut records = vec![registered("a", "")];
    let causes: Vec<String> = (0..40).map(|number| format!("cause{number}")).collect();
    records.extend(causes.iter().map(|cause| order("suspended", "a", cause)));
    records.extend(causes.iter().map(|cause| order("resumed", "a", cause)));
    let mut registry = after(&records);
    assert_eq!(rule(&registry, "a").as_deref(), Some("agent.suspended"));
    registry.apply(99, &order("resumed", "a", "operator"), &mut Vec::new());
    assert_eq!(registry.stop("a"), None);
}

#[test]
fn whoever_never_registered_can_be_stopped_too() {
    for code in ["suspended", "killed"] {
        let mut registry = after(&[order(code, "stranger", "operator")]);
        assert!(registry.status("stranger", "", "").unwrap().stop.is_some());
        assert!(!registry.get("stranger").unwrap().is_registered());
        registry.apply(1, &order("resumed", "stranger", "operator"), &mut Vec::new());
        assert_eq!(registry.get("stranger"), None);
    }
    // It stays stopped when it registers.
    let registry = after(&[order("killed", "a", "operator"), registered("a", "")]);
    assert_eq!(rule(&registry, "a").as_deref(), Some("agent.killed"));
    assert_eq!(registry.get("a").unwrap().registered_seq, 1);
}

#[test]
fn resuming_who_is_not_stopped_changes_nothing_but_the_last_order() {
    let plain = after(&[registered("a", "")]);
    let resumed = after(&[registered("a", ""), order("resumed", "a", "operator")]);
    let mut expected = plain.get("a").unwrap().clone();
    expected.last_order = Some(("resumed".to_owned(), "because".to_owned()));
    assert_eq!(resumed.get("a"), Some(&expected));
    assert_eq!(after(&[order("resumed", "x", "operator")]).list().count(), 0);
}

#[test]
fn who_is_below_one_that_is_stopped_is_stopped() {
    let mut registry = after(&[
        registered("a", ""),
        registered("b", "a"),
        registered("c", "b"),
        order("suspended", "a", "operator"),
    ]);
    let reason = "the agent `a` above it is stopped: agent is suspended (operator): because";
    assert_eq!(stop(&registry, "c"), said("agent.parent_stopped", reason));
    // Resuming one below does not help: the one above is not gone.
    registry.apply(4, &order("resumed", "b", "operator"), &mut Vec::new());
    assert_eq!(stop(&registry, "b"), said("agent.parent_stopped", reason));
    registry.apply(5, &order("resumed", "a", "operator"), &mut Vec::new());
    assert_eq!(registry.stop("c"), None);
}

#[test]
fn an_operator_lets_an_agent_go_on_without_a_parent_that_is_gone() {
    for gone in ["deregistered", "forgotten"] {
        let mut registry =
            after(&[registered("a", ""), registered("b", "a"), registered("c", "b"), record(gone, "a")]);
        assert_eq!(rule(&registry, "b").as_deref(), Some("agent.parent_stopped"));
        registry.apply(4, &order("resumed", "b", "budget"), &mut Vec::new());
        assert_eq!(rule(&registry, "b").as_deref(), Some("agent.parent_stopped"));
        registry.apply(5, &order("resumed", "b", "operator"), &mut Vec::new());
        assert!(registry.get("b").unwrap().is_adrift);
        assert_eq!((registry.stop("b"), registry.stop("c")), (None, None));
        // Whatever becomes of the old parent.
        registry.apply(6, &order("killed", "a", "operator"), &mut Vec::new());
        assert_eq!((registry.stop("b"), registry.stop("c")), (None, None));
    }
    let registry = after(&[registered("a", ""), registered("b", "a"), record("forgotten", "a")]);
    let reason = "the agent `a` above it is not registered any more";
    assert_eq!(stop(&registry, "b"), said("agent.parent_stopped", reason));
}

#[test]
fn what_is_forgotten_is_gone_with_its_marks() {
    let registry = after(&[registered("a", ""), order("killed", "a", "operator"), record("forgotten", "a")]);
    assert_eq!(registry.list().count(), 0);
    assert_eq!(registry.by_token(&token("a")), None);
    assert_eq!(registry.status("a", "red", ""), None);
}

#[test]
fn heartbeats_and_policies_are_noted() {
    let policy = token("policy");
    let told = Envelope { policy: Some(policy), ..record("told", "a") };
    let mut registry = after(&[registered("a", ""), record("offline", "a"), told]);
    assert!(registry.get("a").unwrap().is_offline);
    assert_eq!(registry.get("a").unwrap().told, Some(policy));
    registry.apply(3, &record("online", "a"), &mut Vec::new());
    assert!(!registry.get("a").unwrap().is_offline);
    assert_eq!(registry.stop("a"), None);
}

#[test]
fn operations_are_paused_and_terminated() {
    let mut registry = after(&[registered("a", ""), operation("op_paused", "t:s")]);
    let status = |registry: &Registry, principal: &str, operation: &str| {
        let stop = registry.status(principal, "", operation).and_then(|status| status.stop);
        stop.map(|stop| (stop.rule, stop.reason))
    };
    assert_eq!(status(&registry, "a", "t:s"), said("operation.paused", "operation `t:s` is paused"));
    assert_eq!(status(&registry, "x", "t:s"), said("operation.paused", "operation `t:s` is paused"));
    assert_eq!(status(&registry, "a", "t:other"), None);
    assert_eq!(status(&registry, "a", ""), None);
    registry.apply(2, &operation("op_resumed", "t:s"), &mut Vec::new());
    assert_eq!(status(&registry, "a", "t:s"), None);
    // By agent, by principal, and all of them; what is terminated says so first.
    for name in ["agent:id-a", "agent:a", "*"] {
        registry.apply(3, &operation("op_paused", name), &mut Vec::new());
        assert_eq!(
            status(&registry, "a", ""),
            said("operation.paused", &format!("operation `{name}` is paused"))
        );
        registry.apply(4, &operation("op_terminated", "t:end"), &mut Vec::new());
        assert_eq!(
            status(&registry, "a", "t:end"),
            said("operation.terminated", "operation `t:end` is terminated")
        );
        registry.apply(5, &operation("op_resumed", name), &mut Vec::new());
        assert_eq!(status(&registry, "a", ""), None);
    }
    // A terminated one stays so.
    for code in ["op_resumed", "op_paused"] {
        registry.apply(6, &operation(code, "t:end"), &mut Vec::new());
        assert_eq!(registry.operations().collect::<Vec<_>>(), [("t:end", true)]);
    }
    // A stopped agent is the stronger reason.
    registry.apply(7, &order("suspended", "a", "operator"), &mut Vec::new());
    assert_eq!(status(&registry, "a", "t:end").unwrap().0, "agent.suspended");
}

#[test]
fn nothing_goes_round_in_circles() {
    // A circle can only come about by forgetting.
    let registry = after(&[registered("a", "b"), registered("b", "a"), registered("self", "self")]);
    for principal in ["a", "b", "self"] {
        assert_eq!(
            stop(&registry, principal),
            said("agent.parent_stopped", "more than 64 agents stand above it")
        );
    }
    assert_eq!(registry.lineage("a").len(), 2);
    assert_eq!(registry.lineage("self").len(), 1);
}

#[test]
fn so_many_ancestors_are_looked_at() {
    let mut records = vec![registered("0", "")];
    records.extend((1..70).map(|number| registered(&number.to_string(), &(number - 1).to_string())));
    let registry = after(&records);
    assert_eq!(registry.stop("63"), None);
    assert_eq!(rule(&registry, "65").as_deref(), Some("agent.parent_stopped"));
    assert_eq!(registry.lineage("69").len(), 65);
}

const FEW: Bounds = Bounds { agents: 3, operations: 2 };

#[test]
fn deregistered_agents_make_room_the_oldest_first() {
    let mut registry = after_with(
        FEW,
        &[
            registered("a", ""),
            registered("b", ""),
            registered("c", ""),
            registered("full", ""),
            record("deregistered", "c"),
            record("deregistered", "b"),
        ],
    );
    assert_eq!(registry.get("full"), None);
    assert_eq!(registry.by_token(&token("full")), None);
    registry.apply(6, &registered("d", ""), &mut Vec::new());
    assert!(registry.get("b").is_none() && registry.get("c").is_some() && registry.get("d").is_some());
    registry.apply(7, &registered("e", ""), &mut Vec::new());
    assert!(registry.get("c").is_none() && registry.get("e").is_some());
    registry.apply(8, &registered("f", ""), &mut Vec::new());
    assert_eq!(registry.get("f"), None);
    assert_eq!(registry.list().count(), 3);
}

#[test]
fn marks_and_children_keep_an_agent() {
    let mut registry = after_with(
        FEW,
        &[
            registered("marked", ""),
            registered("parent", ""),
            registered("child", "parent"),
            order("suspended", "marked", "budget"),
            record("deregistered", "marked"),
            record("deregistered", "parent"),
            registered("new", ""),
        ],
    );
    assert_eq!(registry.get("new"), None);
    registry.apply(7, &order("resumed", "marked", "budget"), &mut Vec::new());
    registry.apply(8, &registered("new", ""), &mut Vec::new());
    assert!(registry.get("new").is_some() && registry.get("marked").is_none());
    registry.apply(9, &record("forgotten", "child"), &mut Vec::new());
    registry.apply(10, &registered("one", ""), &mut Vec::new());
    registry.apply(11, &registered("two", ""), &mut Vec::new());
    assert!(registry.get("one").is_some() && registry.get("two").is_some());
    assert_eq!(registry.get("parent"), None);
}

#[test]
fn who_is_only_stopped_takes_no_room_from_those_who_register() {
    let registry = after_with(
        FEW,
        &[
            order("suspended", "w", ""),
            order("suspended", "x", ""),
            order("suspended", "y", ""),
            order("suspended", "z", ""),
            registered("a", ""),
            registered("b", ""),
            registered("c", ""),
        ],
    );
    assert_eq!(registry.get("z"), None);
    assert!(registry.get("c").is_some() && registry.get("y").is_some());
}

#[test]
fn so_many_operations_are_stopped_but_all_and_agents_always_can_be() {
    let registry = after_with(
        FEW,
        &[
            operation("op_paused", "t:1"),
            operation("op_paused", "t:2"),
            operation("op_paused", "t:3"),
            operation("op_terminated", "t:4"),
            operation("op_terminated", "t:2"),
            operation("op_paused", "agent:x"),
            operation("op_paused", "*"),
        ],
    );
    let expected = [("*", false), ("agent:x", false), ("t:1", false), ("t:2", true)];
    assert_eq!(registry.operations().collect::<Vec<_>>(), expected);
}

#[test]
fn what_changes_nothing_gives_no_rows() {
    let mut registry = after(&[registered("a", ""), operation("op_paused", "t:1")]);
    for envelope in [
        record("online", "a"),
        record("nonsense", "a"),
        record("registered", "a"),
        record("offline", "x"),
        record("forgotten", "x"),
        record("deregistered", "x"),
        registered("", ""),
        operation("op_paused", "t:1"),
        operation("op_resumed", "t:2"),
        operation("op_paused", ""),
        operation("op_nonsense", "t:1"),
    ] {
        let mut rows = Vec::new();
        registry.apply(2, &envelope, &mut rows);
        assert_eq!(rows, [], "{envelope:?}");
    }
}
