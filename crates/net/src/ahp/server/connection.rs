//! What every connection does, whatever carries it: read, work on a window of messages at once, write what is ready together.

use std::future::{Future, poll_fn};
use std::io;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};

use futures_util::Stream;
use futures_util::stream::FuturesUnordered;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::coop;
use tokio::time::Instant;
use tokio_util::sync::{CancellationToken, PollSemaphore};

use super::StreamLimits;
use super::alarm;

/// With this much waiting to be written nothing more is read.
const UNWRITTEN: u64 = 16 * 1024;
/// How much a peer must take, if there is that much, within the deadline for writing.
const STEP: u64 = 4 * 1024;

/// What carries a connection.
pub(super) trait Wire {
    /// What comes in.
    type Incoming;
    /// What goes out.
    type Reply;

    /// The next message; none at the end.
    fn poll_receive(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<Option<Self::Incoming>>>;

    /// Takes a reply; it goes out with the next `poll_send`.
    fn queue(&mut self, reply: Self::Reply);

    /// How much was queued since the beginning, and how much of it has gone.
    fn progress(&self) -> Progress;

    /// Writes; ready when all is gone.
    fn poll_send(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>>;

    /// When `attend` wants to be called.
    fn attention_due(&self) -> Option<Instant> {
        None
    }

    /// A chance to ping, or to give the peer up.
    fn attend(&mut self, _now: Instant) -> io::Result<()> {
        Ok(())
    }
}

/// Counters of a connection's output, in bytes.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Progress {
    pub(super) queued: u64,
    pub(super) gone: u64,
}

/// What a message needs.
pub(super) enum Work<F, R> {
    /// A wait.
    Later(F),
    /// Nothing more: here is its reply.
    Now(R),
    /// Nothing at all.
    Nothing,
}

/// How a connection ended, apart from errors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    /// The peer has no more to say.
    Finished,
    /// We were told to stop.
    Stopped,
    /// Nothing came for too long.
    Idle,
}

/// Serves until the end, when everything that came has been answered.
pub(super) async fn serve<W, F>(
    wire: &mut W,
    window: usize,
    messages: &Arc<Semaphore>,
    limits: &StreamLimits,
    stop: &CancellationToken,
    mut begin: impl FnMut(W::Incoming) -> Work<F, W::Reply>,
) -> io::Result<End>
where
    W: Wire,
    F: Future<Output = Option<W::Reply>>,
{
    let mut in_flight = pin!(FuturesUnordered::new());
    // Over all connections: what is not read takes no memory here.
    let mut messages = PollSemaphore::new(Arc::clone(messages));
    let mut stopped = pin!(stop.cancelled());
    let mut alarm = pin!(alarm::unset());
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
                // Who cannot be written to is served to the end all the same: what came must not be lost.
                if let (Some(reply), None) = (done, &broken) {
                    wire.queue(reply);
                }
            }

            let progress = wire.progress();
            let room = in_flight.len() < window && progress.queued - progress.gone < UNWRITTEN;
            if end.is_none()
                && room
                && let Poll::Ready(turn) = coop::poll_proceed(cx)
                && let Poll::Ready(Some(permit)) = messages.poll_acquire(cx)
                && let Poll::Ready(received) = wire.poll_receive(cx)
            {
                turn.made_progress();
                match received {
                    Ok(Some(message)) => {
                        last_active = Instant::now();
                        match begin(message) {
                            Work::Later(future) => in_flight.push(in_order(counted(future, permit))),
                            Work::Now(reply) if broken.is_none() => wire.queue(reply),
                            Work::Now(_) | Work::Nothing => {}
                        }
                    }
                    Ok(None) => end = Some(End::Finished),
                    // What came before is still answered.
                    Err(error) => {
                        end = Some(End::Finished);
                        unreadable.get_or_insert(error);
                    }
                }
                continue;
            }

            if broken.is_none() {
                match wire.poll_send(cx) {
                    Poll::Ready(Ok(())) => {
                        writing = None;
                        if !room && in_flight.len() < window {
                            continue;
                        }
                    }
                    Poll::Ready(Err(error)) => broken = Some(error),
                    Poll::Pending => Writing::note(&mut writing, wire.progress()),
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
            let attention_due = wire.attention_due().filter(|_| end.is_none() && room);
            let Some(due) = [write_due, idle_due, attention_due].into_iter().flatten().min() else {
                return Poll::Pending;
            };
            if !alarm::rings(alarm.as_mut(), due, cx) {
                return Poll::Pending;
            }
            let now = Instant::now();
            if write_due.is_some_and(|due| due <= now) {
                broken = Some(io::Error::new(io::ErrorKind::TimedOut, "the peer does not read its replies"));
                end.get_or_insert(End::Finished);
            } else if idle_due.is_some_and(|due| due <= now) {
                end = Some(End::Idle);
            } else if attention_due.is_some_and(|due| due <= now)
                && let Err(error) = wire.attend(now)
            {
                broken = Some(error);
                end.get_or_insert(End::Finished);
            }
        }
    })
    .await
}

/// Since when the next step of the output is being written.
struct Writing {
    since: Instant,
    goal: u64,
}

impl Writing {
    /// The deadline is for a step, not for all: a peer that reads, but never catches up, is not cut off.
    fn note(writing: &mut Option<Writing>, progress: Progress) {
        match writing {
            Some(it) if progress.gone < it.goal || progress.queued == it.goal => {}
            _ => {
                let goal = progress.queued.min(progress.gone + STEP);
                *writing = Some(Writing { since: Instant::now(), goal });
            }
        }
    }
}

/// A message counts until it is done.
async fn counted<F: Future>(future: F, permit: OwnedSemaphorePermit) -> F::Output {
    let output = future.await;
    drop(permit);
    output
}

/// A future whose first poll is never put off by the runtime's budget: futures that are begun in order do their first step in order.
pub(super) async fn in_order<F: Future>(future: F) -> F::Output {
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
