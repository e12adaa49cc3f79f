//! Pending approvals, and pushing their outcomes to the agent's library.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use proctor_clients::assembly::client::{Client, ClientError, Code};
use proctor_clients::assembly::runtime::Push;
use proctor_core::id::ApprovalId;
use proctor_core::time::Clock;
use proctor_wire::assembly::proto::event::v1::ApprovalDecision;
use proctor_wire::assembly::proto::gateway::v1::{Decision, InvalidationEvent, invalidation_event::Payload};
use tokio::sync::{broadcast, watch};

use super::outage_log::OutageLog;
use super::token_owner::TokenOwnerWatch;
use proctor_system::{SystemClock, SystemRandomness};

/// Limit of pending approvals.
const MAX_WAITING: usize = 10_000;
/// Limit of outcomes without a pending approval: one can arrive before the answer to its query.
const MAX_EARLY: usize = 1024;
/// Delay of an answer until the first stream of outcomes is open, so that a decision right after the answer is not missed.
const STREAM_TIMEOUT: Duration = Duration::from_millis(500);
/// Channel capacity: a connection that falls further behind loses pushes.
const MAX_PUSHES: usize = 1024;
/// Initial and maximum backoff after a lost stream.
const MIN_BACKOFF: Duration = Duration::from_millis(100);
const MAX_BACKOFF: Duration = Duration::from_secs(5);

/// Pending approvals of this runtime's queries, and the channel for their outcomes.
#[derive(Debug)]
pub(crate) struct Approvals {
    known: Mutex<Known>,
    pushes: broadcast::Sender<Push>,
    /// Whether answers need no longer wait for the first stream of outcomes.
    is_open: watch::Sender<bool>,
}

#[derive(Debug, Default)]
struct Known {
    /// Ids of pending approvals, oldest first.
    waiting: VecDeque<String>,
    /// Outcomes without a pending approval, oldest first.
    early: VecDeque<(String, bool)>,
}

impl Approvals {
    pub(crate) fn new() -> Approvals {
        Approvals {
            known: Mutex::default(),
            pushes: broadcast::Sender::new(MAX_PUSHES),
            is_open: watch::Sender::new(false),
        }
    }

    /// A receiver of all later pushes.
    pub(crate) fn subscribe(&self) -> broadcast::Receiver<Push> {
        self.pushes.subscribe()
    }

    /// Adds an approval that the gateway decides. At the limit the oldest is evicted; its library learns the outcome by repeating the query.
    pub(crate) fn remember(&self, approval_id: &str) {
        if approval_id.is_empty() {
            return;
        }
        let mut known = self.known();
        if let Some(found) = known.early.iter().position(|(id, _)| id == approval_id) {
            let outcome = known.early.remove(found);
            drop(known);
            return self.push(approval_id, outcome.is_some_and(|(_, approved)| approved), "", "");
        }
        // A repeated query gets the same approval.
        if known.waiting.iter().any(|id| id == approval_id) {
            return;
        }
        if known.waiting.len() >= MAX_WAITING {
            known.waiting.pop_front();
        }
        known.waiting.push_back(approval_id.to_owned());
    }

    /// Waits, for a bounded time and only until the first success or timeout, for the stream of outcomes.
    pub(crate) async fn wait_for_stream(&self) {
        let mut is_open = self.is_open.subscribe();
        let opening = tokio::time::timeout(STREAM_TIMEOUT, is_open.wait_for(|is_open| *is_open)).await;
        if opening.is_err() {
            self.is_open.send_replace(true);
        }
    }

    /// Creates a local approval, which nobody can grant: it is denied after `time`. `None` at the limit of pending approvals.
    pub(crate) fn open(self: &Arc<Self>, time: Duration) -> Option<String> {
        let id = ApprovalId::new(SystemClock.now(), &SystemRandomness).to_string();
        {
            let mut known = self.known();
            if known.waiting.len() >= MAX_WAITING {
                return None;
            }
            known.waiting.push_back(id.clone());
        }
        let (approvals, approval_id) = (Arc::clone(self), id.clone());
        tokio::spawn(async move {
            tokio::time::sleep(time).await;
            if approvals.known().take(&approval_id) {
                approvals.push(&approval_id, false, "timeout", "nobody decided in time");
            }
        });
        Some(id)
    }

    /// Handles an outcome of the gateway. An unknown approval belongs to another runtime, or its query is not answered yet.
    fn decided(&self, approval_id: String, approved: bool) {
        let mut known = self.known();
        if known.take(&approval_id) {
            drop(known);
            return self.push(&approval_id, approved, "", "");
        }
        if known.early.len() >= MAX_EARLY {
            known.early.pop_front();
        }
        known.early.push_back((approval_id, approved));
    }

