//! Laws that hold for every input.

#![expect(clippy::float_cmp, reason = "what is symmetric is equal to the last digit")]

use proctor_runner::statistics::{
    Comparison, Regression, Rule, SuccessRate, Summary, TestRuns, Verdict, fisher_exact, hedges_g, holm,
    mean_interval, paired_permutation, pass_all, pass_any, welch,
};
use proptest::prelude::*;

/// Any double, numbers or not, with scores and constants among them.
fn value() -> impl Strategy<Value = f64> {
    prop_oneof![
        4 => 0.0..100.0,
        2 => prop_oneof![Just(0.0), Just(100.0)],
        1 => any::<f64>(),
    ]
}

fn values() -> impl Strategy<Value = Vec<f64>> {
    prop::collection::vec(value(), 0..12)
}

fn test_runs() -> impl Strategy<Value = TestRuns> {
    let counts = prop_oneof![4 => (0_u32..12, 0_u32..12), 1 => (0_u32..100_000, 0_u32..100_000), 1 => Just((u32::MAX, u32::MAX))];
    ("[a-f]", values(), values(), values(), counts).prop_map(|(name, scores, costs, latencies, counts)| {
        TestRuns { name, scores, costs, latencies, successes: counts.0, failures: counts.1 }
    })
}

fn near(left: f64, right: f64) -> bool {
    left == right || (left - right).abs() <= 1e-9 * left.abs().max(right.abs()).max(1e-6)
}

