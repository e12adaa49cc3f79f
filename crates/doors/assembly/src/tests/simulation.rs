//! Days in the life of some agents, at random: they register, ask, report, fall silent and are stopped; people decide; policies change;
//! the gateway restarts. A model that knows nothing but the rules says what must be answered, and what must be on record.

mod actions;
mod model;
mod records;
mod rules;

use proctor_clients::assembly::services::agent::agent_lifecycle_service_server::AgentLifecycleService;
use proctor_clients::assembly::services::approval::approval_service_server::ApprovalService;
use proctor_clients::assembly::services::audit::audit_service_server::AuditService;
use proctor_clients::assembly::services::policy::policy_service_server::PolicyService;
use proctor_core::digest::Digest;
use proctor_core::random::SeededRandomness;
use proctor_core::session::Caller;
use proctor_core::time::Clock;
use proctor_wire::assembly::proto::agent::v1::DeregisterRequest;
use proctor_wire::assembly::proto::approval::v1::{ApprovalDecisionType, DecideRequest, ListPendingRequest};
use proctor_wire::assembly::proto::audit::v1::audit_event::Detail;
use proctor_wire::assembly::proto::audit::v1::{
    AuditEvent, LlmCallDetail, ReportEventsRequest, ToolCallDetail,
};
use proctor_wire::assembly::proto::common::v1::EnforcementMode;
use proctor_wire::assembly::proto::policy::v1::BatchCheckRequest;
use tonic::{Code, Status};

use super::*;
use crate::AssemblySettings;
use actions::Ask;
use model::{Actual, Expected, Model};
use proctor_engine::orders::operate;
use rules::Rules;

const DAY: i64 = 24 * 3_600_000_000;
/// A quiet day goes on until so many checks were made.
const FEWEST_CHECKS: usize = 60;
const ALICE: &str = "alice-has-a-long-token";
const TEAMS: [&str; 2] = ["ml", "ops"];
/// Parent of each agent.
const PARENTS: [Option<usize>; 6] = [None, None, Some(0), Some(2), Some(1), None];
/// Agent that requests observe-only enforcement.
const OBSERVED: usize = 4;

#[test]
fn a_day_of_agents_is_as_the_rules_say() {
    let full = std::env::var("PROCTOR_FULL").is_ok_and(|value| value == "1");
    let base = std::env::var("PROCTOR_SEED").ok().and_then(|text| text.parse().ok()).unwrap_or(20_261_115);
    let mut lived = Lived::default();
    for seed in (base..).take(if full { 1000 } else { 50 }) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let one = runtime.block_on(async {
            let mut life = Life::begin(seed).await;
            while life.now() < life.end || life.lived.checks < FEWEST_CHECKS {
                life.step().await;
            }
            life.finish().await
        });
        lived.add(&one);
    }
    println!("{lived:?}, from seed {base} (PROCTOR_SEED)");
    // If one of these did not happen, nothing was tried of it.
    assert!(lived.strangers > 0 && lived.let_through > 0 && lived.granted > 0, "{lived:?}");
    assert!(lived.budget_suspensions > 0 && lived.restarts > 0 && lived.crashes > 0, "{lived:?}");
    assert!(lived.observed > 0 && lived.paid_above > 0, "{lived:?}");
    // These are rare: a few days may go by without them.
    assert!(!full || (lived.loops > 0 && lived.agents_decided > 0), "{lived:?}");
}

/// Counters of the cases that the simulation covered.
#[derive(Debug, Default)]
struct Lived {
    checks: usize,
    strangers: usize,
    let_through: usize,
    granted: usize,
    decided: usize,
    agents_decided: usize,
    events: usize,
    budget_suspensions: usize,
    restarts: usize,
    crashes: usize,
    /// Checks that were denied because they repeat others.
    loops: usize,
    /// Checks that were let through because their agent is only observed.
    observed: usize,
    /// Checks that were denied because the budget of an agent above was used up.
    paid_above: usize,
}

impl Lived {
    fn add(&mut self, other: &Lived) {
        self.checks += other.checks;
        self.strangers += other.strangers;
        self.let_through += other.let_through;
        self.granted += other.granted;
        self.decided += other.decided;
        self.agents_decided += other.agents_decided;
        self.events += other.events;
        self.budget_suspensions += other.budget_suspensions;
        self.restarts += other.restarts;
        self.crashes += other.crashes;
        self.loops += other.loops;
        self.observed += other.observed;
        self.paid_above += other.paid_above;
    }
}

