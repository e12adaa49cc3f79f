//! Spending of each account: by minute for the last 25 hours, by quarter of an hour for the last 33 days.
//!
//! Days and months of every time zone in use begin on quarter hours, so sums over them are exact. A moment within a minute (or,
//! beyond 25 hours, within a quarter) counts that whole minute (or quarter): too much rather than too little.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use proctor_core::json::Json;
use proctor_core::record::{Amount, Envelope};
use proctor_core::time::Timestamp;
use rust_decimal::Decimal;
use rust_decimal::prelude::ToPrimitive;

use super::row::{Items, Row, Text};
use super::{AgentInfo, KEPT_MINUTES, minute_of};
use crate::question::{Account, Unit};

pub(super) const FOLD: &str = "meter";

const QUARTER: i64 = 15;
const DAY: i64 = 24 * 60;

/// Quarters that began so many minutes ago are kept as one sum.
const FINE_MINUTES: i64 = 25 * 60;

/// The most quarters that one record compacts, and the most rows of old quarters that it drops, for each account.
const MAX_COMPACTED_PER_RECORD: usize = 8;

/// Amounts are kept in millionths of millionths: adding integers is exact in any order.
const SCALE: u32 = 12;

/// The most that one record can charge; more than any limit, and far from where sums could overflow.
const MOST: i128 = 1_000_000_000_000_000 * 1_000_000_000_000;

/// US dollars, tokens, calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Sums([i128; 3]);

#[derive(Debug, Clone, Copy, Default)]
struct Quarter {
    sums: Sums,
    /// Whether one row stands for the whole quarter; otherwise each of its minutes has a row.
    is_one_row: bool,
}

#[derive(Debug, Default)]
struct Meter {
    minutes: BTreeMap<i64, Sums>,
    quarters: BTreeMap<i64, Quarter>,
    days: BTreeMap<i64, Sums>,
}

#[derive(Debug, Default)]
pub(super) struct Meters {
    meters: HashMap<Arc<str>, Meter>,
    /// Accounts by their newest quarter, so that unused ones are found.
    by_newest: BTreeSet<(i64, Arc<str>)>,
}

impl Meters {
    /// Books sums at a minute for the principal, team and organisation of a record, and for the principals above.
    pub(super) fn book(
        &mut self,
        envelope: &Envelope,
        above: &[&AgentInfo],
        minute: i64,
        sums: Sums,
        rows: &mut Vec<Row>,
    ) {
        if sums == Sums::default() {
            return;
        }
        let now = minute_of(envelope.time);
        for above in above {
            self.book_account(&account_key(Account::Agent, &above.principal), minute, now, sums, rows);
        }
        for account in [Account::Agent, Account::Team, Account::Org] {
            let owner = match account {
                Account::Agent => &envelope.principal,
                Account::Team => &envelope.team,
                Account::Org => &envelope.org,
            };
            if account == Account::Agent || !owner.is_empty() {
                self.book_account(&account_key(account, owner), minute, now, sums, rows);
            }
        }
    }

    fn book_account(&mut self, key: &str, minute: i64, now: i64, sums: Sums, rows: &mut Vec<Row>) {
        let known = self.meters.get_key_value(key).map(|(key, _)| Arc::clone(key));
        let key: Arc<str> = known.unwrap_or_else(|| key.into());
        let meter = self.meters.entry(Arc::clone(&key)).or_default();
        let newest_before = meter.newest_quarter();
        meter.book(&key, minute, now, sums, rows);
        meter.compact(&key, now, rows);
        let newest = meter.newest_quarter();
        if newest_before != newest {
            if let Some(newest_before) = newest_before {
                self.by_newest.remove(&(newest_before, Arc::clone(&key)));
            }
            self.by_newest.extend(newest.map(|newest| (newest, Arc::clone(&key))));
        }
        if newest.is_none() {
            self.meters.remove(&key);
        }
    }

    /// Drops rows of an account that has not been used for so long that nothing asks about it.
    pub(super) fn expire(&mut self, time: Timestamp, rows: &mut Vec<Row>) {
        let Some((newest, key)) = self.by_newest.first().cloned() else { return };
        if newest * QUARTER >= minute_of(time).saturating_sub(KEPT_MINUTES + DAY) {
            return;
        }
        let Some(meter) = self.meters.get_mut(&key) else { return };
        for _ in 0..MAX_COMPACTED_PER_RECORD {
            meter.drop_oldest(&key, rows);
        }
        if meter.quarters.is_empty() {
            self.meters.remove(&key);
            self.by_newest.remove(&(newest, key));
        }
    }

    /// Spending since a moment; `None` if that is longer ago than is kept.
    pub(super) fn spent(
        &self,
        account: Account,
        owner: &str,
        unit: Unit,
        from: Timestamp,
        now: Timestamp,
    ) -> Option<Decimal> {
        let from = minute_of(from);
        if from < minute_of(now).saturating_sub(KEPT_MINUTES) {
            return None;
        }
        let place = match unit {
            Unit::Usd => 0,
            Unit::Tokens => 1,
            Unit::Calls => 2,
        };
        let sum =
            self.meters.get(account_key(account, owner).as_str()).map_or(0, |meter| meter.since(from, place));
        Some(to_decimal(sum))
    }

