//! The task itself: its credentials, its process or agent, and its verify command.

use std::time::{Duration, Instant};

use proctor_core::json::Json;
use proctor_proof::secret::Secret;
use proctor_sandbox::{Sandbox, Spec, Stream};
use proctor_wire::agentcli::error::{Code, Failure};

use super::{Place, Run};
use crate::run::action::spending_limit;
use crate::run::capture::{Captured, Output, OutputLimits};
use crate::run::contract::Confinement;
use crate::run::describe::timeout_of;
use crate::run::environment::environment;
use crate::run::format::Format;
use crate::run::parts::{AgentRuntime, Presented, ResolvedIdentity};
use crate::run::process::{self, Ended, Job};
use crate::run::read::{integer, member, shell, text, texts};
use crate::run::result::Ran;
use crate::run::{Cancel, agent};

/// Time limit of a verify command that names none.
const VERIFY_TIMEOUT_S: u64 = 30;
/// Longest output of a verify command in results, in bytes.
const VERIFY_OUTPUT: usize = 2000;

impl<'a> Run<'a> {
    pub(super) async fn present(
        &mut self,
        identity: Option<&dyn ResolvedIdentity>,
    ) -> Result<Presented, Failure> {
        let Some(identity) = identity else { return Ok(Presented::default()) };
        let presented = identity.present(self.task, &self.runner.folders.presented).await?;
        let has_input = shell(&self.task.task).is_some_and(|shell| member(shell, "stdin").is_some());
        if presented.stdin.is_some() && has_input {
            if let Some(cleanup) = presented.cleanup {
                cleanup.clean(false);
            }
            let message = "the task has input of its own, and a credential is bound to standard input";
            return Err(Failure::new(Code::PresentationStdinConflict, message));
        }
        // Presented values may have another format than the credentials.
        let mut secrets = identity.secrets();
        secrets.extend(presented.values.iter().cloned());
        self.mask(&secrets)?;
        Ok(presented)
    }

    /// Runs the task and its verify command.
    pub(super) async fn work(
        &mut self,
        place: Place<'a>,
        confinement: &Confinement,
        presented: Presented,
        cancel: &mut Cancel,
    ) -> Result<(Ran, Json), Failure> {
        let cleanup = presented.cleanup;
        let presented = Presented { cleanup: None, ..presented };
        let worked = self.work_and_verify(&place, confinement, presented, cancel).await;
        if let Some(cleanup) = cleanup {
            cleanup.clean(worked.as_ref().is_ok_and(|(ran, _)| ran.is_ok));
        }
        worked
    }

    async fn work_and_verify(
        &self,
        place: &Place<'_>,
        confinement: &Confinement,
        presented: Presented,
        cancel: &mut Cancel,
    ) -> Result<(Ran, Json), Failure> {
        let ran = match place.agent {
            Some(runtime) => self.work_at_agent(runtime, cancel).await?,
            None => self.work_here(&place.sandbox, confinement, presented, cancel).await?,
        };
        let verify = match &self.task.verify {
            Some(verify) if ran.is_ok => self.verify(&place.sandbox, confinement, verify, cancel).await?,
            _ => Json::Null,
        };
        Ok((ran, verify))
    }

    /// Takes a run for a failure whose output or cost is not what the manifest promises.
    fn judged(&self, ran: Ran, stdout: &Captured) -> Ran {
        if !ran.is_ok {
            return ran;
        }
        let format = Format::of(&self.task.task).map_or(Ok(()), |format| format.check(stdout));
        let violation = match (format, spending_limit(&self.task.contract), ran.cost_usd) {
            (Err(error), _, _) => Some(error.to_string()),
            (Ok(()), Some(limit), Some(cost)) if cost > limit => {
                Some(format!("the agent reports a cost of {cost} USD, and `max_cost_usd` is {limit}"))
            }
            _ => None,
        };
        Ran { is_ok: violation.is_none(), violation, ..ran }
    }

    async fn work_at_agent(&self, runtime: &dyn AgentRuntime, cancel: &mut Cancel) -> Result<Ran, Failure> {
        let timeout = timeout_of(self.task, self.options);
        let answered = agent::run(runtime, self.task, &self.key.session, timeout, &self.masker, cancel).await;
        let limits = OutputLimits::of(&self.task.task);
        let ran = Ran {
            is_ok: answered.is_ok,
            is_timed_out: answered.is_timed_out,
            is_cancelled: answered.is_cancelled,
            duration_ms: milliseconds(answered.took),
            stdout: self.keep(&answered.stdout, limits, "stdout")?,
            stderr: self.keep(&answered.stderr, limits, "stderr")?,
            text: answered.stdout.text(),
            tokens: answered.answer.tokens,
            cost_usd: answered.answer.cost_usd,
            ..Ran::default()
        };
        Ok(self.judged(ran, &answered.stdout))
    }

