#![expect(clippy::float_cmp, reason = "these values are exact")]

use super::*;

#[test]
fn tails_of_one_degree_of_freedom_are_those_of_cauchy() {
    for t in [1e-8_f64, 0.3, 1.0, 12.7, 1e6] {
        let exact = 0.5 - t.atan() / std::f64::consts::PI;
        let exact = if t > 1e3 { 1.0 / (std::f64::consts::PI * t) } else { exact };
        assert!((student_t_upper(t, 1.0) / exact - 1.0).abs() < 1e-9, "{t}");
    }
}

#[test]
fn small_tails_of_many_degrees_of_freedom_keep_their_digits() {
    // By arbitrary-precision arithmetic.
    let p = student_t_two_sided(30.0, 1000.0);
    assert!((p / 1.537_468_744_404_348e-141 - 1.0).abs() < 1e-9, "{p:e}");
}

#[test]
fn arguments_that_are_no_numbers_show_nothing() {
    assert_eq!(student_t_two_sided(f64::NAN, 3.0), 1.0);
    assert_eq!(student_t_two_sided(1.0, f64::NAN), 1.0);
    assert_eq!(student_t_two_sided(1.0, 0.0), 1.0);
    assert_eq!(student_t_two_sided(1.0, f64::INFINITY), 1.0);
    assert!(student_t_two_sided(1.0, 1e300) <= 1.0);
    assert_eq!(student_t_two_sided(f64::NEG_INFINITY, 3.0), 0.0);
    assert_eq!(student_t_upper(f64::NEG_INFINITY, 3.0), 1.0);
}

#[test]
fn quantiles_are_symmetric() {
    assert_eq!(student_t_quantile(0.025, 7.5), -student_t_quantile(0.975, 7.5));
    assert!(student_t_quantile(0.5, 7.5).abs() < 1e-12);
}

#[test]
fn choices() {
    assert_eq!((choose(10, 5), choose(10, 0), choose(20, 19), choose(3, 4)), (252.0, 1.0, 20.0, 1.0));
    assert!(choose(1_000_000, 500_000) > 1e300);
}
