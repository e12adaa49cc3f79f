//! Rates and budgets: an action is let through while what was spent is below the limit.

use proctor_core::action::ActionKind;
use proctor_core::decision::Effect;
use proctor_core::session::Caller;
use proctor_core::time::Timestamp;
use rust_decimal::Decimal;

use super::{Gathered, claims, default_effect, requested, sections};
use crate::calendar;
use crate::document::{BudgetSection, Document, Limit, Position};
use crate::input::Input;
use crate::policy::{Policy, applies_to};
use crate::question::{Account, Answer, AnswerSource, Question, Unit};

/// Judges all limits: the caller's own, then those of the agents above it, then its team's and its organisation's. Returns the hourly rate
/// that the action will be charged against, if one applies.
pub(super) fn judge(
    policy: &Policy,
    documents: &[&Document],
    above: &[Caller],
    input: &Input,
    answers: &dyn AnswerSource,
    gathered: &mut Gathered<'_>,
) -> Option<u32> {
    let rate = judge_rate(documents, input, answers, gathered);
    judge_budgets(documents, Payer::Caller, input, answers, gathered);
    for above in above {
        let about = policy.documents().iter().filter(|document| applies_to(&document.scope, input, above));
        judge_budgets(&about.collect::<Vec<_>>(), Payer::Above(above), input, answers, gathered);
    }
    judge_budgets(documents, Payer::Group, input, answers, gathered);
    judge_budgets(documents, Payer::Claimant, input, answers, gathered);
    rate
}

/// Owner of the limits.
#[derive(Clone, Copy)]
pub(crate) enum Payer<'a> {
    /// The caller's own.
    Caller,
    /// Limits of an agent above the caller.
    Above(&'a Caller),
    /// Limits of the caller's team and organisation.
    Group,
    /// The same limits for a caller that only claims a team: no more than that by itself, whatever it claims.
    Claimant,
}

impl Payer<'_> {
    /// Whether it has the account that the limit is on.
    pub(crate) fn has(self, limit: &Limit, input: &Input) -> bool {
        match (self, limit.account) {
            (Payer::Caller | Payer::Above(_), account) => account == Account::Agent,
            (Payer::Group, Account::Agent) => false,
            (Payer::Group, Account::Team) => !input.caller.team.is_empty(),
            (Payer::Group, Account::Org) => !input.caller.org.is_empty(),
            (Payer::Claimant, account) => account != Account::Agent && claims::are_claims(input),
        }
    }

    /// Amount spent in the limit's window, and the start of the window.
    pub(crate) fn question(self, limit: &Limit, from: Timestamp) -> Question {
        match self {
            Payer::Above(above) => Question::SpentAbove(above.principal.clone(), limit.unit, from),
            Payer::Caller | Payer::Group => Question::Spent(limit.account, limit.unit, from),
            Payer::Claimant => Question::Spent(Account::Agent, limit.unit, from),
        }
    }
}

/// Whether this very action was asked about before: then it was counted at the ask, and waiting for the answer or using the grant is
/// free.
fn was_asked(
    documents: &[&Document],
    input: &Input,
    answers: &dyn AnswerSource,
    gathered: &Gathered<'_>,
) -> bool {
    let has = |effect: Effect| gathered.first(effect).is_some();
    let default = default_effect(documents);
    let allows = has(Effect::Allow) || default == Effect::Allow;
    let asks = has(Effect::Ask)
        || (!has(Effect::Defer)
            && ((allows && requested::opinion(input).is_some())
                || (!has(Effect::Allow) && default == Effect::Ask)));
    asks && matches!(answers.answer(&Question::Approval), Some(Answer::Approval(Some(_))))
}

