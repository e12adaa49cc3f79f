//! The way of a result out of a run: without secrets.

use std::sync::Arc;

use super::RunResult;
use crate::checks::AssertionResult;
use crate::secrets::{Emitted, Secrets};

/// Result of a run that nothing has seen yet. The only way to the result itself cuts its secrets.
pub(super) struct Uncut(RunResult);

impl Uncut {
    pub(super) fn new(result: RunResult) -> Uncut {
        Uncut(result)
    }

    /// The result without secrets, whatever text they came into.
    pub(super) fn cut(self, secrets: &Secrets) -> RunResult {
        let mut result = self.0;
        if secrets.is_empty() {
            return result;
        }
        // Named one by one: a new text has to be thought of here.
        let RunResult {
            number: _,
            task_id: _,
            verdict: _,
            ending: _,
            error,
            last_lines,
            score: _,
            assertions,
            trace_id,
            events: _,
            flawed_events: _,
            shown_events,
            measures: _,
            warnings,
            took: _,
            earlier_attempts,
        } = &mut result;
        let attempts = earlier_attempts.iter_mut().map(|attempt| &mut attempt.error);
        for text in error.iter_mut().chain(warnings).chain(attempts) {
            *text = secrets.cut_shortened(text);
        }
        for text in last_lines.iter_mut().chain(trace_id) {
            secrets.cut_text(text);
        }
        for event in shown_events {
            secrets.cut_json(&mut event.json, &Emitted::default());
        }
        *assertions =
            assertions.iter().map(|assertion| without_secrets(assertion, secrets)).collect::<Arc<[_]>>();
        result
    }
}

fn without_secrets(assertion: &AssertionResult, secrets: &Secrets) -> AssertionResult {
    let mut assertion = assertion.clone();
    secrets.cut_text(&mut assertion.name);
    for check in &mut assertion.checks {
        secrets.cut_text(&mut check.name);
        check.message = secrets.cut_shortened(&check.message);
        secrets.cut_json(&mut check.details, &Emitted::default());
    }
    assertion
}
