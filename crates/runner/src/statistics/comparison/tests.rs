#![expect(clippy::float_cmp, reason = "these values are exact")]

use std::slice;

use super::*;
use crate::statistics::summary::Interval;

/// Runs of a test with scores of 100 and 0.
fn runs(name: &str, successes: u32, failures: u32) -> TestRuns {
    TestRuns {
        name: name.to_owned(),
        scores: [vec![100.0; successes as usize], vec![0.0; failures as usize]].concat(),
        successes,
        failures,
        ..TestRuns::default()
    }
}

fn scored(name: &str, scores: &[f64]) -> TestRuns {
    TestRuns { scores: scores.to_vec(), ..runs(name, 0, 0) }
}

fn compare(before: &[TestRuns], after: &[TestRuns]) -> Comparison {
    Comparison::new(before, after, &Rule::default())
}

fn names(count: usize) -> Vec<String> {
    (0..count).map(|index| format!("test-{index}")).collect()
}

#[test]
fn tests_are_matched_by_name() {
    let comparison =
        compare(&[runs("gone", 5, 0), runs("same", 5, 0)], &[runs("fresh", 5, 0), runs("same", 5, 0)]);
    let verdicts: Vec<_> = comparison.tests.iter().map(|test| (test.name.as_str(), test.verdict)).collect();
    assert_eq!(
        verdicts,
        [("fresh", Verdict::New), ("same", Verdict::NoDifference), ("gone", Verdict::Removed)]
    );
    assert_eq!(comparison.suite[0].tests, 1);
}

#[test]
fn entries_of_the_same_name_are_pooled() {
    let split = compare(&[runs("a", 3, 0), runs("a", 4, 3)], &[runs("a", 5, 5)]);
    assert_eq!(split.tests[0].effects[0].runs_before, 10);
    assert_eq!(split.tests[0].effects[1].runs_before, 10);
}

#[test]
fn a_shown_loss_and_a_shown_gain() {
    let (good, bad) = ([runs("a", 30, 0), runs("b", 20, 10)], [runs("a", 10, 20), runs("b", 20, 10)]);
    let worse = compare(&good, &bad);
    assert_eq!((worse.tests[0].verdict, worse.tests[1].verdict), (Verdict::Worse, Verdict::NoDifference));
    assert_eq!(worse.regression, Regression::Shown { tests: vec!["a".to_owned()], suite: false });
    let better = compare(&bad, &good);
    assert_eq!(better.tests[0].verdict, Verdict::Better);
    assert!(!matches!(better.regression, Regression::Shown { .. }));
}

/// The released program compares only steps and tokens: an agent that always crashes is no change to it.
#[test]
fn defect_07_an_agent_that_fails_or_crashes_is_worse() {
    let good = [runs("a", 10, 0)];
    let crashing = TestRuns { scores: Vec::new(), ..runs("a", 0, 10) };
    for bad in [runs("a", 0, 10), crashing] {
        let comparison = compare(&good, slice::from_ref(&bad));
        assert_eq!(comparison.tests[0].verdict, Verdict::Worse, "{bad:?}");
        assert!(matches!(comparison.regression, Regression::Shown { .. }), "{bad:?}");
    }
}

/// The released program's p values are heuristics.
#[test]
fn defect_20_p_values_are_exact() {
    // 3 of 3 against 0 of 3: one of the 20 tables, in both directions.
    let few = compare(&[runs("a", 3, 0)], &[runs("a", 0, 3)]);
    let success = few.tests[0].effects.iter().find(|effect| effect.quantity == Quantity::Success).unwrap();
    assert!((success.p.unwrap() - 0.1).abs() < 1e-12);
}

#[test]
fn a_loss_outweighs_a_gain() {
    let before = TestRuns { scores: vec![10.0, 11.0, 12.0, 13.0, 14.0, 15.0, 16.0, 17.0], ..runs("a", 8, 0) };
    let after = TestRuns { scores: vec![90.0, 91.0, 92.0, 93.0, 94.0, 95.0, 96.0, 97.0], ..runs("a", 0, 8) };
    let comparison = compare(&[before], &[after]);
    let verdicts: Vec<_> = comparison.tests[0].effects.iter().map(|effect| effect.verdict).collect();
    assert_eq!(verdicts, [Verdict::Better, Verdict::Worse]);
    assert_eq!(comparison.tests[0].verdict, Verdict::Worse);
}

