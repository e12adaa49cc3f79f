//! `ControlStream`: orders to an agent. A new stream starts with the current state, so that nothing is lost between two streams; later
//! orders follow as they are given.

use std::collections::HashMap;
use std::sync::Arc;

use proctor_core::digest::Digest;
use proctor_policy::question::Stop;
use proctor_policy::state::AgentInfo;
use proctor_wire::assembly::proto::agent::v1::control_command::Command;
use proctor_wire::assembly::proto::agent::v1::{
    ControlCommand, KillCommand, PolicyUpdateCommand, ResumeCommand, SuspendCommand,
};
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tonic::Status;

use super::identity::{caller_of, void_token};
use super::{AssemblyDoor, Replies, lock, replies};
use proctor_engine::Notice;

/// Bound of the channel to the transport, in orders.
const UNSENT: usize = 32;

/// The newest stream of each agent; an older one ends when a newer one opens.
#[derive(Debug, Default)]
pub(super) struct Streams {
    newest: HashMap<String, Arc<CancellationToken>>,
}

impl Streams {
    fn replace(&mut self, principal: &str) -> Arc<CancellationToken> {
        let own = Arc::new(CancellationToken::new());
        if let Some(older) = self.newest.insert(principal.to_owned(), Arc::clone(&own)) {
            older.cancel();
        }
        own
    }

    fn end(&mut self, principal: &str, own: &Arc<CancellationToken>) {
        if self.newest.get(principal).is_some_and(|newest| Arc::ptr_eq(newest, own)) {
            self.newest.remove(principal);
        }
    }
}

impl AssemblyDoor {
    /// Opens the stream of orders to an agent.
    pub(super) fn orders(&self, agent: AgentInfo) -> Replies<ControlCommand> {
        let (sender, receiver) = mpsc::channel(UNSENT);
        let own = lock(&self.inner.streams).replace(&agent.principal);
        // Before the state is looked at: what happens after the look is heard.
        let notices = self.engine().notices();
        let mut told = None;
        let due = self.standing_orders(&agent, &mut told);
        let door = self.clone();
        tokio::spawn(async move {
            let principal = agent.principal.clone();
            tokio::select! {
                () = own.cancelled() => {
                    let _ = sender.try_send(Err(Status::aborted("a newer stream of this agent has taken over")));
                }
                () = door.inner.stop.cancelled() => {}
                () = sender.closed() => {}
                () = door.send_orders(&agent, (due, told), notices, &sender) => {}
            }
            lock(&door.inner.streams).end(&principal, &own);
        });
        replies(receiver)
    }

    async fn send_orders(
        &self,
        agent: &AgentInfo,
        (mut due, mut told): (Vec<Command>, Option<Digest>),
        mut notices: tokio::sync::broadcast::Receiver<Notice>,
        sender: &mpsc::Sender<Result<ControlCommand, Status>>,
    ) {
        loop {
            for command in due {
                if sender.send(Ok(ControlCommand { command: Some(command) })).await.is_err() {
                    return;
                }
            }
            let notice = notices.recv().await;
            let is_own =
                matches!(&notice, Ok(Notice::Order { principal, .. }) if *principal == agent.principal);
            due = match notice {
                Ok(notice) => self.orders_of(agent, notice, &mut told),
                // Too much happened at once: what holds now is said again.
                Err(RecvError::Lagged(_)) => self.standing_orders(agent, &mut told),
                Err(RecvError::Closed) => return,
            };
            if (is_own || !due.is_empty()) && !self.is_still_held(agent) {
                let _ = sender.send(Err(void_token())).await;
                return;
            }
        }
    }

    /// Current state of an agent as orders: stopped or resumed, and the policy unless this stream has sent it already.
    fn standing_orders(&self, agent: &AgentInfo, told: &mut Option<Digest>) -> Vec<Command> {
        let looked = self
            .engine()
            .look_up(|registry| (registry.get(&agent.principal).cloned(), registry.stop(&agent.principal)));
        let Ok((known, stop)) = looked else { return vec![unknown()] };
        let mut due = Vec::new();
        match stop {
            Some(stop) => due.push(stopped(stop)),
            None => {
                let last = known.and_then(|agent| agent.last_order);
                due.extend(
                    last.filter(|(order, _)| order == "resumed")
                        .map(|(_, note)| Command::Resume(ResumeCommand { note })),
                );
            }
        }
        // A heartbeat says only that there is another policy; the policy itself comes here.
        due.extend(self.policy_update(agent, told));
        due
    }

    /// Converts a notice to orders for an agent; orders to its ancestors apply to it as well.
    fn orders_of(&self, agent: &AgentInfo, notice: Notice, told: &mut Option<Digest>) -> Vec<Command> {
        match notice {
            Notice::Policy => self.policy_update(agent, told).into_iter().collect(),
            Notice::Order { principal, code, reason } if principal == agent.principal => match code {
                "suspended" => vec![Command::Suspend(SuspendCommand { reason })],
                // One cause is gone; there may be others.
                "resumed" => match self.engine().look_up(|registry| registry.stop(&agent.principal)) {
                    Ok(None) => vec![Command::Resume(ResumeCommand { note: reason })],
                    Ok(Some(stop)) => vec![stopped(stop)],
                    Err(_) => vec![unknown()],
                },
                "killed" => vec![Command::Kill(KillCommand { reason })],
                _ => Vec::new(),
            },
            Notice::Order { principal, code, reason } => {
                let above = self.engine().look_up(|registry| {
                    let lineage = registry.lineage(&agent.principal);
                    let is_above = lineage.iter().any(|above| above.principal == principal)
                        || lineage.last().is_some_and(|last| {
                            last.registration.as_ref().is_some_and(|own| own.parent == principal)
                        });
                    (is_above, registry.stop(&agent.principal))
                });
                match above {
                    Ok((true, Some(stop))) => vec![stopped(stop)],
                    Ok((true, None)) if code == "resumed" => {
                        vec![Command::Resume(ResumeCommand { note: reason })]
                    }
                    _ => Vec::new(),
                }
            }
            Notice::Operation { .. } | Notice::Asked(_) | Notice::Decided(..) => Vec::new(),
        }
    }

    /// Sends the policy in force, once per stream and digest.
    fn policy_update(&self, agent: &AgentInfo, told: &mut Option<Digest>) -> Option<Command> {
        let policy = self.engine().policy();
        let digest = policy.digest();
        if told.replace(digest) == Some(digest) {
            return None;
        }
        Some(Command::PolicyUpdate(PolicyUpdateCommand {
            new_policy_id: format!("sha256:{digest}"),
            policy_bytes: policy.text_for(&caller_of(agent)),
        }))
    }
}

/// Order for a stop.
fn stopped(stop: Stop) -> Command {
    if stop.rule == "agent.killed" {
        Command::Kill(KillCommand { reason: stop.reason })
    } else {
        Command::Suspend(SuspendCommand { reason: stop.reason })
    }
}

/// Order to stop while the state is unavailable: the agent fails closed.
fn unknown() -> Command {
    Command::Suspend(SuspendCommand { reason: "the registry does not answer".to_owned() })
}
