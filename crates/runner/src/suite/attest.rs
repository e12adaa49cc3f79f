//! Attest assertions of a test: `attest`, in the format of assertion files.

use std::collections::HashMap;

use proctor_assert::{Assertion, Compiled, Layer, Verdict, known_members};
use proctor_core::printable::shown;
use proctor_core::quoted;
use proctor_yaml::{Node, Position, Value};

use super::keys::{self, Keys};
use super::model::AttestAssertion;
use super::object::{Object, list, nonblank};
use super::path::Path;
use super::problem::suggestion;
use super::reader::Reader;

/// Attest assertions of one test.
const MAX_ASSERTIONS: usize = 1_000;

const WRAPPED: Keys = Keys { what: "attest", names: &["assertions"], refused: &[], ignored: &[] };

/// A list of assertions, or a mapping with the list as `assertions`.
pub(super) fn read_attest(test: &Object<'_, '_>, reader: &mut Reader<'_>) -> Vec<AttestAssertion> {
    let Some(node) = test.get("attest") else { return Vec::new() };
    let path = test.path.key("attest");
    if !matches!(node.value, Value::Map(_)) {
        return read_list(node, &path, reader);
    }
    let Some(object) = Object::read(node, &path, &WRAPPED, reader) else { return Vec::new() };
    match object.required("assertions", reader) {
        Some(items) => read_list(items, &path.key("assertions"), reader),
        None => Vec::new(),
    }
}

fn read_list(node: &Node, path: &Path<'_>, reader: &mut Reader<'_>) -> Vec<AttestAssertion> {
    let Some(items) = list(node, path, reader) else { return Vec::new() };
    if items.len() > MAX_ASSERTIONS {
        reader.mistake(node.at, path, format!("at most {MAX_ASSERTIONS} assertions are allowed"), "");
        return Vec::new();
    }
    let mut ids: HashMap<String, Position> = HashMap::new();
    let mut assertions = Vec::new();
    for (index, item) in items.iter().enumerate() {
        let below = path.index(index);
        let Some(assertion) = read_one(item, &below, index, reader) else { continue };
        if let Some(first) = ids.insert(assertion.id.clone(), item.at) {
            let message = format!(
                "the id {} is that of another assertion, at line {}",
                quoted(&assertion.id),
                first.line
            );
            reader.mistake(item.at, &below, message, "give each assertion its own id");
        }
        assertions.push(assertion);
    }
    assertions
}

fn read_one(node: &Node, path: &Path<'_>, index: usize, reader: &mut Reader<'_>) -> Option<AttestAssertion> {
    let before = reader.problems.len();
    let object = Object::read(node, path, &keys::ATTEST, reader)?;
    let id = object.nonblank("assertion_id", reader).map_or_else(|| format!("a{}", index + 1), str::to_owned);
    let request_id = object.text("request_id", reader).unwrap_or_default().to_owned();
    let kind = object.required("type", reader).and_then(|node| {
        let below = path.key("type");
        let word = nonblank(node, &below, reader)?;
        let layer = Layer::of(word);
        if layer.is_none() {
            let message = format!("unknown type of Attest assertion {}", reader.shown(node));
            reader.mistake(node.at, &below, message, suggestion(word, &Layer::KINDS));
        }
        Some((word, layer?))
    });
    let spec = object.required("spec", reader)?;
    let below = path.key("spec");
    let (kind, layer) = kind?;
    let object = Object::open(spec, &below, "the spec", reader)?;
    for (key, _) in object.entries() {
        let known = known_members(layer);
        if !known.contains(&key.name.as_str()) {
            let message = format!("unknown key {} in the spec of `{kind}`", quoted(&key.name));
            reader.mistake(key.at, &below, message, suggestion(&key.name, known));
        }
    }
    let assertion =
        AttestAssertion { id, kind: kind.to_owned(), spec: spec.to_json().to_string(), request_id };
    // What is misspelt would only be said again, as missing.
    if reader.problems.len() == before
        && let Some((message, advice)) = unusable(&assertion, reader)
    {
        if reader.has_variables(spec) {
            reader.mistake(spec.at, &below, "the spec cannot be used with these values of its variables", "");
        } else {
            reader.mistake(spec.at, &below, message, advice);
        }
    }
    Some(assertion)
}

/// Problem of the spec, and the remedy, if the assertion cannot be used.
fn unusable(assertion: &AttestAssertion, reader: &Reader<'_>) -> Option<(String, String)> {
    let compiled = match Assertion::new(&assertion.id, &assertion.kind, &assertion.spec) {
        Ok(assertion) => assertion.compile(&reader.tools),
        Err(error) => return Some((format!("the spec cannot be read: {error}"), String::new())),
    };
    match compiled {
        Compiled::Failed(verdict) => Some(explained(&verdict)),
        _ => None,
    }
}

fn explained(verdict: &Verdict) -> (String, String) {
    /// Longest text of a message.
    const SHOWN: usize = 400;
    let names: Vec<&str> = verdict.expected.split(", ").collect();
    let near = proctor_core::nearest(&verdict.actual, &names).filter(|_| !verdict.actual.is_empty());
    let advice = match near {
        Some(near) => format!("did you mean `{near}`?"),
        None => shown(&verdict.suggestion, SHOWN),
    };
    (shown(&verdict.explanation, SHOWN), advice)
}
