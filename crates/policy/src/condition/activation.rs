//! Variable bindings of conditions (an activation, in CEL's terms).

use std::cell::{Cell, OnceCell};

use rust_decimal::prelude::ToPrimitive;

use proctor_core::action::MemberRef;
use proctor_core::json::Json;
use proctor_facts::Fact;

use super::agent::CallingAgent;
use super::evaluate::Fault;
use super::names::WEEKDAYS;
use super::node::{Containment, Member, PastFunction};
use super::value::Value;
use crate::input::Input;
use crate::question::{Answer, AnswerSource, Question, Scope};

/// Answer of `since` for what never happened: a hundred years, in microseconds.
pub const NEVER_MICROS: i64 = 36_525 * 24 * 3600 * 1_000_000;

/// The input and the past, as the conditions of one decision see them. Made once for a decision and shared by its conditions;
/// nothing is computed before a condition reads it.
pub struct Activation<'a> {
    input: &'a Input,
    answers: &'a dyn AnswerSource,
    session: OnceCell<String>,
    calendar: OnceCell<Option<Calendar>>,
    session_overflowed: Cell<Option<bool>>,
    agent_overflowed: Cell<Option<bool>>,
    acting: OnceCell<Option<CallingAgent>>,
}

struct Calendar {
    hour: i64,
    minute: i64,
    weekday: &'static str,
    date: String,
}

/// Value of object members that the message did not have.
static EMPTY: Json = Json::Object(Vec::new());

