//! Check of an agent against the duties of the protocol's document: requests of many kinds are sent, and what comes back is judged.
//!
//! Every request carries a value in `context.environment` that must come back nowhere, and some descriptions hold a command that must not
//! run; its effect is looked for in the file system and on a URL, not in what the agent says.
//!
//! ```
//! use proctor_runner::agent_check::Duty;
//!
//! assert_eq!(Duty::OtherMajor.name(), "other_major");
//! assert_eq!(Duty::OtherMajor.text(), "refuses requests of another major version");
//! ```

mod canary;
mod duty;
mod judge;
mod reply;
mod requests;
mod send;

use futures_util::future::join_all;
use proctor_core::random::Randomness;
use proctor_sandbox::{Workspace, WorkspaceError};

use crate::agent::{Agent, AgentSpec};
use crate::execute::StartError;
use crate::secrets::Secrets;

use canary::{Canary, Listener};
use reply::Reply;
use requests::{Probe, Probes, SECRET_NAME, token};
use send::Target;

pub use duty::{CheckReport, Duty, DutyResult, Outcome};
pub use send::Around;

/// Requests that are sent at the same time.
const CONCURRENT: usize = 8;

/// A check that cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum CheckError {
    /// The agent does not speak the protocol.
    #[error(
        "a plain agent knows no protocol, so that there is nothing to check; give stdio:COMMAND or a URL"
    )]
    Plain,
    /// The text is no address of an agent that speaks the protocol.
    #[error("there is no agent {}; give stdio:COMMAND, http://…, ws://… or grpc://…", proctor_core::quoted(.0))]
    Unknown(String),
    /// The agent is a part of Proctor.
    #[error("`nop` and `reference` are parts of Proctor; give stdio:COMMAND or a URL")]
    BuiltIn,
    /// The address cannot be used.
    #[error(transparent)]
    Address(#[from] StartError),
    /// A workspace cannot be made.
    #[error(transparent)]
    Workspace(#[from] WorkspaceError),
    /// The canary's URL cannot be served.
    #[error("no port of the loopback interface can be listened on: {0}")]
    Listen(#[from] std::io::Error),
}

/// Refuses a text that is no address, with the addresses that can be checked. Agents that can be run, but not checked, have reasons of their own.
pub fn refuse_unknown(address: &str) -> Result<(), CheckError> {
    const KNOWN: [&str; 8] =
        ["stdio:", "plain:", "http://", "https://", "ws://", "wss://", "grpc://", "grpcs://"];
    let is_known =
        KNOWN.iter().any(|start| address.starts_with(start)) || ["nop", "reference"].contains(&address);
    if is_known { Ok(()) } else { Err(CheckError::Unknown(address.to_owned())) }
}

/// Checks an agent. An agent that does not answer a plain request is not asked any further.
pub async fn check_agent(
    agent: &Agent,
    around: &Around<'_>,
    randomness: &dyn Randomness,
) -> Result<CheckReport, CheckError> {
    let target = match &agent.spec {
        AgentSpec::Process(program) if program.is_plain => return Err(CheckError::Plain),
        AgentSpec::Nop | AgentSpec::Reference => return Err(CheckError::BuiltIn),
        AgentSpec::Process(program) => Target::Program(program),
        AgentSpec::Remote(remote) => Target::remote(remote)?,
    };
    let probes = Probes::new(randomness, around.timeout.as_secs().max(1));
    let secrets = Secrets::new([(SECRET_NAME, probes.secret.as_str())]);
    let check = Check { target, around, probes, secrets, workspace: Workspace::create(&around.scratch)? };
    let (results, last_lines) = check.run().await?;
    Ok(CheckReport { agent: agent.name.clone(), results, last_lines })
}

struct Check<'c> {
    target: Target<'c>,
    around: &'c Around<'c>,
    probes: Probes<'c>,
    secrets: Secrets,
    /// The workspace of all requests but those with a canary: its files say nothing.
    workspace: Workspace,
}

impl Check<'_> {
    /// The results, and the last lines of an agent that does not work at all.
    async fn run(&self) -> Result<(Vec<DutyResult>, Vec<String>), CheckError> {
        let path = self.workspace.workspace().to_string_lossy();
        let plain = self.send(&self.probes.plain(&path, None)).await;
        if plain.response().is_none() {
            let lines = plain.last_lines.iter().map(|line| self.secrets.cut(line).0.into_owned());
            return Ok((self.unanswered(&plain), lines.collect()));
        }
        let mut valid = vec![plain];
        let mut results = Vec::new();
        let mut others = Vec::new();

        let unknown = self.send(&self.probes.unknown_members(&path)).await;
        let minor = self.send(&self.probes.with_version(&path, "1.7", "version 1.7")).await;
        let major = self.send(&self.probes.with_version(&path, "2.0", "version 2.0")).await;
        let is_executed = valid.iter().any(Reply::is_executed);
        let executed = |reply: &Reply| {
            if is_executed {
                judge::executed(reply)
            } else {
                Outcome::NotApplicable("the agent fails a plain request, too".to_owned())
            }
        };
        results.push((Duty::UnknownMembers, executed(&unknown)));
        results.push((Duty::HigherMinor, executed(&minor)));
        results.push((Duty::OtherMajor, judge::outcome(judge::refusal_problem(&major, false))));
        if unknown.response().is_some() {
            valid.push(unknown);
        }
        others.extend([minor, major]);
        for (duty, probes) in [
            (Duty::Malformed, self.probes.malformed(&path)),
            (Duty::Invalid, self.probes.invalid(&path)),
            (Duty::Huge, self.probes.huge(&path)),
        ] {
            let problem = self.refused(&probes, duty == Duty::Huge, &mut others).await;
            results.push((duty, judge::outcome(problem)));
        }
        results.extend(self.server_duties(&path, &mut valid).await);
        results.push((Duty::Canary, self.canary(&mut others).await?));
        for duty in [
            Duty::Answers,
            Duty::Version,
            Duty::TaskId,
            Duty::Status,
            Duty::Artifacts,
            Duty::Metrics,
            Duty::Events,
            Duty::EventOrder,
            Duty::AllowedTools,
        ] {
            results.push((duty, judge::messages(duty, &valid)));
        }
        let exit = if self.target.is_program() {
            judge::messages(Duty::Exit, &valid)
        } else {
            Outcome::NotApplicable("the agent is a server".to_owned())
        };
        results.push((Duty::Exit, exit));
        results.push((Duty::ErrorText, judge::error_text(valid.iter().chain(&others))));
        let leak = valid.iter().chain(&others).find_map(|reply| Some((reply.leaked?, reply.label)));
        let leak =
            leak.map(|(place, label)| format!("the value of {SECRET_NAME} stands {place}, after {label}"));
        results.push((Duty::Secrets, judge::outcome(leak)));
        Ok((self.in_order(results), Vec::new()))
    }

    async fn send(&self, probe: &Probe) -> Reply {
        self.send_in(probe, &self.workspace).await
    }

    async fn send_in(&self, probe: &Probe, workspace: &Workspace) -> Reply {
        self.target.send(probe, self.around, workspace, &self.secrets, &self.probes.secret).await
    }

    /// Sends requests that must be refused until one is not: an agent that hangs does so each time.
    async fn refused(&self, probes: &[Probe], is_huge: bool, replies: &mut Vec<Reply>) -> Option<String> {
        for probe in probes {
            let reply = self.send(probe).await;
            let problem = judge::refusal_problem(&reply, is_huge);
            replies.push(reply);
            if problem.is_some() {
                return problem;
            }
        }
        None
    }

    /// The duties of agents that serve many requests.
    async fn server_duties(&self, path: &str, valid: &mut Vec<Reply>) -> [(Duty, Outcome); 2] {
        if self.target.is_program() {
            let reason = || Outcome::NotApplicable("a program is started for each request".to_owned());
            return [(Duty::Recovers, reason()), (Duty::Concurrent, reason())];
        }
        let after = self.send(&self.probes.plain(path, None)).await;
        let recovers = judge::outcome(after.missing_response());
        let probes: Vec<Probe> = (0..CONCURRENT).map(|_| self.probes.plain(path, None)).collect();
        let replies = join_all(probes.iter().map(|probe| self.send(probe))).await;
        let problem = replies.iter().find_map(|reply| {
            let foreign = match judge::messages(Duty::TaskId, std::slice::from_ref(reply)) {
                Outcome::Failed(reason) => Some(reason),
                _ => None,
            };
            reply.missing_response().or(foreign)
        });
        let concurrent = judge::outcome(problem.map(|reason| format!("{CONCURRENT} requests: {reason}")));
        // Replies that failed here have their line, and would only repeat it in others.
        if matches!((&recovers, &concurrent), (Outcome::Passed, Outcome::Passed)) {
            valid.push(after);
            valid.extend(replies);
        }
        [(Duty::Recovers, recovers), (Duty::Concurrent, concurrent)]
    }

    /// Plants commands in descriptions, each in a workspace of its own, and looks for their effects.
    async fn canary(&self, replies: &mut Vec<Reply>) -> Result<Outcome, CheckError> {
        let name = token(self.probes.randomness);
        // A program in the sandbox may have no network; a server may run under another user, who cannot write the file.
        let listener = if self.target.is_program() { None } else { Some(Listener::start(&name).await?) };
        let mut planted = Vec::new();
        for index in 0..3 {
            let workspace = Workspace::create(&self.around.scratch)?;
            let canary = Canary::new(workspace.workspace(), name.clone());
            let descriptions = canary.descriptions(listener.as_ref());
            let description = descriptions.get(index).map(String::as_str);
            let path = workspace.workspace().to_string_lossy();
            let probe = self.probes.plain(&path, description);
            let probe = Probe { label: "a request with a planted command", ..probe };
            replies.push(self.send_in(&probe, &workspace).await);
            planted.push((canary, workspace));
        }
        // Only now: a server may run a command after it has answered.
        let has_run = planted.iter().any(|(canary, _)| canary.was_run());
        Ok(if has_run {
            Outcome::Failed(
                "it ran a command of the description: the file of the command was made".to_owned(),
            )
        } else if listener.is_some_and(|listener| listener.was_fetched()) {
            Outcome::Failed(
                "it ran a command of the description: the URL of the command was fetched".to_owned(),
            )
        } else {
            Outcome::Passed
        })
    }

    /// The results of an agent that gave no response at all.
    fn unanswered(&self, reply: &Reply) -> Vec<DutyResult> {
        let reason = reply.missing_response().unwrap_or_else(|| "agent sent no response".to_owned());
        let answers = std::iter::once((Duty::Answers, Outcome::Failed(reason)));
        let others = Duty::ALL.into_iter().filter(|duty| *duty != Duty::Answers);
        let others = others.map(|duty| (duty, Outcome::NotTried));
        self.in_order(answers.chain(others).collect())
    }

    /// Results in the order of duties. Reasons repeat what agents said, so secrets are cut.
    fn in_order(&self, mut results: Vec<(Duty, Outcome)>) -> Vec<DutyResult> {
        results.sort_by_key(|(duty, _)| *duty);
        let cut = |reason: String| self.secrets.cut(&reason).0.into_owned();
        let results = results.into_iter().map(|(duty, outcome)| {
            let outcome = match outcome {
                same @ (Outcome::Passed | Outcome::NotTried) => same,
                Outcome::Failed(reason) => Outcome::Failed(cut(reason)),
                Outcome::NotApplicable(reason) => Outcome::NotApplicable(cut(reason)),
            };
            DutyResult { duty, outcome }
        });
        results.collect()
    }
}
