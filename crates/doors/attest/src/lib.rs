//! Attest protocol: an engine that evaluates assertions on traces, for the official clients and for our own commands.

mod answer;
pub mod assertion_file;
mod calibrate;
mod evaluate;
mod models;
mod plugins;
mod record;
mod serve;
mod settings;
mod simulate;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

use proctor_assert::{Assertion, Limits, Status, Trace, inspect_tree, validate};
use proctor_wire::attest::message::{
    Accepted, DriftAnswer, DriftReport, EvaluateBatch, GenerateUserMessage, Initialize, Initialized, Number,
    QueryDrift, Shutdown, SubmitPluginResult, TreeAnswer, UserMessage, ValidateTree, drift_alert,
};
use proctor_wire::attest::rpc::{Code, Params, ParamsError, Refusal, Request, refuse, respond};
use proctor_wire::attest::{MAX_ASSERTION_ID, PROTOCOL_VERSION, reply, rpc};
use serde_json::value::RawValue;

pub use calibrate::{Calibrated, LabelError, calibrate, read_labels};
pub use evaluate::{Batch, Evaluator, HistoryError};
pub use models::{ModelsError, SampleError};
pub use record::{OpenAccess, RecordError, Recorder};
pub use serve::serve;
pub use settings::{Settings, SettingsError};

use plugins::Plugins;

/// Engine version that is reported to clients: the client generation that this engine is compatible with.
pub const ENGINE_VERSION: &str = "0.9.0";

/// Capability of naming a recorded session instead of sending its trace.
const SESSIONS: &str = "proctor_sessions";

/// Default number of scores in a drift report.
const DRIFT_WINDOW: usize = 50;

/// Session of the engine.
pub struct AttestDoor {
    evaluator: Evaluator,
    recorder: Recorder,
    soft_failures: Option<u64>,
    drift_alerts: bool,
    model_time: Duration,
    session: Mutex<Session>,
}

#[derive(Default)]
struct Session {
    stage: Stage,
    drift_alerts: bool,
    stored_sessions: bool,
    evaluated: u64,
    soft_failures: u64,
    plugins: Plugins,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Stage {
    #[default]
    New,
    Ready,
    Ended,
}

/// Reply to a request.
pub struct Reply {
    /// Complete lines: notifications, then the response.
    pub lines: Vec<u8>,
    /// Whether the session is over.
    pub last: bool,
}

impl AttestDoor {
    /// Starts a session.
    pub fn new(evaluator: Evaluator, recorder: Recorder, settings: &Settings) -> AttestDoor {
        AttestDoor {
            evaluator,
            recorder,
            soft_failures: settings.soft_failures,
            drift_alerts: settings.drift_alerts,
            model_time: settings.model_time,
            session: Mutex::default(),
        }
    }

    /// Waits until the history is written.
    pub fn flush(&self) {
        if let Some(store) = self.evaluator.store() {
            store.flush();
        }
    }

    /// Answers one line, valid or not, with exactly one response.
    pub fn answer(&self, line: &str) -> Reply {
        let request = match rpc::read(line) {
            Ok(request) => request,
            Err((id, refusal)) => return Reply { lines: refuse(id, &refusal), last: false },
        };
        let id = request.id;
        let answered = catch_unwind(AssertUnwindSafe(|| self.dispatch(&request)));
        let defect =
            || Refusal::new(Code::Internal, "a defect of the engine", "the request could not be answered");
        match answered.unwrap_or_else(|_| Err(defect())) {
            Ok(lines) => Reply { lines, last: request.method == "shutdown" },
            Err(refusal) => Reply { lines: refuse(id, &refusal), last: false },
        }
    }

