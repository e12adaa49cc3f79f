//! The engine's process and the task that alone reads, writes and ends it: a call can be cancelled at any moment and leaves no partial
//! message, and no signal is sent after the process was reaped, when its id may belong to another one.

use std::io;
use std::process::ExitStatus;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use proctor_net::lines::{Line, Lines};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::value::RawValue;
use tokio::io::AsyncWriteExt as _;
use tokio::process::{Child, ChildStdin, ChildStdout};
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::client::Ending;
use super::error::{ClientError, EngineEnd};
use super::messages::{Answer, EngineError, Incoming, incoming};
use super::notifications::Notifications;
use super::options::EngineBuilder;
use super::tail::Tail;
use crate::pending::PendingCalls;

/// Time for the rest after one of exit, end of output and closed input was seen. They come together, unless a descendant of the engine
/// holds its streams.
const DRAIN: Duration = Duration::from_millis(500);

/// The outcome of a call.
#[derive(Debug)]
pub(super) enum Outcome {
    Result(Box<RawValue>),
    Refused(EngineError),
    Malformed(&'static str),
    TooLong,
    Ended(EngineEnd),
}

impl From<Answer<'_>> for Outcome {
    fn from(answer: Answer<'_>) -> Outcome {
        match answer {
            Answer::Result(result) => Outcome::Result(result.to_owned()),
            Answer::Error(error) => Outcome::Refused(error),
            Answer::Malformed(problem) => Outcome::Malformed(problem),
        }
    }
}

/// State that the client and the process's task share.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) calls: PendingCalls<u64, Vec<u8>, Outcome>,
    /// Cause of the engine's end; set before `calls` is closed.
    pub(super) end: OnceLock<EngineEnd>,
    pub(super) notifications: Notifications,
    pub(super) stderr: Tail,
}

/// A request to end the engine. Without one it is killed when the client is dropped.
#[derive(Debug)]
pub(super) struct Stop {
    /// The end of the grace period.
    pub(super) until: Instant,
    /// Time between `SIGTERM` and `SIGKILL`; none: it is killed at once.
    pub(super) terminate: Option<Duration>,
    pub(super) done: oneshot::Sender<io::Result<(Ending, ExitStatus)>>,
}

/// Handles of a running engine.
#[derive(Debug)]
pub(super) struct Running {
    pub(super) shared: Arc<Shared>,
    pub(super) queue: mpsc::Sender<u64>,
    pub(super) stop: oneshot::Sender<Stop>,
    pub(super) process_id: Option<u32>,
}

/// Starts the engine and its task.
pub(super) fn start(builder: &EngineBuilder) -> Result<Running, ClientError> {
    let failed = |problem: String| ClientError::Start { program: builder.program(), problem };
    let mut child = builder.command().spawn().map_err(|error| failed(error.to_string()))?;
    let (Some(stdin), Some(stdout), Some(stderr)) =
        (child.stdin.take(), child.stdout.take(), child.stderr.take())
    else {
        return Err(failed("it has no standard streams".to_owned()));
    };
    let options = &builder.options;
    let shared = Arc::new(Shared {
        calls: PendingCalls::default(),
        end: OnceLock::new(),
        notifications: Notifications::new(options.max_notifications),
        stderr: Tail::new(options.max_stderr_bytes),
    });
    let (drained, gone) = (CancellationToken::new(), CancellationToken::new());
    tokio::spawn({
        let (shared, drained, gone) = (Arc::clone(&shared), drained.clone(), gone.clone());
        async move {
            let _drained = drained.drop_guard();
            // A descendant of the engine may hold the stream for ever.
            gone.run_until_cancelled(shared.stderr.drain(stderr)).await;
        }
    });
    let (queue, serials) = mpsc::channel(options.max_in_flight.clamp(1, 1 << 16));
    let (stop, stopped) = oneshot::channel();
    let process_id = child.id();
    let lines = Lines::new(stdout, options.max_answer_bytes);
    let process = Process { child, lines, drained, shared: Arc::clone(&shared), _gone: gone.drop_guard() };
    tokio::spawn(process.run(stdin, serials, stopped));
    Ok(Running { shared, queue, stop, process_id })
}

struct Process {
    child: Child,
    lines: Lines<ChildStdout>,
    drained: CancellationToken,
    shared: Arc<Shared>,
    _gone: DropGuard,
}

