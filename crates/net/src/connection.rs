//! The loop of a server connection, on any transport: read, handle a window of messages concurrently, write ready replies together.

use std::future::{Future, poll_fn};
use std::io;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use futures_util::Stream;
use futures_util::stream::FuturesUnordered;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::coop;
use tokio::time::Instant;
use tokio_util::sync::{CancellationToken, PollSemaphore};

use crate::budget::MemoryBudget;
use crate::deadline;
use crate::peer::Peer;
use crate::stream::StreamLimits;

/// Backpressure: nothing is read while this much output is unsent.
const MAX_UNSENT: u64 = 16 * 1024;
/// The part of the output that a peer must take within the write deadline.
const WRITE_STEP: u64 = 4 * 1024;

/// A server of text messages, on any transport that keeps a connection: lines over streams, Unix sockets, WebSocket.
pub trait TextHandler: Clone + Send + Sync + 'static {
    /// The close reason that WebSocket peers are told when the server stops.
    const STOP_REASON: &'static str;

    /// Begins to handle a message. Calls come in order of arrival, and so do the first polls of the futures.
    fn begin<'a>(
        &'a self,
        peer: &'a Peer,
        message: Bytes,
    ) -> Work<impl Future<Output = Option<String>> + Send + 'a, String>;

    /// The reply to a message that is longer than `limit` bytes, and was discarded.
    fn refuse_overlong(&self, peer: &Peer, limit: usize) -> String;

    /// The bounds that all connections of this server share.
    fn bounds(&self) -> &Bounds;
}

/// Bounds on the messages of all connections of a server.
#[derive(Debug)]
pub struct Bounds {
    /// Messages of one connection that are handled concurrently; then it is not read further.
    pub window: usize,
    /// Permits for messages of all connections that are handled concurrently. A message that is not read takes no memory.
    pub messages: Arc<Semaphore>,
    /// The memory of long messages that are not complete.
    pub unfinished: MemoryBudget,
    /// The memory of long messages in work.
    pub memory: MemoryBudget,
}

/// A transport's side of a connection: messages in, replies out.
pub trait Transport {
    /// A received message.
    type Incoming;
    /// A reply.
    type Reply;

