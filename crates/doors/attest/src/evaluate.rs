//! Evaluation of a batch, layer by layer; a panic in one assertion fails only that assertion.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use proctor_assert::{
    Assertion, Compiled, Layer, Status, Tools, Trace, Verdict, WINDOW, dynamic, is_dynamic,
};
use proctor_core::random::Randomness;
use proctor_core::time::Clock;
use proctor_providers::store::{Row, Store, StoreError, WAITING_STATUS};

use super::models::{Models, ModelsError};
use super::plugins::recorded_id;
use super::settings::Settings;

/// Limit of assertions of one batch that wait for models concurrently.
const MAX_PARALLEL: usize = 16;

/// Evaluator of assertions, for one session of the engine or one command.
pub struct Evaluator {
    /// Cache of compiled schemas and patterns.
    tools: Tools,
    /// Judge and embedding model.
    pub models: Models,
    history: History,
    /// Whether results are stamped as simulated.
    pub simulated: bool,
    model_time: Duration,
    randomness: Arc<dyn Randomness>,
}

/// History of earlier results. A thread opens it at start-up, because only the first batch needs it.
struct History {
    opening: Mutex<Option<JoinHandle<Result<Store, HistoryError>>>>,
    opened: OnceLock<Result<Store, HistoryError>>,
}

