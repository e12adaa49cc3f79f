//! Accepting connections, whatever happens: errors are waited out, the number is bounded, and the end is orderly.

use std::future::poll_fn;
use std::io;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tokio_util::task::task_tracker::TaskTrackerToken;

/// How long to wait after the first error that is not about one connection alone, and after many.
const FIRST_PAUSE: Duration = Duration::from_millis(5);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);
/// How long connections that were ended by force have to notice.
const LAST_WAIT: Duration = Duration::from_secs(1);

/// Accepts until told to stop; no error ends it.
pub(crate) struct Accepting<P> {
    poll_accept: P,
    pause: Duration,
}

impl<P> Accepting<P> {
    pub(crate) fn new(poll_accept: P) -> Accepting<P> {
        Accepting { poll_accept, pause: FIRST_PAUSE }
    }

    /// The next connection; none when told to stop.
    pub(crate) async fn next<C>(&mut self, stop: &CancellationToken) -> Option<C>
    where
        P: FnMut(&mut Context<'_>) -> Poll<io::Result<C>>,
    {
        loop {
            let accepted = tokio::select! {
                biased;
                () = stop.cancelled() => return None,
                accepted = poll_fn(|cx| (self.poll_accept)(cx)) => accepted,
            };
            match accepted {
                Ok(connection) => {
                    self.pause = FIRST_PAUSE;
                    return Some(connection);
                }
                Err(error) if concerns_one_connection(&error) => {}
                // Too many open files, no memory: it passes when connections end.
                Err(_) => {
                    tokio::select! {
                        () = stop.cancelled() => return None,
                        () = tokio::time::sleep(self.pause) => {}
                    }
                    self.pause = (self.pause * 2).min(LONGEST_PAUSE);
                }
            }
        }
    }
}

fn concerns_one_connection(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset, Interrupted};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset | Interrupted)
}

/// The connections of one listener.
pub(crate) struct Connections {
    max: usize,
    room: Arc<Semaphore>,
    tracker: TaskTracker,
    /// Cancelled when connections should come to an end.
    pub(crate) stop: CancellationToken,
    kill: CancellationToken,
}

impl Connections {
    pub(crate) fn new(max: usize, stop: CancellationToken) -> Connections {
        Connections {
            max,
            room: Arc::new(Semaphore::new(max.min(Semaphore::MAX_PERMITS))),
            tracker: TaskTracker::new(),
            stop,
            kill: CancellationToken::new(),
        }
    }

    /// A place for one more connection, if there is one.
    pub(crate) fn admit(&self) -> Option<Place> {
        let permit = Arc::clone(&self.room).try_acquire_owned().ok()?;
        Some(Place {
            stop: self.stop.clone(),
            kill: self.kill.clone(),
            _permit: Some(permit),
            _token: Some(self.tracker.token()),
        })
    }

    /// Whether more than half of the places are taken.
    #[cfg(feature = "unix-socket")]
    pub(crate) fn is_crowded(&self) -> bool {
        self.room.available_permits() < self.max / 2
    }

    /// Waits for all connections, for a time, and then ends what is left.
    pub(crate) async fn finish(self, grace: Duration) {
        self.tracker.close();
        if tokio::time::timeout(grace, self.tracker.wait()).await.is_err() {
            self.kill.cancel();
            // What does not end even then is left to itself.
            let _ = tokio::time::timeout(LAST_WAIT, self.tracker.wait()).await;
        }
    }
}

/// What a connection holds as long as it lasts.
#[derive(Debug)]
pub(crate) struct Place {
    /// Cancelled when the connection should come to an end.
    pub(crate) stop: CancellationToken,
    /// Cancelled when it must.
    pub(crate) kill: CancellationToken,
    _permit: Option<OwnedSemaphorePermit>,
    _token: Option<TaskTrackerToken>,
}

#[cfg(any(feature = "http", feature = "websocket", feature = "grpc"))]
impl Place {
    /// For a connection that nobody counts.
    pub(crate) fn uncounted() -> Place {
        let (stop, kill) = (CancellationToken::new(), CancellationToken::new());
        Place { stop, kill, _permit: None, _token: None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn accept_errors_are_waited_out_and_never_end_the_loop() {
        let mut calls = 0;
        let began = tokio::time::Instant::now();
        let mut accepting = Accepting::new(move |_: &mut Context<'_>| {
            calls += 1;
            Poll::Ready(match calls {
                // EMFILE, twenty times: more than the pause needs to reach its longest.
                1..=20 => Err(io::Error::from_raw_os_error(24)),
                21 => Err(io::ErrorKind::ConnectionAborted.into()),
                _ => Ok(calls),
            })
        });
        let stop = CancellationToken::new();
        assert_eq!(accepting.next(&stop).await, Some(22));
        let waited = began.elapsed();
        assert!(waited > Duration::from_secs(10) && waited < Duration::from_secs(20), "{waited:?}");
        stop.cancel();
        assert_eq!(accepting.next(&stop).await, None);
    }

    #[tokio::test(start_paused = true)]
    async fn a_stop_ends_the_pause_after_an_error() {
        let mut accepting = Accepting::new(|_: &mut Context<'_>| {
            Poll::<io::Result<()>>::Ready(Err(io::Error::from_raw_os_error(24)))
        });
        let stop = CancellationToken::new();
        let (accepted, ()) = tokio::join!(accepting.next(&stop), async {
            tokio::time::sleep(Duration::from_secs(5)).await;
            stop.cancel();
        });
        assert_eq!(accepted, None);
    }

    #[tokio::test(start_paused = true)]
    async fn places_are_bounded_and_come_back() {
        let connections = Connections::new(1, CancellationToken::new());
        let place = connections.admit().unwrap();
        assert!(connections.admit().is_none());
        drop(place);
        let place = connections.admit().unwrap();
        let kill = place.kill.clone();
        let held = tokio::spawn(async move {
            let place = place;
            place.kill.cancelled().await;
        });
        let began = tokio::time::Instant::now();
        connections.finish(Duration::from_secs(3)).await;
        assert!(kill.is_cancelled());
        assert_eq!(began.elapsed().as_secs(), 3);
        held.await.unwrap();
    }
}
