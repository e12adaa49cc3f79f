//! Large suites load in bounded time, and hostile ones are refused in bounded time.

use std::fmt::Write;
use std::time::{Duration, Instant};

use super::*;

/// 10,000 tests of about 4 MB and 230,000 values.
fn large() -> String {
    let mut source = String::from("test_suite: large\ntests:\n");
    for number in 0..10_000 {
        write!(
            source,
            "  - id: test-{number}\n    name: Test {number} of many\n    tags: [smoke, group-{}]\n    task:\n      description: Add {number} and 4, write the sum to total.json, and explain in one sentence how you found it\n      input_data: {{items: [{number}, 4]}}\n      expected_artifacts: [total.json]\n    assertions:\n      - {{type: artifact_exists, critical: true, config: {{path: total.json}}}}\n      - {{type: contains, config: {{path: total.json, pattern: \"su.?m{number}\", regex: true}}}}\n",
            number % 10
        )
        .unwrap();
    }
    source
}

/// Far above what a debug build on a busy machine needs, and far below what quadratic work would.
const PATIENCE: Duration = Duration::from_secs(60);

#[test]
fn ten_thousand_tests_load() {
    let source = large();
    let begin = Instant::now();
    let suite = loaded(&source).suite;
    assert_eq!(suite.tests.len(), 10_000);
    assert_eq!(suite.tests[9_999].id, "test-9999");
    assert!(begin.elapsed() < PATIENCE, "{:?}", begin.elapsed());
}

#[test]
fn ten_thousand_tests_load_as_json_on_one_line() {
    let json = proctor_yaml::parse(large().as_bytes(), &SUITE_LIMITS).unwrap().to_json().to_string();
    let begin = Instant::now();
    assert_eq!(loaded(&json).suite.tests.len(), 10_000);
    assert!(begin.elapsed() < PATIENCE, "{:?}", begin.elapsed());
}

#[test]
fn limits_are_arguments() {
    let limits = |nodes: usize| proctor_yaml::Limits { nodes, ..SUITE_LIMITS };
    let options = LoadOptions::new(&|_| None, &|_| None);
    let load_with =
        |nodes| load(WORKED_EXAMPLE.as_bytes(), &LoadOptions { limits: limits(nodes), ..options });
    assert!(load_with(1_000).is_ok());
    let problems = load_with(10).unwrap_err();
    assert_eq!(problems[0].message, "more than 10 values, aliases counted as what they stand for");
}

#[test]
fn hostile_sources_are_refused_in_bounded_time() {
    let begin = Instant::now();
    let unknown_keys: String = (0..100_000).map(|number| format!("key{number}: x\n")).collect();
    assert_eq!(mistakes(&unknown_keys).len(), 501);
    let agents = format!("test_suite: s\nagents: [{}]\n", "{name: a}, ".repeat(50_000));
    assert!(mistakes(&agents).iter().any(|line| line.contains("at most 1000 agents")));
    let bomb = "a: &a [x, x, x, x, x, x, x, x, x, x]\nb: &b [*a, *a, *a, *a, *a, *a, *a, *a, *a, *a]\nc: &c [*b, *b, *b, *b, *b, *b, *b, *b, *b, *b]\nd: &d [*c, *c, *c, *c, *c, *c, *c, *c, *c, *c]\ne: &e [*d, *d, *d, *d, *d, *d, *d, *d, *d, *d]\nf: [*e, *e, *e, *e, *e, *e, *e, *e, *e, *e, *e]\n";
    assert!(mistakes(bomb).iter().any(|line| line.contains("values, aliases counted")));
    assert!(begin.elapsed() < PATIENCE, "{:?}", begin.elapsed());
}
