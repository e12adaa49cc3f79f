//! Paired permutation test: whether the mean of differences is 0, by flipping their signs.

use serde::Serialize;

use super::sample::is_usable;

/// Number of pairs up to which all assignments of signs are counted: 2^20 of them take milliseconds.
pub const EXACT_PAIRS: usize = 20;

/// Result of a paired permutation test.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Permutation {
    /// Two-sided p.
    pub p: f64,
    /// Assignments of signs that were looked at.
    pub assignments: u64,
    /// Whether these were all that exist; else they were drawn, and p is (b + 1) / (m + 1).
    pub exact: bool,
}

/// Two-sided paired permutation test on the mean of differences. Up to [`EXACT_PAIRS`] pairs every assignment of signs is counted; beyond
/// that `draws` of them are drawn from `seed`, and p is (b + 1) / (m + 1), which is never below the level that it claims. `None` without
/// a difference that counts.
pub fn paired_permutation(differences: &[f64], draws: u32, seed: u64) -> Option<Permutation> {
    let pairs: Vec<f64> = differences.iter().copied().filter(|difference| is_usable(*difference)).collect();
    if pairs.is_empty() {
        return None;
    }
    let sums = SignedSums::new(&pairs);
    // Rounding differs with the order of additions. Sums that should be equal must count as equal, or p would be too small.
    let tolerance = pairs.iter().map(|pair| pair.abs()).sum::<f64>() * 1e-13;
    let observed = pairs.iter().sum::<f64>().abs() - tolerance;
    if pairs.len() <= EXACT_PAIRS {
        let assignments = 1_u64 << pairs.len();
        let extreme = (0..assignments).filter(|signs| sums.sum(&[*signs]).abs() >= observed).count();
        return Some(Permutation { p: extreme as f64 / assignments as f64, assignments, exact: true });
    }
    let mut random = SplitMix(seed);
    let mut signs = vec![0; pairs.len().div_ceil(64)];
    let mut extreme = 0_u32;
    for _ in 0..draws {
        for word in &mut signs {
            *word = random.next();
        }
        extreme += u32::from(sums.sum(&signs).abs() >= observed);
    }
    let p = (f64::from(extreme) + 1.0) / (f64::from(draws) + 1.0);
    Some(Permutation { p, assignments: u64::from(draws), exact: false })
}

/// Smallest two-sided p that a paired permutation test over so many pairs can have.
pub(crate) fn smallest_p(pairs: usize) -> f64 {
    2.0 * 0.5_f64.powi(i32::try_from(pairs.max(1)).unwrap_or(i32::MAX))
}

/// Sums under each assignment of signs to eight pairs, so that a sum over all pairs costs one look-up for eight of them.
struct SignedSums {
    tables: Vec<[f64; 256]>,
}

impl SignedSums {
    fn new(pairs: &[f64]) -> SignedSums {
        let table = |eight: &[f64]| {
            let mut table = [0.0; 256];
            for (signs, sum) in table.iter_mut().enumerate() {
                *sum = eight
                    .iter()
                    .enumerate()
                    .map(|(bit, pair)| if signs >> bit & 1 == 0 { *pair } else { -pair })
                    .sum();
            }
            table
        };
        SignedSums { tables: pairs.chunks(8).map(table).collect() }
    }

    /// The sum under an assignment of signs, a bit for each pair.
    fn sum(&self, signs: &[u64]) -> f64 {
        let mut sum = 0.0;
        for (word, tables) in signs.iter().zip(self.tables.chunks(8)) {
            for (byte, table) in word.to_le_bytes().into_iter().zip(tables) {
                sum += table.get(usize::from(byte)).copied().unwrap_or_default();
            }
        }
        sum
    }
}

/// SplitMix64: a generator whose whole state is a seed. Signs need 64 independent bits, not secrecy.
struct SplitMix(u64);

impl SplitMix {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = self.0;
        word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        word ^ (word >> 31)
    }
}

#[cfg(test)]
mod tests;