    pub(super) fn rows(&self, rows: &mut Vec<Row>) {
        for (key, meter) in &self.meters {
            rows.extend(meter.minutes.iter().map(|(minute, sums)| row(&minute_key(key, *minute), *sums)));
            let whole = meter.quarters.iter().filter(|(_, quarter)| quarter.is_one_row);
            rows.extend(whole.map(|(number, quarter)| row(&quarter_key(key, *number), quarter.sums)));
        }
    }

    pub(super) fn load(&mut self, key: &str, value: &Json) -> Option<()> {
        let mut items = Items::of(value)?;
        let sums = Sums([items.int()?, items.int()?, items.int()?]);
        items.end()?;
        let mut parts = key.splitn(3, '/');
        let (level, number, account) = (parts.next()?, parts.next()?.parse::<i64>().ok()?, parts.next()?);
        let meter = self.meters.entry(account.into()).or_default();
        match level {
            "m" => {
                meter.minutes.insert(number, sums);
                meter.quarters.entry(number.div_euclid(QUARTER)).or_default().sums.add(sums);
            }
            "q" => {
                let quarter = meter.quarters.entry(number).or_default();
                quarter.sums.add(sums);
                quarter.is_one_row = true;
            }
            _ => return None,
        }
        let day = if level == "m" { number.div_euclid(DAY) } else { day_of_quarter(number) };
        meter.days.entry(day).or_default().add(sums);
        Some(())
    }

    pub(super) fn finish_load(&mut self) {
        let newest =
            self.meters.iter().filter_map(|(key, meter)| Some((meter.newest_quarter()?, Arc::clone(key))));
        self.by_newest = newest.collect();
    }
}

impl Meter {
    fn newest_quarter(&self) -> Option<i64> {
        self.quarters.last_key_value().map(|(quarter, _)| *quarter)
    }

    fn book(&mut self, key: &str, minute: i64, now: i64, sums: Sums, rows: &mut Vec<Row>) {
        let number = minute.div_euclid(QUARTER);
        let is_coarse = number < first_fine_quarter(now);
        let known = self.quarters.get(&number).copied();
        let is_one_row = known.map_or(is_coarse, |quarter| quarter.is_one_row);
        let before = match known {
            Some(quarter) if is_one_row => quarter.sums,
            _ => self.minutes.get(&minute).copied().unwrap_or_default(),
        };
        // What is taken back can never be more than what was booked there.
        let change = sums.at_least_minus(before);
        if change == Sums::default() {
            return;
        }
        let quarter = self.quarters.entry(number).or_insert(Quarter { sums: Sums::default(), is_one_row });
        quarter.sums.add(change);
        if is_one_row {
            rows.push(row(&quarter_key(key, number), quarter.sums));
        } else {
            let sums = self.minutes.entry(minute).or_default();
            sums.add(change);
            rows.push(row(&minute_key(key, minute), *sums));
        }
        self.days.entry(minute.div_euclid(DAY)).or_default().add(change);
    }

    /// Compacts each quarter that is no longer needed by minutes to one row, and drops quarters that are not needed at all.
    fn compact(&mut self, key: &str, now: i64, rows: &mut Vec<Row>) {
        let fine = first_fine_quarter(now);
        for _ in 0..MAX_COMPACTED_PER_RECORD {
            let Some(number) = self.minutes.first_key_value().map(|(minute, _)| minute.div_euclid(QUARTER))
            else {
                break;
            };
            if number >= fine {
                break;
            }
            self.drop_minutes(key, number, rows);
            if let Some(quarter) = self.quarters.get_mut(&number) {
                quarter.is_one_row = true;
                rows.push(row(&quarter_key(key, number), quarter.sums));
            }
        }
        for _ in 0..MAX_COMPACTED_PER_RECORD {
            match self.quarters.first_key_value() {
                // A day more than is asked about, so that a day's sum is never asked for after a part of it was dropped.
                Some((oldest, _)) if *oldest * QUARTER < now.saturating_sub(KEPT_MINUTES + DAY) => {
                    self.drop_oldest(key, rows);
                }
                _ => break,
            }
        }
    }

    fn drop_oldest(&mut self, key: &str, rows: &mut Vec<Row>) {
        let Some((number, quarter)) = self.quarters.pop_first() else { return };
        self.drop_minutes(key, number, rows);
        if quarter.is_one_row {
            rows.push(Row::delete(FOLD, &quarter_key(key, number)));
        }
        let day = day_of_quarter(number);
        if self.quarters.first_key_value().is_none_or(|(next, _)| day_of_quarter(*next) != day) {
            self.days.remove(&day);
        } else if let Some(sums) = self.days.get_mut(&day) {
            sums.add(quarter.sums.negated());
        }
    }

