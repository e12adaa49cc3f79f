//! Agents that prompt tasks are handed to: addresses as `proctor test --agent` takes them.
//!
//! An agent that is a program is started for each prompt, in the working directory, with the operational variables of this process
//! only, and everything it started is ended with the run. Agents behind an address are somebody else's processes.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use proctor_clients::atp::client::stdio;
use proctor_clients::atp::client::{AddressError, AgentClient, ClientOptions, Exchange, ExecuteError, Item};
use proctor_core::json::Json;
use proctor_flow::run::{AgentAnswer, AgentFailure, AgentRequest, AgentRuntime, BoxFuture};
use proctor_runner::agent::{self, AgentError as AddressProblem, AgentSpec, Configured, ProcessSpec};
use proctor_runner::execute::protocol_pipes;
use proctor_sandbox::wait::{self, Pipes};
use proctor_sandbox::{Error as SandboxError, Exit, Features, Limits, Mode, Sandbox, Spec, Status as Ending};
use proctor_wire::atp::{Artifact, Conversation, Request, Response, Status};
use rust_decimal::Decimal;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

/// Bytes of output that an agent may give.
const MAX_OUTPUT: u64 = 10 << 20;
/// Time between TERM and KILL.
const GRACE: Duration = Duration::from_secs(5);

/// Characters of a program's last line of standard error in an error message.
const MAX_SAID: usize = 300;

/// Agents by identifier.
#[derive(Debug)]
pub struct ConfiguredAgents {
    agents: BTreeMap<String, AgentSpec>,
    directory: PathBuf,
    variables: Vec<(OsString, OsString)>,
    sandbox: Sandbox,
}

/// Error of an agent's configuration.
#[derive(Debug, thiserror::Error)]
#[error("agent `{id}`: {source}")]
pub struct AgentError {
    /// Identifier of the agent.
    pub id: String,
    /// Problem of its address.
    pub source: AgentProblem,
}

