//! Evaluation of assertions on the evidence of one run.
//!
//! Evaluation has two phases, because it does no I/O. [`needs`] names the commands and prompts that an assertion depends on; the caller runs
//! them. [`evaluate`] folds their results. What could not be evaluated is [`Status::Error`], never a pass.
//!
//! ```
//! use proctor_core::json::Json;
//! use proctor_runner::checks::{Assertion, Check, Evidence, NoFiles, Status, evaluate};
//!
//! let response = Json::parse(br#"{"artifacts": [{"type": "file", "path": "a.txt", "content": "7"}]}"#).unwrap();
//! let evidence = Evidence { response: &response, events: &[], files: &NoFiles, has_tools: false };
//! let exists = Check::ArtifactExists { path: "a.txt".to_owned() };
//! let assertion = Assertion { name: "artifact_exists", check: exists, critical: true, optional: false };
//! assert_eq!(evaluate(&assertion, &evidence, &[]).status, Status::Passed);
//! ```

mod artifact;
mod behavior;
mod command;
mod composite;
mod counts;
mod evidence;
mod files;
mod filesystem;
mod judge;
mod pattern;
mod result;
mod security;
mod value;

pub(crate) use artifact::schema_spec;
pub use behavior::{Behavior, CallPattern, Matcher, Order, Rule};
pub(crate) use command::check_count_pattern;
pub use command::{CommandCheck, CommandKind, CommandNeed, CommandOutcome, Linter};
pub use composite::{Comparator, Condition};
pub use evidence::{EventView, Evidence};
pub use files::{EntryKind, FileEntry, Files, FilesError, NoFiles, PathError, WorkspacePath};
pub use filesystem::{CountOperator, FileCheck};
pub use judge::{CRITERIA, JudgeNeed, JudgeReply, LlmEval, criterion};
pub use pattern::{PatternError, TextPattern};
pub use result::{AssertionResult, CheckError, CheckResult, Status};
pub use security::{Checker, Language, SecurityScan, Severity};
pub use value::{JsonPath, JsonPathError};

use proctor_core::json::Json;

/// An assertion of a test.
#[derive(Debug, Clone, PartialEq)]
pub struct Assertion {
    /// The assertion's type.
    pub name: &'static str,
    /// The compiled form.
    pub check: Check,
    /// Whether a failure sets the score to 0.
    pub critical: bool,
    /// Whether an assertion that cannot be evaluated is left out instead of counted as an error.
    pub optional: bool,
}

/// Kinds of checks.
#[derive(Debug, Clone, PartialEq)]
pub enum Check {
    /// An artifact of this path or name, or a file of this path in the workspace.
    ArtifactExists {
        /// Path or name.
        path: String,
    },
    /// An artifact whose text matches.
    Contains {
        /// The pattern.
        pattern: TextPattern,
        /// Path or name of the artifact; any if absent.
        path: Option<String>,
    },
    /// Structured data that satisfies a JSON Schema.
    Schema {
        /// The schema.
        schema: Json,
        /// Path or name of the artifact; the first with data if absent.
        path: Option<String>,
    },
    /// Headings or phrases that a text must have.
    Sections {
        /// The sections.
        sections: Vec<String>,
        /// Path or name of the artifact; the first with text if absent.
        path: Option<String>,
    },
    /// Rules on tool calls and errors.
    Behavior(Behavior),
    /// A score given by a model.
    LlmEval(LlmEval),
    /// The result of a command.
    Command(CommandCheck),
    /// A search for dangerous content.
    Security(SecurityScan),
    /// A check of the workspace.
    File(FileCheck),
    /// A combination of other checks.
    Composite(Box<Condition>),
}

impl Check {
    /// Whether a model judges a part of it.
    pub fn needs_judge(&self) -> bool {
        composite::leaves(self).iter().any(|leaf| matches!(leaf, Check::LlmEval(_)))
    }
}

/// A command or judgement that a check depends on.
#[derive(Debug, Clone, PartialEq)]
pub struct Need {
    /// Number of the leaf that asks, in the order of the assertion's leaves; 0 outside of composites.
    pub leaf: usize,
    /// The request.
    pub request: Request,
}

/// Kinds of needs.
#[derive(Debug, Clone, PartialEq)]
pub enum Request {
    /// Run a command in a copy of the workspace.
    Command(CommandNeed),
    /// Ask a judge.
    Judge(JudgeNeed),
}

/// The result of a [`Need`].
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    /// [`Need::leaf`] of the request.
    pub leaf: usize,
    /// The result.
    pub reply: Reply,
}

/// Kinds of answers.
#[derive(Debug, Clone, PartialEq)]
pub enum Reply {
    /// The end of a command.
    Command(CommandOutcome),
    /// One reply for each sample.
    Judge(Vec<JudgeReply>),
}

/// The commands and judgements that a check depends on. The fence delimits the agent's text in prompts and must be unguessable.
pub fn needs(check: &Check, evidence: &Evidence<'_>, fence: &str) -> Vec<Need> {
    let mut found = Vec::new();
    for (leaf, check) in composite::leaves(check).into_iter().enumerate() {
        let request = match check {
            Check::Command(command) => Some(Request::Command(command.need())),
            Check::LlmEval(eval) => eval.need(evidence, fence).map(Request::Judge),
            _ => None,
        };
        found.extend(request.map(|request| Need { leaf, request }));
    }
    found
}

/// Evaluates an assertion. An answer that is missing makes it an error.
pub fn evaluate(assertion: &Assertion, evidence: &Evidence<'_>, answers: &[Answer]) -> AssertionResult {
    let outcome = match &assertion.check {
        Check::Composite(condition) => composite::evaluate(condition, evidence, answers),
        check => leaf(check, evidence, answers, 0),
    };
    AssertionResult::new(assertion, outcome)
}

/// Evaluates one check that is no composite.
fn leaf(
    check: &Check,
    evidence: &Evidence<'_>,
    answers: &[Answer],
    number: usize,
) -> Result<Vec<CheckResult>, CheckError> {
    let reply = || answers.iter().find(|answer| answer.leaf == number).map(|answer| &answer.reply);
    match check {
        Check::ArtifactExists { path } => artifact::exists(path, evidence),
        Check::Contains { pattern, path } => artifact::contains(pattern, path.as_deref(), evidence),
        Check::Schema { schema, path } => artifact::schema(schema, path.as_deref(), evidence),
        Check::Sections { sections, path } => artifact::sections(sections, path.as_deref(), evidence),
        Check::Behavior(behavior) => Ok(behavior.evaluate(evidence)),
        Check::Security(scan) => scan.evaluate(evidence),
        Check::File(file) => file.evaluate(evidence),
        Check::Command(command) => match reply() {
            Some(Reply::Command(outcome)) => command.fold(outcome),
            _ => Err(CheckError::NotAnswered("the command was not run")),
        },
        Check::LlmEval(eval) => match reply() {
            Some(Reply::Judge(replies)) => eval.fold(replies),
            _ => eval.without_reply(evidence),
        },
        Check::Composite(condition) => composite::evaluate(condition, evidence, answers),
    }
}

#[cfg(test)]
mod tests;
