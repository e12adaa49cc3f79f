//! Streaming calls.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use futures_util::{Stream, StreamExt, stream};
use proctor_wire::assembly::proto::audit::v1::AuditEvent;
use proctor_wire::assembly::proto::gateway::v1::{
    InvalidationEvent, SubscribeAck, SubscribeInitial, SubscribeRequest, subscribe_request,
};
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;
use tonic::Streaming;

use super::ClientError;

/// Acknowledgements that wait to be sent.
const MAX_ACKS: usize = 64;

/// A stream of messages from the gateway. Dropping it ends the call.
///
/// ```
/// use proctor_clients::assembly::client::{Client, ClientError, Incoming};
/// use proctor_wire::assembly::proto::approval::v1::ApprovalEvent;
///
/// async fn show_all(client: &Client) -> Result<(), ClientError> {
///     let mut waiting: Incoming<ApprovalEvent> = client.watch_approvals().await?;
///     while let Some(approval) = waiting.next().await? {
///         println!("{} wants {}", approval.agent_id, approval.action);
///     }
///     Ok(())
/// }
/// ```
pub struct Incoming<T> {
    method: &'static str,
    stream: Streaming<T>,
}

impl<T> Incoming<T> {
    pub(super) fn new(method: &'static str, stream: Streaming<T>) -> Incoming<T> {
        Incoming { method, stream }
    }

    /// The next message, without a time limit; none once the gateway has ended the stream.
    pub async fn next(&mut self) -> Result<Option<T>, ClientError> {
        self.stream.message().await.map_err(|status| ClientError::from_status(self.method, &status))
    }
}

impl<T> Stream for Incoming<T> {
    type Item = Result<T, ClientError>;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = self.get_mut();
        let method = this.method;
        this.stream
            .poll_next_unpin(context)
            .map(|next| next.map(|item| item.map_err(|status| ClientError::from_status(method, &status))))
    }
}

impl<T> fmt::Debug for Incoming<T> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Incoming").field("method", &self.method).finish_non_exhaustive()
    }
}

/// A stream of cache invalidations. Dropping it ends the call.
///
/// ```
/// use proctor_clients::assembly::client::{Client, ClientError, Invalidations};
///
/// async fn follow(client: &Client) -> Result<(), ClientError> {
///     let mut changes: Invalidations = client.subscribe_invalidations("runtime-1", 0).await?;
///     while let Some(event) = changes.next().await? {
///         // Drop the cached entry, and then:
///         changes.acknowledge(event.seq).await?;
///     }
///     Ok(())
/// }
/// ```
#[derive(Debug)]
pub struct Invalidations {
    assembly_id: String,
    acks: mpsc::Sender<SubscribeRequest>,
    incoming: Incoming<InvalidationEvent>,
}

impl Invalidations {
    pub(super) fn new(
        assembly_id: &str,
        acks: mpsc::Sender<SubscribeRequest>,
        incoming: Incoming<InvalidationEvent>,
    ) -> Invalidations {
        Invalidations { assembly_id: assembly_id.to_owned(), acks, incoming }
    }

    /// The next message, without a time limit; none once the gateway has ended the stream.
    pub async fn next(&mut self) -> Result<Option<InvalidationEvent>, ClientError> {
        self.incoming.next().await
    }

    /// Acknowledges all events up to `seq`: the gateway need not keep them.
    pub async fn acknowledge(&self, seq: u64) -> Result<(), ClientError> {
        let kind = subscribe_request::Kind::Ack(SubscribeAck { seq });
        let ack = SubscribeRequest { assembly_id: self.assembly_id.clone(), kind: Some(kind) };
        self.acks.send(ack).await.map_err(|_| ClientError::Closed {
            method: "Subscribe",
            problem: "the gateway takes no acknowledgements any more".to_owned(),
        })
    }
}

/// The request stream of a subscriber: its first message, and then acknowledgements.
pub(super) fn acknowledging(
    assembly_id: &str,
    last_seq_seen: u64,
) -> (impl Stream<Item = SubscribeRequest> + Send + 'static, mpsc::Sender<SubscribeRequest>) {
    let (sender, receiver) = mpsc::channel(MAX_ACKS);
    let kind = subscribe_request::Kind::Initial(SubscribeInitial { last_seq_seen });
    let first = SubscribeRequest { assembly_id: assembly_id.to_owned(), kind: Some(kind) };
    let acks = stream::unfold(receiver, |mut receiver: mpsc::Receiver<SubscribeRequest>| async move {
        receiver.recv().await.map(|ack| (ack, receiver))
    });
    (stream::once(std::future::ready(first)).chain(acks), sender)
}

/// The gateway's deadline; none while the call waits for the source of events.
pub(super) type Due = watch::Receiver<Option<Instant>>;

/// Wraps a source of events so that the gateway's deadline is known.
pub(super) fn watched<S>(events: S, limit: Duration) -> (impl Stream<Item = AuditEvent> + Send + 'static, Due)
where
    S: Stream<Item = AuditEvent> + Send + 'static,
{
    let (waited_for, due) = watch::channel(Some(Instant::now() + limit));
    let mut events = Box::pin(events);
    let watched = stream::poll_fn(move |context| {
        let next = events.as_mut().poll_next(context);
        waited_for.send_replace(next.is_ready().then(|| Instant::now() + limit));
        next
    });
    (watched, due)
}

/// The outcome of a call; none if the gateway missed its deadline.
pub(super) async fn while_moving<T>(
    call: impl Future<Output = T>,
    mut due: Due,
    limit: Duration,
) -> Option<T> {
    let mut call = std::pin::pin!(call);
    let mut answer_due = None;
    loop {
        let until = answer_due.or(*due.borrow_and_update());
        let late = async {
            match until {
                Some(until) => tokio::time::sleep_until(until).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            outcome = &mut call => return Some(outcome),
            changed = due.changed(), if answer_due.is_none() => {
                // The stream of events was dropped: only the answer is missing.
                if changed.is_err() {
                    answer_due = Some(Instant::now() + limit);
                }
            }
            () = late => return None,
        }
    }
}