struct Life {
    seed: u64,
    random: SeededRandomness,
    gateway: Gateway,
    agents: Vec<Agent>,
    model: Model,
    end: i64,
    steps: u64,
    /// Recent checks, for repetition, reports and pauses.
    asks: Vec<Ask>,
    /// Tokens that are void.
    old_tokens: Vec<String>,
    events: Vec<(usize, AuditEvent)>,
    /// The identifiers that checks were answered with: by the policy, and before it was asked.
    decisions: Vec<String>,
    refusals: Vec<String>,
    lived: Lived,
}

impl Life {
    async fn begin(seed: u64) -> Life {
        let random = SeededRandomness::new(seed);
        let rules = Rules::random(&random, 0);
        let agents_approve = random.below(2) == 0;
        let settings = AssemblySettings {
            agents_approve,
            approvers: vec![("alice".to_owned(), Digest::of(ALICE.as_bytes()))],
            ..AssemblySettings::default()
        };
        let gateway = Gateway::with(&rules.text(), settings, seed ^ 0x5EED);
        let mut agents: Vec<Agent> = Vec::new();
        for (place, parent) in PARENTS.iter().enumerate() {
            let number = u8::try_from(place + 1).unwrap();
            let mut agent = match parent {
                Some(parent) => Agent::child_of(number, &agents[*parent]),
                None => Agent::new(number),
            };
            agent.team = TEAMS[place % 2].to_owned();
            if place == OBSERVED {
                agent.request.enforcement_mode = EnforcementMode::Observe.into();
                agent.request.name = "on trial".to_owned();
            }
            agents.push(agent);
        }
        let names = agents.iter().map(Agent::did).collect();
        let model = Model::new(rules, PARENTS.to_vec(), names, agents_approve);
        let now = gateway.clock.now().micros();
        let mut life = Life {
            seed,
            random,
            gateway,
            agents,
            model,
            end: now + DAY,
            steps: 0,
            asks: Vec::new(),
            old_tokens: Vec::new(),
            events: Vec::new(),
            decisions: Vec::new(),
            refusals: Vec::new(),
            lived: Lived::default(),
        };
        for who in 0..PARENTS.len() {
            life.register(who).await;
        }
        life
    }

    fn at(&self) -> String {
        format!("seed {} (PROCTOR_SEED), step {}", self.seed, self.steps)
    }

    fn now(&self) -> i64 {
        self.gateway.clock.now().micros()
    }

    fn below(&self, bound: usize) -> usize {
        usize::try_from(self.random.below(bound as u64)).unwrap()
    }

    fn anybody(&self) -> usize {
        self.below(PARENTS.len())
    }

    /// Picks an agent, mostly an unregistered one.
    fn somebody_outside(&self) -> usize {
        let outside: Vec<usize> = (0..PARENTS.len()).filter(|who| !self.model.is_registered(*who)).collect();
        if outside.is_empty() || self.random.below(3) == 0 {
            return self.anybody();
        }
        outside[self.below(outside.len())]
    }

    async fn step(&mut self) {
        self.steps += 1;
        let passes = match self.random.below(10) {
            0..4 => self.random.below(20_000_000),
            4..7 => self.random.below(300_000_000),
            _ => self.random.below(5_400_000_000),
        };
        self.gateway.clock.pass(Duration::from_micros(passes));
        if self.random.below(2) == 0 {
            self.gateway.door.run_expiry().await;
            self.model.expire(self.now());
        }
        // Nothing is stopped for all for long.
        if self.model.operations.contains_key("*") && self.random.below(2) == 0 {
            self.operate_on("*".to_owned(), "resume");
        }
        let waits = (0..self.model.approvals.len()).any(|place| self.model.is_waiting(place, self.now()));
        match self.random.below(100) {
            // People look at what waits for them.
            _ if waits && self.random.below(4) == 0 => self.decide().await,
            0..46 => self.check(1).await,
            46..56 => self.check(2 + self.below(3)).await,
            56..63 => self.report().await,
            63..70 => self.heartbeat().await,
            70..77 => self.register(self.somebody_outside()).await,
            77..83 => self.order(),
            83..87 => self.operate(),
            87..96 => self.decide().await,
            96 => self.leave().await,
            97 | 98 => self.reload(),
            _ => self.restart().await,
        }
        self.compare().await;
    }

