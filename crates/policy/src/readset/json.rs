//! The JSON form of a read-set. The facts stand below `action`, under their own names; a question and its answer are one array.

use std::str::FromStr;

use proctor_core::action::{ActionKind, MemberMut, MemberRef};
use proctor_core::digest::Digest;
use proctor_core::id::{ApprovalId, SessionId};
use proctor_core::json::Json;
use proctor_core::session::Caller;
use proctor_core::time::Timestamp;
use proctor_facts::{Fact, Facts};
use rust_decimal::Decimal;

use super::ReadSet;
use crate::input::{FoundSecret, Input};
use crate::question::{
    Account, ActionsPerMinute, AgentStatus, Answer, ApprovalState, ApprovalView, Estimate, Question, Scope,
    Stop, Unit,
};

/// A JSON text that is not a read-set.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("not a read-set: `{member}` {problem}")]
pub struct ReadSetError {
    /// The member concerned.
    pub member: String,
    /// Description of the problem.
    pub problem: &'static str,
}

/// Claimed values nested deeper than this are written as text, so that a body that holds a read-set can always be parsed:
/// the parser's own limit is twice that.
const DEEP: usize = 64;
/// Ending of the names of members whose JSON is written as text.
const AS_TEXT: &str = "_text";

pub(super) fn write(set: &ReadSet) -> Json {
    let mut out = Out(Vec::with_capacity(12));
    let input = &set.input;
    let mut facts = Out(Vec::with_capacity(16));
    facts.facts(&input.facts);
    out.push("action", Json::Object(facts.0));
    if !input.findings.is_empty() {
        let found =
            |found: &FoundSecret| Json::Array(vec![found.kind.as_str().into(), found.path.as_str().into()]);
        out.push("findings", Json::Array(input.findings.iter().map(found).collect()));
    }
    out.text("principal", &input.caller.principal);
    out.text("team", &input.caller.team);
    out.text("org", &input.caller.org);
    out.text("agent", &input.agent);
    out.push("session", input.session.to_string());
    out.push("digest", input.digest.to_string());
    out.push("now", input.now.micros());
    out.push("fresh_approval", input.fresh_approval.to_string());
    if !set.asked.is_empty() {
        let asked = set.asked.iter().map(|(question, answer)| pair_to_json(question, answer));
        out.push("asked", Json::Array(asked.collect()));
    }
    out.text("semantics", &set.semantics);
    if !set.sources.is_empty() {
        let sources = set.sources.iter().map(|source| Json::String(source.to_string()));
        out.push("sources", Json::Array(sources.collect()));
    }
    Json::Object(out.0)
}

struct Out(Vec<(String, Json)>);

impl Out {
    fn push(&mut self, name: &str, value: impl Into<Json>) {
        self.0.push((name.to_owned(), value.into()));
    }

    fn text(&mut self, name: &str, value: &str) {
        if !value.is_empty() {
            self.push(name, value);
        }
    }

    fn texts(&mut self, name: &str, values: &[String]) {
        if !values.is_empty() {
            self.push(name, Json::Array(values.iter().map(|value| value.as_str().into()).collect()));
        }
    }

    fn claimed(&mut self, name: &str, value: &Json) {
        if value.is_null() {
            return;
        }
        if is_deep(value, DEEP) {
            self.push(&format!("{name}{AS_TEXT}"), value.to_string());
        } else {
            self.push(name, value.clone());
        }
    }

    /// The facts that are not empty. Their order is that of the table, and part of the stored form.
    fn facts(&mut self, facts: &Facts) {
        for fact in Fact::ALL {
            let name = fact.name();
            match fact.get(facts) {
                MemberRef::Kind(kind) => self.push(name, kind.word()),
                MemberRef::Text(text) => self.text(name, text),
                MemberRef::Texts(texts) => self.texts(name, texts),
                MemberRef::Json(json) => self.claimed(name, json),
                MemberRef::Number(0) | MemberRef::Optional(None) => {}
                MemberRef::Number(number) => self.push(name, number),
                MemberRef::Optional(Some(number)) => self.push(name, number),
                // A zero may have decimals too.
                MemberRef::Decimal(amount) if amount.serialize() == Decimal::ZERO.serialize() => {}
                MemberRef::Decimal(amount) => self.push(name, amount.to_string()),
            }
        }
    }
}