#[test]
fn higher_cost_and_latency_are_worse_but_no_regression() {
    let with = |factor: f64| {
        let values: Vec<f64> = (0..10).map(|index| factor * (10.0 + f64::from(index))).collect();
        TestRuns { costs: values.clone(), latencies: values, ..runs("a", 10, 0) }
    };
    let comparison = compare(&[with(1.0)], &[with(3.0)]);
    let verdicts: Vec<_> =
        comparison.tests[0].effects.iter().map(|effect| (effect.quantity, effect.verdict)).collect();
    assert_eq!(
        verdicts,
        [
            (Quantity::Score, Verdict::NoDifference),
            (Quantity::Success, Verdict::NoDifference),
            (Quantity::Cost, Verdict::Worse),
            (Quantity::Latency, Verdict::Worse),
        ]
    );
    assert_eq!(
        (comparison.tests[0].verdict, comparison.regression),
        (Verdict::NoDifference, Regression::None)
    );
}

#[test]
fn constant_samples_do_not_show_more_than_a_permutation_could() {
    // Welch's p is 0, but 3 runs against 3 can be ordered in 20 ways only.
    let few = compare(&[runs("a", 3, 0)], &[runs("a", 0, 3)]);
    assert_eq!(few.tests[0].effects[0].welch.unwrap().p, 0.0);
    assert_eq!(few.tests[0].effects[0].p, Some(0.1));
    assert_eq!((few.tests[0].verdict, few.hypotheses), (Verdict::NotEnoughRuns, 0));
    let Regression::Undecided { runs: Some(proposed), .. } = few.regression else { panic!("{few:?}") };
    let enough = compare(&[runs("a", proposed, 0)], &[runs("a", 0, proposed)]);
    assert_eq!(enough.tests[0].verdict, Verdict::Worse);
    let too_few = compare(&[runs("a", proposed - 1, 0)], &[runs("a", 0, proposed - 1)]);
    assert_eq!(too_few.tests[0].verdict, Verdict::NotEnoughRuns);
}

#[test]
fn single_runs_are_not_enough() {
    for (before, after) in [((1, 0), (0, 1)), ((0, 1), (1, 0)), ((1, 0), (1, 0))] {
        let comparison = compare(&[runs("a", before.0, before.1)], &[runs("a", after.0, after.1)]);
        assert_eq!(
            (comparison.tests[0].verdict, comparison.verdict),
            (Verdict::NotEnoughRuns, Verdict::NotEnoughRuns)
        );
        assert!(matches!(comparison.regression, Regression::Undecided { interval: None, runs: Some(5) }));
    }
}

#[test]
fn single_runs_of_many_tests_show_the_loss_of_the_suite() {
    let all =
        |successes| names(30).iter().map(|name| runs(name, successes, 1 - successes)).collect::<Vec<_>>();
    let comparison = compare(&all(1), &all(0));
    assert!(comparison.tests.iter().all(|test| test.verdict == Verdict::NotEnoughRuns));
    assert_eq!(comparison.verdict, Verdict::Worse);
    assert_eq!(comparison.regression, Regression::Shown { tests: Vec::new(), suite: true });
}

#[test]
fn equal_results_are_no_regression() {
    let suite: Vec<TestRuns> = names(10).iter().map(|name| runs(name, 5, 0)).collect();
    assert_eq!(compare(&suite, &suite).regression, Regression::None);
}

