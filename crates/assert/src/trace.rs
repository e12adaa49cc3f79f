//! The trace model: parsed in one pass, with the bodies of steps left as raw JSON.

use std::collections::HashSet;

use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;

use crate::text::Text;

/// The trace of an agent, from its input to its output.
#[derive(Debug, Clone, Default)]
pub struct Trace<'a> {
    /// Members of the trace other than the steps.
    pub head: Head<'a>,
    /// The steps, in order.
    pub steps: Vec<Step<'a>>,
}

/// The members of a trace besides its steps.
#[derive(Debug, Clone, Default)]
pub struct Head<'a> {
    /// Version of the format; 0 if it is not said.
    pub schema_version: f64,
    /// Name of the trace.
    pub trace_id: Text<'a>,
    /// The agent; empty if the trace does not name it.
    pub agent_id: Text<'a>,
    /// The trace that this one is a part of; empty if none.
    pub parent_trace_id: Text<'a>,
    /// The agent's input.
    pub input: Option<&'a RawValue>,
    /// The agent's output.
    pub output: Option<&'a RawValue>,
    /// Numbers about it.
    pub metadata: Metadata<'a>,
}

/// A step of a trace.
#[derive(Debug, Clone, Default)]
pub struct Step<'a> {
    /// The kind of step.
    pub kind: StepKind<'a>,
    /// The tool, model or agent.
    pub name: Text<'a>,
    /// The agent's own name for the step, if it differs; empty otherwise.
    pub alias: Text<'a>,
    /// The arguments.
    pub args: Option<&'a RawValue>,
    /// The result.
    pub result: Option<&'a RawValue>,
    /// Metadata of the step.
    pub metadata: Option<&'a RawValue>,
    /// The trace of the called agent; only for agent calls.
    pub sub_trace: Option<Box<Trace<'a>>>,
    /// Start time, in milliseconds.
    pub started_at_ms: Option<f64>,
    /// End time, in milliseconds.
    pub ended_at_ms: Option<f64>,
    /// The agent, if the step names it; empty otherwise.
    pub agent_id: Text<'a>,
}

/// The kinds of steps.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum StepKind<'a> {
    /// A call to a language model.
    LlmCall,
    /// A call to a tool.
    #[default]
    ToolCall,
    /// A look-up.
    Retrieval,
    /// A call to another agent.
    AgentCall,
    /// An unknown type, refused by [`crate::validate`].
    Other(Text<'a>),
}

/// Numbers about a trace.
#[derive(Debug, Clone, Default)]
pub struct Metadata<'a> {
    /// Tokens.
    pub total_tokens: Option<f64>,
    /// Money.
    pub cost_usd: Option<f64>,
    /// Time, in milliseconds.
    pub latency_ms: Option<f64>,
    /// All members, as they came; `None` if there are none.
    pub raw: Option<&'a RawValue>,
}

impl<'a> Trace<'a> {
    /// Reads a trace; nothing but its shape is checked (see [`crate::validate`] for the rest).
    pub fn parse(text: &'a str) -> Result<Trace<'a>, serde_json::Error> {
        serde_json::from_str(text)
    }

    /// The traces of the tree, depth first, each with its depth; the root has depth 0.
    pub fn walk<'t>(&'t self, visit: &mut dyn FnMut(&'t Trace<'a>, usize)) {
        fn descend<'t, 'a>(trace: &'t Trace<'a>, depth: usize, visit: &mut dyn FnMut(&'t Trace<'a>, usize)) {
            visit(trace, depth);
            for step in &trace.steps {
                if let Some(below) = step.child() {
                    descend(below, depth + 1, visit);
                }
            }
        }
        descend(self, 0, visit);
    }
}

impl<'a> Step<'a> {
    /// Reads one step.
    pub fn parse(text: &'a str) -> Result<Step<'a>, serde_json::Error> {
        serde_json::from_str(text)
    }

    /// Whether this is the step's name or its alias.
    pub fn is_named(&self, name: &str) -> bool {
        self.name.as_str() == name || (!self.alias.is_empty() && self.alias.as_str() == name)
    }

    /// The trace below this step: only an agent call has one.
    pub fn child(&self) -> Option<&Trace<'a>> {
        match self.kind {
            StepKind::AgentCall => self.sub_trace.as_deref(),
            _ => None,
        }
    }
}

