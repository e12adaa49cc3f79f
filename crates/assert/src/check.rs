//! Assertions, and their compilation to checks.

use serde::Deserialize;
use serde_json::value::RawValue;
use sha2::{Digest, Sha256};

use crate::embedding::Similarity;
use crate::judge::Judgement;
use crate::text::Text;
use crate::tools::Tools;
use crate::trace::{Head, OnlyObject, Step, Trace};
use crate::verdict::Verdict;
use crate::{constraint, content, embedding, judge, schema, sequence, tree};

/// An assertion as it was sent.
#[derive(Debug, Clone, Default)]
pub struct Assertion<'a> {
    /// The sender's id; need not be unique.
    pub assertion_id: Text<'a>,
    /// Layer that the assertion belongs to.
    pub kind: Text<'a>,
    /// The parameters of the assertion.
    pub spec: Option<&'a RawValue>,
    /// The request id, echoed in the answer.
    pub request_id: Text<'a>,
}

#[derive(Deserialize)]
struct WrittenAssertion<'a> {
    #[serde(borrow, default)]
    assertion_id: Text<'a>,
    #[serde(borrow, default, rename = "type")]
    kind: Text<'a>,
    #[serde(borrow, default, deserialize_with = "as_written")]
    spec: Option<&'a RawValue>,
    #[serde(borrow, default)]
    request_id: Text<'a>,
}

impl<'de: 'a, 'a> Deserialize<'de> for Assertion<'a> {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Assertion<'a>, D::Error> {
        let written = deserializer.deserialize_any(OnlyObject::<WrittenAssertion<'a>>::new())?;
        let written =
            written.ok_or_else(|| serde::de::Error::custom("an assertion is an object, not null"))?;
        Ok(Assertion {
            assertion_id: written.assertion_id,
            kind: written.kind,
            spec: written.spec,
            request_id: written.request_id,
        })
    }
}

/// Keeps `null` apart from an absent member.
fn as_written<'de: 'a, 'a, D: serde::Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<&'a RawValue>, D::Error> {
    <&'a RawValue>::deserialize(deserializer).map(Some)
}

/// The layers, in the numbers that people know them by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Layer {
    /// A value has a shape.
    Schema,
    /// A number has a bound.
    Constraint,
    /// Steps come in an order.
    Trace,
    /// Checks of texts.
    Content,
    /// A text means about the same as another.
    Embedding,
    /// A model finds a text good.
    Judge,
    /// Agents call each other as they should.
    Tree,
    /// An external plugin decides.
    Plugin,
}

impl Layer {
    /// The layer that a type names.
    pub fn of(kind: &str) -> Option<Layer> {
        Some(match kind {
            "schema" => Layer::Schema,
            "constraint" => Layer::Constraint,
            "trace" => Layer::Trace,
            "content" => Layer::Content,
            "embedding" => Layer::Embedding,
            "llm_judge" => Layer::Judge,
            "trace_tree" => Layer::Tree,
            "plugin" => Layer::Plugin,
            _ => return None,
        })
    }

