//! What waits for a person, and telling the agent's library when it was decided.

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

use super::holder::Holder;
use super::talk::{Trouble, say};
use proctor_system::{SystemClock, SystemRandomness};

/// How many may wait at once.
const MAX_WAITING: usize = 10_000;
/// How many outcomes are kept of which nobody here has asked yet: one may come before the answer to its query.
const MAX_EARLY: usize = 1024;
/// How long an answer waits for the first stream of outcomes: what is decided after the answer is then heard.
const OPENING: Duration = Duration::from_millis(500);
/// How many pushes a connection may be behind.
const MAX_PUSHES: usize = 1024;
/// How long to wait after a lost stream, at first and at most.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// The approvals of this runtime's queries.
#[derive(Debug)]
pub(crate) struct Approvals {
    known: Mutex<Known>,
    pushes: broadcast::Sender<Push>,
    /// Whether nobody has to wait for the first stream of outcomes any more.
    is_open: watch::Sender<bool>,
}

#[derive(Debug, Default)]
struct Known {
    /// The approvals that wait, the oldest first.
    waiting: VecDeque<String>,
    /// Outcomes of approvals that are not known here, the oldest first.
    early: VecDeque<(String, bool)>,
}

impl Approvals {
    /// None yet.
    pub(crate) fn new() -> Approvals {
        Approvals {
            known: Mutex::default(),
            pushes: broadcast::Sender::new(MAX_PUSHES),
            is_open: watch::Sender::new(false),
        }
    }

    /// Everything that libraries are told from now on.
    pub(crate) fn subscribe(&self) -> broadcast::Receiver<Push> {
        self.pushes.subscribe()
    }

    /// Remembers an approval of the gateway; of too many the oldest is forgotten, and the library hears of it when it asks again.
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
        // Whoever asks again while it waits is told the same one.
        if known.waiting.iter().any(|id| id == approval_id) {
            return;
        }
        if known.waiting.len() >= MAX_WAITING {
            known.waiting.pop_front();
        }
        known.waiting.push_back(approval_id.to_owned());
    }

    /// Waits a moment until outcomes are listened to, if they never were; once is enough.
    pub(crate) async fn opening(&self) {
        let mut is_open = self.is_open.subscribe();
        let opening = tokio::time::timeout(OPENING, is_open.wait_for(|is_open| *is_open)).await;
        if opening.is_err() {
            self.is_open.send_replace(true);
        }
    }

    /// Makes an approval that nobody here can give: it is refused when its time is over. None: too many wait.
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

    /// The gateway has decided. One that is not known here is of somebody else, or its query is not answered yet.
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

    /// Tells the libraries.
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

    /// Listens for ever to what the gateway says about approvals, as soon as there is a token.
    pub(crate) async fn follow(self: Arc<Self>, client: Client, subscriber: String, mut holder: Holder) {
        let trouble = Trouble::default();
        let (mut pause, mut seen) = (FIRST_PAUSE, 0);
        let mut last = None;
        loop {
            let Some(agent) = holder.known().await else { return };
            // Numbers are those of a team.
            if last.replace(agent.clone()).is_some_and(|last| last != agent) {
                seen = 0;
            }
            let before = seen;
            let ended = tokio::select! {
                ended = self.follow_once(&client, &subscriber, &mut seen, &trouble) => ended,
                () = holder.changed() => continue,
            };
            if let Err(error) = ended {
                if error.code() == Some(Code::Unimplemented) {
                    self.is_open.send_replace(true);
                    return say("the gateway does not tell outcomes of approvals");
                }
                trouble.began(|| format!("outcomes of approvals are not heard: {error}"));
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
        trouble: &Trouble,
    ) -> Result<(), ClientError> {
        let mut events = client.subscribe_invalidations(subscriber, *seen).await?;
        self.is_open.send_replace(true);
        trouble.ended("outcomes of approvals are heard again");
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
            Decision::Approved => self.decided(resolved.request_id, true),
            Decision::Denied => self.decided(resolved.request_id, false),
            Decision::Pending | Decision::Unspecified => {}
        }
    }
}

impl Known {
    /// Takes an approval from those that wait; true if it was there.
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
            approvals.opening().await;
            assert_eq!(began.elapsed(), OPENING);
        }
        let approvals = Arc::new(Approvals::new());
        let began = tokio::time::Instant::now();
        let opened = Arc::clone(&approvals);
        tokio::spawn(async move {
            tokio::time::sleep(OPENING / 2).await;
            opened.is_open.send_replace(true);
        });
        approvals.opening().await;
        assert_eq!(began.elapsed(), OPENING / 2);
    }
}
