//! JUnit XML report of a suite. Failures, errors and tests that were not run are told apart.

use proctor_runner::results::TestResult;
use proctor_runner::scoring::Verdict;
use quick_junit::{
    NonSuccessKind, Property, Report, SerializeError, TestCase, TestCaseStatus, TestRerun, TestSuite,
};

use super::SuiteReport;
use super::explain::{NAME, REASON, attempts, line, needs_explanation, text, why};

pub(super) fn write(report: &SuiteReport<'_>) -> Result<String, SerializeError> {
    let result = report.result;
    let mut suite = TestSuite::new(line(&result.suite, NAME));
    suite.set_time(result.took);
    suite.add_property(Property::new("agent", line(&result.agent, NAME)));
    suite.add_property(Property::new("file", line(&result.file, REASON)));
    suite.add_property(Property::new("conclusion", report.conclusion().word()));
    if let Some(sentence) = result.statistics().sentence() {
        suite.add_property(Property::new("statistics", sentence));
    }
    if result.isolation.is_outside {
        suite.add_property(Property::new("isolation", "the agent runs outside of the sandbox"));
    }
    for protection in &result.isolation.protections {
        let name = format!("isolation: {}", line(&protection.name, NAME));
        suite.add_property(Property::new(name, line(&protection.state.to_string(), REASON)));
    }
    for sentence in
        report.comparison.map(proctor_runner::comparison::BaselineComparison::sentences).unwrap_or_default()
    {
        suite.add_property(Property::new("comparison", line(&sentence, REASON)));
    }
    suite.add_test_cases(result.tests.iter().map(|test| case(report, test)));
    let mut junit = Report::new("proctor test");
    junit.set_time(result.took);
    junit.add_test_suite(suite);
    junit.to_string()
}

fn case(report: &SuiteReport<'_>, test: &TestResult) -> TestCase {
    let mut status = match test.verdict {
        Some(Verdict::Passed) => TestCaseStatus::success(),
        Some(Verdict::Failed) => TestCaseStatus::non_success(NonSuccessKind::Failure),
        Some(Verdict::Error) => TestCaseStatus::non_success(NonSuccessKind::Error),
        None => TestCaseStatus::skipped(),
    };
    let passed = test.verdict == Some(Verdict::Passed);
    if !passed {
        status.set_message(why(test));
        status.set_type(test.word());
        status.set_description(text(test));
    }
    for run in &test.runs {
        for (attempt, says) in run.earlier_attempts.iter().zip(attempts(run)) {
            let mut rerun = TestRerun::new(NonSuccessKind::Error);
            rerun.set_time(attempt.took).set_type("error");
            rerun.set_message(if test.runs.len() > 1 { format!("run {}, {says}", run.number) } else { says });
            status.add_rerun(rerun);
        }
    }
    let mut case = TestCase::new(line(&test.name, NAME), status);
    // Names may repeat; ids do not.
    case.set_classname(format!("{}.{}", line(&report.result.suite, NAME), line(&test.id, NAME)));
    case.set_time(test.took);
    case.add_property(Property::new("id", line(&test.id, NAME)));
    if let Some(mean) = test.mean() {
        case.add_property(Property::new("score", format!("{mean:.2}")));
    }
    if test.is_flaky() {
        case.add_property(Property::new("flaky", "true"));
    }
    if passed && needs_explanation(test) {
        case.set_system_out(text(test));
    }
    case
}
