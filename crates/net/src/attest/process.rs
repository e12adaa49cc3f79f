//! The engine's process and the task that alone reads, writes and ends it: a call can be cancelled at any moment, and no message is
//! ever torn by that; and a signal can never hit another process, because only who has not yet collected this one sends it.

use std::io;
use std::process::ExitStatus;
use std::sync::Arc;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use tokio::io::AsyncWriteExt as _;
use tokio::process::{Child, ChildStdin, ChildStdout};
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::client::Ending;
use super::error::{ClientError, EngineEnd};
use super::inbox::Inbox;
use super::messages::{Incoming, incoming};
use super::options::EngineBuilder;
use super::table::Table;
use super::tail::Tail;
use crate::lines::{Line, Lines};

/// How long the rest is waited for when one of exit, end of output and refusal of input has come. They come together, unless a
/// descendant of the engine holds its streams.
const LAST_WORDS: Duration = Duration::from_millis(500);

/// What the client and the process's task share.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) table: Table,
    pub(super) inbox: Inbox,
    pub(super) stderr: Tail,
}

/// How to end the engine. Without one it is killed when the client is dropped.
#[derive(Debug)]
pub(super) struct Goodbye {
    /// When patience ends.
    pub(super) until: Instant,
    /// How long the engine has after the signal to terminate; none: it is killed at once.
    pub(super) terminate: Option<Duration>,
    pub(super) done: oneshot::Sender<io::Result<(Ending, ExitStatus)>>,
}

/// A running engine, for its client.
#[derive(Debug)]
pub(super) struct Running {
    pub(super) shared: Arc<Shared>,
    pub(super) queue: mpsc::Sender<u64>,
    pub(super) goodbye: oneshot::Sender<Goodbye>,
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
        table: Table::default(),
        inbox: Inbox::new(options.max_notifications),
        stderr: Tail::new(options.max_stderr_bytes),
    });
    let (drained, stop) = (CancellationToken::new(), CancellationToken::new());
    tokio::spawn({
        let (shared, drained, stop) = (Arc::clone(&shared), drained.clone(), stop.clone());
        async move {
            let _drained = drained.drop_guard();
            // A descendant of the engine may hold the stream for ever.
            stop.run_until_cancelled(shared.stderr.drain(stderr)).await;
        }
    });
    let (queue, ids) = mpsc::channel(options.max_in_flight.clamp(1, 1 << 16));
    let (goodbye, farewell) = oneshot::channel();
    let process_id = child.id();
    let lines = Lines::new(stdout, options.max_answer_bytes);
    let process = Process { child, lines, drained, shared: Arc::clone(&shared), _stop: stop.drop_guard() };
    tokio::spawn(process.run(stdin, ids, farewell));
    Ok(Running { shared, queue, goodbye, process_id })
}

struct Process {
    child: Child,
    lines: Lines<ChildStdout>,
    drained: CancellationToken,
    shared: Arc<Shared>,
    _stop: DropGuard,
}

impl Process {
    async fn run(
        mut self,
        mut stdin: ChildStdin,
        mut ids: mpsc::Receiver<u64>,
        mut farewell: oneshot::Receiver<Goodbye>,
    ) {
        let said = tokio::select! {
            said = &mut farewell => Some(said.ok()),
            () = self.talk(&mut stdin, &mut ids) => None,
        };
        let goodbye = if let Some(goodbye) = said {
            drop(stdin);
            goodbye
        } else {
            self.close().await;
            // Only now: who found a place in the queue has been told.
            drop((stdin, ids));
            tokio::select! {
                goodbye = &mut farewell => goodbye.ok(),
                // Collected as soon as possible, so that no remains of it lie about.
                _ = self.child.wait() => farewell.await.ok(),
            }
        };
        match goodbye {
            Some(Goodbye { until, terminate, done }) => {
                let _ = done.send(self.end(until, terminate).await);
            }
            None => {
                let _ = self.child.kill().await;
            }
        }
    }

    /// Returns when the engine has ended, or cannot be talked to any more.
    async fn talk(&mut self, stdin: &mut ChildStdin, ids: &mut mpsc::Receiver<u64>) {
        let Process { child, lines, shared, .. } = self;
        tokio::select! {
            () = read(lines, shared) => {}
            () = write(stdin, ids, &shared.table) => {}
            _ = child.wait() => {}
        }
        let rest = async { tokio::join!(read(lines, shared), child.wait()) };
        let _ = tokio::time::timeout(LAST_WORDS, rest).await;
    }

    /// Tells everybody how the engine ended.
    async fn close(&mut self) {
        let _ = tokio::time::timeout(LAST_WORDS, self.drained.cancelled()).await;
        let status = self.child.try_wait().ok().flatten();
        self.shared.table.close(&EngineEnd { status, stderr: self.shared.stderr.text().into() });
        self.shared.inbox.close();
    }

    /// Ends the engine, first with patience, then with a request, then by force.
    async fn end(&mut self, until: Instant, terminate: Option<Duration>) -> io::Result<(Ending, ExitStatus)> {
        if let Some(status) = self.gone(until).await? {
            return Ok((Ending::Itself, status));
        }
        if let Some(patience) = terminate
            && let Some(pid) = self.child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw)
        {
            // It is not collected yet, so the number is still its own.
            let _ = kill_process(pid, Signal::TERM);
            if let Some(status) = self.gone(after(patience)).await? {
                return Ok((Ending::Terminated, status));
            }
        }
        self.child.start_kill()?;
        Ok((Ending::Killed, self.child.wait().await?))
    }

    /// Waits for the engine to end. What it says until then is read, so that it does not wait for us on its way out.
    async fn gone(&mut self, until: Instant) -> io::Result<Option<ExitStatus>> {
        let Process { child, lines, shared, .. } = self;
        let gone = async {
            tokio::select! {
                biased;
                status = child.wait() => return status,
                () = read(lines, shared) => {}
            }
            child.wait().await
        };
        tokio::time::timeout_at(until, gone).await.ok().transpose()
    }
}

/// When so much time will have passed; in a far future, if it is too much for the clock.
pub(super) fn after(time: Duration) -> Instant {
    const FAR: Duration = Duration::from_secs(30 * 365 * 24 * 3600);
    Instant::now() + time.min(FAR)
}

/// Reads until the end of the output. Cancelling it loses nothing.
async fn read(lines: &mut Lines<ChildStdout>, shared: &Shared) {
    while let Ok(Some(line)) = lines.next().await {
        let Line::Text(text) = line else {
            shared.inbox.count(|counts| &mut counts.too_long);
            shared.table.too_long();
            continue;
        };
        match incoming(&text) {
            Incoming::Answer(id, answer) => {
                if shared.table.answer(id, answer) {
                    shared.inbox.count(|counts| &mut counts.answers);
                } else {
                    shared.inbox.count(|counts| &mut counts.unknown_ids);
                }
            }
            Incoming::Notification { method, params } => shared.inbox.notify(method, params),
            Incoming::Unroutable => shared.inbox.count(|counts| &mut counts.unroutable),
            Incoming::Unreadable => shared.inbox.count(|counts| &mut counts.unreadable),
        }
    }
}

/// Writes whole requests until the input is closed.
async fn write(stdin: &mut ChildStdin, ids: &mut mpsc::Receiver<u64>, table: &Table) {
    while let Some(id) = ids.recv().await {
        let Some(line) = table.begin(id) else { continue };
        if stdin.write_all(&line).await.is_err() || stdin.flush().await.is_err() {
            return;
        }
        table.written(id);
    }
}
