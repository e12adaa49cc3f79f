//! Case files: strict reading, with the line of every mistake.

use std::collections::BTreeSet;

use proctor_core::json::Json;
use proctor_yaml::{Limits, Node, Value};

const LIMITS: Limits =
    Limits { source_bytes: 1 << 20, depth: 60, nodes: 200_000, text_bytes: 8 << 20, errors: 20 };

/// Words that a protocol's case files may use.
pub struct Grammar {
    /// Keys of a file that hold for all its cases, and of a case that has its own.
    pub shared: &'static [&'static str],
    /// Keys of a step that say what is sent; a step has exactly one.
    pub actions: &'static [&'static str],
    /// Further keys of a step.
    pub options: &'static [&'static str],
    /// Keys of a step that say what must come back; a step has exactly one.
    pub expectations: &'static [Kind],
    /// Transports that may differ, under `on`.
    pub transports: &'static [&'static str],
}

/// Action that runs a command of the binary; it must succeed, and expects nothing else.
pub const COMMAND: &str = "run";

/// What comes back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Result,
    Error,
    NoReply,
    Refusal,
    Verdict,
}

impl Kind {
    fn key(self) -> &'static str {
        match self {
            Kind::Result => "result",
            Kind::Error => "error",
            Kind::NoReply => "no_reply",
            Kind::Refusal => "refusal",
            Kind::Verdict => "verdict",
        }
    }
}

/// What must come back, and the pattern that it must match.
#[derive(Debug, Clone)]
pub struct Expectation {
    pub kind: Kind,
    pub pattern: Json,
}

/// One message, and what must come back.
#[derive(Debug)]
pub struct Step {
    pub line: usize,
    pub action: &'static str,
    pub sent: Json,
    options: Json,
    expected: Option<Expectation>,
    differing: Vec<(String, Expectation)>,
    /// Values of the answer that later steps use: name and JSON pointer.
    pub keep: Vec<(String, String)>,
}

impl Step {
    pub fn option(&self, key: &str) -> Option<&Json> {
        self.options.get(key)
    }

    /// The expectation on this transport.
    pub fn expected(&self, transport: &str) -> Option<&Expectation> {
        let own = self.differing.iter().find(|(name, _)| name == transport).map(|(_, expected)| expected);
        own.or(self.expected.as_ref())
    }
}

/// A promise, and the messages that show it.
#[derive(Debug)]
pub struct Case {
    pub name: String,
    pub steps: Vec<Step>,
    shared: Json,
}

impl Case {
    /// A value of the case, or else of its file.
    pub fn shared(&self, key: &str) -> Option<&Json> {
        self.shared.get(key)
    }

    pub fn shared_text(&self, key: &str) -> &str {
        self.shared(key).and_then(Json::as_str).unwrap_or_default()
    }
}

