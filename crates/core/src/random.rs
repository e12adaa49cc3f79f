//! Randomness, as an argument.

use std::sync::Mutex;

/// Source of random bytes. Only the binary has a real one; everything else takes it as an argument.
pub trait Randomness: Send + Sync {
    /// Fills the buffer.
    fn fill(&self, buffer: &mut [u8]);
}

/// A reproducible stream for tests and simulations (SplitMix64); never for secrets.
#[derive(Debug)]
pub struct SeededRandomness(Mutex<u64>);

impl SeededRandomness {
    /// The stream that belongs to `seed`.
    pub fn new(seed: u64) -> SeededRandomness {
        SeededRandomness(Mutex::new(seed))
    }

    /// The next 64 bits.
    pub fn next_u64(&self) -> u64 {
        let mut state = self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        *state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = *state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// A number below `bound`, which must not be zero.
    pub fn below(&self, bound: u64) -> u64 {
        self.next_u64() % bound.max(1)
    }
}

impl Randomness for SeededRandomness {
    fn fill(&self, buffer: &mut [u8]) {
        for chunk in buffer.chunks_mut(8) {
            let bytes = self.next_u64().to_le_bytes();
            for (target, source) in chunk.iter_mut().zip(bytes) {
                *target = source;
            }
        }
    }
}
