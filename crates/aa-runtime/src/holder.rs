//! Whom the token belongs to that the runtime itself shows: configured, or learnt from a query.

use std::time::Duration;

use proctor_wire::assembly::proto::common::v1::AgentId;
use tokio::sync::watch;

/// How long another holder has to wait: agents that share a runtime must not make it open streams all the time.
const TURN: Duration = Duration::from_secs(2);

/// Tells it.
#[derive(Debug)]
pub(crate) struct Holders(watch::Sender<Option<AgentId>>);

impl Holders {
    /// Nobody yet, or the one that is configured.
    pub(crate) fn new(configured: Option<AgentId>) -> Holders {
        Holders(watch::Sender::new(configured))
    }

    /// It is this one.
    pub(crate) fn learn(&self, holder: &AgentId) {
        self.0.send_if_modified(|known| {
            let is_other = known.as_ref() != Some(holder);
            if is_other {
                *known = Some(holder.clone());
            }
            is_other
        });
    }

    /// The one that is known now.
    pub(crate) fn now(&self) -> Option<AgentId> {
        self.0.borrow().clone()
    }

    /// For whoever waits for it.
    pub(crate) fn subscribe(&self) -> Holder {
        Holder(self.0.subscribe())
    }
}

/// Hears of it.
#[derive(Debug)]
pub(crate) struct Holder(watch::Receiver<Option<AgentId>>);

impl Holder {
    /// Waits until it is known; none: it never will be.
    pub(crate) async fn known(&mut self) -> Option<AgentId> {
        self.0.wait_for(Option::is_some).await.ok()?.clone()
    }

    /// Waits until it is another one, and then a while.
    pub(crate) async fn changed(&mut self) {
        if self.0.changed().await.is_err() {
            return std::future::pending().await;
        }
        tokio::time::sleep(TURN).await;
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::Instant;

    use super::*;

    fn named(name: &str) -> AgentId {
        AgentId { agent_id: name.to_owned(), ..AgentId::default() }
    }

    #[tokio::test(start_paused = true)]
    async fn another_holder_is_heard_of_after_its_turn_and_the_same_one_is_not() {
        let holders = Holders::new(None);
        let mut holder = holders.subscribe();
        assert!(tokio::time::timeout(TURN, holder.known()).await.is_err());
        holders.learn(&named("a"));
        assert_eq!(holder.known().await, Some(named("a")));
        holders.learn(&named("a"));
        assert!(tokio::time::timeout(TURN * 2, holder.changed()).await.is_err());
        let began = Instant::now();
        holders.learn(&named("b"));
        holder.changed().await;
        assert_eq!(began.elapsed(), TURN);
        assert_eq!(holder.known().await, Some(named("b")));
        drop(holders);
        assert!(tokio::time::timeout(TURN * 2, holder.changed()).await.is_err());
    }
}
