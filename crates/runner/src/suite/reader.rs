//! State of loading one suite: mistakes, warnings and caches.

use std::collections::{BTreeMap, HashSet};

use proctor_assert::Tools;
use proctor_core::json::Json;
use proctor_core::quoted;
use proctor_yaml::{Node, Position, Value};

use super::path::Path;
use super::problem::{MAX_PROBLEMS, Problem};
use super::{LoadOptions, PathKind, SecretFinding, TestSettings};
use crate::checks::{Assertion, TextPattern};
use crate::shares::Shares;

/// Lists and settings that tests have alike. A suite of thousands of tests has few different ones.
#[derive(Default)]
pub(super) struct SharedParts {
    pub(super) tags: Shares<[String]>,
    pub(super) assertions: Shares<[Assertion]>,
    pub(super) expected_artifacts: Shares<[Json]>,
    pub(super) settings: Shares<TestSettings>,
}

/// State of loading one suite.
pub(super) struct Reader<'o> {
    pub(super) problems: Vec<Problem>,
    pub(super) warnings: Vec<Problem>,
    /// Values in which variables were replaced, as they were written. A variable's value may be a secret and is never shown.
    pub(super) substituted: BTreeMap<Position, String>,
    /// Patterns that were found good.
    patterns: HashSet<String>,
    /// Compiled schemas and patterns of Attest assertions.
    pub(super) tools: Tools,
    /// Parts that tests have alike.
    pub(super) shared: SharedParts,
    scan: &'o dyn Fn(&str) -> Option<SecretFinding>,
    paths: &'o dyn Fn(&str) -> PathKind,
}

impl<'o> Reader<'o> {
    pub(super) fn new(options: &LoadOptions<'o>) -> Reader<'o> {
        Reader {
            problems: Vec::new(),
            warnings: Vec::new(),
            substituted: BTreeMap::new(),
            patterns: HashSet::new(),
            tools: Tools::default(),
            shared: SharedParts::default(),
            scan: options.scan,
            paths: options.paths,
        }
    }

    /// Whether another mistake would be dropped, so that composing its message is wasted work.
    pub(super) fn is_full(&self) -> bool {
        self.problems.len() >= MAX_PROBLEMS
    }

    pub(super) fn mistake(
        &mut self,
        at: Position,
        path: &Path<'_>,
        message: impl Into<String>,
        suggestion: impl Into<String>,
    ) {
        if !self.is_full() {
            let (path, message, suggestion) = (path.to_string(), message.into(), suggestion.into());
            self.problems.push(Problem { at, path, message, suggestion });
        }
    }

    pub(super) fn warn(
        &mut self,
        at: Position,
        path: &Path<'_>,
        message: impl Into<String>,
        suggestion: impl Into<String>,
    ) {
        if self.warnings.len() < MAX_PROBLEMS {
            let (path, message, suggestion) = (path.to_string(), message.into(), suggestion.into());
            self.warnings.push(Problem { at, path, message, suggestion });
        }
    }

    pub(super) fn wrong_type(&mut self, node: &Node, path: &Path<'_>, expected: &str) {
        use proctor_yaml::scalar::{Plain, resolve};
        let advice = match &node.value {
            _ if self.substituted.contains_key(&node.at) => "the value of a variable is always a string",
            Value::Bool(_) | Value::Number(_) if expected.starts_with("a string") => "put it in quotes",
            Value::Text(text) => match resolve(text) {
                Plain::Number if expected.contains("number") => "take off the quotes",
                Plain::Bool(_) if expected.starts_with("`true`") => "take off the quotes",
                _ => "",
            },
            _ => "",
        };
        self.mistake(node.at, path, format!("expected {expected}, found {}", node.type_name()), advice);
    }

    /// The value as it was written, in backticks.
    pub(super) fn shown(&self, node: &Node) -> String {
        match (self.substituted.get(&node.at), &node.value) {
            (Some(written), _) => quoted(written),
            (None, Value::Text(text) | Value::Number(text)) => quoted(text),
            (None, Value::Bool(value)) => quoted(&value.to_string()),
            (None, _) => node.type_name().to_owned(),
        }
    }

    /// Whether a variable was replaced in the value or below it. Recursion is bounded by the depth limit of the YAML parser.
    pub(super) fn has_variables(&self, node: &Node) -> bool {
        if self.substituted.is_empty() {
            return false;
        }
        match &node.value {
            Value::List(items) => items.iter().any(|item| self.has_variables(item)),
            Value::Map(entries) => entries.iter().any(|(_, value)| self.has_variables(value)),
            _ => self.substituted.contains_key(&node.at),
        }
    }

    /// A regular expression or substring that can be used.
    pub(super) fn pattern(
        &mut self,
        node: &Node,
        path: &Path<'_>,
        text: &str,
        regex: bool,
    ) -> Option<TextPattern> {
        let pattern = TextPattern { text: text.to_owned(), regex };
        if regex && !self.patterns.contains(text) {
            if let Err(error) = pattern.check() {
                let message = if self.substituted.contains_key(&node.at) {
                    format!("{} is not a regular expression that can be used", self.shown(node))
                } else {
                    error.to_string()
                };
                self.mistake(node.at, path, message, "");
                return None;
            }
            self.patterns.insert(text.to_owned());
        }
        Some(pattern)
    }

    /// Refuses a path of the suite that leads to nothing, or to a file where a folder is needed.
    pub(super) fn refuse_missing(&mut self, node: &Node, path: &Path<'_>, written: &str, is_folder: bool) {
        let what = if is_folder { "folder" } else { "file" };
        let message = match (self.paths)(written) {
            PathKind::Missing => format!("there is no {what} {}", self.shown(node)),
            PathKind::File if is_folder => format!("{} is a file, and a folder is needed", self.shown(node)),
            _ => return,
        };
        let advice = "relative paths start from the suite's folder, else from the working directory";
        self.mistake(node.at, path, message, advice);
    }

    /// Refuses a text that holds a secret.
    pub(super) fn refuse_secret(&mut self, node: &Node, path: &Path<'_>, text: &str) {
        let Some(finding) = (self.scan)(text) else { return };
        let at = if self.substituted.contains_key(&node.at) {
            node.at
        } else {
            let before = text.get(..finding.offset).unwrap_or_default();
            node.content.inside(text, before.chars().count())
        };
        let message = format!("the description holds what looks like a secret ({})", finding.kind);
        self.mistake(at, path, message, "give it to the agent as a variable, under `environment`");
    }
}
