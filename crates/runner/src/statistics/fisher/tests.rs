#![expect(clippy::float_cmp, reason = "these values are exact")]

use super::*;

#[test]
fn all_against_none() {
    // One table of C(10, 5) and its mirror image.
    assert!((fisher_exact((5, 0), (0, 5)) - 2.0 / 252.0).abs() < 1e-15);
    // Unequal sides have no mirror image.
    assert!((fisher_exact((5, 0), (0, 4)) - 1.0 / 126.0).abs() < 1e-15);
}

#[test]
fn no_runs_show_nothing() {
    assert_eq!(fisher_exact((0, 0), (0, 0)), 1.0);
    assert_eq!(fisher_exact((0, 0), (3, 4)), 1.0);
    assert_eq!(fisher_exact((1, 0), (0, 1)), 1.0);
}

#[test]
fn the_largest_counts_end() {
    let many = u32::MAX;
    assert_eq!(fisher_exact((many, many), (many, many)), 1.0);
    assert!(fisher_exact((many, 0), (0, many)) < 1e-300);
}
