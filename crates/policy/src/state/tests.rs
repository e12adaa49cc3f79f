mod bounds;
mod fold;
mod law;
mod lineage;
mod meaning;
mod model;

use std::collections::BTreeMap;

use proctor_core::decision::Effect;
use proctor_core::digest::Digest;
use proctor_core::id::{ApprovalId, RecordId, SessionId};
use proctor_core::record::{Amount, Envelope, RecordKind, Registration};
use proctor_core::session::Caller;
use proctor_core::time::Timestamp;
use rust_decimal::Decimal;

use super::{LIMITS, Limits, Row, State};
use crate::question::{Account, Answer, AnswerSource, Question, Scope, Unit};

/// 2026-01-10, late in the evening, not on a quarter hour.
const START: i64 = 1_768_086_123_456_789;
const SECOND: i64 = 1_000_000;
const MINUTE: i64 = 60 * SECOND;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;

fn at(micros: i64) -> Timestamp {
    Timestamp::from_micros(START + micros)
}

/// An identifier like those of sessions made at `START` plus so many milliseconds.
fn session_made_at(millis: i64) -> SessionId {
    let moment = u64::try_from(START / 1000 + millis).unwrap().to_be_bytes();
    let mut bytes = [7; 16];
    bytes[..6].copy_from_slice(&moment[2..]);
    SessionId::from_bytes(bytes)
}

fn session(number: u8) -> SessionId {
    session_made_at(i64::from(number))
}

fn approval(number: u64) -> ApprovalId {
    let mut bytes = [9; 16];
    bytes[8..].copy_from_slice(&number.to_be_bytes());
    ApprovalId::from_bytes(bytes)
}

fn digest(number: u8) -> Digest {
    Digest::of(&[number])
}

fn amount(unit: &str, value: &str) -> Amount {
    Amount { unit: unit.to_owned(), value: Decimal::from_str_exact(value).unwrap(), limit: None }
}

fn rate(limit: u32) -> Amount {
    Amount { unit: "rate".to_owned(), value: Decimal::ONE, limit: Some(limit) }
}

fn envelope(kind: RecordKind, micros: i64) -> Envelope {
    Envelope::new(RecordId::from_bytes([3; 16]), at(micros), kind)
}

fn decision(effect: Effect, micros: i64, tool: &str) -> Envelope {
    Envelope {
        session: Some(session(0)),
        principal: "alice".to_owned(),
        tool: tool.to_owned(),
        decision: Some(effect),
        action: Some(digest(0)),
        ..envelope(RecordKind::Decision, micros)
    }
}

fn person(micros: i64, id: ApprovalId, code: &str) -> Envelope {
    Envelope {
        principal: "boss".to_owned(),
        approval: Some(id),
        code: code.to_owned(),
        rule: "because".to_owned(),
        ..envelope(RecordKind::Approval, micros)
    }
}

/// The record that retracts a decision, as the ledger's writer makes it.
fn retraction(seq: u64, decision: &Envelope, micros: i64) -> Envelope {
    Envelope {
        time: at(micros),
        kind: RecordKind::Retracted,
        links: vec![seq],
        once: None,
        body: None,
        ..decision.clone()
    }
}

fn registered(micros: i64, principal: &str, parent: &str) -> Envelope {
    let registration = Registration { parent: parent.to_owned(), ..Registration::default() };
    Envelope {
        principal: principal.to_owned(),
        code: "registered".to_owned(),
        registration: Some(Box::new(registration)),
        ..envelope(RecordKind::Agent, micros)
    }
}

fn alice() -> Caller {
    Caller { principal: "alice".to_owned(), team: "red".to_owned(), org: "acme".to_owned() }
}

fn ask(state: &State, micros: i64, question: &Question) -> Option<Answer> {
    state.view(&alice(), session(0), digest(0), at(micros)).answer(question)
}

fn called(scope: Scope, glob: &str) -> Question {
    Question::Called(scope, glob.to_owned())
}

fn spent(unit: Unit, from: i64) -> Question {
    Question::Spent(Account::Agent, unit, at(from))
}

fn dollars(text: &str) -> Answer {
    Answer::Amount(Decimal::from_str_exact(text).unwrap())
}

/// Rows as a ledger has them.
#[derive(Default)]
struct Saved(BTreeMap<(&'static str, String), Vec<u8>>);

impl Saved {
    fn save(&mut self, rows: &[Row]) {
        for row in rows {
            let key = (row.fold, row.key.clone());
            match &row.value {
                Some(value) => self.0.insert(key, value.clone()),
                None => self.0.remove(&key),
            };
        }
    }

    fn load(&self, limits: Limits) -> State {
        State::load_with_limits(limits, self.0.iter().map(|((fold, key), value)| (*fold, key, value)))
            .unwrap()
    }

    fn rows(&self) -> Vec<Row> {
        let row = |((fold, key), value): (&(&'static str, String), &Vec<u8>)| Row {
            fold,
            key: key.clone(),
            value: Some(value.clone()),
        };
        self.0.iter().map(row).collect()
    }
}

/// Applies records one after the other, from sequence 0.
fn applied(records: &[Envelope]) -> State {
    let mut state = State::new();
    for (seq, record) in records.iter().enumerate() {
        state.apply(seq as u64, record);
    }
    state
}
