//! The client.

use std::ffi::OsStr;
use std::fmt;
use std::process::ExitStatus;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use tokio::time::Instant;

use super::error::ClientError;
use super::inbox::{Diagnostics, Notification};
use super::link::Link;
use super::messages::{InitializeParams, InitializeResult, PROTOCOL_VERSION, ShutdownResult, body};
use super::options::{EngineBuilder, EngineOptions};
use super::process::after;

/// A running engine and a session with it. When it is dropped the engine is killed; [`shutdown`](AttestClient::shutdown) is the
/// polite way.
pub struct AttestClient {
    link: Link,
    engine: InitializeResult,
}

/// How a shutdown went.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShutdownReport {
    /// What the engine did in its session, if it told.
    pub statistics: Option<ShutdownResult>,
    /// Why it did not tell.
    pub problem: Option<ClientError>,
    /// What was needed to end it.
    pub ending: Ending,
    /// Its exit status.
    pub status: ExitStatus,
}

/// What was needed to end an engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// Nothing: it ended by itself, asked by `shutdown`.
    Itself,
    /// The signal `SIGTERM`.
    Terminated,
    /// The signal `SIGKILL`.
    Killed,
}

impl AttestClient {
    /// Starts `<program> <args…> --log-level=<level>` and introduces this client to it. If that fails no process remains.
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
        match introduce(&link, deadline).await {
            Ok(engine) => {
                link.keep_to(engine.max_concurrent_requests);
                Ok(AttestClient { link, engine })
            }
            Err(error) => {
                let _ = link.end(Instant::now(), None).await;
                Err(error)
            }
        }
    }

    /// What the engine said about itself.
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

    /// Hands in the result of a plugin that ran here; whether the engine accepted it.
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

    /// Checks the structure of a trace with its sub-traces. The result has `valid` and `errors`, and sums over the tree.
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

    /// Asks how an assertion's scores have moved; without a window the engine takes its own. The result has a `report`.
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

    /// Lets the engine's language model play a user; what that user says next.
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

    /// Calls any method, within [`EngineOptions::request_timeout`]. The call may be dropped at any moment; it then leaves nothing
    /// behind, and the engine's answer, if it comes, is left out.
    pub async fn request(
        &self,
        method: &str,
        params: &(impl Serialize + ?Sized),
    ) -> Result<Box<RawValue>, ClientError> {
        self.request_within(self.link.options.request_timeout, method, params).await
    }

    /// The same, within a time of its own.
    pub async fn request_within(
        &self,
        limit: Duration,
        method: &str,
        params: &(impl Serialize + ?Sized),
    ) -> Result<Box<RawValue>, ClientError> {
        self.link.call(method, params, limit, after(limit)).await
    }

    /// Ends the session and the engine: asks it to shut down, after [`EngineOptions::shutdown_timeout`] sends `SIGTERM`, after
    /// [`EngineOptions::terminate_timeout`] more `SIGKILL`. When this returns the process is gone. An engine that had ended before
    /// is an error.
    pub async fn shutdown(self) -> Result<ShutdownReport, ClientError> {
        let (limit, terminate) = (self.link.options.shutdown_timeout, self.link.options.terminate_timeout);
        let until = after(limit);
        if let Some(end) = self.link.shared.table.end() {
            // It may have closed its streams only.
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

    /// Counts of what the engine sent.
    pub fn diagnostics(&self) -> Diagnostics {
        Diagnostics { stderr_bytes: self.link.shared.stderr.total(), ..self.link.shared.inbox.counts() }
    }

    /// Takes the notifications that came and nobody took yet, oldest first.
    pub fn take_notifications(&self) -> Vec<Notification> {
        self.link.shared.inbox.take()
    }

    /// Takes the oldest notification, as soon as there is one; none when the engine has ended.
    pub async fn next_notification(&self) -> Option<Notification> {
        self.link.shared.inbox.next().await
    }

    /// The end of what the engine wrote to its standard error.
    pub fn stderr_tail(&self) -> String {
        self.link.shared.stderr.text()
    }

    /// How many calls are on their way.
    pub fn in_flight(&self) -> usize {
        self.link.shared.table.waiting()
    }

    /// The number of the engine's process.
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

async fn introduce(link: &Link, deadline: Instant) -> Result<InitializeResult, ClientError> {
    let method = "initialize";
    let params = InitializeParams {
        sdk_name: "proctor",
        sdk_version: env!("CARGO_PKG_VERSION"),
        protocol_version: PROTOCOL_VERSION,
        required_capabilities: &link.options.required_capabilities,
        preferred_encoding: "json",
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
    body(answer).map_err(|problem| ClientError::Protocol { method: method.to_owned(), problem })
}