/// Whether a value is nested deeper than so many levels; looks no deeper than that.
fn is_deep(value: &Json, levels: usize) -> bool {
    let Some(below) = levels.checked_sub(1) else { return true };
    match value {
        Json::Array(items) => items.iter().any(|item| is_deep(item, below)),
        Json::Object(members) => members.iter().any(|(_, member)| is_deep(member, below)),
        _ => false,
    }
}

fn pair_to_json(question: &Question, answer: &Answer) -> Json {
    let mut items: Vec<Json> = Vec::with_capacity(5);
    match question {
        Question::Called(scope, glob) => items.extend(["called", scope_word(*scope), glob].map(Json::from)),
        Question::Since(scope, glob) => items.extend(["since", scope_word(*scope), glob].map(Json::from)),
        Question::Denied(scope, glob) => items.extend(["denied", scope_word(*scope), glob].map(Json::from)),
        Question::Tainted(scope, name) => items.extend(["tainted", scope_word(*scope), name].map(Json::from)),
        Question::Overflowed(scope) => items.extend(["overflowed", scope_word(*scope)].map(Json::from)),
        Question::Spent(account, unit, from) => {
            items.extend(["spent", account.word(), unit.word()].map(Json::from));
            items.push(from.micros().into());
        }
        Question::SpentAbove(principal, unit, from) => {
            items.extend(["spent_above", principal, unit.word()].map(Json::from));
            items.push(from.micros().into());
        }
        Question::Rate(tool, limit) => {
            items.extend(["rate", tool].map(Json::from));
            items.push((*limit).into());
        }
        Question::Approval => items.push("approval".into()),
        Question::AgentStatus(operation) => items.extend(["standing", operation].map(Json::from)),
        Question::Repeats(seconds) => {
            items.push("repeats".into());
            items.push((*seconds).into());
        }
        Question::ActionsPerMinute => items.push("pace".into()),
    }
    // Each answer has its own JSON type or shape, so that any pair can be written, sensible or not.
    items.push(match answer {
        Answer::Count(count) => (*count).into(),
        Answer::Micros(micros) => Json::Array(micros.iter().map(|micros| (*micros).into()).collect()),
        Answer::Truth(truth) => (*truth).into(),
        Answer::Amount(amount) => amount.to_string().into(),
        Answer::Level(level) => Json::object().with("level", *level),
        Answer::Approval(None) => Json::Null,
        Answer::Approval(Some(view)) => approval_to_json(view),
        Answer::AgentStatus(status) => {
            Json::object().with("standing", status.as_deref().map_or(Json::Null, status_to_json))
        }
        Answer::ActionsPerMinute(rate) => {
            let parts = [rate.current, rate.minutes, rate.sum, rate.squares];
            Json::object().with("pace", Json::Array(parts.map(Json::from).to_vec()))
        }
    });
    Json::Array(items)
}

fn scope_word(scope: Scope) -> &'static str {
    match scope {
        Scope::Session => "session",
        Scope::Agent => "agent",
    }
}

fn approval_to_json(view: &ApprovalView) -> Json {
    let mut out = Json::object().with("id", view.id.to_string()).with("expires", view.expires.micros());
    match &view.state {
        ApprovalState::Waiting => out.push("state", "waiting"),
        ApprovalState::Granted { by } => {
            out.push("state", "granted");
            out.push("by", by.as_str());
        }
        ApprovalState::Refused { by, reason } => {
            out.push("state", "refused");
            out.push("by", by.as_str());
            out.push("reason", reason.as_str());
        }
    }
    for (name, value) in [("usd", view.estimate.usd), ("tokens", view.estimate.tokens)] {
        if !value.is_zero() {
            out.push(name, value.to_string());
        }
    }
    out
}

