//! Runs of a process that does not own the state directory: requests and answers are lines of JSON on the owner's socket.

use std::io::{BufReader, Write as _};
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex, PoisonError};

use proctor_core::action::Action;
use proctor_core::decision::Effect;
use proctor_core::json::Json;
use proctor_core::session::Caller;
use proctor_core::time::Timestamp;
use proctor_engine::Engine;
use proctor_engine::access::Relay;
use proctor_engine::owner::RelayedDoor;
use proctor_net::lines::{self, Line};
use rust_decimal::Decimal;

use super::{
    Approval, Decided, JobKey, JobOutcome, RecordError, observation, outcome_report, proposal, run_end,
};

/// Mode of the connections that carry runs of workflows.
pub const JOBS: &str = "jobs";

/// Longest request: a prompt of the longest manifest, escaped.
const MAX_LINE: usize = 16 << 20;

/// Connection to the owner.
pub struct RelayedRecorder(Arc<Mutex<Relay>>);

impl RelayedRecorder {
    pub(super) fn new(relay: Relay) -> RelayedRecorder {
        RelayedRecorder(Arc::new(Mutex::new(relay)))
    }

    pub(super) async fn decide(&self, key: &JobKey, action: Action) -> Result<Decided, RecordError> {
        // The owner says which door it was.
        let action = Action { door: String::new(), ..action }.to_json();
        let answer = self.ask(request("decide", key).with("action", action)).await?;
        read_decision(&answer).ok_or(RecordError::Answer)
    }

    pub(super) async fn outcome(&self, key: &JobKey, outcome: JobOutcome) -> Result<u64, RecordError> {
        let mut line = request("outcome", key)
            .with("decision_id", outcome.decision.0.to_string())
            .with("seq", outcome.decision.1)
            .with("ok", outcome.is_ok)
            .with("result", outcome.result);
        if let Some(tokens) = outcome.tokens {
            line.push("tokens", tokens);
        }
        if let Some(cost) = outcome.cost_usd {
            line.push("cost_usd", cost.to_string());
        }
        self.recorded(line).await
    }

    pub(super) async fn observe(&self, key: &JobKey, code: &str, data: Json) -> Result<u64, RecordError> {
        self.recorded(request("observe", key).with("code", code).with("data", data)).await
    }

    pub(super) async fn end(&self, key: &JobKey, data: Json) -> Result<u64, RecordError> {
        self.recorded(request("end", key).with("data", data)).await
    }

    pub(super) async fn checkpoint(&self) -> Result<String, RecordError> {
        let answer = self.ask(Json::object().with("op", "checkpoint")).await?;
        answer.get("note").and_then(Json::as_str).map(str::to_owned).ok_or(RecordError::Answer)
    }

    pub(super) async fn consume(&self, key: &str) -> Result<bool, RecordError> {
        let answer = self.ask(Json::object().with("op", "consume").with("key", key)).await?;
        answer.get("used").and_then(Json::as_bool).ok_or(RecordError::Answer)
    }

    async fn recorded(&self, line: Json) -> Result<u64, RecordError> {
        self.ask(line).await?.get("seq").and_then(Json::as_u64).ok_or(RecordError::Answer)
    }

    /// One request at a time: a run asks a handful of times, and waits for each answer.
    async fn ask(&self, line: Json) -> Result<Json, RecordError> {
        let relay = Arc::clone(&self.0);
        let asking = tokio::task::spawn_blocking(move || {
            relay.lock().unwrap_or_else(PoisonError::into_inner).command(&line)
        });
        Ok(asking.await.map_err(|_| RecordError::Interrupted)??)
    }
}

fn request(operation: &str, key: &JobKey) -> Json {
    Json::object().with("op", operation).with("job", key.job.as_str()).with("session", key.session.as_str())
}

