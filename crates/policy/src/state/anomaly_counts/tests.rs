use std::collections::BTreeMap;

use proctor_core::decision::Effect;
use proctor_core::id::RecordId;
use proctor_core::record::{Amount, RecordKind};
use proptest::prelude::*;
use rust_decimal::Decimal;

use super::repeats::MOST_ACTIONS;
use super::*;

/// 2026-01-10, not on a minute.
const START: i64 = 1_768_086_123_456_789;
const SECOND: i64 = 1_000_000;
const MINUTE: i64 = 60 * SECOND;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;

fn amount(unit: &str, limit: Option<u32>) -> Amount {
    Amount { unit: unit.to_owned(), value: Decimal::ONE, limit }
}

fn decision(principal: &str, action: u64, micros: i64, amounts: Vec<Amount>) -> Envelope {
    Envelope {
        principal: principal.to_owned(),
        decision: Some(Effect::Deny),
        action: Some(digest(action)),
        amounts,
        ..Envelope::new(
            RecordId::from_bytes([1; 16]),
            Timestamp::from_micros(START + micros),
            RecordKind::Decision,
        )
    }
}

fn digest(number: u64) -> Digest {
    Digest::of(&number.to_be_bytes())
}

fn at(micros: i64) -> Timestamp {
    Timestamp::from_micros(START + micros)
}

fn watched(seconds: u32) -> Vec<Amount> {
    vec![amount("calls", None), amount("repeat", Some(seconds)), amount("pace", None)]
}

/// Rows as a ledger keeps them.
#[derive(Default)]
struct Saved(BTreeMap<String, Vec<u8>>);

impl Saved {
    fn save(&mut self, rows: Vec<Row>) {
        for row in rows {
            assert_eq!(row.fold, FOLD);
            match row.value {
                Some(value) => self.0.insert(row.key, value),
                None => self.0.remove(&row.key),
            };
        }
    }

    fn load(&self) -> AnomalyCounts {
        let mut counts = AnomalyCounts::default();
        for (key, value) in &self.0 {
            counts.load(key, &Json::parse(value).unwrap()).unwrap();
        }
        counts.finish_load();
        counts
    }
}

fn all_rows(counts: &AnomalyCounts) -> BTreeMap<String, Vec<u8>> {
    let mut rows = Vec::new();
    counts.rows(&mut rows);
    rows.into_iter().map(|row| (row.key, row.value.unwrap())).collect()
}

/// The list of everything that was noted, each at the moment it counts for.
#[derive(Default)]
struct Model {
    repeats: BTreeMap<(String, u64, u32), Vec<i64>>,
    minutes: BTreeMap<String, Vec<i64>>,
}

impl Model {
    fn note(&mut self, principal: &str, action: u64, seconds: u32, micros: i64) {
        let times = self.repeats.entry((principal.to_owned(), action, seconds)).or_default();
        times.push(standing_still(times, micros, seconds));
        let minutes = self.minutes.entry(principal.to_owned()).or_default();
        let minute = (START + micros).div_euclid(MINUTE);
        minutes.push(minutes.iter().copied().max().unwrap_or(minute).max(minute));
    }

    fn repeats(&self, principal: &str, action: u64, seconds: u32, now: i64) -> u64 {
        let Some(times) = self.repeats.get(&(principal.to_owned(), action, seconds)) else { return 0 };
        let (now, length) = (standing_still(times, now, seconds), i64::from(seconds) * SECOND);
        let in_window = |index: i64| {
            let count = times.iter().filter(|time| time.div_euclid(length) == index).count();
            i64::try_from(count).unwrap()
        };
        let index = now.div_euclid(length);
        let left = length - now.rem_euclid(length);
        u64::try_from(in_window(index - 1) * left / length + in_window(index)).unwrap()
    }

    fn actions_per_minute(&self, principal: &str, now: i64) -> ActionsPerMinute {
        let Some(minutes) = self.minutes.get(principal) else { return ActionsPerMinute::default() };
        let newest = minutes.iter().copied().max().unwrap();
        let now = (START + now).div_euclid(MINUTE).max(newest);
        let count = |minute: i64| minutes.iter().filter(|other| **other == minute).count() as u64;
        let mut rate = ActionsPerMinute { current: count(now), ..ActionsPerMinute::default() };
        for minute in now - 60..now {
            if minute >= minutes[0] {
                rate.minutes += 1;
                rate.sum += count(minute);
                rate.squares += count(minute) * count(minute);
            }
        }
        rate
    }
}

/// A moment before the window of what came last is the beginning of that window.
fn standing_still(times: &[i64], micros: i64, seconds: u32) -> i64 {
    let length = i64::from(seconds) * SECOND;
    let newest = times.iter().map(|time| time.div_euclid(length) * length).max();
    newest.unwrap_or(i64::MIN).max(START + micros)
}

