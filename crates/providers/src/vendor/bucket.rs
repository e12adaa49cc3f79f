//! A token bucket: our own limit of requests a minute.

use std::time::Duration;

/// A token bucket: so many requests a minute, and so many of them at once.
///
/// The bucket has no clock: callers pass the time since a fixed moment.
#[derive(Debug, Clone)]
pub struct TokenBucket {
    /// The time in which one token grows back; zero if there is no limit.
    interval: Duration,
    /// Burst tolerance: time that the bucket may be ahead of its even rate.
    slack: Duration,
    /// Time at which the bucket will be full again.
    full_at: Duration,
}

impl TokenBucket {
    /// A full bucket. Zero a minute is no limit; a burst of zero counts as one.
    pub fn new(per_minute: u32, burst: u32) -> TokenBucket {
        let interval = Duration::from_secs(60).checked_div(per_minute).unwrap_or_default();
        let slack = interval.saturating_mul(burst.saturating_sub(1));
        TokenBucket { interval, slack, full_at: Duration::ZERO }
    }

    /// Takes the next token and returns the wait for it; takes none if that is longer than `patience`, and returns the same time as an
    /// error.
    pub fn take(&mut self, now: Duration, patience: Duration) -> Result<Duration, Duration> {
        let wait = self.full_at.saturating_sub(self.slack).saturating_sub(now);
        if wait > patience {
            return Err(wait);
        }
        self.full_at = self.full_at.max(now).saturating_add(self.interval);
        Ok(wait)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn a_burst_is_free_and_then_the_pace_is_even() {
        let mut bucket = TokenBucket::new(60, 3);
        let waits: Vec<_> = (0..5).map(|_| bucket.take(SECOND, Duration::MAX).unwrap()).collect();
        assert_eq!(waits, [Duration::ZERO, Duration::ZERO, Duration::ZERO, SECOND, 2 * SECOND]);
    }

    #[test]
    fn tokens_grow_back_but_never_above_the_burst() {
        let mut bucket = TokenBucket::new(60, 2);
        for _ in 0..2 {
            assert_eq!(bucket.take(Duration::ZERO, Duration::ZERO), Ok(Duration::ZERO));
        }
        assert_eq!(bucket.take(Duration::ZERO, Duration::ZERO), Err(SECOND));
        assert_eq!(bucket.take(SECOND, Duration::ZERO), Ok(Duration::ZERO));
        let later = 1_000 * SECOND;
        let free = (0..10).filter(|_| bucket.take(later, Duration::ZERO).is_ok()).count();
        assert_eq!(free, 2);
    }

    #[test]
    fn a_refused_token_is_not_taken() {
        let mut bucket = TokenBucket::new(60, 1);
        assert_eq!(bucket.take(Duration::ZERO, Duration::ZERO), Ok(Duration::ZERO));
        for _ in 0..100 {
            assert_eq!(bucket.take(Duration::ZERO, SECOND / 2), Err(SECOND));
        }
        assert_eq!(bucket.take(Duration::ZERO, SECOND), Ok(SECOND));
    }

    #[test]
    fn zero_a_minute_is_no_limit_and_a_burst_of_zero_is_one() {
        let mut free = TokenBucket::new(0, 0);
        assert!((0..10_000).all(|_| free.take(Duration::ZERO, Duration::ZERO).is_ok()));
        let mut single = TokenBucket::new(1, 0);
        assert!(single.take(Duration::ZERO, Duration::ZERO).is_ok());
        assert!(single.take(Duration::ZERO, Duration::ZERO).is_err());
    }

    proptest! {
        /// No minute ever sees more than the burst plus the rate.
        #[test]
        fn the_rate_holds_in_every_minute(
            per_minute in 1u32..200,
            burst in 1u32..20,
            pauses in proptest::collection::vec(0u64..3_000, 1..300),
        ) {
            let mut bucket = TokenBucket::new(per_minute, burst);
            let mut now = Duration::ZERO;
            let mut granted = Vec::new();
            for pause in pauses {
                now += Duration::from_millis(pause);
                if let Ok(wait) = bucket.take(now, Duration::from_secs(5)) {
                    granted.push(now + wait);
                }
            }
            for (first, start) in granted.iter().enumerate() {
                let end = *start + Duration::from_secs(60);
                let within = granted[first..].iter().filter(|moment| **moment < end).count();
                prop_assert!(within <= (per_minute + burst) as usize);
            }
        }
    }
}
