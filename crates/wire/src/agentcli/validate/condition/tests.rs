use std::time::{Duration, Instant};

use super::*;

#[test]
fn prefixes_decide() {
    assert_eq!(parse("contains:a b"), Ok(Condition::Contains("a b")));
    assert_eq!(parse("regex:^a$"), Ok(Condition::Regex("^a$")));
    assert_eq!(parse("a"), Err(ConditionError::Prefix));
    assert_eq!(parse("Contains:a"), Err(ConditionError::Prefix));
    assert_eq!(parse(" contains:a"), Err(ConditionError::Prefix));
    assert_eq!(parse("contains:"), Err(ConditionError::Empty));
    assert_eq!(parse("regex: \t"), Err(ConditionError::Empty));
}

#[test]
fn expressions_are_ecmascript_without_flags() {
    // Syntax that other flavours refuse or that only ECMAScript's web-compatible grammar accepts.
    for good in [
        "(?<=a)b(?!c)",
        "(?<year>\\d{4})-\\k<year>",
        "[^]",
        "[]",
        "\\cA",
        "a{",
        "a{1",
        "]",
        "\\q",
        "(?=a)*",
        "(?:a|b)+?",
        "\\u0041",
        "^$",
        "\\1(a)",
        "a{2,1000000}",
        "error|fail(ed|ure)",
    ] {
        assert_eq!(Condition::Regex(good).check(), Ok(()), "{good}");
    }
    for bad in ["(", ")", "[", "a**", "*a", "a{2,1}", "(?<n>a)(?<n>b)", "\\", "(?P<n>a)", "[b-a]", "+"] {
        assert_eq!(Condition::Regex(bad).check(), Err(ConditionError::Regex), "{bad}");
    }
}

#[test]
fn hostile_expressions_end_quickly_on_a_small_stack() {
    let fill = |piece: &str| piece.repeat(MAX_REGEX / piece.len());
    let nested = |open: &str, close: &str, depth| format!("{}a{}", open.repeat(depth), close.repeat(depth));
    let hostile = [
        fill("a|"),
        "a|".repeat(MAX_ALTERNATIVES - 1),
        format!("{}{}{}", "(?:".repeat(100), "(a)*|".repeat(MAX_ALTERNATIVES - 1), ")*".repeat(100)),
        format!("{}{}{}", "(a|".repeat(100), "b|".repeat(MAX_ALTERNATIVES - 101), ")".repeat(100)),
        fill("(a)|"),
        fill("(?:a|b)*"),
        fill("a*"),
        fill("[a-z]"),
        fill("\\w"),
        fill("\\p{L}"),
        fill("(?=a)"),
        fill("a{1000}"),
        fill("("),
        fill("(\\)"),
        fill("([)]"),
        fill("[["),
        fill("\\"),
        fill("é"),
        nested("(", ")", 100),
        nested("(?:", "){1000}", 100),
        nested("(?=", ")", 100),
        nested("(?<!", ")", 100),
        nested("((?:", "){9,99})*", 50),
        "a".repeat(MAX_REGEX + 1),
        "(a{0,1000}){0,1000}".repeat(40),
        "(x+x+)+y".to_owned(),
    ];
    let thread = std::thread::Builder::new().stack_size(1 << 20).spawn(move || {
        for expression in hostile {
            let start = Instant::now();
            let _ = Condition::Regex(&expression).check();
            let took = start.elapsed();
            let shown: String = expression.chars().take(30).collect();
            assert!(took < Duration::from_millis(500), "{shown}: {took:?}");
        }
    });
    thread.unwrap().join().unwrap();
}