    /// All assertion types.
    pub const KINDS: [&'static str; 8] =
        ["schema", "constraint", "trace", "content", "embedding", "llm_judge", "trace_tree", "plugin"];

    /// The number of the layer.
    pub fn number(self) -> u8 {
        match self {
            Layer::Schema => 1,
            Layer::Constraint => 2,
            Layer::Trace => 3,
            Layer::Content => 4,
            Layer::Embedding => 5,
            Layer::Judge => 6,
            Layer::Tree => 7,
            Layer::Plugin => 8,
        }
    }

    /// The order of evaluation: plugins first, trees together with traces.
    pub fn order(self) -> u8 {
        match self {
            Layer::Plugin => 0,
            Layer::Tree => 3,
            other => other.number(),
        }
    }

    /// Whether it needs a model: then it runs only if nothing failed hard before.
    pub fn needs_model(self) -> bool {
        matches!(self, Layer::Embedding | Layer::Judge)
    }
}

/// An assertion made ready: it sees steps one by one, and can say at any time what it finds.
pub(crate) trait Fold: Send {
    /// Folds the next step of the trace.
    fn step(&mut self, step: &Step<'_>);

    /// The verdict on a trace with this head and exactly the steps seen so far.
    fn verdict(&self, head: &Head<'_>) -> Verdict;
}

/// A check that is fed step by step.
pub struct Check(pub(crate) Box<dyn Fold>);

impl Check {
    /// Folds the next step of the trace.
    pub fn step(&mut self, step: &Step<'_>) {
        self.0.step(step);
    }

    /// The verdict on a trace with this head and exactly the steps seen so far.
    pub fn verdict(&self, head: &Head<'_>) -> Verdict {
        self.0.verdict(head)
    }
}

/// A compiled assertion.
pub enum Compiled {
    /// Decided from the trace alone.
    Check(Check),
    /// Decided from two vectors.
    Similarity(Similarity),
    /// Decided from what a model says.
    Judgement(Judgement),
    /// An assertion that an external plugin evaluates.
    Plugin,
    /// Cannot be decided at all.
    Failed(Verdict),
}

impl<'a> Assertion<'a> {
    /// An assertion from its parts.
    pub fn new(id: &'a str, kind: &'a str, spec: &'a str) -> Result<Assertion<'a>, serde_json::Error> {
        Ok(Assertion {
            assertion_id: Text(id.into()),
            kind: Text(kind.into()),
            spec: Some(serde_json::from_str(spec)?),
            request_id: Text::default(),
        })
    }

    /// A key derived from type and normalised spec, under which the scores of earlier runs are found.
    pub fn key(&self, tools: &Tools) -> String {
        let spec = self.spec.map_or("", RawValue::get);
        tools.key(&format!("{}\0{spec}", self.kind), || {
            let mut hash = Sha256::new();
            hash.update(self.kind.as_bytes());
            hash.update([0]);
            match serde_json::from_str::<serde_json::Value>(spec) {
                Ok(value) => hash.update(sorted(&value)),
                Err(_) => hash.update(spec),
            }
            hex::encode(hash.finalize().get(..16).unwrap_or_default())
        })
    }

    /// Layer of the assertion.
    pub fn layer(&self) -> Option<Layer> {
        Layer::of(&self.kind)
    }

    /// Compiles the assertion.
    pub fn compile(&self, tools: &Tools) -> Compiled {
        let Some(layer) = self.layer() else { return Compiled::Failed(self.unknown()) };
        let check = match layer {
            Layer::Schema => schema::compile(self.spec, tools),
            Layer::Constraint => constraint::compile(self.spec),
            Layer::Trace => sequence::compile(self.spec, tools),
            Layer::Content => content::compile(self.spec, tools),
            Layer::Tree => tree::compile(self.spec),
            Layer::Embedding => {
                return embedding::compile(self.spec).map_or_else(Compiled::Failed, Compiled::Similarity);
            }
            Layer::Judge => {
                return judge::compile(self.spec).map_or_else(Compiled::Failed, Compiled::Judgement);
            }
            Layer::Plugin => return Compiled::Plugin,
        };
        check.map_or_else(Compiled::Failed, |fold| Compiled::Check(Check(fold)))
    }

    fn unknown(&self) -> Verdict {
        Verdict::error(format!("`{}` is not a type of assertion", self.kind))
            .evidence(Layer::KINDS.join(", "), self.kind.as_str())
            .suggest("check the assertion's type")
    }
}

/// A value as text with its members in the order of their names.
fn sorted(value: &serde_json::Value) -> String {
    use serde_json::Value;
    match value {
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(sorted).collect();
            format!("[{}]", items.join(","))
        }
        Value::Object(members) => {
            let mut members: Vec<(&String, &Value)> = members.iter().collect();
            members.sort_by_key(|(name, _)| *name);
            let members: Vec<String> = members
                .into_iter()
                .map(|(name, value)| format!("{}:{}", Value::String(name.clone()), sorted(value)))
                .collect();
            format!("{{{}}}", members.join(","))
        }
        plain => plain.to_string(),
    }
}

/// Evaluates one assertion that needs nothing but the trace.
pub fn evaluate(trace: &Trace<'_>, assertion: &Assertion<'_>, tools: &Tools) -> Verdict {
    match assertion.compile(tools) {
        Compiled::Check(mut check) => {
            for step in &trace.steps {
                check.step(step);
            }
            check.verdict(&trace.head)
        }
        Compiled::Failed(verdict) => verdict,
        Compiled::Similarity(_) | Compiled::Judgement(_) => Verdict::error("this assertion needs a model"),
        Compiled::Plugin => Verdict::error("this assertion needs the result of a plugin"),
    }
}

/// The members that the spec of an assertion of this type may have.
pub fn known_members(layer: Layer) -> &'static [&'static str] {
    match layer {
        Layer::Schema => schema::MEMBERS,
        Layer::Constraint => constraint::MEMBERS,
        Layer::Trace => sequence::MEMBERS,
        Layer::Content => content::MEMBERS,
        Layer::Embedding => embedding::MEMBERS,
        Layer::Judge => judge::MEMBERS,
        Layer::Tree => tree::MEMBERS,
        Layer::Plugin => &["plugin_id", "config", "soft", "threshold"],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verdict::Status;

    #[test]
    fn keys_do_not_depend_on_who_wrote_the_spec() {
        let tools = Tools::default();
        let key = |kind: &str, spec: &str| Assertion::new("any", kind, spec).unwrap().key(&tools);
        let usual = key("content", r#"{"check":"contains","value":"\u00f6"}"#);
        assert_eq!(usual, key("content", "{ \"value\": \"ö\", \"check\": \"contains\" }"));
        assert_ne!(usual, key("trace", r#"{"check":"contains","value":"ö"}"#));
        assert_ne!(usual, key("content", r#"{"check":"contains","value":"o"}"#));
    }

    #[test]
    fn what_is_not_known_is_an_error_not_a_pass() {
        let trace = Trace::parse(r#"{"trace_id":"t","output":{"message":"m"}}"#).unwrap();
        for (kind, spec) in [
            ("contnt", "{}"),
            ("content", "[]"),
            ("content", "5"),
            ("schema", "null"),
            ("trace_tree", "\"x\""),
        ] {
            let verdict = evaluate(&trace, &Assertion::new("a", kind, spec).unwrap(), &Tools::default());
            assert_eq!((verdict.status, verdict.score), (Status::Error, 0.0), "{kind} {spec}");
        }
        let without = Assertion { kind: Text("content".into()), ..Assertion::default() };
        assert_eq!(evaluate(&trace, &without, &Tools::default()).status, Status::Error);
    }
}