/// The smallest limit among the documents counts.
fn judge_rate(
    documents: &[&Document],
    input: &Input,
    answers: &dyn AnswerSource,
    gathered: &mut Gathered<'_>,
) -> Option<u32> {
    let limited = documents.iter().filter_map(|document| {
        let tool = sections::tool_section(document, &input.facts)?;
        Some((tool.limit_per_hour?, tool, document))
    });
    let (limit, tool, document) = limited.min_by_key(|(limit, ..)| *limit)?;
    // A result belongs to a call that was counted.
    if input.facts.kind == ActionKind::ToolResult || was_asked(documents, input, answers, gathered) {
        return None;
    }
    let question = Question::Rate(input.facts.tool.clone(), limit);
    let full = match answers.answer(&question) {
        Some(Answer::Level(level)) => level.saturating_add(1_000_000) > u64::from(limit) * 1_000_000,
        _ => {
            gathered.push(
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
        gathered.push(Effect::Deny, format!("rate:{}", tool.name), reason, document, tool.at);
    }
    Some(limit)
}

fn judge_budgets(
    documents: &[&Document],
    payer: Payer<'_>,
    input: &Input,
    answers: &dyn AnswerSource,
    gathered: &mut Gathered<'_>,
) {
    let budgets =
        documents.iter().filter_map(|document| document.budget.as_ref().map(|budget| (*document, budget)));
    let mut limits: Vec<_> = budgets
        .flat_map(|(document, budget)| budget.limits.iter().map(move |limit| (document, budget, limit)))
        .filter(|(.., limit)| payer.has(limit, input))
        .filter(|(.., limit)| input.facts.kind != ActionKind::ToolResult || limit.unit != Unit::Calls)
        .collect();
    // If several are used up, the longest is the reason.
    limits.sort_by_key(|(.., limit)| !limit.monthly);
    for (document, budget, limit) in limits {
        let rule = format!("budget.{}", limit.key);
        let Some(from) = window_start(limit, budget, input) else {
            gathered.push(
                Effect::Deny,
                rule,
                "the budget's window cannot be computed",
                document,
                Position::default(),
            );
            continue;
        };
        match answers.answer(&payer.question(limit, from)) {
            Some(Answer::Amount(spent)) if spent < limit.most => {}
            Some(Answer::Amount(spent)) => {
                let reason = exceeded(limit, budget, payer, spent);
                // Suspensions end with what their own account says.
                let suspends = budget.suspend && !matches!(payer, Payer::Claimant);
                if suspends && gathered.suspend.is_none() {
                    gathered.suspend = Some(("budget", reason.clone()));
                }
                gathered.push(Effect::Deny, rule, reason, document, Position::default());
            }
            _ => gathered.push(Effect::Deny, rule, "the budget is not known", document, Position::default()),
        }
    }
}

/// Start of the limit's window.
pub(crate) fn window_start(limit: &Limit, budget: &BudgetSection, input: &Input) -> Option<Timestamp> {
    if limit.monthly {
        return calendar::month_start(input.now, &budget.timezone);
    }
    match budget.window_micros {
        Some(micros) => Some(input.now.plus_micros(-i64::try_from(micros).ok()?)),
        None => calendar::day_start(input.now, &budget.timezone),
    }
}

fn exceeded(limit: &Limit, budget: &BudgetSection, payer: Payer<'_>, spent: Decimal) -> String {
    let window = match (limit.monthly, budget.window_micros) {
        (true, _) => "monthly",
        (false, None) => "daily",
        (false, Some(_)) => "rolling",
    };
    let what = match payer {
        Payer::Caller => format!("{window} budget"),
        Payer::Above(above) => format!("{window} budget of the agent `{}` above it", above.principal),
        Payer::Group => format!("{} {window} budget", limit.account.word()),
        Payer::Claimant => format!("{} {window} budget, by this agent alone,", limit.account.word()),
    };
    format!(
        "{what} exceeded: {} of {} {} spent",
        spent.normalize(),
        limit.most.normalize(),
        limit.unit.word()
    )
}

#[cfg(test)]
mod tests;