    /// The registry, the budgets and what waits for people are as the model has them.
    async fn compare(&self) {
        let now = self.now();
        for (who, agent) in self.agents.iter().enumerate() {
            let principal = agent.principal();
            let (found, stop) = self
                .gateway
                .engine()
                .look_up(|registry| (registry.get(&principal).cloned(), registry.stop(&principal)))
                .unwrap();
            let known = self.model.agents.get(&who);
            assert_eq!(found.is_some(), known.is_some(), "{}: is {who} known", self.at());
            assert_eq!(stop.map(|stop| stop.rule).as_deref(), self.model.stop(who), "{}: {who}", self.at());
            let (Some(found), Some(known)) = (found, known) else { continue };
            let causes = found.suspended.iter().map(|(cause, _)| cause.as_str());
            let parent = found.registration.as_ref().map(|own| own.parent.clone()).unwrap_or_default();
            assert_eq!(
                (found.registration.is_some(), found.is_deregistered, found.is_offline, found.is_adrift),
                (known.registered, known.deregistered, known.offline, known.adrift),
                "{}: {who}",
                self.at()
            );
            assert_eq!(
                (causes.collect::<std::collections::BTreeSet<_>>(), found.killed.is_some(), parent),
                (
                    known.suspended.iter().copied().collect(),
                    known.killed,
                    known.parent.map(|parent| self.agents[parent].principal()).unwrap_or_default()
                ),
                "{}: {who}",
                self.at()
            );
            if !known.registered {
                continue;
            }
            let caller = Caller { principal, team: known.team.clone(), org: "acme".to_owned() };
            for left in self.gateway.engine().budgets(&caller).unwrap() {
                let spent = rust_decimal::Decimal::new(self.model.spent(who, &left.key, now), 9);
                assert_eq!(left.spent.normalize(), spent.normalize(), "{}: {who}, {}", self.at(), left.key);
            }
        }
        let listed = self.gateway.door.list_pending(with_token(ListPendingRequest {}, ALICE)).await.unwrap();
        let mut listed: Vec<String> =
            listed.into_inner().requests.into_iter().map(|request| request.request_id).collect();
        let waiting = (0..self.model.approvals.len()).filter(|place| self.model.is_waiting(*place, now));
        let mut waiting: Vec<String> = waiting.map(|place| self.model.approvals[place].id.clone()).collect();
        listed.sort();
        waiting.sort();
        assert_eq!(listed, waiting, "{}: what waits for people", self.at());
    }

    async fn register(&mut self, who: usize) {
        let now = self.now();
        // One that was forgotten may come back in another team.
        if !self.model.agents.get(&who).is_some_and(|known| known.registered) && self.random.below(2) == 0 {
            self.agents[who].team = TEAMS[self.below(2)].to_owned();
        }
        let team = self.agents[who].team.clone();
        let old = self.agents[who].token.clone();
        let expected = self.model.registers(who, &team, now);
        let answered = self.gateway.register(&mut self.agents[who]).await;
        assert_eq!(
            answered.as_ref().map(|_| ()).map_err(Status::code),
            expected,
            "{}: {who} registers: {answered:?}",
            self.at()
        );
        if expected.is_ok() {
            self.old_tokens.push(old);
            self.model.agents.get_mut(&who).unwrap().token.clone_from(&self.agents[who].token);
        }
    }

    /// Sends some checks at once, some of them with a token that is not the agent's.
    async fn check(&mut self, count: usize) {
        let now = self.now();
        let mut requests = Vec::new();
        let mut expected: Vec<(Ask, Option<Expected>)> = Vec::new();
        for _ in 0..count {
            let ask = self.ask();
            let mut agent = self.agents[ask.who].clone();
            match self.random.below(30) {
                0 => agent.token.clear(),
                1 => agent.token = self.agents[self.anybody()].token.clone(),
                2 if !self.old_tokens.is_empty() => {
                    agent.token = self.old_tokens[self.below(self.old_tokens.len())].clone();
                }
                3 => agent.team = "strangers".to_owned(),
                _ => {}
            }
            requests.push(ask.request(&agent));
            let is_own = self.model.holds(ask.who, &agent.token) && agent.team != "strangers";
            let was_suspended = self.is_suspended_by_budget(ask.who);
            let answer = is_own.then(|| self.model.check(&ask, now));
            if !was_suspended && self.is_suspended_by_budget(ask.who) {
                self.lived.budget_suspensions += 1;
            }
            expected.push((ask, answer));
        }
        let responses = if count == 1 {
            let request = Request::new(requests.remove(0));
            vec![self.gateway.door.check_action(request).await.unwrap().into_inner()]
        } else {
            let request = Request::new(BatchCheckRequest { requests });
            self.gateway.door.batch_check(request).await.unwrap().into_inner().responses
        };
        assert_eq!(responses.len(), count, "{}", self.at());
        for ((ask, expected), response) in expected.into_iter().zip(responses) {
            self.answered(&ask, expected, &response);
            self.asks.push(ask);
        }
    }

