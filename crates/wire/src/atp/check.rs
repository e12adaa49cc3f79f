//! Typed access to the members of an object, with a finding for each that does not fit.

use proctor_core::json::Json;

use super::Strictness;
use super::findings::{Findings, ProblemKind, WarningKind};
use super::format;
use super::limits::MAX_TASK_ID;
use super::number::Number;
use super::path::Path;
use super::version::{Version, VersionProblem};

/// The authority of a rule about a member's type.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Basis {
    /// The document's schema: a violation is a problem in both modes.
    Schema,
    /// The document's text or the limits of runs: a violation is a problem in runs, and a warning in strict mode.
    Rule,
}

/// Collects the findings of one message.
pub(super) struct Checker {
    strictness: Strictness,
    pub(super) findings: Findings,
    /// Whether a known member is `null`, so that normalisation has work to do.
    pub(super) has_nulls: bool,
}

/// The members of one object.
pub(super) struct Fields<'c, 'j, 'p> {
    pub(super) checker: &'c mut Checker,
    pub(super) members: &'j [(String, Json)],
    pub(super) path: &'p Path<'p>,
    pub(super) basis: Basis,
}

impl Checker {
    pub(super) fn new(strictness: Strictness) -> Checker {
        Checker { strictness, findings: Findings::default(), has_nulls: false }
    }

    pub(super) fn problem(&mut self, basis: Basis, path: &Path<'_>, kind: ProblemKind) {
        if basis == Basis::Rule && self.strictness == Strictness::Strict {
            self.findings.warnings.add(path, WarningKind::RefusedInRuns, Some(kind));
        } else {
            self.findings.problems.add(path, kind);
        }
    }

    /// Reports what released agents send: a warning in runs, a problem in strict mode.
    pub(super) fn tolerate(&mut self, path: &Path<'_>, warning: WarningKind, problem: ProblemKind) {
        match self.strictness {
            Strictness::Lenient => self.warn(path, warning),
            Strictness::Strict => self.findings.problems.add(path, problem),
        }
    }

    pub(super) fn warn(&mut self, path: &Path<'_>, warning: WarningKind) {
        self.findings.warnings.add(path, warning, None);
    }

    /// The members of an object; a problem if the value is something else.
    pub(super) fn object<'c, 'j, 'p>(
        &'c mut self,
        basis: Basis,
        value: &'j Json,
        path: &'p Path<'p>,
    ) -> Option<Fields<'c, 'j, 'p>> {
        match value {
            Json::Object(members) => Some(Fields { checker: self, members, path, basis }),
            other => {
                self.problem(basis, path, wrong_type("an object", other));
                None
            }
        }
    }
}

