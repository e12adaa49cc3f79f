//! `budget`.

use proctor_yaml::Node;
use rust_decimal::Decimal;

use super::fields::Fields;
use super::problems::Problems;
use super::sections::read_timezone;
use super::{BudgetSection, Limit, keys};
use crate::question::{Account, Unit};

const ACCOUNTS: [(Account, &str); 3] =
    [(Account::Agent, ""), (Account::Team, "team_"), (Account::Org, "org_")];

pub(super) fn read_budget(node: &Node, problems: &mut Problems) -> Option<BudgetSection> {
    let fields = Fields::closed(node, "budget", keys::BUDGET, problems)?;
    let mut limits = Vec::new();
    read_limits(&fields, Unit::Usd, "", "_limit_usd", &mut limits, problems);
    for (unit, key) in [(Unit::Tokens, "tokens"), (Unit::Calls, "calls")] {
        if let Some(counts) = fields
            .get(key)
            .and_then(|node| Fields::closed(node, format!("budget.{key}"), keys::COUNTS, problems))
        {
            read_limits(&counts, unit, &format!("{key}."), "", &mut limits, problems);
        }
    }
    let timezone = read_timezone(&fields, "timezone", problems).unwrap_or_default();
    let window_micros = fields.duration("window", problems);
    let exceed = fields.word("action_on_exceed", keys::EXCEED_ACTIONS, problems);
    let suspend = exceed.is_some_and(|word| word.value == "suspend");
    let trust_reports = fields.boolean("trust_reports", problems).unwrap_or(false);
    Some(BudgetSection { limits, timezone, window_micros, suspend, trust_reports })
}

/// The limits of one unit, of which each month's must not be below its day's.
fn read_limits(
    fields: &Fields<'_>,
    unit: Unit,
    section: &str,
    ending: &str,
    limits: &mut Vec<Limit>,
    problems: &mut Problems,
) {
    let whole = unit != Unit::Usd;
    for (account, prefix) in ACCOUNTS {
        let daily_key = format!("{prefix}daily{ending}");
        let monthly_key = format!("{prefix}monthly{ending}");
        let daily = fields.amount(&daily_key, whole, problems);
        let monthly = fields.amount(&monthly_key, whole, problems);
        if let (Some(daily), Some(monthly)) = (daily, monthly)
            && monthly < daily
            && let Some(node) = fields.get(&monthly_key)
        {
            let (daily_name, monthly_name) = (fields.name(&daily_key), fields.name(&monthly_key));
            problems.add(
                node.at,
                format!("`{monthly_name}` ({monthly}) must not be less than `{daily_name}` ({daily})"),
            );
        }
        let mut push = |key: &str, monthly: bool, most: Option<Decimal>| {
            if let Some(most) = most {
                limits.push(Limit { key: format!("{section}{key}"), account, unit, monthly, most });
            }
        };
        push(&daily_key, false, daily);
        push(&monthly_key, true, monthly);
    }
}