fn status_to_json(status: &AgentStatus) -> Json {
    let mut out = Out(Vec::new());
    if let Some(stop) = &status.stop {
        out.push("stop", Json::Array(vec![stop.rule.as_str().into(), stop.reason.as_str().into()]));
    }
    out.text("risk", &status.risk);
    out.text("parent", &status.parent);
    out.text("parent_risk", &status.parent_risk);
    if status.depth != 0 {
        out.push("depth", status.depth);
    }
    if status.children != 0 {
        out.push("children", status.children);
    }
    if let Some(registered_at) = status.registered_at {
        out.push("registered_at", registered_at.micros());
    }
    if status.observe {
        out.push("observe", true);
    }
    if status.team_agents != 0 {
        out.push("team_agents", status.team_agents);
    }
    out.text("name", &status.name);
    if !status.above.is_empty() {
        let names = |above: &Caller| {
            Json::Array([&above.principal, &above.team, &above.org].map(|name| name.as_str().into()).to_vec())
        };
        out.push("above", Json::Array(status.above.iter().map(names).collect()));
    }
    Json::Object(out.0)
}

fn status(value: &Json) -> Option<AgentStatus> {
    let mut status = AgentStatus::default();
    for (name, member) in value.as_object()? {
        match name.as_str() {
            "stop" => match member.as_array()? {
                [rule, reason] => status.stop = Some(Stop { rule: owned(rule)?, reason: owned(reason)? }),
                _ => return None,
            },
            "risk" => status.risk = owned(member)?,
            "parent" => status.parent = owned(member)?,
            "parent_risk" => status.parent_risk = owned(member)?,
            "depth" => status.depth = member.as_u64()?.try_into().ok()?,
            "children" => status.children = member.as_u64()?,
            "registered_at" => status.registered_at = Some(Timestamp::from_micros(member.as_i64()?)),
            "observe" => status.observe = member.as_bool()?,
            "team_agents" => status.team_agents = member.as_u64()?,
            "name" => status.name = owned(member)?,
            "above" => status.above = member.as_array()?.iter().map(above).collect::<Option<_>>()?,
            _ => return None,
        }
    }
    Some(status)
}

fn above(value: &Json) -> Option<Caller> {
    let [principal, team, org] = value.as_array()? else { return None };
    Some(Caller { principal: owned(principal)?, team: owned(team)?, org: owned(org)? })
}

fn actions_per_minute(value: &Json) -> Option<ActionsPerMinute> {
    let [current, minutes, sum, squares] = value.as_array()? else { return None };
    Some(ActionsPerMinute {
        current: current.as_u64()?,
        minutes: minutes.as_u64()?,
        sum: sum.as_u64()?,
        squares: squares.as_u64()?,
    })
}

pub(super) fn read(value: &Json) -> Result<ReadSet, ReadSetError> {
    let members = value.as_object().ok_or_else(|| wrong("$", "is not an object"))?;
    let mut facts = Facts::default();
    let mut caller = Caller::default();
    let (mut findings, mut asked, mut sources) = (Vec::new(), Vec::new(), Vec::new());
    let (mut agent, mut semantics) = (String::new(), String::new());
    let (mut session, mut digest, mut now, mut fresh_approval) = (None, None, None, None);
    for (name, member) in members {
        match name.as_str() {
            "action" => {
                let members = member.as_object().ok_or_else(|| wrong(name, "is not an object"))?;
                members.iter().try_for_each(|(name, member)| read_fact(&mut facts, name, member))?;
            }
            "findings" => findings = list(name, member, finding)?,
            "principal" => caller.principal = text(name, member)?,
            "team" => caller.team = text(name, member)?,
            "org" => caller.org = text(name, member)?,
            "agent" => agent = text(name, member)?,
            "session" => session = Some(parsed::<SessionId>(name, member)?),
            "digest" => digest = Some(parsed::<Digest>(name, member)?),
            "now" => now = Some(Timestamp::from_micros(integer(name, member)?)),
            "fresh_approval" => fresh_approval = Some(parsed::<ApprovalId>(name, member)?),
            "asked" => asked = list(name, member, pair)?,
            "semantics" => semantics = text(name, member)?,
            "sources" => sources = list(name, member, |source| source.as_str()?.parse().ok())?,
            _ => return Err(wrong(name, "is not a member of read-sets")),
        }
    }
    let missing = |member| wrong(member, "is missing");
    Ok(ReadSet {
        input: Input {
            facts,
            findings,
            caller,
            agent,
            session: session.ok_or_else(|| missing("session"))?,
            digest: digest.ok_or_else(|| missing("digest"))?,
            now: now.ok_or_else(|| missing("now"))?,
            fresh_approval: fresh_approval.ok_or_else(|| missing("fresh_approval"))?,
        },
        asked,
        semantics,
        sources,
    })
}

