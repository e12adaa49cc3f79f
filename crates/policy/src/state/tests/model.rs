//! The state against a slow and obvious model: the list of all records, looked through for every question.

use proptest::prelude::*;

use super::*;
use crate::glob;
use crate::question::{ApprovalState, ApprovalView, Estimate};
use crate::state::{hour_of, minute_of};

const PRINCIPALS: [&str; 2] = ["alice", "bob"];
const TOOLS: [(&str, &str); 5] =
    [("shell", "Bash"), ("shell", ""), ("file_read", "read"), ("network", "fetch"), ("fetch", "")];
const GLOBS: [&str; 7] = ["*", "shell", "BASH", "f*", "?etch", "file_read", "nothing"];

fn digest_of(tool: &str) -> Digest {
    Digest::of(tool.as_bytes())
}

/// Step of a generated sequence.
#[derive(Debug, Clone)]
enum Step {
    Decide {
        who: u8,
        session: u8,
        tool: u8,
        effect: Effect,
        cents: u32,
        limit: Option<u32>,
        taint: bool,
        retracted: bool,
    },
    /// The difference of the actual from the estimate, in per cent of the estimate.
    Settle {
        back: u8,
        percent: i32,
    },
    Person {
        back: u8,
        allow: bool,
    },
}

fn step() -> impl Strategy<Value = (i64, Step)> {
    let pause =
        prop_oneof![6 => 0..30 * SECOND, 2 => -5 * SECOND..20 * MINUTE, 2 => 0..9 * HOUR, 1 => 0..8 * DAY];
    let effect = prop::sample::select(vec![
        Effect::Allow,
        Effect::Allow,
        Effect::Redact,
        Effect::Deny,
        Effect::Ask,
        Effect::Ask,
        Effect::Defer,
    ]);
    let limit = prop::option::of(prop::sample::select(vec![2u32, 7]));
    let decide =
        (0u8..2, 0u8..3, 0u8..5, effect, 0u32..500, limit, any::<bool>(), prop::bool::weighted(0.15))
            .prop_map(|(who, session, tool, effect, cents, limit, taint, retracted)| Step::Decide {
                who,
                session,
                tool,
                effect,
                cents,
                limit,
                taint,
                retracted,
            });
    let step = prop_oneof![
        7 => decide,
        1 => (0u8..8, -100i32..200).prop_map(|(back, percent)| Step::Settle { back, percent }),
        2 => (0u8..3, any::<bool>()).prop_map(|(back, allow)| Step::Person { back, allow }),
    ];
    (pause, step)
}

/// History of all steps, with retracted decisions turned into denies.
#[derive(Default)]
struct Model {
    records: Vec<(u64, Envelope)>,
    settled: Vec<u64>,
    next_seq: u64,
    next_approval: u64,
}

struct KnownApproval {
    id: ApprovalId,
    principal: String,
    action: Digest,
    expires: Timestamp,
    state: ApprovalState,
    is_open: bool,
}