fn steps() -> impl Strategy<Value = Vec<(i64, usize, u64, u32)>> {
    let pause = prop_oneof![
        6 => 0..20 * SECOND,
        2 => -30 * SECOND..10 * MINUTE,
        1 => 0..3 * HOUR,
    ];
    let one = (pause, 0usize..2, 0u64..3, prop::sample::select(vec![1u32, 60, 300, 3600]));
    prop::collection::vec(one, 1..80)
}

const PRINCIPALS: [&str; 2] = ["alice", "b/\"ob"];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn every_answer_is_the_obvious_one_and_rows_are_the_state(steps in steps(), later in 0..2 * HOUR) {
        let mut counts = AnomalyCounts::default();
        let mut model = Model::default();
        let mut saved = Saved::default();
        let mut now = 0;
        for (pause, who, action, seconds) in steps {
            now += pause;
            let mut rows = Vec::new();
            counts.note(&decision(PRINCIPALS[who], action, now, watched(seconds)), &mut rows);
            saved.save(rows);
            model.note(PRINCIPALS[who], action, seconds, now);
            prop_assert_eq!(&saved.0, &all_rows(&counts));
        }
        let loaded = saved.load();
        prop_assert_eq!(&saved.0, &all_rows(&loaded));
        for now in [now, now + later] {
            for principal in PRINCIPALS {
                prop_assert_eq!(counts.actions_per_minute(principal, at(now)), model.actions_per_minute(principal, now));
                prop_assert_eq!(loaded.actions_per_minute(principal, at(now)), model.actions_per_minute(principal, now));
                for action in 0..3 {
                    for seconds in [1, 60, 300, 3600] {
                        let expected = model.repeats(principal, action, seconds, now);
                        let answers = [&counts, &loaded]
                            .map(|counts| counts.repeats(principal, digest(action), seconds, at(now)));
                        prop_assert_eq!(answers, [expected; 2], "{} {} {}", principal, action, seconds);
                    }
                }
            }
        }
    }

    #[test]
    fn what_was_loaded_goes_on_as_if_it_had_not_been(steps in steps(), cut in any::<prop::sample::Index>()) {
        let cut = cut.index(steps.len());
        let mut counts = AnomalyCounts::default();
        let mut saved = Saved::default();
        let mut now = 0;
        for (number, (pause, who, action, seconds)) in steps.into_iter().enumerate() {
            if number == cut {
                counts = saved.load();
            }
            // Far apart, so that rows are swept.
            now += pause * 30;
            let mut rows = Vec::new();
            counts.note(&decision(PRINCIPALS[who], action, now, watched(seconds)), &mut rows);
            saved.save(rows);
            prop_assert_eq!(&saved.0, &all_rows(&counts));
        }
    }
}

#[test]
fn only_what_is_watched_is_counted() {
    let mut counts = AnomalyCounts::default();
    let mut rows = Vec::new();
    for amounts in [
        Vec::new(),
        vec![amount("calls", None), amount("rate", Some(60))],
        vec![amount("repeat", None)],
        vec![amount("repeat", Some(0))],
    ] {
        counts.note(&decision("alice", 0, 0, amounts), &mut rows);
    }
    let nameless = Envelope { action: None, ..decision("alice", 0, 0, vec![amount("repeat", Some(60))]) };
    counts.note(&nameless, &mut rows);
    assert!(rows.is_empty() && all_rows(&counts).is_empty());
    counts.note(&decision("alice", 0, 0, vec![amount("repeat", Some(60))]), &mut rows);
    assert_eq!(rows.len(), 1);
    assert_eq!(counts.repeats("alice", digest(0), 60, at(0)), 1);
    assert_eq!(counts.actions_per_minute("alice", at(0)), ActionsPerMinute::default());
    for (principal, action, seconds) in [("bob", 0, 60), ("alice", 1, 60), ("alice", 0, 61)] {
        assert_eq!(counts.repeats(principal, digest(action), seconds, at(0)), 0);
    }
}

#[test]
fn the_share_of_the_window_before_shrinks() {
    let mut counts = AnomalyCounts::default();
    // The beginning of a window of a hundred seconds.
    let start = 100 * SECOND - START.rem_euclid(100 * SECOND);
    for _ in 0..40 {
        counts.note(&decision("alice", 0, start, vec![amount("repeat", Some(100))]), &mut Vec::new());
    }
    let count = |seconds: i64| counts.repeats("alice", digest(0), 100, at(start + seconds * SECOND));
    assert_eq!([0, 99, 100, 125, 150, 199, 200, 9999].map(count), [40, 40, 40, 30, 20, 0, 0, 0]);
}

