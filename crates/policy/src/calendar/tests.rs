use super::*;
use proptest::prelude::*;

fn at(text: &str) -> Timestamp {
    Timestamp::parse(text).unwrap()
}

fn hours(start: u16, end: u16, timezone: &str) -> ActiveHours {
    ActiveHours { start, end, timezone: timezone.to_owned() }
}

#[test]
fn days_begin_at_the_first_moment_that_the_wall_shows() {
    for (name, now, start) in [
        ("", "2026-03-29T12:00:00Z", "2026-03-29T00:00:00Z"),
        // 23 hours long, and 25.
        ("Europe/Berlin", "2026-03-29T12:00:00Z", "2026-03-28T23:00:00Z"),
        ("Europe/Berlin", "2026-03-30T12:00:00Z", "2026-03-29T22:00:00Z"),
        ("America/New_York", "2026-11-02T04:59:00Z", "2026-11-01T04:00:00Z"),
        ("America/New_York", "2026-11-02T05:00:00Z", "2026-11-02T05:00:00Z"),
        // Offsets that are no whole hours.
        ("Asia/Kathmandu", "2026-01-01T18:14:59Z", "2025-12-31T18:15:00Z"),
        ("Asia/Kathmandu", "2026-01-01T18:15:00Z", "2026-01-01T18:15:00Z"),
        ("Australia/Lord_Howe", "2026-01-10T00:00:00Z", "2026-01-09T13:00:00Z"),
        ("Australia/Lord_Howe", "2026-07-10T00:00:00Z", "2026-07-09T13:30:00Z"),
        // Midnight did not exist.
        ("America/Sao_Paulo", "2018-11-04T15:00:00Z", "2018-11-04T03:00:00Z"),
        ("Asia/Beirut", "2022-03-27T12:00:00Z", "2022-03-26T22:00:00Z"),
        // The gap was from half past eleven to half past midnight.
        ("America/Toronto", "1919-03-31T12:00:00Z", "1919-03-31T04:30:00Z"),
        // Midnight came twice.
        ("America/Havana", "2025-11-02T12:00:00Z", "2025-11-02T04:00:00Z"),
        // The day before did not exist.
        ("Pacific/Apia", "2011-12-30T12:00:00Z", "2011-12-30T10:00:00Z"),
    ] {
        assert_eq!(day_start(at(now), name), Some(at(start)), "{name} {now}");
    }
}

#[test]
fn months_begin_on_their_first_day() {
    for (name, now, start) in [
        ("", "2026-02-28T23:59:59.999999Z", "2026-02-01T00:00:00Z"),
        ("America/New_York", "2026-11-30T12:00:00Z", "2026-11-01T04:00:00Z"),
        ("Europe/Berlin", "2026-03-31T21:59:59Z", "2026-02-28T23:00:00Z"),
        ("Europe/Berlin", "2026-03-31T22:00:00Z", "2026-03-31T22:00:00Z"),
        ("Pacific/Kiritimati", "2026-01-31T10:00:00Z", "2026-01-31T10:00:00Z"),
    ] {
        assert_eq!(month_start(at(now), name), Some(at(start)), "{name} {now}");
    }
}

#[test]
fn hours_are_half_open_and_may_pass_midnight() {
    let office = hours(9 * 60, 17 * 60, "");
    assert!(!is_active(&office, at("2026-05-01T08:59:59.999999Z")));
    assert!(is_active(&office, at("2026-05-01T09:00:00Z")));
    assert!(is_active(&office, at("2026-05-01T16:59:59.999999Z")));
    assert!(!is_active(&office, at("2026-05-01T17:00:00Z")));
    let night = hours(22 * 60, 6 * 60, "");
    assert!(is_active(&night, at("2026-05-01T22:00:00Z")));
    assert!(is_active(&night, at("2026-05-02T05:59:59Z")));
    assert!(!is_active(&night, at("2026-05-02T06:00:00Z")));
    let evening = hours(18 * 60, 1440, "");
    assert!(is_active(&evening, at("2026-05-01T23:59:59.999999Z")));
    assert!(!is_active(&evening, at("2026-05-02T00:00:00Z")));
    assert!(!is_active(&hours(60, 60, ""), at("2026-05-02T01:00:00Z")));
}

#[test]
fn hours_follow_the_wall_through_clock_changes() {
    let berlin = hours(2 * 60, 3 * 60, "Europe/Berlin");
    // 02:00 to 03:00 does not exist on that day.
    assert!(!is_active(&berlin, at("2026-03-29T00:59:59Z")));
    assert!(!is_active(&berlin, at("2026-03-29T01:00:00Z")));
    let new_york = hours(60, 2 * 60, "America/New_York");
    // 01:30 comes twice on that day.
    assert!(is_active(&new_york, at("2026-11-01T05:30:00Z")));
    assert!(is_active(&new_york, at("2026-11-01T06:30:00Z")));
    assert!(!is_active(&new_york, at("2026-11-01T07:00:00Z")));
    let kathmandu = hours(9 * 60, 10 * 60, "Asia/Kathmandu");
    assert!(is_active(&kathmandu, at("2026-01-01T03:15:00Z")));
    assert!(!is_active(&kathmandu, at("2026-01-01T03:14:59Z")));
}

#[test]
fn unknown_zones_are_named() {
    assert_eq!(
        Zone::new("Europe/Berln").unwrap_err().to_string(),
        "unknown time zone `Europe/Berln`: write an IANA name, as in `Europe/Berlin`"
    );
    assert!(Zone::new("../../etc/passwd").is_err());
    let now = at("2026-05-02T01:00:00Z");
    assert_eq!((day_start(now, "Mars/Base"), month_start(now, "Mars/Base")), (None, None));
    assert!(!is_active(&hours(0, 1440, "Mars/Base"), now));
}

#[test]
fn moments_beyond_all_years_do_no_harm() {
    for micros in [i64::MIN, i64::MAX, 0] {
        for name in ["", "Europe/Berlin", "Asia/Kathmandu", "Pacific/Apia"] {
            let now = Timestamp::from_micros(micros);
            assert!(day_start(now, name).is_none_or(|start| start <= now || micros == i64::MIN));
            assert!(month_start(now, name).is_none_or(|start| start <= now || micros == i64::MIN));
            is_active(&hours(0, 1440, name), now);
        }
    }
}

proptest! {
    #[test]
    fn edges_are_on_quarter_hours_and_in_the_past(
        seconds in 946_684_800_i64..4_102_444_800,
        name in prop::sample::select(vec![
            "UTC", "Europe/Berlin", "America/New_York", "Asia/Kathmandu", "Australia/Lord_Howe", "Africa/Cairo",
            "Asia/Tehran", "Pacific/Chatham", "America/St_Johns", "Asia/Beirut", "America/Santiago",
        ]),
    ) {
        let now = Timestamp::from_micros(seconds * 1_000_000);
        let day = day_start(now, name).unwrap();
        let month = month_start(now, name).unwrap();
        prop_assert!(month <= day && day <= now);
        prop_assert!(now.micros_since(day) <= 26 * 3_600_000_000);
        prop_assert!(now.micros_since(month) <= (31 * 24 + 1) * 3_600_000_000);
        prop_assert_eq!(day.micros() % 900_000_000, 0);
        prop_assert_eq!(day_start(day, name), Some(day));
        prop_assert!(day_start(Timestamp::from_micros(day.micros() - 1), name) < Some(day));
    }
}