impl Model {
    /// The real records of a step: with a retraction there are two.
    fn play(&mut self, micros: i64, step: &Step) -> Vec<(u64, Envelope)> {
        let seq = self.next_seq;
        match step {
            Step::Decide { retracted, .. } => {
                let record = self.decision(micros, step);
                let mut real = vec![(seq, record.clone())];
                if *retracted {
                    real.push((seq + 1, retraction(seq, &record, micros + SECOND)));
                    let deny = Envelope { decision: Some(Effect::Deny), approval: None, ..record };
                    self.records.push((seq, deny));
                } else {
                    self.records.push((seq, record));
                }
                self.next_seq += real.len() as u64;
                real
            }
            Step::Settle { back, percent } => {
                let open = |(seq, record): &&(u64, Envelope)| {
                    record.kind == RecordKind::Decision
                        && record.decision.is_some_and(Effect::lets_through)
                        && !self.settled.contains(seq)
                };
                let Some((linked, settled)) = self.records.iter().rev().filter(open).nth(usize::from(*back))
                else {
                    return Vec::new();
                };
                let amounts = settled.amounts.iter().filter(|amount| amount.unit == "usd").map(|amount| {
                    Amount { value: amount.value * Decimal::new(i64::from(*percent), 2), ..amount.clone() }
                });
                let record = Envelope {
                    kind: RecordKind::Settlement,
                    time: at(micros),
                    decision: None,
                    approval: None,
                    taints: Vec::new(),
                    amounts: amounts.collect(),
                    links: vec![*linked],
                    ..settled.clone()
                };
                self.settled.push(*linked);
                self.records.push((seq, record.clone()));
                self.next_seq += 1;
                vec![(seq, record)]
            }
            Step::Person { back, allow } => {
                let known = self.approvals();
                let Some(known) = known.iter().rev().nth(usize::from(*back)) else { return Vec::new() };
                let mut record = person(micros, known.id, if *allow { "allow" } else { "deny" });
                record.expires = Some(at(micros + 10 * MINUTE));
                self.records.push((seq, record.clone()));
                self.next_seq += 1;
                vec![(seq, record)]
            }
        }
    }

    fn decision(&mut self, micros: i64, step: &Step) -> Envelope {
        let Step::Decide { who, session: session_number, tool, effect, cents, limit, taint, .. } = step
        else {
            unreachable!()
        };
        let (tool, name) = TOOLS[usize::from(*tool)];
        let mut record = Envelope {
            principal: PRINCIPALS[usize::from(*who)].to_owned(),
            team: "red".to_owned(),
            session: Some(session(*session_number)),
            name: name.to_owned(),
            action: Some(digest_of(tool)),
            amounts: vec![
                amount("calls", "1"),
                Amount { value: Decimal::new(i64::from(*cents), 2), ..amount("usd", "0") },
            ],
            taints: if *taint { vec![format!("seen {tool}")] } else { Vec::new() },
            ..super::decision(*effect, micros, tool)
        };
        record.amounts.extend(limit.map(rate));
        // As the evaluator does: the open approval is carried along, and a new one is asked for if there is none.
        if let Some(open) = self.open_approval(&record.principal, digest_of(tool)) {
            record.approval = Some(open.id);
            record.expires = Some(open.expires);
        } else if *effect == Effect::Ask {
            record.approval = Some(approval(self.next_approval));
            record.expires = Some(at(micros + 5 * MINUTE));
            self.next_approval += 1;
        }
        record
    }

    fn decisions(&self) -> impl Iterator<Item = &Envelope> {
        self.records.iter().map(|(_, record)| record).filter(|record| record.kind == RecordKind::Decision)
    }

    fn in_scope(scope: Scope, record: &Envelope, view: &Viewer) -> bool {
        match scope {
            Scope::Session => record.session == Some(view.session),
            Scope::Agent => {
                record.principal == view.caller.principal && hour_of(record.time) >= hour_of(view.now) - 24
            }
        }
    }

