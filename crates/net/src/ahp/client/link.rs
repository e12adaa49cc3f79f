//! One connection with its background task, which alone reads and writes: a call can be cancelled at any moment, and no message
//! is ever torn by that.

pub(super) mod table;

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use bytes::Bytes;
use proctor_core::json::Json;
use tokio::sync::mpsc;
use tokio::time::{Instant, MissedTickBehavior};
use tokio_util::sync::CancellationToken;

use self::table::Table;
use super::error::{AhpError, millis};
use super::message::Outgoing;
use super::reply::{Answer, answer, replied_to};

/// How many pings in a row may go by with nothing heard.
const SILENT_PINGS: u32 = 3;
/// How long the last words on a connection may take.
const GOODBYE: Duration = Duration::from_secs(1);

/// The reading half of a connection.
pub(super) trait Incoming: Send + 'static {
    /// What comes next; none when the connection ended. Cancelling it loses nothing.
    fn next(&mut self) -> impl Future<Output = Option<Received>> + Send;

    /// Ends it, after the writing half was dropped, within the time.
    fn finish(self, within: Duration) -> impl Future<Output = ()> + Send;
}

/// The writing half of a connection.
pub(super) trait Writing: Send + 'static {
    /// Writes one whole message.
    fn send(&mut self, text: String) -> impl Future<Output = io::Result<()>> + Send;

    /// Asks for a sign of life.
    fn ping(&mut self) -> impl Future<Output = io::Result<()>> + Send;

    /// Says that nothing more comes.
    fn finish(self) -> impl Future<Output = ()> + Send;
}

/// What came in.
pub(super) enum Received {
    /// A message, or what looks like one.
    Text(Bytes),
    /// A sign of life.
    Other,
}

/// Why a message has no answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Failure {
    /// Not a byte of it was written: it may be sent again.
    NotSent,
    /// The harness may have seen it.
    Failed(AhpError),
}

/// The times that a connection keeps.
#[derive(Debug, Clone, Copy)]
pub(super) struct Times {
    pub(super) write: Duration,
    pub(super) close: Duration,
    pub(super) ping: Option<Duration>,
    pub(super) queue: usize,
}

/// A connection. When it is dropped its task ends.
pub(super) struct Link {
    table: Arc<Table>,
    queue: mpsc::Sender<Frame>,
    stop: CancellationToken,
    ended: CancellationToken,
}

struct Frame {
    serial: u64,
    text: String,
}

impl Link {
    /// Starts the task.
    pub(super) fn start(reader: impl Incoming, writer: impl Writing, times: Times) -> Link {
        let table = Arc::new(Table::default());
        let (queue, frames) = mpsc::channel(times.queue.max(1));
        let (stop, ended) = (CancellationToken::new(), CancellationToken::new());
        let link = Link { table: Arc::clone(&table), queue, stop: stop.clone(), ended: ended.clone() };
        tokio::spawn(async move {
            // Dropped also when the runtime ends the task, so that nobody waits for it.
            let _ended = ended.drop_guard();
            run(reader, writer, frames, table, stop, times).await;
        });
        link
    }

    /// Whether messages can be sent.
    pub(super) fn is_open(&self) -> bool {
        self.table.is_open()
    }

    /// How many messages wait.
    pub(super) fn waiting(&self) -> usize {
        self.table.waiting()
    }

    /// Sends a message and waits: a request for its reply, a notification until it is written. Dropping the future forgets the
    /// call; a message that was not begun then is not sent.
    pub(super) async fn send(&self, message: &Outgoing) -> Result<Answer, Failure> {
        let (registered, outcome) = self.table.register(message.id.as_deref())?;
        let frame = Frame { serial: registered.serial(), text: message.text() };
        if self.queue.send(frame).await.is_err() {
            return Err(Failure::NotSent);
        }
        outcome.await.unwrap_or(Err(Failure::Failed(AhpError::ConnectionClosed)))
    }

    /// Ends the connection; returns when everything that belonged to it is gone.
    pub(super) async fn close(&self) {
        self.stop.cancel();
        self.ended.cancelled().await;
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

async fn run<R: Incoming, W: Writing>(
    mut reader: R,
    mut writer: W,
    mut frames: mpsc::Receiver<Frame>,
    table: Arc<Table>,
    stop: CancellationToken,
    times: Times,
) {
    let silence = AtomicU32::new(0);
    tokio::select! {
        () = stop.cancelled() => {}
        () = read(&mut reader, &table, &silence) => {}
        () = write(&mut writer, &mut frames, &table, &silence, times) => {}
    }
    // From here on nothing is accepted, and everybody who waits is told at once.
    table.close();
    drop(frames);
    let _ = tokio::time::timeout(times.close.min(GOODBYE), writer.finish()).await;
    reader.finish(times.close).await;
}

async fn read(reader: &mut impl Incoming, table: &Table, silence: &AtomicU32) {
    while let Some(received) = reader.next().await {
        silence.store(0, Ordering::Relaxed);
        let Received::Text(text) = received else { continue };
        // Anything that is no reply to us is not ours to judge: log lines, bytes that are no text, late replies.
        let Ok(message) = Json::parse(&text) else { continue };
        let Some(id) = replied_to(&message).map(str::to_owned) else { continue };
        table.answer(&id, || answer(message));
    }
}

async fn write(
    writer: &mut impl Writing,
    frames: &mut mpsc::Receiver<Frame>,
    table: &Table,
    silence: &AtomicU32,
    times: Times,
) {
    // A far away first tick, where there are no pings.
    let every = times.ping.unwrap_or(Duration::from_secs(3600)).max(Duration::from_millis(1));
    let mut pings = tokio::time::interval_at(Instant::now() + every, every);
    pings.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        let frame = tokio::select! {
            frame = frames.recv() => match frame {
                Some(frame) => frame,
                None => return,
            },
            _ = pings.tick(), if times.ping.is_some() => {
                if silence.fetch_add(1, Ordering::Relaxed) >= SILENT_PINGS {
                    return;
                }
                match tokio::time::timeout(times.write, writer.ping()).await {
                    Ok(Ok(())) => continue,
                    _ => return,
                }
            }
        };
        if !table.begin(frame.serial) {
            continue;
        }
        match tokio::time::timeout(times.write, writer.send(frame.text)).await {
            Ok(Ok(())) => table.written(frame.serial),
            Ok(Err(_)) => return,
            Err(_) => {
                // Half of it may be out: nothing can follow on this connection.
                let error = AhpError::Timeout { what: "write", ms: millis(times.write) };
                table.fail(frame.serial, error);
                return;
            }
        }
    }
}
