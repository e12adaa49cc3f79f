//! Decisions of the owner of the state directory, asked for with lines of JSON on one connection.

use std::collections::BTreeMap;
use std::io::{self, BufReader, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use proctor_core::action::Action;
use proctor_core::decision::{Change, Effect};
use proctor_core::json::Json;
use proctor_engine::access::Relay;
use proctor_engine::{Ending, RunReport};
use proctor_net::lines::{self, Line};
use tokio::sync::{mpsc, oneshot};

use super::{Decided, OutcomeReport, RecordError};
use crate::calls::DecisionRecord;
use crate::door::MAX_IN_FLIGHT;
use crate::run::Run;

/// Longest answer: arguments of the longest line that the gate reads, twice, escaped.
const MAX_ANSWER: usize = 32 << 20;

/// Time for the owner to answer. Its own limit is a few seconds.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(60);

/// A connection to the owner, shared by the calls of a run.
pub struct RelayedDecider {
    requests: mpsc::Sender<Request>,
    stream: UnixStream,
}

struct Request {
    line: Json,
    answer: oneshot::Sender<Json>,
}

/// Requests without an answer, by their number.
#[derive(Default)]
struct Waiting(Mutex<List>);

#[derive(Default)]
struct List {
    next: u64,
    answers: BTreeMap<u64, oneshot::Sender<Json>>,
    is_closed: bool,
}

impl RelayedDecider {
    /// Takes over a connection that was opened in the mode `atp`. The agent's name in its handshake makes the principal of the run.
    pub fn new(relay: Relay) -> io::Result<RelayedDecider> {
        let Relay { stream, answers, .. } = relay;
        // Requests are bounded by the calls in flight; a second one of each may wait for its turn.
        let (requests, received) = mpsc::channel(MAX_IN_FLIGHT * 2);
        let waiting = Arc::new(Waiting::default());
        let (writing, reading) = (stream.try_clone()?, Arc::clone(&waiting));
        std::thread::Builder::new()
            .name("atp-relay-write".to_owned())
            .spawn(move || write(received, writing, &waiting))?;
        let spawned = std::thread::Builder::new()
            .name("atp-relay-read".to_owned())
            .spawn(move || read(answers, &reading));
        if let Err(error) = spawned {
            let _ = stream.shutdown(Shutdown::Both);
            return Err(error);
        }
        Ok(RelayedDecider { requests, stream })
    }

    pub(super) async fn decide(&self, run: &Run, action: Action) -> Decided {
        // The owner says which door it was.
        let line = addressed(Action { door: String::new(), ..action }.to_json(), run);
        match self.ask(line).await {
            Ok(answer) => decided(&answer),
            Err(error) => denied(&error.to_string()),
        }
    }

    pub(super) async fn outcome(&self, run: &Run, report: OutcomeReport) -> Result<u64, RecordError> {
        let is_ok = report.ending == Ending::Ok;
        let mut outcome = Json::object()
            .with("decision_id", report.decision.to_string())
            .with("ok", is_ok)
            .with("result", report.result);
        if report.is_approved {
            outcome.push("simulated_approval", true);
        }
        sequence(&self.ask(addressed(Json::object().with("outcome", outcome), run)).await?)
    }

    pub(super) async fn observe(
        &self,
        run: &Run,
        code: &str,
        data: Json,
        alarms: Vec<(&'static str, String)>,
    ) -> Result<u64, RecordError> {
        let mut observation = Json::object().with("code", code).with("data", data);
        if !alarms.is_empty() {
            let alarm = |(code, problem)| Json::object().with("code", code).with("problem", problem);
            let alarms: Vec<Json> =
                alarms.iter().map(|(code, problem)| alarm((*code, problem.as_str()))).collect();
            observation.push("alarms", alarms);
        }
        sequence(&self.ask(addressed(Json::object().with("observation", observation), run)).await?)
    }

    pub(super) async fn record(&self, run: &Run, report: RunReport) -> Result<u64, RecordError> {
        let RunReport { code, name, data, once } = report;
        let mut part = Json::object().with("code", code).with("name", name).with("data", data);
        if let Some(once) = once {
            part.push("once", once);
        }
        sequence(&self.ask(addressed(Json::object().with("run", part), run)).await?)
    }

    async fn ask(&self, line: Json) -> Result<Json, RecordError> {
        let (answer, answered) = oneshot::channel();
        let asked = async {
            self.requests.send(Request { line, answer }).await.map_err(|_| RecordError::OwnerGone)?;
            answered.await.map_err(|_| RecordError::OwnerGone)
        };
        tokio::time::timeout(ANSWER_TIMEOUT, asked).await.map_err(|_| RecordError::OwnerGone)?
    }
}

impl Drop for RelayedDecider {
    fn drop(&mut self) {
        // Ends both threads.
        let _ = self.stream.shutdown(Shutdown::Both);
    }
}

impl Waiting {
    /// Adds a request; its number, unless the connection has ended.
    fn add(&self, answer: oneshot::Sender<Json>) -> Option<u64> {
        let mut list = self.lock();
        if list.is_closed {
            return None;
        }
        let number = list.next;
        list.next += 1;
        list.answers.insert(number, answer);
        Some(number)
    }

    /// Hands over an answer. One without a number belongs to the oldest request: the owner answers in order, and does not know the number
    /// of a line that it cannot read.
    fn settle(&self, answer: Json) -> bool {
        let mut list = self.lock();
        let number = match answer.get("ref") {
            Some(number) => number.as_u64(),
            None => list.answers.keys().next().copied(),
        };
        let Some(waiting) = number.and_then(|number| list.answers.remove(&number)) else { return false };
        // A request that was given up has nobody to tell.
        let _ = waiting.send(answer);
        true
    }

    fn close(&self) {
        let mut list = self.lock();
        list.is_closed = true;
        list.answers.clear();
    }

    fn lock(&self) -> MutexGuard<'_, List> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn write(mut requests: mpsc::Receiver<Request>, mut stream: UnixStream, waiting: &Waiting) {
    while let Some(Request { line, answer }) = requests.blocking_recv() {
        let Some(number) = waiting.add(answer) else { break };
        let text = format!("{}\n", line.with("ref", number));
        if stream.write_all(text.as_bytes()).is_err() {
            break;
        }
    }
    waiting.close();
    let _ = stream.shutdown(Shutdown::Both);
}

fn read(mut answers: BufReader<UnixStream>, waiting: &Waiting) {
    while let Ok(Some(Line::Text(line))) = lines::read(&mut answers, MAX_ANSWER) {
        let settled = Json::parse(&line).is_ok_and(|answer| waiting.settle(answer));
        if !settled {
            log::warn!("the owner of the state directory sent an answer to nothing");
            break;
        }
    }
    waiting.close();
    // The other thread would wait for requests that nobody answers.
    let _ = answers.get_ref().shutdown(Shutdown::Both);
}

fn addressed(line: Json, run: &Run) -> Json {
    line.with("session", run.task_id.as_str()).with("agent", run.agent.as_str())
}

fn sequence(answer: &Json) -> Result<u64, RecordError> {
    match answer.get("seq").and_then(Json::as_u64) {
        Some(sequence) if answer.get("recorded").and_then(Json::as_bool) == Some(true) => Ok(sequence),
        _ => {
            let problem = ["error", "reason"].iter().find_map(|name| answer.get(name)?.as_str());
            Err(RecordError::Owner(problem.unwrap_or("the owner did not record it").to_owned()))
        }
    }
}

/// Reads an answer of the gate. Anything but a complete, recorded permission is a deny.
fn decided(answer: &Json) -> Decided {
    let text = |name: &str| answer.get(name).and_then(Json::as_str);
    let Some(effect) = text("decision").and_then(|word| word.parse::<Effect>().ok()) else {
        return denied("the owner's answer has no decision");
    };
    let id = text("decision_id").and_then(|id| id.parse().ok());
    let record = id.zip(answer.get("seq").and_then(Json::as_u64));
    if effect != Effect::Deny && record.is_none() {
        return denied("the owner's answer names no record");
    }
    let mut changes = Vec::new();
    for change in answer.get("changes").and_then(Json::as_array).unwrap_or_default() {
        let (Some(path), Some(replacement)) =
            (change.get("path").and_then(Json::as_str), change.get("replacement"))
        else {
            return denied("the owner's answer has a malformed change");
        };
        changes.push(Change { path: path.to_owned(), replacement: replacement.clone() });
    }
    Decided {
        record: DecisionRecord {
            record,
            effect,
            rule: text("rule").unwrap_or_default().to_owned(),
            reason: text("reason").unwrap_or_default().to_owned(),
        },
        changes,
        retry_after_ms: answer.get("retry_after_ms").and_then(Json::as_u64),
    }
}

fn denied(problem: &str) -> Decided {
    Decided {
        record: DecisionRecord {
            record: None,
            effect: Effect::Deny,
            rule: "not-recorded".to_owned(),
            reason: format!("not recorded: {problem}"),
        },
        changes: Vec::new(),
        retry_after_ms: None,
    }
}

#[cfg(test)]
mod tests;
