#![expect(clippy::float_cmp, reason = "these values are exact")]

use super::*;

#[test]
fn differences_of_one_sign_have_the_smallest_p() {
    for pairs in 1..=EXACT_PAIRS {
        let result = paired_permutation(&vec![-1.5; pairs], 9, 1).unwrap();
        assert_eq!((result.p, result.exact, result.assignments), (smallest_p(pairs), true, 1 << pairs));
    }
}

#[test]
fn sums_that_differ_by_rounding_are_equal() {
    // 0.1 + 0.2 − 0.3 is not 0 in doubles: all assignments with this or a larger sum must count.
    let tenths = paired_permutation(&[0.1, 0.2, 0.3, 0.6], 9, 1).unwrap();
    let whole = paired_permutation(&[1.0, 2.0, 3.0, 6.0], 9, 1).unwrap();
    assert_eq!(tenths, whole);
    assert_eq!(paired_permutation(&[0.1, 0.2, -0.3], 9, 1).unwrap().p, 1.0);
}

#[test]
fn equal_results_show_nothing() {
    assert_eq!(paired_permutation(&[0.0; 5], 9, 1).unwrap().p, 1.0);
    assert_eq!(paired_permutation(&[0.0; 50], 99, 1).unwrap().p, 1.0);
}

#[test]
fn no_difference_is_no_test() {
    assert_eq!(paired_permutation(&[], 9, 1), None);
    assert_eq!(paired_permutation(&[f64::NAN, f64::INFINITY], 9, 1), None);
    assert_eq!(paired_permutation(&[f64::NAN, 1.0], 9, 1).unwrap().p, 1.0);
}

#[test]
fn drawn_p_counts_the_observed_assignment() {
    let result = paired_permutation(&[1.0; 200], 999, 1).unwrap();
    assert_eq!((result.p, result.exact, result.assignments), (1.0 / 1000.0, false, 999));
    assert_eq!(paired_permutation(&[1.0; 200], 0, 1).unwrap().p, 1.0);
}

#[test]
fn drawn_p_is_near_the_exact_one() {
    // 24 pairs of ±1 with a sum of 8: P(|S| ≥ 8) is a binomial tail.
    let differences: Vec<f64> = (0..24).map(|i| if i < 16 { 1.0 } else { -1.0 }).collect();
    let exact = 0.151_589_6;
    let drawn = paired_permutation(&differences, 99_999, 7).unwrap();
    assert!((drawn.p - exact).abs() < 0.005, "{drawn:?}");
    assert_eq!(drawn, paired_permutation(&differences, 99_999, 7).unwrap());
    assert_ne!(drawn, paired_permutation(&differences, 99_999, 8).unwrap());
}