impl StepKind<'_> {
    /// The word for it in a trace.
    pub fn word(&self) -> &str {
        match self {
            StepKind::LlmCall => "llm_call",
            StepKind::ToolCall => "tool_call",
            StepKind::Retrieval => "retrieval",
            StepKind::AgentCall => "agent_call",
            StepKind::Other(word) => word,
        }
    }
}

impl<'a> From<Text<'a>> for StepKind<'a> {
    fn from(word: Text<'a>) -> StepKind<'a> {
        match word.as_str() {
            "llm_call" => StepKind::LlmCall,
            "tool_call" => StepKind::ToolCall,
            "retrieval" => StepKind::Retrieval,
            "agent_call" => StepKind::AgentCall,
            _ => StepKind::Other(word),
        }
    }
}

/// Members as they are written; `null` is the same as absent.
#[derive(Deserialize)]
struct WrittenTrace<'a> {
    #[serde(default)]
    schema_version: Option<f64>,
    #[serde(borrow, default)]
    trace_id: Text<'a>,
    #[serde(borrow, default)]
    agent_id: Text<'a>,
    #[serde(borrow, default)]
    parent_trace_id: Text<'a>,
    #[serde(borrow, default)]
    input: Option<&'a RawValue>,
    #[serde(borrow, default)]
    steps: Option<Vec<Step<'a>>>,
    #[serde(borrow, default)]
    output: Option<&'a RawValue>,
    #[serde(borrow, default)]
    metadata: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct WrittenStep<'a> {
    #[serde(borrow, default, rename = "type")]
    kind: Text<'a>,
    #[serde(borrow, default)]
    name: Text<'a>,
    #[serde(borrow, default)]
    alias: Text<'a>,
    #[serde(borrow, default)]
    args: Option<&'a RawValue>,
    #[serde(borrow, default)]
    result: Option<&'a RawValue>,
    #[serde(borrow, default)]
    metadata: Option<&'a RawValue>,
    #[serde(borrow, default)]
    sub_trace: Option<Box<Trace<'a>>>,
    #[serde(default)]
    started_at_ms: Option<f64>,
    #[serde(default)]
    ended_at_ms: Option<f64>,
    #[serde(borrow, default)]
    agent_id: Text<'a>,
}

#[derive(Deserialize)]
struct WrittenMetadata<'a> {
    #[serde(default)]
    total_tokens: Option<f64>,
    #[serde(default)]
    cost_usd: Option<f64>,
    #[serde(default)]
    latency_ms: Option<f64>,
    // Read only so that a wrong type is noticed.
    #[serde(borrow, default, rename = "model")]
    _model: Text<'a>,
    #[serde(borrow, default, rename = "timestamp")]
    _timestamp: Text<'a>,
}

impl<'de: 'a, 'a> Deserialize<'de> for Trace<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Trace<'a>, D::Error> {
        let Some(written) = deserializer.deserialize_any(OnlyObject::<WrittenTrace<'a>>::new())? else {
            return Ok(Trace::default());
        };
        let metadata = match written.metadata {
            None => Metadata::default(),
            Some(raw) => {
                if !raw.get().starts_with('{') {
                    return Err(serde::de::Error::custom("metadata is not an object"));
                }
                let problem = |error| serde::de::Error::custom(format!("metadata: {error}"));
                let Distinct = serde_json::from_str(raw.get()).map_err(problem)?;
                let numbers: WrittenMetadata<'a> = serde_json::from_str(raw.get()).map_err(problem)?;
                Metadata {
                    total_tokens: numbers.total_tokens,
                    cost_usd: numbers.cost_usd,
                    latency_ms: numbers.latency_ms,
                    raw: Some(raw),
                }
            }
        };
        Ok(Trace {
            head: Head {
                schema_version: written.schema_version.unwrap_or(0.0),
                trace_id: written.trace_id,
                agent_id: written.agent_id,
                parent_trace_id: written.parent_trace_id,
                input: written.input,
                output: written.output,
                metadata,
            },
            steps: written.steps.unwrap_or_default(),
        })
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Step<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Step<'a>, D::Error> {
        let written = deserializer.deserialize_any(OnlyObject::<WrittenStep<'a>>::new())?;
        let written = written.ok_or_else(|| serde::de::Error::custom("a step is an object, not null"))?;
        Ok(Step {
            kind: StepKind::from(written.kind),
            name: written.name,
            alias: written.alias,
            args: written.args,
            result: written.result,
            metadata: written.metadata,
            sub_trace: written.sub_trace,
            started_at_ms: written.started_at_ms,
            ended_at_ms: written.ended_at_ms,
            agent_id: written.agent_id,
        })
    }
}

