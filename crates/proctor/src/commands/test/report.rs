//! Reports of `proctor test`, the comparison with a baseline, and the exit code.

use std::path::{Path, PathBuf};

use proctor_core::time::Clock as _;
use proctor_report::{Destination, SuiteConclusion, SuiteKind, SuiteReport, SuiteStream, WriteError};
use proctor_runner::comparison::{BaselineComparison, Conclusion, restrict};
use proctor_runner::results::{MAX_RESULT_BYTES, SuiteResult, TestResult};
use proctor_runner::statistics::Rule;
use proctor_runner::suite::Suite;
use proctor_system::SystemClock;

use super::super::Context;
use super::{listing, store};
use crate::cli::TestArgs;
use crate::failure::{CHECKS_FAILED, Failure, OK, Outcome, UNDECIDED};
use crate::output;

/// Destinations of reports, and the baseline, if it is a file. Both are read before anything is run.
pub(super) struct Reports {
    destinations: Vec<Destination<SuiteKind>>,
    stream: SuiteStream,
    baseline: Option<SuiteResult>,
    rule: Rule,
}

/// Files that reports are written to or compared with, and recordings of tools.
pub(super) fn files(arguments: &TestArgs) -> Vec<PathBuf> {
    let reports = proctor_report::suite_destinations(&arguments.report).unwrap_or_default();
    let named = [&arguments.baseline, &arguments.record_tools, &arguments.replay_tools];
    let named = named.into_iter().flatten().filter(|path| path.exists()).cloned();
    let files = reports.iter().map(|report| report.path().to_owned()).chain(named);
    files.filter_map(|path| std::path::absolute(path).ok()).collect()
}

impl Reports {
    pub(super) fn open(
        context: &Context,
        arguments: &TestArgs,
        suite: &Suite,
        selected: &[usize],
        agents: usize,
    ) -> Result<Reports, Failure> {
        if arguments.baseline.is_some() && agents > 1 {
            return Err("`--baseline` and a second `--agent` are both baselines; give one of them".into());
        }
        let compares = arguments.baseline.is_some() || agents > 1;
        if !compares && (arguments.fail_on_regression || arguments.margin.is_some()) {
            return Err(
                "there is nothing to compare with; give `--baseline RUN|FILE`, or `--agent` twice".into()
            );
        }
        let rule = rule(arguments.margin)?;
        let destinations = proctor_report::suite_destinations(&arguments.report)
            .map_err(|mistakes| Failure::list(mistakes.iter().map(ToString::to_string)))?;
        let baseline = baseline(context, arguments, suite, selected)?;
        let stream = SuiteStream::open(&destinations).map_err(|errors| unwritten(&errors))?;
        Ok(Reports { destinations, stream, baseline, rule })
    }

    /// Shows a test that has ended, and writes it to streamed reports.
    pub(super) fn finished(&mut self, agent: &str, test: &TestResult) {
        listing::progress(test);
        self.stream.test(agent, test);
    }

    /// Compares, prints, writes the reports, and gives the exit code. The result is that of the last agent.
    pub(super) fn finish(self, json: bool, arguments: &TestArgs, mut results: Vec<SuiteResult>) -> Outcome {
        for result in &mut results {
            result.file = arguments.suite.as_deref().unwrap_or(Path::new("")).display().to_string();
            result.ended = Some(SystemClock.now());
        }
        let Some(result) = results.pop() else { return Ok(CHECKS_FAILED) };
        let first = results.pop();
        let source = match (&arguments.baseline, &first) {
            (Some(path), _) => path.display().to_string(),
            (None, first) => first.as_ref().map(|first| first.agent.clone()).unwrap_or_default(),
        };
        let baseline = self.baseline.as_ref().or(first.as_ref());
        let comparison =
            baseline.map(|baseline| BaselineComparison::new(source, baseline, &result, &self.rule));
        let report = SuiteReport {
            result: &result,
            comparison: comparison.as_ref(),
            baseline: first.as_ref(),
            gate: arguments.gate,
            fail_on_regression: arguments.fail_on_regression,
        };
        let mut errors = proctor_report::write_suite(&report, &self.destinations);
        errors.extend(self.stream.end(&report));
        match print(json, &report) {
            // Nobody reads any more. The exit code must still say what was found.
            Ok(()) | Err(Failure { code: OK, .. }) => {}
            Err(failure) => return Err(failure),
        }
        if errors.is_empty() { Ok(code(report.conclusion())) } else { Err(unwritten(&errors)) }
    }
}

