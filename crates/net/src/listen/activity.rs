//! Activity of a connection: the number of requests in flight, and whether a request head is being received.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::{Body, Bytes};
use hyper::body::{Frame, SizeHint};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Instant;

use crate::accept::{ConnectionSlot, WorkGuard};

/// Counters that the connection's stream, requests and task share. Times are milliseconds since the beginning; 0 is never.
pub(super) struct Activity {
    began: Instant,
    requests: AtomicUsize,
    last: AtomicU64,
    head_began: AtomicU64,
    anything_read: AtomicBool,
    is_http2: AtomicBool,
}

/// The next deadline of a connection.
pub(super) enum Due {
    /// A request is in flight: check again then.
    Busy(Instant),
    /// No request is in flight: the idle limit is reached then.
    Idle(Instant),
    /// The limit for the request head, or for shutting down, is reached then.
    End(Instant),
}

impl Activity {
    pub(super) fn new() -> Activity {
        Activity {
            began: Instant::now(),
            requests: AtomicUsize::new(0),
            last: AtomicU64::new(0),
            head_began: AtomicU64::new(0),
            anything_read: AtomicBool::new(false),
            is_http2: AtomicBool::new(false),
        }
    }

    pub(super) fn due(&self, header_timeout: Duration, idle: Duration) -> Due {
        if self.requests.load(Relaxed) > 0 {
            return Due::Busy(Instant::now() + idle);
        }
        match self.head_began.load(Relaxed) {
            0 => Due::Idle(self.began + Duration::from_millis(self.last.load(Relaxed)) + idle),
            at => Due::End(self.began + Duration::from_millis(at) + header_timeout),
        }
    }

    fn now(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX).max(1)
    }

    fn read(&self, bytes: &[u8]) {
        if !self.anything_read.swap(true, Relaxed) && bytes.starts_with(b"PRI") {
            self.is_http2.store(true, Relaxed);
        }
        // On HTTP/2 bytes come for many reasons, and heads are bounded by its frames.
        if !self.is_http2.load(Relaxed)
            && self.requests.load(Relaxed) == 0
            && self.head_began.load(Relaxed) == 0
        {
            self.head_began.store(self.now(), Relaxed);
        }
    }
}

/// A stream that reports reads to the activity counters.
pub(super) struct ObservedStream<S> {
    stream: S,
    activity: Arc<Activity>,
}

impl<S> ObservedStream<S> {
    pub(super) fn new(stream: S, activity: Arc<Activity>) -> ObservedStream<S> {
        ObservedStream { stream, activity }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for ObservedStream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let outcome = Pin::new(&mut self.stream).poll_read(cx, buffer);
        if let Some(new @ [_, ..]) = buffer.filled().get(before..) {
            self.activity.read(new);
        }
        outcome
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for ObservedStream<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, parts)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}

/// Counts a request from its head to the last byte of its response.
pub(super) struct RequestGuard {
    activity: Arc<Activity>,
    _work: WorkGuard,
}

impl RequestGuard {
    pub(super) fn new(activity: &Arc<Activity>, slot: &ConnectionSlot) -> RequestGuard {
        activity.requests.fetch_add(1, Relaxed);
        activity.head_began.store(0, Relaxed);
        RequestGuard { activity: Arc::clone(activity), _work: slot.begin_work() }
    }

    pub(super) fn around(self, body: Body) -> GuardedBody {
        GuardedBody { body, _guard: self }
    }
}

impl Drop for RequestGuard {
    fn drop(&mut self) {
        self.activity.last.store(self.activity.now(), Relaxed);
        self.activity.requests.fetch_sub(1, Relaxed);
    }
}

/// A response body that keeps its request counted.
pub(super) struct GuardedBody {
    body: Body,
    _guard: RequestGuard,
}

impl hyper::body::Body for GuardedBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
