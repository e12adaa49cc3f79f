//! Parser of the gate's messages.

use proctor_core::action::{Action, ActionProblem};
use proctor_core::json::{Json, JsonError};
// The door of test runs: only the program that runs the tests speaks there, through the owner's socket, so its lines may say more: parts of
// a run, alarms, and outcomes of asks that the suite approved.
use proctor_engine::access::TEST_RUNS;
use proctor_engine::{Ending, Outcome, Report, RunReport, SIMULATED_APPROVAL, Spent};
use rust_decimal::Decimal;

/// Alarms that test runs raise.
const RUN_ALARMS: [&str; 4] = ["tool_not_allowed", "foreign_task", "malformed", "too_many_calls"];

/// A parsed line.
#[derive(Debug)]
pub struct Message {
    /// Name of the agent, as claimed.
    pub agent: String,
    /// Name of the session.
    pub session: String,
    /// The caller's `ref`, returned with the answer.
    pub reference: Option<Json>,
    /// The action or the report.
    pub content: Content,
}

/// Content of a message.
#[derive(Debug)]
pub enum Content {
    /// An action to decide.
    Action(Box<Action>),
    /// An outcome or an observation to record.
    Report(Report),
}

/// Refusal of a line as malformed.
#[derive(Debug, thiserror::Error)]
pub enum MessageError {
    /// The line is not JSON.
    #[error("not JSON: {0}")]
    NotJson(JsonError),
    /// The line is JSON, but not an object.
    #[error("a line holds one JSON object")]
    NotAnObject,
    /// The line names a door.
    #[error("`door` is not for the caller to say")]
    Door,
    /// The line has an action and a report.
    #[error("an action cannot be sent together with `outcome` or `observation`")]
    ActionAndReport,
    /// Members of the action are invalid.
    #[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))]
    Action(Vec<ActionProblem>),
    /// A member is not a string.
    #[error("`{name}` is a string, this is {found}")]
    NotAString {
        /// The member.
        name: &'static str,
        /// Type of its value.
        found: &'static str,
    },
    /// The cost of an outcome is not an amount.
    #[error("`outcome.cost_usd` is not an amount")]
    Cost,
    /// The tokens of an outcome are not a whole number.
    #[error("`outcome.tokens` is not a number of tokens")]
    Tokens,
    /// `ok` of an outcome is not a boolean.
    #[error("`outcome.ok` is true or false")]
    NotBoolean,
    /// The decision of an outcome is missing, or not an identifier.
    #[error("`outcome.decision_id` is the `decision_id` of an answer")]
    DecisionId,
    /// An observation has no code.
    #[error("`observation.code` says what kind of thing it is")]
    Code,
    /// An alarm of an observation is unknown or malformed.
    #[error("`observation.alarms` has an unknown alarm")]
    Alarm,
    /// A report is not an object.
    #[error("`{0}` is an object")]
    ReportNotAnObject(&'static str),
    /// A report has an unknown member that resembles a known one.
    #[error("unknown member `{report}.{name}`: did you mean `{nearest}`?")]
    MisspeltMember {
        /// `outcome` or `observation`.
        report: &'static str,
        /// The unknown member.
        name: String,
        /// The known member that it resembles.
        nearest: &'static str,
    },
    /// A report has an unknown member.
    #[error("unknown member `{report}.{name}`: known are {}", .known.join(", "))]
    UnknownMember {
        /// `outcome` or `observation`.
        report: &'static str,
        /// The unknown member.
        name: String,
        /// All members that the report may have.
        known: &'static [&'static str],
    },
}

/// Parses a line: an action with `session`, `agent` and `ref` beside its own members, or a report in `outcome` or `observation`.
pub fn read_message(line: &[u8], door: &str) -> Result<Message, MessageError> {
    let value = Json::parse(line).map_err(MessageError::NotJson)?;
    let Json::Object(members) = value else { return Err(MessageError::NotAnObject) };
    let mut message = Message {
        agent: String::new(),
        session: String::new(),
        reference: None,
        content: Content::Action(Box::default()),
    };
    let mut action = Vec::new();
    let mut report = None;
    for (name, member) in members {
        match name.as_str() {
            "session" => message.session = text("session", &member)?,
            "agent" => message.agent = text("agent", &member)?,
            "ref" => message.reference = Some(member),
            "door" => return Err(MessageError::Door),
            "outcome" => report = Some(read_outcome(&member, door)?),
            "observation" => report = Some(read_observation(&member, door)?),
            "run" if door == TEST_RUNS => report = Some(read_run(&member)?),
            _ => action.push((name, member)),
        }
    }
    message.content = match report {
        Some(_) if !action.is_empty() => return Err(MessageError::ActionAndReport),
        Some(report) => Content::Report(report),
        None => {
            let mut action = Action::from_json(&Json::Object(action)).map_err(MessageError::Action)?;
            door.clone_into(&mut action.door);
            Content::Action(Box::new(action))
        }
    };
    Ok(message)
}

fn text(name: &'static str, value: &Json) -> Result<String, MessageError> {
    value
        .as_str()
        .map(str::to_owned)
        .ok_or_else(|| MessageError::NotAString { name, found: value.type_name() })
}

