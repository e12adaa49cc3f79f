//! A session read as a trace: the steps that were let through or reported as done, in ledger order.

use crate::id::SessionId;
use crate::json::Json;

/// What kind of step it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StepKind {
    /// A call to a language model.
    LlmCall,
    /// Another agent was started.
    AgentCall,
    /// Everything else.
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

/// One step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// Sequence of the decision's record.
    pub sequence: u64,
    /// Its kind.
    pub kind: StepKind,
    /// The tool.
    pub name: String,
    /// The arguments, as answered.
    pub args: Json,
    /// The outcome; `null` if none was reported.
    pub result: Json,
}

/// A session as a trace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trace {
    /// Our identifier of the session.
    pub id: SessionId,
    /// The steps, in ledger order.
    pub steps: Vec<Step>,
    /// Actions that were denied or still wait: they are not steps.
    pub denied: Vec<Json>,
    /// The last response's text; empty if none.
    pub output: String,
}

impl Trace {
    /// The JSON form: `trace_id`, `steps`, `output`, `metadata`.
    pub fn to_json(&self) -> Json {
        let steps = self.steps.iter().map(|step| {
            Json::object()
                .with("type", step.kind.word())
                .with("name", step.name.as_str())
                .with("args", step.args.clone())
                .with("result", step.result.clone())
                .with("metadata", Json::object().with("sequence", step.sequence))
        });
        Json::object()
            .with("trace_id", self.id.to_string())
            .with("steps", steps.collect::<Vec<Json>>())
            .with("output", Json::object().with("message", self.output.as_str()))
            .with("metadata", Json::object().with("denied", self.denied.clone()))
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
        let trace = Trace {
            id,
            steps: vec![Step {
                sequence: 4,
                kind: StepKind::ToolCall,
                name: "shell".into(),
                args: Json::object(),
                result: Json::Null,
            }],
            denied: vec![Json::from("x")],
            output: String::new(),
        };
        assert_eq!(
            trace.to_json().to_string(),
            format!(
                r#"{{"trace_id":"{id}","steps":[{{"type":"tool_call","name":"shell","args":{{}},"result":null,"metadata":{{"sequence":4}}}}],"output":{{"message":""}},"metadata":{{"denied":["x"]}}}}"#
            )
        );
    }
}