    fn dispatch(&self, request: &Request<'_>) -> Result<Vec<u8>, Refusal> {
        let id = request.id;
        let method = request.method.as_ref();
        #[cfg(test)]
        assert_ne!(method, "a defect");
        let known = [
            "initialize",
            "evaluate_batch",
            "submit_plugin_result",
            "validate_trace_tree",
            "query_drift",
            "shutdown",
        ];
        let simulates = method == "generate_user_message" && self.evaluator.models.judge().is_some();
        if !known.contains(&method) && !simulates {
            let detail = match method {
                "generate_user_message" => "this method needs a judge, and none is configured".to_owned(),
                other => format!("`{}` is not a method of this engine", rpc::cut(other, 100)),
            };
            return Err(Refusal::new(Code::MethodNotFound, "there is no such method", detail));
        }
        self.check_stage(method)?;
        match method {
            "initialize" => self.initialize(request.params).map(|result| respond(id, &result)),
            "evaluate_batch" => self.evaluate_batch(id, request.params),
            "submit_plugin_result" => {
                self.submit_plugin_result(request.params).map(|result| respond(id, &result))
            }
            "validate_trace_tree" => validate_trace_tree(request.params).map(|result| respond(id, &result)),
            "query_drift" => self.query_drift(request.params).map(|result| respond(id, &result)),
            "generate_user_message" => {
                self.generate_user_message(request.params).map(|result| respond(id, &result))
            }
            _ => {
                let mut session = self.session()?;
                session.stage = Stage::Ended;
                Ok(respond(id, &Shutdown { sessions_completed: 1, assertions_evaluated: session.evaluated }))
            }
        }
    }

    fn session(&self) -> Result<MutexGuard<'_, Session>, Refusal> {
        self.session
            .lock()
            .map_err(|_| Refusal::new(Code::Internal, "a defect of the engine", "the session cannot be read"))
    }

    fn check_stage(&self, method: &str) -> Result<(), Refusal> {
        let stage = self.session()?.stage;
        let detail = match (method, stage) {
            ("initialize", Stage::New) => return Ok(()),
            ("initialize", _) => "the session is initialized already",
            (_, Stage::Ready) => return Ok(()),
            (_, Stage::New) => "send `initialize` first",
            (_, Stage::Ended) => "the session has ended",
        };
        Err(Refusal::new(Code::Session, "not now in this session", detail))
    }

    fn initialize(&self, params: Params<'_>) -> Result<Initialized, Refusal> {
        let asked: Initialize = read(params, Code::Session, "`initialize` cannot be read")?;
        let version = asked.protocol_version.unwrap_or_default();
        if version != PROTOCOL_VERSION {
            let why = if version > PROTOCOL_VERSION { "is not supported" } else { "is too old" };
            let detail =
                format!("protocol version {version} {why}; this engine speaks version {PROTOCOL_VERSION}");
            return Err(Refusal::new(Code::Session, "the protocol version does not fit", detail));
        }
        let capabilities = self.capabilities();
        let required = asked.required_capabilities.unwrap_or_default();
        let mut session = self.session()?;
        session.stage = Stage::Ready;
        session.drift_alerts = self.drift_alerts || asked.drift_alerts == Some(true);
        session.stored_sessions =
            required.iter().any(|name| name == SESSIONS) && self.recorder.state().is_some();
        let missing: Vec<String> =
            required.into_iter().filter(|name| !capabilities.contains(&name.as_str())).take(64).collect();
        Ok(Initialized {
            engine_version: ENGINE_VERSION,
            protocol_version: PROTOCOL_VERSION,
            compatible: missing.is_empty(),
            capabilities,
            missing: missing.iter().map(|name| rpc::cut(name, 100).to_owned()).collect(),
            encoding: "json",
            max_concurrent_requests: 64,
            max_trace_size_bytes: 10 * 1024 * 1024,
            max_steps_per_trace: Limits::default().steps,
        })
    }

