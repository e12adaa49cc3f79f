//! A comparison in words.

use super::{BaselineComparison, unit};
use crate::statistics::{Interval, Quantity, Regression, SuiteEffect, Verdict};

/// Ids that a sentence names; the others are counted.
const MAX_NAMED: usize = 20;

/// The word for a verdict, for people.
pub fn verdict_word(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Better => "better",
        Verdict::Worse => "worse",
        Verdict::NoDifference => "no difference shown",
        Verdict::NotEnoughRuns => "not enough runs",
        Verdict::New => "new",
        Verdict::Removed => "removed",
    }
}

/// The word for a quantity, for people.
pub fn quantity_word(quantity: Quantity) -> &'static str {
    match quantity {
        Quantity::Score => "score",
        Quantity::Success => "success",
        Quantity::Cost => "cost",
        Quantity::Latency => "latency",
    }
}

impl BaselineComparison {
    /// The comparison in sentences: the verdict, the suite's effects, the tests by verdict, the decision about a regression.
    pub fn sentences(&self) -> Vec<String> {
        let mut says = vec![format!("compared with {}: {}", self.source, self.verdict_sentence())];
        says.extend(self.statistics.suite.iter().map(effect_sentence));
        for (verdict, title) in [
            (Verdict::Worse, "worse"),
            (Verdict::Better, "better"),
            (Verdict::New, "new"),
            (Verdict::Removed, "removed"),
            (Verdict::NotEnoughRuns, "undecided, not enough runs"),
        ] {
            let ids: Vec<&str> = self.tests(verdict).collect();
            if !ids.is_empty() {
                says.push(format!("{title}: {}", named(&ids)));
            }
        }
        for (ids, title) in
            [(&self.fails_now, "passed before, fails now"), (&self.passes_now, "failed before, passes now")]
        {
            let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
            if !ids.is_empty() {
                says.push(format!("{title}: {}", named(&ids)));
            }
        }
        for (runs, of) in [(self.left_out.0, "the baseline"), (self.left_out.1, "this result")] {
            if runs > 0 {
                says.push(format!("left out: {} of {of} that could not be evaluated", counted(runs, "run")));
            }
        }
        says.push(self.decision());
        says
    }

    /// The verdict on the suite; if that shows nothing, on single tests; if they show nothing either, what the decision about a regression
    /// makes of it.
    fn verdict_sentence(&self) -> String {
        let suite = self.statistics.verdict;
        if matches!(suite, Verdict::Better | Verdict::Worse) {
            return verdict_word(suite).to_owned();
        }
        for verdict in [Verdict::Worse, Verdict::Better] {
            let count = self.tests(verdict).count();
            if count > 0 {
                return format!("{} in {}", verdict_word(verdict), counted(count, "test"));
            }
        }
        let is_comparable =
            suite == Verdict::NoDifference || self.tests(Verdict::NoDifference).next().is_some();
        match &self.statistics.regression {
            Regression::None if self.left_out.1 > 0 => {
                format!("no difference shown, but a loss of {} points is not excluded", self.margin)
            }
            Regression::None | Regression::Shown { .. } => "no difference shown".to_owned(),
            Regression::Undecided { .. } if is_comparable => {
                format!("no difference shown, but a loss of {} points is not excluded", self.margin)
            }
            Regression::Undecided { runs: None, .. } if self.needs_tests() => {
                format!("not enough tests ({}) to tell", self.compared_tests())
            }
            Regression::Undecided { .. } => "not enough runs to tell".to_owned(),
        }
    }

    /// Number of tests that both results have values of.
    fn compared_tests(&self) -> usize {
        self.statistics.suite.iter().map(|effect| effect.tests).max().unwrap_or_default()
    }

    /// Whether there are tests to compare, but so few that no number of runs would decide.
    fn needs_tests(&self) -> bool {
        self.compared_tests() > 0
            && matches!(self.statistics.regression, Regression::Undecided { runs: None, interval: Some(_) })
    }

    /// The decision about a regression in one sentence.
    pub fn decision(&self) -> String {
        let margin = self.margin;
        match &self.statistics.regression {
            Regression::None if self.left_out.1 > 0 => format!(
                "not decided: {} of this result could not be evaluated, so a loss is not excluded",
                counted(self.left_out.1, "run")
            ),
            Regression::None => format!("no regression: a loss of {margin} points is excluded"),
            Regression::Shown { tests, suite } => {
                let mut what: Vec<String> = Vec::new();
                if *suite {
                    what.push("the suite as a whole".to_owned());
                }
                if !tests.is_empty() {
                    let ids: Vec<&str> = tests.iter().map(String::as_str).collect();
                    what.push(named(&ids));
                }
                format!("a regression is shown, of {}", what.join(" and "))
            }
            Regression::Undecided { interval, runs } => {
                let why = match interval {
                    Some(interval) if interval.low <= -margin => format!(
                        "the mean score changed by {} points, which reaches a loss of {margin}",
                        range(*interval, 1.0, 100.0)
                    ),
                    Some(_) => "so few runs cannot show any loss".to_owned(),
                    None => "the change of the mean score has no interval".to_owned(),
                };
                let runs = match runs {
                    Some(runs) => {
                        format!("; {runs} runs of each test, for both, would decide in four of five cases")
                    }
                    None => String::new(),
                };
                if self.needs_tests() {
                    let tests = self.compared_tests();
                    return format!(
                        "not enough tests ({tests}) to decide: {why}; more runs would not change that"
                    );
                }
                format!("not enough runs to decide: {why}{runs}")
            }
        }
    }
}

fn effect_sentence(effect: &SuiteEffect) -> String {
    let (factor, unit) = unit(effect.quantity);
    let most = match effect.quantity {
        Quantity::Score | Quantity::Success => 100.0,
        Quantity::Cost | Quantity::Latency => f64::INFINITY,
    };
    let interval = effect
        .interval
        .map_or_else(String::new, |interval| format!(" (95 %: {})", range(interval, factor, most)));
    let p = effect.adjusted_p.map_or_else(String::new, |p| format!(", {}", p_value(p)));
    format!(
        "{}: {} {unit}{interval}{p}: {}",
        quantity_word(effect.quantity),
        signed(factor * effect.difference),
        match effect.verdict {
            // The suite is judged over its tests, however often each was run.
            Verdict::NotEnoughRuns =>
                format!("not enough tests ({}) for a verdict on the suite", effect.tests),
            other => verdict_word(other).to_owned(),
        }
    )
}

/// A p value as people write it.
fn p_value(p: f64) -> String {
    if p < 0.001 { "p < 0.001".to_owned() } else { format!("p = {p:.3}") }
}

/// An interval in the unit of people, cut at the largest change that is possible.
fn range(interval: Interval, factor: f64, most: f64) -> String {
    let end = |value: f64| signed((factor * value).clamp(-most, most));
    format!("{} to {}", end(interval.low), end(interval.high))
}

/// A number with its noun.
fn counted(count: usize, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}

/// A number with its sign, and more digits if it is small.
fn signed(value: f64) -> String {
    let text =
        if value == 0.0 || value.abs() >= 1.0 { format!("{value:+.1}") } else { format!("{value:+.3}") };
    text.replace('-', "−")
}

fn named(ids: &[&str]) -> String {
    let mut text = ids.iter().take(MAX_NAMED).copied().collect::<Vec<_>>().join(", ");
    if ids.len() > MAX_NAMED {
        text.push_str(&format!(" and {} more", ids.len() - MAX_NAMED));
    }
    text
}
