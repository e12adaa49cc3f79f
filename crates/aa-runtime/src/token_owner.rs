//! Agent that owns the token of the runtime's own calls: configured, or learnt from a query.

use std::time::Duration;

use proctor_wire::assembly::proto::common::v1::AgentId;
use tokio::sync::watch;

/// Minimum time between two owners: agents that share a runtime must not make it reopen its streams with every query.
const MIN_INTERVAL: Duration = Duration::from_secs(2);

/// Sending half: publishes the current owner.
#[derive(Debug)]
pub(crate) struct TokenOwner(watch::Sender<Option<AgentId>>);

impl TokenOwner {
    /// Starts with the configured owner, if there is one.
    pub(crate) fn new(configured: Option<AgentId>) -> TokenOwner {
        TokenOwner(watch::Sender::new(configured))
    }

    /// Publishes an owner; watchers are woken only if it is another one.
    pub(crate) fn learn(&self, holder: &AgentId) {
        self.0.send_if_modified(|known| {
            let is_other = known.as_ref() != Some(holder);
            if is_other {
                *known = Some(holder.clone());
            }
            is_other
        });
    }

    /// The current owner.
    pub(crate) fn now(&self) -> Option<AgentId> {
        self.0.borrow().clone()
    }

    /// A receiving half.
    pub(crate) fn subscribe(&self) -> TokenOwnerWatch {
        TokenOwnerWatch(self.0.subscribe())
    }
}

/// Receiving half: waits for an owner, or for another one.
#[derive(Debug)]
pub(crate) struct TokenOwnerWatch(watch::Receiver<Option<AgentId>>);

impl TokenOwnerWatch {
    /// Waits until an owner is known; `None` if the sending half is gone.
    pub(crate) async fn known(&mut self) -> Option<AgentId> {
        self.0.wait_for(Option::is_some).await.ok()?.clone()
    }

    /// Waits for another owner, and then for the minimum interval.
    pub(crate) async fn changed(&mut self) {
        if self.0.changed().await.is_err() {
            return std::future::pending().await;
        }
        tokio::time::sleep(MIN_INTERVAL).await;
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
        let owner = TokenOwner::new(None);
        let mut holder = owner.subscribe();
        assert!(tokio::time::timeout(MIN_INTERVAL, holder.known()).await.is_err());
        owner.learn(&named("a"));
        assert_eq!(holder.known().await, Some(named("a")));
        owner.learn(&named("a"));
        assert!(tokio::time::timeout(MIN_INTERVAL * 2, holder.changed()).await.is_err());
        let began = Instant::now();
        owner.learn(&named("b"));
        holder.changed().await;
        assert_eq!(began.elapsed(), MIN_INTERVAL);
        assert_eq!(holder.known().await, Some(named("b")));
        drop(owner);
        assert!(tokio::time::timeout(MIN_INTERVAL * 2, holder.changed()).await.is_err());
    }
}