    fn answer(&self, view: &Viewer, question: &Question) -> Answer {
        let matching = |scope: Scope, glob: &str| -> Vec<&Envelope> {
            let named = |record: &&Envelope| {
                glob::matches(glob, &record.tool)
                    || (!record.name.is_empty() && glob::matches(glob, &record.name))
            };
            self.decisions().filter(|record| Model::in_scope(scope, record, view)).filter(named).collect()
        };
        let passed = |record: &&&Envelope| record.decision.unwrap().lets_through();
        match question {
            Question::Called(scope, glob) => {
                Answer::Count(matching(*scope, glob).iter().filter(passed).count() as u64)
            }
            Question::Denied(scope, glob) => {
                Answer::Count(matching(*scope, glob).iter().filter(|record| !passed(record)).count() as u64)
            }
            Question::Since(scope, glob) => {
                let last = matching(*scope, glob).iter().filter(passed).map(|record| record.time).max();
                Answer::Micros(last.map(|last| view.now.micros_since(last)))
            }
            Question::Tainted(scope, name) => {
                let setting = |record: &&Envelope| {
                    record.decision.unwrap().lets_through() && record.taints.contains(name)
                };
                Answer::Truth(
                    self.decisions()
                        .filter(|record| Model::in_scope(*scope, record, view))
                        .any(|record| setting(&record)),
                )
            }
            Question::Overflowed(_) => Answer::Truth(false),
            Question::Spent(account, unit, from) => Answer::Amount(self.spent(view, *account, *unit, *from)),
            Question::Rate(tool, limit) => Answer::Level(self.level(view, tool, *limit)),
            Question::SpentAbove(..)
            | Question::AgentStatus(_)
            | Question::Repeats(_)
            | Question::ActionsPerMinute => {
                unreachable!("these have models of their own")
            }
            Question::Approval => {
                let open = self.open_approval(&view.caller.principal, view.digest);
                Answer::Approval(open.map(|open| ApprovalView {
                    id: open.id,
                    expires: open.expires,
                    state: open.state,
                    estimate: Estimate::default(),
                }))
            }
        }
    }

    fn spent(&self, view: &Viewer, account: Account, unit: Unit, from: Timestamp) -> Decimal {
        let mut sum = Decimal::ZERO;
        for (_, record) in &self.records {
            let same = match account {
                Account::Agent => record.principal == view.caller.principal,
                Account::Team => record.team == view.caller.team,
                Account::Org => record.org == view.caller.org,
            };
            let counts =
                record.kind == RecordKind::Settlement || record.decision.is_some_and(Effect::lets_through);
            for amount in record.amounts.iter().filter(|amount| same && counts && amount.unit == unit.word())
            {
                let mut minute = minute_of(record.time);
                if amount.value.is_sign_negative() {
                    let linked = self.records.iter().find(|(seq, _)| *seq == record.links[0]).unwrap();
                    minute = minute_of(linked.1.time);
                }
                if minute >= minute_of(from) {
                    sum += amount.value;
                }
            }
        }
        sum
    }

    fn level(&self, view: &Viewer, tool: &str, limit: u32) -> u64 {
        let mut parts: i128 = 0;
        let mut last: Option<Timestamp> = None;
        let drain = |parts: i128, last: Option<Timestamp>, now: Timestamp| {
            let elapsed = last.map_or(0, |last| now.micros_since(last));
            (parts - i128::from(elapsed) * i128::from(limit)).max(0)
        };
        for record in self.decisions() {
            let charged = record.amounts.iter().any(|amount| amount.limit == Some(limit));
            let same = record.principal == view.caller.principal && record.tool == tool;
            let decision = record.decision.unwrap();
            if charged && same && (decision.lets_through() || decision == Effect::Ask) {
                parts = drain(parts, last, record.time) + 3_600_000_000;
                last = last.max(Some(record.time));
            }
        }
        u64::try_from((drain(parts, last, view.now) + 3599) / 3600).unwrap()
    }

    fn open_approval(&self, principal: &str, action: Digest) -> Option<KnownApproval> {
        self.approvals()
            .into_iter()
            .find(|known| known.is_open && known.principal == principal && known.action == action)
    }

    fn approvals(&self) -> Vec<KnownApproval> {
        let mut all: Vec<KnownApproval> = Vec::new();
        for (_, record) in &self.records {
            let known = all.iter_mut().find(|known| Some(known.id) == record.approval);
            match (record.kind, record.decision, known) {
                (RecordKind::Decision, Some(Effect::Ask), None) if record.approval.is_some() => {
                    all.push(KnownApproval {
                        id: record.approval.unwrap(),
                        principal: record.principal.clone(),
                        action: record.action.unwrap(),
                        expires: record.expires.unwrap(),
                        state: ApprovalState::Waiting,
                        is_open: true,
                    });
                }
                (RecordKind::Decision, Some(Effect::Allow | Effect::Redact | Effect::Deny), Some(known)) => {
                    known.is_open = false;
                }
                (RecordKind::Approval, _, Some(known))
                    if known.is_open
                        && known.state == ApprovalState::Waiting
                        && record.time < known.expires =>
                {
                    let by = record.principal.clone();
                    known.state = match record.code.as_str() {
                        "allow" => ApprovalState::Granted { by },
                        _ => ApprovalState::Refused { by, reason: record.rule.clone() },
                    };
                    known.expires = record.expires.unwrap();
                }
                _ => {}
            }
            for known in &mut all {
                if known.expires.plus_micros(7 * DAY) < record.time {
                    known.is_open = false;
                }
            }
        }
        all
    }
}