#[test]
fn nothing_compared_is_undecided() {
    let nothing = Regression::Undecided { interval: None, runs: None };
    assert_eq!(compare(&[], &[]).regression, nothing);
    assert_eq!(compare(&[runs("a", 5, 0)], &[runs("b", 5, 0)]).regression, nothing);
    assert_eq!(compare(&[runs("a", 0, 0)], &[runs("a", 0, 0)]).regression, nothing);
    let no_numbers = scored("a", &[f64::NAN, f64::INFINITY]);
    assert_eq!(compare(slice::from_ref(&no_numbers), slice::from_ref(&no_numbers)).regression, nothing);
}

#[test]
fn the_margin_decides_what_must_be_excluded() {
    // The interval of the only test is that of Welch's test.
    let before = scored("a", &[80.0, 82.0, 84.0, 86.0, 88.0]);
    let after = scored("a", &[79.0, 82.0, 83.0, 86.0, 87.0]);
    let strict = compare(slice::from_ref(&before), slice::from_ref(&after));
    let Regression::Undecided { interval: Some(interval), runs: Some(runs) } = strict.regression else {
        panic!("{strict:?}")
    };
    assert!(interval.low < -DEFAULT_MARGIN && interval.high > 0.0 && runs > 5, "{interval:?} {runs}");
    let wide = Rule::default().with_margin(-interval.low + 0.01).unwrap();
    assert_eq!(Comparison::new(&[before], &[after], &wide).regression, Regression::None);
}

#[test]
fn a_smaller_margin_needs_more_runs() {
    let tests = |even: f64, odd: f64| {
        let score = |index: usize| 75.0 + if index.is_multiple_of(2) { even } else { odd };
        let test = |(index, name): (usize, &String)| scored(name, &[60.0, score(index), 90.0, 95.0]);
        names(8).iter().enumerate().map(test).collect::<Vec<_>>()
    };
    let needed = |margin: f64| {
        let rule = Rule::default().with_margin(margin).unwrap();
        match Comparison::new(&tests(0.0, 0.0), &tests(-12.0, 8.0), &rule).regression {
            Regression::Undecided { runs, .. } => runs.unwrap(),
            other => panic!("{other:?}"),
        }
    };
    assert!(needed(2.0) > needed(2.5), "{} {}", needed(2.0), needed(2.5));
}

#[test]
fn a_difference_among_tests_that_runs_do_not_explain_stays_undecided() {
    // No run varies, and two tests differ in opposite directions by too little to be excluded by their mean.
    let before = [scored("a", &[50.0; 3]), scored("b", &[50.0; 3])];
    let after = [scored("a", &[58.0; 3]), scored("b", &[42.0; 3])];
    let comparison = compare(&before, &after);
    let Regression::Undecided { interval: Some(Interval { low, high }), runs } = comparison.regression else {
        panic!("{comparison:?}")
    };
    assert!(low < -5.0 && high > 5.0);
    // With this many runs the loss of `b` is shown.
    assert_eq!(runs, Some(5));
}

#[test]
fn margins_are_points() {
    assert_eq!(Rule::default().margin(), 5.0);
    for margin in [0.0, -1.0, 100.5, f64::NAN, f64::INFINITY] {
        let error = Rule::default().with_margin(margin).unwrap_err();
        assert!(error.to_string().starts_with("the margin `"), "{error}");
    }
}

#[test]
fn comparisons_are_repeatable() {
    let before: Vec<TestRuns> = names(40).iter().map(|name| runs(name, 4, 1)).collect();
    let after: Vec<TestRuns> = names(40).iter().map(|name| runs(name, 3, 2)).collect();
    assert_eq!(compare(&before, &after), compare(&before, &after));
    let permutation = compare(&before, &after).suite[0].permutation.unwrap();
    assert!(!permutation.exact && permutation.assignments >= 9_999);
}

#[test]
fn thousands_of_tests_can_show_the_loss_of_the_suite() {
    let before: Vec<TestRuns> = names(2_000).iter().map(|name| runs(name, 5, 0)).collect();
    let after: Vec<TestRuns> = names(2_000).iter().map(|name| runs(name, 4, 1)).collect();
    let comparison = compare(&before, &after);
    assert_eq!(comparison.regression, Regression::Shown { tests: Vec::new(), suite: true });
}
