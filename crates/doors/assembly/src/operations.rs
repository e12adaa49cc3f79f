//! `OpControlStream`: operations that are paused, resumed or terminated.

use proctor_policy::state::AgentInfo;
use proctor_wire::assembly::proto::policy::v1::{OpControlMessage, OpControlSignal};
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::mpsc;

use super::identity::void_token;
use super::{AssemblyDoor, Replies, replies};
use proctor_engine::Notice;

/// Bound of the channel to the transport, in messages.
const UNSENT: usize = 256;

impl AssemblyDoor {
    /// Opens a stream of the operations that are stopped now, followed by every change.
    pub(super) fn operations(&self, agent: &AgentInfo) -> Replies<OpControlMessage> {
        let (sender, receiver) = mpsc::channel(UNSENT);
        let slot = match self.slot("operations", &agent.principal) {
            Ok(slot) => slot,
            Err(status) => {
                let _ = sender.try_send(Err(status));
                return replies(receiver);
            }
        };
        let mut notices = self.engine().notices();
        let mut due = self.stopped();
        let door = self.clone();
        let own_name = format!("agent:{}", agent.agent);
        let agent = agent.clone();
        let own = [own_name.clone(), agent.principal.clone()];
        tokio::spawn(async move {
            let _slot = slot;
            // Operations of other agents are nobody else's business, except that a trace is not known to be anybody's.
            let concerns =
                |operation: &str| !operation.starts_with("agent:") || own.iter().any(|own| own == operation);
            let mut sequence = 0;
            loop {
                due.retain(|(operation, _)| concerns(operation));
                if !due.is_empty() && !door.is_still_held(&agent) {
                    let _ = sender.send(Err(void_token())).await;
                    return;
                }
                for (operation, signal) in due {
                    // An agent knows itself by its identifier, whatever its principal is.
                    let op_id = if operation.starts_with("agent:") { own_name.clone() } else { operation };
                    let message = OpControlMessage { op_id, signal: signal.into(), sequence };
                    sequence += 1;
                    if sender.send(Ok(message)).await.is_err() {
                        return;
                    }
                }
                let notice = tokio::select! {
                    notice = notices.recv() => notice,
                    () = door.inner.stop.cancelled() => return,
                    () = sender.closed() => return,
                };
                due = match notice {
                    Ok(Notice::Operation { operation, code }) => vec![(operation, signal(code))],
                    Ok(_) => Vec::new(),
                    Err(RecvError::Lagged(_)) => door.stopped(),
                    Err(RecvError::Closed) => return,
                };
            }
        });
        replies(receiver)
    }

    fn stopped(&self) -> Vec<(String, OpControlSignal)> {
        let stopped = self.engine().look_up(|registry| {
            let signal = |terminated: bool| {
                if terminated { OpControlSignal::Terminate } else { OpControlSignal::Pause }
            };
            registry.operations().map(|(operation, ended)| (operation.to_owned(), signal(ended))).collect()
        });
        // Without the state nothing can be known: everything is paused.
        stopped.unwrap_or_else(|_| vec![("*".to_owned(), OpControlSignal::Pause)])
    }
}

fn signal(code: &str) -> OpControlSignal {
    match code {
        "op_paused" => OpControlSignal::Pause,
        "op_resumed" => OpControlSignal::Resume,
        _ => OpControlSignal::Terminate,
    }
}
