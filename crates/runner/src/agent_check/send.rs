//! One request to the agent, on its transport.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use proctor_clients::atp::client::stdio;
use proctor_clients::atp::client::{AgentClient, ClientOptions, Exchange, ExecuteError, Headers, Item};
use proctor_sandbox::wait::{self, Pipes};
use proctor_sandbox::{Limits, Network, Sandbox, Spec, Workspace};
use proctor_wire::atp::Conversation;
use tokio::time::Instant;

use super::reply::{Failure, Reply};
use super::requests::{Probe, SECRET_NAME};
use crate::agent::{ProcessSpec, RemoteSpec};
use crate::execute::{StartError, protocol_pipes};
use crate::secrets::Secrets;

/// Time between the end of a program's output and its own end, and between TERM and KILL.
const GRACE: Duration = Duration::from_secs(2);

/// Time in which output is still read after the end of a program: processes that it started may hold it open.
const DRAIN: Duration = Duration::from_secs(1);

/// Time beyond a request's limit after which the sandbox ends a program by itself.
const MARGIN: Duration = Duration::from_secs(30);

/// Bytes that are read for one request. A plain task needs a few thousand, the longest message may have 16 MiB; replies are kept until the
/// end of the check, so that more would let a flood fill the memory.
const MAX_REPLY: usize = 32 * 1024 * 1024;

/// Surroundings of a check.
pub struct Around<'a> {
    /// The sandbox that programs run in.
    pub sandbox: &'a Sandbox,
    /// Folder that workspaces are made in.
    pub scratch: PathBuf,
    /// Paths that the agent must not reach.
    pub hidden: Vec<PathBuf>,
    /// Variables of Proctor's own environment.
    pub variables: Vec<(OsString, OsString)>,
    /// Whether programs may use the network.
    pub network: bool,
    /// Time limit of each request.
    pub timeout: Duration,
}

/// The agent, ready for requests.
pub(super) enum Target<'t> {
    Program(&'t ProcessSpec),
    Remote(Box<AgentClient>),
}

impl Target<'_> {
    pub(super) fn remote(spec: &RemoteSpec) -> Result<Target<'static>, StartError> {
        let mut headers = Headers::default();
        for (name, value) in &spec.headers {
            headers = headers.with(name, value.expose())?;
        }
        let options = ClientOptions { is_exact: spec.is_exact, headers, ..ClientOptions::default() };
        Ok(Target::Remote(Box::new(AgentClient::new(&spec.url, &options)?)))
    }

    pub(super) fn is_program(&self) -> bool {
        matches!(self, Target::Program(_))
    }

    /// Sends a request and reads until the exchange ends or its time is over. Never fails: the reply says what went wrong.
    pub(super) async fn send(
        &self,
        probe: &Probe,
        around: &Around<'_>,
        workspace: &Workspace,
        secrets: &Secrets,
        secret: &str,
    ) -> Reply {
        let mut reply = Reply { label: probe.label, task_id: probe.task_id.clone(), ..Reply::default() };
        let outcome = match self {
            Target::Program(program) => {
                let spec = specification(program, around, workspace, secret);
                run_program(spec, probe, around, secrets, &mut reply).await
            }
            Target::Remote(client) => {
                let mut exchange = client.execute(probe.text.clone().into());
                converse(&mut exchange, probe, around.timeout, secrets, std::future::pending(), &mut reply)
                    .await;
                Ok(())
            }
        };
        if let Err(error) = outcome {
            reply.failure = Some(error.into());
        }
        let said = reply.failure.as_ref().map(ToString::to_string).unwrap_or_default();
        reply.look_in(&said, "in an answer that refuses a request", secrets);
        if let Some(Failure::Exchange(ExecuteError::Status { body, .. })) = &reply.failure {
            let body = String::from_utf8_lossy(body).into_owned();
            reply.look_in(&body, "in an answer that refuses a request", secrets);
        }
        reply
    }
}

async fn run_program(
    spec: Spec,
    probe: &Probe,
    around: &Around<'_>,
    secrets: &Secrets,
    reply: &mut Reply,
) -> Result<(), StartError> {
    let mut process = around.sandbox.spawn(spec)?;
    let pipes = protocol_pipes(Pipes::take(&mut process)?);
    let mut exchange = stdio::execute(pipes, probe.text.clone().into());
    let ended = wait::notice(&process)?;
    converse(&mut exchange, probe, around.timeout, secrets, ended, reply).await;
    let patience = if matches!(reply.failure, Some(Failure::TimedOut(_))) { Duration::ZERO } else { GRACE };
    let end = wait::finish(process, patience, GRACE).await.ok();
    let exit = end.and_then(|(has_ended, exit)| has_ended.then_some(exit));
    reply.status = exit.map(|exit| exit.status);
    reply.lingered = exit.is_none() && patience > Duration::ZERO;
    Ok(())
}

/// Reads the exchange into the reply.
async fn converse(
    exchange: &mut Exchange,
    probe: &Probe,
    timeout: Duration,
    secrets: &Secrets,
    ended: impl Future<Output = ()>,
    reply: &mut Reply,
) {
    let mut conversation = Conversation::new(&probe.task_id);
    let mut until = Instant::now() + timeout;
    let mut is_draining = false;
    let mut read = 0_usize;
    tokio::pin!(ended);
    loop {
        tokio::select! {
            biased;
            item = exchange.next() => match item {
                Ok(Item::End) => break,
                Ok(item) => {
                    reply.look_for_secrets(&item, secrets);
                    item.feed(&mut conversation);
                    read = read.saturating_add(length(&item));
                    if read > MAX_REPLY {
                        reply.failure = Some(Failure::TooMuch);
                        break;
                    }
                }
                Err(error) => {
                    reply.failure.get_or_insert(error.into());
                    break;
                }
            },
            () = &mut ended, if !is_draining => {
                is_draining = true;
                until = until.min(Instant::now() + DRAIN);
            }
            () = tokio::time::sleep_until(until) => {
                if !is_draining {
                    reply.failure = Some(Failure::TimedOut(timeout));
                }
                break;
            }
        }
    }
    reply.last_lines = exchange.last_lines();
    reply.messages = conversation.finish();
}

fn length(item: &Item) -> usize {
    match item {
        Item::Message(message) => message.text.len(),
        Item::Line(line) => line.len(),
        Item::End => 0,
    }
}

fn specification(program: &ProcessSpec, around: &Around<'_>, workspace: &Workspace, secret: &str) -> Spec {
    let directory = program.working_dir.clone().unwrap_or_else(|| workspace.workspace().to_owned());
    let (first, rest) = match program.words.split_first() {
        Some((first, rest)) => (first.clone(), rest.to_vec()),
        None => (String::new(), Vec::new()),
    };
    let limits = Limits { wall_time: around.timeout.saturating_add(MARGIN), ..Limits::default() };
    let mut spec = Spec::new(first, directory)
        .arguments(rest)
        .folders(workspace)
        .environment(SECRET_NAME, secret)
        .hidden(around.hidden.iter().cloned())
        .network(if around.network { Network::Host } else { Network::None })
        .limits(limits);
    for (name, value) in &program.environment {
        spec = spec.environment(name, value.expose());
    }
    for name in &program.inherited {
        let value = around.variables.iter().find(|(known, _)| *known == OsString::from(name));
        if let Some((_, value)) = value {
            spec = spec.environment(name, value);
        }
    }
    spec.inherit(around.variables.iter().cloned())
}
