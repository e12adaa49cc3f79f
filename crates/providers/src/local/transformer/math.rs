//! Softmax, GELU and layer normalisation, written so that the compiler vectorises them.

use std::f32::consts::{FRAC_1_SQRT_2, LOG2_E};

const LANES: usize = 8;

/// e to the power of `x`, right to about seven digits; for x below -87 the smallest normal number, above 88 the value at 88.
#[inline]
pub(super) fn exponential(x: f32) -> f32 {
    // Adding it leaves the nearest whole number in the lowest bits of the mantissa.
    const ROUND: f32 = 12_582_912.0;
    // ln 2 in two parts: the first has so few digits that its product with a whole number is exact.
    const LN_2_HIGH: f32 = 0.693_359_4;
    const LN_2_LOW: f32 = -2.121_944_4e-4;
    let x = at_most(at_least(x, -87.0), 88.0);
    let shifted = x * LOG2_E + ROUND;
    let whole = shifted - ROUND;
    let r = x - whole * LN_2_HIGH - whole * LN_2_LOW;
    let series = 1.0 / 720.0;
    let series = series * r + 1.0 / 120.0;
    let series = series * r + 1.0 / 24.0;
    let series = series * r + 1.0 / 6.0;
    let series = series * r + 0.5;
    let series = series * r + 1.0;
    let series = series * r + 1.0;
    let power_of_two = f32::from_bits((shifted.to_bits() << 23).wrapping_add(1.0f32.to_bits()));
    series * power_of_two
}

/// The Gaussian error linear unit: x · Φ(x).
#[inline]
pub(super) fn gelu(x: f32) -> f32 {
    0.5 * x * (1.0 + error_function(x * FRAC_1_SQRT_2))
}

/// Abramowitz and Stegun, Handbook of Mathematical Functions, 7.1.26: within 1.5e-7 everywhere.
#[inline]
fn error_function(x: f32) -> f32 {
    let size = x.abs();
    let t = 1.0 / (1.0 + 0.327_591_1 * size);
    let series = 1.061_405_4;
    let series = series * t - 1.453_152;
    let series = series * t + 1.421_413_8;
    let series = series * t - 0.284_496_72;
    let series = series * t + 0.254_829_6;
    (1.0 - series * t * exponential(-size * size)).copysign(x)
}

/// Softmax: converts a row of scores to shares that add up to 1.
pub(super) fn softmax(row: &mut [f32]) {
    let highest = fold(row, f32::NEG_INFINITY, at_least);
    for value in row.iter_mut() {
        *value = exponential(*value - highest);
    }
    let share = 1.0 / fold(row, 0.0, |sum, value| sum + value);
    for value in row {
        *value *= share;
    }
}

/// Moves and stretches a row to mean 0 and variance 1, then by the weight and bias of each column.
pub(super) fn layer_norm(row: &mut [f32], weight: &[f32], bias: &[f32], epsilon: f32) {
    let count = row.len() as f32;
    let mean = fold(row, 0.0, |sum, value| sum + value) / count;
    for value in row.iter_mut() {
        *value -= mean;
    }
    let variance = squares(row) / count;
    let scale = 1.0 / (variance + epsilon).sqrt();
    for ((value, weight), bias) in row.iter_mut().zip(weight).zip(bias) {
        *value = *value * scale * weight + bias;
    }
}

/// Scales the vector to length 1. One that has no direction (all zeros, or not finite) becomes all zeros.
pub(super) fn normalize(vector: &mut [f32]) {
    let length = squares(vector).sqrt();
    let scale = if length.is_finite() && length > 1e-12 { 1.0 / length } else { 0.0 };
    for value in vector {
        *value = if scale > 0.0 { *value * scale } else { 0.0 };
    }
}

fn squares(values: &[f32]) -> f32 {
    let chunks = values.chunks_exact(LANES);
    let rest: f32 = chunks.remainder().iter().map(|value| value * value).sum();
    let mut lanes = [0.0; LANES];
    for chunk in chunks {
        for (lane, value) in lanes.iter_mut().zip(chunk) {
            *lane += value * value;
        }
    }
    lanes.iter().sum::<f32>() + rest
}

/// Folds eight columns side by side, since the order in which floats are added may not be changed by the compiler. `start`
/// must be neutral.
#[inline]
fn fold(values: &[f32], start: f32, operation: impl Fn(f32, f32) -> f32) -> f32 {
    let chunks = values.chunks_exact(LANES);
    let rest = chunks.remainder().iter().fold(start, |folded, &value| operation(folded, value));
    let mut lanes = [start; LANES];
    for chunk in chunks {
        for (lane, value) in lanes.iter_mut().zip(chunk) {
            *lane = operation(*lane, *value);
        }
    }
    lanes.iter().fold(rest, |folded, &value| operation(folded, value))
}

/// `f32::max` also has to sort out NaN, which costs it the one-instruction form.
#[inline]
fn at_least(value: f32, limit: f32) -> f32 {
    if value > limit { value } else { limit }
}

#[inline]
fn at_most(value: f32, limit: f32) -> f32 {
    if value < limit { value } else { limit }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exponential_is_right_to_seven_digits() {
        for step in -8600..8800 {
            let x = step as f32 / 100.0;
            let exact = f64::from(x).exp();
            assert!((f64::from(exponential(x)) / exact - 1.0).abs() < 4e-7, "at {x}");
        }
        assert!(exponential(-1000.0) < 1e-37);
        assert!(exponential(1000.0).is_finite());
    }

    #[test]
    fn error_function_at_known_points() {
        let known =
            [(0.0, 0.0), (0.1, 0.112_462_916), (0.5, 0.520_499_9), (1.0, 0.842_700_8), (2.0, 0.995_322_3)];
        for (x, value) in known {
            assert!((error_function(x) - value).abs() < 5e-7, "at {x}");
            assert!((error_function(-x) + value).abs() < 5e-7, "at -{x}");
        }
        assert!((gelu(1.0) - 0.841_344_8).abs() < 1e-6);
        assert!(gelu(-20.0).abs() < 1e-5);
        assert!((gelu(20.0) - 20.0).abs() < 1e-5);
    }

    #[test]
    fn shares_add_up_to_one_for_every_length() {
        for length in 1..40u8 {
            let mut row: Vec<f32> = (0..length).map(|index| f32::from(index) * 2.0 - 50.0).collect();
            softmax(&mut row);
            assert!((row.iter().sum::<f32>() - 1.0).abs() < 1e-6);
            assert!(row.windows(2).all(|pair| pair[0] < pair[1]));
        }
    }

    #[test]
    fn layer_norm_has_mean_and_variance_of_its_weights() {
        let mut row: Vec<f32> = (0..19u8).map(f32::from).collect();
        layer_norm(&mut row, &[2.0; 19], &[1.0; 19], 0.0);
        let mean = row.iter().sum::<f32>() / 19.0;
        let variance = row.iter().map(|value| (value - mean).powi(2)).sum::<f32>() / 19.0;
        assert!((mean - 1.0).abs() < 1e-5 && (variance - 4.0).abs() < 1e-4);
    }

    #[test]
    fn a_vector_without_direction_becomes_zero() {
        for bad in [[0.0, 0.0], [f32::NAN, 1.0], [f32::INFINITY, 1.0]] {
            let mut vector = bad;
            normalize(&mut vector);
            assert!(vector.iter().all(|value| value.abs() < f32::MIN_POSITIVE));
        }
        let mut vector = [3.0, 4.0];
        normalize(&mut vector);
        assert!((vector[0] - 0.6).abs() < 1e-6 && (vector[1] - 0.8).abs() < 1e-6);
    }
}