proptest! {
    #[test]
    fn an_interval_contains_the_mean(values in values()) {
        if let Some(summary) = Summary::of(&values) {
            prop_assert_eq!(summary.n + summary.ignored, values.len());
            prop_assert!(summary.min <= summary.median && summary.median <= summary.max);
            prop_assert_eq!(summary.interval.is_some(), summary.n >= 2);
            prop_assert!(summary.interval.is_none_or(|interval| interval.contains(summary.mean)));
            prop_assert_eq!(summary.interval, mean_interval(&values));
        } else {
            prop_assert!(values.iter().all(|value| value.is_nan() || value.abs() > 1e100));
        }
    }

    #[test]
    fn a_summary_does_not_depend_on_the_order(values in prop::collection::vec(0.0..100.0, 1..12)) {
        let reversed: Vec<f64> = values.iter().rev().copied().collect();
        let (left, right) = (Summary::of(&values).unwrap(), Summary::of(&reversed).unwrap());
        prop_assert_eq!((left.n, left.min, left.median, left.max), (right.n, right.min, right.median, right.max));
        prop_assert!(near(left.mean, right.mean));
    }

    #[test]
    fn a_rate_lies_in_its_interval(successes in 0_u32..500, failures in 0_u32..500) {
        if let Some(rate) = SuccessRate::new(successes, failures) {
            prop_assert!(rate.interval.contains(rate.rate));
            prop_assert!(rate.interval.low >= 0.0 && rate.interval.high <= 1.0);
            let mirrored = SuccessRate::new(failures, successes).unwrap();
            prop_assert!(near(rate.interval.low, 1.0 - mirrored.interval.high));
            prop_assert_eq!(rate.flaky, successes > 0 && failures > 0);
        }
    }

    #[test]
    fn more_tries_pass_more_often_and_all_together_less_often(successes in 0_u32..60, failures in 0_u32..60, k in 1_u32..60) {
        let runs = successes + failures;
        prop_assume!(k < runs);
        let any = |k| pass_any(successes, runs, k).unwrap();
        let all = |k| pass_all(successes, runs, k).unwrap();
        prop_assert!(any(k + 1) >= any(k) - 1e-12);
        prop_assert!(all(k + 1) <= all(k) + 1e-12);
        prop_assert!(all(k) <= any(k) + 1e-12);
    }

    #[test]
    fn exchanged_samples_exchange_the_signs(after in values(), before in values()) {
        let (test, mirrored) = (welch(&after, &before), welch(&before, &after));
        prop_assert_eq!(test.is_some(), mirrored.is_some());
        if let (Some(test), Some(mirrored)) = (test, mirrored) {
            prop_assert!((0.0..=1.0).contains(&test.p) && !test.t.is_nan());
            prop_assert_eq!(test.t, -mirrored.t);
            prop_assert_eq!(test.p, mirrored.p);
            prop_assert_eq!(test.p_less, mirrored.p_greater);
            prop_assert!(near(test.p_less + test.p_greater, 1.0));
            prop_assert!(near(test.p, 2.0 * test.p_less.min(test.p_greater)));
        }
        let (g, mirrored) = (hedges_g(&after, &before), hedges_g(&before, &after));
        prop_assert_eq!(g, mirrored.map(|g| -g));
        prop_assert!(g.is_none_or(f64::is_finite));
    }

    #[test]
    fn fisher_is_symmetric(a in 0_u32..40, b in 0_u32..40, c in 0_u32..40, d in 0_u32..40) {
        let p = fisher_exact((a, b), (c, d));
        prop_assert!(p > 0.0 && p <= 1.0);
        prop_assert!(near(p, fisher_exact((c, d), (a, b))));
        prop_assert!(near(p, fisher_exact((b, a), (d, c))));
    }

    #[test]
    fn holm_keeps_the_order_and_never_lowers(values in prop::collection::vec(0.0..=1.0_f64, 0..40)) {
        let adjusted = holm(&values);
        prop_assert_eq!(adjusted.len(), values.len());
        for (p, adjusted_p) in values.iter().zip(&adjusted) {
            prop_assert!(adjusted_p >= p && *adjusted_p <= 1.0);
            for (other, adjusted_other) in values.iter().zip(&adjusted) {
                prop_assert!(p > other || adjusted_p <= adjusted_other);
            }
        }
    }

    #[test]
    fn a_permutation_test_knows_neither_order_nor_sign(differences in prop::collection::vec(-50.0..50.0_f64, 1..12)) {
        let p = paired_permutation(&differences, 0, 0).unwrap().p;
        let reversed: Vec<f64> = differences.iter().rev().copied().collect();
        let negated: Vec<f64> = differences.iter().map(|difference| -difference).collect();
        prop_assert!(p > 0.0 && p <= 1.0);
        prop_assert_eq!(p, paired_permutation(&reversed, 0, 0).unwrap().p);
        prop_assert_eq!(p, paired_permutation(&negated, 0, 0).unwrap().p);
    }

    #[test]
    fn any_results_can_be_compared(
        before in prop::collection::vec(test_runs(), 0..10),
        after in prop::collection::vec(test_runs(), 0..10),
        seed in any::<u64>(),
    ) {
        let rule = Rule::default().with_seed(seed);
        let comparison = Comparison::new(&before, &after, &rule);
        let names: std::collections::BTreeSet<&str> =
            before.iter().chain(&after).map(|test| test.name.as_str()).collect();
        prop_assert_eq!(comparison.tests.len(), names.len());
        let mirrored = Comparison::new(&after, &before, &rule);
        prop_assert_eq!(comparison.hypotheses, mirrored.hypotheses);
        for test in &comparison.tests {
            let opposite = match test.verdict {
                Verdict::New => Verdict::Removed,
                Verdict::Removed => Verdict::New,
                other => other,
            };
            let other = mirrored.tests.iter().find(|other| other.name == test.name).unwrap();
            if matches!(test.verdict, Verdict::New | Verdict::Removed) {
                prop_assert_eq!(other.verdict, opposite);
                prop_assert!(test.effects.is_empty());
            }
            for (effect, other) in test.effects.iter().zip(&other.effects) {
                prop_assert_eq!(effect.verdict == Verdict::Worse, other.verdict == Verdict::Better);
                prop_assert_eq!(effect.verdict == Verdict::Better, other.verdict == Verdict::Worse);
                prop_assert!(effect.adjusted_p.is_none_or(|adjusted| adjusted >= effect.p.unwrap()));
            }
        }
        // Nothing is green without a hypothesis that could have shown a loss.
        if comparison.hypotheses == 0 {
            let is_undecided = matches!(comparison.regression, Regression::Undecided { .. });
            prop_assert!(is_undecided);
        }
    }

    #[test]
    fn single_runs_of_few_tests_are_not_enough(before in 0.0..100.0, after in 0.0..100.0, won in any::<bool>()) {
        let runs = |score: f64, success: bool| TestRuns {
            name: "a".to_owned(),
            scores: vec![score],
            costs: vec![score],
            latencies: vec![score],
            successes: u32::from(success),
            failures: u32::from(!success),
        };
        let comparison = Comparison::new(&[runs(before, !won)], &[runs(after, won)], &Rule::default());
        prop_assert_eq!(comparison.verdict, Verdict::NotEnoughRuns);
        prop_assert!(comparison.tests[0].effects.iter().all(|effect| effect.verdict == Verdict::NotEnoughRuns));
        prop_assert_eq!(comparison.regression, Regression::Undecided { interval: None, runs: Some(5) });
    }
}
