//! Case files that are read, and those that are refused.

use super::*;

const GRAMMAR: Grammar = Grammar {
    shared: &["policy"],
    actions: &["text", COMMAND],
    options: &["id"],
    expectations: &[Kind::Result, Kind::Error],
    transports: &["http"],
};

fn problem(text: &str) -> CaseError {
    read(text.as_bytes(), &GRAMMAR).expect_err(text)
}

#[test]
fn a_file_is_read_with_the_values_that_its_cases_share() {
    let file = "policy: all\ncases:\n  - name: one\n    steps:\n      - { text: x, result: 1, on: { http: { error: 2 } } }\n  - { name: two, policy: own, steps: [{ run: [init] }] }\n";
    let cases = read(file.as_bytes(), &GRAMMAR).unwrap();
    assert_eq!((cases[0].shared_text("policy"), cases[1].shared_text("policy")), ("all", "own"));
    let step = &cases[0].steps[0];
    assert_eq!((step.line, step.expected("unix").unwrap().kind), (5, Kind::Result));
    assert_eq!(step.expected("http").unwrap().kind, Kind::Error);
}

#[test]
fn a_misspelt_or_missing_key_is_an_error_and_never_a_green_case() {
    let with_step = |step: &str| format!("cases: [{{ name: n, steps: [{step}] }}]\n");
    for (text, key) in [
        ("cases: []\nexpects: 1\n".to_owned(), "expects"),
        ("cases: [{ name: n, step: [] }]\n".to_owned(), "step"),
        (with_step("{ text: x, reslut: 1 }"), "reslut"),
        (with_step("{ text: x, result: 1, on: { carrier_pigeon: { result: 1 } } }"), "carrier_pigeon"),
    ] {
        assert!(matches!(problem(&text), CaseError::UnknownKey { key: found, .. } if found == key), "{text}");
    }
    assert_eq!(problem("cases: []\n"), CaseError::NoCases);
    assert!(matches!(problem("policy: x\n"), CaseError::Missing { key: "cases", .. }));
    assert!(matches!(problem("cases: [{ name: n, steps: [] }]\n"), CaseError::NoSteps { .. }));
    assert!(matches!(problem(""), CaseError::Yaml(_)));
    for step in ["{ text: x }", "{ result: 1 }", "{ text: x, result: 1, error: 2 }", "{ run: [], result: 1 }"]
    {
        assert!(matches!(problem(&with_step(step)), CaseError::NotOne { .. }), "{step}");
    }
    let twice = "cases: [{ name: n, steps: [{ run: [] }] }, { name: n, steps: [{ run: [] }] }]\n";
    assert!(matches!(problem(twice), CaseError::SameName { .. }));
}