    fn drop_minutes(&mut self, key: &str, quarter: i64, rows: &mut Vec<Row>) {
        while let Some(entry) = self.minutes.first_entry() {
            if entry.key().div_euclid(QUARTER) != quarter {
                return;
            }
            let (minute, _) = entry.remove_entry();
            rows.push(Row::delete(FOLD, &minute_key(key, minute)));
        }
    }

    /// Minutes up to the next quarter, quarters up to the next day, then days.
    fn since(&self, from: i64, place: usize) -> i128 {
        let mut sum: i128 = 0;
        let mut add = |sums: &Sums| sum = sum.saturating_add(sums.0.get(place).copied().unwrap_or(0));
        let mut first_quarter = from.div_euclid(QUARTER);
        if from.rem_euclid(QUARTER) != 0
            && !self.quarters.get(&first_quarter).is_some_and(|quarter| quarter.is_one_row)
        {
            first_quarter += 1;
            self.minutes.range(from..first_quarter * QUARTER).for_each(|(_, sums)| add(sums));
        }
        let first_day = (first_quarter * QUARTER + DAY - 1).div_euclid(DAY);
        let quarters_of_first_day = self.quarters.range(first_quarter..first_day * (DAY / QUARTER));
        quarters_of_first_day.for_each(|(_, quarter)| add(&quarter.sums));
        self.days.range(first_day..).for_each(|(_, sums)| add(sums));
        sum
    }
}

impl Sums {
    /// The amounts of a record that accounts are charged with.
    pub(super) fn of(amounts: &[Amount]) -> Sums {
        let sum = |unit: Unit| {
            let own = amounts.iter().filter(|amount| amount.unit == unit.word());
            own.fold(0i128, |sum, amount| sum.saturating_add(to_parts(amount.value)))
        };
        Sums([sum(Unit::Usd), sum(Unit::Tokens), sum(Unit::Calls)])
    }

    #[must_use]
    pub(super) fn negated(self) -> Sums {
        Sums(self.0.map(i128::saturating_neg))
    }

    /// The positive sums; the others are zero.
    #[must_use]
    pub(super) fn raised(self) -> Sums {
        Sums(self.0.map(|sum| sum.max(0)))
    }

    /// The negative sums; the others are zero.
    #[must_use]
    pub(super) fn lowered(self) -> Sums {
        Sums(self.0.map(|sum| sum.min(0)))
    }

    fn at_least_minus(self, other: Sums) -> Sums {
        let mut out = self;
        for (own, other) in out.0.iter_mut().zip(other.0) {
            *own = (*own).max(other.saturating_neg());
        }
        out
    }

    fn add(&mut self, other: Sums) {
        for (own, other) in self.0.iter_mut().zip(other.0) {
            *own = own.saturating_add(other);
        }
    }
}

/// Rounded up: a cost too small to be written still counts, and a reduction too small to be written does not.
fn to_parts(amount: Decimal) -> i128 {
    let most = Decimal::from(1_000_000_000_000_000_u64);
    let amount = amount.clamp(-most, most);
    let whole = amount.trunc();
    let fraction = (amount - whole) * Decimal::from(10_u64.pow(SCALE));
    let parts = whole.to_i128().unwrap_or(0) * 10_i128.pow(SCALE) + fraction.ceil().to_i128().unwrap_or(0);
    parts.clamp(-MOST, MOST)
}

fn to_decimal(parts: i128) -> Decimal {
    Decimal::try_from_i128_with_scale(parts.max(0), SCALE).map_or(Decimal::MAX, |amount| amount.normalize())
}

fn account_key(account: Account, owner: &str) -> String {
    format!("{}:{owner}", account.word())
}

fn minute_key(account: &str, minute: i64) -> String {
    format!("m/{minute}/{account}")
}

fn quarter_key(account: &str, quarter: i64) -> String {
    format!("q/{quarter}/{account}")
}

/// The first quarter that is kept by minutes.
fn first_fine_quarter(now: i64) -> i64 {
    now.saturating_sub(FINE_MINUTES).div_euclid(QUARTER)
}

fn day_of_quarter(quarter: i64) -> i64 {
    quarter.div_euclid(DAY / QUARTER)
}

fn row(key: &str, sums: Sums) -> Row {
    let [usd, tokens, calls] = sums.0;
    Row::put(FOLD, key, Text::new().int(usd).int(tokens).int(calls))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_round_up() {
        let parts = |text: &str| to_parts(Decimal::from_str_exact(text).unwrap());
        assert_eq!(parts("1.5"), 1_500_000_000_000);
        assert_eq!(parts("0.0000000000001"), 1);
        assert_eq!(parts("-0.0000000000001"), 0);
        assert_eq!(parts("-2.25"), -2_250_000_000_000);
        assert_eq!(parts("79228162514264337593543950335"), MOST);
        assert_eq!(to_decimal(1_500_000_000_000).to_string(), "1.5");
        assert_eq!(to_decimal(-1), Decimal::ZERO);
        assert_eq!(to_decimal(i128::MAX), Decimal::MAX);
    }
}
