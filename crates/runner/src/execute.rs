//! One run of an agent: request, conversation, supervision, end.

mod process;
mod request;

use std::time::Duration;

use proctor_clients::atp::client::{
    AgentClient, ClientOptions, Exchange, ExecuteError, Headers, Item, Message, Origin,
};
use proctor_core::json::Json;
use proctor_sandbox::{Exit, Network, Sandbox, Workspace};
use proctor_wire::atp::conversation::{ConversationProblem, Fed, Transcript};
use proctor_wire::atp::{Conversation, Response, Status};
use tokio::sync::mpsc;
use tokio::time::Instant;

use crate::agent::{Agent, AgentSpec, RemoteSpec};
use crate::scoring::{Ending, Measures};
use crate::secrets::{Emitted, Secrets, emission};
use crate::suite::TestCase;
use crate::supervision::{Bounds, Crossing, Prices, Supervision};
use crate::tools::{PlacedCall, SeenEvent, ServedTools, ToolCall, ToolCallStatus, ToolEndpoint, merge};

pub(crate) use process::crash;
pub use process::protocol_pipes;
pub use request::{RunIdentity, build_request};

/// Time in which output is still read after the end of an agent.
const DRAIN: Duration = Duration::from_secs(1);

/// Surroundings of one run.
pub struct RunContext<'r> {
    /// The agent.
    pub agent: &'r Agent,
    /// The test.
    pub test: &'r TestCase,
    /// Task id and numbers of the run.
    pub identity: &'r RunIdentity,
    /// The sandbox that processes run in.
    pub sandbox: &'r Sandbox,
    /// The folders of the run.
    pub workspace: &'r Workspace,
    /// Paths that the agent must not reach.
    pub hidden: &'r [std::path::PathBuf],
    /// Variables of Proctor's own environment.
    pub variables: &'r [(std::ffi::OsString, std::ffi::OsString)],
    /// Secrets of the run.
    pub secrets: &'r Secrets,
    /// Network that a process reaches.
    pub network: Network,
    /// List prices, for requests to models whose cost is not reported.
    pub prices: Prices,
    /// Becomes true when the user interrupts.
    pub interrupted: tokio::sync::watch::Receiver<bool>,
}

/// The tools endpoint of a run, and the calls that it sees.
pub struct Endpoint {
    /// The endpoint.
    pub open: Box<dyn ToolEndpoint>,
    /// Calls that have ended.
    pub calls: mpsc::Receiver<ToolCall>,
}

/// Result of one run, before evaluation.
#[derive(Debug, Clone)]
pub struct Execution {
    /// The way in which it ended.
    pub ending: Ending,
    /// Reason of an ending that is not `completed`, for people; secrets are cut.
    pub error: Option<String>,
    /// The constraint that was crossed.
    pub crossing: Option<Crossing>,
    /// The response, with secrets cut; null if no usable one came.
    pub response: Json,
    /// Events in order of arrival, with secrets cut.
    pub events: Vec<ReceivedJson>,
    /// Calls that the tools endpoint saw, in order.
    pub tool_calls: Vec<PlacedCall>,
    /// Tools that the endpoint had.
    pub served: ServedTools,
    /// Number of events that were dropped because of their number or size.
    pub dropped_events: u64,
    /// Deviations from the protocol that released agents have, and violations that did not end the run.
    pub warnings: Vec<String>,
    /// Last lines of standard error that are no messages, with secrets cut.
    pub last_lines: Vec<String>,
    /// End of the agent's process, if it has one.
    pub exit: Option<Exit>,
    /// Amounts for the score.
    pub measures: Measures,
    /// Names of secrets that the agent emitted.
    pub leaked: Vec<String>,
    /// Time from the request to the response; to the end of the agent or of the conversation if none came. The shutdown of a program is not in it.
    pub took: Duration,
}

impl Execution {
    /// Output of the run as one text: the content of the first artifact, or its structured data as JSON.
    pub fn output_text(&self) -> String {
        let first = self.response.get("artifacts").and_then(Json::as_array).and_then(|all| all.first());
        let Some(first) = first else { return String::new() };
        match (first.get("data"), first.get("content")) {
            (Some(data), _) if !data.is_null() => data.to_string(),
            (_, Some(Json::String(content))) => content.clone(),
            _ => String::new(),
        }
    }

