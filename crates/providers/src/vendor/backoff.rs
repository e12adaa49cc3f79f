//! Exponential backoff with jitter, and `Retry-After`.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Exponential backoff: each delay is twice the one before, with random jitter, so
/// that callers that failed together do not retry together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Backoff {
    /// The delay before the first retry.
    pub first: Duration,
    /// The longest delay. If a server asks for a longer one, the call is not retried.
    pub longest: Duration,
    /// The seed of the jitter; the same seed makes the same delays.
    pub seed: u64,
}

impl Default for Backoff {
    /// Half a second, at most half a minute, and a seed of its own each time.
    fn default() -> Backoff {
        let seed = RandomState::new().build_hasher().finish();
        Backoff { first: Duration::from_millis(500), longest: Duration::from_secs(30), seed }
    }
}

/// The backoff state of one client.
pub(super) struct BackoffTimer {
    backoff: Backoff,
    state: AtomicU64,
}

impl BackoffTimer {
    pub(super) fn new(backoff: Backoff) -> BackoffTimer {
        BackoffTimer { backoff, state: AtomicU64::new(backoff.seed) }
    }

    /// The pause after the given failure (counted from 0), or nothing if the server wants a longer one than we make.
    pub(super) fn after(&self, failure: u32, wanted: Option<Duration>) -> Option<Duration> {
        if wanted.is_some_and(|wanted| wanted > self.backoff.longest) {
            return None;
        }
        let even = self.backoff.first.saturating_mul(1u32.checked_shl(failure).unwrap_or(u32::MAX));
        // Between three and five quarters.
        let spread = even.min(self.backoff.longest).mul_f64(0.75 + 0.5 * self.chance());
        Some(spread.min(self.backoff.longest).max(wanted.unwrap_or_default()))
    }

    /// A number from 0 to just under 1 (splitmix64).
    fn chance(&self) -> f64 {
        const STEP: u64 = 0x9E37_79B9_7F4A_7C15;
        let mut number = self.state.fetch_add(STEP, Ordering::Relaxed).wrapping_add(STEP);
        number = (number ^ (number >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        number = (number ^ (number >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        number ^= number >> 31;
        (number >> 11) as f64 / (1u64 << 53) as f64
    }
}

/// The time that a `Retry-After` header names: seconds, or a date, which is compared with the reply's own `Date`, so that the
/// two machines' clocks need not agree.
pub(super) fn retry_after(value: &str, date: Option<&str>) -> Option<Duration> {
    let value = value.trim();
    if let Ok(seconds) = value.parse::<f64>() {
        return Duration::try_from_secs_f64(seconds).ok();
    }
    let (until, since) = (http_date(value)?, http_date(date?)?);
    Some(Duration::from_secs(until.saturating_sub(since)))
}

/// The seconds since 1970 of a date such as `Sun, 06 Nov 1994 08:49:37 GMT`.
fn http_date(text: &str) -> Option<u64> {
    const MONTHS: [&str; 12] =
        ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let mut words = text.trim().split_once(", ")?.1.split(' ');
    let day: u64 = words.next()?.parse().ok().filter(|day| (1..=31).contains(day))?;
    let month_name = words.next()?;
    let month = MONTHS.iter().position(|name| *name == month_name)? as u64 + 1;
    let year: u64 = words.next()?.parse().ok().filter(|year| (1970..=9999).contains(year))?;
    let mut clock = words.next()?.split(':').map(|part| part.parse::<u64>().ok().filter(|part| *part <= 60));
    let (hour, minute, second) = (clock.next()??, clock.next()??, clock.next()??);
    if words.next() != Some("GMT") || clock.next().is_some() || hour > 23 {
        return None;
    }
    // Years that begin in March have the day that moves at their end.
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let days = year * 365 + year / 4 - year / 100 + year / 400 + (month * 153 + 2) / 5 + day - 1;
    let days = days.checked_sub(719_468)?;
    Some(days * 86_400 + hour * 3_600 + minute * 60 + second)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pauses(seed: u64) -> BackoffTimer {
        BackoffTimer::new(Backoff { seed, ..Backoff::default() })
    }

    #[test]
    fn pauses_double_within_a_quarter_and_never_pass_the_longest() {
        let pauses = pauses(7);
        for (failure, even) in [(0, 0.5), (1, 1.0), (2, 2.0), (5, 16.0)] {
            for _ in 0..200 {
                let pause = pauses.after(failure, None).unwrap().as_secs_f64();
                assert!((even * 0.75..=even * 1.25).contains(&pause), "{failure}: {pause}");
            }
        }
        for failure in [6, 31, 32, u32::MAX] {
            assert!(pauses.after(failure, None).unwrap() <= Duration::from_secs(30));
        }
    }

    #[test]
    fn the_same_seed_gives_the_same_pauses_and_another_seed_others() {
        let of = |seed| {
            let pauses = pauses(seed);
            (0..4).map(|failure| pauses.after(failure, None)).collect::<Vec<_>>()
        };
        assert_eq!(of(1), of(1));
        assert_ne!(of(1), of(2));
    }

    #[test]
    fn a_server_is_not_asked_before_the_time_it_names() {
        let pauses = pauses(3);
        assert_eq!(pauses.after(0, Some(Duration::from_secs(20))), Some(Duration::from_secs(20)));
        assert_eq!(pauses.after(0, Some(Duration::from_secs(31))), None);
        assert!(pauses.after(3, Some(Duration::from_secs(1))).unwrap() >= Duration::from_secs(3));
    }

    #[test]
    fn retry_after_is_read_as_seconds_or_as_a_date() {
        let seconds = |text| retry_after(text, None);
        assert_eq!(seconds("7"), Some(Duration::from_secs(7)));
        assert_eq!(seconds(" 1.5 "), Some(Duration::from_millis(1500)));
        for bad in ["", "-1", "NaN", "inf", "1e300", "soon", "Sun, 06 Nov 1994 08:49:37 GMT"] {
            assert_eq!(seconds(bad), None, "{bad}");
        }
        let date = |later, now| retry_after(later, Some(now));
        assert_eq!(
            date("Fri, 01 Mar 2024 00:00:10 GMT", "Thu, 29 Feb 2024 23:59:40 GMT"),
            Some(Duration::from_secs(30))
        );
        assert_eq!(
            date("Thu, 29 Feb 2024 23:59:40 GMT", "Fri, 01 Mar 2024 00:00:10 GMT"),
            Some(Duration::ZERO)
        );
        assert_eq!(http_date("Sun, 06 Nov 1994 08:49:37 GMT"), Some(784_111_777));
        assert_eq!(http_date("Thu, 01 Jan 1970 00:00:00 GMT"), Some(0));
    }

    proptest::proptest! {
        #[test]
        fn no_header_breaks_the_reader(value in ".{0,60}", date in ".{0,60}") {
            let _ = retry_after(&value, Some(&date));
            let _ = http_date(&format!("Sun, {value}"));
        }
    }
}
