//! Checks on sums over all traces of a tree.

use super::walk;
use crate::sequence::part::{Part, brief};
use crate::trace::{Head, Metadata, Step};
use crate::verdict::Verdict;

/// The summed quantity.
#[derive(Clone, Copy)]
pub(super) enum Quantity {
    Cost,
    Tokens,
    Latency,
}

impl Quantity {
    /// The number that a trace says, if it does.
    pub(super) fn of(self, metadata: &Metadata<'_>) -> Option<f64> {
        match self {
            Quantity::Cost => metadata.cost_usd,
            Quantity::Tokens => metadata.total_tokens,
            Quantity::Latency => metadata.latency_ms,
        }
    }

    fn member(self) -> &'static str {
        match self {
            Quantity::Cost => "cost_usd",
            Quantity::Tokens => "total_tokens",
            Quantity::Latency => "latency_ms",
        }
    }

    fn noun(self) -> &'static str {
        match self {
            Quantity::Cost => "cost",
            Quantity::Tokens => "number of tokens",
            Quantity::Latency => "time",
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

/// Limit of a sum.
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

/// The sum over all traces is within a bound; a trace that says nothing counts as nothing, but not all of them may.
pub(super) struct Total {
    quantity: Quantity,
    bound: Bound,
    below: Sum,
}

/// Sums over traces.
#[derive(Clone, Default)]
struct Sum {
    /// Sum so far; none while no trace has the number.
    total: Option<f64>,
    /// Position of the first impossible number, its owner, and the number.
    negative: Option<(String, String, f64)>,
}

impl Sum {
    fn note(&mut self, quantity: Quantity, head: &Head<'_>, place: &dyn std::fmt::Display) {
        let Some(number) = quantity.of(&head.metadata) else { return };
        self.total = Some(self.total.unwrap_or(0.0) + number);
        if number < 0.0 && self.negative.is_none() {
            let place = format!("{place}metadata.{}", quantity.member());
            self.negative = Some((place, brief(&head.trace_id).into_owned(), number));
        }
    }
}

impl Total {
    pub(super) fn new(quantity: Quantity, bound: Bound) -> Total {
        Total { quantity, bound, below: Sum::default() }
    }
}

impl Part for Total {
    fn step(&mut self, index: usize, step: &Step<'_>) {
        walk::traces(index, step, &mut |below, _, place| {
            self.below.note(self.quantity, &below.head, &format_args!("{place}.sub_trace."));
        });
    }

    fn finding(&self, _seen: usize, head: &Head<'_>) -> Verdict {
        let (word, bound, member) = (self.quantity.word(), self.bound.words(), self.quantity.member());
        let mut outermost = Sum::default();
        outermost.note(self.quantity, head, &"");
        if let Some((place, trace, number)) = outermost.negative.as_ref().or(self.below.negative.as_ref()) {
            let noun = self.quantity.noun();
            return Verdict::fail(
                false,
                format!("a negative {noun} cannot be: the trace `{trace}` says {number}"),
            )
            .at(place.as_str())
            .evidence(format!("`{member}` of at least 0"), number.to_string())
            .suggest("see what wrote the number into the trace");
        }
        let sum = match (outermost.total, self.below.total) {
            (None, None) => {
                return Verdict::fail(false, format!("no trace says `{member}`"))
                    .at(format!("metadata.{member}"))
                    .evidence(format!("{bound} {word}"), "no such number")
                    .suggest(format!("let what writes the trace write `{member}` into its metadata"));
            }
            (outermost, below) => outermost.unwrap_or(0.0) + below.unwrap_or(0.0),
        };
        if self.bound.holds(sum) {
            return Verdict::pass(format!("all agents together: {sum} {word}, {bound} asked for"));
        }
        Verdict::fail(false, format!("all agents together: {sum} {word}, {bound} asked for"))
            .at(format!("metadata.{member}"))
            .evidence(format!("{bound} {word}"), format!("{sum} {word}"))
            .suggest("see which agent contributes most, and whether all traces say their numbers")
    }
}
