//! Properties that hold for any input, whatever it is. The error says which one was violated. Drivers with random inputs call these
//! functions, here and in the binary's tests.

use proctor_core::action::ActionKind;
use proctor_core::digest::Digest;
use proctor_core::id::{ApprovalId, SessionId};
use proctor_core::json::Json;
use proctor_core::session::Caller;
use proctor_core::time::Timestamp;
use proctor_facts::Facts;
use proctor_policy::condition::Condition;
use proctor_policy::document::read_document;
use proctor_policy::expression::Expression;
use proctor_policy::input::{FoundSecret, Input};
use proctor_policy::question::{Answer, AnswerSource, Question};
use proctor_policy::scan::{Finding, FindingKind, REDACTED_WHOLE, Scanner, redact};

/// A law that an input broke, in words for the person who reads the failure.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Violation(String);

impl std::fmt::Display for Violation {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl From<String> for Violation {
    fn from(text: String) -> Violation {
        Violation(text)
    }
}

impl From<&str> for Violation {
    fn from(text: &str) -> Violation {
        Violation(text.to_owned())
    }
}

/// A document is read, or refused with a reason.
pub(crate) fn document(data: &[u8]) -> Result<(), Violation> {
    match read_document("p", data) {
        Err(problems) if problems.is_empty() => Err("refused without a reason".into()),
        _ => Ok(()),
    }
}

/// An approval expression that is read evaluates, and its text reads back as itself.
pub(crate) fn expression(data: &[u8]) -> Result<(), Violation> {
    let text = String::from_utf8_lossy(data);
    let Ok(expression) = Expression::parse(&text) else { return Ok(()) };
    let _ = expression.requires_approval(&Facts::default(), &|_| None);
    if Expression::parse(&expression.to_string()).as_ref() == Ok(&expression) {
        Ok(())
    } else {
        Err(format!("`{expression}` does not read back").into())
    }
}

/// A condition that compiles evaluates, every time to the same.
pub(crate) fn condition(data: &[u8]) -> Result<(), Violation> {
    let text = String::from_utf8_lossy(data);
    if let Ok(condition) = Condition::compile(&text) {
        for input in inputs() {
            if condition.evaluate_alone(&input, &Yes) != condition.evaluate_alone(&input, &Yes) {
                return Err(format!("`{text}` is not deterministic").into());
            }
        }
    }
    Ok(())
}

/// Findings fit their text and are ordered; redaction removes them.
pub(crate) fn scan(data: &[u8]) -> Result<(), Violation> {
    let text = String::from_utf8_lossy(data);
    let scanner = Scanner::standard();
    let findings = scanner.scan(&text);
    check_findings(&text, &findings)?;

    let redacted = redact(&text, &findings);
    if findings.is_empty() && redacted != text {
        return Err("a text without findings was changed".into());
    }
    if !findings.is_empty() && redacted == REDACTED_WHOLE && text != REDACTED_WHOLE {
        return Err("a finding of the scanner did not fit its own text".into());
    }
    let (cut, reported) = scanner.redact_text(&text, "$", &|_| false);
    let claimed = scanner.scan_claimed(&text);
    if cut != redact(&text, &claimed) || reported.len() > claimed.len() {
        return Err("cutting and redacting gave different texts".into());
    }
    let labels = label_spans(&redacted);
    let again = scanner.scan(&redacted);
    check_findings(&redacted, &again)?;
    for finding in again {
        if starts_with_literal(finding.kind) {
            return Err(format!(
                "{} is still there after the cut, at {}",
                finding.kind.name(),
                finding.offset
            )
            .into());
        }
        let starts_in_label =
            labels.iter().any(|&(start, end)| start <= finding.offset && finding.offset < end);
        if starts_in_label && finding.kind.priority() == 2 {
            return Err(format!("{} was found in a label, at {}", finding.kind.name(), finding.offset).into());
        }
    }
    Ok(())
}

fn check_findings(text: &str, findings: &[Finding]) -> Result<(), Violation> {
    for finding in findings {
        if finding.offset >= finding.end || text.get(finding.offset..finding.end).is_none() {
            return Err(format!("{finding:?} does not fit a text of {} bytes", text.len()).into());
        }
    }
    for pair in findings.windows(2) {
        if let [first, second] = pair
            && first.offset > second.offset
        {
            return Err(format!("{first:?} stands before {second:?}").into());
        }
    }
    for kind in FindingKind::ALL {
        let mut end = 0;
        for finding in findings.iter().filter(|finding| finding.kind == kind) {
            if finding.offset < end {
                return Err(format!("{finding:?} overlaps another finding of its kind").into());
            }
            end = finding.end;
        }
    }
    Ok(())
}

/// Whether findings of the kind are found by a literal alone: no literal survives the cut, because every one
/// of them is in some finding and none can be put together from a label and its surroundings.
fn starts_with_literal(kind: FindingKind) -> bool {
    kind.priority() == 2
        && !matches!(kind, FindingKind::SsnPattern | FindingKind::CreditCardLuhn | FindingKind::Custom)
}

fn label_spans(text: &str) -> Vec<(usize, usize)> {
    FindingKind::ALL
        .into_iter()
        .flat_map(|kind| text.match_indices(kind.replacement()))
        .map(|(start, label)| (start, start + label.len()))
        .collect()
}

/// A past in which everything happened once.
struct Yes;

impl AnswerSource for Yes {
    fn answer(&self, question: &Question) -> Option<Answer> {
        Some(match question {
            Question::Called(..) | Question::Denied(..) => Answer::Count(1),
            Question::Since(..) => Answer::Micros(Some(1)),
            Question::Tainted(..) => Answer::Truth(true),
            Question::Overflowed(_) => Answer::Truth(false),
            Question::AgentStatus(_) => Answer::AgentStatus(None),
            Question::Spent(..)
            | Question::SpentAbove(..)
            | Question::Rate(..)
            | Question::Approval
            | Question::Repeats(_)
            | Question::ActionsPerMinute => return None,
        })
    }
}

/// An empty action and a full one.
fn inputs() -> [Input; 2] {
    let args = Json::object()
        .with("command", "rm -rf /")
        .with("count", 3u32)
        .with("price", Json::Number("1.5".into()))
        .with("items", vec![Json::from("a"), Json::Null, Json::object().with("x", true)]);
    let full = Facts {
        kind: ActionKind::ToolCall,
        name: "Bash".to_owned(),
        tool: "shell".to_owned(),
        args,
        paths: vec!["/etc/passwd".to_owned(), "/tmp/x".to_owned()],
        ..Facts::default()
    };
    [Facts::default(), full].map(|facts| Input {
        facts,
        findings: vec![FoundSecret { kind: "OpenAiKey".to_owned(), path: "$.args".to_owned() }],
        caller: Caller::default(),
        agent: "a".to_owned(),
        session: SessionId::from_bytes([1; 16]),
        digest: Digest::of(b""),
        now: Timestamp::from_micros(1_763_239_507_123_456),
        fresh_approval: ApprovalId::from_bytes([2; 16]),
    })
}
