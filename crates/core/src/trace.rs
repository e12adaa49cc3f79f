//! A session read as a trace: the steps that were let through or reported as done, in ledger order.

use rust_decimal::Decimal;

use crate::id::SessionId;
use crate::json::Json;
use crate::time::Timestamp;

/// Kind of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StepKind {
    /// A call to a language model.
    LlmCall,
    /// A start of another agent.
    AgentCall,
    /// Any other step.
    ToolCall,
}

impl StepKind {
    /// The word for it in a trace.
    pub const fn word(self) -> &'static str {
        match self {
            StepKind::LlmCall => "llm_call",
            StepKind::AgentCall => "agent_call",
            StepKind::ToolCall => "tool_call",
        }
    }
}

/// Step of a trace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// Sequence of the decision's record.
    pub sequence: u64,
    /// Kind.
    pub kind: StepKind,
    /// The tool.
    pub name: String,
    /// Tool name as sent, if it differs from the canonical one; empty otherwise.
    pub alias: String,
    /// The arguments, as answered.
    pub args: Json,
    /// The outcome; `null` if none was reported.
    pub result: Json,
    /// Time of the decision.
    pub started: Timestamp,
    /// Time of the reported outcome.
    pub ended: Option<Timestamp>,
}

/// A session as a trace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trace {
    /// Our identifier of the session.
    pub id: SessionId,
    /// The agent, as claimed; empty if it was not named.
    pub agent: String,
    /// The steps, in ledger order.
    pub steps: Vec<Step>,
    /// Actions that were denied or still wait: they are not steps.
    pub denied: Vec<Json>,
    /// The last response's text; empty if none.
    pub output: String,
    /// Tokens that were used; none if they were not reported.
    pub tokens: Option<Decimal>,
    /// Dollars that were spent; none if they were not reported.
    pub cost_usd: Option<Decimal>,
    /// Start of the session, and time of its last record.
    pub times: Option<(Timestamp, Timestamp)>,
}

impl Trace {
    /// An empty trace of a session.
    pub fn new(id: SessionId) -> Trace {
        Trace {
            id,
            agent: String::new(),
            steps: Vec::new(),
            denied: Vec::new(),
            output: String::new(),
            tokens: None,
            cost_usd: None,
            times: None,
        }
    }

    /// The JSON form: `trace_id`, `agent_id`, `steps`, `output`, `metadata`. What nobody said is left out: it is not zero.
    pub fn to_json(&self) -> Json {
        let mut trace = Json::object().with("trace_id", self.id.to_string());
        if !self.agent.is_empty() {
            trace.push("agent_id", self.agent.as_str());
        }
        let mut metadata = Json::object();
        for (name, amount) in [("total_tokens", self.tokens), ("cost_usd", self.cost_usd)] {
            if let Some(amount) = amount {
                metadata.push(name, Json::Number(amount.normalize().to_string().into()));
            }
        }
        if let Some((first, last)) = self.times {
            metadata.push("latency_ms", last.micros_since(first) / 1000);
        }
        metadata.push("denied", self.denied.clone());
        trace
            .with("steps", self.steps.iter().map(Step::to_json).collect::<Vec<Json>>())
            .with("output", Json::object().with("message", self.output.as_str()))
            .with("metadata", metadata)
    }
}

impl Step {
    fn to_json(&self) -> Json {
        let mut step = Json::object()
            .with("type", self.kind.word())
            .with("name", self.name.as_str())
            .with("args", self.args.clone())
            .with("result", self.result.clone())
            .with("started_at_ms", self.started.micros() / 1000);
        if !self.alias.is_empty() {
            step.push("alias", self.alias.as_str());
        }
        if let Some(ended) = self.ended {
            step.push("ended_at_ms", ended.micros() / 1000);
        }
        step.with("metadata", Json::object().with("sequence", self.sequence))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::SeededRandomness;
    use crate::time::Timestamp;

    #[test]
    fn json_form() {
        let id = SessionId::new(Timestamp::from_micros(0), &SeededRandomness::new(3));
        let step = |sequence: u64, ended: Option<i64>| Step {
            sequence,
            kind: StepKind::ToolCall,
            name: "shell".into(),
            alias: if ended.is_some() { "bash".into() } else { String::new() },
            args: Json::object(),
            result: Json::Null,
            started: Timestamp::from_micros(1_500_900),
            ended: ended.map(Timestamp::from_micros),
        };
        let trace = Trace {
            agent: "coder".into(),
            steps: vec![step(4, Some(2_000_000)), step(5, None)],
            denied: vec![Json::from("x")],
            tokens: Some(Decimal::from(120)),
            cost_usd: Some(Decimal::new(1500, 4)),
            times: Some((Timestamp::from_micros(1_000_000), Timestamp::from_micros(3_250_999))),
            ..Trace::new(id)
        };
        let steps = concat!(
            r#"{"type":"tool_call","name":"shell","args":{},"result":null,"started_at_ms":1500,"alias":"bash","ended_at_ms":2000,"metadata":{"sequence":4}},"#,
            r#"{"type":"tool_call","name":"shell","args":{},"result":null,"started_at_ms":1500,"metadata":{"sequence":5}}"#
        );
        assert_eq!(
            trace.to_json().to_string(),
            format!(
                r#"{{"trace_id":"{id}","agent_id":"coder","steps":[{steps}],"output":{{"message":""}},"metadata":{{"total_tokens":120,"cost_usd":0.15,"latency_ms":2250,"denied":["x"]}}}}"#
            )
        );
    }

    #[test]
    fn what_nobody_said_is_not_zero() {
        let id = SessionId::new(Timestamp::from_micros(0), &SeededRandomness::new(3));
        assert_eq!(
            Trace::new(id).to_json().to_string(),
            format!(
                r#"{{"trace_id":"{id}","steps":[],"output":{{"message":""}},"metadata":{{"denied":[]}}}}"#
            )
        );
    }
}
