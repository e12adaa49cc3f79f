//! Charts: the distribution of the tests' scores, and the bar of one test.

use maud::{Markup, html};
use proctor_runner::results::TestResult;
use proctor_runner::scoring::Verdict;

/// Number of classes of the distribution, each ten points wide.
const CLASSES: usize = 10;

/// Size of the drawing: plot area and margins.
const WIDTH: f64 = 560.0;
const HEIGHT: f64 = 150.0;
const LEFT: f64 = 40.0;
const BOTTOM: f64 = 24.0;
const TOP: f64 = 14.0;

/// Distribution of the tests' mean scores as a stacked histogram: passed below, failed above.
pub(super) fn histogram(tests: &[TestResult]) -> Markup {
    let mut classes = [[0_usize; 2]; CLASSES];
    for test in tests {
        let Some(mean) = test.mean() else { continue };
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped to the classes")]
        let class = (mean / 10.0).clamp(0.0, CLASSES as f64 - 1.0) as usize;
        let kind = usize::from(test.verdict != Some(Verdict::Passed));
        if let Some(count) = classes.get_mut(class).and_then(|class| class.get_mut(kind)) {
            *count += 1;
        }
    }
    let highest = classes.iter().map(|[passed, failed]| passed + failed).max().unwrap_or_default();
    let unscored = tests.iter().filter(|test| test.mean().is_none()).count();
    let step = (WIDTH - LEFT) / CLASSES as f64;
    let height = |count: usize| count as f64 * HEIGHT / highest.max(1) as f64;
    html! {
        figure.histogram {
            @if highest == 0 {
                p.about { "No test has a score." }
            } @else {
                svg viewBox=(format!("0 0 {WIDTH} {}", HEIGHT + TOP + BOTTOM)) role="img" aria-label="Number of tests by mean score" {
                    line x1=(fixed(LEFT)) x2=(fixed(WIDTH)) y1=(fixed(HEIGHT + TOP)) y2=(fixed(HEIGHT + TOP)) class="axis" {}
                    @for (index, [passed, failed]) in classes.iter().enumerate() {
                        @let x = LEFT + step * index as f64;
                        @let (below, above) = (height(*passed), height(*failed));
                        @if *passed > 0 {
                            rect.pass x=(fixed(x + 2.0)) y=(fixed(TOP + HEIGHT - below)) width=(fixed(step - 4.0)) height=(fixed(below)) {}
                        }
                        @if *failed > 0 {
                            rect.hard_fail x=(fixed(x + 2.0)) y=(fixed(TOP + HEIGHT - below - above)) width=(fixed(step - 4.0)) height=(fixed(above)) {}
                        }
                        @if passed + failed > 0 {
                            text.value x=(fixed(x + step / 2.0)) y=(fixed(TOP + HEIGHT - below - above - 3.0)) text-anchor="middle" { (passed + failed) }
                        }
                        text x=(fixed(x)) y=(fixed(HEIGHT + TOP + 16.0)) text-anchor="middle" { (index * 10) }
                    }
                    text x=(fixed(WIDTH)) y=(fixed(HEIGHT + TOP + 16.0)) text-anchor="end" { "100" }
                    text x="0" y=(fixed(TOP + 8.0)) { "tests" }
                }
                figcaption {
                    "Tests by mean score: " span.key.pass { "passed" } " " span.key.hard_fail { "not passed" }
                    @if unscored > 0 { " · " (unscored) " without a score" }
                }
            }
        }
    }
}

/// Bar of a test's mean score, with the interval if there are several runs.
pub(super) fn score(test: &TestResult) -> Markup {
    let Some(mean) = test.mean() else { return html! { "–" } };
    let interval =
        if test.runs.len() > 1 { test.statistics().score.and_then(|score| score.interval) } else { None };
    html! {
        (bar(mean, if test.verdict == Some(Verdict::Passed) { "pass" } else { "hard_fail" }))
        " " span.number { (test.shown_mean().unwrap_or_default()) }
        @if let Some(interval) = interval {
            span.quiet { (format!(" {:.1} to {:.1}", interval.low.max(0.0), interval.high.min(100.0))) }
        }
    }
}

/// Bar of a score from 0 to 100, in the colour of a class.
pub(super) fn bar(points: f64, class: &str) -> Markup {
    html! { span.bar { span.(class) style=(format!("width:{:.1}%", points.clamp(0.0, 100.0))) {} } }
}

fn fixed(value: f64) -> String {
    format!("{value:.1}")
}