fn read_fact(facts: &mut Facts, name: &str, value: &Json) -> Result<(), ReadSetError> {
    if let Some(fact) = name.strip_suffix(AS_TEXT).and_then(Fact::named)
        && let MemberMut::Json(json) = fact.get_mut(facts)
    {
        *json = deep(name, value)?;
        return Ok(());
    }
    let fact = Fact::named(name).ok_or_else(|| wrong(name, "is not a fact"))?;
    match fact.get_mut(facts) {
        MemberMut::Kind(field) => {
            *field = kind(value).ok_or_else(|| wrong(name, "is not a kind of action"))?;
        }
        MemberMut::Text(field) => *field = text(name, value)?,
        MemberMut::Texts(field) => *field = list(name, value, owned)?,
        MemberMut::Json(field) => *field = value.clone(),
        MemberMut::U16(field) => *field = number(name, value)?,
        MemberMut::U32(field) => *field = number(name, value)?,
        MemberMut::U64(field) => *field = number(name, value)?,
        MemberMut::Optional(field) => *field = Some(number(name, value)?),
        MemberMut::Decimal(field) => *field = amount(value).ok_or_else(|| wrong(name, "is not an amount"))?,
    }
    Ok(())
}

fn pair(value: &Json) -> Option<(Question, Answer)> {
    let items = value.as_array()?;
    let (answer, question) = items.split_last()?;
    let text = |place: usize| question.get(place)?.as_str();
    let (question, parts) = match text(0)? {
        "called" => (Question::Called(scope(text(1)?)?, text(2)?.to_owned()), 3),
        "since" => (Question::Since(scope(text(1)?)?, text(2)?.to_owned()), 3),
        "denied" => (Question::Denied(scope(text(1)?)?, text(2)?.to_owned()), 3),
        "tainted" => (Question::Tainted(scope(text(1)?)?, text(2)?.to_owned()), 3),
        "overflowed" => (Question::Overflowed(scope(text(1)?)?), 2),
        "spent" => {
            let account = [Account::Agent, Account::Team, Account::Org];
            let account = account.into_iter().find(|account| text(1) == Some(account.word()))?;
            (Question::Spent(account, unit(text(2)?)?, moment(question.get(3)?)?), 4)
        }
        "spent_above" => {
            (Question::SpentAbove(text(1)?.to_owned(), unit(text(2)?)?, moment(question.get(3)?)?), 4)
        }
        "rate" => {
            let limit = u32::try_from(question.get(2)?.as_u64()?).ok()?;
            (Question::Rate(text(1)?.to_owned(), limit), 3)
        }
        "approval" => (Question::Approval, 1),
        "standing" => (Question::AgentStatus(text(1)?.to_owned()), 2),
        "repeats" => (Question::Repeats(u32::try_from(question.get(1)?.as_u64()?).ok()?), 2),
        "pace" => (Question::ActionsPerMinute, 1),
        _ => return None,
    };
    if items.len() != parts + 1 {
        return None;
    }
    Some((question, read_answer(answer)?))
}

fn read_answer(value: &Json) -> Option<Answer> {
    Some(match value {
        Json::Number(_) => Answer::Count(value.as_u64()?),
        Json::Bool(truth) => Answer::Truth(*truth),
        Json::String(_) => Answer::Amount(amount(value)?),
        Json::Null => Answer::Approval(None),
        Json::Array(items) => match items.as_slice() {
            [] => Answer::Micros(None),
            [micros] => Answer::Micros(Some(micros.as_u64()?)),
            _ => return None,
        },
        Json::Object(members) => match members.as_slice() {
            [(name, level)] if name == "level" => Answer::Level(level.as_u64()?),
            [(name, Json::Null)] if name == "standing" => Answer::AgentStatus(None),
            [(name, value)] if name == "standing" => Answer::AgentStatus(Some(Box::new(status(value)?))),
            [(name, value)] if name == "pace" => Answer::ActionsPerMinute(actions_per_minute(value)?),
            _ => Answer::Approval(Some(approval(value)?)),
        },
    })
}

