//! `proctor assert`: a trace, or a session of the ledger, against a file of assertions.

mod input;
mod listing;
mod trace;

use std::sync::Arc;

use proctor_assert::{Assertion, Status, Trace, Verdict};
use proctor_core::time::Clock;
use proctor_policy::policy::Policy;
use proctor_policy::prepare::redact_text;
use proctor_wire::attest::rpc;
use serde_json::value::RawValue;

use super::Context;
use crate::access::{Access, COMMAND, Owner};
use crate::cli::AssertArgs;
use crate::failure::{CHECKS_FAILED, Failure, OK, Outcome, UNDECIDED};
use crate::output;
use crate::programs::attest_engine::{recorder, variable};
use proctor_door_attest::{Batch, Evaluator, Recorder, Settings, assertion_file};
use proctor_engine::access::open_reader;
use proctor_engine::policy_files;
use proctor_policy::truncated::drop_partial_words;
use proctor_report::{Conclusion, Ending, Entry, Findings, NOT_RUN};
use proctor_system::{SystemClock, SystemRandomness};

/// A trace with more bytes than this is not put on record, only what was found on it: a record has a limit of its own.
const MAX_RECORDED: usize = 8 << 20;

/// Length limit of a recorded trace name, the same as the engine's.
const LONGEST_NAME: usize = 1024;

/// Explanation of every plugin assertion.
const NO_PLUGIN: &str = "no plugin can answer here: nobody would submit its result";

pub(super) fn run(context: &Context, arguments: &AssertArgs) -> Outcome {
    let destinations = proctor_report::destinations(&arguments.report)
        .map_err(|mistakes| Failure::list(mistakes.iter().map(ToString::to_string)))?;
    let input::Input { trace_text, trace_source, from_ledger, assertions_file, assertions_text } =
        input::read(context, arguments)?;
    let loaded = assertion_file::read(&assertions_file, &assertions_text)?;
    let assertions: Vec<Assertion<'_>> =
        loaded.iter().map(assertion_file::Loaded::assertion).collect::<Result<_, _>>()?;
    let trace = trace::read(&trace_source.shown, &trace_text)?;
    let policy = policy(context)?;
    let settings = Settings::read(&variable).map_err(|error| error.to_string())?;
    let evaluator =
        Evaluator::new(&settings, Arc::new(SystemClock), Arc::new(SystemRandomness), output::note)
            .map_err(|error| error.to_string())?;
    let batch_recorder = BatchRecorder::open(context, arguments)?;
    let mut batch = evaluator.evaluate(&trace, &assertions);
    refuse_plugins(&mut batch);
    let raw = if from_ledger { None } else { recordable(&trace_text) };
    batch_recorder.record(&trace, raw, &assertions, &batch, evaluator.simulated)?;
    evaluator.remember(rpc::cut(trace.head.trace_id.trim(), LONGEST_NAME), &assertions, &batch);
    if let Some(store) = evaluator.store() {
        store.flush();
    }
    let mut findings = Findings {
        trace_id: cut(&policy, trace.head.trace_id.trim()),
        source: trace_source.uri,
        made: SystemClock.now(),
        simulated: evaluator.simulated,
        gate: arguments.gate,
        soft_failures_count: arguments.strict.then_some("--strict"),
        entries: entries(&policy, &assertions, batch),
    };
    if findings.soft_failures_count.is_none() && too_many_soft_failures(&settings, &findings) {
        findings.soft_failures_count = Some("ATTEST_BUDGET_MAX_COST");
    }
    let unwritten = proctor_report::write(&findings, &destinations);
    print(context, &findings)?;
    let code = exit_code(&findings);
    if !unwritten.is_empty() {
        return Err(Failure::list(unwritten.iter().map(ToString::to_string)));
    }
    Ok(code)
}

/// The policy whose scanner cuts secrets. None is configured: the one that knows the usual kinds.
fn policy(context: &Context) -> Result<Policy, Failure> {
    match &context.config.engine.policy {
        Some(path) => policy_files::load(path)
            .map_err(|problems| Failure::list(problems.iter().map(ToString::to_string))),
        None => Ok(Policy::closed()),
    }
}

/// Marks assertions of plugins as undecidable: no result is submitted here.
fn refuse_plugins(batch: &mut Batch) {
    for found in batch.found.iter_mut().filter(|found| found.waiting) {
        found.verdict = Verdict::error(NO_PLUGIN).suggest("run it in a client of the assertion engine");
    }
}

fn recordable(trace: &str) -> Option<&RawValue> {
    if trace.len() > MAX_RECORDED {
        output::note("the trace is too long for a record: only what was found on it is recorded");
        return None;
    }
    serde_json::from_str(trace).ok()
}

/// Recorder of the batch, if it is recorded at all.
struct BatchRecorder {
    recorder: Recorder,
    /// Owner, if this process owns the state directory: its ledger is signed at the end.
    owner: Option<Owner>,
}