    async fn work_here(
        &self,
        sandbox: &Sandbox,
        confinement: &Confinement,
        presented: Presented,
        cancel: &mut Cancel,
    ) -> Result<Ran, Failure> {
        let (runner, task) = (self.runner, self.task);
        let shell = shell(&task.task);
        let program = shell.and_then(|shell| text(shell, "program")).unwrap_or_default();
        let arguments = shell.map(|shell| texts(shell, "args")).unwrap_or_default();
        let own = shell.and_then(|shell| shell.get("stdin")).and_then(Json::as_str).map(Secret::new);
        let stdin = presented.stdin.or(own);
        let spec = Spec::new(program, &confinement.directory).arguments(arguments);
        let mut spec = confinement.apply(spec, runner.state(), presented.folder.as_deref());
        for (name, value) in environment(&runner.parts.variables, shell) {
            spec = spec.environment(name, value);
        }
        for (name, value) in &presented.variables {
            spec = spec.environment(name, value.expose());
        }
        let begun = Instant::now();
        let ended = self.process(sandbox, spec, stdin, timeout_of(task, self.options), cancel).await?;
        let limits = OutputLimits::of(&task.task);
        let ran = Ran {
            is_ok: ended.is_ok(),
            exit_code: ended.exit_code,
            signal: ended.signal,
            is_timed_out: ended.is_timed_out,
            is_cancelled: ended.is_cancelled,
            left_behind: ended.left_behind,
            duration_ms: milliseconds(begun.elapsed()),
            stdout: self.keep(&ended.stdout, limits, "stdout")?,
            stderr: self.keep(&ended.stderr, limits, "stderr")?,
            text: ended.stdout.text(),
            ..Ran::default()
        };
        Ok(self.judged(ran, &ended.stdout))
    }

    /// Runs the verify command with the task's environment, without its credentials.
    async fn verify(
        &self,
        sandbox: &Sandbox,
        confinement: &Confinement,
        verify: &Json,
        cancel: &mut Cancel,
    ) -> Result<Json, Failure> {
        let line = text(verify, "shell").unwrap_or_default();
        let seconds = integer(verify, "timeout_seconds").unwrap_or(VERIFY_TIMEOUT_S);
        let spec = Spec::new("sh", &confinement.directory).arguments(["-c", line]);
        let mut spec = confinement.apply(spec, self.runner.state(), None);
        for (name, value) in environment(&self.runner.parts.variables, shell(&self.task.task)) {
            spec = spec.environment(name, value);
        }
        let ended = self.process(sandbox, spec, None, Duration::from_secs(seconds), cancel).await?;
        let shown = |captured: &Captured| {
            let text = captured.text();
            text.get(..text.floor_char_boundary(VERIFY_OUTPUT)).unwrap_or_default().to_owned()
        };
        Ok(Json::object()
            .with("ok", ended.is_ok())
            .with("exit_code", ended.exit_code.map(i64::from))
            .with("timed_out", ended.is_timed_out)
            .with("on_failure", text(verify, "on_failure").unwrap_or("error"))
            .with("stdout", shown(&ended.stdout))
            .with("stderr", shown(&ended.stderr)))
    }

    async fn process(
        &self,
        sandbox: &Sandbox,
        spec: Spec,
        stdin: Option<Secret>,
        timeout: Duration,
        cancel: &mut Cancel,
    ) -> Result<Ended, Failure> {
        let spec = if stdin.is_some() { spec } else { spec.stdin(Stream::Null) };
        let job = Job { sandbox, spec, stdin, timeout, masker: &self.masker };
        process::run(job, cancel).await.map_err(|error| not_started(&error))
    }

    fn keep(&self, captured: &Captured, limits: OutputLimits, stream: &str) -> Result<Output, Failure> {
        let file = self.runner.folders.output.join(format!("{}.{stream}", self.key.session));
        captured.keep(limits, &file).map_err(|error| {
            let problem = proctor_system::describe(&error);
            Failure::new(Code::InternalError, format!("the output could not be stored: {problem}"))
        })
    }
}

fn not_started(error: &proctor_sandbox::Error) -> Failure {
    use proctor_sandbox::Error;

    let code = match error {
        Error::ProgramNotFound { .. } | Error::InvalidSpec { .. } => Code::InvalidArgument,
        Error::Path { .. } => Code::SandboxPathInvalid,
        Error::Missing(_) | Error::Setup { .. } | Error::SupervisorLost => Code::SandboxUnavailable,
        Error::System { .. } => Code::InternalError,
    };
    Failure::new(code, format!("the process could not be run: {error}"))
}

fn milliseconds(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
