//! First and second moments of a list of numbers.

/// Largest magnitude of a value that counts: the square of a larger one might not be finite.
pub const MAGNITUDE: f64 = 1e100;

/// Count, mean and sum of squares of the usable values of a list.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Moments {
    pub(crate) n: usize,
    pub(crate) mean: f64,
    /// Sum of squared distances from the mean.
    squares: f64,
}

impl Moments {
    /// `None` if no value is usable.
    pub(crate) fn of(values: &[f64]) -> Option<Moments> {
        let usable = || values.iter().copied().filter(|value| is_usable(*value));
        let n = usable().count();
        let first = usable().next()?;
        // The sum of equal values, divided, need not be that value: constants must have no deviation at all.
        #[expect(clippy::float_cmp, reason = "only equal values are constant")]
        let is_constant = usable().all(|value| value == first);
        if is_constant {
            return Some(Moments { n, mean: first, squares: 0.0 });
        }
        let mean = usable().sum::<f64>() / n as f64;
        let squares = usable().map(|value| (value - mean).powi(2)).sum();
        Some(Moments { n, mean, squares })
    }

    /// The sample variance; `None` with fewer than two values.
    pub(crate) fn variance(&self) -> Option<f64> {
        (self.n >= 2).then(|| self.squares / (self.n - 1) as f64)
    }

    /// The sum of squared distances from the mean.
    pub(crate) fn squares(&self) -> f64 {
        self.squares
    }
}

/// Whether a value counts.
pub(crate) fn is_usable(value: f64) -> bool {
    value.abs() <= MAGNITUDE
}