    fn capabilities(&self) -> Vec<&'static str> {
        let mut capabilities = vec!["layers_1_4", "trace_tree", "continuous_eval", "plugins"];
        let judges = self.evaluator.models.judge().is_some();
        if self.evaluator.models.embeds() {
            capabilities.push("embedding");
        }
        if judges {
            capabilities.extend(["llm_judge", "simulation"]);
        }
        if judges || self.evaluator.models.embeds() {
            capabilities.push("layers_5_6");
        }
        capabilities.extend(["soft_failures", "multi_agent"]);
        if self.recorder.state().is_some() {
            capabilities.push(SESSIONS);
        }
        capabilities
    }

    fn evaluate_batch(&self, id: i64, params: Params<'_>) -> Result<Vec<u8>, Refusal> {
        let asked: EvaluateBatch<'_, Trace<'_>, Assertion<'_>> =
            read(params, Code::InvalidTrace, "the batch cannot be read")?;
        let assertions = asked.assertions.unwrap_or_default();
        check_names(&assertions)?;
        if let Some(session) =
            asked.session.as_deref().filter(|_| self.session().is_ok_and(|it| it.stored_sessions))
        {
            let unknown =
                |problem: String| Refusal::new(Code::InvalidTrace, "the session cannot be read", problem);
            let text = self.recorder.stored_trace(session).map_err(|error| unknown(error.to_string()))?;
            let trace = Trace::parse(&text).map_err(|error| unknown(error.to_string()))?;
            return self.evaluate(id, &trace, &assertions, &Limits::STORED, None);
        }
        let raw = match self.recorder.state() {
            Some(_) => params.read::<ValidateTree<Option<&RawValue>>>().ok().and_then(|again| again.trace),
            None => None,
        };
        self.evaluate(id, &asked.trace, &assertions, &Limits::default(), raw)
    }

    fn evaluate(
        &self,
        id: i64,
        trace: &Trace<'_>,
        assertions: &[Assertion<'_>],
        limits: &Limits,
        raw: Option<&RawValue>,
    ) -> Result<Vec<u8>, Refusal> {
        validate(trace, limits).map_err(|problem| {
            Refusal::new(Code::InvalidTrace, "the trace cannot be judged", problem.to_string())
        })?;
        let batch = self.evaluator.evaluate(trace, assertions);
        let trace_id = trace.head.trace_id.trim();
        self.recorder.batch(trace, raw, assertions, &batch, self.evaluator.simulated).map_err(|problem| {
            Refusal::new(Code::Engine, "the batch is not on record", problem.to_string()).retryable()
        })?;
        self.evaluator.remember(plugins::stored_id(trace_id), assertions, &batch);
        self.count(trace, assertions, &batch)?;
        let mut lines = self.drift_alerts(assertions, &batch)?;
        let answer = answer::answer(&batch, assertions, self.evaluator.simulated, self.evaluator.store());
        let line = reply::batch_line(id, &answer).ok_or_else(too_many)?;
        lines.extend(line);
        Ok(lines)
    }

    /// Counts results and soft failures, and registers assertions that wait for plugins.
    fn count(&self, trace: &Trace<'_>, assertions: &[Assertion<'_>], batch: &Batch) -> Result<(), Refusal> {
        let (trace_id, agent_id) = (trace.head.trace_id.as_str(), trace.head.agent_id.as_str());
        let mut session = self.session()?;
        for found in batch.found.iter().filter(|found| found.waiting) {
            if let Some(assertion) = assertions.get(found.index) {
                session.plugins.wait_for(trace_id, &assertion.assertion_id, agent_id);
            }
        }
        let soft = batch
            .found
            .iter()
            .filter(|found| !found.waiting && found.verdict.status == Status::SoftFail)
            .count();
        session.soft_failures += soft as u64;
        if let Some(allowed) = self.soft_failures
            && soft > 0
            && session.soft_failures > allowed
        {
            let detail = format!(
                "{} soft failures in this session are more than the {allowed} that ATTEST_BUDGET_MAX_COST allows",
                session.soft_failures
            );
            return Err(Refusal::new(Code::Engine, "too many soft failures", detail));
        }
        session.evaluated += batch.found.len() as u64;
        Ok(())
    }

    /// Drift notifications of a batch, if the client asked for them.
    fn drift_alerts(&self, assertions: &[Assertion<'_>], batch: &Batch) -> Result<Vec<u8>, Refusal> {
        if !self.session()?.drift_alerts {
            return Ok(Vec::new());
        }
        let fell =
            batch.found.iter().filter(|found| found.dynamic && found.verdict.status == Status::HardFail);
        let reports = fell.filter_map(|found| {
            let name = assertions.get(found.index)?.assertion_id.to_string();
            let mut report = self.drift(name, DRIFT_WINDOW).ok()?;
            report.status = "drift_detected";
            Some(drift_alert(&report))
        });
        Ok(reports.flatten().collect())
    }

    fn submit_plugin_result(&self, params: Params<'_>) -> Result<Accepted, Refusal> {
        let asked: SubmitPluginResult = read(params, Code::Assertion, "the plugin's result cannot be read")?;
        let mut session = self.session()?;
        let accepted = session.plugins.accept(&asked).map_err(|error| {
            Refusal::new(Code::Assertion, "the plugin's result cannot be used", error.to_string())
        })?;
        let Some(accepted) = accepted else { return Ok(Accepted { accepted: false }) };
        drop(session);
        if let Err(problem) = self.recorder.plugin(&accepted) {
            // It can be submitted again.
            self.session()?.plugins.wait_for(&accepted.trace_id, &accepted.assertion_id, &accepted.agent);
            return Err(
                Refusal::new(Code::Engine, "the result is not on record", problem.to_string()).retryable()
            );
        }
        self.session()?.evaluated += 1;
        if let Some(store) = self.evaluator.store() {
            store.replace_plugin(accepted.row());
        }
        Ok(Accepted { accepted: true })
    }

    fn query_drift(&self, params: Params<'_>) -> Result<DriftAnswer, Refusal> {
        let asked: QueryDrift = read(params, Code::Assertion, "the query cannot be read")?;
        let window = asked.window_size.filter(|size| *size >= 1.0).map_or(DRIFT_WINDOW, |size| {
            // Anything beyond what is kept is everything.
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "from 1 to a million"
            )]
            let window = size.min(1e6) as usize;
            window
        });
        let assertion_id = asked.assertion_id.unwrap_or_default();
        // It comes back in the answer, and no assertion has a longer one.
        if assertion_id.len() > MAX_ASSERTION_ID {
            let detail = format!("`assertion_id` is longer than {MAX_ASSERTION_ID} bytes");
            return Err(Refusal::new(Code::Assertion, "the query cannot be read", detail));
        }
        let report = self.drift(assertion_id, window)?;
        Ok(DriftAnswer { report })
    }

    fn drift(&self, assertion_id: String, window: usize) -> Result<DriftReport, Refusal> {
        let unusable = |detail: String| Refusal::new(Code::Engine, "there is no history", detail);
        let problem =
            || unusable(self.evaluator.history_problem().map_or_else(String::new, ToString::to_string));
        let store = self.evaluator.store().ok_or_else(problem)?;
        let drift = store
            .drift(&plugins::recorded_id(&assertion_id), window)
            .map_err(|error| unusable(error.to_string()))?;
        let status = match drift.count {
            0 => "no_data",
            _ if drift.stddev > 0.0 && drift.latest < drift.mean - drift.stddev => "drift_detected",
            _ => "ok",
        };
        Ok(DriftReport {
            assertion_id,
            // The sum of nothing is a negative zero.
            mean: drift.mean + 0.0,
            stddev: drift.stddev + 0.0,
            count: drift.count,
            latest_score: drift.latest,
            deviation: if drift.count == 0 { 0.0 } else { drift.latest - drift.mean },
            status,
        })
    }

    fn generate_user_message(&self, params: Params<'_>) -> Result<UserMessage, Refusal> {
        let asked: GenerateUserMessage = read(params, Code::Assertion, "the conversation cannot be read")?;
        let judge = self.evaluator.models.judge().ok_or_else(|| {
            Refusal::new(Code::MethodNotFound, "there is no such method", "no judge is configured")
        })?;
        simulate::message(judge, &asked, self.model_time).map(|message| UserMessage { message })
    }
}

