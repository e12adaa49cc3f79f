//! Special functions: logarithm of the gamma function, incomplete beta function.
//!
//! They are ours because statrs 0.19 stops its continued fraction after 140 terms and takes differences of large logarithms: with 100,000
//! runs its error nears 1e-9, with a million it is 5e-4.

use std::f64::consts::PI;

/// Argument from which on Stirling's series is exact to the last digits.
const STIRLING: f64 = 16.0;

/// Natural logarithm of the gamma function for positive arguments.
pub(super) fn ln_gamma(x: f64) -> f64 {
    if x < STIRLING {
        // Γ(x) = Γ(x + n) / (x (x + 1) … (x + n − 1))
        let mut product = 1.0;
        let mut shifted = x;
        while shifted < STIRLING {
            product *= shifted;
            shifted += 1.0;
        }
        return ln_gamma(shifted) - product.ln();
    }
    (x - 0.5) * x.ln() - x + 0.5 * (2.0 * PI).ln() + stirling(x)
}

/// Natural logarithm of the complete beta function for positive arguments.
pub(super) fn ln_beta(a: f64, b: f64) -> f64 {
    let (small, large) = (a.min(b), a.max(b));
    if large < STIRLING {
        return ln_gamma(small) + ln_gamma(large) - ln_gamma(small + large);
    }
    // Logarithms of gamma functions of large arguments are much larger than their difference, so that it is taken term by term.
    let sum = small + large;
    let ratio = -(large - 0.5) * (small / large).ln_1p() + stirling(large) - stirling(sum);
    if small < STIRLING {
        ln_gamma(small) + ratio - small * sum.ln() + small
    } else {
        ratio + (small - 0.5) * (small / sum).ln() - 0.5 * sum.ln() + 0.5 * (2.0 * PI).ln() + stirling(small)
    }
}

/// Regularised incomplete beta function at x, whose complement 1 − x is given too, because a difference would lose its digits.
pub(super) fn beta_regularised(a: f64, b: f64, x: f64, complement: f64) -> f64 {
    if x <= 0.0 {
        return 0.0;
    }
    if complement <= 0.0 {
        return 1.0;
    }
    // The fraction converges fast on this side of the mean only.
    if x <= (a + 1.0) / (a + b + 2.0) {
        beta_fraction(a, b, x, complement)
    } else {
        1.0 - beta_fraction(b, a, complement, x)
    }
}

/// The incomplete beta function by its continued fraction (DLMF 8.17.22), evaluated by Lentz's method.
fn beta_fraction(a: f64, b: f64, x: f64, complement: f64) -> f64 {
    // Below this a denominator counts as 0, and is replaced.
    const TINY: f64 = 1e-300;
    let away = |value: f64| if value.abs() < TINY { TINY } else { value };
    let factor = (a * x.ln() + b * complement.ln() - ln_beta(a, b)).exp() / a;
    if factor == 0.0 {
        return 0.0;
    }
    let mut ratio = 1.0;
    let mut inverse = 1.0 / away(1.0 - (a + b) * x / (a + 1.0));
    let mut fraction = inverse;
    // About the square root of the larger parameter is needed; the bound is far above that of any number of runs.
    let terms = (200.0 + 20.0 * a.max(b).sqrt()).min(1e6);
    let mut m = 1.0;
    while m <= terms {
        let even = m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m));
        inverse = 1.0 / away(1.0 + even * inverse);
        ratio = away(1.0 + even / ratio);
        fraction *= inverse * ratio;
        let odd = -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0));
        inverse = 1.0 / away(1.0 + odd * inverse);
        ratio = away(1.0 + odd / ratio);
        let change = inverse * ratio;
        fraction *= change;
        if (change - 1.0).abs() < f64::EPSILON {
            break;
        }
        m += 1.0;
    }
    factor * fraction
}

/// Remainder of Stirling's approximation of ln Γ.
fn stirling(x: f64) -> f64 {
    let inverse = 1.0 / (x * x);
    let mut sum = 0.0;
    // Bernoulli numbers B₂ₖ / (2k (2k − 1)), last first.
    for term in [-691.0 / 360_360.0, 1.0 / 1188.0, -1.0 / 1680.0, 1.0 / 1260.0, -1.0 / 360.0, 1.0 / 12.0] {
        sum = sum * inverse + term;
    }
    sum / x
}

#[cfg(test)]
mod tests;