/// A case file that cannot be run.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum CaseError {
    #[error("{0}")]
    Yaml(String),
    #[error("line {line}: unknown key `{key}`; known are {known}")]
    UnknownKey { line: usize, key: String, known: String },
    #[error("line {line}: `{key}` is missing")]
    Missing { line: usize, key: &'static str },
    #[error("line {line}: `{key}` must be {wanted}")]
    Type { line: usize, key: String, wanted: &'static str },
    #[error("line {line}: a step has exactly one of {known}, this one has {found}")]
    NotOne { line: usize, known: String, found: usize },
    #[error("line {line}: the name `{name}` is used twice")]
    SameName { line: usize, name: String },
    #[error("the file has no cases")]
    NoCases,
    #[error("line {line}: the case has no steps")]
    NoSteps { line: usize },
}

/// Reads the cases of a file.
pub fn read(text: &[u8], grammar: &Grammar) -> Result<Vec<Case>, CaseError> {
    let root = proctor_yaml::parse(text, &LIMITS).map_err(|errors| {
        CaseError::Yaml(errors.iter().map(ToString::to_string).collect::<Vec<String>>().join("; "))
    })?;
    let mut known = vec!["cases", "definitions"];
    known.extend(grammar.shared);
    check_keys(&root, &known)?;
    let cases = list(&root, "cases")?;
    if cases.is_empty() {
        return Err(CaseError::NoCases);
    }
    let mut names = BTreeSet::new();
    let mut read = Vec::new();
    for node in cases {
        let case = read_case(node, &root, grammar)?;
        if !names.insert(case.name.clone()) {
            return Err(CaseError::SameName { line: line(node), name: case.name });
        }
        read.push(case);
    }
    Ok(read)
}

fn read_case(node: &Node, file: &Node, grammar: &Grammar) -> Result<Case, CaseError> {
    let mut known = vec!["name", "steps"];
    known.extend(grammar.shared);
    check_keys(node, &known)?;
    let name = text(node, "name")?;
    let mut shared = Json::object();
    for &key in grammar.shared {
        if let Some((_, value)) = node.entry(key).or_else(|| file.entry(key)) {
            shared.push(key, value.to_json());
        }
    }
    let steps = list(node, "steps")?;
    if steps.is_empty() {
        return Err(CaseError::NoSteps { line: line(node) });
    }
    let steps = steps.iter().map(|step| read_step(step, grammar)).collect::<Result<_, _>>()?;
    Ok(Case { name, steps, shared })
}

fn read_step(node: &Node, grammar: &Grammar) -> Result<Step, CaseError> {
    let expectations: Vec<&str> = grammar.expectations.iter().map(|kind| kind.key()).collect();
    let known = [grammar.actions, grammar.options, expectations.as_slice(), &["keep", "on"]].concat();
    check_keys(node, &known)?;
    let present: Vec<&'static str> =
        grammar.actions.iter().copied().filter(|key| node.entry(key).is_some()).collect();
    let &[action] = present.as_slice() else {
        return Err(not_one(node, grammar.actions, present.len()));
    };
    let sent = node.entry(action).map(|(_, value)| value.to_json()).unwrap_or_default();
    let mut options = Json::object();
    for &key in grammar.options {
        if let Some((_, value)) = node.entry(key) {
            options.push(key, value.to_json());
        }
    }
    let expected = match expectation(node, grammar)? {
        None if action == COMMAND => None,
        None => return Err(not_one(node, &expectations, 0)),
        Some(_) if action == COMMAND => return Err(not_one(node, &[], 1)),
        expected => expected,
    };
    let mut differing = Vec::new();
    for (name, on) in map(node, "on")? {
        if !grammar.transports.contains(&name.as_str()) {
            return Err(unknown(on, &name, grammar.transports));
        }
        check_keys(on, &expectations)?;
        let own = expectation(on, grammar)?.ok_or_else(|| not_one(on, &expectations, 0))?;
        differing.push((name, own));
    }
    let mut keep = Vec::new();
    for (name, pointer) in map(node, "keep")? {
        let Value::Text(pointer) = &pointer.value else {
            return Err(wrong_type(pointer, &name, "a JSON pointer"));
        };
        keep.push((name, pointer.clone()));
    }
    Ok(Step { line: line(node), action, sent, options, expected, differing, keep })
}

fn expectation(node: &Node, grammar: &Grammar) -> Result<Option<Expectation>, CaseError> {
    let found: Vec<Expectation> = grammar
        .expectations
        .iter()
        .filter_map(|&kind| {
            let (_, value) = node.entry(kind.key())?;
            Some(Expectation { kind, pattern: value.to_json() })
        })
        .collect();
    match found.len() {
        0 | 1 => Ok(found.into_iter().next()),
        several => {
            let known: Vec<&str> = grammar.expectations.iter().map(|kind| kind.key()).collect();
            Err(not_one(node, &known, several))
        }
    }
}

fn check_keys(node: &Node, known: &[&str]) -> Result<(), CaseError> {
    let Value::Map(entries) = &node.value else { return Err(wrong_type(node, "this", "a mapping")) };
    match entries.iter().find(|(key, _)| !known.contains(&key.name.as_str())) {
        Some((key, value)) => Err(unknown(value, &key.name, known)),
        None => Ok(()),
    }
}

fn list<'a>(node: &'a Node, key: &'static str) -> Result<&'a [std::rc::Rc<Node>], CaseError> {
    let (_, value) = node.entry(key).ok_or(CaseError::Missing { line: line(node), key })?;
    let Value::List(items) = &value.value else { return Err(wrong_type(value, key, "a list")) };
    Ok(items)
}

fn map<'a>(node: &'a Node, key: &str) -> Result<Vec<(String, &'a Node)>, CaseError> {
    let Some((_, value)) = node.entry(key) else { return Ok(Vec::new()) };
    let Value::Map(entries) = &value.value else { return Err(wrong_type(value, key, "a mapping")) };
    Ok(entries.iter().map(|(key, value)| (key.name.clone(), &**value)).collect())
}

fn text(node: &Node, key: &'static str) -> Result<String, CaseError> {
    let (_, value) = node.entry(key).ok_or(CaseError::Missing { line: line(node), key })?;
    let Value::Text(text) = &value.value else { return Err(wrong_type(value, key, "a string")) };
    Ok(text.clone())
}

fn line(node: &Node) -> usize {
    node.at.line
}

fn unknown(node: &Node, key: &str, known: &[&str]) -> CaseError {
    CaseError::UnknownKey { line: line(node), key: key.to_owned(), known: known.join(", ") }
}

fn wrong_type(node: &Node, key: &str, wanted: &'static str) -> CaseError {
    CaseError::Type { line: line(node), key: key.to_owned(), wanted }
}

fn not_one(node: &Node, known: &[&str], found: usize) -> CaseError {
    CaseError::NotOne { line: line(node), known: known.join(", "), found }
}

#[cfg(test)]
mod tests;
