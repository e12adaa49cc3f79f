//! Equality with SciPy's and statsmodels' values to 1e-9. `reference.py` made `reference.json`, which names the versions.

use proctor_runner::statistics::{
    SuccessRate, Summary, fisher_exact, hedges_g, holm, mean_interval, paired_permutation, pass_all,
    pass_any, student_t_quantile, student_t_two_sided, student_t_upper, welch,
};
use serde_json::Value;

fn reference() -> Value {
    serde_json::from_str(include_str!("reference.json")).unwrap()
}

/// Runs a check on every case of a kind.
fn each(kind: &str, check: impl Fn(&Value)) {
    let reference = reference();
    let cases = reference[kind].as_array().unwrap();
    assert!(cases.len() >= 40, "{kind}");
    cases.iter().for_each(check);
}

fn number(case: &Value, name: &str) -> f64 {
    case[name].as_f64().unwrap_or_else(|| panic!("{name} of {case}"))
}

fn numbers(case: &Value, name: &str) -> Vec<f64> {
    case[name].as_array().unwrap().iter().map(|value| value.as_f64().unwrap()).collect()
}

fn count(value: &Value) -> u32 {
    value.as_u64().unwrap().try_into().unwrap()
}

/// Relative error of at most 1e-9, also of tiny p values; near 0 an absolute one of 1e-14, which rounding of the input causes.
#[track_caller]
fn assert_near(value: f64, case: &Value, name: &str) {
    let expected = number(case, name);
    let error = (value - expected).abs();
    assert!(error <= 1e-9 * expected.abs() || error <= 1e-14, "{name}: {value:e}, not {expected:e}: {case}");
}

#[test]
fn summaries() {
    each("summaries", |case| {
        let summary = Summary::of(&numbers(case, "values")).unwrap();
        assert_near(summary.mean, case, "mean");
        assert_near(summary.deviation.unwrap(), case, "deviation");
        assert_near(summary.median, case, "median");
        assert_near(summary.variation.unwrap(), case, "variation");
        assert_near(summary.interval.unwrap().low, case, "low");
        assert_near(summary.interval.unwrap().high, case, "high");
    });
}

#[test]
fn exact_intervals_of_rates() {
    each("rates", |case| {
        let (successes, runs) = (count(&case["successes"]), count(&case["runs"]));
        let rate = SuccessRate::new(successes, runs - successes).unwrap();
        assert_near(rate.interval.low, case, "low");
        assert_near(rate.interval.high, case, "high");
    });
}

#[test]
fn passes_of_k_runs() {
    each("passes", |case| {
        let (successes, runs, k) = (count(&case["successes"]), count(&case["runs"]), count(&case["k"]));
        assert_near(pass_any(successes, runs, k).unwrap(), case, "any");
        assert_near(pass_all(successes, runs, k).unwrap(), case, "all");
    });
}

#[test]
fn welch_and_hedges() {
    each("welches", |case| {
        let (after, before) = (numbers(case, "after"), numbers(case, "before"));
        let test = welch(&after, &before).unwrap();
        assert_near(test.t, case, "t");
        assert_near(test.freedom, case, "freedom");
        assert_near(test.p, case, "p");
        assert_near(test.p_less, case, "less");
        assert_near(test.p_greater, case, "greater");
        assert_near(test.interval.low, case, "low");
        assert_near(test.interval.high, case, "high");
        assert_near(hedges_g(&after, &before).unwrap(), case, "g");
    });
}

#[test]
fn fisher() {
    each("fishers", |case| {
        let table: Vec<u32> = case["table"].as_array().unwrap().iter().map(count).collect();
        assert_near(fisher_exact((table[0], table[1]), (table[2], table[3])), case, "p");
    });
}

#[test]
fn exact_permutations_and_paired_intervals() {
    each("permutations", |case| {
        let differences = numbers(case, "differences");
        let test = paired_permutation(&differences, 0, 0).unwrap();
        assert!(test.exact);
        assert_near(test.p, case, "p");
        let interval = mean_interval(&differences).unwrap();
        assert_near(interval.low, case, "low");
        assert_near(interval.high, case, "high");
    });
}

#[test]
fn holm_as_statsmodels() {
    each("holms", |case| {
        let adjusted = holm(&numbers(case, "values"));
        let expected = numbers(case, "adjusted");
        assert_eq!(adjusted.len(), expected.len());
        for (ours, theirs) in adjusted.iter().zip(&expected) {
            assert!((ours - theirs).abs() <= 1e-9 * theirs, "{ours} {theirs}: {case}");
        }
    });
}

#[test]
fn tails_and_quantiles_of_student() {
    each("quantiles", |case| {
        let (t, freedom) = (number(case, "t"), number(case, "freedom"));
        assert_near(student_t_two_sided(t, freedom), case, "p");
        assert_near(student_t_upper(t, freedom), case, "upper");
        assert_near(student_t_quantile(0.975, freedom), case, "quantile");
    });
}
