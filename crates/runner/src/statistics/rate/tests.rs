use super::*;

#[test]
fn rates_without_a_failure_are_not_certain() {
    let rate = SuccessRate::new(5, 0).unwrap();
    assert_eq!((rate.rate, rate.interval.high, rate.flaky), (1.0, 1.0, false));
    // The exact lower end is the fifth root of 0.025.
    assert!((rate.interval.low - 0.025_f64.powf(0.2)).abs() < 1e-12);
    assert!(SuccessRate::new(0, 5).unwrap().interval.low <= 0.0);
}

#[test]
fn both_outcomes_are_flaky() {
    assert!(SuccessRate::new(1, 4).unwrap().flaky);
    assert!(!SuccessRate::new(0, 4).unwrap().flaky);
}

#[test]
fn counts_that_are_no_sample() {
    assert_eq!(SuccessRate::new(0, 0), None);
    assert_eq!(SuccessRate::new(u32::MAX, 1), None);
    assert_eq!(SuccessRate::new(MOST_RUNS, 1), None);
    assert!(SuccessRate::new(MOST_RUNS, 0).is_some());
}

#[test]
fn passes_of_some_runs() {
    // Of 4 runs 2 succeed: of the 6 pairs one has two successes, and one has none.
    assert!((pass_any(2, 4, 2).unwrap() - 5.0 / 6.0).abs() < 1e-15);
    assert!((pass_all(2, 4, 2).unwrap() - 1.0 / 6.0).abs() < 1e-15);
    assert_eq!((pass_any(3, 4, 2), pass_all(3, 4, 4)), (Some(1.0), Some(0.0)));
    let rate = SuccessRate::new(2, 2).unwrap();
    assert_eq!((rate.pass_any(1), rate.pass_all(1)), (Some(0.5), Some(0.5)));
}

#[test]
fn passes_of_more_runs_than_there_were_are_unknown() {
    for (successes, runs, k) in [(1, 4, 5), (1, 4, 0), (5, 4, 2), (0, 0, 1)] {
        assert_eq!((pass_any(successes, runs, k), pass_all(successes, runs, k)), (None, None));
    }
}