impl Process {
    async fn run(
        mut self,
        mut stdin: ChildStdin,
        mut serials: mpsc::Receiver<u64>,
        mut stopped: oneshot::Receiver<Stop>,
    ) {
        let asked = tokio::select! {
            stop = &mut stopped => Some(stop.ok()),
            () = self.exchange(&mut stdin, &mut serials) => None,
        };
        let stop = if let Some(stop) = asked {
            drop(stdin);
            stop
        } else {
            self.close().await;
            // After closing: callers that wait for the queue must find their outcome settled.
            drop((stdin, serials));
            tokio::select! {
                stop = &mut stopped => stop.ok(),
                // Reaped as soon as possible, so that no zombie remains.
                _ = self.child.wait() => stopped.await.ok(),
            }
        };
        match stop {
            Some(Stop { until, terminate, done }) => {
                let _ = done.send(self.end(until, terminate).await);
            }
            None => {
                let _ = self.child.kill().await;
            }
        }
    }

    /// Exchanges messages until the engine has exited or closed a stream.
    async fn exchange(&mut self, stdin: &mut ChildStdin, serials: &mut mpsc::Receiver<u64>) {
        let Process { child, lines, shared, .. } = self;
        tokio::select! {
            () = read(lines, shared) => {}
            () = write(stdin, serials, shared) => {}
            _ = child.wait() => {}
        }
        let rest = async { tokio::join!(read(lines, shared), child.wait()) };
        let _ = tokio::time::timeout(DRAIN, rest).await;
    }

    /// Settles all calls with the engine's end.
    async fn close(&mut self) {
        let _ = tokio::time::timeout(DRAIN, self.drained.cancelled()).await;
        let status = self.child.try_wait().ok().flatten();
        let end = EngineEnd { status, stderr: self.shared.stderr.text().into() };
        let end = self.shared.end.get_or_init(|| end);
        self.shared.calls.close(|_| Outcome::Ended(end.clone()));
        self.shared.notifications.close();
    }

    /// Ends the engine: waits for its exit, then sends `SIGTERM`, then `SIGKILL`.
    async fn end(&mut self, until: Instant, terminate: Option<Duration>) -> io::Result<(Ending, ExitStatus)> {
        if let Some(status) = self.exited(until).await? {
            return Ok((Ending::Exited, status));
        }
        if let Some(patience) = terminate
            && let Some(pid) = self.child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw)
        {
            // Not reaped yet, so the id is still its own.
            let _ = kill_process(pid, Signal::TERM);
            if let Some(status) = self.exited(after(patience)).await? {
                return Ok((Ending::Terminated, status));
            }
        }
        self.child.start_kill()?;
        Ok((Ending::Killed, self.child.wait().await?))
    }

    /// Waits for the engine to exit. Its output is read until then, so that a full pipe does not stop it.
    async fn exited(&mut self, until: Instant) -> io::Result<Option<ExitStatus>> {
        let Process { child, lines, shared, .. } = self;
        let exit = async {
            tokio::select! {
                biased;
                status = child.wait() => return status,
                () = read(lines, shared) => {}
            }
            child.wait().await
        };
        tokio::time::timeout_at(until, exit).await.ok().transpose()
    }
}

/// The deadline after so much time, bounded to what the clock can hold.
pub(super) fn after(time: Duration) -> Instant {
    const FAR: Duration = Duration::from_secs(30 * 365 * 24 * 3600);
    Instant::now() + time.min(FAR)
}

/// Reads until the end of the output. Cancelling loses nothing.
async fn read(lines: &mut Lines<ChildStdout>, shared: &Shared) {
    while let Ok(Some(line)) = lines.next().await {
        let Line::Text(text) = line else {
            shared.notifications.count(|counts| &mut counts.too_long);
            shared.calls.answer_only_call(|| Outcome::TooLong);
            continue;
        };
        match incoming(&text) {
            Incoming::Answer(id, answer) => {
                if shared.calls.answer(&id, || answer.into()) {
                    shared.notifications.count(|counts| &mut counts.answers);
                } else {
                    shared.notifications.count(|counts| &mut counts.unknown_ids);
                }
            }
            Incoming::Notification { method, params } => shared.notifications.notify(method, params),
            Incoming::Unroutable => shared.notifications.count(|counts| &mut counts.unroutable),
            Incoming::Unreadable => shared.notifications.count(|counts| &mut counts.unreadable),
        }
    }
}

/// Writes whole requests until the input is closed.
async fn write(stdin: &mut ChildStdin, serials: &mut mpsc::Receiver<u64>, shared: &Shared) {
    while let Some(serial) = serials.recv().await {
        let Some(line) = shared.calls.start(serial) else { continue };
        if stdin.write_all(&line).await.is_err() || stdin.flush().await.is_err() {
            return;
        }
        shared.calls.written(serial);
    }
}
