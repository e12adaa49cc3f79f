use super::*;

#[test]
fn constant_samples_are_defined() {
    let equal = welch(&[0.1; 3], &[0.1; 5]).unwrap();
    assert_eq!((equal.t, equal.p, equal.freedom), (0.0, 1.0, 6.0));
    let worse = welch(&[1.0; 3], &[2.0; 3]).unwrap();
    assert_eq!((worse.t, worse.p, worse.p_less, worse.p_greater), (f64::NEG_INFINITY, 0.0, 0.0, 1.0));
    assert_eq!(worse.interval, Interval { low: -1.0, high: -1.0 });
    assert_eq!(hedges_g(&[0.1; 3], &[0.1; 5]), Some(0.0));
    assert_eq!(hedges_g(&[1.0; 3], &[2.0; 3]), None);
}

#[test]
fn one_constant_sample_leaves_the_freedom_of_the_other() {
    let test = welch(&[1.0, 2.0, 3.0], &[5.0; 9]).unwrap();
    assert!((test.freedom - 2.0).abs() < 1e-12);
}

#[test]
fn too_few_values_are_no_test() {
    for sample in [&[][..], &[1.0], &[1.0, f64::NAN]] {
        assert_eq!(welch(sample, &[1.0, 2.0]), None);
        assert_eq!(welch(&[1.0, 2.0], sample), None);
        assert_eq!(hedges_g(sample, &[1.0, 2.0]), None);
        assert_eq!(hedges_g(&[1.0, 2.0], sample), None);
    }
}

#[test]
fn extreme_values_stay_numbers() {
    let values = [1e100, -1e100, 1e-300, 0.0];
    let test = welch(&values, &values).unwrap();
    assert_eq!((test.t, test.p), (0.0, 1.0));
    let tiny = welch(&[1e-200, 2e-200], &[3e-200, 5e-200]).unwrap();
    assert!((0.0..=1.0).contains(&tiny.p) && !tiny.t.is_nan());
}
