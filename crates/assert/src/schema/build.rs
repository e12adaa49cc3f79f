//! Compilation of a schema to a validator.

use std::error::Error;
use std::sync::Arc;

use jsonschema::error::ValidationErrorKind;
use jsonschema::{Draft, PatternOptions, ReferencingError, Retrieve, Uri, ValidationError, Validator};
use serde_json::Value;

use super::graph::Graph;
use super::measure::Shape;
use super::{clipped, patterns, reason};
use crate::tools::Tools;
use crate::verdict::Verdict;

/// The most memory that one compiled pattern takes.
const PATTERN_MEMORY: usize = 10 * 1024 * 1024;

/// The most memory for matching one pattern quickly.
const MATCHER_MEMORY: usize = 2 * 1024 * 1024;

/// Compiles the validator of a schema, or finds the cached one, and measures what it may cost.
pub(super) fn validator(text: &str, tools: &Tools) -> Result<(Arc<Validator>, Shape), Verdict> {
    // References make the cost of a schema larger than its text; without any there is nothing to measure.
    let shape = if may_refer(text) { measured(text)? } else { Shape::default() };
    let validator = tools.schema(text, || {
        let (mut schema, draft) = read(text)?;
        if text.contains('\\') {
            patterns::give_ascii_classes(&mut schema);
        }
        jsonschema::options()
            .with_draft(draft)
            .with_retriever(NoExternalSchemas)
            .with_pattern_options(
                PatternOptions::regex().size_limit(PATTERN_MEMORY).dfa_size_limit(MATCHER_MEMORY),
            )
            .build(&schema)
            .map_err(|error| refused(&error))
    })?;
    Ok((validator, shape))
}

/// Whether a schema may have references: a name ends so, or is written with escapes.
fn may_refer(text: &str) -> bool {
    text.contains("ref\"") || text.contains("Ref\"") || text.contains("\\u")
}

fn measured(text: &str) -> Result<Shape, Verdict> {
    let (schema, draft) = read(text)?;
    let graph = Graph::read(&schema, draft).map_err(|error| outside(&error))?;
    Shape::of(&graph).map_err(|why| {
        Verdict::error(format!("the schema cannot be used: {why}"))
            .suggest("use fewer references between the parts of the schema")
    })
}

/// Reads a schema and says by which draft.
fn read(text: &str) -> Result<(Value, Draft), Verdict> {
    let mut schema: Value = serde_json::from_str(text)
        .map_err(|error| Verdict::error(format!("the schema cannot be read: {}", parse_problem(&error))))?;
    let Value::Object(members) = &mut schema else {
        return match schema {
            Value::Bool(_) => Ok((schema, Draft::Draft202012)),
            _ => Err(Verdict::error(format!("`{}` is not a schema", clipped(text)))
                .suggest("write the schema as an object, or as `true` or `false`")),
        };
    };
    let Some(said) = members.get_mut("$schema") else { return Ok((schema, Draft::Draft202012)) };
    let (draft, name) = said.as_str().and_then(known_draft).ok_or_else(|| {
        Verdict::error(format!("`$schema` names no draft that is known: {}", clipped(&said.to_string())))
            .suggest("use draft 4, 6, 7, 2019-09 or 2020-12, for example https://json-schema.org/draft/2020-12/schema")
    })?;
    *said = Value::String(name.to_owned());
    Ok((schema, draft))
}

/// The draft that `$schema` names, and its full name. People write it with and without `#`, with `http` and `https`, and leave
/// out the last part.
fn known_draft(said: &str) -> Option<(Draft, &'static str)> {
    let said = said.trim_end_matches('#').trim_end_matches('/');
    let rest = said.strip_prefix("https://").or_else(|| said.strip_prefix("http://"))?;
    let rest = rest.strip_prefix("json-schema.org/")?;
    Some(match rest.strip_suffix("/schema").unwrap_or(rest) {
        "schema" | "draft/2020-12" => (Draft::Draft202012, "https://json-schema.org/draft/2020-12/schema"),
        "draft/2019-09" => (Draft::Draft201909, "https://json-schema.org/draft/2019-09/schema"),
        "draft-07" => (Draft::Draft7, "http://json-schema.org/draft-07/schema#"),
        "draft-06" => (Draft::Draft6, "http://json-schema.org/draft-06/schema#"),
        "draft-04" => (Draft::Draft4, "http://json-schema.org/draft-04/schema#"),
        _ => return None,
    })
}

/// Message of a JSON syntax error, in our words where the parser's own would puzzle.
pub(super) fn parse_problem(error: &serde_json::Error) -> String {
    let said = error.to_string();
    if said.starts_with("recursion limit") {
        "it is nested more than 127 levels deep".to_owned()
    } else {
        said
    }
}

fn refused(error: &ValidationError<'_>) -> Verdict {
    match error.kind() {
        ValidationErrorKind::Referencing(error) => outside(error),
        _ => {
            let place = error.instance_path().as_str();
            let place = if place.is_empty() { "its top".to_owned() } else { format!("`{}`", clipped(place)) };
            Verdict::error(format!("the schema is not valid at {place}: {}", clipped(&reason(error))))
                .evidence("a valid schema", error.instance().to_string())
                .suggest("correct the schema; patterns may not use look-around or back-references")
        }
    }
}

fn outside(error: &ReferencingError) -> Verdict {
    let said = match error {
        ReferencingError::Unretrievable { uri, .. } => {
            format!("it refers to `{}`, which is not in it", clipped(uri))
        }
        other => format!("a reference leads nowhere: {}", clipped(&other.to_string())),
    };
    Verdict::error(format!("the schema cannot be used: {said}"))
        .suggest("put everything that is referred to into the schema's `$defs`; neither files nor the network are read")
}

/// A resolver that refuses every reference out of the schema: no files, no network.
#[derive(Clone, Copy)]
pub(super) struct NoExternalSchemas;

impl Retrieve for NoExternalSchemas {
    fn retrieve(&self, _uri: &Uri<String>) -> Result<Value, Box<dyn Error + Send + Sync>> {
        Err("neither files nor the network are read".into())
    }
}
