//! The report as JUnit XML, which every CI reads.

use quick_junit::{NonSuccessKind, Property, Report, TestCase, TestCaseStatus, TestSuite};

use super::{Ending, Entry, Findings, details, visible};

pub(super) fn write(findings: &Findings) -> Result<String, String> {
    let mut suite = TestSuite::new("attest");
    suite.set_time(findings.took());
    suite.add_property(Property::new("trace_id", visible(&findings.trace_id)));
    if findings.simulated {
        suite.add_property(Property::new("simulated", "true"));
    }
    suite.add_test_cases(findings.entries.iter().map(case));
    let mut report = Report::new("attest");
    report.set_time(findings.took());
    report.add_test_suite(suite);
    report.to_string().map_err(|error| format!("the JUnit report is not written: {error}"))
}

fn case(entry: &Entry) -> TestCase {
    let mut status = match entry.ending {
        Ending::Pass => TestCaseStatus::success(),
        Ending::SoftFail | Ending::HardFail => TestCaseStatus::non_success(NonSuccessKind::Failure),
        Ending::Error => TestCaseStatus::non_success(NonSuccessKind::Error),
        Ending::NotRun => TestCaseStatus::skipped(),
    };
    if entry.ending != Ending::Pass {
        status.set_message(visible(&entry.explanation));
        status.set_type(entry.ending.word());
        status.set_description(description(entry));
    }
    let mut case = TestCase::new(visible(&entry.id), status);
    case.set_classname("assertion");
    case.set_time(entry.took);
    case.add_property(Property::new("type", visible(&entry.kind)));
    if let Some(score) = entry.score {
        case.add_property(Property::new("score", score.to_string()));
    }
    case
}

fn description(entry: &Entry) -> String {
    let mut text = format!("{}: {}", entry.ending.word(), visible(&entry.explanation));
    for (name, detail) in details(entry) {
        text.push_str(&format!("\n{name}: {}", visible(detail)));
    }
    text
}