fn print(json: bool, report: &SuiteReport<'_>) -> Result<(), Failure> {
    if json {
        return output::data(proctor_report::suite_document(report));
    }
    if let Some(first) = report.baseline {
        listing::print(first)?;
    }
    listing::print(report.result)?;
    report.comparison.map_or(Ok(()), listing::print_comparison)
}

fn code(conclusion: SuiteConclusion) -> u8 {
    match conclusion {
        SuiteConclusion::Passed => OK,
        SuiteConclusion::Failed | SuiteConclusion::Regression => CHECKS_FAILED,
        SuiteConclusion::Undecided => UNDECIDED,
        SuiteConclusion::Interrupted => super::stopped_code(),
    }
}

fn baseline(
    context: &Context,
    arguments: &TestArgs,
    suite: &Suite,
    selected: &[usize],
) -> Result<Option<SuiteResult>, Failure> {
    let Some(path) = &arguments.baseline else { return Ok(None) };
    let failure = |error: &dyn std::fmt::Display| Failure::from(format!("{}: {error}", path.display()));
    // Identifiers have neither dots nor slashes.
    let is_name = |text: &&str| !path.exists() && !text.contains(['.', '/']);
    let mut baseline = match path.to_str().filter(is_name) {
        Some(named) => store::recorded_in(context, named, suite)?,
        None => read(path)?,
    };
    let ids: std::collections::BTreeSet<&str> =
        selected.iter().filter_map(|index| Some(suite.tests.get(*index)?.id.as_str())).collect();
    let others: std::collections::BTreeSet<&str> =
        suite.tests.iter().map(|test| test.id.as_str()).filter(|id| !ids.contains(id)).collect();
    restrict(&mut baseline, &|id| ids.contains(id), &|id| others.contains(id))
        .map_err(|error| failure(&error))?;
    Ok(Some(baseline))
}

fn read(path: &Path) -> Result<SuiteResult, Failure> {
    let failure = |error: &dyn std::fmt::Display| Failure::from(format!("{}: {error}", path.display()));
    let length = std::fs::metadata(path).map_err(|error| Failure::io(path, &error))?.len();
    if length > MAX_RESULT_BYTES as u64 {
        return Err(failure(&format!("more than {MAX_RESULT_BYTES} bytes")));
    }
    let text = std::fs::read(path).map_err(|error| Failure::io(path, &error))?;
    SuiteResult::read(&text).map_err(|error| failure(&error))
}

/// Compares two results, prints the comparison, and gives the exit code.
pub(in super::super) fn compare(
    context: &Context,
    (source, before): (&str, &SuiteResult),
    after: &SuiteResult,
    margin: Option<f64>,
    fail_on_regression: bool,
) -> Outcome {
    let rule = rule(margin)?;
    let comparison = BaselineComparison::new(source, before, after, &rule);
    let conclusion = comparison.conclusion();
    let report = SuiteReport {
        result: after,
        comparison: Some(&comparison),
        baseline: Some(before),
        gate: false,
        fail_on_regression,
    };
    if context.json {
        output::data(proctor_report::suite_document(&report))?;
    } else {
        listing::print_comparison(&comparison)?;
    }
    Ok(match conclusion {
        Conclusion::Regression if fail_on_regression => CHECKS_FAILED,
        Conclusion::Undecided if fail_on_regression => UNDECIDED,
        _ => OK,
    })
}

fn rule(margin: Option<f64>) -> Result<Rule, Failure> {
    match margin {
        Some(margin) => {
            let rule = Rule::default().with_margin(margin);
            rule.map_err(|error| Failure::from(format!("--margin: {error}")))
        }
        None => Ok(Rule::default()),
    }
}

/// Writes reports of a stored result.
pub(in super::super) fn write(destinations: &[String], result: &SuiteResult) -> Result<(), Failure> {
    let destinations = proctor_report::suite_destinations(destinations)
        .map_err(|mistakes| Failure::list(mistakes.iter().map(ToString::to_string)))?;
    let report =
        SuiteReport { result, comparison: None, baseline: None, gate: false, fail_on_regression: false };
    let mut stream = SuiteStream::open(&destinations).map_err(|errors| unwritten(&errors))?;
    for test in &result.tests {
        stream.test(&result.agent, test);
    }
    let mut errors = proctor_report::write_suite(&report, &destinations);
    errors.extend(stream.end(&report));
    if errors.is_empty() { Ok(()) } else { Err(unwritten(&errors)) }
}

fn unwritten(errors: &[WriteError]) -> Failure {
    Failure::list(errors.iter().map(ToString::to_string))
}
