#![expect(clippy::float_cmp, reason = "these values are exact")]

use super::*;

#[test]
fn a_constant_sample_has_no_deviation_at_all() {
    // 0.1 + 0.1 + 0.1 is not 0.3 in doubles.
    let summary = Summary::of(&[0.1; 3]).unwrap();
    assert_eq!((summary.mean, summary.deviation, summary.variation), (0.1, Some(0.0), Some(0.0)));
    assert_eq!(summary.interval, Some(Interval { low: 0.1, high: 0.1 }));
    assert_eq!(summary.stability, Some(Stability::Stable));
    assert_eq!(Summary::of(&[0.0; 2]).unwrap().stability, Some(Stability::Stable));
}

#[test]
fn one_value_has_no_spread() {
    let summary = Summary::of(&[7.0]).unwrap();
    assert_eq!((summary.n, summary.mean, summary.median, summary.min, summary.max), (1, 7.0, 7.0, 7.0, 7.0));
    assert_eq!((summary.deviation, summary.variation, summary.stability), (None, None, None));
    assert_eq!(summary.interval, None);
}

#[test]
fn no_value_has_no_summary() {
    assert_eq!(Summary::of(&[]), None);
    assert_eq!(Summary::of(&[f64::NAN, f64::INFINITY]), None);
    assert_eq!(mean_interval(&[]), None);
    assert_eq!(mean_interval(&[1.0]), None);
}

#[test]
fn values_that_are_no_numbers_are_left_out_and_counted() {
    let summary = Summary::of(&[1.0, f64::NAN, 3.0, f64::NEG_INFINITY, 1e300]).unwrap();
    assert_eq!((summary.n, summary.ignored, summary.mean, summary.max), (2, 3, 2.0, 3.0));
}

#[test]
fn classes_of_spread() {
    for (variation, stability) in [
        (Some(0.0), Stability::Stable),
        (Some(0.049), Stability::Stable),
        (Some(0.05), Stability::Moderate),
        (Some(0.149), Stability::Moderate),
        (Some(0.15), Stability::Unstable),
        (Some(0.299), Stability::Unstable),
        (Some(0.30), Stability::Critical),
        (None, Stability::Critical),
    ] {
        assert_eq!(Stability::of(variation), stability, "{variation:?}");
    }
}

#[test]
fn a_mean_of_zero_has_no_coefficient_of_variation() {
    let summary = Summary::of(&[-1.0, 1.0]).unwrap();
    assert_eq!((summary.variation, summary.stability), (None, Some(Stability::Critical)));
}

#[test]
fn medians() {
    assert_eq!(Summary::of(&[3.0, 1.0, 2.0]).unwrap().median, 2.0);
    assert_eq!(Summary::of(&[4.0, 1.0, 2.0, 3.0]).unwrap().median, 2.5);
}