    /// For each event whether it reports a call that the tools endpoint saw.
    pub fn events_at_endpoint(&self) -> Vec<bool> {
        let events: Vec<Json> = self.events.iter().map(|event| event.json.clone()).collect();
        crate::tools::match_reports(&events, &self.tool_calls).iter().map(Option::is_some).collect()
    }

    /// Events and tool calls of a run of the test, in their order, each call once.
    pub fn seen_events(&self, test: &TestCase) -> Vec<SeenEvent> {
        let events: Vec<Json> = self.events.iter().map(|event| event.json.clone()).collect();
        let is_mocked = |tool: &str| test.settings.mock_tools.iter().any(|mock| mock.name == tool);
        let is_served = |tool: &str| self.served.contains(tool) || is_mocked(tool);
        merge(&events, &self.tool_calls, &is_served)
    }
}

/// An event, kept as JSON.
#[derive(Debug, Clone, PartialEq)]
pub struct ReceivedJson {
    /// The event.
    pub json: Json,
    /// Whether it violates the protocol, is out of sequence, or came too late.
    pub is_flawed: bool,
}

impl ReceivedJson {
    /// The event's type; empty if it has none.
    pub fn event_type(&self) -> &str {
        self.json.get("event_type").and_then(Json::as_str).unwrap_or_default()
    }
}

/// Errors of starting an agent.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The process could not be started.
    #[error("the agent could not be started: {0}")]
    Sandbox(#[from] proctor_sandbox::Error),
    /// Its pipes could not be used.
    #[error("the pipes of the agent cannot be used: {0}")]
    Pipes(#[from] std::io::Error),
    /// The address cannot be used.
    #[error(transparent)]
    Address(#[from] proctor_clients::atp::client::AddressError),
    /// The reference files cannot be laid down.
    #[error("the reference solution could not be laid down: {0}")]
    Reference(String),
}

/// Runs the agent once. Never fails: an agent that cannot be started is an execution that ended in an error.
pub async fn execute(
    context: &RunContext<'_>,
    reference: &[crate::folder::ResolvedFile],
    endpoint: Option<Endpoint>,
) -> Execution {
    let started = Instant::now();
    let (open, calls) = match endpoint {
        Some(Endpoint { open, calls }) => (Some(open), calls),
        // The sender is gone: no call ever comes.
        None => (None, mpsc::channel(1).1),
    };
    let url = open.as_ref().map(|endpoint| endpoint.url());
    let served = open.as_ref().map(|endpoint| endpoint.served()).unwrap_or_default();
    let request = build_request(context.test, context.identity, context.workspace, url);
    let mut run = Run::new(context, started, calls);
    let outcome = match &context.agent.spec {
        AgentSpec::Process(program) => process::execute(context, program, &request, &mut run).await,
        AgentSpec::Remote(remote) => execute_remote(remote, &request, &mut run).await,
        AgentSpec::Nop => {
            run.answer(&Response::new(&context.identity.task_id, Status::Completed));
            Ok(())
        }
        AgentSpec::Reference => lay_down(context, reference).map(|()| {
            run.answer(&Response::new(&context.identity.task_id, Status::Completed));
        }),
    };
    if let Err(error) = outcome {
        run.error.get_or_insert(error.to_string());
    }
    run.times.over.get_or_insert_with(|| started.elapsed());
    if let Some(open) = open {
        open.finish().await;
    }
    while let Ok(call) = run.calls.try_recv() {
        run.take_call(call);
    }
    Execution { served, ..run.finish() }
}

fn lay_down(context: &RunContext<'_>, files: &[crate::folder::ResolvedFile]) -> Result<(), StartError> {
    for file in files {
        file.write(context.workspace.workspace())
            .map_err(|error| StartError::Reference(error.to_string()))?;
    }
    Ok(())
}

async fn execute_remote(spec: &RemoteSpec, request: &str, run: &mut Run<'_>) -> Result<(), StartError> {
    let mut headers = Headers::default();
    for (name, value) in &spec.headers {
        headers = headers.with(name, value.expose())?;
    }
    let options = ClientOptions { is_exact: spec.is_exact, headers, ..ClientOptions::default() };
    // A client for each run: the route that one run found must not decide for the others.
    let client = AgentClient::new(&spec.url, &options)?;
    let mut exchange = client.execute(request.to_owned().into());
    run.is_uncut = true;
    run.converse(&mut exchange, std::future::pending()).await;
    run.error = run.error.take().map(|error| format!("{error} ({})", crate::agent::shown_address(&spec.url)));
    Ok(())
}

/// The way in which reading an exchange ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Talk {
    /// Nothing more is read.
    Over,
    /// The program has ended, but a process that it started keeps its output open.
    HeldOpen,
}

/// State of a run.
struct Run<'r> {
    context: &'r RunContext<'r>,
    conversation: Conversation,
    supervision: Supervision,
    started: Instant,
    deadline: Instant,
    limit: Duration,
    crossing: Option<Crossing>,
    is_interrupted: bool,
    error: Option<String>,
    is_cut_off: bool,
    last_lines: Vec<String>,
    emitted: Emitted,
    /// Whether the messages still hold secrets when they are taken.
    is_uncut: bool,
    exit: Option<Exit>,
    calls: mpsc::Receiver<ToolCall>,
    tool_calls: Vec<PlacedCall>,
    times: Times,
}

