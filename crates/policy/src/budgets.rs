//! Remaining budgets of a caller, and the thresholds that an action crosses.

use rust_decimal::Decimal;

use proctor_core::record::Amount;
use proctor_core::session::Caller;
use proctor_core::time::Timestamp;

use crate::condition::CallingAgent;
use crate::document::{BudgetSection, DocumentScope, Limit};
use crate::evaluate::{Payer, window_start};
use crate::input::Input;
use crate::policy::{Policy, applies_to};
use crate::question::{Account, Answer, AnswerSource, Unit};

/// The shares of a limit, in per cent, that people want to hear about; the highest first.
const SHARES: [u32; 3] = [100, 95, 80];

/// A limit, and the amount left of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Remaining {
    /// The key in the document: `daily_limit_usd`.
    pub key: String,
    /// Account that is charged.
    pub account: Account,
    /// Unit.
    pub unit: Unit,
    /// The limit.
    pub most: Decimal,
    /// Amount spent in its window.
    pub spent: Decimal,
}

impl Remaining {
    /// Remaining amount; never negative.
    pub fn left(&self) -> Decimal {
        (self.most - self.spent).max(Decimal::ZERO)
    }
}

/// A share of a limit that an action has taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Crossing {
    /// The key in the document: `daily_limit_usd`.
    pub key: String,
    /// Account that is charged.
    pub account: Account,
    /// The agent above the caller that pays; `None`: the caller, its team or its organisation does.
    pub above: Option<String>,
    /// Unit.
    pub unit: Unit,
    /// The share: 80, 95 or 100 per cent.
    pub percent: u32,
    /// Amount spent in the limit's window, this action included.
    pub spent: Decimal,
    /// The limit.
    pub limit: Decimal,
    /// Start of the limit's window.
    pub window_start: Timestamp,
}

/// All limits that hold for the caller of this input: its own, then its team's and its organisation's, each in the order of the
/// documents. A limit whose spending is not known is spent.
pub fn remaining(policy: &Policy, input: &Input, answers: &dyn AnswerSource) -> Vec<Remaining> {
    let own = limits(policy, input, Payer::Caller).chain(limits(policy, input, Payer::Group));
    let left = own.map(|charged| Remaining {
        key: charged.limit.key.clone(),
        account: charged.limit.account,
        unit: charged.limit.unit,
        most: charged.limit.most,
        spent: charged.spent(input, answers).map_or(charged.limit.most, |(spent, _)| spent),
    });
    left.collect()
}

/// Limits that lose a share of 80, 95 or 100 per cent to these amounts, those of the agents above the caller too: of each limit the
/// largest. A limit whose spending is not known loses none.
pub fn crossings(
    policy: &Policy,
    input: &Input,
    answers: &dyn AnswerSource,
    added: &[Amount],
) -> Vec<Crossing> {
    let above = above(input, answers).unwrap_or_default();
    let crossed = all_limits(policy, input, &above).filter_map(|charged| {
        let limit = charged.limit;
        let added = sum(added, limit.unit);
        if added <= Decimal::ZERO {
            return None;
        }
        let (before, window_start) = charged.spent(input, answers)?;
        let after = before.checked_add(added)?;
        let percent = SHARES.into_iter().find(|percent| {
            let share = share(limit.most, *percent);
            before < share && share <= after
        })?;
        Some(Crossing {
            key: limit.key.clone(),
            account: limit.account,
            above: match charged.payer {
                Payer::Above(above) => Some(above.principal.clone()),
                Payer::Caller | Payer::Group | Payer::Claimant => None,
            },
            unit: limit.unit,
            percent,
            spent: after,
            limit: limit.most,
            window_start,
        })
    });
    crossed.collect()
}

/// Whether a limit is used up whose budget says `action_on_exceed: suspend`, one of those above the caller too. One whose spending is not
/// known is.
pub fn is_spent(policy: &Policy, input: &Input, answers: &dyn AnswerSource) -> bool {
    let Some(above) = above(input, answers) else { return true };
    let is_used_up = |charged: &Charged<'_>| {
        charged.spent(input, answers).is_none_or(|(spent, _)| spent >= charged.limit.most)
    };
    // A document for a tool suspends from everything, so it counts whatever is done next.
    let of_tools = policy
        .documents()
        .iter()
        .filter(|document| matches!(document.scope, DocumentScope::Tool(_)))
        .filter_map(|document| document.budget.as_ref())
        .flat_map(|budget| budget.limits.iter().map(move |limit| (budget, limit)))
        .flat_map(|(budget, limit)| payers(&above).map(move |payer| Charged { budget, limit, payer }))
        .filter(|charged| charged.payer.has(charged.limit, input));
    all_limits(policy, input, &above)
        .chain(of_tools)
        .filter(|charged| charged.budget.suspend)
        .any(|charged| is_used_up(&charged))
}

/// A limit, and who pays.
struct Charged<'a> {
    budget: &'a BudgetSection,
    limit: &'a Limit,
    payer: Payer<'a>,
}

impl Charged<'_> {
    /// Amount spent in the limit's window, and the start of the window.
    fn spent(&self, input: &Input, answers: &dyn AnswerSource) -> Option<(Decimal, Timestamp)> {
        let from = window_start(self.limit, self.budget, input)?;
        match answers.answer(&self.payer.question(self.limit, from)) {
            Some(Answer::Amount(spent)) => Some((spent, from)),
            _ => None,
        }
    }
}

/// The agents above the caller; `None`: they are not known.
fn above(input: &Input, answers: &dyn AnswerSource) -> Option<Vec<Caller>> {
    CallingAgent::ask(input, answers)
        .map(|acting| acting.status.map(|status| status.above).unwrap_or_default())
}

/// Payers of the caller: itself, the agents above it, then its team and organisation.
fn payers(above: &[Caller]) -> impl Iterator<Item = Payer<'_>> {
    let above = above.iter().map(Payer::Above);
    std::iter::once(Payer::Caller).chain(above).chain(std::iter::once(Payer::Group))
}

/// The limits that an action of the caller counts against.
fn all_limits<'a>(
    policy: &'a Policy,
    input: &'a Input,
    above: &'a [Caller],
) -> impl Iterator<Item = Charged<'a>> {
    payers(above).flat_map(move |payer| limits(policy, input, payer))
}

/// The limits that hold for one that pays, on accounts that it has.
fn limits<'a>(policy: &'a Policy, input: &'a Input, payer: Payer<'a>) -> impl Iterator<Item = Charged<'a>> {
    let whom = match payer {
        Payer::Above(above) => above,
        Payer::Caller | Payer::Group | Payer::Claimant => &input.caller,
    };
    let budgets = policy
        .documents()
        .iter()
        .filter(move |document| applies_to(&document.scope, input, whom))
        .filter_map(|document| document.budget.as_ref());
    budgets
        .flat_map(move |budget| budget.limits.iter().map(move |limit| Charged { budget, limit, payer }))
        .filter(move |charged| payer.has(charged.limit, input))
}

fn sum(amounts: &[Amount], unit: Unit) -> Decimal {
    let own = amounts.iter().filter(|amount| amount.unit == unit.word());
    own.fold(Decimal::ZERO, |sum, amount| sum.saturating_add(amount.value))
}

/// Percentage of a limit.
fn share(most: Decimal, percent: u32) -> Decimal {
    if percent == 100 {
        return most;
    }
    // Dividing first, so that a limit near the largest number does not overflow.
    (most / Decimal::ONE_HUNDRED).saturating_mul(Decimal::from(percent))
}

#[cfg(test)]
mod tests;
