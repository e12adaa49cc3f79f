//! Memory of gRPC messages: charged when a message announces its length, before the library makes space for it.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};

use axum::body::{Body, Bytes, HttpBody};
use axum::extract::Request;
use axum::middleware::Next;
use axum::response::Response;
use hyper::body::Frame;
use tokio::time::{Sleep, sleep};
use tonic::Status;

use crate::budget::{self, Exhausted, MemoryBudget, Reservation, UNCOUNTED, UNFINISHED_TIME};

/// Length of a message's prefix: a flag and four bytes of length.
const PREFIX: usize = 5;

/// Middleware that counts the messages of calls in the budget of this process. The last message of a call counts until its response begins, because it
/// is in work until then.
pub async fn count_messages(request: Request, next: Next) -> Response {
    count_in(budget::unfinished(), request, next).await
}

async fn count_in(budget: &MemoryBudget, request: Request, next: Next) -> Response {
    let Some(reservation) = budget.try_reserve(0) else {
        // A reservation of nothing always fits.
        return Status::resource_exhausted(Exhausted.to_string()).into_http();
    };
    let reservation = Arc::new(Mutex::new(reservation));
    let held = Arc::clone(&reservation);
    let response = next.run(request.map(|body| Body::new(CountedBody::new(body, reservation)))).await;
    drop(held);
    response
}

/// A request body whose messages are counted.
struct CountedBody {
    body: Body,
    reservation: Arc<Mutex<Reservation>>,
    prefix: [u8; PREFIX],
    prefix_length: usize,
    /// Bytes of the message that have not arrived.
    left: usize,
    /// Deadline of a counted message.
    due: Option<Pin<Box<Sleep>>>,
}

impl CountedBody {
    fn new(body: Body, reservation: Arc<Mutex<Reservation>>) -> CountedBody {
        CountedBody { body, reservation, prefix: [0; PREFIX], prefix_length: 0, left: 0, due: None }
    }

    fn reservation(&self) -> MutexGuard<'_, Reservation> {
        self.reservation.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Follows the messages through new bytes. A message replaces the one before it, which the library has taken.
    fn count(&mut self, mut bytes: &[u8]) -> Result<(), Status> {
        while !bytes.is_empty() {
            if self.left > 0 {
                let taken = self.left.min(bytes.len());
                self.left -= taken;
                bytes = bytes.get(taken..).unwrap_or_default();
                if self.left == 0 {
                    self.due = None;
                }
                continue;
            }
            let taken = (PREFIX - self.prefix_length).min(bytes.len());
            let (new, rest) = bytes.split_at(taken);
            let end = self.prefix_length + taken;
            if let Some(prefix) = self.prefix.get_mut(self.prefix_length..end) {
                prefix.copy_from_slice(new);
            }
            (self.prefix_length, bytes) = (end, rest);
            if end == PREFIX {
                self.prefix_length = 0;
                let [_, length @ ..] = self.prefix;
                self.left = usize::try_from(u32::from_be_bytes(length)).unwrap_or(usize::MAX);
                let counted = if self.left > UNCOUNTED { self.left } else { 0 };
                if !self.reservation().resize(counted) {
                    return Err(Status::resource_exhausted(Exhausted.to_string()));
                }
                self.due = (counted > 0).then(|| Box::pin(sleep(UNFINISHED_TIME)));
            }
        }
        Ok(())
    }
}

impl HttpBody for CountedBody {
    type Data = Bytes;
    type Error = Box<dyn std::error::Error + Send + Sync>;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        let this = &mut *self;
        if let Some(due) = &mut this.due
            && due.as_mut().poll(cx).is_ready()
        {
            let late = Status::deadline_exceeded("a message was begun and not finished in time");
            return Poll::Ready(Some(Err(late.into())));
        }
        let frame = match ready!(Pin::new(&mut this.body).poll_frame(cx)) {
            Some(Ok(frame)) => frame,
            Some(Err(error)) => return Poll::Ready(Some(Err(error.into()))),
            None => return Poll::Ready(None),
        };
        if let Some(data) = frame.data_ref()
            && let Err(refused) = this.count(data)
        {
            return Poll::Ready(Some(Err(refused.into())));
        }
        Poll::Ready(Some(Ok(frame)))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn body(budget: &MemoryBudget) -> CountedBody {
        CountedBody::new(Body::empty(), Arc::new(Mutex::new(budget.try_reserve(0).unwrap())))
    }

    fn message(length: u32) -> Vec<u8> {
        [&[0][..], &length.to_be_bytes()].concat()
    }

    #[tokio::test]
    async fn a_message_is_counted_before_it_arrives_and_until_the_next() {
        let budget = MemoryBudget::new(1_000_000);
        let (mut first, mut second) = (body(&budget), body(&budget));
        for byte in message(900_000) {
            first.count(&[byte]).unwrap();
        }
        assert_eq!(first.reservation().bytes(), 900_000);
        assert_eq!(second.count(&message(200_000)).unwrap_err().code(), tonic::Code::ResourceExhausted);
        // Small messages always go on.
        body(&budget).count(&[message(3), vec![1; 3], message(3)].concat()).unwrap();
        first.count(&vec![0; 900_000]).unwrap();
        assert!(first.due.is_none());
        assert_eq!(first.reservation().bytes(), 900_000, "in work");
        first.count(&message(1)).unwrap();
        assert_eq!(first.reservation().bytes(), 0);
        body(&budget).count(&message(1_000_000)).unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn a_message_that_does_not_arrive_ends_its_call() {
        let budget = MemoryBudget::new(1_000_000);
        let pending = futures_util::stream::pending::<Result<Bytes, std::io::Error>>();
        let mut half = CountedBody { body: Body::from_stream(pending), ..body(&budget) };
        half.count(&message(900_000)).unwrap();
        let ended = std::future::poll_fn(|cx| Pin::new(&mut half).poll_frame(cx)).await.unwrap().unwrap_err();
        assert!(ended.to_string().contains("not finished in time"), "{ended}");
        drop(half);
        assert!(budget.try_reserve(1_000_000).is_some());
    }
}
