mod passes;
mod speed;

use super::*;

/// Kind and span text of every finding.
fn found(text: &str) -> Vec<(FindingKind, &str)> {
    Scanner::standard()
        .scan(text)
        .into_iter()
        .map(|finding| (finding.kind, &text[finding.offset..finding.end]))
        .collect()
}

fn redacted(text: &str) -> String {
    redact(text, &Scanner::standard().scan(text))
}

fn kinds(text: &str) -> Vec<FindingKind> {
    found(text).into_iter().map(|(kind, _)| kind).collect()
}

/// A token of distinct letters and digits: random to the scanner, and nobody's secret.
const RANDOM: &str = concat!("aB3dEfGhIjKl", "MnOpQrStUvWxYz0", "12456789");

#[test]
fn names_of_kinds_are_unique_and_read_back() {
    for kind in FindingKind::ALL {
        assert_eq!(FindingKind::from_name(kind.name()), Some(kind));
        assert_eq!(kind.replacement(), format!("[REDACTED:{}]", kind.name()));
    }
    assert_eq!(FindingKind::from_name("openaikey"), None);
    assert_eq!(FindingKind::ALL.iter().filter(|kind| !kind.is_additional()).count(), 28);
}

#[test]
fn findings_that_overlap_are_cut_under_the_highest_priority() {
    let text = "0123456789";
    let finding = |kind, offset, end| Finding { kind, offset, end };
    let (random, address, key) =
        (FindingKind::GenericHighEntropy, FindingKind::EmailAddress, FindingKind::OpenAiKey);
    let cut = |findings: &[Finding]| redact(text, findings);
    assert_eq!(cut(&[]), text);
    assert_eq!(cut(&[finding(random, 0, 5), finding(address, 2, 6)]), "[REDACTED:EmailAddress]6789");
    assert_eq!(cut(&[finding(key, 4, 6), finding(random, 0, 5)]), "[REDACTED:OpenAiKey]6789");
    // The first wins among equals, in the order of the text and not of the list.
    assert_eq!(
        cut(&[finding(key, 3, 6), finding(FindingKind::GitHubPat, 2, 4)]),
        "01[REDACTED:GitHubPat]6789"
    );
    // Touching is not overlapping.
    assert_eq!(
        cut(&[finding(key, 0, 2), finding(random, 2, 4)]),
        "[REDACTED:OpenAiKey][REDACTED:GenericHighEntropy]456789"
    );
    // A chain is cut as one.
    assert_eq!(
        cut(&[finding(random, 0, 4), finding(random, 3, 7), finding(address, 6, 9)]),
        "[REDACTED:EmailAddress]9"
    );
}

#[test]
fn a_finding_that_does_not_fit_cuts_the_whole_text() {
    let finding = |offset, end| Finding { kind: FindingKind::Custom, offset, end };
    assert_eq!(redact("abc", &[finding(0, 4)]), REDACTED_WHOLE);
    assert_eq!(redact("abc", &[finding(4, 5)]), REDACTED_WHOLE);
    assert_eq!(redact("abc", &[finding(2, 1)]), REDACTED_WHOLE);
    assert_eq!(redact("aé", &[finding(0, 2)]), REDACTED_WHOLE);
    assert_eq!(redact("aé", &[finding(2, 3)]), REDACTED_WHOLE);
    assert_eq!(redact("abc", &[finding(0, 1), finding(2, 9)]), REDACTED_WHOLE);
}

#[test]
fn the_first_kind_of_the_highest_priority_leads() {
    use FindingKind::{EmailAddress, GenericHighEntropy, GitHubPat, OpenAiKey};
    assert_eq!(leading_kind([]), None);
    assert_eq!(leading_kind([GenericHighEntropy, EmailAddress]), Some(EmailAddress));
    assert_eq!(leading_kind([EmailAddress, GitHubPat, OpenAiKey]), Some(GitHubPat));
}

#[test]
fn patterns_of_the_operator_give_custom_findings() {
    let scanner = Scanner::new(&["EMP-[0-9]{6}".to_owned(), "(?i)project falcon".to_owned()]).unwrap();
    let text = "EMP-123456 works on Project Falcon, EMP-1 does not";
    let findings = scanner.scan(text);
    assert_eq!(findings.len(), 2);
    assert_eq!(redact(text, &findings), "[REDACTED:Custom] works on [REDACTED:Custom], EMP-1 does not");
    assert_eq!(Scanner::default().scan(text), []);
}

#[test]
fn overlapping_custom_findings_are_joined_and_empty_matches_find_nothing() {
    let scanner = Scanner::new(&["abc".to_owned(), "cde".to_owned(), "x*".to_owned()]).unwrap();
    assert_eq!(scanner.scan("-abcde-"), [Finding { kind: FindingKind::Custom, offset: 1, end: 6 }]);
    assert_eq!(scanner.scan("nothing here"), []);
}

#[test]
fn too_many_matches_of_a_pattern_cut_the_rest() {
    let scanner = Scanner::new(&["a".to_owned()]).unwrap();
    let text = format!("{}end", "a.".repeat(1002));
    let cut = redact(&text, &scanner.scan(&text));
    assert!(cut.ends_with("[REDACTED:Custom].[REDACTED:Custom]"), "{}", &cut[cut.len() - 60..]);
    assert_eq!(scanner.scan(&text).len(), 1001);
}

#[test]
fn a_pattern_that_cannot_be_used_is_named() {
    let bad = |pattern: &str| Scanner::new(&["fine".to_owned(), pattern.to_owned()]).unwrap_err();
    let unclosed = bad("(open");
    assert_eq!(unclosed.index, 1);
    assert_eq!(
        unclosed.to_string(),
        "sensitive pattern 1 cannot be used: `(open` is not a regular expression: unclosed group"
    );
    assert!(bad("(?:a{1000}){1000}").problem.to_string().contains("when compiled"));
    assert!(bad("").problem.to_string().contains("empty"));
    assert!(bad(&"a".repeat(5000)).problem.to_string().contains("5000 bytes"));
    assert!(bad(r"(a)\1").problem.to_string().contains("backreferences"));
    assert_eq!(Scanner::new(&vec!["a".to_owned(); 257]).unwrap_err().index, 256);
}

#[test]
fn paths_quote_odd_names() {
    assert_eq!(json_path_child("$.args", "api_key"), "$.args.api_key");
    assert_eq!(json_path_child("$", "odd name"), "$['odd name']");
    assert_eq!(json_path_child("$", "1st"), "$['1st']");
    assert_eq!(json_path_child("$", ""), "$['']");
    assert_eq!(json_path_child("$", "a'b\\c\n\u{1}é"), "$['a\\'b\\\\c\\n\\u0001é']");
    assert_eq!(json_path_index("$.list", 3), "$.list[3]");
}
