//! Timestamps, in integer microseconds since 1970 UTC, and the clock interface.

use std::fmt;

/// A moment, in microseconds since 1970-01-01T00:00:00Z.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Timestamp(i64);

impl Timestamp {
    /// The latest moment that every part can express: the end of the year 9999.
    pub const MAX: Timestamp = Timestamp(253_402_300_799_999_999);

    /// Creates a timestamp from microseconds since 1970.
    pub const fn from_micros(micros: i64) -> Timestamp {
        Timestamp(micros)
    }

    /// Microseconds since 1970.
    pub const fn micros(self) -> i64 {
        self.0
    }

    /// The moment so many microseconds later; saturates.
    #[must_use]
    pub const fn plus_micros(self, micros: i64) -> Timestamp {
        Timestamp(self.0.saturating_add(micros))
    }

    /// Microseconds since an earlier moment; zero if it is not earlier.
    pub fn micros_since(self, earlier: Timestamp) -> u64 {
        u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0)
    }

    /// Reads RFC 3339, as `Display` writes it.
    pub fn parse(text: &str) -> Option<Timestamp> {
        text.parse::<jiff::Timestamp>().ok().map(|moment| Timestamp(moment.as_microsecond()))
    }
}

/// RFC 3339 in UTC with microseconds.
impl fmt::Display for Timestamp {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match jiff::Timestamp::from_microsecond(self.0) {
            Ok(moment) => write!(out, "{moment:.6}"),
            Err(_) => write!(out, "{}µs", self.0),
        }
    }
}

/// Source of time. Only the binary has a real one; everything else takes it as an argument.
pub trait Clock: Send + Sync {
    /// The present moment.
    fn now(&self) -> Timestamp;
}

/// A clock that stands still until it is told to move: for tests, simulations and re-derivation.
#[derive(Debug)]
pub struct ManualClock(std::sync::atomic::AtomicI64);

impl ManualClock {
    /// A clock that shows `start`.
    pub fn new(start: Timestamp) -> ManualClock {
        ManualClock(start.micros().into())
    }

    /// Moves the clock by so many microseconds.
    pub fn advance(&self, micros: i64) {
        self.0.fetch_add(micros, std::sync::atomic::Ordering::SeqCst);
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        Timestamp(self.0.load(std::sync::atomic::Ordering::SeqCst))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prints_and_reads_rfc_3339() {
        let moment = Timestamp::from_micros(1_763_239_507_123_456);
        assert_eq!(moment.to_string(), "2025-11-15T20:45:07.123456Z");
        assert_eq!(Timestamp::parse(&moment.to_string()), Some(moment));
        assert_eq!(Timestamp::parse("soon"), None);
    }

    #[test]
    fn a_manual_clock_moves_only_when_told() {
        let clock = ManualClock::new(Timestamp::from_micros(5));
        assert_eq!(clock.now().micros(), 5);
        clock.advance(10);
        assert_eq!(clock.now().micros(), 15);
        assert_eq!(clock.now().micros_since(Timestamp::from_micros(20)), 0);
    }
}