    fn is_suspended_by_budget(&self, who: usize) -> bool {
        self.model.agents.get(&who).is_some_and(|known| known.suspended.contains("budget"))
    }

    /// Draws a new or a repeated action.
    fn ask(&self) -> Ask {
        let granted = self.model.granted();
        if !granted.is_empty() && self.random.below(3) == 0 {
            let (who, what) = granted[self.below(granted.len())];
            let again = self.asks.iter().rev().find(|ask| ask.who == who && ask.what == what);
            return again.cloned().unwrap();
        }
        let lately = self.asks.len().min(12);
        if lately > 0 && self.random.below(3) == 0 {
            return self.asks[self.asks.len() - 1 - self.below(lately)].clone();
        }
        Ask::random(&self.random, self.anybody())
    }

    fn answered(&mut self, ask: &Ask, expected: Option<Expected>, response: &CheckActionResponse) {
        let at = format!("{}: {ask:?}, expected {expected:?}, answered {response:?}", self.at());
        let let_through = matches!(response.decision(), Decision::Allow | Decision::Redact);
        self.lived.checks += 1;
        let reader = self.gateway.engine().ledger().reader();
        let sequence = reader.by_id(&response.decision_id.parse().unwrap()).unwrap();
        let record = reader.envelope(sequence.unwrap_or_else(|| panic!("{at}: not on record"))).unwrap();
        let Some(expected) = expected else {
            assert_eq!(decided(response), (Decision::Deny, "a2a_identity_verification"), "{at}");
            assert_eq!((record.kind, record.code.as_str()), (RecordKind::Alarm, "identity"), "{at}");
            self.refusals.push(response.decision_id.clone());
            self.lived.strangers += 1;
            return;
        };
        assert_eq!(
            (record.kind, record.principal),
            (RecordKind::Decision, self.agents[ask.who].principal()),
            "{at}"
        );
        self.decisions.push(response.decision_id.clone());
        // What matters most, said once more and apart: nothing that is stopped gets through.
        assert!(!let_through || expected.decision != Decision::Deny, "{at}");
        assert_eq!(response.decision(), expected.decision, "{at}");
        assert!(expected.decision == Decision::Redact || response.policy_rule == expected.rule, "{at}");
        self.lived.let_through += usize::from(let_through);
        self.lived.granted += usize::from(let_through && expected.rule == "deploys");
        self.lived.loops += usize::from(expected.rule == "anomaly.loops");
        self.lived.observed += usize::from(expected.rule == "observe");
        self.lived.paid_above += usize::from(expected.is_paid_above);
        match expected.approval.map(|place| &mut self.model.approvals[place].id) {
            None => assert_eq!(response.approval_id, "", "{at}"),
            Some(id) if id.is_empty() => id.clone_from(&response.approval_id),
            Some(id) => assert_eq!(response.approval_id, *id, "{at}"),
        }
    }

