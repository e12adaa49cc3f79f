//! Results that are kept until the end of a suite run, as small as reports allow.

use std::sync::Arc;

use crate::checks::AssertionResult;
use crate::results::TestResult;
use crate::scoring::Score;
use crate::shares::Shares;

/// Bytes of the events of all runs together that are kept for reports. Every event is in the record.
const MAX_EVENT_BYTES: usize = 64 << 20;

/// Results of tests that have ended, by their place in the suite.
pub(super) struct Kept {
    results: Vec<Option<TestResult>>,
    assertions: Shares<[AssertionResult]>,
    scores: Shares<Score>,
    event_bytes: usize,
}

impl Kept {
    pub(super) fn new(tests: usize) -> Kept {
        // Made large enough at once: a list that grows is copied, and for a moment takes its memory twice.
        let results = std::iter::repeat_with(|| None).take(tests).collect();
        Kept {
            results,
            assertions: Shares::default(),
            scores: Shares::default(),
            event_bytes: MAX_EVENT_BYTES,
        }
    }

    pub(super) fn keep(&mut self, place: usize, mut result: TestResult) {
        for run in &mut result.runs {
            run.assertions = self.assertions.share(Arc::clone(&run.assertions));
            run.score = run.score.take().map(|score| self.scores.share(score));
            let mut fitting = 0;
            for event in &run.shown_events {
                let Some(left) = self.event_bytes.checked_sub(event.json.to_string().len()) else { break };
                self.event_bytes = left;
                fitting += 1;
            }
            run.shown_events.truncate(fitting);
            run.shown_events.shrink_to_fit();
        }
        result.runs.shrink_to_fit();
        if let Some(kept) = self.results.get_mut(place) {
            *kept = Some(result);
        }
    }

    /// The results in the order of the suite.
    pub(super) fn into_results(self) -> Vec<TestResult> {
        self.results.into_iter().flatten().collect()
    }
}
