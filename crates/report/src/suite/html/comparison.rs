//! Differences to the baseline.

use std::collections::BTreeMap;

use maud::{Markup, html};
use proctor_runner::comparison::{BaselineComparison, TestMeans, quantity_word, verdict_word};
use proctor_runner::results::TestResult;
use proctor_runner::statistics::{Quantity, TestComparison, Verdict};

use super::super::explain::{NAME, REASON, line};
use super::chart::bar;
use crate::html::prose;

/// Rows of the table of tests.
const MAX_ROWS: usize = 300;

pub(super) fn section(comparison: &BaselineComparison, tests: &[TestResult]) -> Markup {
    let names: BTreeMap<&str, &str> =
        tests.iter().map(|test| (test.id.as_str(), test.name.as_str())).collect();
    let mut rows: Vec<(&TestComparison, TestMeans)> =
        comparison.statistics.tests.iter().zip(comparison.means.iter().copied()).collect();
    rows.sort_by_key(|(test, _)| match test.verdict {
        Verdict::Worse => 0,
        Verdict::Better => 1,
        Verdict::New => 2,
        Verdict::Removed => 3,
        Verdict::NotEnoughRuns => 4,
        Verdict::NoDifference => 5,
    });
    let more = rows.len().saturating_sub(MAX_ROWS);
    rows.truncate(MAX_ROWS);
    let is_plain = |verdict| matches!(verdict, Verdict::NoDifference | Verdict::NotEnoughRuns);
    let (plain, changed): (Vec<_>, Vec<_>) = rows.into_iter().partition(|(test, _)| is_plain(test.verdict));
    html! {
        h2 { "Compared with the baseline" }
        ul.says { @for sentence in comparison.sentences() { li { (prose(&line(&sentence, REASON))) } } }
        @if !changed.is_empty() { (table(&changed, &names)) }
        @if !plain.is_empty() {
            details {
                summary { (plain.len()) " tests without a difference that these runs show" }
                (table(&plain, &names))
            }
        }
        @if more > 0 { p.about { (more) " more tests are in the JSON report only." } }
    }
}

fn table(rows: &[(&TestComparison, TestMeans)], names: &BTreeMap<&str, &str>) -> Markup {
    html! {
        div.wide tabindex="0" role="region" aria-label="Differences to the baseline" {
            table.compared {
                thead {
                    tr {
                        th { "Verdict" } th { "Test" } th { "Score before" } th { "Score now" } th { "Success" }
                        th { "Hedges’ g" } th { "p" }
                    }
                }
                tbody {
                    @for (test, means) in rows {
                        tr {
                            td { span.mark.(class(test.verdict)) { (verdict_word(test.verdict)) } }
                            td.name {
                                (line(names.get(test.name.as_str()).copied().unwrap_or(&test.name), NAME))
                                @for (quantity, verdict) in others(test) {
                                    " " span.mark.(class(verdict)) { (quantity_word(quantity)) " " (verdict_word(verdict)) }
                                }
                            }
                            td.score { (points(means.score_before, "quiet")) }
                            td.score { (points(means.score_after, bar_class(test.verdict))) }
                            td.number data-label="success" {
                                (percent(means.success_before)) " → " (percent(means.success_after))
                            }
                            td.number data-label="g" { (number(of_score(test).and_then(|effect| effect.hedges_g), 2)) }
                            td.number data-label="p" { (p_value(least_p(test))) }
                        }
                    }
                }
            }
        }
    }
}

/// Changes of cost and latency that are shown.
fn others(test: &TestComparison) -> impl Iterator<Item = (Quantity, Verdict)> {
    test.effects
        .iter()
        .filter(|effect| !effect.quantity.is_quality())
        .filter(|effect| matches!(effect.verdict, Verdict::Better | Verdict::Worse))
        .map(|effect| (effect.quantity, effect.verdict))
}

fn of_score(test: &TestComparison) -> Option<&proctor_runner::statistics::Effect> {
    test.effects.iter().find(|effect| effect.quantity == Quantity::Score)
}

/// The smaller corrected p of score and success.
fn least_p(test: &TestComparison) -> Option<f64> {
    let values = test.effects.iter().filter(|effect| effect.quantity.is_quality());
    values.filter_map(|effect| effect.adjusted_p).min_by(f64::total_cmp)
}

fn points(value: Option<f64>, class: &str) -> Markup {
    html! {
        @if let Some(value) = value { (bar(value, class)) " " span.number { (format!("{value:.2}")) } } @else { "–" }
    }
}

fn percent(share: Option<f64>) -> String {
    share.map_or_else(|| "–".to_owned(), |share| format!("{:.0} %", 100.0 * share))
}

fn number(value: Option<f64>, digits: usize) -> String {
    value
        .filter(|value| value.is_finite())
        .map_or_else(|| "–".to_owned(), |value| format!("{value:.digits$}"))
}

fn p_value(p: Option<f64>) -> String {
    if p.is_some_and(|p| p < 0.001) { "< 0.001".to_owned() } else { number(p, 3) }
}

/// The class of a bar: only a difference that is shown has a colour.
fn bar_class(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Better => "pass",
        Verdict::Worse => "hard_fail",
        _ => "not_run",
    }
}

fn class(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Better => "pass",
        Verdict::Worse => "hard_fail",
        Verdict::New | Verdict::Removed => "not_run",
        Verdict::NotEnoughRuns => "soft_fail",
        Verdict::NoDifference => "quiet",
    }
}
