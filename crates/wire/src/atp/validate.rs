//! Validation of files with messages: the verdict of each message, for people and for programs.
//!
//! ```
//! use proctor_wire::atp::Strictness;
//! use proctor_wire::atp::validate::{Kind, validate};
//!
//! let text = br#"{"task_id": "t-1", "status": "completed", "artifacts": [], "metrics": {}}"#;
//! let report = validate(Kind::Response, text, Strictness::Lenient);
//! assert!(report.is_valid());
//! assert_eq!(report.lines()[0], "warning: $.version: version is absent, 1.0 is assumed");
//! assert!(!validate(Kind::Response, text, Strictness::Strict).is_valid());
//! ```

use proctor_core::json::Json;

use super::findings::{Findings, Problem};
use super::limits::{MAX_EVENT_BYTES, MAX_EVENTS};
use super::read::{ReadError, parse_json};
use super::{Event, Request, Response, Strictness};

/// Bytes of a file: those that all events of one conversation may have.
pub const MAX_FILE: usize = MAX_EVENT_BYTES;

/// Messages with findings that a report lists; the others are counted. Bounds memory where the limits of single messages do not.
const MAX_REPORTED: usize = 1_000;

/// A kind of message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A request.
    Request,
    /// A response.
    Response,
    /// An event. A file may hold several, one a line.
    Event,
}

/// The verdict on all messages of a file.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Report {
    /// Number of messages.
    pub messages: usize,
    /// Number of valid messages that have warnings.
    pub with_warnings: usize,
    /// Number of invalid messages.
    pub invalid: usize,
    /// The first messages that have a finding.
    pub reported: Vec<Reported>,
    /// Whether there are more events than a conversation may have; they were not checked.
    pub is_cut: bool,
}

/// A message that has a finding.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reported {
    /// Line of the message, from 1, if the file has one message a line.
    pub line: Option<usize>,
    /// The reason why nothing of the message could be checked.
    pub unreadable: Option<ReadError>,
    /// Problems and warnings.
    pub findings: Findings,
}

/// Validates the text of a file: one message, or several events, one a line.
pub fn validate(kind: Kind, text: &[u8], strictness: Strictness) -> Report {
    let mut report = Report::default();
    if kind != Kind::Event || !is_lines(text) {
        report.add(None, check(kind, text, strictness));
        return report;
    }
    for (number, line) in (1..).zip(text.split(|byte| *byte == b'\n')) {
        if line.trim_ascii().is_empty() {
            continue;
        }
        // A flood of lines ends with a reason, as in a run.
        if report.messages == MAX_EVENTS {
            report.is_cut = true;
            break;
        }
        report.add(Some(number), check(kind, line, strictness));
    }
    report
}

impl Report {
    /// Whether every message is valid, with or without warnings.
    pub fn is_valid(&self) -> bool {
        self.invalid == 0 && !self.is_cut
    }

    /// The verdict in words.
    pub fn verdict(&self) -> String {
        let valid = self.messages - self.with_warnings - self.invalid;
        match (self.messages, self.with_warnings, self.invalid) {
            (1, 0, 0) => "valid".to_owned(),
            (1, _, 0) => "valid with warnings".to_owned(),
            (1, ..) => "invalid".to_owned(),
            (all, warned, invalid) => {
                format!("{all} events: {valid} valid, {warned} valid with warnings, {invalid} invalid")
            }
        }
    }

    /// One line for each finding, with its JSON path.
    pub fn lines(&self) -> Vec<String> {
        let mut lines = Vec::new();
        for reported in &self.reported {
            let at = reported.line.map(|line| format!("line {line}: ")).unwrap_or_default();
            let Findings { problems, warnings } = &reported.findings;
            lines.extend(reported.unreadable.iter().map(|error| format!("{at}invalid: $: {error}")));
            lines.extend(problems.listed().iter().map(|problem| format!("{at}invalid: {problem}")));
            lines.extend(warnings.listed().iter().map(|warning| format!("{at}warning: {warning}")));
            let left = (problems.total() - problems.listed().len()) as u64
                + (warnings.total() - warnings.listed().len() as u64);
            if left > 0 {
                lines.push(format!("{at}and {left} more"));
            }
        }
        let left = (self.with_warnings + self.invalid).saturating_sub(self.reported.len());
        if left > 0 {
            lines.push(format!("and {left} more messages with findings"));
        }
        if self.is_cut {
            lines.push(format!("invalid: more than {MAX_EVENTS} events; the others were not checked"));
        }
        lines
    }

    /// The report as an object.
    pub fn to_json(&self) -> Json {
        let (mut problems, mut warnings) = (Vec::new(), Vec::new());
        for reported in &self.reported {
            let unreadable =
                reported.unreadable.iter().map(|error| finding(reported, "$", &error.to_string()));
            problems.extend(unreadable);
            let listed = reported.findings.problems.listed().iter();
            problems.extend(listed.map(|Problem { path, kind }| finding(reported, path, &kind.to_string())));
            let listed = reported.findings.warnings.listed().iter();
            warnings.extend(listed.map(|warning| {
                let text = match &warning.problem {
                    Some(problem) => format!("{}: {problem}", warning.kind),
                    None => warning.kind.to_string(),
                };
                finding(reported, &warning.path, &text).with("kind", warning.kind.name())
            }));
        }
        Json::object()
            .with("valid", self.is_valid())
            .with("messages", self.messages)
            .with("valid_with_warnings", self.with_warnings)
            .with("invalid", self.invalid)
            .with("problems", problems)
            .with("warnings", warnings)
    }

    fn add(&mut self, line: Option<usize>, checked: Result<Findings, ReadError>) {
        self.messages += 1;
        let (unreadable, findings) = match checked {
            Ok(findings) if findings == Findings::default() => return,
            Ok(findings) => (None, findings),
            Err(ReadError::Invalid(findings)) => (None, *findings),
            Err(error) => (Some(error), Findings::default()),
        };
        if unreadable.is_some() || !findings.is_valid() {
            self.invalid += 1;
        } else {
            self.with_warnings += 1;
        }
        if self.reported.len() < MAX_REPORTED {
            self.reported.push(Reported { line, unreadable, findings });
        }
    }
}

fn finding(reported: &Reported, path: &str, text: &str) -> Json {
    let mut json = Json::object();
    if let Some(line) = reported.line {
        json.push("line", line);
    }
    json.with("path", path).with("text", text)
}

fn check(kind: Kind, text: &[u8], strictness: Strictness) -> Result<Findings, ReadError> {
    let json = parse_json(text)?;
    let warnings = match kind {
        Kind::Request => Request::read(json, strictness)?.warnings,
        Kind::Response => Response::read(json, strictness)?.warnings,
        Kind::Event => Event::read(json, strictness)?.warnings,
    };
    Ok(Findings { warnings, ..Findings::default() })
}

/// Whether a text is a list of objects, one a line: its first line is a whole object, and another line follows.
fn is_lines(text: &[u8]) -> bool {
    let mut lines = text.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii).filter(|line| !line.is_empty());
    let is_whole = |line: &[u8]| line.starts_with(b"{") && line.ends_with(b"}");
    lines.next().is_some_and(is_whole) && lines.next().is_some()
}

#[cfg(test)]
mod tests;
