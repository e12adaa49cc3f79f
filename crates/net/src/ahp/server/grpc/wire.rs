//! A streaming call as a connection.

use std::collections::VecDeque;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use futures_util::Stream;
use prost::Message;
use tokio::sync::mpsc::Receiver;
use tokio_util::sync::PollSender;
use tonic::{Status, Streaming};

use crate::ahp::grpc as proto;
use crate::ahp::server::connection::{Progress, Wire};

pub(super) struct CallWire {
    requests: Streaming<proto::Request>,
    replies: PollSender<Result<proto::Response, Status>>,
    ready: VecDeque<(proto::Response, u64)>,
    progress: Progress,
}

impl CallWire {
    pub(super) fn new(
        requests: Streaming<proto::Request>,
        replies: PollSender<Result<proto::Response, Status>>,
    ) -> CallWire {
        CallWire { requests, replies, ready: VecDeque::new(), progress: Progress::default() }
    }
}

impl Wire for CallWire {
    type Incoming = proto::Request;
    type Reply = proto::Response;

    fn poll_receive(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<Option<proto::Request>>> {
        match ready!(Pin::new(&mut self.requests).poll_next(cx)) {
            Some(Ok(request)) => Poll::Ready(Ok(Some(request))),
            Some(Err(status)) => Poll::Ready(Err(io::Error::other(status))),
            None => Poll::Ready(Ok(None)),
        }
    }

    fn queue(&mut self, reply: proto::Response) {
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
            self.progress.gone += length;
        }
        Poll::Ready(Ok(()))
    }
}

/// The replies of a streaming call.
pub(super) struct Replies {
    receiver: Receiver<Result<proto::Response, Status>>,
}

impl Replies {
    pub(super) fn new(receiver: Receiver<Result<proto::Response, Status>>) -> Replies {
        Replies { receiver }
    }
}

impl Stream for Replies {
    type Item = Result<proto::Response, Status>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.receiver.poll_recv(cx)
    }
}
