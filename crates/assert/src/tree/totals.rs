//! Checks on sums over all traces.

use super::walk;
use crate::sequence::part::Part;
use crate::trace::{Head, Metadata, Step};
use crate::verdict::Verdict;

/// What is summed.
#[derive(Clone, Copy)]
pub(super) enum Quantity {
    Cost,
    Tokens,
    Latency,
}

impl Quantity {
    pub(super) fn of(self, metadata: &Metadata<'_>) -> f64 {
        let number = match self {
            Quantity::Cost => metadata.cost_usd,
            Quantity::Tokens => metadata.total_tokens,
            Quantity::Latency => metadata.latency_ms,
        };
        number.unwrap_or(0.0)
    }

    fn member(self) -> &'static str {
        match self {
            Quantity::Cost => "cost_usd",
            Quantity::Tokens => "total_tokens",
            Quantity::Latency => "latency_ms",
        }
    }

    fn word(self) -> &'static str {
        match self {
            Quantity::Cost => "USD",
            Quantity::Tokens => "tokens",
            Quantity::Latency => "ms",
        }
    }
}

/// How large a sum may be.
#[derive(Clone, Copy)]
pub(super) enum Bound {
    Less(f64),
    AtMost(f64),
    More(f64),
    AtLeast(f64),
    Equal(f64),
    Between(f64, f64),
}

impl Bound {
    #[expect(clippy::float_cmp, reason = "equality is asked for")]
    fn holds(self, sum: f64) -> bool {
        match self {
            Bound::Less(value) => sum < value,
            Bound::AtMost(value) => sum <= value,
            Bound::More(value) => sum > value,
            Bound::AtLeast(value) => sum >= value,
            Bound::Equal(value) => sum == value,
            Bound::Between(least, most) => least <= sum && sum <= most,
        }
    }

    fn words(self) -> String {
        match self {
            Bound::Less(value) => format!("less than {value}"),
            Bound::AtMost(value) => format!("at most {value}"),
            Bound::More(value) => format!("more than {value}"),
            Bound::AtLeast(value) => format!("at least {value}"),
            Bound::Equal(value) => format!("exactly {value}"),
            Bound::Between(least, most) => format!("from {least} to {most}"),
        }
    }
}

/// The sum over all traces is within a bound; a trace that says nothing counts as nothing.
pub(super) struct Total {
    quantity: Quantity,
    bound: Bound,
    below: f64,
}

impl Total {
    pub(super) fn new(quantity: Quantity, bound: Bound) -> Total {
        Total { quantity, bound, below: 0.0 }
    }
}

impl Part for Total {
    fn step(&mut self, index: usize, step: &Step<'_>) {
        walk::traces(index, step, &mut |below, _, _| self.below += self.quantity.of(&below.head.metadata));
    }

    fn finding(&self, _seen: usize, head: &Head<'_>) -> Verdict {
        let sum = self.quantity.of(&head.metadata) + self.below;
        let (word, bound) = (self.quantity.word(), self.bound.words());
        if self.bound.holds(sum) {
            return Verdict::pass(format!("all agents together: {sum} {word}, {bound} asked for"));
        }
        Verdict::fail(false, format!("all agents together: {sum} {word}, {bound} asked for"))
            .at(format!("metadata.{}", self.quantity.member()))
            .evidence(format!("{bound} {word}"), format!("{sum} {word}"))
            .suggest("see which agent contributes most, and whether all traces say their numbers")
    }
}
