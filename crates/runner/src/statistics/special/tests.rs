//! Reference values by arithmetic with 40 digits.

#![expect(clippy::float_cmp, reason = "these values are exact")]

use super::*;

#[track_caller]
fn assert_near(value: f64, expected: f64, tolerance: f64) {
    assert!((value - expected).abs() <= tolerance * expected.abs().max(0.1), "{value:e}, not {expected:e}");
}

#[test]
fn logarithms_of_gamma() {
    for (x, expected) in [
        (0.1, 2.252_712_651_734_206),
        (0.5, 0.572_364_942_924_700_1),
        (1.5, -0.120_782_237_635_245_22),
        (3.25, 0.935_801_931_108_725_3),
        (15.9, 27.625_493_215_168_69),
        (16.0, 27.899_271_383_840_89),
        (100.5, 361.435_540_467_777_6),
        (1e5, 1_051_287.708_973_657),
        (1e9, 19_723_265_827.503_716),
    ] {
        assert_near(ln_gamma(x), expected, 1e-13);
    }
}

#[test]
fn logarithms_of_beta() {
    for (a, b, expected) in [
        (0.5, 0.5, 1.144_729_885_849_400_2),
        (3.0, 200.0, -15.216_742_791_448_372),
        (20.0, 30.0, -33.968_820_791_977_38),
        (50_000.0, 0.5, -4.837_521_699_280_441),
        (700_000.0, 300_000.0, -610_869.510_547_451_6),
    ] {
        assert_near(ln_beta(a, b), expected, 1e-13);
        assert_near(ln_beta(b, a), expected, 1e-13);
    }
}

#[test]
fn incomplete_beta_near_the_mean_and_in_the_tail() {
    for (a, b, x, expected) in [
        (2.0, 3.0, 0.25, 0.261_718_75),
        (500.0, 700.0, 0.4166, 0.499_429_516_854_324_8),
        (7_000.0, 3_000.0, 0.7001, 0.507_544_730_537_474_3),
        (700_000.0, 300_000.0, 0.7, 0.499_883_924_858_423_9),
        (700_000.0, 300_000.0, 0.6995, 0.137_628_905_702_220_95),
    ] {
        assert_near(beta_regularised(a, b, x, 1.0 - x), expected, 1e-10);
        assert_near(beta_regularised(b, a, 1.0 - x, x), 1.0 - expected, 1e-10);
    }
    let tail = beta_regularised(700_000.0, 300_000.0, 0.697, 0.303);
    assert!((tail / 3.191_816_184_583_377e-11 - 1.0).abs() < 1e-9, "{tail:e}");
}

#[test]
fn ends_of_the_incomplete_beta() {
    assert_eq!(beta_regularised(2.0, 3.0, 0.0, 1.0), 0.0);
    assert_eq!(beta_regularised(2.0, 3.0, 1.0, 0.0), 1.0);
}
