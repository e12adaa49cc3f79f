//! `InvalidationService`: what a runtime remembers and must forget: a policy that changed, an approval that was decided.

use std::collections::VecDeque;

use proctor_net::assembly::services::invalidation::invalidation_service_server::InvalidationService;
use proctor_policy::state::AgentInfo;
use proctor_wire::assembly::proto::gateway::v1::invalidation_event::Payload;
use proctor_wire::assembly::proto::gateway::v1::subscribe_request::Kind;
use proctor_wire::assembly::proto::gateway::v1::{
    ApprovalResolved, Decision, InvalidationEvent, PolicyInvalidated, SubscribeRequest,
};
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::{broadcast, mpsc};
use tonic::{Request, Response, Status, Streaming};

use super::approvals::is_of_team;
use super::{AssemblyDoor, Replies, replies};
use crate::engine::Notice;

/// Events of one subscriber that are kept until it has acknowledged them.
const RING: usize = 1024;

#[tonic::async_trait]
impl InvalidationService for AssemblyDoor {
    type SubscribeStream = Replies<InvalidationEvent>;

    async fn subscribe(
        &self,
        request: Request<Streaming<SubscribeRequest>>,
    ) -> Result<Response<Replies<InvalidationEvent>>, Status> {
        let agent = self.agent_holder(request.metadata())?;
        let mut requests = request.into_inner();
        let notices = self.engine().notices();
        let (sender, receiver) = mpsc::channel(64);
        let door = self.clone();
        tokio::spawn(async move {
            let first = tokio::select! {
                first = requests.message() => first,
                () = door.inner.stop.cancelled() => return,
            };
            let initial = match first {
                Ok(Some(first)) if !first.assembly_id.is_empty() => first,
                Ok(_) => {
                    let text = "the first message must name its `assembly_id`";
                    let _ = sender.send(Err(Status::invalid_argument(text))).await;
                    return;
                }
                Err(_) => return,
            };
            let last_seen = match initial.kind {
                Some(Kind::Initial(initial)) => initial.last_seq_seen,
                _ => 0,
            };
            let feed = Feed { door, agent: *agent, seq: last_seen, unacknowledged: VecDeque::new() };
            feed.run(last_seen > 0, requests, notices, &sender).await;
        });
        Ok(Response::new(replies(receiver)))
    }
}

struct Feed {
    door: AssemblyDoor,
    agent: AgentInfo,
    seq: u64,
    unacknowledged: VecDeque<u64>,
}

impl Feed {
    async fn run(
        mut self,
        is_return: bool,
        mut requests: Streaming<SubscribeRequest>,
        mut notices: broadcast::Receiver<Notice>,
        sender: &mpsc::Sender<Result<InvalidationEvent, Status>>,
    ) {
        // Whoever was away cannot know what happened meanwhile: it forgets everything.
        if is_return && !self.send(self.everything(), sender).await {
            return;
        }
        loop {
            tokio::select! {
                notice = notices.recv() => {
                    let payload = match notice {
                        Ok(notice) => self.payload(&notice),
                        Err(RecvError::Lagged(_)) => Some(self.everything()),
                        Err(RecvError::Closed) => return,
                    };
                    if let Some(payload) = payload && !self.send(payload, sender).await {
                        return;
                    }
                }
                request = requests.message() => match request {
                    Ok(Some(SubscribeRequest { kind: Some(Kind::Ack(ack)), .. })) => {
                        self.unacknowledged.retain(|seq| *seq > ack.seq);
                    }
                    Ok(Some(_)) => {}
                    Ok(None) | Err(_) => return,
                },
                () = sender.closed() => return,
                () = self.door.inner.stop.cancelled() => return,
            }
        }
    }

    async fn send(
        &mut self,
        payload: Payload,
        sender: &mpsc::Sender<Result<InvalidationEvent, Status>>,
    ) -> bool {
        if self.unacknowledged.len() >= RING {
            let text = format!("{RING} events are not acknowledged: subscribe again");
            let _ = sender.try_send(Err(Status::resource_exhausted(text)));
            return false;
        }
        self.seq += 1;
        self.unacknowledged.push_back(self.seq);
        sender.send(Ok(InvalidationEvent { seq: self.seq, payload: Some(payload) })).await.is_ok()
    }

    fn everything(&self) -> Payload {
        Payload::PolicyInvalidated(PolicyInvalidated {
            agent_id: String::new(),
            policy_version: self.version(),
        })
    }

    /// How often the policy has changed on this ledger: grows with every change.
    fn version(&self) -> u64 {
        self.door.engine().ledger().reader().size().unwrap_or(0)
    }

    fn payload(&self, notice: &Notice) -> Option<Payload> {
        match notice {
            Notice::Policy => Some(self.everything()),
            Notice::Decided(id, allowed) => {
                let asked = self.door.engine().approval(*id).ok().flatten()?;
                let is_own_team = self.door.engine().look_up(|registry| {
                    *asked.principal == *self.agent.principal
                        || is_of_team(registry, &asked.principal, &self.agent)
                });
                let decision = if *allowed { Decision::Approved } else { Decision::Denied };
                is_own_team.unwrap_or(false).then(|| {
                    Payload::ApprovalResolved(ApprovalResolved {
                        request_id: id.to_string(),
                        decision: decision.into(),
                    })
                })
            }
            Notice::Order { .. } | Notice::Operation { .. } | Notice::Asked(_) => None,
        }
    }
}
