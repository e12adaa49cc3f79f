//! A handler that does what its events say, and tells what it saw.

use std::sync::Mutex;

use proctor_clients::ahp::check::Entry;
use proctor_clients::ahp::server::{AhpServer, EventHandler, HandlerError, Peer, Violation};
use proctor_clients::ahp::{AhpEvent, Decision, HandshakeRequest};
use proctor_core::json::Json;
use serde_json::{Value, json};
use tokio::sync::{Semaphore, watch};

pub(crate) struct Probe {
    /// Permits of `wait`: each lets one call go on.
    pub(crate) gate: Semaphore,
    /// Number of events that have begun.
    pub(crate) begun: watch::Sender<usize>,
    /// Number of notifications that were handled to the end.
    pub(crate) noticed: watch::Sender<usize>,
    /// The `n` of events, as they began.
    pub(crate) order: Mutex<Vec<u64>>,
    pub(crate) violations: Mutex<Vec<i32>>,
    pub(crate) peers: Mutex<Vec<Peer>>,
    now_and_most: Mutex<(usize, usize)>,
}

impl Probe {
    pub(crate) fn new() -> Probe {
        Probe {
            gate: Semaphore::new(0),
            begun: watch::Sender::new(0),
            noticed: watch::Sender::new(0),
            order: Mutex::default(),
            violations: Mutex::default(),
            peers: Mutex::default(),
            now_and_most: Mutex::default(),
        }
    }

    pub(crate) fn server() -> AhpServer<Probe> {
        AhpServer::new(Probe::new())
    }

    pub(crate) fn most_at_once(&self) -> usize {
        self.now_and_most.lock().unwrap().1
    }

    pub(crate) async fn begun(&self, count: usize) {
        self.begun.subscribe().wait_for(|begun| *begun >= count).await.unwrap();
    }

    pub(crate) async fn noticed(&self, count: usize) {
        self.noticed.subscribe().wait_for(|noticed| *noticed >= count).await.unwrap();
    }

    async fn act(&self, peer: &Peer, event: &AhpEvent) -> Result<(), HandlerError> {
        let count = Counted::new(self);
        self.peers.lock().unwrap().push(peer.clone());
        if let Some(n) = event.payload.get("n").and_then(Json::as_u64) {
            self.order.lock().unwrap().push(n);
        }
        self.begun.send_modify(|begun| *begun += 1);
        let tool = event.payload.get("tool_name").and_then(Json::as_str).unwrap_or_default();
        match tool {
            "wait" => self.gate.acquire().await.unwrap().forget(),
            "hang" => std::future::pending().await,
            "panic" => panic!("as the event says"),
            "fail" => return Err(HandlerError::failed("as the event says")),
            _ => {}
        }
        drop(count);
        Ok(())
    }
}

struct Counted<'a>(&'a Probe);

impl Counted<'_> {
    fn new(probe: &Probe) -> Counted<'_> {
        let mut counts = probe.now_and_most.lock().unwrap();
        counts.0 += 1;
        counts.1 = counts.1.max(counts.0);
        Counted(probe)
    }
}

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.0.now_and_most.lock().unwrap().0 -= 1;
    }
}

impl EventHandler for Probe {
    async fn handle_event(&self, peer: &Peer, event: AhpEvent) -> Result<Decision, HandlerError> {
        self.act(peer, &event).await?;
        Ok(Decision::allow())
    }

    async fn handle_notification(&self, peer: &Peer, entry: Entry) -> Result<(), HandlerError> {
        self.act(peer, &entry.event).await?;
        self.noticed.send_modify(|noticed| *noticed += 1);
        Ok(())
    }

    fn handle_handshake(&self, _peer: &Peer, request: &HandshakeRequest) {
        assert_ne!(request.session_id, "panic", "as the handshake says");
    }

    fn handle_violation(&self, _peer: &Peer, violation: &Violation) {
        self.violations.lock().unwrap().push(violation.error.code);
    }
}

pub(crate) fn params(kind: &str, tool: &str, n: u64) -> Value {
    json!({"event_type": kind, "session_id": "s", "agent_id": "a", "timestamp": "t", "depth": 0,
        "payload": {"tool_name": tool, "n": n}})
}

/// A request for a decision.
pub(crate) fn ask(id: impl Into<Value>, tool: &str) -> String {
    ask_nth(id, tool, 0)
}

pub(crate) fn ask_nth(id: impl Into<Value>, tool: &str, n: u64) -> String {
    request(id, "ahp/event", params("pre_action", tool, n))
}

pub(crate) fn request(id: impl Into<Value>, method: &str, params: impl Into<Value>) -> String {
    json!({"jsonrpc": "2.0", "id": id.into(), "method": method, "params": params.into()}).to_string()
}

pub(crate) fn tell(tool: &str) -> String {
    json!({"jsonrpc": "2.0", "method": "ahp/event", "params": params("post_action", tool, 0)}).to_string()
}

pub(crate) fn handshake(id: impl Into<Value>, session: &str) -> String {
    let params = json!({"protocol_version": "2.4", "session_id": session, "agent_id": "a", "capabilities": [],
        "agent_info": {"framework": "test", "version": "1", "capabilities": []}});
    request(id, "ahp/handshake", params)
}

pub(crate) fn value(reply: &str) -> Value {
    serde_json::from_str(reply).unwrap_or_else(|error| panic!("{error}: {reply}"))
}

#[track_caller]
pub(crate) fn assert_decides(reply: &Value, id: impl Into<Value>, decision: &str) {
    assert_eq!(reply["id"], id.into(), "{reply}");
    assert_eq!(reply["result"]["decision"], decision, "{reply}");
}

#[track_caller]
pub(crate) fn assert_refuses(reply: &Value, id: impl Into<Value>, code: i32) {
    assert_eq!(reply["id"], id.into(), "{reply}");
    assert_eq!(reply["error"]["code"], code, "{reply}");
    assert!(reply.get("result").is_none(), "{reply}");
}
