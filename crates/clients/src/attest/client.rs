//! The client and its calls.

use std::ffi::OsStr;
use std::fmt;
use std::process::ExitStatus;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use tokio::time::Instant;

use super::error::ClientError;
use super::link::Link;
use super::messages::{InitializeParams, InitializeResult, PROTOCOL_VERSION, ShutdownResult, body};
use super::notifications::{Diagnostics, Notification};
use super::options::{EngineBuilder, EngineOptions};
use super::process::after;

/// A running engine and a session with it. Dropping it kills the engine; [`shutdown`](AttestClient::shutdown) ends it gracefully.
pub struct AttestClient {
    link: Link,
    engine: InitializeResult,
}

/// The outcome of a shutdown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShutdownReport {
    /// The engine's answer to `shutdown`, if there was one.
    pub statistics: Option<ShutdownResult>,
    /// The reason why there was none.
    pub problem: Option<ClientError>,
    /// Way in which the engine process ended.
    pub ending: Ending,
    /// The exit status.
    pub status: ExitStatus,
}

/// Outcome of stopping the engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// The process exited after `shutdown`, without a signal.
    Exited,
    /// The signal `SIGTERM`.
    Terminated,
    /// The signal `SIGKILL`.
    Killed,
}

impl AttestClient {
    /// Starts `<program> <args…> --log-level=<level>` and initializes a session. If that fails no process remains.
    pub async fn spawn(
        program: impl AsRef<OsStr>,
        args: impl IntoIterator<Item = impl AsRef<OsStr>>,
        options: EngineOptions,
    ) -> Result<AttestClient, ClientError> {
        args.into_iter().fold(EngineBuilder::new(program), EngineBuilder::arg).options(options).start().await
    }

    pub(super) async fn start(builder: EngineBuilder) -> Result<AttestClient, ClientError> {
        let deadline = after(builder.options.handshake_timeout);
        let link = Link::start(builder)?;
        match initialize(&link, deadline).await {
            Ok(engine) => {
                link.limit_concurrency(engine.max_concurrent_requests);
                Ok(AttestClient { link, engine })
            }
            Err(error) => {
                let _ = link.end(Instant::now(), None).await;
                Err(error)
            }
        }
    }

    /// The engine's answer to `initialize`.
    pub fn engine(&self) -> &InitializeResult {
        &self.engine
    }