    /// The next message; none once the peer has finished.
    fn poll_receive(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<Option<Self::Incoming>>>;

    /// Queues a reply for the next `poll_send`.
    fn queue(&mut self, reply: Self::Reply);

    /// Counters of the output.
    fn progress(&self) -> Progress;

    /// Sends queued replies; ready when all are sent.
    fn poll_send(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>>;

    /// The time of the next call to `keep_alive`.
    fn keep_alive_due(&self) -> Option<Instant> {
        None
    }

    /// Pings the peer, or reports it as lost.
    fn keep_alive(&mut self, _now: Instant) -> io::Result<()> {
        Ok(())
    }
}

/// Counters of a connection's output, in bytes since its beginning.
#[derive(Debug, Clone, Copy, Default)]
pub struct Progress {
    /// Bytes given to [`Transport::queue`].
    pub queued: u64,
    /// Bytes of them that were sent.
    pub sent: u64,
}

/// Work on a message: a future reply, an immediate one, or none.
pub enum Work<F, R> {
    /// A future of the reply.
    Pending(F),
    /// An immediate reply.
    Reply(R),
    /// No reply.
    Done,
}

/// The regular end of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// The peer has closed its side.
    Finished,
    /// The server was stopped.
    Stopped,
    /// The idle limit was reached.
    Idle,
}

/// Serves a connection until it ends and every received message is answered.
pub async fn serve<T, F>(
    transport: &mut T,
    bounds: &Bounds,
    limits: &StreamLimits,
    stop: &CancellationToken,
    mut begin: impl FnMut(T::Incoming) -> Work<F, T::Reply>,
) -> io::Result<End>
where
    T: Transport,
    F: Future<Output = Option<T::Reply>>,
{
    let mut in_flight = pin!(FuturesUnordered::new());
    let window = bounds.window;
    let mut messages = PollSemaphore::new(Arc::clone(&bounds.messages));
    let mut stopped = pin!(stop.cancelled());
    let mut timer = pin!(deadline::unset());
    let mut end = None;
    let mut broken: Option<io::Error> = None;
    let mut unreadable: Option<io::Error> = None;
    let mut last_active = Instant::now();
    let mut writing: Option<Writing> = None;

    poll_fn(|cx| {
        if end.is_none() && stopped.as_mut().poll(cx).is_ready() {
            end = Some(End::Stopped);
        }
        loop {
            while let Poll::Ready(Some(done)) = in_flight.as_mut().poll_next(cx) {
                last_active = Instant::now();
                // Messages of a peer that cannot be written to are handled all the same: they may be reports.
                if let (Some(reply), None) = (done, &broken) {
                    transport.queue(reply);
                }
            }

            let progress = transport.progress();
            let room = in_flight.len() < window && progress.queued - progress.sent < MAX_UNSENT;
            if end.is_none()
                && room
                && let Poll::Ready(turn) = coop::poll_proceed(cx)
                && let Poll::Ready(Some(permit)) = messages.poll_acquire(cx)
                && let Poll::Ready(received) = transport.poll_receive(cx)
            {
                turn.made_progress();
                match received {
                    Ok(Some(message)) => {
                        last_active = Instant::now();
                        match begin(message) {
                            Work::Pending(future) => {
                                in_flight.push(first_poll_unconstrained(holding(future, permit)));
                            }
                            Work::Reply(reply) if broken.is_none() => transport.queue(reply),
                            Work::Reply(_) | Work::Done => {}
                        }
                    }
                    Ok(None) => end = Some(End::Finished),
                    // Messages before the error are still answered.
                    Err(error) => {
                        end = Some(End::Finished);
                        unreadable.get_or_insert(error);
                    }
                }
                continue;
            }

            if broken.is_none() {
                match transport.poll_send(cx) {
                    Poll::Ready(Ok(())) => {
                        writing = None;
                        if !room && in_flight.len() < window {
                            continue;
                        }
                    }
                    Poll::Ready(Err(error)) => broken = Some(error),
                    Poll::Pending => Writing::note(&mut writing, transport.progress()),
                }
            }
            let unwritten = writing.is_some() && broken.is_none();
            if let Some(end) = end
                && in_flight.is_empty()
                && !unwritten
            {
                return Poll::Ready(broken.take().or_else(|| unreadable.take()).map_or(Ok(end), Err));
            }

            let write_due = writing.as_ref().filter(|_| unwritten).map(|it| it.since + limits.write_deadline);
            let idle_due = limits
                .idle
                .filter(|_| end.is_none() && in_flight.is_empty() && !unwritten)
                .map(|idle| last_active + idle);
            let keep_alive_due = transport.keep_alive_due().filter(|_| end.is_none() && room);
            let Some(due) = [write_due, idle_due, keep_alive_due].into_iter().flatten().min() else {
                return Poll::Pending;
            };
            if !deadline::has_passed(timer.as_mut(), due, cx) {
                return Poll::Pending;
            }
            let now = Instant::now();
            if write_due.is_some_and(|due| due <= now) {
                broken = Some(io::Error::new(io::ErrorKind::TimedOut, "the peer does not read its replies"));
                end.get_or_insert(End::Finished);
            } else if idle_due.is_some_and(|due| due <= now) {
                end = Some(End::Idle);
            } else if keep_alive_due.is_some_and(|due| due <= now)
                && let Err(error) = transport.keep_alive(now)
            {
                broken = Some(error);
                end.get_or_insert(End::Finished);
            }
        }
    })
    .await
}

/// The step of the output that is being written, and since when.
struct Writing {
    since: Instant,
    goal: u64,
}

impl Writing {
    /// The deadline holds for a step, not for the whole output: a peer that reads, but never catches up, is not cut off.
    fn note(writing: &mut Option<Writing>, progress: Progress) {
        match writing {
            Some(it) if progress.sent < it.goal || progress.queued == it.goal => {}
            _ => {
                let goal = progress.queued.min(progress.sent + WRITE_STEP);
                *writing = Some(Writing { since: Instant::now(), goal });
            }
        }
    }
}

/// Holds a guard until the work on a message is done.
pub(crate) fn holding_guard<F: Future, R, G>(
    guard: G,
    work: Work<F, R>,
) -> Work<impl Future<Output = F::Output>, R> {
    match work {
        Work::Pending(future) => Work::Pending(async move {
            let output = future.await;
            drop(guard);
            output
        }),
        Work::Reply(reply) => Work::Reply(reply),
        Work::Done => Work::Done,
    }
}

/// Holds the permit until the message is handled.
async fn holding<F: Future>(future: F, permit: OwnedSemaphorePermit) -> F::Output {
    let output = future.await;
    drop(permit);
    output
}

/// Exempts the first poll of a future from the runtime's cooperative budget: futures that are started in order take their first step in
/// order.
pub async fn first_poll_unconstrained<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    let mut first = true;
    poll_fn(move |cx| {
        if std::mem::take(&mut first) {
            Pin::new(&mut coop::unconstrained(future.as_mut())).poll(cx)
        } else {
            future.as_mut().poll(cx)
        }
    })
    .await
}
