//! Properties of scanning and redaction.

use proctor_policy::scan::{Finding, FindingKind, Scanner, redact};
use proptest::prelude::*;

use crate::any_input;

/// Kind and span text of every finding.
fn found(text: &str) -> Vec<(FindingKind, &str)> {
    let findings = Scanner::standard().scan(text);
    findings.into_iter().map(|finding| (finding.kind, &text[finding.offset..finding.end])).collect()
}

fn redacted(text: &str) -> String {
    redact(text, &Scanner::standard().scan(text))
}

/// Texts out of parts that matter to some pass, so that passes meet.
fn eventful_text() -> impl Strategy<Value = String> {
    let part = prop_oneof![
        prop::sample::select(vec![
            "sk-",
            "sk-ant-",
            "AKIA",
            "ASIA",
            "ghp_",
            "github_pat_",
            "xoxb-",
            "postgres://",
            "AccountKey=",
            "DefaultEndpointsProtocol=",
            "\"type\":\"service_account\"",
            "-----BEGIN ",
            "-----END ",
            "EC ",
            "PRIVATE KEY-----",
            "PRIVATE KEY BLOCK-----",
            "@",
            ".",
            "a@b.c",
            "123-45-6789",
            "4532015112830366",
            "[REDACTED]",
            "[REDACTED:OpenAiKey]",
            "[REDACTED:",
            "]",
            "=",
            ":",
            "-",
            " ",
            "\n",
            "\u{3000}",
            "é",
            "\u{FF11}",
            "\u{FF0D}",
            "\"",
            "'",
            ",",
            ";",
            "}",
            "<",
            "key",
            "\u{1F511}",
        ])
        .prop_map(str::to_owned),
        "[A-Za-z0-9+/_-]{1,40}",
        "[0-9a-f:]{1,80}",
        "[0-9 .-]{1,30}",
        "\\PC{0,8}",
    ];
    prop::collection::vec(part, 0..16).prop_map(|parts| parts.concat())
}

proptest! {
    #[test]
    fn the_laws_hold_for_eventful_texts(text in eventful_text()) {
        prop_assert_eq!(any_input::scan(text.as_bytes()), Ok(()));
    }

    #[test]
    fn the_laws_hold_for_any_bytes(data in prop::collection::vec(any::<u8>(), 0..400)) {
        prop_assert_eq!(any_input::scan(&data), Ok(()));
    }

    #[test]
    fn what_a_literal_starts_is_gone_from_the_redacted_text(text in eventful_text()) {
        let cut = redacted(&text);
        for (kind, secret) in found(&text) {
            let by_context = matches!(
                kind,
                FindingKind::SsnPattern
                    | FindingKind::CreditCardLuhn
                    | FindingKind::EmailAddress
                    | FindingKind::GenericHighEntropy
            );
            prop_assert!(by_context || !cut.contains(secret), "{} in {cut:?}", kind.name());
        }
    }

    #[test]
    fn a_second_cut_finds_no_literal_and_ends_soon(text in eventful_text()) {
        // A cut can bring a new finding about (a local part that was too long, say), but never without end.
        let mut current = redacted(&text);
        for _ in 0..8 {
            let next = redacted(&current);
            if next == current {
                return Ok(());
            }
            current = next;
        }
        prop_assert!(false, "still changing: {current:?}");
    }

    #[test]
    fn redaction_never_panics_and_one_span_that_does_not_fit_cuts_everything(
        text in "\\PC{0,40}",
        spans in prop::collection::vec((0_usize..60, 0_usize..60), 0..5),
    ) {
        let findings: Vec<_> = spans
            .iter()
            .map(|&(offset, end)| Finding { kind: FindingKind::Custom, offset, end })
            .collect();
        let fits = spans.iter().all(|&(offset, end)| text.get(offset..end).is_some());
        let cut = redact(&text, &findings);
        if !fits && !findings.is_empty() {
            prop_assert_eq!(cut, "[REDACTED]");
        }
    }

    #[test]
    fn a_text_cut_by_the_whole_is_cut_by_the_leaf(text in eventful_text()) {
        let scanner = Scanner::standard();
        let value = proctor_core::json::Json::String(text.clone());
        let (cut, _) = scanner.redact_json(&value, "$", &|_| false);
        let expected = redact(&text, &scanner.scan_claimed(&text));
        prop_assert_eq!(cut, proctor_core::json::Json::String(expected));
    }

    #[test]
    fn only_a_key_inside_a_word_is_no_key(text in eventful_text()) {
        let scanner = Scanner::standard();
        let claimed = scanner.scan_claimed(&text);
        for finding in scanner.scan(&text) {
            let inside = finding.offset > 0 && text.as_bytes()[finding.offset - 1].is_ascii_alphanumeric();
            let is_key = matches!(finding.kind, FindingKind::OpenAiKey | FindingKind::AnthropicKey);
            if !(inside && is_key) {
                prop_assert!(claimed.contains(&finding), "{:?}", finding);
            }
        }
    }
}