fn approval(value: &Json) -> Option<ApprovalView> {
    let by = || value.get("by").and_then(owned);
    let (state, members) = match value.get("state")?.as_str()? {
        "waiting" => (ApprovalState::Waiting, 3),
        "granted" => (ApprovalState::Granted { by: by()? }, 4),
        "refused" => (ApprovalState::Refused { by: by()?, reason: owned(value.get("reason")?)? }, 5),
        _ => return None,
    };
    // Zero is not written.
    let estimated = |name: &str| match value.get(name) {
        None => Some((Decimal::ZERO, 0)),
        Some(value) => amount(value).filter(|amount| !amount.is_zero()).map(|amount| (amount, 1)),
    };
    let ((usd, has_usd), (tokens, has_tokens)) = (estimated("usd")?, estimated("tokens")?);
    if value.as_object()?.len() != members + has_usd + has_tokens {
        return None;
    }
    Some(ApprovalView {
        id: value.get("id")?.as_str()?.parse().ok()?,
        expires: Timestamp::from_micros(value.get("expires")?.as_i64()?),
        state,
        estimate: Estimate { usd, tokens },
    })
}

fn scope(word: &str) -> Option<Scope> {
    [Scope::Session, Scope::Agent].into_iter().find(|scope| scope_word(*scope) == word)
}

fn unit(word: &str) -> Option<Unit> {
    [Unit::Usd, Unit::Tokens, Unit::Calls].into_iter().find(|unit| unit.word() == word)
}

fn moment(value: &Json) -> Option<Timestamp> {
    value.as_i64().map(Timestamp::from_micros)
}

fn finding(value: &Json) -> Option<FoundSecret> {
    match value.as_array()? {
        [kind, path] => Some(FoundSecret { kind: owned(kind)?, path: owned(path)? }),
        _ => None,
    }
}

fn kind(value: &Json) -> Option<ActionKind> {
    value.as_str()?.parse().ok()
}

fn amount(value: &Json) -> Option<Decimal> {
    Decimal::from_str_exact(value.as_str()?).ok()
}

fn owned(value: &Json) -> Option<String> {
    value.as_str().map(str::to_owned)
}

fn deep(name: &str, value: &Json) -> Result<Json, ReadSetError> {
    let text = value.as_str().and_then(|text| Json::parse(text.as_bytes()).ok());
    text.ok_or_else(|| wrong(name, "is not JSON as text"))
}

fn text(name: &str, value: &Json) -> Result<String, ReadSetError> {
    owned(value).ok_or_else(|| wrong(name, "is not a string"))
}

fn integer(name: &str, value: &Json) -> Result<i64, ReadSetError> {
    value.as_i64().ok_or_else(|| wrong(name, "is not an integer"))
}

fn number<T: TryFrom<u64>>(name: &str, value: &Json) -> Result<T, ReadSetError> {
    value
        .as_u64()
        .and_then(|number| T::try_from(number).ok())
        .ok_or_else(|| wrong(name, "is not an integer in range"))
}

fn parsed<T: FromStr>(name: &str, value: &Json) -> Result<T, ReadSetError> {
    value.as_str().and_then(|text| text.parse().ok()).ok_or_else(|| wrong(name, "is malformed"))
}

fn list<T>(name: &str, value: &Json, item: impl Fn(&Json) -> Option<T>) -> Result<Vec<T>, ReadSetError> {
    let items = value.as_array().and_then(|items| items.iter().map(item).collect());
    items.ok_or_else(|| wrong(name, "is malformed"))
}

fn wrong(member: &str, problem: &'static str) -> ReadSetError {
    ReadSetError { member: member.to_owned(), problem }
}