impl<'a> Activation<'a> {
    /// A activation of this input and this past.
    pub fn new(input: &'a Input, answers: &'a dyn AnswerSource) -> Activation<'a> {
        Activation {
            input,
            answers,
            session: OnceCell::new(),
            calendar: OnceCell::new(),
            session_overflowed: Cell::new(None),
            agent_overflowed: Cell::new(None),
            acting: OnceCell::new(),
        }
    }

    pub(super) fn member(&self, member: Member) -> Result<Value<'_>, Fault> {
        Ok(match member {
            Member::Fact(fact) => self.fact(fact),
            Member::Findings => Value::Findings(&self.input.findings),
            Member::AgentName => Value::Text(&self.input.agent),
            Member::Principal => Value::Text(&self.input.caller.principal),
            Member::Team => Value::Text(&self.input.caller.team),
            Member::Org => Value::Text(&self.input.caller.org),
            Member::RiskTier => Value::Text(self.acting()?.risk()),
            Member::AgentDepth => Value::Int(i64::from(self.acting()?.depth(self.input))),
            Member::Parent => Value::Text(self.acting()?.parent()),
            Member::ParentRiskTier => Value::Text(self.acting()?.parent_risk()),
            Member::Children => whole(self.acting()?.children()),
            Member::IsRegistered => Value::Bool(self.acting()?.is_registered()),
            Member::Age => Value::Duration(self.acting()?.age_micros(self.input)),
            Member::TeamAgents => whole(self.acting()?.team_agents()),
            Member::SessionId => Value::Text(self.session.get_or_init(|| self.input.session.to_string())),
            Member::Now => Value::Timestamp(self.input.now.micros()),
            Member::Hour => Value::Int(self.calendar()?.hour),
            Member::Minute => Value::Int(self.calendar()?.minute),
            Member::Weekday => Value::Text(self.calendar()?.weekday),
            Member::Date => Value::Text(&self.calendar()?.date),
        })
    }

    fn fact(&self, fact: Fact) -> Value<'_> {
        match fact.get(&self.input.facts) {
            MemberRef::Kind(kind) => Value::Text(kind.word()),
            MemberRef::Text(text) => Value::Text(text),
            MemberRef::Texts(texts) => Value::Texts(texts),
            MemberRef::Json(result) if fact == Fact::Result => Value::of_json(result),
            MemberRef::Json(json) => object_or_empty(json),
            MemberRef::Number(number) => whole(number),
            MemberRef::Optional(number) => Value::Int(i64::from(number.unwrap_or(0))),
            // A cost that no double can show is shown as more than any limit.
            MemberRef::Decimal(amount) => Value::Double(amount.to_f64().unwrap_or(f64::INFINITY)),
        }
    }

    /// Number of paths, each of which containment looks at.
    pub(super) fn path_count(&self) -> usize {
        self.input.facts.paths.len()
    }

    /// Whether the action stays in a folder of the workspace.
    pub(super) fn contains(&self, function: Containment, folder: &str) -> bool {
        match function {
            Containment::Within => self.input.facts.is_within(folder),
            Containment::WritesWithin => self.input.facts.writes_within(folder),
        }
    }

    pub(super) fn past(
        &self,
        function: PastFunction,
        scope: Scope,
        question: &Question,
    ) -> Result<Value<'static>, Fault> {
        if self.overflowed(scope)? {
            return Err(Fault::error(match scope {
                Scope::Session => "session memory is full",
                Scope::Agent => "the memory of this principal is full",
            }));
        }
        let answer = self.answers.answer(question).ok_or_else(unanswered)?;
        Ok(match (function, answer) {
            (PastFunction::Called | PastFunction::Denied, Answer::Count(count)) => Value::Bool(count > 0),
            (PastFunction::Count | PastFunction::DeniedCount, Answer::Count(count)) => whole(count),
            (PastFunction::Since, Answer::Micros(None)) => Value::Duration(NEVER_MICROS),
            (PastFunction::Since, Answer::Micros(Some(micros))) => {
                Value::Duration(i64::try_from(micros).unwrap_or(i64::MAX))
            }
            (PastFunction::Tainted, Answer::Truth(truth)) => Value::Bool(truth),
            _ => return Err(unanswered()),
        })
    }

    /// The calling agent, asked for once, when a member of it is read.
    fn acting(&self) -> Result<&CallingAgent, Fault> {
        self.acting
            .get_or_init(|| CallingAgent::ask(self.input, self.answers))
            .as_ref()
            .ok_or_else(|| Fault::error("what the registry knows of this agent is not known"))
    }

    /// Whether the memory of a scope has overflowed; asked once for each scope that is read.
    fn overflowed(&self, scope: Scope) -> Result<bool, Fault> {
        let known = match scope {
            Scope::Session => &self.session_overflowed,
            Scope::Agent => &self.agent_overflowed,
        };
        if let Some(overflowed) = known.get() {
            return Ok(overflowed);
        }
        match self.answers.answer(&Question::Overflowed(scope)) {
            Some(Answer::Truth(overflowed)) => {
                known.set(Some(overflowed));
                Ok(overflowed)
            }
            _ => Err(unanswered()),
        }
    }

    fn calendar(&self) -> Result<&Calendar, Fault> {
        self.calendar
            .get_or_init(|| {
                let moment = jiff::Timestamp::from_microsecond(self.input.now.micros()).ok()?;
                let civil = jiff::tz::TimeZone::UTC.to_datetime(moment);
                let weekday = usize::try_from(civil.weekday().to_monday_zero_offset()).ok()?;
                Some(Calendar {
                    hour: i64::from(civil.hour()),
                    minute: i64::from(civil.minute()),
                    weekday: WEEKDAYS.get(weekday).copied()?,
                    date: civil.date().to_string(),
                })
            })
            .as_ref()
            .ok_or_else(|| Fault::error("the time of the action is outside the calendar"))
    }
}

fn object_or_empty(json: &Json) -> Value<'_> {
    match json {
        Json::Null => Value::Json(&EMPTY),
        _ => Value::of_json(json),
    }
}

fn whole(number: u64) -> Value<'static> {
    Value::Int(i64::try_from(number).unwrap_or(i64::MAX))
}

fn unanswered() -> Fault {
    Fault::error("what happened before is not known")
}
