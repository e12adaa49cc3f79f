//! Layer 1, `schema`: JSON Schema validation of a value in the trace.

use std::sync::Arc;

use jsonschema::error::ValidationErrorKind;
use jsonschema::paths::LocationSegment;
use jsonschema::{ValidationError, Validator};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::check::Fold;
use crate::each::EachValue;
use crate::raw;
use crate::spec;
use crate::target::{Resolved, Target};
use crate::text::Text;
use crate::tools::Tools;
use crate::trace::{Head, Step};
use crate::verdict::{Verdict, cut};

mod build;
mod graph;
mod measure;
mod patterns;

use measure::Shape;

/// The members that a spec may have.
pub(crate) const MEMBERS: &[&str] = &["target", "schema", "soft", "threshold"];

/// Compiles a schema spec.
pub(crate) fn compile(spec: Option<&RawValue>, tools: &Tools) -> Result<Box<dyn Fold>, Verdict> {
    let written: Written<'_> = spec::read(spec)?;
    let target = written.target.ok_or_else(|| spec::missing("target", "a schema assertion"))?;
    let schema = written.schema.ok_or_else(|| spec::missing("schema", "a schema assertion"))?;
    let target = Target::parse(&target)?.or_whole_output(demands_members(schema));
    let (validator, shape) = build::validator(schema.get(), tools)?;
    Ok(Box::new(Schema {
        each: EachValue::of(&target, false),
        target,
        check: ShapeCheck { validator, shape },
    }))
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

/// Whether the schema names members that must be there. Any other schema can hold for an output that has nothing to do with it.
fn demands_members(schema: &RawValue) -> bool {
    raw::member(schema.get(), "required")
        .and_then(|required| raw::length(required.get()).filter(|_| required.get().starts_with('[')))
        .is_some_and(|names| names > 0)
}

struct Schema {
    target: Target,
    check: ShapeCheck,
    /// The fold over all values of the target, if it leads into every step.
    each: Option<EachValue>,
}

struct ShapeCheck {
    validator: Arc<Validator>,
    shape: Shape,
}

impl Fold for Schema {
    fn step(&mut self, step: &Step<'_>) {
        let Schema { target, check, each } = self;
        match each {
            Some(each) => each.step(target, step, &mut |step, path| {
                let resolved = target.in_step(path, step)?;
                Some(resolved.and_then(|resolved| check.judge(path, &resolved)))
            }),
            None => target.step(step),
        }
    }

    fn verdict(&self, head: &Head<'_>) -> Verdict {
        if let Some(each) = &self.each {
            return each.verdict(&self.target);
        }
        let path = self.target.path();
        let resolved = match self.target.resolve(head) {
            Ok(resolved) => resolved,
            Err(verdict) => return verdict,
        };
        let judged = self.check.judge(path, &resolved);
        let mut verdict =
            judged.map_or_else(|failure| failure, |held| Verdict::pass(format!("`{path}` {held}")));
        verdict.explanation.push_str(self.target.remark(head));
        verdict
    }
}

impl ShapeCheck {
    /// The finding on one value, worded to follow its path; or the failure.
    fn judge(&self, path: &str, resolved: &Resolved<'_>) -> Result<String, Verdict> {
        let Resolved::Value(text) = resolved else {
            return Err(failed(path, "there is nothing to look at", "a value", "nothing"));
        };
        let value: Value = serde_json::from_str(text).map_err(|error| {
            Verdict::error(format!("`{path}` cannot be read: {}", build::parse_problem(&error)))
                .at(path)
                .suggest("send a smaller, flatter value")
        })?;
        let size = measure::Size::of(&value);
        self.shape.allows(size).map_err(|why| {
            Verdict::error(format!("`{path}` cannot be checked: {why}"))
                .at(path)
                .suggest("use a schema with fewer references, or a flatter value")
        })?;
        if self.validator.is_valid(&value) {
            return Ok("has the shape that the schema asks for".to_owned());
        }
        let violations = self.violations(path, &value, size);
        let Some(first) = violations.first() else {
            return Err(failed(
                path,
                "it does not satisfy the schema",
                "a value that satisfies the schema",
                &clipped(text),
            ));
        };
        let said: Vec<String> =
            violations.iter().map(|violation| format!("`{}`: {}", violation.path, violation.said)).collect();
        Err(failed(path, &said.join("; "), &first.expected, &first.actual).at(first.path.as_str()))
    }

    /// The first few violations. Collecting them can cost far more than finding that there are some.
    fn violations(&self, path: &str, value: &Value, size: measure::Size) -> Vec<Violation> {
        const SHOWN: usize = 3;
        const LOOKED_AT: usize = 50;
        if !self.shape.allows_details(size) {
            return Vec::new();
        }
        let read = |error: ValidationError<'_>| Violation::read(path, &error);
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
}

/// A failed schema is always hard.
fn failed(path: &str, why: &str, expected: &str, actual: &str) -> Verdict {
    Verdict::fail(false, format!("`{path}` does not have the shape that the schema asks for: {why}"))
        .at(path)
        .evidence(expected, actual)
        .suggest("have the agent answer in this shape, or change the schema")
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
