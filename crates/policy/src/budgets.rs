//! What is left of the budgets that a caller acts under.

use rust_decimal::Decimal;

use crate::evaluate::window_start;
use crate::input::Input;
use crate::policy::{Policy, applies};
use crate::question::{Account, Answer, Memory, Question, Unit};

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

/// All limits that hold for the caller of this input, in the order of the documents. A limit whose spending is not known is spent.
pub fn remaining(policy: &Policy, input: &Input, memory: &dyn Memory) -> Vec<Remaining> {
    let mut all = Vec::new();
    for document in policy.documents().iter().filter(|document| applies(&document.scope, input)) {
        let Some(budget) = &document.budget else { continue };
        for limit in &budget.limits {
            let has_account = match limit.account {
                Account::Agent => true,
                Account::Team => !input.caller.team.is_empty(),
                Account::Org => !input.caller.org.is_empty(),
            };
            if !has_account {
                continue;
            }
            let spent = window_start(limit, budget, input)
                .and_then(|from| memory.answer(&Question::Spent(limit.account, limit.unit, from)));
            let spent = match spent {
                Some(Answer::Amount(spent)) => spent,
                _ => limit.most,
            };
            all.push(Remaining {
                key: limit.key.clone(),
                account: limit.account,
                unit: limit.unit,
                most: limit.most,
                spent,
            });
        }
    }
    all
}