    async fn report(&mut self) {
        let now = self.now();
        let mut events = Vec::new();
        let who = self.anybody();
        for _ in 0..=self.below(3) {
            let own: Vec<&(usize, AuditEvent)> = self.events.iter().filter(|(by, _)| *by == who).collect();
            let is_old = !own.is_empty() && self.random.below(4) == 0;
            events.push(if is_old {
                let old = own[self.below(own.len())].1.clone();
                AuditEvent { agent_id: Some(self.agents[who].id()), ..old }
            } else {
                self.event(who, self.events.len() + events.len())
            });
        }
        let agent = self.agents[who].clone();
        let answered = self
            .gateway
            .door
            .report_events(with_token(ReportEventsRequest { events: events.clone() }, &agent.token))
            .await;
        let is_own = self.model.holds(who, &agent.token);
        let code = answered.map(|_| ()).map_err(|status| status.code());
        assert_eq!(code, if is_own { Ok(()) } else { Err(Code::Unauthenticated) }, "{}: {who}", self.at());
        if !is_own {
            return;
        }
        self.model.speaks(who, now);
        for event in events {
            if self.events.iter().any(|(by, known)| *by == who && known.event_id == event.event_id) {
                continue;
            }
            let cost = match event.detail.as_ref().unwrap() {
                Detail::LlmCall(call) if call.prompt_tokens + call.completion_tokens > 0 => {
                    let model = (0..3).find(|model| actions::model_name(*model) == call.model).unwrap();
                    Some(actions::actual_cost(model, call.prompt_tokens, call.completion_tokens))
                }
                _ => None,
            };
            self.model.reports(&Actual { who, trace: &event.trace_id, span: &event.span_id, cost }, now);
            self.events.push((who, event));
        }
    }

    /// A report on something that was asked, or on something that never was.
    fn event(&self, who: usize, number: usize) -> AuditEvent {
        let own: Vec<&Ask> = self.asks.iter().filter(|ask| ask.who == who).collect();
        let ask = match own.len() {
            0 => Ask::random(&self.random, who),
            _ if self.random.below(8) == 0 => Ask::random(&self.random, who),
            count => own[count - 1 - self.below(count.min(5))].clone(),
        };
        let tokens = |bound: usize| i32::try_from(self.below(bound)).unwrap();
        let (prompt_tokens, completion_tokens) =
            if self.random.below(6) == 0 { (0, 0) } else { (tokens(1500), tokens(400)) };
        let detail = if self.random.below(4) == 0 {
            Detail::ToolCall(ToolCallDetail { tool_name: "search".into(), ..ToolCallDetail::default() })
        } else {
            let model = actions::model_name(ask.what.model());
            Detail::LlmCall(LlmCallDetail {
                model,
                prompt_tokens,
                completion_tokens,
                ..LlmCallDetail::default()
            })
        };
        AuditEvent {
            event_id: format!("e-{number}"),
            agent_id: Some(self.agents[who].id()),
            trace_id: ask.trace,
            span_id: ask.span,
            detail: Some(detail),
            ..AuditEvent::default()
        }
    }

    async fn heartbeat(&mut self) {
        let (who, now) = (self.anybody(), self.now());
        let answered = self.gateway.heartbeat(&self.agents[who]).await;
        if !self.model.holds(who, &self.agents[who].token) {
            assert_eq!(answered.unwrap_err().code(), Code::Unauthenticated, "{}: {who}", self.at());
            return;
        }
        self.model.speaks(who, now);
        self.model.refresh(who, now);
        let policy = self.model.rules.text();
        let known = self.model.agents.get_mut(&who).unwrap();
        let updated = std::mem::replace(&mut known.told, policy.clone()) != policy;
        let answered = answered.unwrap();
        assert_eq!(
            (answered.policy_updated, answered.should_suspend),
            (updated, self.model.stop(who).is_some()),
            "{}: {who}",
            self.at()
        );
    }

    async fn leave(&mut self) {
        let who = self.anybody();
        let agent = &self.agents[who];
        let request = DeregisterRequest {
            agent_id: Some(agent.id()),
            credential_token: agent.token.clone(),
            reason: "done".into(),
        };
        let answered = self.gateway.door.deregister(Request::new(request)).await;
        let is_own = self.model.holds(who, &agent.token);
        assert_eq!(answered.is_ok(), is_own, "{}: {who}", self.at());
        if is_own {
            self.model.deregisters(who);
        }
    }

    fn order(&mut self) {
        let stopped: Vec<usize> = (0..PARENTS.len()).filter(|who| self.model.stop(*who).is_some()).collect();
        let resumes = self.random.below(10) < 6;
        let who = match stopped.len() {
            count if resumes && count > 0 => stopped[self.below(count)],
            _ => self.anybody(),
        };
        let (what, expected) = match self.random.below(6) {
            _ if resumes => (Order::Resume, self.model.resume(who)),
            0..4 => {
                self.model.suspend(who, "operator");
                (Order::Suspend, true)
            }
            4 => {
                self.model.kill(who);
                (Order::Kill, true)
            }
            _ => (Order::Deregister, self.model.forget(who)),
        };
        let given = order(self.gateway.engine(), &self.agents[who].principal(), what, "as ordered", "uid:0");
        assert_eq!(given.is_ok(), expected, "{}: {what:?} {who}: {given:?}", self.at());
    }

