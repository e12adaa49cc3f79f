//! Connection with its background task, which alone reads and writes: a call can be cancelled at any moment, and never leaves a partial
//! message on the connection.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use proctor_core::json::Json;
use proctor_net::message::{MessageReader, MessageWriter, Received};
use tokio::sync::mpsc;
use tokio::time::{Instant, MissedTickBehavior};
use tokio_util::sync::CancellationToken;

use super::error::{AhpError, millis};
use super::message::Outgoing;
use super::reply::{Answer, answer, replied_to};
use crate::pending::{CallStage, PendingCalls, RegisterError};

/// Unanswered pings in a row after which the connection is given up.
const SILENT_PINGS: u32 = 3;
/// Time for finishing the output.
const FINISH_TIMEOUT: Duration = Duration::from_secs(1);

/// A message without a reply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Failure {
    /// No byte was written: the message may be sent again.
    NotSent,
    /// The harness may have seen the message.
    Failed(AhpError),
}

/// Limits of a connection.
#[derive(Debug, Clone, Copy)]
pub(super) struct LinkLimits {
    pub(super) write: Duration,
    pub(super) close: Duration,
    pub(super) ping: Option<Duration>,
    pub(super) queue: usize,
}

/// An open connection. Dropping it ends its task.
pub(super) struct Link {
    calls: Arc<Calls>,
    queue: mpsc::Sender<u64>,
    stop: CancellationToken,
    ended: CancellationToken,
}

type Calls = PendingCalls<String, String, Result<Answer, Failure>>;

impl Link {
    /// Starts the task.
    pub(super) fn start(reader: impl MessageReader, writer: impl MessageWriter, limits: LinkLimits) -> Link {
        let calls = Arc::new(Calls::default());
        let (queue, serials) = mpsc::channel(limits.queue.max(1));
        let (stop, ended) = (CancellationToken::new(), CancellationToken::new());
        let link = Link { calls: Arc::clone(&calls), queue, stop: stop.clone(), ended: ended.clone() };
        tokio::spawn(async move {
            // Dropped also when the runtime ends the task, so that `close` never hangs.
            let _ended = ended.drop_guard();
            run(reader, writer, serials, calls, stop, limits).await;
        });
        link
    }

    /// Whether messages can be sent.
    pub(super) fn is_open(&self) -> bool {
        self.calls.is_open()
    }

    /// The number of calls in flight.
    pub(super) fn waiting(&self) -> usize {
        self.calls.len()
    }

    /// Sends a message and waits: a request for its reply, a notification until it is written. Dropping the future cancels the call; a
    /// message of which no byte was written is then not sent.
    pub(super) async fn send(&self, message: &Outgoing) -> Result<Answer, Failure> {
        let registered = self.calls.register(message.id.clone(), message.text());
        let (registration, outcome) = registered.map_err(|error| match error {
            RegisterError::Closed => Failure::NotSent,
            RegisterError::DuplicateId => Failure::Failed(AhpError::InvalidId {
                id: message.id.clone().unwrap_or_default(),
                problem: "another request with it waits for its answer",
            }),
        })?;
        if self.queue.send(registration.serial()).await.is_err() {
            return Err(Failure::NotSent);
        }
        outcome.await.unwrap_or(Err(Failure::Failed(AhpError::ConnectionClosed)))
    }

    /// Closes the connection; returns when its task and its process, if it has one, have ended.
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

async fn run<R: MessageReader, W: MessageWriter>(
    mut reader: R,
    mut writer: W,
    mut serials: mpsc::Receiver<u64>,
    calls: Arc<Calls>,
    stop: CancellationToken,
    limits: LinkLimits,
) {
    let silence = AtomicU32::new(0);
    tokio::select! {
        () = stop.cancelled() => {}
        () = read(&mut reader, &calls, &silence) => {}
        () = write(&mut writer, &mut serials, &calls, &silence, limits) => {}
    }
    // Before the transport is finished: calls in flight must not wait for a slow close.
    calls.close(|stage| {
        Err(match stage {
            CallStage::Queued => Failure::NotSent,
            CallStage::Writing | CallStage::Written => Failure::Failed(AhpError::ConnectionClosed),
        })
    });
    drop(serials);
    let _ = tokio::time::timeout(limits.close.min(FINISH_TIMEOUT), writer.finish()).await;
    reader.finish(limits.close).await;
}

async fn read(reader: &mut impl MessageReader, calls: &Calls, silence: &AtomicU32) {
    while let Some(received) = reader.next().await {
        silence.store(0, Ordering::Relaxed);
        let Received::Text(text) = received else { continue };
        // Everything but a reply is ignored: harnesses print log lines to the same stream.
        let Ok(message) = Json::parse(&text) else { continue };
        let Some(id) = replied_to(&message).map(str::to_owned) else { continue };
        calls.answer(&id, || Ok(answer(message)));
    }
}

async fn write(
    writer: &mut impl MessageWriter,
    serials: &mut mpsc::Receiver<u64>,
    calls: &Calls,
    silence: &AtomicU32,
    limits: LinkLimits,
) {
    let every = limits.ping.unwrap_or(Duration::from_secs(3600)).max(Duration::from_millis(1));
    let mut pings = tokio::time::interval_at(Instant::now() + every, every);
    pings.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        let serial = tokio::select! {
            serial = serials.recv() => match serial {
                Some(serial) => serial,
                None => return,
            },
            _ = pings.tick(), if limits.ping.is_some() => {
                if silence.fetch_add(1, Ordering::Relaxed) >= SILENT_PINGS {
                    return;
                }
                match tokio::time::timeout(limits.write, writer.ping()).await {
                    Ok(Ok(())) => continue,
                    _ => return,
                }
            }
        };
        let Some(text) = calls.start(serial) else { continue };
        match tokio::time::timeout(limits.write, writer.send(text)).await {
            Ok(Ok(())) => {
                if !calls.written(serial) {
                    calls.settle(serial, Ok(Ok(Json::Null)));
                }
            }
            Ok(Err(_)) => return,
            Err(_) => {
                // A part of the message may be written: nothing can follow on this connection.
                let error = AhpError::Timeout { what: "write", ms: millis(limits.write) };
                calls.settle(serial, Err(Failure::Failed(error)));
                return;
            }
        }
    }
}
