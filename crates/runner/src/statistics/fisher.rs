//! Fisher's exact test on two success rates.

/// Relative difference up to which two probabilities of tables count as equal: above the rounding of the recurrence, below any
/// difference between tables of the sizes that runs have.
const TIE: f64 = 1e-10;

/// Two-sided p of Fisher's exact test: the probability, with the margins given, of all tables that are at most as likely as the observed
/// one. 1 without runs on a side.
///
/// The arguments are (successes, failures) of the two sides.
pub fn fisher_exact(after: (u32, u32), before: (u32, u32)) -> f64 {
    let successes = f64::from(after.0);
    let row = successes + f64::from(after.1);
    let column = successes + f64::from(before.0);
    let total = row + f64::from(before.0) + f64::from(before.1);
    // Successes of the first side, given the margins.
    let (smallest, largest) = ((row + column - total).max(0.0), row.min(column));
    let mode = ((row + 1.0) * (column + 1.0) / (total + 2.0)).floor().clamp(smallest, largest);
    // P(x + 1) / P(x) of the hypergeometric distribution.
    let step = |x: f64| (row - x) * (column - x) / ((x + 1.0) * (total - row - column + x + 1.0));

    // Probabilities relative to that of the mode never overflow. Where they underflow, the rest of the tail counts as 0; rounding would
    // keep a subnormal number from ever getting there.
    let mut tables = vec![(mode, 1.0)];
    let (mut x, mut weight) = (mode, 1.0);
    while x < largest && weight >= f64::MIN_POSITIVE {
        weight *= step(x);
        x += 1.0;
        tables.push((x, weight));
    }
    (x, weight) = (mode, 1.0);
    while x > smallest && weight >= f64::MIN_POSITIVE {
        x -= 1.0;
        weight /= step(x);
        tables.push((x, weight));
    }

    #[expect(clippy::float_cmp, reason = "whole numbers, which are exact")]
    let observed = tables.iter().find(|(x, _)| *x == successes).map_or(0.0, |(_, weight)| *weight);
    let weights = tables.iter().map(|(_, weight)| *weight);
    let unlikely: f64 = weights.clone().filter(|weight| *weight <= observed * (1.0 + TIE)).sum();
    (unlikely / weights.sum::<f64>()).min(1.0)
}

#[cfg(test)]
mod tests;