struct Viewer {
    caller: Caller,
    session: SessionId,
    digest: Digest,
    now: Timestamp,
}

fn questions(now: i64) -> Vec<Question> {
    let mut all = vec![Question::Approval];
    for scope in [Scope::Session, Scope::Agent] {
        all.push(Question::Overflowed(scope));
        all.push(Question::Tainted(scope, "seen shell".to_owned()));
        all.push(Question::Tainted(scope, "seen nothing".to_owned()));
        for glob in GLOBS {
            all.push(Question::Called(scope, glob.to_owned()));
            all.push(Question::Denied(scope, glob.to_owned()));
            all.push(Question::Since(scope, glob.to_owned()));
        }
    }
    let quarter = |micros: i64| at(micros).micros().div_euclid(15 * MINUTE) * 15 * MINUTE;
    let mut moments: Vec<Timestamp> =
        [0, MINUTE, 7 * MINUTE, HOUR, 9 * HOUR, 23 * HOUR].map(|back| at(now - back)).to_vec();
    moments.extend(
        [0, HOUR, 20 * HOUR, 40 * HOUR, 3 * DAY, 17 * DAY, 32 * DAY]
            .map(|back| Timestamp::from_micros(quarter(now - back))),
    );
    for from in moments {
        all.push(Question::Spent(Account::Agent, Unit::Usd, from));
        all.push(Question::Spent(Account::Team, Unit::Calls, from));
        all.push(Question::Spent(Account::Org, Unit::Tokens, from));
    }
    for tool in ["shell", "network"] {
        all.push(Question::Rate(tool.to_owned(), 2));
        all.push(Question::Rate(tool.to_owned(), 7));
    }
    all
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn every_answer_is_the_obvious_one(steps in prop::collection::vec(step(), 1..40), who in 0usize..2, pause in 0..3 * HOUR) {
        let mut state = State::new();
        let mut model = Model::default();
        let mut now = 0;
        for (step_micros, step) in &steps {
            // No story is so long that something is forgotten.
            now = (now + step_micros).min(31 * DAY);
            for (seq, record) in model.play(now, step) {
                state.apply(seq, &record);
            }
        }
        let now = now + SECOND + pause;
        let view = Viewer {
            caller: Caller { principal: PRINCIPALS[who].to_owned(), team: "red".to_owned(), org: "none".to_owned() },
            session: session(1),
            digest: digest_of("shell"),
            now: at(now),
        };
        let memory = state.view(&view.caller, view.session, view.digest, view.now);
        for question in questions(now) {
            prop_assert_eq!(memory.answer(&question), Some(model.answer(&view, &question)), "{:?}", question);
        }
        for info in state.sessions() {
            let own: Vec<Effect> = model.decisions().filter(|record| record.session == Some(info.id)).filter_map(|record| record.decision).collect();
            let count = |test: &dyn Fn(Effect) -> bool| own.iter().filter(|effect| test(**effect)).count() as u64;
            prop_assert_eq!(info.let_through, count(&Effect::lets_through));
            prop_assert_eq!(info.denied, count(&|effect| effect == Effect::Deny));
            prop_assert_eq!(info.asked, count(&|effect| effect == Effect::Ask));
            prop_assert_eq!(info.deferred, count(&|effect| effect == Effect::Defer));
        }
    }
}