fn validate_trace_tree(params: Params<'_>) -> Result<TreeAnswer, Refusal> {
    let asked: ValidateTree<Trace<'_>> = read(params, Code::InvalidTrace, "the trace cannot be read")?;
    let report = inspect_tree(&asked.trace);
    // A line is bounded, the number of agents is not.
    let mut room = 40_000usize;
    let mut names = Vec::new();
    for name in &report.agent_ids {
        let name = rpc::cut(name, 200);
        let Some(left) = room.checked_sub(rpc::written_length(name) + 3) else { break };
        room = left;
        names.push(name.to_owned());
    }
    Ok(TreeAnswer {
        valid: report.valid,
        errors: report.errors.iter().map(|error| rpc::cut(error, 2_000).to_owned()).collect(),
        depth: report.depth,
        agent_count: report.agent_count,
        agent_ids: (!names.is_empty()).then_some(names),
        aggregate_tokens: Number(finite(report.aggregate_tokens)),
        aggregate_cost_usd: finite(report.aggregate_cost_usd),
        aggregate_latency_ms: Number(finite(report.aggregate_latency_ms)),
    })
}

/// Clamps a sum to a finite number: sums of finite numbers can overflow, and JSON has no infinity.
fn finite(sum: f64) -> f64 {
    if sum.is_nan() { 0.0 } else { sum.clamp(f64::MIN, f64::MAX) }
}