/// Moments of a run, from its start.
#[derive(Default)]
struct Times {
    /// The response came.
    answered: Option<Duration>,
    /// The program ended by itself.
    ended: Option<Duration>,
    /// Nothing more was read.
    over: Option<Duration>,
}

impl<'r> Run<'r> {
    fn new(context: &'r RunContext<'r>, started: Instant, calls: mpsc::Receiver<ToolCall>) -> Run<'r> {
        let constraints = &context.test.settings.constraints;
        let bounds = Bounds {
            max_steps: constraints.max_steps,
            max_tokens: constraints.max_tokens,
            budget_usd: constraints.budget_usd,
            allowed_tools: constraints.allowed_tools.clone(),
        };
        let limit = Duration::from_secs(constraints.timeout_seconds.into());
        let limit = context.agent.timeout.map_or(limit, |own| own.min(limit));
        Run {
            context,
            conversation: Conversation::new(&context.identity.task_id),
            supervision: Supervision::new(bounds, context.prices),
            started,
            deadline: started + limit,
            limit,
            crossing: None,
            is_interrupted: false,
            error: None,
            is_cut_off: false,
            last_lines: Vec::new(),
            emitted: Emitted::default(),
            is_uncut: false,
            exit: None,
            calls,
            tool_calls: Vec::new(),
            times: Times::default(),
        }
    }

    /// Takes a response that was made here.
    fn answer(&mut self, response: &Response) {
        self.conversation
            .feed(proctor_wire::atp::Source::Response, response.as_json().to_string().as_bytes());
        self.times.answered.get_or_insert(self.started.elapsed());
    }

    /// Reads the exchange until it ends, a limit or constraint is crossed, the user interrupts, or `ended` is ready and the output was
    /// not closed soon after.
    async fn converse(&mut self, exchange: &mut Exchange, ended: impl Future<Output = ()>) -> Talk {
        let mut interrupted = self.context.interrupted.clone();
        let interruption = interrupted.wait_for(|is_interrupted| *is_interrupted);
        let alarm = tokio::time::sleep_until(self.deadline);
        tokio::pin!(ended, interruption, alarm);
        let mut has_ended = false;
        let talk = loop {
            // An agent that always has something to say must not keep its own time limit from being looked at: messages come last.
            tokio::select! {
                biased;
                _ = &mut interruption => {
                    self.is_interrupted = true;
                    break Talk::Over;
                }
                () = &mut alarm => {
                    if has_ended {
                        break Talk::HeldOpen;
                    }
                    self.crossing = Some(Crossing::Time { seconds: self.limit.as_secs_f64() });
                    break Talk::Over;
                }
                () = &mut ended, if !has_ended => {
                    has_ended = true;
                    self.times.ended = Some(self.started.elapsed());
                    alarm.as_mut().reset(self.deadline.min(Instant::now() + DRAIN));
                }
                Some(call) = self.calls.recv() => {
                    self.take_call(call);
                    if self.crossing.is_some() {
                        break Talk::Over;
                    }
                }
                item = exchange.next() => match item {
                    Ok(Item::End) => break Talk::Over,
                    Ok(item) => {
                        self.take(&item);
                        if self.crossing.is_some() || self.is_over_limit() {
                            break Talk::Over;
                        }
                    }
                    Err(error) => {
                        self.fail(&error);
                        break Talk::Over;
                    }
                },
            }
        };
        self.times.over = Some(self.started.elapsed());
        self.last_lines = exchange.last_lines();
        talk
    }

    /// Reads what is left in pipes that nobody writes to any more.
    async fn drain(&mut self, exchange: &mut Exchange) {
        let reading = async {
            loop {
                match exchange.next().await {
                    Ok(Item::End) => break,
                    Ok(item) => self.take(&item),
                    Err(error) => {
                        self.fail(&error);
                        break;
                    }
                }
                if self.crossing.is_some() || self.is_over_limit() {
                    break;
                }
            }
        };
        let _ = tokio::time::timeout(DRAIN, reading).await;
        self.last_lines = exchange.last_lines();
    }

    /// Stops an agent without a constraint being crossed.
    fn cut_off(&mut self, reason: String) {
        self.is_cut_off = true;
        self.error.get_or_insert(reason);
    }

    /// Whether the agent is stopped because of the size, depth or number of its messages.
    fn is_over_limit(&self) -> bool {
        self.is_cut_off
            || self.conversation.counts().dropped > 0
            || self.conversation.problems().last().is_some_and(ConversationProblem::is_limit)
    }

    fn take(&mut self, item: &Item) {
        let before = self.conversation.events().len();
        match self.cut(item) {
            Some(cut) => cut.feed(&mut self.conversation),
            None => item.feed(&mut self.conversation),
        }
        if self.times.answered.is_none() && self.conversation.has_responded() {
            self.times.answered = Some(self.started.elapsed());
        }
        let new: Vec<Option<Crossing>> = self
            .conversation
            .events()
            .iter()
            .skip(before)
            .filter_map(|received| {
                let json = received.as_json();
                let event_type = json.get("event_type").and_then(Json::as_str)?;
                Some(self.supervision.observe(event_type, json.get("payload").unwrap_or(&Json::Null)))
            })
            .collect();
        self.crossing = new.into_iter().flatten().next();
    }

    /// An element without the secrets that it has; none if there is nothing to cut.
    fn cut(&self, item: &Item) -> Option<Item> {
        let cut = |text: &[u8]| self.context.secrets.cut_message(text, &self.emitted).map(Into::into);
        match item {
            _ if !self.is_uncut => None,
            Item::Message(message) => {
                let origin = match &message.origin {
                    Origin::ServerSentEvent { name } => {
                        let (name, found) = self.context.secrets.cut(name);
                        self.emitted.add(found);
                        Origin::ServerSentEvent { name: name.into_owned() }
                    }
                    other => other.clone(),
                };
                Some(Item::Message(Message { text: cut(&message.text)?, origin }))
            }
            Item::Line(line) => Some(Item::Line(cut(line)?)),
            Item::End => None,
        }
    }

    fn take_call(&mut self, call: ToolCall) {
        self.emitted.add(call.emitted.iter().cloned());
        if call.status == ToolCallStatus::NotAllowed && self.crossing.is_none() {
            self.crossing = Some(Crossing::Tool(call.tool.clone()));
        }
        self.tool_calls.push(PlacedCall { after_events: self.conversation.events().len(), call });
    }

    fn fail(&mut self, error: &ExecuteError) {
        if matches!(error, ExecuteError::TooLong) {
            let _: Fed = self.conversation.feed_too_large(proctor_wire::atp::limits::MAX_MESSAGE as u64 + 1);
        }
        // The transport shows the beginning of what came.
        let text = error.to_string();
        self.emitted.add(self.context.secrets.cut(&text).1);
        self.error.get_or_insert(self.context.secrets.cut_shortened(&text));
    }

    fn finish(mut self) -> Execution {
        if self.crossing.is_none()
            && let Some(response) = self.conversation.response()
        {
            let metrics = response.as_json().get("metrics").cloned().unwrap_or(Json::Null);
            self.crossing = self.supervision.conclude(&metrics);
        }
        let took = self.took();
        let measures = self.measures();
        let unmeasured = self.unmeasured();
        let secrets = self.context.secrets;
        let transcript = self.conversation.finish();
        // What was escaped within a message shows only now.
        let cut = |json: &Json| {
            let mut json = json.clone();
            secrets.cut_json(&mut json, &self.emitted);
            json
        };
        let response = transcript.response.as_ref().map_or(Json::Null, |response| cut(response.as_json()));
        let events = transcript
            .events
            .iter()
            .map(|event| ReceivedJson { json: cut(event.as_json()), is_flawed: event.is_flawed() })
            .collect();
        let last_lines = self.last_lines.iter().map(|line| secrets.cut(line).0.into_owned()).collect();
        let leaked = self.emitted.names();
        let end = End {
            crossing: self.crossing.as_ref(),
            is_interrupted: self.is_interrupted,
            failure: self.error.as_deref(),
            is_cut_off: self.is_cut_off,
            exit: self.exit,
            leaked: &leaked,
            strict: self.context.test.settings.strict,
            unmeasured: unmeasured.as_deref(),
        };
        let (ending, error) = end.conclude(&transcript);
        let error = error.map(|error| secrets.cut_shortened(&error));
        let warnings = transcript
            .warnings
            .listed()
            .iter()
            .map(|warning| secrets.cut_shortened(&warning.to_string()))
            .chain(unmeasured);
        Execution {
            ending,
            error,
            crossing: self.crossing,
            response,
            events,
            tool_calls: self.tool_calls,
            served: ServedTools::default(),
            dropped_events: transcript.counts.dropped,
            warnings: warnings.collect(),
            last_lines,
            exit: self.exit,
            measures,
            leaked,
            took,
        }
    }

    /// Time that the agent took. One that was stopped took until then, also if it had answered.
    fn took(&self) -> Duration {
        let Times { answered, ended, over } = self.times;
        let is_stopped = self.is_interrupted || self.is_cut_off || self.crossing.is_some();
        // A response that a program wrote before it ended may be read only after its output was closed by others.
        let earliest = [answered, ended].into_iter().flatten().min();
        let moment = if is_stopped { over } else { earliest.or(over) };
        moment.unwrap_or_else(|| self.started.elapsed())
    }

    /// Sentence about constraints of an answered run that could not be checked; our own agents use nothing up.
    fn unmeasured(&self) -> Option<String> {
        let is_own = matches!(self.context.agent.spec, AgentSpec::Nop | AgentSpec::Reference);
        let names = self.supervision.unmeasured();
        if is_own || names.is_empty() || self.conversation.response().is_none() {
            return None;
        }
        let were = if names.len() > 1 { "were" } else { "was" };
        Some(format!("{} {were} not checked: the agent reports no such amounts", names.join(", ")))
    }

    fn measures(&self) -> Measures {
        let metrics = self.conversation.response().and_then(|response| response.as_json().get("metrics"));
        let reports = |name: &str| metrics.and_then(|metrics| metrics.get(name)).is_some();
        let steps = self.supervision.steps();
        let tokens = self.supervision.tokens();
        let cost = self.supervision.cost_usd();
        Measures {
            steps: (steps > 0 || reports("total_steps")).then_some(steps),
            tokens: (tokens > 0 || reports("total_tokens")).then_some(tokens),
            cost_usd: (cost > 0.0 || reports("cost_usd")).then_some(cost),
        }
    }
}