fn read_outcome(value: &Json, door: &str) -> Result<Report, MessageError> {
    let is_simulated = door == TEST_RUNS && value.get("simulated_approval").is_some();
    let known: &'static [&'static str] = if is_simulated {
        &["decision_id", "ok", "result", "simulated_approval"]
    } else {
        &["decision_id", "ok", "result", "tokens", "cost_usd"]
    };
    known_members(value, "outcome", known)?;
    let decision = value.get("decision_id").and_then(Json::as_str).and_then(|id| id.parse().ok());
    let amount =
        |literal: &str| Decimal::from_str_exact(literal).ok().filter(|amount| !amount.is_sign_negative());
    let cost_usd = match value.get("cost_usd") {
        None => None,
        Some(Json::Number(literal)) => Some(amount(literal).ok_or(MessageError::Cost)?),
        Some(Json::String(literal)) => Some(amount(literal).ok_or(MessageError::Cost)?),
        Some(_) => return Err(MessageError::Cost),
    };
    let tokens = match value.get("tokens") {
        None => None,
        Some(tokens) => Some(tokens.as_u64().ok_or(MessageError::Tokens)?),
    };
    let ok = value.get("ok").map_or(Some(true), Json::as_bool).ok_or(MessageError::NotBoolean)?;
    Ok(Report::Outcome(Outcome {
        decision: decision.ok_or(MessageError::DecisionId)?,
        sequence: None,
        ending: if ok { Ending::Ok } else { Ending::Failed },
        result: value.get("result").cloned().unwrap_or_default(),
        tokens,
        cost_usd,
        binding: is_simulated.then_some(SIMULATED_APPROVAL),
    }))
}

fn read_observation(value: &Json, door: &str) -> Result<Report, MessageError> {
    let known: &'static [&'static str] =
        if door == TEST_RUNS { &["code", "data", "alarms"] } else { &["code", "data"] };
    known_members(value, "observation", known)?;
    let listed = value.get("alarms").and_then(Json::as_array).unwrap_or_default();
    let alarm = |alarm: &Json| {
        let code = alarm.get("code").and_then(Json::as_str)?;
        let problem = alarm.get("problem").and_then(Json::as_str)?.to_owned();
        Some((*RUN_ALARMS.iter().find(|known| **known == code)?, problem))
    };
    let alarms = listed.iter().map(|listed| alarm(listed).ok_or(MessageError::Alarm));
    let code = value.get("code").and_then(Json::as_str).ok_or(MessageError::Code)?;
    Ok(Report::Observation {
        code: code.to_owned(),
        data: value.get("data").cloned().unwrap_or_default(),
        alarms: alarms.collect::<Result<_, _>>()?,
        spent: Spent::default(),
    })
}

fn read_run(value: &Json) -> Result<Report, MessageError> {
    known_members(value, "run", &["code", "name", "data", "once"])?;
    let text = |name: &str| value.get(name).and_then(Json::as_str).map(str::to_owned);
    Ok(Report::Run(RunReport {
        code: text("code").ok_or(MessageError::Code)?,
        name: text("name").unwrap_or_default(),
        data: value.get("data").cloned().unwrap_or_default(),
        once: text("once"),
    }))
}

fn known_members(
    value: &Json,
    report: &'static str,
    known: &'static [&'static str],
) -> Result<(), MessageError> {
    let members = value.as_object().ok_or(MessageError::ReportNotAnObject(report))?;
    match members.iter().find(|(name, _)| !known.contains(&name.as_str())) {
        None => Ok(()),
        Some((name, _)) => Err(match proctor_core::nearest(name, known) {
            Some(nearest) => MessageError::MisspeltMember { report, name: name.clone(), nearest },
            None => MessageError::UnknownMember { report, name: name.clone(), known },
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problem(line: &str) -> String {
        read_message(line.as_bytes(), "gate").err().unwrap().to_string()
    }

    #[test]
    fn only_test_runs_may_send_parts_of_a_run() {
        let lines = [
            r#"{"run":{"code":"started","name":"t","data":{}}}"#,
            r#"{"observation":{"code":"x","alarms":[{"code":"malformed","problem":"p"}]}}"#,
            r#"{"outcome":{"decision_id":"0198f0a0-0000-7000-8000-000000000000","simulated_approval":true}}"#,
        ];
        for line in lines {
            assert!(read_message(line.as_bytes(), "gate").is_err(), "{line}");
            assert!(read_message(line.as_bytes(), TEST_RUNS).is_ok(), "{line}");
        }
        let unknown = r#"{"observation":{"code":"x","alarms":[{"code":"mine","problem":"p"}]}}"#;
        assert!(read_message(unknown.as_bytes(), TEST_RUNS).is_err());
    }

    #[test]
    fn messages_are_read_strictly() {
        let message = read_message(
            br#"{"tool":"bash","args":{"command":"ls"},"session":"s","agent":"a","ref":7}"#,
            "gate",
        )
        .unwrap();
        assert_eq!(
            (message.session.as_str(), message.agent.as_str(), message.reference),
            ("s", "a", Some(Json::from(7u8)))
        );
        let Content::Action(action) = message.content else { panic!("an action") };
        assert_eq!(action.door, "gate");
        assert!(problem("[1]").contains("one JSON object"));
        assert!(problem("{").contains("not JSON"));
        assert!(problem(r#"{"tool":"x","outcome":{"decision_id":"y"}}"#).contains("decision_id"));
        assert!(problem(r#"{"outcome":{"decison_id":"y"}}"#).contains("did you mean `decision_id`"));
        assert!(problem(r#"{"tool":1}"#).contains("expected a string"));
        assert!(problem(r#"{"observation":{"data":1}}"#).contains("code"));
    }
}