impl BatchRecorder {
    fn open(context: &Context, arguments: &AssertArgs) -> Result<BatchRecorder, Failure> {
        let asked = context.config.state_is_named || arguments.session.is_some();
        if !asked || arguments.no_record {
            return Ok(BatchRecorder { recorder: Recorder::NOWHERE, owner: None });
        }
        let access = Access::open(&context.config, COMMAND)?;
        let owner = match &access {
            Access::Owner(owner) => Some(owner.clone()),
            Access::Relay(_) => None,
        };
        Ok(BatchRecorder { recorder: recorder(&context.config, access), owner })
    }

    fn record(
        &self,
        trace: &Trace<'_>,
        raw: Option<&RawValue>,
        assertions: &[Assertion<'_>],
        batch: &Batch,
        simulated: bool,
    ) -> Result<(), Failure> {
        self.recorder
            .batch(trace, raw, assertions, batch, simulated)
            .map_err(|problem| Failure::from(format!("the results are not on record: {problem}")))
    }
}

impl Drop for BatchRecorder {
    fn drop(&mut self) {
        if let Some(owner) = &self.owner {
            owner.engine.finish();
        }
    }
}

/// Results in the order in which the assertions are written, without secrets.
fn entries(policy: &Policy, assertions: &[Assertion<'_>], batch: Batch) -> Vec<Entry> {
    let stopped_by = stopped_by(assertions, &batch);
    let named = |index: usize| {
        let assertion = assertions.get(index)?;
        Some(Entry {
            id: cut(policy, &assertion.assertion_id),
            request_id: cut(policy, &assertion.request_id),
            kind: assertion.kind.to_string(),
            layer: assertion.layer().map(proctor_assert::Layer::number),
            ending: Ending::NotRun,
            score: None,
            explanation: format!("{NOT_RUN}{stopped_by}"),
            path: String::new(),
            expected: String::new(),
            actual: String::new(),
            suggestion: String::new(),
            threshold_source: None,
            cost_usd: 0.0,
            took: std::time::Duration::ZERO,
            judge: None,
        })
    };
    let mut entries: Vec<(usize, Entry)> = Vec::new();
    for index in batch.not_run {
        entries.extend(named(index).map(|entry| (index, entry)));
    }
    for found in batch.found {
        let Some(entry) = named(found.index) else { continue };
        let verdict = found.verdict;
        // What helps to understand a failure is not needed on a pass.
        let detail = |text: &str| if verdict.status.passed() { String::new() } else { cut(policy, text) };
        let entry = Entry {
            ending: verdict.status.into(),
            score: Some(verdict.score),
            explanation: cut(policy, &verdict.explanation),
            path: detail(&verdict.path),
            expected: detail(&verdict.expected),
            actual: detail(&verdict.actual),
            suggestion: detail(&verdict.suggestion),
            threshold_source: verdict.threshold_source.map(proctor_assert::ThresholdSource::word),
            cost_usd: verdict.cost_usd,
            took: found.took,
            judge: verdict.judge,
            ..entry
        };
        entries.push((found.index, entry));
    }
    entries.sort_by_key(|(index, _)| *index);
    entries.into_iter().map(|(_, entry)| entry).collect()
}

/// Cause for which assertions that need a model were not run: the first failure before them.
fn stopped_by(assertions: &[Assertion<'_>], batch: &Batch) -> String {
    // What a plugin says is decided elsewhere: it stops nothing.
    let first = batch.found.iter().find(|found| found.verdict.status.is_hard() && !found.waiting);
    let named = first.and_then(|found| Some((assertions.get(found.index)?, found.verdict.status)));
    let Some((assertion, status)) = named else { return "an assertion before it failed hard".to_owned() };
    let how = if status == Status::Error { "could not be evaluated" } else { "failed hard" };
    format!("`{}` ({}) {how}", output::shown(&assertion.assertion_id, 64), assertion.kind)
}

/// A text of the trace as it may go to logs and reports.
fn cut(policy: &Policy, text: &str) -> String {
    redact_text(policy, &drop_partial_words(text))
}

fn print(context: &Context, findings: &Findings) -> Result<(), Failure> {
    let printed =
        if context.json { output::data(proctor_report::to_json(findings)) } else { listing::print(findings) };
    match printed {
        // Nobody reads any more. The exit code must still say what was found.
        Err(Failure { code: OK, .. }) => Ok(()),
        other => other,
    }
}

/// Whether more assertions failed softly than the environment allows: then soft failures count.
fn too_many_soft_failures(settings: &Settings, findings: &Findings) -> bool {
    let soft = findings.counts().soft_fail as u64;
    let Some(allowed) = settings.soft_failures.filter(|allowed| soft > *allowed) else { return false };
    output::note(&format!(
        "{soft} soft failures are more than the {allowed} that ATTEST_BUDGET_MAX_COST allows"
    ));
    true
}

fn exit_code(findings: &Findings) -> u8 {
    match findings.conclusion() {
        Conclusion::Passed => OK,
        Conclusion::Failed => CHECKS_FAILED,
        Conclusion::Undecided => {
            let why = if findings.simulated {
                "the results are simulated"
            } else {
                "not every assertion could be evaluated"
            };
            output::note(&format!("not enough to decide: {why}"));
            UNDECIDED
        }
    }
}