/// Problem of an agent's address.
#[derive(Debug, thiserror::Error)]
pub enum AgentProblem {
    /// The address cannot be read.
    #[error(transparent)]
    Resolve(#[from] AddressProblem),
    /// An agent of tests, which does no work.
    #[error("`nop` and `reference` are agents of tests: name a program or an address")]
    OnlyForTests,
}

/// Error of one exchange with an agent.
#[derive(Debug, thiserror::Error)]
enum TalkError {
    #[error(transparent)]
    Address(#[from] AddressError),
    #[error(transparent)]
    Exchange(#[from] ExecuteError),
    #[error("its program cannot be started: {0}")]
    Start(#[from] SandboxError),
    #[error("its output cannot be read: {}", proctor_system::describe(.0))]
    Read(#[from] std::io::Error),
    #[error("it wrote more than {MAX_OUTPUT} bytes")]
    TooLong,
    #[error("it exited with status {code}{}{said}", if said.is_empty() { "" } else { ": " })]
    Exited { code: i32, said: String },
    #[error("it was killed by signal {0}")]
    Killed(i32),
    #[error("its end is unknown: its supervisor was killed")]
    Lost,
    #[error("it gave no valid response: {0}")]
    Response(String),
}

impl ConfiguredAgents {
    /// Reads the addresses. `scratch` is a folder for the supervisor of programs.
    pub fn new<'a>(
        addresses: impl IntoIterator<Item = (&'a str, &'a str)>,
        directory: &Path,
        variables: Vec<(OsString, OsString)>,
        scratch: &Path,
    ) -> Result<ConfiguredAgents, AgentError> {
        let is_file = |path: &Path| path.is_file();
        let is_program = |_: &str| true;
        let surroundings = agent::Surroundings {
            directory,
            is_file: &is_file,
            is_program: &is_program,
            configured: Configured::default(),
        };
        let mut agents = BTreeMap::new();
        for (id, address) in addresses {
            let failed = |source| AgentError { id: id.to_owned(), source };
            let found = agent::resolve(address, &[], &surroundings).map_err(|error| failed(error.into()))?;
            if matches!(found.spec, AgentSpec::Nop | AgentSpec::Reference) {
                return Err(failed(AgentProblem::OnlyForTests));
            }
            agents.insert(id.to_owned(), found.spec);
        }
        let sandbox = Sandbox::deferred(Mode::Off, Features::all(), scratch);
        Ok(ConfiguredAgents { agents, directory: directory.to_owned(), variables, sandbox })
    }

    async fn talk(&self, request: AgentRequest<'_>) -> Result<AgentAnswer, TalkError> {
        let message = message(&request);
        match self.agents.get(request.agent_id) {
            Some(AgentSpec::Remote(remote)) => {
                let client = AgentClient::new(&remote.url, &ClientOptions::default())?;
                converse(client.execute(message.to_string().into()), request.execution_id).await
            }
            Some(AgentSpec::Process(program)) => self.talk_to_program(program, &request, &message).await,
            _ => Err(TalkError::Response("it is not configured".to_owned())),
        }
    }
}

impl ConfiguredAgents {
    async fn talk_to_program(
        &self,
        program: &ProcessSpec,
        request: &AgentRequest<'_>,
        message: &Json,
    ) -> Result<AgentAnswer, TalkError> {
        let (first, rest) = match program.words.split_first() {
            Some((first, rest)) => (first.clone(), rest.to_vec()),
            None => (String::new(), Vec::new()),
        };
        let limits = Limits { wall_time: request.timeout.saturating_add(GRACE), ..Limits::default() };
        let directory = program.working_dir.clone().unwrap_or_else(|| self.directory.clone());
        let spec = Spec::new(first, directory)
            .arguments(rest)
            .inherit(self.variables.iter().cloned())
            .limits(limits)
            .grace(GRACE);
        let mut process = self.sandbox.spawn(spec)?;
        let pipes = Pipes::take(&mut process)?;
        // Dropping the process ends everything that it started, also when this future is dropped.
        let answer = if program.is_plain {
            plain(pipes, request.prompt).await?
        } else {
            let exchange = stdio::execute(protocol_pipes(pipes), message.to_string().into());
            converse(exchange, request.execution_id).await?
        };
        let (has_ended, exit) = wait::finish(process, GRACE, GRACE).await?;
        // A program that goes on after its answer is ended by us; one that crashes has not done its work.
        if has_ended { after_exit(answer, exit) } else { Ok(answer) }
    }
}

/// The answer of a program that ended by itself: an answer only if it ended well.
fn after_exit(answer: AgentAnswer, exit: Exit) -> Result<AgentAnswer, TalkError> {
    match exit.status {
        Ending::Exited(0) => Ok(answer),
        Ending::Exited(code) => Err(TalkError::Exited { code, said: last_line(&answer.error) }),
        Ending::Signaled(signal) => Err(TalkError::Killed(signal)),
        Ending::Lost => Err(TalkError::Lost),
    }
}

/// The last line of what a program said on standard error, cut to a length that fits into a message.
fn last_line(text: &str) -> String {
    let last = text.lines().map(str::trim).rfind(|line| !line.is_empty()).unwrap_or_default();
    last.chars().take(MAX_SAID).collect()
}

impl AgentRuntime for ConfiguredAgents {
    fn has(&self, agent_id: &str) -> bool {
        self.agents.contains_key(agent_id)
    }

    fn run<'a>(&'a self, request: AgentRequest<'a>) -> BoxFuture<'a, Result<AgentAnswer, AgentFailure>> {
        Box::pin(async move {
            let failed = |error: TalkError| AgentFailure {
                agent: request.agent_id.to_owned(),
                source: Box::new(error),
            };
            self.talk(request).await.map_err(failed)
        })
    }
}

/// The prompt as a request of the Agent Test Protocol; hints of the task go along as metadata.
fn message(request: &AgentRequest<'_>) -> Json {
    let mut metadata = Json::object().with("execution_id", request.execution_id);
    for name in ["intent", "model_policy", "session", "context", "output"] {
        if let Some(hint) = request.task.get(name).filter(|hint| !hint.is_null()) {
            metadata.push(name, hint.clone());
        }
    }
    let built = Request::new(&task_id(request.execution_id), request.prompt).with_metadata(metadata);
    let constraints = Json::object().with("timeout_seconds", request.timeout.as_secs().max(1));
    let mut json = built.into_json();
    json.push("constraints", constraints);
    json
}

/// The execution's identifier with dashes, as the protocol wants it.
fn task_id(execution: &str) -> String {
    let part = |from: usize, to: usize| execution.get(from..to).unwrap_or_default();
    format!("{}-{}-{}-{}-{}", part(0, 8), part(8, 12), part(12, 16), part(16, 20), part(20, 32))
}

async fn converse(mut exchange: Exchange, execution: &str) -> Result<AgentAnswer, TalkError> {
    let mut conversation = Conversation::new(&task_id(execution));
    loop {
        match exchange.next().await? {
            Item::End => break,
            item => item.feed(&mut conversation),
        }
    }
    let transcript = conversation.finish();
    match transcript.response {
        Some(response) => Ok(answer(&response)),
        None => {
            let problem = transcript.problems.first().map(ToString::to_string);
            Err(TalkError::Response(problem.unwrap_or_else(|| "nothing came".to_owned())))
        }
    }
}

fn answer(response: &Response) -> AgentAnswer {
    let texts: Vec<String> = response
        .artifacts()
        .filter_map(|artifact| match artifact {
            Artifact::File(file) => file.content.map(str::to_owned),
            Artifact::Structured(structured) => Some(structured.data.to_string()),
            Artifact::Reference(_) => None,
        })
        .collect();
    let metrics = response.metrics();
    AgentAnswer {
        is_ok: response.status() == Status::Completed,
        output: texts.join("\n"),
        error: response.error().unwrap_or_default().to_owned(),
        tokens: metrics.total_tokens,
        cost_usd: metrics.cost_usd.and_then(|cost| {
            Decimal::from_scientific(cost.literal()).or_else(|_| Decimal::from_str_exact(cost.literal())).ok()
        }),
    }
}

/// A program without protocol: the prompt on standard input, its output is the answer.
async fn plain(Pipes { stdin, stdout, stderr }: Pipes, prompt: &str) -> Result<AgentAnswer, TalkError> {
    let (mut output, mut errors) = (Vec::new(), Vec::new());
    let writing = async {
        // A program that does not read its input may still be right.
        if let Some(mut stdin) = stdin {
            let _ = stdin.write_all(prompt.as_bytes()).await;
        }
        Ok::<(), std::io::Error>(())
    };
    let (mut stdout, mut stderr) = (stdout.take(MAX_OUTPUT + 1), stderr.take(MAX_OUTPUT + 1));
    tokio::try_join!(writing, stdout.read_to_end(&mut output), stderr.read_to_end(&mut errors))?;
    if output.len() as u64 > MAX_OUTPUT || errors.len() as u64 > MAX_OUTPUT {
        return Err(TalkError::TooLong);
    }
    Ok(AgentAnswer {
        is_ok: true,
        output: String::from_utf8_lossy(&output).into_owned(),
        error: String::from_utf8_lossy(&errors).into_owned(),
        tokens: None,
        cost_usd: None,
    })
}