fn read_decision(answer: &Json) -> Option<Decided> {
    let text = |name: &str| answer.get(name).and_then(Json::as_str);
    let effect: Effect = text("decision")?.parse().ok()?;
    let approval = text("approval_id").and_then(|id| id.parse().ok());
    let expires = text("expires_at").and_then(Timestamp::parse);
    let record = text("decision_id").and_then(|id| id.parse().ok());
    let record = record.zip(answer.get("seq").and_then(Json::as_u64));
    // INVARIANT: what lets a run through is on record.
    if effect.lets_through() && record.is_none() {
        return None;
    }
    Some(Decided {
        effect,
        rule: text("rule").unwrap_or_default().to_owned(),
        reason: text("reason").unwrap_or_default().to_owned(),
        approval: approval.map(|id| Approval { id, expires }),
        retry_after_ms: answer.get("retry_after_ms").and_then(Json::as_u64),
        record,
    })
}

/// Door that the owner of the state directory serves to processes that run workflows.
///
/// The peer is this user, as the owner has checked, and says itself which task it runs: whoever can connect can also run tasks as itself.
pub struct RelayedJobs(pub Arc<Engine>);

impl RelayedDoor for RelayedJobs {
    fn mode(&self) -> &'static str {
        JOBS
    }

    fn serve(&self, _caller: Caller, mut input: BufReader<UnixStream>, mut output: UnixStream) {
        while let Ok(Some(Line::Text(line))) = lines::read(&mut input, MAX_LINE) {
            let answer = match Json::parse(&line) {
                Ok(request) => self.answer(&request).unwrap_or_else(|error| failed(&error.to_string())),
                Err(error) => failed(&error.to_string()),
            };
            if output.write_all(format!("{answer}\n").as_bytes()).is_err() {
                return;
            }
        }
    }
}

/// Error of a relayed request.
#[derive(Debug, thiserror::Error)]
enum RequestError {
    #[error("unknown request `{0}`")]
    Unknown(String),
    #[error("`{0}` is missing or cannot be read")]
    Member(&'static str),
    #[error(transparent)]
    Engine(#[from] proctor_engine::EngineError),
    #[error(transparent)]
    Checkpoint(#[from] proctor_ledger::NotRecorded),
}

fn failed(error: &str) -> Json {
    Json::object().with("error", error)
}

impl RelayedJobs {
    fn answer(&self, request: &Json) -> Result<Json, RequestError> {
        let text =
            |name: &'static str| request.get(name).and_then(Json::as_str).ok_or(RequestError::Member(name));
        let operation = text("op")?;
        if operation == "checkpoint" {
            return Ok(Json::object().with("note", self.0.ledger().checkpoint()?));
        }
        if operation == "consume" {
            let job = super::consumer();
            let report = super::consumption(text("key")?);
            let recorded = self.0.report(&job.caller(), &job.job, &job.session, super::DOOR, report);
            return match recorded {
                Ok(_) => Ok(Json::object().with("used", true)),
                Err(proctor_engine::EngineError::Known { .. }) => Ok(Json::object().with("used", false)),
                Err(error) => Err(error.into()),
            };
        }
        let key = JobKey { job: text("job")?.to_owned(), session: text("session")?.to_owned() };
        let data = || request.get("data").cloned().unwrap_or_default();
        let report = match operation {
            "decide" => {
                let sent = request.get("action").ok_or(RequestError::Member("action"))?;
                let action = Action::from_json(sent).map_err(|_| RequestError::Member("action"))?;
                return Ok(self.0.deliver(self.0.submit(proposal(&key, action))).to_json());
            }
            "outcome" => {
                let id = text("decision_id")?.parse().map_err(|_| RequestError::Member("decision_id"))?;
                let sequence =
                    request.get("seq").and_then(Json::as_u64).ok_or(RequestError::Member("seq"))?;
                let cost = request.get("cost_usd").and_then(Json::as_str);
                outcome_report(JobOutcome {
                    decision: (id, sequence),
                    is_ok: request.get("ok").and_then(Json::as_bool) == Some(true),
                    result: request.get("result").cloned().unwrap_or_default(),
                    tokens: request.get("tokens").and_then(Json::as_u64),
                    cost_usd: cost.and_then(|cost| Decimal::from_str_exact(cost).ok()),
                })
            }
            "observe" => observation(text("code")?, data()),
            "end" => run_end(&key, data()),
            other => return Err(RequestError::Unknown(other.to_owned())),
        };
        let receipt = self.0.report(&key.caller(), &key.job, &key.session, super::DOOR, report)?;
        Ok(Json::object().with("seq", receipt.seq()))
    }
}
