use proptest::prelude::*;

use super::*;
use crate::checks::CheckResult;

fn check(passed: bool, score: f64) -> CheckResult {
    CheckResult { name: "c".to_owned(), passed, score, message: String::new(), details: Json::Null }
}

fn result(status: Status, critical: bool, optional: bool, checks: usize) -> AssertionResult {
    let passed = status == Status::Passed;
    let points = if passed { 1.0 } else { 0.0 };
    AssertionResult {
        name: "a".to_owned(),
        status,
        score: points,
        critical,
        optional,
        checks: (0..checks).map(|_| check(passed, points)).collect(),
    }
}

fn points(results: &[AssertionResult], measures: Measures, limits: Limits) -> Score {
    score(results, &Weights::default(), &measures, &limits)
}

#[test]
fn the_worked_example_gives_93_92() {
    let weights = Weights { quality: 0.5, completeness: 0.3, efficiency: 0.1, cost: 0.1 };
    let results = [
        result(Status::Passed, true, false, 1),
        result(Status::Passed, false, false, 1),
        result(Status::Passed, false, false, 3),
    ];
    let measures = Measures { steps: Some(3), tokens: Some(1000), cost_usd: None };
    let limits = Limits { max_steps: Some(8), max_tokens: Some(4000), budget_usd: None };
    let score = score(&results, &weights, &measures, &limits);
    assert_eq!(score.points.to_string(), "93.92");
    assert!((score.efficiency.normalized - 0.714_286).abs() < 1e-6);
    assert!((score.cost.normalized - 0.678_072).abs() < 1e-6);
    assert_eq!(score.to_json().pointer("/components/quality/weight").unwrap().to_string(), "0.5");

    let failed = [result(Status::Failed, true, false, 1)];
    let failed = super::score(&failed, &weights, &measures, &limits);
    assert_eq!((failed.points.to_string().as_str(), failed.passed()), ("0", false));
}

#[test]
fn missing_metrics_have_the_documented_defaults() {
    let none = Limits::default();
    let efficiency = |steps, max_steps| {
        let measures = Measures { steps, ..Measures::default() };
        points(&[], measures, Limits { max_steps, ..none }).efficiency.normalized
    };
    for (steps, max, expected) in [
        (None, Some(8), 1.0),
        (Some(1), None, 1.0),
        (Some(2), None, 0.5),
        (Some(0), Some(8), 1.0),
        (Some(8), Some(8), 0.0),
        (Some(99), Some(8), 0.0),
        (Some(2), Some(1), 0.0),
        (Some(1), Some(1), 1.0),
    ] {
        assert!((efficiency(steps, max) - expected).abs() < 1e-9, "{steps:?} {max:?}");
    }
    let cost = |tokens, cost_usd, max_tokens, budget_usd| {
        let measures = Measures { steps: None, tokens, cost_usd };
        points(&[], measures, Limits { max_steps: None, max_tokens, budget_usd }).cost.normalized
    };
    for (tokens, usd, max, budget, expected) in [
        (None, None, Some(10), Some(1.0), 1.0),
        (Some(999), None, None, None, 1.0),
        (Some(1000), None, None, None, 0.5),
        (Some(4000), None, Some(4000), None, 0.0),
        (Some(4000), Some(0.25), Some(4000), Some(1.0), 0.75),
        (Some(0), Some(5.0), None, Some(1.0), 0.0),
        (None, Some(0.0), None, Some(0.0), 1.0),
        (None, Some(0.1), None, Some(0.0), 0.0),
        (Some(999), Some(f64::NAN), None, Some(1.0), 1.0),
    ] {
        assert!(
            (cost(tokens, usd, max, budget) - expected).abs() < 1e-9,
            "{tokens:?} {usd:?} {max:?} {budget:?}"
        );
    }
}

#[test]
fn no_evaluations_have_quality_0_and_completeness_1() {
    let score = points(&[], Measures::default(), Limits::default());
    assert_eq!((score.quality.normalized, score.completeness.normalized), (0.0, 1.0));
    assert_eq!(score.points.to_string(), "60");
}