    fn operate(&mut self) {
        let paused = self.model.operations.iter().filter(|(_, is_terminated)| !**is_terminated);
        let paused: Vec<String> = paused.map(|(name, _)| name.clone()).collect();
        let name = match self.random.below(12) {
            0..6 if !paused.is_empty() => paused[self.below(paused.len())].clone(),
            6 => "*".to_owned(),
            7 => format!("agent:{}", self.agents[self.anybody()].did()),
            _ => match self.asks.len() {
                0 => return,
                count => {
                    let ask = &self.asks[count - 1 - self.below(count.min(8))];
                    format!("{}:{}", ask.trace, ask.span)
                }
            },
        };
        let is_span = name != "*" && !name.starts_with("agent:");
        let word = match self.model.operations.get(&name) {
            Some(_) => "resume",
            None if is_span && self.random.below(5) == 0 => "terminate",
            None => "pause",
        };
        self.operate_on(name, word);
    }

    fn operate_on(&mut self, name: String, word: &str) {
        let ordered = operate(self.gateway.engine(), &name, word, "as ordered", "uid:0");
        let who = self.agents.iter().position(|agent| name == format!("agent:{}", agent.did()));
        let known = self.model.operations.get(&name);
        let is_nobody = known.is_none() && who.is_some_and(|who| !self.model.agents.contains_key(&who));
        let is_refused = is_nobody || (word == "resume" && known == Some(&true));
        assert_eq!(ordered.is_err(), is_refused, "{word} {name}: {ordered:?}");
        if is_refused {
            return;
        }
        match (word, self.model.operations.get(&name)) {
            ("resume", Some(false)) => drop(self.model.operations.remove(&name)),
            ("resume", _) => {}
            _ => drop(self.model.operations.insert(name, word == "terminate")),
        }
    }

    /// Decides a pending or closed approval, as a person, the requesting agent, or another agent.
    async fn decide(&mut self) {
        let count = self.model.approvals.len();
        if count == 0 {
            return;
        }
        let now = self.now();
        let waiting: Vec<usize> = (0..count).filter(|place| self.model.is_waiting(*place, now)).collect();
        let place = match waiting.len() {
            0 => count - 1 - self.below(count.min(4)),
            _ if self.random.below(4) == 0 => count - 1 - self.below(count.min(4)),
            waits => waiting[self.below(waits)],
        };
        let approval = self.model.approvals[place].clone();
        for _ in 0..=self.below(2) {
            let by = match self.random.below(8) {
                0..4 => None,
                4 => Some(approval.who),
                _ => Some(self.anybody()),
            };
            let token = by.map_or(ALICE.to_owned(), |by| self.agents[by].token.clone());
            let allowed = self.random.below(3) > 0;
            let decision =
                if allowed { ApprovalDecisionType::Approved } else { ApprovalDecisionType::Rejected };
            let request = DecideRequest {
                request_id: approval.id.clone(),
                decision: decision.into(),
                decided_by: "somebody".into(),
                reason: "because".into(),
            };
            let answered = self.gateway.door.decide(with_token(request, &token)).await;
            let expected = match by {
                Some(by) if !self.model.holds(by, &self.agents[by].token) => Err(Code::Unauthenticated),
                Some(by) if !self.model.may_decide(by, place) => Err(Code::PermissionDenied),
                _ => Ok(self.model.decides(place, allowed, now)),
            };
            let answered = answered.map(|it| it.into_inner().success).map_err(|status| status.code());
            assert_eq!(answered, expected, "{}: {by:?} decides {approval:?}", self.at());
            self.lived.decided += usize::from(expected == Ok(true));
            self.lived.agents_decided += usize::from(expected == Ok(true) && by.is_some());
        }
    }

    fn reload(&mut self) {
        self.model.rules = Rules::random(&self.random, self.steps);
        self.gateway.reload(&self.model.rules.text());
    }

    async fn restart(&mut self) {
        if self.random.below(2) == 0 {
            self.gateway.restart().await;
        } else {
            // What stands in the queue may be lost in a crash, but then it is not known what is: all of it is waited for.
            self.gateway.engine().ledger().checkpoint().unwrap();
            self.gateway.crash().await;
            self.lived.crashes += 1;
        }
        self.model.restart();
        self.lived.restarts += 1;
    }
}