    /// Pushes an outcome to all connected libraries.
    fn push(&self, approval_id: &str, approved: bool, decided_by: &str, reason: &str) {
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

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Background task: follows the gateway's stream of outcomes, as soon as there is a token.
    pub(crate) async fn follow(
        self: Arc<Self>,
        client: Client,
        subscriber: String,
        mut holder: TokenOwnerWatch,
    ) {
        let outage = OutageLog::default();
        let (mut pause, mut seen) = (MIN_BACKOFF, 0);
        let mut last = None;
        loop {
            let Some(agent) = holder.known().await else { return };
            // Sequence numbers are per team, and another owner may be of another one.
            if last.replace(agent.clone()).is_some_and(|last| last != agent) {
                seen = 0;
            }
            let before = seen;
            let ended = tokio::select! {
                ended = self.follow_once(&client, &subscriber, &mut seen, &outage) => ended,
                () = holder.changed() => continue,
            };
            if let Err(error) = ended {
                if error.code() == Some(Code::Unimplemented) {
                    self.is_open.send_replace(true);
                    log::info!("the gateway does not tell outcomes of approvals");
                    return;
                }
                outage.failed(|| format!("outcomes of approvals are not heard: {error}"));
            }
            pause = if seen == before { pause.saturating_mul(2).min(MAX_BACKOFF) } else { MIN_BACKOFF };
            tokio::time::sleep(pause).await;
        }
    }

    async fn follow_once(
        &self,
        client: &Client,
        subscriber: &str,
        seen: &mut u64,
        outage: &OutageLog,
    ) -> Result<(), ClientError> {
        let mut events = client.subscribe_invalidations(subscriber, *seen).await?;
        self.is_open.send_replace(true);
        outage.recovered("outcomes of approvals are heard again");
        while let Some(event) = events.next().await? {
            let seq = event.seq;
            self.apply(event);
            *seen = seq;
            events.acknowledge(seq).await?;
        }
        Ok(())
    }

    fn apply(&self, event: InvalidationEvent) {
        let Some(Payload::ApprovalResolved(resolved)) = event.payload else { return };
        match resolved.decision() {
            Decision::Approved => self.decided(resolved.request_id, true),
            Decision::Denied => self.decided(resolved.request_id, false),
            Decision::Pending | Decision::Unspecified => {}
        }
    }
}

impl Known {
    /// Removes a pending approval; true if it was there.
    fn take(&mut self, approval_id: &str) -> bool {
        let found = self.waiting.iter().position(|id| id == approval_id);
        found.and_then(|found| self.waiting.remove(found)).is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(pushes: &mut broadcast::Receiver<Push>) -> Vec<(String, bool)> {
        let mut told = Vec::new();
        while let Ok(Push::ApprovalDecision(decision)) = pushes.try_recv() {
            told.push((decision.approval_id, decision.approved));
        }
        told
    }

    #[test]
    fn an_outcome_is_told_once_however_often_and_however_late_its_query_is_answered() {
        let approvals = Approvals::new();
        let mut pushes = approvals.subscribe();
        for _ in 0..3 {
            approvals.remember("a");
        }
        approvals.remember("");
        assert_eq!(approvals.known().waiting, ["a"]);
        approvals.decided("a".into(), true);
        approvals.decided("a".into(), true);
        assert_eq!(told(&mut pushes), [("a".to_owned(), true)]);
        // The stream was faster than the answer.
        approvals.decided("b".into(), false);
        approvals.decided("c".into(), true);
        assert!(told(&mut pushes).is_empty());
        approvals.remember("c");
        approvals.remember("b");
        assert_eq!(told(&mut pushes), [("c".to_owned(), true), ("b".to_owned(), false)]);
        assert!(approvals.known().waiting.is_empty());
    }

    #[test]
    fn memory_is_bounded() {
        let approvals = Approvals::new();
        for index in 0..MAX_WAITING + 5 {
            approvals.remember(&format!("w{index}"));
            approvals.decided(format!("e{index}"), true);
        }
        let known = approvals.known();
        assert_eq!((known.waiting.len(), known.early.len()), (MAX_WAITING, MAX_EARLY));
        assert_eq!(known.waiting.front().map(String::as_str), Some("w5"));
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_waits_for_the_first_stream_and_not_for_long() {
        let approvals = Approvals::new();
        let began = tokio::time::Instant::now();
        for _ in 0..2 {
            approvals.wait_for_stream().await;
            assert_eq!(began.elapsed(), STREAM_TIMEOUT);
        }
        let approvals = Arc::new(Approvals::new());
        let began = tokio::time::Instant::now();
        let opened = Arc::clone(&approvals);
        tokio::spawn(async move {
            tokio::time::sleep(STREAM_TIMEOUT / 2).await;
            opened.is_open.send_replace(true);
        });
        approvals.wait_for_stream().await;
        assert_eq!(began.elapsed(), STREAM_TIMEOUT / 2);
    }
}