#[test]
fn defect_03_a_critical_assertion_in_error_is_no_pass() {
    let broken = [result(Status::Error, true, false, 1), result(Status::Passed, false, false, 1)];
    let score = points(&broken, Measures::default(), Limits::default());
    assert_eq!((score.failures, score.errors, score.passed()), (0, 1, false));
    assert_eq!(score.points.to_string(), "0");
    assert_eq!(run_verdict(Ending::Completed, false, Some(&score)), Verdict::Error);
}

#[test]
fn optional_assertions_are_left_out_only_if_they_could_not_be_evaluated() {
    let out = [result(Status::Error, true, true, 1), result(Status::Passed, false, false, 1)];
    let score = points(&out, Measures::default(), Limits::default());
    assert_eq!((score.errors, score.left_out, score.passed()), (0, 1, true));
    assert_eq!(score.points.to_string(), "100");
    let failed = [result(Status::Failed, false, true, 1)];
    assert!(!points(&failed, Measures::default(), Limits::default()).passed());
}

#[test]
fn defect_01_a_stopped_or_unscored_run_never_passes() {
    let good = points(&[result(Status::Passed, false, false, 1)], Measures::default(), Limits::default());
    assert_eq!(run_verdict(Ending::Completed, false, Some(&good)), Verdict::Passed);
    for (ending, expected) in [
        (Ending::Stopped, Verdict::Failed),
        (Ending::Failed, Verdict::Failed),
        (Ending::Timeout, Verdict::Failed),
        (Ending::Cancelled, Verdict::Failed),
        (Ending::Partial, Verdict::Failed),
        (Ending::Error, Verdict::Error),
    ] {
        assert_eq!(run_verdict(ending, false, Some(&good)), expected, "{ending:?}");
    }
    assert_eq!(run_verdict(Ending::Completed, false, None), Verdict::Error);
    assert_eq!(run_verdict(Ending::Partial, true, Some(&good)), Verdict::Passed);
}

#[test]
fn tests_need_their_pass_rate() {
    use Verdict::{Error, Failed, Passed};
    for (runs, rate, expected) in [
        (vec![Passed, Passed], 1.0, Passed),
        (vec![Passed, Failed], 1.0, Failed),
        (vec![Passed, Error], 1.0, Error),
        (vec![Passed, Passed, Failed], 2.0 / 3.0, Passed),
        (vec![Passed, Passed, Failed], 0.7, Failed),
        (vec![Passed, Error, Failed], 0.6, Error),
        (vec![Failed, Error, Failed], 0.6, Failed),
        (vec![], 0.5, Error),
    ] {
        assert_eq!(test_verdict(&runs, rate), expected, "{runs:?} {rate}");
    }
}

proptest! {
    #[test]
    fn scores_stay_from_0_to_100(
        checks in prop::collection::vec((any::<bool>(), any::<f64>(), any::<bool>(), any::<bool>(), 0_u8..3), 0..20),
        steps in any::<Option<u64>>(), tokens in any::<Option<u64>>(), cost_usd in any::<Option<f64>>(),
        max_steps in any::<Option<u64>>(), max_tokens in any::<Option<u64>>(), budget_usd in any::<Option<f64>>(),
        quality in 0.0_f64..=1.0,
    ) {
        let results: Vec<AssertionResult> = checks.into_iter().map(|(passed, points, critical, optional, status)| {
            let status = [Status::Passed, Status::Failed, Status::Error][usize::from(status)];
            AssertionResult { name: String::new(), status, score: points, critical, optional, checks: vec![check(passed, points)] }
        }).collect();
        let weights = Weights { quality, completeness: 1.0 - quality, efficiency: 0.0, cost: 0.001 };
        let score = score(&results, &weights, &Measures { steps, tokens, cost_usd }, &Limits { max_steps, max_tokens, budget_usd });
        prop_assert!((0.0..=100.0).contains(&score.points), "{}", score.points);
        for part in [&score.quality, &score.completeness, &score.efficiency, &score.cost] {
            prop_assert!((0.0..=1.0).contains(&part.normalized));
        }
        prop_assert_eq!(score.passed(), run_verdict(Ending::Completed, false, Some(&score)) == Verdict::Passed);
        prop_assert!(Json::parse(score.to_json().to_string().as_bytes()).is_ok());
    }
}