/// Parses parameters. Anything but an object has the code for invalid parameters, other mistakes the code of the method.
fn read<'a, T: serde::Deserialize<'a>>(params: Params<'a>, code: Code, message: &str) -> Result<T, Refusal> {
    params.read().map_err(|error| match error {
        ParamsError::NotAnObject => {
            Refusal::new(Code::InvalidParams, "`params` is not valid", "`params` must be an object")
        }
        ParamsError::Unfit(detail) => Refusal::new(code, message, detail),
    })
}

fn check_names(assertions: &[Assertion<'_>]) -> Result<(), Refusal> {
    if let Some(at) = assertions.iter().position(|assertion| assertion.assertion_id.len() > MAX_ASSERTION_ID)
    {
        let detail = format!("assertions[{at}].assertion_id is longer than {MAX_ASSERTION_ID} bytes");
        return Err(Refusal::new(Code::Assertion, "an assertion's name is too long", detail));
    }
    let names =
        assertions.iter().map(|assertion| (assertion.assertion_id.as_str(), assertion.request_id.as_str()));
    if reply::fits(names) { Ok(()) } else { Err(too_many()) }
}

fn too_many() -> Refusal {
    let detail =
        "their results do not fit into one line that every client can read: send them in several batches";
    Refusal::new(Code::Assertion, "too many assertions in one batch", detail)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use proctor_system::{SystemClock, SystemRandomness};

    fn door() -> AttestDoor {
        let settings = Settings::read(&|_| None).unwrap();
        let evaluator =
            Evaluator::new(&settings, Arc::new(SystemClock), Arc::new(SystemRandomness), |_| ()).unwrap();
        AttestDoor::new(evaluator, Recorder::NOWHERE, &settings)
    }

    #[test]
    fn a_defect_outside_an_assertion_is_answered_and_the_session_goes_on() {
        let door = door();
        let ask = |id: i64, method: &str| {
            let line = format!(
                r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{{"protocol_version":1}}}}"#
            );
            String::from_utf8(door.answer(&line).lines).unwrap()
        };
        let answer = ask(7, "a defect");
        assert!(
            answer.contains(r#""id":7"#) && answer.contains("-32603") && answer.contains("INTERNAL_ERROR"),
            "{answer}"
        );
        assert!(ask(8, "initialize").contains(r#""compatible":true"#));
    }
}
