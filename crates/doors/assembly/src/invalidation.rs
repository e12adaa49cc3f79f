//! `InvalidationService`: tells runtimes to drop cached policies and approvals that have changed.

use std::sync::{Arc, Mutex};

use futures_util::{Stream, StreamExt};
use proctor_clients::assembly::services::invalidation::invalidation_service_server::InvalidationService;
use proctor_policy::state::AgentInfo;
use proctor_wire::assembly::proto::gateway::v1::subscribe_request::Kind;
use proctor_wire::assembly::proto::gateway::v1::{InvalidationEvent, SubscribeRequest};
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::{broadcast, mpsc};
use tonic::{Request, Response, Status, Streaming};

use super::identity::void_token;
use super::replay_buffer::ReplayBuffer;
use super::{AssemblyDoor, Replies, lock, replies};
use proctor_engine::Notice;

/// Bound of the channel to the transport, in events.
const UNSENT: usize = 64;

/// Length limit of a runtime's name, in bytes.
const MAX_NAME: usize = 256;

/// Limit of `last_seq_seen`, so that later numbers cannot overflow.
const MAX_SEEN: u64 = u64::MAX / 2;

#[tonic::async_trait]
impl InvalidationService for AssemblyDoor {
    type SubscribeStream = Replies<InvalidationEvent>;

    async fn subscribe(
        &self,
        request: Request<Streaming<SubscribeRequest>>,
    ) -> Result<Response<Replies<InvalidationEvent>>, Status> {
        let agent = self.agent_holder(request.metadata())?;
        self.subscribe_runtime(*agent, request.into_inner()).map(Response::new)
    }
}

impl AssemblyDoor {
    /// Streams events to a runtime, and processes its acknowledgements.
    pub(super) fn subscribe_runtime<S>(
        &self,
        agent: AgentInfo,
        mut requests: S,
    ) -> Result<Replies<InvalidationEvent>, Status>
    where
        S: Stream<Item = Result<SubscribeRequest, Status>> + Send + Unpin + 'static,
    {
        let slot = self.slot("invalidations", &agent.principal)?;
        // Subscribe before the first request is read, so that no notice is missed meanwhile.
        let (wakes, notices) = (self.engine().notices(), self.engine().notices());
        let (sender, receiver) = mpsc::channel(UNSENT);
        let door = self.clone();
        tokio::spawn(async move {
            let _slot = slot;
            let first = tokio::select! {
                first = requests.next() => first,
                () = sender.closed() => return,
                () = door.inner.stop.cancelled() => return,
            };
            let (name, seen) = match first {
                Some(Err(_)) => return,
                Some(Ok(first)) => match initial(first) {
                    Ok(initial) => initial,
                    Err(status) => {
                        let _ = sender.send(Err(status)).await;
                        return;
                    }
                },
                None => {
                    let _ = sender.send(Err(nameless())).await;
                    return;
                }
            };
            let buffer = door.replay_buffer(&agent, &name, notices);
            let sent = lock(&buffer).resume(door.engine(), seen);
            let feed = Feed { door, agent, buffer, sent };
            feed.run(requests, wakes, &sender).await;
        });
        Ok(replies(receiver))
    }
}

/// Reads the runtime's name and `last_seq_seen` from its first message.
fn initial(first: SubscribeRequest) -> Result<(String, u64), Status> {
    let seen = match first.kind {
        Some(Kind::Initial(initial)) => initial.last_seq_seen,
        _ => 0,
    };
    if first.assembly_id.is_empty() {
        return Err(nameless());
    }
    if first.assembly_id.len() > MAX_NAME {
        let text = format!("`assembly_id` has {} bytes, at most {MAX_NAME} allowed", first.assembly_id.len());
        return Err(Status::invalid_argument(text));
    }
    if seen > MAX_SEEN {
        return Err(Status::invalid_argument(format!("`last_seq_seen` is {seen}: no event has that number")));
    }
    Ok((first.assembly_id, seen))
}

fn nameless() -> Status {
    Status::invalid_argument("the first message must name its `assembly_id`")
}

struct Feed {
    door: AssemblyDoor,
    agent: AgentInfo,
    buffer: Arc<Mutex<ReplayBuffer>>,
    /// Sequence number of the last event sent.
    sent: u64,
}

impl Feed {
    async fn run(
        mut self,
        mut requests: impl Stream<Item = Result<SubscribeRequest, Status>> + Unpin,
        mut wakes: broadcast::Receiver<Notice>,
        sender: &mpsc::Sender<Result<InvalidationEvent, Status>>,
    ) {
        let stop = self.door.inner.stop.clone();
        loop {
            if !self.door.is_still_held(&self.agent) {
                let _ = sender.send(Err(void_token())).await;
                return;
            }
            let events = lock(&self.buffer).after(self.door.engine(), &mut self.sent);
            for event in events {
                tokio::select! {
                    sent = sender.send(Ok(event)) => if sent.is_err() {
                        return;
                    },
                    () = stop.cancelled() => return,
                }
            }
            tokio::select! {
                wake = wakes.recv() => if matches!(wake, Err(RecvError::Closed)) {
                    return;
                },
                request = requests.next() => match request {
                    Some(Ok(SubscribeRequest { kind: Some(Kind::Ack(ack)), .. })) => {
                        lock(&self.buffer).acknowledge(ack.seq.min(self.sent));
                    }
                    Some(Ok(_)) => {}
                    None | Some(Err(_)) => return,
                },
                () = sender.closed() => return,
                () = stop.cancelled() => return,
            }
        }
    }
}
