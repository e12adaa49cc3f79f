//! What waits for a person, and telling the agent's library when it was decided.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use proctor_core::id::ApprovalId;
use proctor_core::time::Clock;
use proctor_net::assembly::client::{Client, ClientError, Code};
use proctor_net::assembly::runtime::Push;
use proctor_wire::assembly::proto::event::v1::ApprovalDecision;
use proctor_wire::assembly::proto::gateway::v1::{Decision, InvalidationEvent, invalidation_event::Payload};
use tokio::sync::broadcast;

use super::talk::{Trouble, say};
use crate::system::{SystemClock, SystemRandomness};

/// How many may wait at once.
const MAX_WAITING: usize = 10_000;
/// How many pushes a connection may be behind.
const MAX_PUSHES: usize = 1024;
/// How long to wait after a lost stream, at first and at most.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// The approvals of this runtime's queries.
#[derive(Debug)]
pub struct Approvals {
    waiting: Mutex<VecDeque<String>>,
    pushes: broadcast::Sender<Push>,
}

impl Approvals {
    /// None yet.
    pub fn new() -> Approvals {
        Approvals { waiting: Mutex::default(), pushes: broadcast::Sender::new(MAX_PUSHES) }
    }

    /// Everything that libraries are told from now on.
    pub fn subscribe(&self) -> broadcast::Receiver<Push> {
        self.pushes.subscribe()
    }

    /// Remembers an approval of the gateway; of too many the oldest is forgotten, and the library hears of it when it asks again.
    pub fn remember(&self, approval_id: &str) {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        if waiting.len() >= MAX_WAITING {
            waiting.pop_front();
        }
        waiting.push_back(approval_id.to_owned());
    }

    /// Makes an approval that nobody here can give: it is refused when its time is over. None: too many wait.
    pub fn open(self: &Arc<Self>, time: Duration) -> Option<String> {
        let id = ApprovalId::new(SystemClock.now(), &SystemRandomness).to_string();
        {
            let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
            if waiting.len() >= MAX_WAITING {
                return None;
            }
            waiting.push_back(id.clone());
        }
        let (approvals, approval_id) = (Arc::clone(self), id.clone());
        tokio::spawn(async move {
            tokio::time::sleep(time).await;
            approvals.decided(&approval_id, false, "timeout", "nobody decided in time");
        });
        Some(id)
    }

    /// Tells the libraries, if it is one of ours.
    fn decided(&self, approval_id: &str, approved: bool, decided_by: &str, reason: &str) {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(found) = waiting.iter().position(|id| id == approval_id) else { return };
        waiting.remove(found);
        drop(waiting);
        let decision = ApprovalDecision {
            approval_id: approval_id.to_owned(),
            approved,
            decided_by: decided_by.to_owned(),
            reason: reason.to_owned(),
            decided_at_unix_ms: SystemClock.now().micros() / 1000,
        };
        // Nobody may be connected.
        let _ = self.pushes.send(Push::ApprovalDecision(decision));
    }

    /// Listens for ever to what the gateway says about approvals.
    pub async fn follow(self: Arc<Self>, client: Client, subscriber: String) {
        let trouble = Trouble::default();
        let (mut pause, mut seen) = (FIRST_PAUSE, 0);
        loop {
            let before = seen;
            if let Err(error) = self.follow_once(&client, &subscriber, &mut seen).await {
                if error.code() == Some(Code::Unimplemented) {
                    return say("the gateway does not tell outcomes of approvals");
                }
                trouble.began(|| format!("outcomes of approvals are not heard: {error}"));
            }
            if seen != before {
                trouble.ended("outcomes of approvals are heard again");
            }
            pause = if seen == before { pause.saturating_mul(2).min(LONGEST_PAUSE) } else { FIRST_PAUSE };
            tokio::time::sleep(pause).await;
        }
    }

    async fn follow_once(
        &self,
        client: &Client,
        subscriber: &str,
        seen: &mut u64,
    ) -> Result<(), ClientError> {
        let mut events = client.subscribe_invalidations(subscriber, *seen).await?;
        while let Some(event) = events.next().await? {
            let seq = event.seq;
            self.obey(event);
            *seen = seq;
            events.acknowledge(seq).await?;
        }
        Ok(())
    }

    fn obey(&self, event: InvalidationEvent) {
        let Some(Payload::ApprovalResolved(resolved)) = event.payload else { return };
        match resolved.decision() {
            Decision::Approved => self.decided(&resolved.request_id, true, "", ""),
            Decision::Denied => self.decided(&resolved.request_id, false, "", ""),
            Decision::Pending | Decision::Unspecified => {}
        }
    }
}
