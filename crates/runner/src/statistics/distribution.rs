//! Distribution functions: tails and quantiles of Student's t, quantiles of the beta distribution.

use super::special::{beta_regularised, ln_gamma};

/// Halvings of an interval of doubles until it cannot get smaller: 64 reach neighbouring doubles from [0, 1] down to 1e-19, the rest is
/// reserve for small quantiles.
const HALVINGS: usize = 200;

/// Probability that |T| of Student's distribution is at least |t|; 1 if `t` is no number, or `freedom` not positive and finite.
pub fn student_t_two_sided(t: f64, freedom: f64) -> f64 {
    let t = t.abs();
    if t.is_infinite() {
        return 0.0;
    }
    if t.is_nan() || !freedom.is_finite() || freedom <= 0.0 {
        return 1.0;
    }
    let square = t * t;
    // Of the two forms, the one whose result is not a small difference of numbers near 1.
    let p = if square <= 1.0 {
        1.0 - beta_regularised(0.5, freedom / 2.0, square / (freedom + square), freedom / (freedom + square))
    } else {
        beta_regularised(freedom / 2.0, 0.5, freedom / (freedom + square), square / (freedom + square))
    };
    p.clamp(0.0, 1.0)
}

/// Probability that T of Student's distribution is at least t.
pub fn student_t_upper(t: f64, freedom: f64) -> f64 {
    let tail = student_t_two_sided(t, freedom) / 2.0;
    if t < 0.0 { 1.0 - tail } else { tail }
}

/// The t below which Student's distribution has this probability, between 0 and 1.
pub fn student_t_quantile(probability: f64, freedom: f64) -> f64 {
    if probability < 0.5 {
        return -student_t_quantile(1.0 - probability, freedom);
    }
    let tail = 1.0 - probability;
    // The first power of two beyond the quantile.
    let mut high = 1.0;
    for _ in 0..1_000 {
        if student_t_upper(high, freedom) <= tail {
            break;
        }
        high *= 2.0;
    }
    bisect(0.0, high, |t| student_t_upper(t, freedom) > tail)
}

/// The x below which the beta distribution has this probability.
pub(crate) fn beta_quantile(probability: f64, a: f64, b: f64) -> f64 {
    bisect(0.0, 1.0, |x| beta_regularised(a, b, x, 1.0 - x) < probability)
}

/// Number of ways to choose `k` of `n`; a lower bound of it beyond 1e300.
pub(crate) fn choose(n: usize, k: usize) -> f64 {
    let k = k.min(n.saturating_sub(k));
    let mut ways = 1.0;
    for i in 1..=k {
        ways = ways * (n - k + i) as f64 / i as f64;
        if ways > 1e300 {
            break;
        }
    }
    ways
}

/// Ratio of gamma functions, Γ(x) / Γ(x − 1/2).
pub(crate) fn gamma_half_step(x: f64) -> f64 {
    (ln_gamma(x) - ln_gamma(x - 0.5)).exp()
}

/// The point of an interval at which a condition that is true on its left becomes false.
fn bisect(mut low: f64, mut high: f64, is_left: impl Fn(f64) -> bool) -> f64 {
    for _ in 0..HALVINGS {
        let middle = f64::midpoint(low, high);
        if middle <= low || middle >= high {
            break;
        }
        if is_left(middle) {
            low = middle;
        } else {
            high = middle;
        }
    }
    f64::midpoint(low, high)
}

#[cfg(test)]
mod tests;
