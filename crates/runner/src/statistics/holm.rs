//! Holm's step-down correction for several tests.

/// Holm's adjusted p values, in the order of the input: each is at most the significance level exactly if Holm's procedure rejects that
/// hypothesis at that level. Values above 1 or not a number count as 1, values below 0 as 0.
pub fn holm(values: &[f64]) -> Vec<f64> {
    let mut order: Vec<(usize, f64)> =
        values.iter().map(|p| if p.is_nan() { 1.0 } else { p.clamp(0.0, 1.0) }).enumerate().collect();
    order.sort_by(|(_, left), (_, right)| left.total_cmp(right));
    let mut adjusted = vec![1.0; values.len()];
    let mut largest: f64 = 0.0;
    for (rank, (index, p)) in order.into_iter().enumerate() {
        // The running maximum keeps the order: a larger p never has a smaller adjusted one.
        largest = largest.max((p * (values.len() - rank) as f64).min(1.0));
        if let Some(place) = adjusted.get_mut(index) {
            *place = largest;
        }
    }
    adjusted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn adjusted_values_are_in_the_order_of_the_input() {
        assert_eq!(holm(&[0.04, 0.01, 0.03]), [0.06, 0.03, 0.06]);
    }

    #[test]
    fn no_hypothesis_and_no_number() {
        assert!(holm(&[]).is_empty());
        assert_eq!(holm(&[f64::NAN, -1.0, 7.0, f64::INFINITY]), [1.0, 0.0, 1.0, 1.0]);
    }
}
