//! What is left of the budgets that a caller acts under, and what an action takes of them.

use rust_decimal::Decimal;

use proctor_core::record::Amount;
use proctor_core::time::Timestamp;

use crate::document::{BudgetSection, DocumentScope, Limit};
use crate::evaluate::{has_account, window_start};
use crate::input::Input;
use crate::policy::{Policy, applies};
use crate::question::{Account, Answer, Memory, Question, Unit};

/// The shares of a limit, in per cent, that people want to hear about; the highest first.
const SHARES: [u32; 3] = [100, 95, 80];

/// One limit, and how much of it is left.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Remaining {
    /// The key in the document: `daily_limit_usd`.
    pub key: String,
    /// Who pays.
    pub account: Account,
    /// What is counted.
    pub unit: Unit,
    /// The limit.
    pub most: Decimal,
    /// What was spent in its window.
    pub spent: Decimal,
}

impl Remaining {
    /// What is left; never negative.
    pub fn left(&self) -> Decimal {
        (self.most - self.spent).max(Decimal::ZERO)
    }
}

/// A share of a limit that an action has taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Crossing {
    /// The key in the document: `daily_limit_usd`.
    pub key: String,
    /// Who pays.
    pub account: Account,
    /// What is counted.
    pub unit: Unit,
    /// The share: 80, 95 or 100 per cent.
    pub percent: u32,
    /// What is spent in the limit's window, this action included.
    pub spent: Decimal,
    /// The limit.
    pub limit: Decimal,
    /// When the limit's window began.
    pub window_start: Timestamp,
}

/// All limits that hold for the caller of this input, in the order of the documents. A limit whose spending is not known is spent.
pub fn remaining(policy: &Policy, input: &Input, memory: &dyn Memory) -> Vec<Remaining> {
    let left = limits(policy, input).map(|(budget, limit)| Remaining {
        key: limit.key.clone(),
        account: limit.account,
        unit: limit.unit,
        most: limit.most,
        spent: spent(limit, budget, input, memory).map_or(limit.most, |(spent, _)| spent),
    });
    left.collect()
}

/// Which limits lose a share of 80, 95 or 100 per cent to these amounts: of each limit the largest. A limit whose spending is not known
/// loses none.
pub fn crossings(policy: &Policy, input: &Input, memory: &dyn Memory, added: &[Amount]) -> Vec<Crossing> {
    let crossed = limits(policy, input).filter_map(|(budget, limit)| {
        let added = sum(added, limit.unit);
        if added <= Decimal::ZERO {
            return None;
        }
        let (before, window_start) = spent(limit, budget, input, memory)?;
        let after = before.checked_add(added)?;
        let percent = SHARES.into_iter().find(|percent| {
            let share = share(limit.most, *percent);
            before < share && share <= after
        })?;
        Some(Crossing {
            key: limit.key.clone(),
            account: limit.account,
            unit: limit.unit,
            percent,
            spent: after,
            limit: limit.most,
            window_start,
        })
    });
    crossed.collect()
}

/// Whether a limit is used up whose budget says `action_on_exceed: suspend`. One whose spending is not known is.
pub fn is_spent(policy: &Policy, input: &Input, memory: &dyn Memory) -> bool {
    let is_used_up = |budget: &BudgetSection, limit: &Limit| {
        spent(limit, budget, input, memory).is_none_or(|(spent, _)| spent >= limit.most)
    };
    // A document for a tool suspends from everything, so it counts whatever is done next.
    let of_tools = policy
        .documents()
        .iter()
        .filter(|document| matches!(document.scope, DocumentScope::Tool(_)))
        .filter_map(|document| document.budget.as_ref())
        .flat_map(|budget| budget.limits.iter().map(move |limit| (budget, limit)));
    limits(policy, input)
        .chain(of_tools)
        .filter(|(budget, _)| budget.suspend)
        .any(|(budget, limit)| is_used_up(budget, limit))
}

/// The limits that hold for the caller, on accounts that it has.
fn limits<'a>(policy: &'a Policy, input: &'a Input) -> impl Iterator<Item = (&'a BudgetSection, &'a Limit)> {
    let budgets = policy
        .documents()
        .iter()
        .filter(|document| applies(&document.scope, input))
        .filter_map(|document| document.budget.as_ref());
    budgets
        .flat_map(|budget| budget.limits.iter().map(move |limit| (budget, limit)))
        .filter(|(_, limit)| has_account(limit, input))
}

/// What was spent in the limit's window, and when that began.
fn spent(
    limit: &Limit,
    budget: &BudgetSection,
    input: &Input,
    memory: &dyn Memory,
) -> Option<(Decimal, Timestamp)> {
    let from = window_start(limit, budget, input)?;
    match memory.answer(&Question::Spent(limit.account, limit.unit, from)) {
        Some(Answer::Amount(spent)) => Some((spent, from)),
        _ => None,
    }
}

fn sum(amounts: &[Amount], unit: Unit) -> Decimal {
    let own = amounts.iter().filter(|amount| amount.unit == unit.word());
    own.fold(Decimal::ZERO, |sum, amount| sum.saturating_add(amount.value))
}

/// So many per cent of a limit.
fn share(most: Decimal, percent: u32) -> Decimal {
    if percent == 100 {
        return most;
    }
    // Dividing first, so that a limit near the largest number does not overflow.
    (most / Decimal::ONE_HUNDRED).saturating_mul(Decimal::from(percent))
}

#[cfg(test)]
mod tests;
