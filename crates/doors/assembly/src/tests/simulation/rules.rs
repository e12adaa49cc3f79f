//! Policies at random: as text for the gateway, and as numbers for the model.

use proctor_core::random::SeededRandomness;

const MINUTE: i64 = 60_000_000;
const DAY: i64 = 24 * 60;

/// A time zone that keeps its distance from UTC on the days of the simulation.
#[derive(Debug, Clone, Copy)]
pub(super) struct Zone {
    name: &'static str,
    minutes: i64,
}

const ZONES: [Zone; 7] = [
    Zone { name: "UTC", minutes: 0 },
    Zone { name: "Asia/Tokyo", minutes: 540 },
    Zone { name: "Asia/Kolkata", minutes: 330 },
    Zone { name: "Asia/Kathmandu", minutes: 345 },
    Zone { name: "America/New_York", minutes: -300 },
    Zone { name: "Pacific/Kiritimati", minutes: 840 },
    Zone { name: "Pacific/Honolulu", minutes: -600 },
];

/// Policy of the model. Money is in billionths of a dollar.
#[derive(Debug, Clone)]
pub(super) struct Rules {
    /// The first minute of the day that is active, the first that is not any more, and where.
    hours: Option<(i64, i64, Zone)>,
    /// Limits for a day: the key, and how much.
    pub budgets: Vec<(&'static str, i64)>,
    budget_zone: Zone,
    /// Whether a budget that is used up suspends.
    pub suspends: bool,
    /// Searches that an agent may make in an hour.
    pub searches: Option<u32>,
    /// For how many minutes it is asked whether to deploy.
    pub asks: Option<i64>,
    /// Number of repetitions that suspends, and the window in seconds.
    pub loops: Option<(i64, i64)>,
    /// Whether agents that want to be only observed may be.
    pub observes: bool,
    number: u64,
}

impl Rules {
    /// Number tells policies apart that are otherwise the same.
    pub(super) fn random(random: &SeededRandomness, number: u64) -> Rules {
        let below = |bound: u64| i64::try_from(random.below(bound)).unwrap();
        let zone = || ZONES[usize::try_from(random.below(ZONES.len() as u64)).unwrap()];
        let hours = match random.below(3) {
            0 => None,
            // Long ones, so that something happens; those that begin late go on past midnight.
            _ => {
                let start = below(DAY.unsigned_abs());
                Some((start, (start + 500 + below(700)) % DAY, zone()))
            }
        };
        let mut budgets = Vec::new();
        for (key, least) in
            [("daily_limit_usd", 8_i64), ("team_daily_limit_usd", 30), ("org_daily_limit_usd", 80)]
        {
            if random.below(3) > 0 {
                budgets.push((key, (least + below(3 * least.unsigned_abs())) * 1_000_000));
            }
        }
        Rules {
            hours,
            budgets,
            budget_zone: zone(),
            suspends: random.below(2) == 0,
            searches: (random.below(4) > 0).then(|| 1 + u32::try_from(random.below(4)).unwrap()),
            asks: (random.below(5) > 0).then(|| 5 + below(120)),
            loops: (random.below(3) > 0).then(|| (2 + below(3), 60 * (10 + below(50)))),
            observes: random.below(2) == 0,
            number,
        }
    }

    /// The document.
    pub(super) fn text(&self) -> String {
        let mut text =
            format!("# {}\ndefault: allow\ntools:\n  forbidden: {{ allow: false }}\n", self.number);
        if let Some(limit) = self.searches {
            text += &format!("  search: {{ allow: true, limit_per_hour: {limit} }}\n");
        }
        if let Some((start, end, zone)) = self.hours {
            let clock = |minute: i64| format!("{:02}:{:02}", minute / 60, minute % 60);
            let (start, end, zone) = (clock(start), clock(end), zone.name);
            text += &format!(
                "schedule:\n  active_hours: {{ start: \"{start}\", end: \"{end}\", timezone: {zone} }}\n"
            );
        }
        // The model settles reports in full.
        if self.budgets.is_empty() {
            text += "budget: { trust_reports: true }\n";
        } else {
            let exceed = if self.suspends { "suspend" } else { "deny" };
            text += &format!(
                "budget:\n  trust_reports: true\n  timezone: {}\n  action_on_exceed: {exceed}\n",
                self.budget_zone.name
            );
            for (key, limit) in &self.budgets {
                text += &format!("  {key}: {}.{:09}\n", limit / 1_000_000_000, limit % 1_000_000_000);
            }
        }
        if let Some((count, seconds)) = self.loops {
            text +=
                &format!("anomalies:\n  loops: {{ count: {count}, window: {seconds}s, then: suspend }}\n");
        }
        if self.observes {
            text += "observe: [\"name:on *\"]\n";
        }
        text += "rules:\n  - { id: no-system-files, when: 'action.writes.exists(p, p.startsWith(\"/etc/\"))', then: deny }\n";
        if let Some(minutes) = self.asks {
            text += &format!(
                "  - {{ id: deploys, when: 'action.tool == \"deploy\"', then: ask, expires: {minutes}m }}\n"
            );
        }
        text
    }

    pub(super) fn is_active(&self, now: i64) -> bool {
        let Some((start, end, zone)) = self.hours else { return true };
        // The last minute of a day is written as the end of a day without end.
        let end = if end == DAY - 1 { DAY } else { end };
        let minute = (now.div_euclid(MINUTE) + zone.minutes).rem_euclid(DAY);
        if start < end { start <= minute && minute < end } else { minute >= start || minute < end }
    }

    /// The minute in which the budgets' day began.
    pub(super) fn day_start(&self, now: i64) -> i64 {
        let minute = now.div_euclid(MINUTE);
        minute - (minute + self.budget_zone.minutes).rem_euclid(DAY)
    }
}