/// Error of opening the history of earlier results.
#[derive(Debug, thiserror::Error)]
pub enum HistoryError {
    /// No directory is configured.
    #[error("there is no history: there is no home folder, and ATTEST_CACHE_DIR is not set")]
    NoDirectory,
    /// The database cannot be opened.
    #[error("there is no history: {0}")]
    Store(#[source] StoreError),
    /// The opening thread cannot be started.
    #[error("{0}")]
    Thread(#[source] std::io::Error),
    /// The opening thread panicked.
    #[error("it could not be opened")]
    NotOpened,
}

impl History {
    fn open(settings: &Settings, clock: Arc<dyn Clock>, warn: fn(&str)) -> History {
        let kept = settings.kept;
        let known = |result: Result<Store, HistoryError>| History {
            opening: Mutex::default(),
            opened: OnceLock::from(result),
        };
        let Some(folder) = settings.cache.clone() else {
            let problem = HistoryError::NoDirectory;
            warn(&problem.to_string());
            return known(Err(problem));
        };
        let open = move || {
            Store::open(&folder, kept, clock).map_err(|error| {
                let problem = HistoryError::Store(error);
                warn(&problem.to_string());
                problem
            })
        };
        match std::thread::Builder::new().name("attest-open".to_owned()).spawn(open) {
            Ok(opening) => History { opening: Mutex::new(Some(opening)), opened: OnceLock::new() },
            Err(error) => known(Err(HistoryError::Thread(error))),
        }
    }

    fn opened(&self) -> &Result<Store, HistoryError> {
        self.opened.get_or_init(|| {
            let opening = self.opening.lock().ok().and_then(|mut opening| opening.take());
            let opened = opening.and_then(|opening| opening.join().ok());
            opened.unwrap_or(Err(HistoryError::NotOpened))
        })
    }
}

/// Result of one assertion.
pub struct Found {
    /// The assertion's index in the request.
    pub index: usize,
    /// Layer of the assertion, if its type is known.
    pub layer: Option<Layer>,
    pub verdict: Verdict,
    /// Duration of the evaluation.
    pub took: Duration,
    /// Whether the threshold is computed from earlier runs.
    pub dynamic: bool,
    /// Whether a plugin result is still missing.
    pub waiting: bool,
}

/// Results of a batch.
pub struct Batch {
    /// Results in the order of layers.
    pub found: Vec<Found>,
    /// Indices of the assertions that were skipped after a hard failure.
    pub not_run: Vec<usize>,
}

/// Explanation of a plugin assertion until its result is submitted.
pub(crate) const WAITING: &str = "waiting for submit_plugin_result";

impl Evaluator {
    /// Creates the model clients and starts opening the history; `warn` is called if it cannot be opened.
    pub fn new(
        settings: &Settings,
        clock: Arc<dyn Clock>,
        randomness: Arc<dyn Randomness>,
        warn: fn(&str),
    ) -> Result<Evaluator, ModelsError> {
        Ok(Evaluator {
            tools: Tools::default(),
            models: Models::new(settings)?,
            history: History::open(settings, clock, warn),
            simulated: settings.simulated,
            model_time: settings.model_time,
            randomness,
        })
    }

    /// The history, if it could be opened; waits for the opening thread.
    pub fn store(&self) -> Option<&Store> {
        self.history.opened().as_ref().ok()
    }

    /// Error of opening the history, if there is none.
    pub fn history_problem(&self) -> Option<&HistoryError> {
        self.history.opened().as_ref().err()
    }

    /// Time limit of the models for one batch.
    pub fn model_time(&self) -> Duration {
        self.model_time
    }

    /// Evaluates assertions on a trace.
    pub fn evaluate(&self, trace: &Trace<'_>, assertions: &[Assertion<'_>]) -> Batch {
        let mut order: Vec<(u8, usize, Option<Layer>)> = assertions
            .iter()
            .enumerate()
            .map(|(index, assertion)| {
                let layer = assertion.layer();
                (layer.map_or(0, Layer::order), index, layer)
            })
            .collect();
        order.sort_by_key(|(order, _, _)| *order);
        let of = |index: usize| assertions.get(index);
        let (last, first): (Vec<_>, Vec<_>) =
            order.into_iter().partition(|(_, _, layer)| layer.is_some_and(Layer::needs_model));
        let mut found: Vec<Found> = first
            .into_iter()
            .filter_map(|(_, index, layer)| {
                Some(self.run_assertion(index, layer, of(index)?, || self.decide_on_trace(trace, of(index))))
            })
            .collect();
        // Models cost money and time, and cannot change the outcome of a batch that has failed.
        if found.iter().any(|one| one.verdict.status.is_hard()) {
            return Batch { found, not_run: last.into_iter().map(|(_, index, _)| index).collect() };
        }
        found.extend(self.with_models(trace, assertions, &last));
        Batch { found, not_run: Vec::new() }
    }

    /// Evaluates the assertions that need models, concurrently.
    fn with_models(
        &self,
        trace: &Trace<'_>,
        assertions: &[Assertion<'_>],
        last: &[(u8, usize, Option<Layer>)],
    ) -> Vec<Found> {
        let until = Instant::now() + self.model_time;
        let one = |index: usize, layer: Option<Layer>| {
            let assertion = assertions.get(index)?;
            Some(self.run_assertion(index, layer, assertion, || self.ask_model(trace, assertion, until)))
        };
        if let [(_, index, layer)] = last {
            return one(*index, *layer).into_iter().collect();
        }
        let next = AtomicUsize::new(0);
        let mut found: Vec<Found> = std::thread::scope(|scope| {
            let work = || {
                let mut mine = Vec::new();
                while let Some((_, index, layer)) = last.get(next.fetch_add(1, Ordering::Relaxed)) {
                    mine.extend(one(*index, *layer));
                }
                mine
            };
            let others: Vec<_> = (1..last.len().min(MAX_PARALLEL))
                .filter_map(|_| std::thread::Builder::new().spawn_scoped(scope, work).ok())
                .collect();
            let mut found = work();
            // A thread cannot panic: each assertion is caught by itself.
            found.extend(others.into_iter().filter_map(|other| other.join().ok()).flatten());
            found
        });
        let place = |found: &Found| last.iter().position(|(_, index, _)| *index == found.index);
        found.sort_by_key(place);
        found
    }

    /// Runs one assertion: catches panics, measures the duration, and applies a threshold that is computed from earlier runs.
    fn run_assertion(
        &self,
        index: usize,
        layer: Option<Layer>,
        assertion: &Assertion<'_>,
        run: impl FnOnce() -> (Verdict, bool),
    ) -> Found {
        let begin = Instant::now();
        let (mut verdict, waiting) = catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|_| {
            (Verdict::error("a defect of the engine: the assertion could not be evaluated"), false)
        });
        let dynamic = !waiting && is_dynamic(assertion.spec);
        if dynamic {
            let key = assertion.key(&self.tools);
            let earlier = self.store().and_then(|store| store.scores(&key, WINDOW).ok()).unwrap_or_default();
            verdict = self::dynamic(verdict, &earlier);
        }
        Found { index, layer, verdict, took: begin.elapsed(), dynamic, waiting }
    }

    fn decide_on_trace(&self, trace: &Trace<'_>, assertion: Option<&Assertion<'_>>) -> (Verdict, bool) {
        let Some(assertion) = assertion else { return (Verdict::error("there is no such assertion"), false) };
        match assertion.compile(&self.tools) {
            Compiled::Plugin => {
                (Verdict::fail(true, WAITING).suggest("run the plugin and submit its result"), true)
            }
            Compiled::Failed(verdict) => (verdict, false),
            Compiled::Check(mut check) => {
                for step in &trace.steps {
                    check.step(step);
                }
                (check.verdict(&trace.head), false)
            }
            Compiled::Similarity(_) | Compiled::Judgement(_) => {
                (Verdict::error("this assertion needs a model"), false)
            }
        }
    }

    fn ask_model(&self, trace: &Trace<'_>, assertion: &Assertion<'_>, until: Instant) -> (Verdict, bool) {
        let store = self.store();
        let verdict = match assertion.compile(&self.tools) {
            Compiled::Similarity(mut asked) => {
                trace.steps.iter().for_each(|step| asked.step(step));
                self.models.similarity(&asked, &trace.head, store, until)
            }
            Compiled::Judgement(mut asked) => {
                trace.steps.iter().for_each(|step| asked.step(step));
                let mut fence = [0; 16];
                self.randomness.fill(&mut fence);
                let fence = proctor_core::hex::encode(fence);
                self.models.judgement(&asked, &trace.head, &fence, store, until)
            }
            Compiled::Failed(verdict) => verdict,
            Compiled::Check(_) | Compiled::Plugin => Verdict::error("this assertion needs no model"),
        };
        (verdict, false)
    }

    /// Adds the results of a batch to the history, except errors, which have no score, and simulated results, which say nothing about the
    /// agent.
    pub fn remember(&self, trace_id: &str, assertions: &[Assertion<'_>], batch: &Batch) {
        if self.simulated {
            return;
        }
        let Some(store) = self.store() else { return };
        let rows =
            batch.found.iter().filter(|found| found.verdict.status != Status::Error).filter_map(|found| {
                let assertion = assertions.get(found.index)?;
                Some(Row {
                    trace_id: recorded_id(trace_id),
                    assertion_id: recorded_id(&assertion.assertion_id),
                    kind: assertion.kind.to_string(),
                    key: assertion.key(&self.tools),
                    score: found.verdict.score,
                    status: if found.waiting { WAITING_STATUS } else { found.verdict.status.word() }
                        .to_owned(),
                })
            });
        store.record(rows.collect());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proctor_system::{SystemClock, SystemRandomness};

    fn evaluator() -> Evaluator {
        let settings = Settings::read(&|_| None).unwrap();
        Evaluator::new(&settings, Arc::new(SystemClock), Arc::new(SystemRandomness), |_| ()).unwrap()
    }

    fn trace() -> Trace<'static> {
        Trace::parse(r#"{"trace_id":"t","output":{"message":"m"}}"#).unwrap()
    }

    #[test]
    fn a_defect_is_the_failure_of_one_assertion() {
        let assertion = Assertion::new("a", "content", "{}").unwrap();
        let found = evaluator().run_assertion(0, None, &assertion, || panic!("a defect"));
        assert_eq!(found.verdict.status, Status::Error);
        assert!(found.verdict.explanation.contains("defect"));
    }

    #[test]
    fn layers_come_in_their_order_and_models_only_if_nothing_failed_hard() {
        let assertions = [
            Assertion::new("judge", "llm_judge", "{}").unwrap(),
            Assertion::new("good", "content", r#"{"check":"contains","value":"m"}"#).unwrap(),
            Assertion::new("plugin", "plugin", r#"{"plugin_id":"p"}"#).unwrap(),
            Assertion::new("steps", "constraint", r#"{"field":"steps.length","operator":"eq","value":0}"#)
                .unwrap(),
        ];
        let names = |batch: &Batch| {
            batch
                .found
                .iter()
                .map(|found| assertions[found.index].assertion_id.to_string())
                .collect::<Vec<_>>()
        };
        let batch = evaluator().evaluate(&trace(), &assertions);
        assert_eq!(
            names(&batch),
            ["plugin", "steps", "good", "judge"],
            "a plugin that is waited for stops nothing"
        );
        assert!(batch.not_run.is_empty());
        let failing = [
            assertions[0].clone(),
            Assertion::new("bad", "content", r#"{"check":"contains","value":"z"}"#).unwrap(),
        ];
        let batch = evaluator().evaluate(&trace(), &failing);
        assert_eq!((batch.found.len(), batch.not_run.as_slice()), (1, [0].as_slice()));
    }
}
