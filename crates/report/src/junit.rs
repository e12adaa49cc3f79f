//! JUnit XML report.

use quick_junit::{NonSuccessKind, Property, Report, SerializeError, TestCase, TestCaseStatus, TestSuite};

use super::{Ending, Entry, Findings, details, visible};
use proctor_core::printable::shown;

/// Most characters of the trace's name in the suite's name.
const LONGEST_NAME: usize = 200;

/// Skip message of every test of a simulated run.
const SIMULATED: &str = "simulated: this says nothing about an agent";

pub(super) fn write(findings: &Findings) -> Result<String, SerializeError> {
    let name = format!("proctor assert {}", shown(&findings.trace_id, LONGEST_NAME));
    // What is shown on a terminal may still be forbidden in XML.
    let mut suite = TestSuite::new(visible(&name));
    suite.set_time(findings.took());
    suite.add_property(Property::new("trace_id", visible(&findings.trace_id)));
    suite.add_property(Property::new("conclusion", findings.conclusion().word()));
    if findings.simulated {
        suite.add_property(Property::new("simulated", "true"));
    }
    if let Some(why) = findings.strict_failure() {
        suite.add_property(Property::new("reason", why));
    }
    suite.add_test_cases(findings.entries.iter().map(|entry| case(findings, entry)));
    let mut report = Report::new("proctor assert");
    report.set_time(findings.took());
    report.add_test_suite(suite);
    report.to_string()
}

fn case(findings: &Findings, entry: &Entry) -> TestCase {
    let failure = || TestCaseStatus::non_success(NonSuccessKind::Failure);
    let mut status = match entry.ending {
        _ if findings.simulated => TestCaseStatus::skipped(),
        Ending::SoftFail if findings.soft_failures_count.is_some() => failure(),
        Ending::Pass | Ending::SoftFail => TestCaseStatus::success(),
        Ending::HardFail => failure(),
        Ending::Error => TestCaseStatus::non_success(NonSuccessKind::Error),
        Ending::NotRun => TestCaseStatus::skipped(),
    };
    let passed = matches!(status, TestCaseStatus::Success { .. });
    if findings.simulated {
        status.set_message(SIMULATED);
    } else if !passed {
        status.set_message(visible(&entry.explanation));
        status.set_type(entry.ending.word());
        status.set_description(description(entry));
    }
    let mut case = TestCase::new(visible(&entry.id), status);
    case.set_classname(format!("assert.{}", visible(&entry.kind)));
    case.set_time(entry.took);
    case.add_property(Property::new("type", visible(&entry.kind)));
    if let Some(score) = entry.score {
        case.add_property(Property::new("score", score.to_string()));
    }
    // What does not show in the status of the test is told beside it.
    if entry.ending != Ending::Pass && (passed || findings.simulated) {
        case.set_system_out(description(entry));
    }
    case
}

fn description(entry: &Entry) -> String {
    let mut text = format!("{}: {}", entry.ending.word(), visible(entry.why()));
    for (name, detail) in details(entry) {
        text.push_str(&format!("\n{name}: {}", visible(detail)));
    }
    text
}
