//! Layer 1, `schema`: JSON Schema validation of a value in the trace.

use std::sync::Arc;

use jsonschema::error::ValidationErrorKind;
use jsonschema::paths::LocationSegment;
use jsonschema::{ValidationError, Validator};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::check::Fold;
use crate::spec;
use crate::target::{Resolved, Target};
use crate::text::Text;
use crate::tools::Tools;
use crate::trace::{Head, Step};
use crate::verdict::{Verdict, cut};

mod build;
mod graph;
mod measure;

use measure::Shape;

/// The members that a spec may have.
pub(crate) const MEMBERS: &[&str] = &["target", "schema", "soft", "threshold"];

/// Compiles a schema spec.
pub(crate) fn compile(spec: Option<&RawValue>, tools: &Tools) -> Result<Box<dyn Fold>, Verdict> {
    let written: Written<'_> = spec::read(spec)?;
    let target = written.target.ok_or_else(|| spec::missing("target", "a schema assertion"))?;
    let schema = written.schema.ok_or_else(|| spec::missing("schema", "a schema assertion"))?;
    let target = Target::parse(&target)?;
    let (validator, shape) = build::validator(schema.get(), tools)?;
    Ok(Box::new(Schema { target, validator, shape }))
}

#[derive(Deserialize)]
struct Written<'a> {
    #[serde(borrow, default)]
    target: Option<Text<'a>>,
    #[serde(borrow, default, deserialize_with = "as_written")]
    schema: Option<&'a RawValue>,
}

/// Keeps `null` apart from an absent member: it is a schema, though not a good one.
fn as_written<'de: 'a, 'a, D: serde::Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<&'a RawValue>, D::Error> {
    <&'a RawValue>::deserialize(deserializer).map(Some)
}

struct Schema {
    target: Target,
    validator: Arc<Validator>,
    shape: Shape,
}

impl Fold for Schema {
    fn step(&mut self, step: &Step<'_>) {
        self.target.step(step);
    }

    fn verdict(&self, head: &Head<'_>) -> Verdict {
        match self.target.resolve(head) {
            Ok(Resolved::Value(value)) => {
                let mut verdict = self.judge(&value);
                verdict.explanation.push_str(self.target.remark(head));
                verdict
            }
            Ok(Resolved::Empty) => self.failed("there is nothing to look at", "a value", "nothing"),
            Err(verdict) => verdict,
        }
    }
}

impl Schema {
    fn judge(&self, text: &str) -> Verdict {
        let path = self.target.path();
        let value: Value = match serde_json::from_str(text) {
            Ok(value) => value,
            Err(error) => {
                return Verdict::error(format!("`{path}` cannot be read: {}", build::parse_problem(&error)))
                    .at(path)
                    .suggest("send a smaller, flatter value");
            }
        };
        let size = measure::Size::of(&value);
        if let Err(why) = self.shape.allows(size) {
            return Verdict::error(format!("`{path}` cannot be checked: {why}"))
                .at(path)
                .suggest("use a schema with fewer references, or a flatter value");
        }
        if self.validator.is_valid(&value) {
            return Verdict::pass(format!("`{path}` has the shape that the schema asks for"));
        }
        let violations = self.violations(&value, size);
        let Some(first) = violations.first() else {
            return self.failed(
                "it does not satisfy the schema",
                "a value that satisfies the schema",
                &clipped(text),
            );
        };
        let said: Vec<String> =
            violations.iter().map(|violation| format!("`{}`: {}", violation.path, violation.said)).collect();
        self.failed(&said.join("; "), &first.expected, &first.actual).at(first.path.as_str())
    }

    /// The first few violations. Collecting them can cost far more than finding that there are some.
    fn violations(&self, value: &Value, size: measure::Size) -> Vec<Violation> {
        const SHOWN: usize = 3;
        const LOOKED_AT: usize = 50;
        if !self.shape.allows_details(size) {
            return Vec::new();
        }
        let read = |error: ValidationError<'_>| Violation::read(self.target.path(), &error);
        if size.is_small() {
            // In the order of their places: that of the library depends on how its maps were built.
            let mut violations: Vec<Violation> =
                self.validator.iter_errors(value).take(LOOKED_AT).map(read).collect();
            violations.sort_by(|left, right| left.path.cmp(&right.path));
            violations.truncate(SHOWN);
            violations
        } else {
            self.validator.validate(value).err().map(read).into_iter().collect()
        }
    }

    /// A failed schema is always hard.
    fn failed(&self, why: &str, expected: &str, actual: &str) -> Verdict {
        let path = self.target.path();
        Verdict::fail(false, format!("`{path}` does not have the shape that the schema asks for: {why}"))
            .at(path)
            .evidence(expected, actual)
            .suggest("have the agent answer in this shape, or change the schema")
    }
}

struct Violation {
    path: String,
    said: String,
    expected: String,
    actual: String,
}

impl Violation {
    fn read(target: &str, error: &ValidationError<'_>) -> Violation {
        let mut path = target.to_owned();
        for segment in error.instance_path() {
            match segment {
                LocationSegment::Property(name) => {
                    path.push('.');
                    path.push_str(&name);
                }
                LocationSegment::Index(index) => path.push_str(&format!("[{index}]")),
            }
        }
        Violation {
            path: clipped(&path),
            said: clipped(&reason(error)),
            expected: format!(
                "a value that satisfies `{}` of the schema",
                clipped(error.schema_path().as_str())
            ),
            actual: clipped(&error.instance().to_string()),
        }
    }
}

/// The reason of a violation, without the value: a long value would displace the reason.
fn reason(error: &ValidationError<'_>) -> String {
    match error.kind() {
        ValidationErrorKind::PropertyNames { error } => format!("a member's name: {}", reason(error)),
        ValidationErrorKind::Constant { expected_value } => format!("it is not {expected_value}"),
        ValidationErrorKind::Not { schema } => format!("it is what `not` excludes: {schema}"),
        _ => error.masked_with("it").to_string(),
    }
}

/// Text truncated to the length of an explanation.
fn clipped(text: &str) -> String {
    cut(text, 160).into_owned()
}

#[cfg(test)]
mod tests;