    /// Evaluates assertions against a trace. The result has `results`, `total_cost` and `total_duration_ms`.
    pub async fn evaluate_batch(
        &self,
        trace: &(impl Serialize + ?Sized),
        assertions: &(impl Serialize + ?Sized),
    ) -> Result<Box<RawValue>, ClientError> {
        #[derive(Serialize)]
        struct Params<'a, T: ?Sized, A: ?Sized> {
            trace: &'a T,
            assertions: &'a A,
        }
        self.request("evaluate_batch", &Params { trace, assertions }).await
    }

    /// Submits the result of a plugin that ran in this process; whether the engine accepted it.
    pub async fn submit_plugin_result(
        &self,
        trace_id: &str,
        plugin_name: &str,
        assertion_id: &str,
        result: &(impl Serialize + ?Sized),
    ) -> Result<bool, ClientError> {
        #[derive(Serialize)]
        struct Params<'a, R: ?Sized> {
            trace_id: &'a str,
            plugin_name: &'a str,
            assertion_id: &'a str,
            result: &'a R,
        }
        #[derive(Deserialize)]
        struct Answer {
            accepted: bool,
        }
        let method = "submit_plugin_result";
        let params = Params { trace_id, plugin_name, assertion_id, result };
        let answer = self.request(method, &params).await?;
        read::<Answer>(method, &answer).map(|answer| answer.accepted)
    }

    /// Validates the structure of a trace with its sub-traces. The result has `valid`, `errors`, and totals of the tree.
    pub async fn validate_trace_tree(
        &self,
        trace: &(impl Serialize + ?Sized),
    ) -> Result<Box<RawValue>, ClientError> {
        #[derive(Serialize)]
        struct Params<'a, T: ?Sized> {
            trace: &'a T,
        }
        self.request("validate_trace_tree", &Params { trace }).await
    }

    /// Queries the drift of an assertion's scores; without a window the engine uses its default. The result has a `report`.
    pub async fn query_drift(
        &self,
        assertion_id: &str,
        window_size: Option<u32>,
    ) -> Result<Box<RawValue>, ClientError> {
        #[derive(Serialize)]
        struct Params<'a> {
            assertion_id: &'a str,
            #[serde(skip_serializing_if = "Option::is_none")]
            window_size: Option<u32>,
        }
        self.request("query_drift", &Params { assertion_id, window_size }).await
    }

    /// Generates the next message of a simulated user with the engine's language model.
    pub async fn generate_user_message(
        &self,
        persona: &(impl Serialize + ?Sized),
        conversation_history: &(impl Serialize + ?Sized),
        fault_config: Option<&RawValue>,
    ) -> Result<String, ClientError> {
        #[derive(Serialize)]
        struct Params<'a, P: ?Sized, C: ?Sized> {
            persona: &'a P,
            conversation_history: &'a C,
            #[serde(skip_serializing_if = "Option::is_none")]
            fault_config: Option<&'a RawValue>,
        }
        #[derive(Deserialize)]
        struct Answer {
            message: String,
        }
        let method = "generate_user_message";
        let answer = self.request(method, &Params { persona, conversation_history, fault_config }).await?;
        read::<Answer>(method, &answer).map(|answer| answer.message)
    }

    /// Calls any method, within [`EngineOptions::request_timeout`]. Dropping the call cancels it; a later answer of the engine is
    /// ignored.
    pub async fn request(
        &self,
        method: &str,
        params: &(impl Serialize + ?Sized),
    ) -> Result<Box<RawValue>, ClientError> {
        self.request_within(self.link.options.request_timeout, method, params).await
    }

    /// Calls any method, within its own time limit.
    pub async fn request_within(
        &self,
        limit: Duration,
        method: &str,
        params: &(impl Serialize + ?Sized),
    ) -> Result<Box<RawValue>, ClientError> {
        self.link.call(method, params, limit, after(limit)).await
    }

    /// Ends the session and the engine: calls `shutdown`, after [`EngineOptions::shutdown_timeout`] sends `SIGTERM`, after
    /// [`EngineOptions::terminate_timeout`] more `SIGKILL`. When this returns the process has exited. An engine that had ended before is
    /// an error.
    pub async fn shutdown(self) -> Result<ShutdownReport, ClientError> {
        let (limit, terminate) = (self.link.options.shutdown_timeout, self.link.options.terminate_timeout);
        let until = after(limit);
        if let Some(end) = self.link.shared.end.get().cloned() {
            // The process may still run: it may only have closed its streams.
            let _ = self.link.end(until, Some(terminate)).await;
            return Err(end.into());
        }
        let answer = self.link.call("shutdown", &serde_json::json!({}), limit, until).await;
        let (statistics, problem) = match answer.and_then(|answer| read("shutdown", &answer)) {
            Ok(statistics) => (Some(statistics), None),
            Err(problem) => (None, Some(problem)),
        };
        let (ending, status) = self.link.end(until, Some(terminate)).await?;
        Ok(ShutdownReport { statistics, problem, ending, status })
    }

    /// Counters of the engine's output.
    pub fn diagnostics(&self) -> Diagnostics {
        Diagnostics {
            stderr_bytes: self.link.shared.stderr.total(),
            ..self.link.shared.notifications.counts()
        }
    }

    /// Takes all queued notifications, oldest first.
    pub fn take_notifications(&self) -> Vec<Notification> {
        self.link.shared.notifications.take()
    }

    /// Waits for the oldest notification and takes it; none once the engine has ended.
    pub async fn next_notification(&self) -> Option<Notification> {
        self.link.shared.notifications.next().await
    }

    /// The end of the engine's standard error.
    pub fn stderr_tail(&self) -> String {
        self.link.shared.stderr.text()
    }

    /// The number of calls in flight.
    pub fn in_flight(&self) -> usize {
        self.link.shared.calls.len()
    }

    /// The engine's process id.
    pub fn process_id(&self) -> Option<u32> {
        self.link.process_id
    }
}

impl fmt::Debug for AttestClient {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("AttestClient")
            .field("process_id", &self.link.process_id)
            .field("engine", &self.engine)
            .field("in_flight", &self.in_flight())
            .field("options", &self.link.options)
            .finish_non_exhaustive()
    }
}

async fn initialize(link: &Link, deadline: Instant) -> Result<InitializeResult, ClientError> {
    let method = "initialize";
    let params = InitializeParams {
        sdk_name: "proctor",
        sdk_version: env!("CARGO_PKG_VERSION"),
        protocol_version: PROTOCOL_VERSION,
        required_capabilities: &link.options.required_capabilities,
        preferred_encoding: "json",
        max_response_bytes: link.options.max_answer_bytes,
    };
    let answer = link.call(method, &params, link.options.handshake_timeout, deadline).await?;
    let engine: InitializeResult = read(method, &answer)?;
    let broken = |problem| Err(ClientError::Protocol { method: method.to_owned(), problem });
    if engine.protocol_version != PROTOCOL_VERSION {
        let theirs = engine.protocol_version;
        return broken(format!("it speaks version {theirs}, this client version {PROTOCOL_VERSION}"));
    }
    if engine.encoding != "json" {
        return broken(format!("its encoding is `{}`, not `json`", engine.encoding.escape_debug()));
    }
    if !engine.compatible {
        let InitializeResult { engine_version, missing, .. } = engine;
        return Err(ClientError::Incompatible { engine_version, missing });
    }
    Ok(engine)
}

fn read<'a, T: Deserialize<'a>>(method: &str, answer: &'a RawValue) -> Result<T, ClientError> {
    body(answer)
        .map_err(|error| ClientError::Protocol { method: method.to_owned(), problem: error.to_string() })
}
