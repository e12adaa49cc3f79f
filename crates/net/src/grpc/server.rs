//! The connection loop's transport over a bidirectional streaming call.

use std::collections::VecDeque;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use futures_util::Stream;
use prost::Message;
use tokio::sync::mpsc::Receiver;
use tokio_util::sync::PollSender;
use tonic::{Status, Streaming};

use crate::connection::{Progress, Transport};

/// Requests and replies of a streaming call.
pub struct CallTransport<Q, P> {
    requests: Streaming<Q>,
    replies: PollSender<Result<P, Status>>,
    ready: VecDeque<(P, u64)>,
    progress: Progress,
}

impl<Q, P: Send + 'static> CallTransport<Q, P> {
    /// Receives from `requests` and sends to the channel behind [`Replies`].
    pub fn new(requests: Streaming<Q>, replies: PollSender<Result<P, Status>>) -> CallTransport<Q, P> {
        CallTransport { requests, replies, ready: VecDeque::new(), progress: Progress::default() }
    }
}

impl<Q, P: Message + 'static> Transport for CallTransport<Q, P> {
    type Incoming = Q;
    type Reply = P;

    fn poll_receive(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<Option<Q>>> {
        match ready!(Pin::new(&mut self.requests).poll_next(cx)) {
            Some(Ok(request)) => Poll::Ready(Ok(Some(request))),
            Some(Err(status)) => Poll::Ready(Err(io::Error::other(status))),
            None => Poll::Ready(Ok(None)),
        }
    }

    fn queue(&mut self, reply: P) {
        let length = reply.encoded_len() as u64;
        self.progress.queued += length;
        self.ready.push_back((reply, length));
    }

    fn progress(&self) -> Progress {
        self.progress
    }

    fn poll_send(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while !self.ready.is_empty() {
            let gone = |_| io::Error::from(io::ErrorKind::BrokenPipe);
            ready!(self.replies.poll_reserve(cx)).map_err(gone)?;
            let Some((reply, length)) = self.ready.pop_front() else { break };
            self.replies.send_item(Ok(reply)).map_err(gone)?;
            self.progress.sent += length;
        }
        Poll::Ready(Ok(()))
    }
}

/// The reply stream of a streaming call.
#[derive(Debug)]
pub struct Replies<P> {
    receiver: Receiver<Result<P, Status>>,
}

impl<P> Replies<P> {
    /// Sends what the channel receives.
    pub fn new(receiver: Receiver<Result<P, Status>>) -> Replies<P> {
        Replies { receiver }
    }
}

impl<P> Stream for Replies<P> {
    type Item = Result<P, Status>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.receiver.poll_recv(cx)
    }
}