#[test]
fn the_action_proposed_longest_ago_is_forgotten_first() {
    let mut counts = AnomalyCounts::default();
    let mut saved = Saved::default();
    let most = MOST_ACTIONS as u64;
    let mut note = |counts: &mut AnomalyCounts, principal: &str, action: u64, micros: i64| {
        let mut rows = Vec::new();
        counts.note(&decision(principal, action, micros, vec![amount("repeat", Some(3600))]), &mut rows);
        assert!(rows.len() <= 2);
        saved.save(rows);
    };
    let mut now = 0;
    for action in (0..most).chain([0]) {
        note(&mut counts, "alice", action, now);
        now += 1;
    }
    note(&mut counts, "bob", 1, now);
    let count = |counts: &AnomalyCounts, action: u64| counts.repeats("alice", digest(action), 3600, at(now));
    assert_eq!([0, 1, 2].map(|action| count(&counts, action)), [2, 1, 1]);
    note(&mut counts, "alice", most, now);
    assert_eq!([0, 1, 2, most].map(|action| count(&counts, action)), [2, 0, 1, 1]);
    assert_eq!(counts.repeats("bob", digest(1), 3600, at(now)), 1);
    assert_eq!(saved.0.len(), MOST_ACTIONS + 1);
    assert_eq!(saved.0, all_rows(&counts));
}

#[test]
fn old_rows_are_swept_a_few_at_a_time() {
    let mut counts = AnomalyCounts::default();
    let mut saved = Saved::default();
    for number in 0..20 {
        let mut rows = Vec::new();
        counts.note(&decision(&format!("agent {number}"), number, 0, watched(60)), &mut rows);
        saved.save(rows);
    }
    assert_eq!(saved.0.len(), 40);
    // After two hours the repetitions are of no use, after two months the minutes.
    for (later, kept) in [(2 * HOUR, 22), (60 * DAY, 2)] {
        for _ in 0..6 {
            let mut rows = Vec::new();
            counts.note(&decision("late", 0, later, watched(60)), &mut rows);
            assert!(rows.len() <= 2 + 2 * MAX_EXPIRED_PER_RECORD);
            saved.save(rows);
        }
        assert_eq!(saved.0.len(), kept);
        assert_eq!(saved.0, all_rows(&counts));
    }
}

#[test]
fn damaged_rows_are_refused() {
    let zeros = |count: usize| vec!["0"; count].join(",");
    let digest = digest(0);
    for (key, value) in [
        ("x".to_owned(), "[1]".to_owned()),
        ("x/alice".to_owned(), "[1,5,5,[1]]".to_owned()),
        ("m/alice".to_owned(), "[1,5,5]".to_owned()),
        ("m/alice".to_owned(), "[1,5,5,[]]".to_owned()),
        ("m/alice".to_owned(), "[1,5,4,[]]".to_owned()),
        ("m/alice".to_owned(), "[1,5,6,[1]]".to_owned()),
        ("m/alice".to_owned(), "[1,5,5,[-1]]".to_owned()),
        ("m/alice".to_owned(), format!("[1,5,500,[{}]]", zeros(62))),
        ("m/alice".to_owned(), "[1,-9223372036854775808,9223372036854775807,[1]]".to_owned()),
        (format!("r/0/{digest}/alice"), "[1,1,1,1,1]".to_owned()),
        (format!("r/60/{digest}"), "[1,1,1,1,1]".to_owned()),
        ("r/60/short/alice".to_owned(), "[1,1,1,1,1]".to_owned()),
        (format!("r/60/{digest}/alice"), "[1,1,1,1]".to_owned()),
        (format!("r/60/{digest}/alice"), "[1,1,-1,1,1]".to_owned()),
    ] {
        let value = Json::parse(value.as_bytes()).unwrap();
        assert_eq!(AnomalyCounts::default().load(&key, &value), None, "{key} {value}");
    }
    let fine = Json::parse(format!("[1,5,500,[{}]]", zeros(61)).as_bytes()).unwrap();
    let mut counts = AnomalyCounts::default();
    assert_eq!(counts.load("m/alice", &fine), Some(()));
    assert_eq!(counts.load("m/alice", &fine), None);
}

#[test]
fn no_moment_makes_it_fail() {
    for micros in [i64::MIN, -1, 0, i64::MAX] {
        let mut counts = AnomalyCounts::default();
        let time = Timestamp::from_micros(micros);
        let envelope = Envelope { time, ..decision("alice", 0, 0, watched(u32::MAX)) };
        counts.note(&envelope, &mut Vec::new());
        for now in [i64::MIN, 0, i64::MAX] {
            let now = Timestamp::from_micros(now);
            assert!(counts.repeats("alice", digest(0), u32::MAX, now) <= 1);
            assert!(counts.actions_per_minute("alice", now).minutes <= 60);
        }
    }
}
