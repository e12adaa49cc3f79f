//! What must hold for every text, in a form a driver with random bytes can call.

use super::{Finding, FindingKind, REDACTED_WHOLE, Scanner, redact};

/// Scans and redacts `data` read as text, and checks what must hold for every text; the message says which law
/// was broken. Never panics.
pub fn fuzz_scan(data: &[u8]) -> Result<(), String> {
    let text = String::from_utf8_lossy(data);
    let scanner = Scanner::standard();
    let findings = scanner.scan(&text);
    check_findings(&text, &findings)?;

    let redacted = redact(&text, &findings);
    if findings.is_empty() && redacted != text {
        return Err("a text without findings was changed".to_owned());
    }
    if !findings.is_empty() && redacted == REDACTED_WHOLE && text != REDACTED_WHOLE {
        return Err("a finding of the scanner did not fit its own text".to_owned());
    }
    let (cut, reported) = scanner.cut_text(&text, "$", &|_| false);
    if cut != redact(&text, &scanner.scan_claimed(&text)) || reported.len() > findings.len() {
        return Err("cutting and redacting gave different texts".to_owned());
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
            ));
        }
        let starts_in_label =
            labels.iter().any(|&(start, end)| start <= finding.offset && finding.offset < end);
        if starts_in_label && finding.kind.priority() == 2 {
            return Err(format!("{} was found in a label, at {}", finding.kind.name(), finding.offset));
        }
    }
    Ok(())
}

fn check_findings(text: &str, findings: &[Finding]) -> Result<(), String> {
    for finding in findings {
        if finding.offset >= finding.end || text.get(finding.offset..finding.end).is_none() {
            return Err(format!("{finding:?} does not fit a text of {} bytes", text.len()));
        }
    }
    for pair in findings.windows(2) {
        if let [first, second] = pair
            && first.offset > second.offset
        {
            return Err(format!("{first:?} stands before {second:?}"));
        }
    }
    for kind in FindingKind::ALL {
        let mut end = 0;
        for finding in findings.iter().filter(|finding| finding.kind == kind) {
            if finding.offset < end {
                return Err(format!("{finding:?} overlaps another finding of its kind"));
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