/// Facts about the end of a run besides its messages.
struct End<'e> {
    crossing: Option<&'e Crossing>,
    is_interrupted: bool,
    /// Error of the transport, or of starting the agent.
    failure: Option<&'e str>,
    /// Whether that error is why the agent was stopped.
    is_cut_off: bool,
    exit: Option<Exit>,
    leaked: &'e [String],
    strict: bool,
    /// Constraints that could not be checked.
    unmeasured: Option<&'e str>,
}

impl End<'_> {
    /// The ending of a run and its reason. An agent that emitted a secret fails, whatever else happened to it.
    fn conclude(&self, transcript: &Transcript) -> (Ending, Option<String>) {
        let (ending, reason) = self.without_secrets(transcript);
        if self.leaked.is_empty() || self.is_interrupted {
            return (ending, reason);
        }
        let emission = emission(self.leaked);
        (Ending::Stopped, Some(reason.map_or(emission.clone(), |reason| format!("{emission}; {reason}"))))
    }

    /// The ending, apart from secrets. A crash and a crossed constraint outweigh the response.
    fn without_secrets(&self, transcript: &Transcript) -> (Ending, Option<String>) {
        let End { crossing, is_interrupted, failure, is_cut_off, exit, leaked: _, strict, unmeasured } =
            *self;
        if is_interrupted {
            return (Ending::Error, Some("interrupted".to_owned()));
        }
        if let Some(crossing) = crossing {
            return (Ending::Stopped, Some(format!("{}: {crossing}", crossing.code().as_str())));
        }
        if let Some(limit) = exit.and_then(|exit| exit.limit) {
            return (Ending::Stopped, Some(format!("the agent crossed the limit on {limit}")));
        }
        // An agent that was cut off within a message may well have crashed of that.
        if let Some(problem) = transcript.problems.iter().find(|problem| problem.is_limit()) {
            return (Ending::Error, Some(problem.to_string()));
        }
        let crash = exit.filter(|_| !is_cut_off).and_then(|exit| process::crash(exit.status));
        if let Some(crash) = crash {
            let reason = failure.map_or_else(|| crash.clone(), |failure| format!("{crash}; {failure}"));
            return (Ending::Error, Some(reason));
        }
        // The cause of a missing response is the transport's error, not that it is missing.
        let is_missing =
            |problem: &ConversationProblem| matches!(problem, ConversationProblem::NoResponse { .. });
        let problem = transcript.problems.iter().find(|problem| !is_missing(problem));
        if let Some(problem) = problem {
            return (Ending::Error, Some(problem.to_string()));
        }
        if let Some(failure) = failure {
            return (Ending::Error, Some(failure.to_owned()));
        }
        let Some(response) = &transcript.response else {
            let reason = transcript.problems.first().map(ToString::to_string);
            return (Ending::Error, Some(reason.unwrap_or_else(|| "the agent sent no response".to_owned())));
        };
        let flawed = transcript.events.iter().filter(|event| event.is_flawed()).count();
        if strict && flawed > 0 {
            return (
                Ending::Stopped,
                Some(format!("{flawed} events violate the protocol, and the test is strict")),
            );
        }
        if let Some(unmeasured) = unmeasured.filter(|_| strict) {
            return (Ending::Error, Some(format!("{unmeasured}, and the test is strict")));
        }
        let said = response.as_json().get("error").and_then(Json::as_str).map(str::to_owned);
        let code = response.as_json().get("error_code").and_then(Json::as_str);
        let with_code = |text: String| code.map_or(text.clone(), |code| format!("{code}: {text}"));
        match response.status() {
            Status::Completed => (Ending::Completed, None),
            Status::Partial => (Ending::Partial, said.map(with_code)),
            Status::Failed => (
                Ending::Failed,
                Some(with_code(said.unwrap_or_else(|| "the agent said `failed`".to_owned()))),
            ),
            Status::Timeout => (
                Ending::Timeout,
                Some(with_code(said.unwrap_or_else(|| "the agent said `timeout`".to_owned()))),
            ),
            Status::Cancelled => (
                Ending::Cancelled,
                Some(with_code(said.unwrap_or_else(|| "the agent said `cancelled`".to_owned()))),
            ),
        }
    }
}
