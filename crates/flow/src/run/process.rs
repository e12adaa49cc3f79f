//! Process of a task: started without a shell, its output captured through the mask, ended with everything that it started.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use proctor_mask::{MaskStream, Masker};
use proctor_proof::secret::Secret;
use proctor_sandbox::wait::{self, Pipes};
use proctor_sandbox::{Error, Limit, Limits, Sandbox, Spec, Status};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::unix::pipe;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::Cancel;
use super::capture::Captured;

/// Time between TERM and KILL.
pub(super) const GRACE: Duration = Duration::from_secs(5);

/// Time after the last KILL in which pipes that were handed to foreign processes are still read.
const SETTLE: Duration = Duration::from_secs(5);

/// Bytes that are read at once.
const CHUNK: usize = 64 << 10;

/// Limits of a process besides its time: high enough for every task, low enough for the kernel's arithmetic.
const LIMITS: Limits = Limits {
    memory: 1 << 50,
    processes: 4096,
    file_size: 1 << 50,
    descriptors: 4096,
    wall_time: Duration::ZERO,
};

/// Process to run.
pub(super) struct Job<'a> {
    pub(super) sandbox: &'a Sandbox,
    /// Program, arguments, directory, environment, confinement.
    pub(super) spec: Spec,
    pub(super) stdin: Option<Secret>,
    pub(super) timeout: Duration,
    pub(super) masker: &'a Masker,
}

/// Process that has ended, with everything that it started.
#[derive(Debug)]
pub(super) struct Ended {
    /// Exit status; `None` after a signal.
    pub(super) exit_code: Option<i32>,
    /// Signal that ended it.
    pub(super) signal: Option<i32>,
    pub(super) is_timed_out: bool,
    pub(super) is_cancelled: bool,
    /// Processes that were left when the program ended.
    pub(super) left_behind: u32,
    pub(super) stdout: Captured,
    pub(super) stderr: Captured,
}

impl Ended {
    pub(super) fn is_ok(&self) -> bool {
        self.exit_code == Some(0) && !self.is_timed_out && !self.is_cancelled
    }
}

/// Runs a process to its end. Returns when no process of it is left.
pub(super) async fn run(job: Job<'_>, cancel: &mut Cancel) -> Result<Ended, Error> {
    let limits = Limits { wall_time: job.timeout, ..LIMITS };
    // The supervisor keeps the time, so that a run ends even if this process is stopped.
    let mut process = job.sandbox.spawn(job.spec.limits(limits).grace(GRACE))?;
    // Standard input is `/dev/null` for tasks without input.
    let Pipes { stdin, stdout, stderr } = Pipes::take(&mut process).map_err(failed)?;
    let feeding = stdin.zip(job.stdin).map(|(stdin, text)| tokio::spawn(feed(stdin, text)));
    let stdout = Capture::start(stdout, job.masker.stream());
    let stderr = Capture::start(stderr, job.masker.stream());
    let is_cancelled = tokio::select! {
        ended = wait::program_end(&mut process) => { ended?; false }
        () = cancel.cancelled() => true,
    };
    // Also after a program that ended by itself: what it left behind ends with the run.
    let exit = wait::terminate(process, GRACE).await?;
    if let Some(feeding) = feeding {
        feeding.abort();
    }
    let (stdout, stderr) = tokio::join!(stdout.collect(), stderr.collect());
    let (exit_code, signal) = match exit.status {
        Status::Exited(code) => (Some(code), None),
        Status::Signaled(signal) => (None, Some(signal)),
        Status::Lost => (None, None),
    };
    Ok(Ended {
        exit_code,
        signal,
        is_timed_out: exit.limit == Some(Limit::WallTime),
        is_cancelled,
        left_behind: exit.left_behind,
        stdout,
        stderr,
    })
}

async fn feed(mut stdin: pipe::Sender, text: Secret) {
    // A program that does not read its input is free to.
    let _ = stdin.write_all(text.expose().as_bytes()).await;
}

/// Reader of one stream, masked as it arrives.
struct Capture {
    reading: JoinHandle<()>,
    captured: Arc<Mutex<Captured>>,
}

impl Capture {
    fn start(from: pipe::Receiver, mask: MaskStream) -> Capture {
        let captured = Arc::new(Mutex::new(Captured::default()));
        Capture { reading: tokio::spawn(capture(from, mask, Arc::clone(&captured))), captured }
    }

    /// Waits for the rest of the stream. A pipe that a process outside of the run holds open is given up: what came so far counts, as
    /// a part of the output.
    async fn collect(mut self) -> Captured {
        let is_cut = !matches!(timeout(SETTLE, &mut self.reading).await, Ok(Ok(())));
        if is_cut {
            self.reading.abort();
        }
        let mut captured = std::mem::take(&mut *lock(&self.captured));
        captured.is_cut = is_cut;
        captured
    }
}

async fn capture(mut from: pipe::Receiver, mut mask: MaskStream, captured: Arc<Mutex<Captured>>) {
    let (mut chunk, mut masked) = (vec![0; CHUNK], Vec::new());
    while let Ok(count @ 1..) = from.read(&mut chunk).await {
        mask.push(chunk.get(..count).unwrap_or_default(), &mut masked);
        lock(&captured).add(&masked);
        masked.clear();
    }
    mask.finish(&mut masked);
    lock(&captured).add(&masked);
}

fn lock(captured: &Mutex<Captured>) -> std::sync::MutexGuard<'_, Captured> {
    captured.lock().unwrap_or_else(PoisonError::into_inner)
}

fn failed(source: std::io::Error) -> Error {
    Error::System { what: "running a process", source }
}
