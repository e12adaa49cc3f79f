//! Rates and budgets: an action is let through while what was spent is below the limit.

use proctor_core::decision::Effect;
use rust_decimal::Decimal;

use super::{Gathered, sections};
use crate::calendar;
use crate::document::{BudgetSection, Document, Limit, Position};
use crate::input::Input;
use crate::question::{Account, Answer, Memory, Question};

/// Judges all limits; gives the hourly rate that the action will be charged against, if one applies.
pub(super) fn judge(
    documents: &[&Document],
    input: &Input,
    memory: &dyn Memory,
    gathered: &mut Gathered<'_>,
) -> Option<u32> {
    let rate = judge_rate(documents, input, memory, gathered);
    for document in documents {
        if let Some(budget) = &document.budget {
            judge_budget(budget, document, input, memory, gathered);
        }
    }
    rate
}

/// The smallest limit among the documents counts.
fn judge_rate(
    documents: &[&Document],
    input: &Input,
    memory: &dyn Memory,
    gathered: &mut Gathered<'_>,
) -> Option<u32> {
    let limited = documents.iter().filter_map(|document| {
        let tool = sections::tool_section(document, &input.facts)?;
        Some((tool.limit_per_hour?, tool, document))
    });
    let (limit, tool, document) = limited.min_by_key(|(limit, ..)| *limit)?;
    let question = Question::Rate(input.facts.tool.clone(), limit);
    let full = match memory.answer(&question) {
        Some(Answer::Level(level)) => level.saturating_add(1_000_000) > u64::from(limit) * 1_000_000,
        _ => {
            gathered.say(
                Effect::Deny,
                format!("rate:{}", tool.name),
                "the rate is not known",
                document,
                tool.at,
            );
            return Some(limit);
        }
    };
    if full {
        let reason = format!("rate limit exceeded: {limit} an hour");
        gathered.say(Effect::Deny, format!("rate:{}", tool.name), reason, document, tool.at);
    }
    Some(limit)
}

fn judge_budget(
    budget: &BudgetSection,
    document: &Document,
    input: &Input,
    memory: &dyn Memory,
    gathered: &mut Gathered<'_>,
) {
    for limit in &budget.limits {
        if !has_account(limit, input) {
            continue;
        }
        let rule = format!("budget.{}", limit.key);
        let Some(from) = window_start(limit, budget, input) else {
            gathered.say(
                Effect::Deny,
                rule,
                "the budget's window cannot be computed",
                document,
                Position::default(),
            );
            continue;
        };
        match memory.answer(&Question::Spent(limit.account, limit.unit, from)) {
            Some(Answer::Amount(spent)) if spent < limit.most => {}
            Some(Answer::Amount(spent)) => {
                let reason = exceeded(limit, budget, spent);
                if budget.suspend && gathered.suspend.is_none() {
                    gathered.suspend = Some(("budget", reason.clone()));
                }
                gathered.say(Effect::Deny, rule, reason, document, Position::default());
            }
            _ => gathered.say(Effect::Deny, rule, "the budget is not known", document, Position::default()),
        }
    }
}

/// Whether the caller has the account that the limit is on.
pub(crate) fn has_account(limit: &Limit, input: &Input) -> bool {
    match limit.account {
        Account::Agent => true,
        Account::Team => !input.caller.team.is_empty(),
        Account::Org => !input.caller.org.is_empty(),
    }
}

/// When the limit's window began.
pub(crate) fn window_start(
    limit: &Limit,
    budget: &BudgetSection,
    input: &Input,
) -> Option<proctor_core::time::Timestamp> {
    if limit.monthly {
        return calendar::month_start(input.now, &budget.timezone);
    }
    match budget.window_micros {
        Some(micros) => Some(input.now.plus_micros(-i64::try_from(micros).ok()?)),
        None => calendar::day_start(input.now, &budget.timezone),
    }
}

fn exceeded(limit: &Limit, budget: &BudgetSection, spent: Decimal) -> String {
    let window = match (limit.monthly, budget.window_micros) {
        (true, _) => "monthly",
        (false, None) => "daily",
        (false, Some(_)) => "rolling",
    };
    let whose =
        if limit.account == Account::Agent { String::new() } else { format!("{} ", limit.account.word()) };
    format!(
        "{whose}{window} budget exceeded: {} of {} {} spent",
        spent.normalize(),
        limit.most.normalize(),
        limit.unit.word()
    )
}
