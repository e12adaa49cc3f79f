//! Days, months and hours of the day in a time zone. The zone rules are the ones compiled in, so that a decision can be
//! derived again on a machine with other rules.

use jiff::civil::Date;
use jiff::tz::{AmbiguousOffset, TimeZone};

use proctor_core::time::Timestamp;

use crate::document::ActiveHours;

/// A time zone of the compiled-in database.
#[derive(Debug, Clone, PartialEq)]
pub struct Zone(TimeZone);

/// A name that the compiled-in database does not have.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown time zone `{0}`: write an IANA name, as in `Europe/Berlin`")]
pub struct UnknownZone(pub String);

impl Zone {
    /// The zone of that IANA name; the empty name is UTC.
    pub fn new(name: &str) -> Result<Zone, UnknownZone> {
        if name.is_empty() {
            return Ok(Zone::utc());
        }
        TimeZone::get(name).map(Zone).map_err(|_| UnknownZone(name.to_owned()))
    }

    /// UTC.
    pub fn utc() -> Zone {
        Zone(TimeZone::UTC)
    }

    /// The calendar date and the minute of the day that a clock on the wall shows.
    fn wall(&self, now: Timestamp) -> (Date, u16) {
        let shown = self.0.to_datetime(clamped(now));
        let minute = i32::from(shown.hour()) * 60 + i32::from(shown.minute());
        (shown.date(), u16::try_from(minute).unwrap_or(0))
    }

    /// The first moment of a date. Where midnight was skipped it is the moment the clock was set forward; where it came
    /// twice it is the first one.
    fn first_moment(&self, date: Date) -> Option<Timestamp> {
        let midnight = date.at(0, 0, 0, 0);
        let moment = match self.0.to_ambiguous_timestamp(midnight).offset() {
            AmbiguousOffset::Unambiguous { offset } => offset.to_timestamp(midnight).ok()?,
            AmbiguousOffset::Fold { before, .. } => before.to_timestamp(midnight).ok()?,
            AmbiguousOffset::Gap { after, .. } => {
                let before_the_gap = after.to_timestamp(midnight).ok()?;
                // With the later offset midnight lies at or before the change; a nanosecond back makes "at" a "before".
                let start = before_the_gap.checked_sub(jiff::SignedDuration::from_nanos(1)).ok()?;
                self.0.following(start).next().map(|change| change.timestamp())?
            }
        };
        Some(Timestamp::from_micros(moment.as_microsecond()))
    }
}

/// The first moment of the day that `now` is in; `None` if the zone is unknown (empty is UTC).
pub fn day_start(now: Timestamp, timezone: &str) -> Option<Timestamp> {
    let zone = Zone::new(timezone).ok()?;
    let (date, _) = zone.wall(now);
    zone.first_moment(date)
}

/// The first moment of the month that `now` is in; `None` if the zone is unknown (empty is UTC).
pub fn month_start(now: Timestamp, timezone: &str) -> Option<Timestamp> {
    let zone = Zone::new(timezone).ok()?;
    let (date, _) = zone.wall(now);
    zone.first_moment(date.first_of_month())
}

/// Whether the clock on the wall shows a time within these hours. Equal start and end are no hours at all; in an unknown
/// zone nothing is active.
pub fn is_active(hours: &ActiveHours, now: Timestamp) -> bool {
    let Ok(zone) = Zone::new(&hours.timezone) else { return false };
    let (_, minute) = zone.wall(now);
    if hours.start <= hours.end {
        hours.start <= minute && minute < hours.end
    } else {
        minute >= hours.start || minute < hours.end
    }
}

/// The moment as jiff has it; beyond its years the nearest that it has.
fn clamped(now: Timestamp) -> jiff::Timestamp {
    jiff::Timestamp::from_microsecond(now.micros()).unwrap_or(if now.micros() < 0 {
        jiff::Timestamp::MIN
    } else {
        jiff::Timestamp::MAX
    })
}

#[cfg(test)]
mod tests;