/// An object no two members of which have the same name: of two numbers none would be the right one.
struct Distinct;

impl<'de> Deserialize<'de> for Distinct {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Distinct, D::Error> {
        struct DistinctVisitor;

        impl<'de> Visitor<'de> for DistinctVisitor {
            type Value = Distinct;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Distinct, A::Error> {
                let mut names = HashSet::new();
                while let Some(name) = members.next_key::<Text<'de>>()? {
                    if names.contains(&name) {
                        return Err(serde::de::Error::custom(format_args!(
                            "the member `{}` is there twice",
                            name.chars().take(60).collect::<String>()
                        )));
                    }
                    names.insert(name);
                    members.next_value::<IgnoredAny>()?;
                }
                Ok(Distinct)
            }
        }

        deserializer.deserialize_map(DistinctVisitor)
    }
}

/// Reads an object, or nothing from `null`. By themselves derived readers take a list for the members in their order.
pub(crate) struct OnlyObject<T>(std::marker::PhantomData<T>);

impl<T> OnlyObject<T> {
    pub(crate) fn new() -> OnlyObject<T> {
        OnlyObject(std::marker::PhantomData)
    }
}

impl<'de, T: Deserialize<'de>> Visitor<'de> for OnlyObject<T> {
    type Value = Option<T>;

    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("an object")
    }

    fn visit_unit<E>(self) -> Result<Option<T>, E> {
        Ok(None)
    }

    fn visit_map<A: MapAccess<'de>>(self, members: A) -> Result<Option<T>, A::Error> {
        T::deserialize(MapAccessDeserializer::new(members)).map(Some)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_may_be_written_in_any_way_and_null_is_nothing() {
        let text = r#"{"trace_id":"t","agent_id":null,"steps":[{"type":"retrieval","name":"n","started_at_ms":1.5,"ended_at_ms":2}],
            "output":{"message":"m"},"metadata":{"latency_ms":100.0,"total_tokens":5,"cost_usd":null,"other":[]}}"#;
        let trace = Trace::parse(text).unwrap();
        assert_eq!(trace.head.agent_id.as_str(), "");
        assert_eq!(trace.head.metadata.latency_ms, Some(100.0));
        assert_eq!(trace.head.metadata.total_tokens, Some(5.0));
        assert_eq!(trace.steps[0].started_at_ms, Some(1.5));
        assert!(Trace::parse("null").unwrap().steps.is_empty());
    }

    #[test]
    fn only_objects_are_traces_and_steps() {
        for text in [
            "[]",
            "1",
            r#"[1, "t"]"#,
            r#"{"steps": [["tool_call", "x"]]}"#,
            r#"{"steps": [null]}"#,
            r#"{"steps": {}}"#,
            r#"{"metadata": []}"#,
            r#"{"metadata": 1}"#,
            r#"{"metadata": {"latency_ms": "1"}}"#,
            r#"{"trace_id": 1}"#,
            r#"{"trace_id": "a", "trace_id": "b"}"#,
            r#"{"metadata": {"cost_usd": 1, "cost_usd": 1}}"#,
            r#"{"metadata": {"other": 1, "latency_ms": 1, "other": 1}}"#,
            r#"{"metadata": {"oth\u0065r": {}, "other": []}}"#,
            r#"{"steps": [{"type": "agent_call", "name": "n", "sub_trace": {"metadata": {"a": 1, "a": 2}}}]}"#,
            r#"{"steps": [{"type": "tool_call", "name": "n", "alias": 1}]}"#,
        ] {
            assert!(Trace::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_step_has_a_name_and_maybe_another() {
        let step = Step::parse(r#"{"type": "tool_call", "name": "shell", "alias": "bash"}"#).unwrap();
        assert!(step.is_named("shell") && step.is_named("bash"));
        assert!(!step.is_named("") && !step.is_named("Bash") && !step.is_named("shell (bash)"));
        for text in [r#"{"name": "shell"}"#, r#"{"name": "shell", "alias": null}"#] {
            let step = Step::parse(text).unwrap();
            assert!(step.is_named("shell") && !step.is_named("") && step.alias.is_empty());
        }
    }

    #[test]
    fn a_hundred_thousand_brackets_are_only_text() {
        let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
        let text = format!(
            r#"{{"trace_id":"t","steps":[{{"type":"tool_call","name":"n","args":{deep}}}],"output":{{"m":{deep}}}}}"#
        );
        assert_eq!(Trace::parse(&text).unwrap().steps.len(), 1);
    }
}