impl<'j> Fields<'_, 'j, '_> {
    /// A member that may be absent. `null` counts as absent, with a warning.
    pub(super) fn optional(&mut self, name: &str) -> Option<&'j Json> {
        match self.find(name)? {
            Json::Null => {
                self.checker.has_nulls = true;
                let path = self.path.member(name);
                match self.basis {
                    Basis::Schema => {
                        let problem = ProblemKind::WrongType { expected: "no null", found: "null" };
                        self.checker.tolerate(&path, WarningKind::NullForAbsent, problem);
                    }
                    Basis::Rule => self.checker.warn(&path, WarningKind::NullForAbsent),
                }
                None
            }
            value => Some(value),
        }
    }

    /// A member that may be absent, and that the document itself writes as `null`.
    pub(super) fn nullable(&mut self, name: &str) -> Option<&'j Json> {
        let value = self.find(name)?;
        self.checker.has_nulls |= value.is_null();
        (!value.is_null()).then_some(value)
    }

    /// A member that must be there.
    pub(super) fn required(&mut self, name: &str) -> Option<&'j Json> {
        match self.find(name) {
            Some(Json::Null) | None => {
                self.problem_at(name, self.basis, ProblemKind::Missing);
                None
            }
            found => found,
        }
    }

    /// A member that the schema requires and released agents leave out.
    pub(super) fn expected(&mut self, name: &str, warning: WarningKind) -> Option<&'j Json> {
        let found = self.find(name);
        match found {
            Some(Json::Null) | None => {
                self.checker.has_nulls |= found.is_some();
                self.checker.tolerate(&self.path.member(name), warning, ProblemKind::Missing);
                None
            }
            found => found,
        }
    }

    /// The `version` of a message; that of this implementation if it is absent or refused.
    pub(super) fn version(&mut self) -> Version {
        let Some(value) = self.expected("version", WarningKind::NoVersion) else { return Version::default() };
        let problem = match value {
            Json::String(text) => match Version::read(text) {
                Ok(version) => return version,
                Err(VersionProblem::Malformed) => ProblemKind::MalformedVersion(shortened(text)),
                Err(VersionProblem::OtherMajor) => ProblemKind::OtherMajor(shortened(text)),
            },
            other => wrong_type("a string", other),
        };
        // The document refuses other major versions although two of its schemas accept any text.
        self.problem_at("version", Basis::Schema, problem);
        Version::default()
    }

    pub(super) fn task_id(&mut self) {
        let Some(value) = self.required("task_id") else { return };
        let Some(text) = self.as_text("task_id", value) else { return };
        if format::is_uuid(text) {
            return;
        }
        let is_plain = (1..=MAX_TASK_ID).contains(&text.len())
            && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'));
        if is_plain {
            self.checker.tolerate(
                &self.path.member("task_id"),
                WarningKind::TaskIdNotUuid,
                ProblemKind::NotUuid,
            );
        } else {
            self.problem_at("task_id", Basis::Schema, ProblemKind::MalformedTaskId);
        }
    }

    /// An optional text of at most so many characters.
    pub(super) fn text(&mut self, name: &str, most: usize) -> Option<&'j str> {
        let value = self.optional(name)?;
        self.bounded_text(name, value, most)
    }

    /// A text that must be there, of one to so many characters.
    pub(super) fn required_text(&mut self, name: &str, most: usize) -> Option<&'j str> {
        let value = self.required(name)?;
        let text = self.bounded_text(name, value, most)?;
        if text.is_empty() {
            self.problem_at(name, Basis::Rule, ProblemKind::Empty);
        }
        Some(text)
    }

    pub(super) fn bounded_text(&mut self, name: &str, value: &'j Json, most: usize) -> Option<&'j str> {
        let text = self.as_text(name, value)?;
        if is_longer(text, most) {
            self.problem_at(name, Basis::Rule, ProblemKind::TooLong { most });
        }
        Some(text)
    }

    pub(super) fn as_text(&mut self, name: &str, value: &'j Json) -> Option<&'j str> {
        if value.as_str().is_none() {
            self.problem_at(name, self.basis, wrong_type("a string", value));
        }
        value.as_str()
    }

    pub(super) fn boolean(&mut self, name: &str) {
        if let Some(value) = self.optional(name)
            && value.as_bool().is_none()
        {
            self.problem_at(name, self.basis, wrong_type("a boolean", value));
        }
    }

    /// An optional integer from `least` to `most`, by the schema.
    pub(super) fn integer(&mut self, name: &str, least: u64, most: u64) {
        let Some(number) = self.whole_number(name) else { return };
        if !number.as_u64().is_some_and(|value| (least..=most).contains(&value)) {
            self.problem_at(name, self.basis, ProblemKind::OutOfRange { least, most });
        }
    }

    /// An optional integer that runs want from zero to the largest of 64 bits.
    pub(super) fn count(&mut self, name: &str) {
        let Some(number) = self.whole_number(name) else { return };
        if number.is_negative() {
            self.problem_at(name, Basis::Rule, ProblemKind::Negative);
        } else if number.as_u64().is_none() {
            self.problem_at(name, Basis::Rule, ProblemKind::NumberTooLarge);
        }
    }

    /// An optional number that must not be negative, by the given authority.
    pub(super) fn amount(&mut self, name: &str, sign: Basis) -> Option<Number<'j>> {
        let value = self.optional(name)?;
        let number = Number::of(value);
        match number {
            None => self.problem_at(name, self.basis, wrong_type("a number", value)),
            Some(number) if number.is_negative() => self.problem_at(name, sign, ProblemKind::Negative),
            Some(number) if number.as_f64().is_infinite() => {
                self.problem_at(name, Basis::Rule, ProblemKind::NumberTooLarge);
            }
            Some(_) => {}
        }
        number
    }

    /// An optional object, whose members are returned.
    pub(super) fn object(&mut self, name: &str) -> Option<&'j [(String, Json)]> {
        let value = self.optional(name)?;
        if value.as_object().is_none() {
            self.problem_at(name, self.basis, wrong_type("an object", value));
        }
        value.as_object()
    }

    /// An optional list.
    pub(super) fn array(&mut self, name: &str) -> Option<&'j [Json]> {
        let value = self.optional(name)?;
        self.as_array(name, value)
    }

    pub(super) fn as_array(&mut self, name: &str, value: &'j Json) -> Option<&'j [Json]> {
        if value.as_array().is_none() {
            self.problem_at(name, self.basis, wrong_type("an array", value));
        }
        value.as_array()
    }

    pub(super) fn at_most(&mut self, name: &str, found: usize, most: usize) {
        if found > most {
            self.problem_at(name, Basis::Rule, ProblemKind::TooMany { found, most });
        }
    }

    pub(super) fn problem_at(&mut self, name: &str, basis: Basis, kind: ProblemKind) {
        self.checker.problem(basis, &self.path.member(name), kind);
    }

    pub(super) fn find(&self, name: &str) -> Option<&'j Json> {
        self.members.iter().find(|(key, _)| key == name).map(|(_, value)| value)
    }

    fn whole_number(&mut self, name: &str) -> Option<Number<'j>> {
        let value = self.optional(name)?;
        let number = Number::of(value).filter(|number| number.is_integer());
        if number.is_none() {
            let found = if let Json::Number(_) = value { "a fraction" } else { value.type_name() };
            self.problem_at(name, self.basis, ProblemKind::WrongType { expected: "an integer", found });
        }
        number
    }
}

pub(super) fn wrong_type(expected: &'static str, found: &Json) -> ProblemKind {
    ProblemKind::WrongType { expected, found: found.type_name() }
}

/// Whether a text has more characters than `most`. Most texts have fewer bytes, which is known without reading them.
pub(super) fn is_longer(text: &str, most: usize) -> bool {
    text.len() > most && text.chars().nth(most).is_some()
}

/// The beginning of a text, for findings: it is the sender's, and could be megabytes long.
pub(super) fn shortened(text: &str) -> String {
    text.chars().take(80).collect()
}
